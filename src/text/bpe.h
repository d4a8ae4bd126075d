/* Byte-pair encoding of one word: from single bytes, the neighbours of the lowest rank are merged, leftmost first,
 * until none are left that merge. */
#ifndef QVL_TEXT_BPE_H
#define QVL_TEXT_BPE_H

#include "base/error.h"

/* Ids and ranks are below this. */
#define QVL_BPE_LIMIT ((int32_t)1 << 21)

/* Immutable once filled. Most look-ups find nothing: the filter, which stays in a near cache, answers those. */
typedef struct qvl_bpe {
    uint64_t *pairs;  /* hash table: left id, right id and rank in 21 bits each; all ones: nothing */
    uint64_t *filter; /* bits, set for pairs that may be in the table */
    int size_log;     /* there are 1 << size_log places, and four times as many bits */
    int32_t *merged;  /* [rank] the id that the pair becomes */
    int32_t byte_ids[256];
    int32_t *byte_ranks; /* [256 * 256] of two neighbouring bytes; QVL_BPE_LIMIT: they do not merge */
    bool distinct;       /* no two merges give the same id */
} qvl_bpe;

/* A table for count <= QVL_BPE_LIMIT merges. */
qvl_status qvl_bpe_open(qvl_bpe *bpe, size_t count, qvl_error *error);
/* left and right become id. A pair that is there already gets the new rank. rank < count. */
void qvl_bpe_add(qvl_bpe *bpe, int32_t left, int32_t right, int32_t rank, int32_t id);
/* When all merges are there. byte_ids[256], each with an id of its own. */
void qvl_bpe_finish(qvl_bpe *bpe, const int32_t *byte_ids);
/* Accepts a zeroed struct. */
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
