/* Causal attention over pages, for the tile backend: 16 queries at a time, transposed as in attention.c. Queries are the
 * pairs of a row and a query head that share a kv head.
 *
 * A layer's page, per kv head, bf16: k [16 tiles of keys][dim_steps] left tiles of 16 keys x 32 dimensions, then
 * v [8 blocks of 32 keys][value_tiles] left tiles of 16 dimensions x 32 keys; zero beyond the head's width. */
#include "compute/decoder.h"
#include "compute/tile/layout.h"

#include "base/bf16.h"

#include <string.h>

#define QUERIES 16

static int64_t dim_steps(int64_t head_dim) {
    return qvl_steps(head_dim);
}

static int64_t value_tiles(int64_t head_dim) {
    return qvl_ceil_div(head_dim, 16);
}

static int64_t key_elements(int64_t head_dim) {
    return QVL_KV_PAGE / 16 * dim_steps(head_dim) * QVL_TILE;
}

/* Elements of one kv head of a page. */
static int64_t head_elements(int64_t head_dim) {
    return key_elements(head_dim) + QVL_KV_PAGE / 32 * value_tiles(head_dim) * QVL_TILE;
}

size_t qvl_tile_kv_page_bytes(const qvl_compute *compute, int64_t kv_heads, int64_t head_dim) {
    (void)compute;
    return (size_t)(kv_heads * head_elements(head_dim)) * sizeof(uint16_t);
}

/* ---- what is stored */

/* Where kv head `head` of the page that holds an entry begins. */
static uint16_t *head_of(const qvl_kv *kv, int64_t entry, int64_t head) {
    return (uint16_t *)(void *)(kv->pages[entry / QVL_KV_PAGE] + kv->offset) + head * head_elements(kv->head_dim);
}

/* Of dimension d of entry `i` of a page. */
static int64_t key_element(int64_t head_dim, int64_t i, int64_t d) {
    return (i / 16 * dim_steps(head_dim) + d / 32) * QVL_TILE + i % 16 * 32 + d % 32;
}

static int64_t value_element(int64_t head_dim, int64_t i, int64_t d) {
    return key_elements(head_dim) + (i / 32 * value_tiles(head_dim) + d / 16) * QVL_TILE + d % 16 * 32 + i % 32;
}

typedef struct store_job {
    const qvl_kv *kv;
    int64_t first, rows;
    const float *k, *v; /* NULL: zeros */
} store_job;

static void store_head(void *user, int64_t head, int worker) {
    (void)worker;
    const store_job *job = user;
    int64_t hd = job->kv->head_dim;
    for (int64_t r = 0; r < job->rows; r++) {
        int64_t entry = job->first + r, i = entry % QVL_KV_PAGE, from = (r * job->kv->kv_heads + head) * hd;
        uint16_t *to = head_of(job->kv, entry, head);
        for (int64_t d = 0; d < hd; d++) {
            to[key_element(hd, i, d)] = job->k ? qvl_bf16_from_f32(job->k[from + d]) : 0;
            to[value_element(hd, i, d)] = job->v ? qvl_bf16_from_f32(job->v[from + d]) : 0;
        }
    }
}

void qvl_tile_kv_store(qvl_compute *compute, const qvl_kv *kv, int64_t first, int64_t rows, const float *k,
                       const float *v) {
    store_job job = {kv, first, rows, k, v};
    qvl_pool_run(compute->pool, kv->kv_heads, store_head, &job);
}

void qvl_tile_kv_read(const qvl_compute *compute, const qvl_kv *kv, int64_t first, int64_t count, float *k,
                      float *v) {
    (void)compute;
    int64_t hd = kv->head_dim;
    for (int64_t r = 0; r < count; r++)
        for (int64_t head = 0; head < kv->kv_heads; head++)
            for (int64_t d = 0; d < hd; d++) {
                const uint16_t *from = head_of(kv, first + r, head);
                int64_t i = (first + r) % QVL_KV_PAGE, to = (r * kv->kv_heads + head) * hd + d;
                k[to] = qvl_f32_from_bf16(from[key_element(hd, i, d)]);
                v[to] = qvl_f32_from_bf16(from[value_element(hd, i, d)]);
            }
}

/* ---- attention of one tile of queries of one kv head */

typedef struct causal_job {
    const qvl_compute *compute;
    const qvl_kv *kv;
    const float *q; /* [rows, heads, head_dim] */
    int64_t first, rows, heads, group;
    float factor; /* scale * log2(e) */
    float *out;   /* [rows, heads, head_dim] */
    int64_t tiles, spans;
    float *partial; /* of spans apart: [kv_heads][spans] states; NULL: a task takes all spans of its tile */
} causal_job;

typedef struct query_tile {
    int64_t kv_head, first, count; /* queries first.. of the rows * group that share the kv head */
    int64_t keys;                  /* that the last of them sees */
    uint16_t *q;                   /* dim_steps right tiles */
} query_tile;

static qvl_tile_state state_at(float *memory) {
    return (qvl_tile_state){memory, memory + QUERIES, memory + 2 * QUERIES};
}

/* Where a query's values lie in q, and its result in out. */
static int64_t place_of(const causal_job *job, const query_tile *t, int64_t i) {
    int64_t at = t->first + i, row = at / job->group, head = t->kv_head * job->group + at % job->group;
    return (row * job->heads + head) * job->kv->head_dim;
}

/* scratch: floats of 16 rows. */
static query_tile take_tile(const causal_job *job, int64_t kv_head, int64_t number, float *scratch, uint16_t *q) {
    query_tile t = {.kv_head = kv_head, .first = number * QUERIES, .q = q};
    t.count = qvl_min_i64(QUERIES, job->rows * job->group - t.first);
    t.keys = job->first + (t.first + t.count - 1) / job->group + 1;
    int64_t hd = job->kv->head_dim, ld = dim_steps(hd) * QVL_STEP;
    memset(scratch, 0, (size_t)(QUERIES * ld) * sizeof *scratch);
    for (int64_t i = 0; i < t.count; i++)
        memcpy(scratch + i * ld, job->q + place_of(job, &t, i), (size_t)hd * sizeof *scratch);
    job->compute->decoder_tiles->right_tiles(scratch, ld, job->factor, q);
    return t;
}

/* How many of the keys from `start` on each query sees; none or less for lanes without a query. */
static void count_seen(const causal_job *job, const query_tile *t, int64_t start, int32_t seen[QUERIES]) {
    for (int64_t i = 0; i < QUERIES; i++) {
        int64_t keys = job->first + (t->first + i) / job->group + 1 - start;
        seen[i] = i >= t->count || keys < 0 ? 0 : (int32_t)qvl_min_i64(keys, INT32_MAX);
    }
}

static void attend_span(const causal_job *job, const query_tile *t, int64_t span, qvl_tile_state *state,
                        float *scratch) {
    int64_t hd = job->kv->head_dim, first = span * QVL_SPAN_CHUNKS, end = qvl_ceil_div(t->keys, QVL_KV_PAGE);
    for (int64_t chunk = first; chunk < end && chunk < first + QVL_SPAN_CHUNKS; chunk++) {
        int32_t seen[QUERIES];
        const uint16_t *head = head_of(job->kv, chunk * QVL_KV_PAGE, t->kv_head);
        qvl_tile_chunk c = {.q = t->q,
                            .k = head,
                            .v = head + key_elements(hd),
                            .head_dim = hd,
                            .keys = qvl_min_i64(QVL_KV_PAGE, t->keys - chunk * QVL_KV_PAGE),
                            .seen = seen};
        count_seen(job, t, chunk * QVL_KV_PAGE, seen);
        job->compute->decoder_tiles->attend(&c, chunk == first, state, scratch);
    }
}

static void put_results(const causal_job *job, const query_tile *t, const qvl_tile_state *state, float *rows) {
    int64_t hd = job->kv->head_dim, width = value_tiles(hd) * 16;
    job->compute->decoder_tiles->result(hd, state, rows);
    for (int64_t i = 0; i < t->count; i++)
        memcpy(job->out + place_of(job, t, i), rows + i * width, (size_t)hd * sizeof *rows);
}

/* The parts of a worker's scratch. */
typedef struct tile_memory {
    float *rows, *state, *span_state, *scratch;
    uint16_t *q;
} tile_memory;

static tile_memory memory_of(const causal_job *job, int worker) {
    int64_t hd = job->kv->head_dim, ld = dim_steps(hd) * QVL_STEP, floats = QVL_TILE_STATE_FLOATS(hd);
    tile_memory m = {.rows = qvl_pool_scratch(job->compute->pool, worker)};
    m.state = m.rows + QUERIES * ld;
    m.span_state = m.state + floats;
    m.q = (uint16_t *)(m.span_state + floats);
    m.scratch = m.span_state + floats + QUERIES * ld / 2;
    return m;
}

/* A tile, span after span. */
static void attend_tile(void *user, int64_t task, int worker) {
    const causal_job *job = user;
    const qvl_decoder_tiles *tiles = job->compute->decoder_tiles;
    int64_t hd = job->kv->head_dim, kv_head = task % job->kv->kv_heads;
    tile_memory m = memory_of(job, worker);
    qvl_tile_state all = state_at(m.state), later = state_at(m.span_state);
    /* The longest first: later tiles see more keys. */
    query_tile t = take_tile(job, kv_head, job->tiles - 1 - task / job->kv->kv_heads, m.rows, m.q);
    job->compute->tiles->begin();
    for (int64_t span = 0; span * QVL_SPAN_CHUNKS * QVL_KV_PAGE < t.keys; span++) {
        attend_span(job, &t, span, span ? &later : &all, m.scratch);
        int32_t seen[QUERIES];
        count_seen(job, &t, span * QVL_SPAN_CHUNKS * QVL_KV_PAGE, seen);
        if (span) tiles->join(hd, &later, seen, &all);
    }
    job->compute->tiles->end();
    put_results(job, &t, &all, m.rows);
}

/* One span of the only tile. */
static void attend_apart(void *user, int64_t task, int worker) {
    const causal_job *job = user;
    tile_memory m = memory_of(job, worker);
    query_tile t = take_tile(job, task / job->spans, 0, m.rows, m.q);
    qvl_tile_state state = state_at(job->partial + task * QVL_TILE_STATE_FLOATS(job->kv->head_dim));
    job->compute->tiles->begin();
    attend_span(job, &t, task % job->spans, &state, m.scratch);
    job->compute->tiles->end();
}

static void join_spans(void *user, int64_t kv_head, int worker) {
    const causal_job *job = user;
    int64_t hd = job->kv->head_dim, floats = QVL_TILE_STATE_FLOATS(hd);
    tile_memory m = memory_of(job, worker);
    query_tile t = take_tile(job, kv_head, 0, m.rows, m.q);
    qvl_tile_state all = state_at(job->partial + kv_head * job->spans * floats);
    for (int64_t span = 1; span < job->spans; span++) {
        qvl_tile_state later = state_at(job->partial + (kv_head * job->spans + span) * floats);
        int32_t seen[QUERIES];
        count_seen(job, &t, span * QVL_SPAN_CHUNKS * QVL_KV_PAGE, seen);
        job->compute->decoder_tiles->join(hd, &later, seen, &all);
    }
    put_results(job, &t, &all, m.rows);
}

static bool is_apart(int64_t rows, int64_t group, int64_t length) {
    return rows * group <= QUERIES && qvl_causal_spans(length) > 1;
}

int64_t qvl_tile_causal_state_floats(int64_t head_dim) {
    return QVL_TILE_STATE_FLOATS(head_dim);
}

void qvl_tile_causal_attention(qvl_compute *compute, const qvl_kv *kv, const float *q, int64_t first, int64_t rows,
                               int64_t heads, float scale, float *scratch, float *out) {
    int64_t group = heads / kv->kv_heads;
    causal_job job = {.compute = compute,
                      .kv = kv,
                      .q = q,
                      .first = first,
                      .rows = rows,
                      .heads = heads,
                      .group = group,
                      .factor = scale * QVL_LOG2E,
                      .out = out,
                      .tiles = qvl_ceil_div(rows * group, QUERIES),
                      .spans = qvl_causal_spans(first + rows),
                      .partial = scratch};
    if (!is_apart(rows, group, first + rows)) {
        qvl_pool_run(compute->pool, job.tiles * kv->kv_heads, attend_tile, &job);
        return;
    }
    qvl_pool_run(compute->pool, kv->kv_heads * job.spans, attend_apart, &job);
    qvl_pool_run(compute->pool, kv->kv_heads, join_spans, &job);
}
