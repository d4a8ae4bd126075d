/* From inputs to features, one temporal group at a time:
 *
 *     read, choose frames, resize -> key -> cache, or else patch rows -> tower -> features
 *
 * From the second group on the first two steps run ahead of the others in a thread of their own, by a few groups; the
 * results are the same. qvl_encode and prompts are made of this. */
#ifndef QVL_PIPELINE_H
#define QVL_PIPELINE_H

#include "base/hash.h"
#include "preprocess/clip.h"

/* What is encoded: exactly one of input, patches and features. */
typedef struct qvl_encode_source {
    const char *name;             /* put before messages; may be NULL */
    const qvl_input *input;       /* to be read */
    qvl_reading reading;          /* of input */
    const qvl_item *planned;      /* what input must come out as: its grid, width and height; NULL: anything */
    const qvl_patches *patches;   /* of one item; encoded in one run, never cached */
    const qvl_features *features; /* of one item; handed on */
} qvl_encode_source;

/* Groups that are done. All of it is valid during the call only. */
typedef struct qvl_encoded {
    size_t source;
    int64_t first, count;         /* groups of the source's item: all of them, or one */
    const qvl_item *item;         /* of the source; its origin counts the groups so far */
    const qvl_features *features; /* of these groups, without items. A view (shared) where it can be one */
    const char *key;              /* with the last group of an input: the item's key; else NULL */
} qvl_encoded;

typedef qvl_status (*qvl_encoded_fn)(void *user, const qvl_encoded *encoded, qvl_error *error);

/* Hands groups to done in order, sources one after the other; stops at the first that fails. Both options were taken
 * in (base/options.h). encode: tap must be NULL; progress counts all sources. With a profile nothing runs ahead and
 * the cache is not used. */
qvl_status qvl_pipeline_run(qvl_session *session, const qvl_encode_source *sources, size_t count,
                            const qvl_preprocess_options *preprocess, const qvl_encode_options *encode,
                            qvl_encoded_fn done, void *user, qvl_error *error);

#endif
