#include "text/bpe.h"

#include "base/memory.h"

#include <string.h>

/* Up to here a list is searched for the lowest rank; longer words keep a heap. */
#define SHORT_WORD 96
#define NO_RANK INT32_MAX

/* ------------------------------------------------------------------------------------------- the table of merges */

static size_t place_of(const qvl_bpe *bpe, int32_t left, int32_t right) {
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return (size_t)((key * 0x9e3779b97f4a7c15u) >> 32) & bpe->mask;
}

/* NULL where the two do not merge. */
static const qvl_merge *find_merge(const qvl_bpe *bpe, int32_t left, int32_t right) {
    for (size_t i = place_of(bpe, left, right);; i = (i + 1) & bpe->mask) {
        const qvl_merge *m = &bpe->merges[i];
        if (m->left == left && m->right == right) return m;
        if (m->left < 0) return NULL;
    }
}

qvl_status qvl_bpe_open(qvl_bpe *bpe, size_t count, qvl_error *error) {
    size_t size = 16;
    *bpe = (qvl_bpe){.distinct = true};
    while (size / 2 < count && size < SIZE_MAX / 4) size *= 2;
    bpe->merges = qvl_alloc(size, sizeof *bpe->merges);
    if (!bpe->merges) return qvl_fail_memory(error, "merges", size, sizeof *bpe->merges);
    for (size_t i = 0; i < size; i++) bpe->merges[i].left = -1;
    bpe->mask = size - 1;
    return QVL_OK;
}

void qvl_bpe_add(qvl_bpe *bpe, qvl_merge merge) {
    size_t i = place_of(bpe, merge.left, merge.right);
    while (bpe->merges[i].left >= 0 &&
           (bpe->merges[i].left != merge.left || bpe->merges[i].right != merge.right))
        i = (i + 1) & bpe->mask;
    bpe->merges[i] = merge;
}

void qvl_bpe_close(qvl_bpe *bpe) {
    qvl_free(bpe->merges);
    *bpe = (qvl_bpe){0};
}

/* ---------------------------------------------------------------------------------------------------- short words */

/* Element i is a symbol and what merging it with the next one would give. */
typedef struct short_word {
    int32_t ids[SHORT_WORD], ranks[SHORT_WORD], merged[SHORT_WORD];
    uint8_t starts[SHORT_WORD];
    size_t count;
} short_word;

static void look_up(const qvl_bpe *bpe, short_word *w, size_t i) {
    const qvl_merge *m = i + 1 < w->count ? find_merge(bpe, w->ids[i], w->ids[i + 1]) : NULL;
    w->ranks[i] = m ? m->rank : NO_RANK;
    w->merged[i] = m ? m->id : -1;
}

static void remove_symbol(short_word *w, size_t i) {
    size_t rest = --w->count - i;
    memmove(w->ids + i, w->ids + i + 1, rest * sizeof *w->ids);
    memmove(w->ranks + i, w->ranks + i + 1, rest * sizeof *w->ranks);
    memmove(w->merged + i, w->merged + i + 1, rest * sizeof *w->merged);
    memmove(w->starts + i, w->starts + i + 1, rest * sizeof *w->starts);
}

static size_t encode_short(const qvl_bpe *bpe, const uint8_t *word, size_t count, int32_t *ids, size_t *starts) {
    short_word w;
    w.count = count;
    for (size_t i = 0; i < count; i++) {
        w.ids[i] = bpe->byte_ids[word[i]];
        w.starts[i] = (uint8_t)i;
    }
    for (size_t i = 0; i < count; i++) look_up(bpe, &w, i);
    for (;;) {
        size_t best = 0;
        for (size_t i = 1; i < w.count; i++)
            if (w.ranks[i] < w.ranks[best]) best = i;
        if (w.ranks[best] == NO_RANK) break;
        w.ids[best] = w.merged[best];
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

/* A merge that was possible when it was put into the heap. */
typedef struct qvl_bpe_candidate {
    int32_t rank, id;
    uint32_t at; /* the left symbol */
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
    const qvl_merge *m = find_merge(bpe, s->symbols[at].id, s->symbols[s->symbols[at].after].id);
    if (m) heap_push(s->heap, heap_count, (candidate){m->rank, m->id, at});
}

/* At most two candidates come in for a symbol that goes, so 3 * count are enough. A candidate counts as long as its
 * two symbols, whatever they are by now, still give its id: where several merges give the same id, that is what the
 * reference does. */
static void merge_all(const qvl_bpe *bpe, qvl_bpe_scratch *s, size_t count) {
    symbol *symbols = s->symbols;
    size_t heap_count = 0;
    for (size_t i = 0; i + 1 < count; i++) offer(bpe, s, (uint32_t)i, &heap_count);
    while (heap_count > 0) {
        candidate c = heap_pop(s->heap, &heap_count);
        symbol *left = &symbols[c.at];
        if (left->id < 0 || left->after == NONE) continue;
        symbol *right = &symbols[left->after];
        const qvl_merge *m = find_merge(bpe, left->id, right->id);
        if (!m || m->id != c.id) continue;
        left->id = c.id;
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
    merge_all(bpe, scratch, count);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (scratch->symbols[i].id < 0) continue;
        ids[n] = scratch->symbols[i].id;
        starts[n++] = i;
    }
    *id_count = n;
    return QVL_OK;
}
