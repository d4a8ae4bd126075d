#include "text/bpe.h"

#include "base/memory.h"

#include <string.h>

/* Up to here a list is searched for the lowest rank; longer words keep a heap. */
#define SHORT_WORD 32
#define NO_RANK QVL_BPE_LIMIT
#define BYTE_PAIRS ((size_t)256 * 256)

/* ------------------------------------------------------------------------------------------- the table of merges */

#define EMPTY UINT64_MAX
#define RANK_BITS 21
#define FILTER_LOG 2 /* four bits for a place */

static uint64_t pair_of(int32_t left, int32_t right) {
    return (uint64_t)(uint32_t)left << RANK_BITS | (uint32_t)right;
}

/* Multiplicative hashing: the upper bits depend on all of the pair. */
static size_t place_of(const qvl_bpe *bpe, uint64_t pair) {
    return (size_t)(pair * 0x9e3779b97f4a7c15u >> (64 - bpe->size_log));
}

static size_t filter_bit_of(const qvl_bpe *bpe, uint64_t pair) {
    return (size_t)(pair * 0xd6e8feb86659fd93u >> (64 - FILTER_LOG - bpe->size_log));
}

static size_t next_place(const qvl_bpe *bpe, size_t place) {
    return (place + 1) & (((size_t)1 << bpe->size_log) - 1);
}

/* The rank of two ids, NO_RANK where they do not merge. */
static int32_t find_rank(const qvl_bpe *bpe, int32_t left, int32_t right) {
    uint64_t pair = pair_of(left, right);
    size_t bit = filter_bit_of(bpe, pair);
    if (!(bpe->filter[bit / 64] >> bit % 64 & 1)) return NO_RANK;
    for (size_t i = place_of(bpe, pair);; i = next_place(bpe, i)) {
        uint64_t found = bpe->pairs[i];
        if (found >> RANK_BITS == pair) return (int32_t)(found & (NO_RANK - 1));
        if (found == EMPTY) return NO_RANK;
    }
}

qvl_status qvl_bpe_open(qvl_bpe *bpe, size_t count, qvl_error *error) {
    *bpe = (qvl_bpe){.distinct = true, .size_log = 4};
    while (((size_t)1 << bpe->size_log) / 3 * 2 < count) bpe->size_log++;
    size_t size = (size_t)1 << bpe->size_log;
    bpe->pairs = qvl_alloc(size, sizeof *bpe->pairs);
    bpe->filter = qvl_calloc((size << FILTER_LOG) / 64, sizeof *bpe->filter);
    bpe->merged = qvl_calloc(count + 1, sizeof *bpe->merged);
    bpe->byte_ranks = qvl_alloc(BYTE_PAIRS, sizeof *bpe->byte_ranks);
    if (!bpe->pairs || !bpe->filter || !bpe->merged || !bpe->byte_ranks)
        return qvl_fail_memory(error, "merges", size, sizeof *bpe->pairs);
    memset(bpe->pairs, 0xff, size * sizeof *bpe->pairs);
    return QVL_OK;
}

void qvl_bpe_add(qvl_bpe *bpe, int32_t left, int32_t right, int32_t rank, int32_t id) {
    uint64_t pair = pair_of(left, right);
    size_t bit = filter_bit_of(bpe, pair), i = place_of(bpe, pair);
    while (bpe->pairs[i] != EMPTY && bpe->pairs[i] >> RANK_BITS != pair) i = next_place(bpe, i);
    bpe->pairs[i] = pair << RANK_BITS | (uint32_t)rank;
    bpe->filter[bit / 64] |= (uint64_t)1 << bit % 64;
    bpe->merged[rank] = id;
}

void qvl_bpe_finish(qvl_bpe *bpe, const int32_t *byte_ids) {
    memcpy(bpe->byte_ids, byte_ids, sizeof bpe->byte_ids);
    for (size_t i = 0; i < BYTE_PAIRS; i++)
        bpe->byte_ranks[i] = find_rank(bpe, byte_ids[i / 256], byte_ids[i % 256]);
}

void qvl_bpe_close(qvl_bpe *bpe) {
    qvl_free(bpe->pairs);
    qvl_free(bpe->filter);
    qvl_free(bpe->merged);
    qvl_free(bpe->byte_ranks);
    *bpe = (qvl_bpe){0};
}

/* ---------------------------------------------------------------------------------------------------- short words */

/* Element i is a symbol and the rank of merging it with the next one. */
typedef struct short_word {
    int32_t ids[SHORT_WORD], ranks[SHORT_WORD];
    uint8_t starts[SHORT_WORD];
    size_t count;
} short_word;

static void look_up(const qvl_bpe *bpe, short_word *w, size_t i) {
    w->ranks[i] = i + 1 < w->count ? find_rank(bpe, w->ids[i], w->ids[i + 1]) : NO_RANK;
}

static void remove_symbol(short_word *w, size_t i) {
    size_t rest = --w->count - i;
    memmove(w->ids + i, w->ids + i + 1, rest * sizeof *w->ids);
    memmove(w->ranks + i, w->ranks + i + 1, rest * sizeof *w->ranks);
    memmove(w->starts + i, w->starts + i + 1, rest * sizeof *w->starts);
}

static size_t encode_short(const qvl_bpe *bpe, const uint8_t *word, size_t count, int32_t *ids, size_t *starts) {
    short_word w;
    w.count = count;
    for (size_t i = 0; i < count; i++) {
        w.ids[i] = bpe->byte_ids[word[i]];
        w.ranks[i] = i + 1 < count ? bpe->byte_ranks[256 * word[i] + word[i + 1]] : NO_RANK;
        w.starts[i] = (uint8_t)i;
    }
    for (;;) {
        size_t best = 0;
        for (size_t i = 1; i < w.count; i++)
            if (w.ranks[i] < w.ranks[best]) best = i;
        if (w.ranks[best] == NO_RANK) break;
        w.ids[best] = bpe->merged[w.ranks[best]];
        remove_symbol(&w, best + 1);
        look_up(bpe, &w, best);
        if (best > 0) look_up(bpe, &w, best - 1);
    }
    for (size_t i = 0; i < w.count; i++) {
        ids[i] = w.ids[i];
        starts[i] = w.starts[i];
    }
    return w.count;
}

/* ----------------------------------------------------------------------------------------------------- long words */

#define NONE UINT32_MAX

/* Symbols are a list in the order of the word; one that was merged into its neighbour has id -1. */
typedef struct qvl_bpe_symbol {
    int32_t id;
    uint32_t before, after; /* NONE at the ends */
} symbol;

/* A merge that was possible when it was put into the heap: of the symbol `at`, which was left, and the one after it,
 * which was right. */
typedef struct qvl_bpe_candidate {
    int32_t rank, left, right;
    uint32_t at;
} candidate;

static bool comes_before(const candidate *a, const candidate *b) {
    return a->rank < b->rank || (a->rank == b->rank && a->at < b->at);
}

static void heap_push(candidate *heap, size_t *count, candidate new) {
    size_t i = (*count)++;
    for (size_t up; i > 0 && comes_before(&new, &heap[up = (i - 1) / 2]); i = up) heap[i] = heap[up];
    heap[i] = new;
}

static candidate heap_pop(candidate *heap, size_t *count) {
    candidate first = heap[0], last = heap[--*count];
    size_t i = 0;
    for (size_t down; (down = 2 * i + 1) < *count; i = down) {
        if (down + 1 < *count && comes_before(&heap[down + 1], &heap[down])) down++;
        if (!comes_before(&heap[down], &last)) break;
        heap[i] = heap[down];
    }
    heap[i] = last;
    return first;
}

static qvl_status make_room(qvl_bpe_scratch *scratch, size_t count, qvl_error *error) {
    if (count <= scratch->capacity) return QVL_OK;
    qvl_bpe_scratch_free(scratch);
    size_t capacity = count < 1024 ? 1024 : count, candidates;
    if (qvl_mul_size(capacity, 3, &candidates)) {
        scratch->symbols = qvl_alloc(capacity, sizeof *scratch->symbols);
        scratch->heap = qvl_alloc(candidates, sizeof *scratch->heap);
    }
    if (!scratch->symbols || !scratch->heap) {
        qvl_bpe_scratch_free(scratch);
        return qvl_fail_memory(error, "a word's symbols", capacity, sizeof(symbol) + 3 * sizeof(candidate));
    }
    scratch->capacity = capacity;
    return QVL_OK;
}

void qvl_bpe_scratch_free(qvl_bpe_scratch *scratch) {
    qvl_free(scratch->symbols);
    qvl_free(scratch->heap);
    *scratch = (qvl_bpe_scratch){0};
}

/* Puts the merge of a symbol with the one after it into the heap, if there is one. */
static void offer(const qvl_bpe *bpe, qvl_bpe_scratch *s, uint32_t at, size_t *heap_count) {
    if (at == NONE || s->symbols[at].after == NONE) return;
    int32_t left = s->symbols[at].id, right = s->symbols[s->symbols[at].after].id,
            rank = find_rank(bpe, left, right);
    if (rank != NO_RANK) heap_push(s->heap, heap_count, (candidate){rank, left, right, at});
}

/* Whether the two symbols are still those that the candidate was made of. Where several merges give the same id, others
 * that give it will do, as in the reference. */
static bool still_holds(const qvl_bpe *bpe, const candidate *c, int32_t left, int32_t right) {
    if (left == c->left && right == c->right) return true;
    if (bpe->distinct) return false;
    int32_t rank = find_rank(bpe, left, right);
    return rank != NO_RANK && bpe->merged[rank] == bpe->merged[c->rank];
}

/* At most two candidates come in for a symbol that goes, so 3 * count are enough. */
static void merge_all(const qvl_bpe *bpe, qvl_bpe_scratch *s, const uint8_t *word, size_t count) {
    symbol *symbols = s->symbols;
    size_t heap_count = 0;
    for (size_t i = 0; i + 1 < count; i++) {
        int32_t rank = bpe->byte_ranks[256 * word[i] + word[i + 1]];
        if (rank != NO_RANK)
            heap_push(s->heap, &heap_count, (candidate){rank, symbols[i].id, symbols[i + 1].id, (uint32_t)i});
    }
    while (heap_count > 0) {
        candidate c = heap_pop(s->heap, &heap_count);
        symbol *left = &symbols[c.at];
        if (left->id < 0 || left->after == NONE) continue;
        symbol *right = &symbols[left->after];
        if (!still_holds(bpe, &c, left->id, right->id)) continue;
        left->id = bpe->merged[c.rank];
        left->after = right->after;
        right->id = -1;
        if (right->after != NONE) symbols[right->after].before = c.at;
        offer(bpe, s, left->before, &heap_count);
        offer(bpe, s, c.at, &heap_count);
    }
}

qvl_status qvl_bpe_encode(const qvl_bpe *bpe, qvl_bpe_scratch *scratch, const uint8_t *word, size_t count,
                          int32_t *ids, size_t *starts, size_t *id_count, qvl_error *error) {
    if (count <= SHORT_WORD && bpe->distinct) {
        *id_count = encode_short(bpe, word, count, ids, starts);
        return QVL_OK;
    }
    qvl_status status = make_room(scratch, count, error);
    if (status) return status;
    for (size_t i = 0; i < count; i++) {
        uint32_t before = i > 0 ? (uint32_t)(i - 1) : NONE, after = i + 1 < count ? (uint32_t)(i + 1) : NONE;
        scratch->symbols[i] = (symbol){bpe->byte_ids[word[i]], before, after};
    }
    merge_all(bpe, scratch, word, count);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (scratch->symbols[i].id < 0) continue;
        ids[n] = scratch->symbols[i].id;
        starts[n++] = i;
    }
    *id_count = n;
    return QVL_OK;
}
