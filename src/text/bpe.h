/* Byte-pair encoding of one word: from single bytes, the neighbours of the lowest rank are merged, leftmost first,
 * until none are left that merge. */
#ifndef QVL_TEXT_BPE_H
#define QVL_TEXT_BPE_H

#include "base/error.h"

typedef struct qvl_merge {
    int32_t left, right; /* ids; left -1: an empty place */
    int32_t rank, id;    /* what they become */
} qvl_merge;

/* Immutable once filled. */
typedef struct qvl_bpe {
    qvl_merge *merges; /* a hash table, at most half full */
    size_t mask;       /* its size - 1 */
    int32_t byte_ids[256];
    bool distinct; /* no two merges give the same id */
} qvl_bpe;

/* A table for count merges. */
qvl_status qvl_bpe_open(qvl_bpe *bpe, size_t count, qvl_error *error);
/* A pair that is there already gets the new rank. At most as many as the table was made for. */
void qvl_bpe_add(qvl_bpe *bpe, qvl_merge merge);
void qvl_bpe_close(qvl_bpe *bpe);

/* Scratch of one caller, for long words; zeroed at first. */
typedef struct qvl_bpe_scratch {
    struct qvl_bpe_symbol *symbols;
    struct qvl_bpe_candidate *heap;
    size_t capacity; /* of symbols; the heap has room for three times as many */
} qvl_bpe_scratch;

#define QVL_BPE_WORD ((size_t)INT32_MAX)

/* word[0..count), 1 <= count <= QVL_BPE_WORD, to ids, each with the offset in the word that its bytes begin at.
 * ids and starts have room for count. Time: count * log count. */
qvl_status qvl_bpe_encode(const qvl_bpe *bpe, qvl_bpe_scratch *scratch, const uint8_t *word, size_t count,
                          int32_t *ids, size_t *starts, size_t *id_count, qvl_error *error);
void qvl_bpe_scratch_free(qvl_bpe_scratch *scratch);

#endif
