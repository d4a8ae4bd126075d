/* Causal attention over pages, for the float backend.
 *
 * A layer's page, per kv head: k [8 panels][head_dim][32 keys], then v [256][value_width], value_width the head's
 * width rounded up to 16; floats, or bf16 bits in bf16 mode. */
#include "compute/decoder.h"
#include "compute/float/layout.h"

#include "base/bf16.h"

#include <math.h>
#include <string.h>

#define QUERY_BLOCK 48 /* pairs of a row and a query head that share a kv head */

static int64_t value_width(int64_t head_dim) {
    return qvl_ceil_div(head_dim, 16) * 16;
}

/* Elements of one kv head of a page. */
static int64_t head_elements(int64_t head_dim) {
    return QVL_KV_PAGE * (head_dim + value_width(head_dim));
}

size_t qvl_float_kv_page_bytes(const qvl_compute *compute, int64_t kv_heads, int64_t head_dim) {
    return (size_t)(kv_heads * head_elements(head_dim)) * (compute->round ? 2 : 4);
}

/* ---- what is stored */

static size_t key_element(int64_t head_dim, int64_t entry, int64_t d) {
    return (size_t)(entry / QVL_PANEL * head_dim * QVL_PANEL + d * QVL_PANEL + entry % QVL_PANEL);
}

static size_t value_element(int64_t head_dim, int64_t entry, int64_t d) {
    return (size_t)(QVL_KV_PAGE * head_dim + entry * value_width(head_dim) + d);
}

static void put(const qvl_compute *compute, uint8_t *head, size_t element, float value) {
    if (compute->round)
        ((uint16_t *)(void *)head)[element] = qvl_bf16_from_f32(value);
    else
        ((float *)(void *)head)[element] = value;
}

static float get(const qvl_compute *compute, const uint8_t *head, size_t element) {
    if (compute->round) return qvl_f32_from_bf16(((const uint16_t *)(const void *)head)[element]);
    return ((const float *)(const void *)head)[element];
}

/* Where kv head `head` of the page that holds an entry begins. */
static uint8_t *head_of(const qvl_compute *compute, const qvl_kv *kv, int64_t entry, int64_t head) {
    return kv->pages[entry / QVL_KV_PAGE] + kv->offset +
           (size_t)(head * head_elements(kv->head_dim)) * (compute->round ? 2 : 4);
}

typedef struct store_job {
    const qvl_compute *compute;
    const qvl_kv *kv;
    int64_t first, rows;
    const float *k, *v; /* NULL: zeros */
} store_job;

static void store_head(void *user, int64_t head, int worker) {
    (void)worker;
    const store_job *job = user;
    int64_t hd = job->kv->head_dim;
    for (int64_t r = 0; r < job->rows; r++) {
        int64_t entry = job->first + r, in_page = entry % QVL_KV_PAGE, from = (r * job->kv->kv_heads + head) * hd;
        uint8_t *to = head_of(job->compute, job->kv, entry, head);
        for (int64_t d = 0; d < hd; d++) {
            put(job->compute, to, key_element(hd, in_page, d), job->k ? job->k[from + d] : 0.0f);
            put(job->compute, to, value_element(hd, in_page, d), job->v ? job->v[from + d] : 0.0f);
        }
    }
}

void qvl_float_kv_store(qvl_compute *compute, const qvl_kv *kv, int64_t first, int64_t rows, const float *k,
                        const float *v) {
    store_job job = {compute, kv, first, rows, k, v};
    qvl_pool_run(compute->pool, kv->kv_heads, store_head, &job);
}

void qvl_float_kv_read(const qvl_compute *compute, const qvl_kv *kv, int64_t first, int64_t count, float *k,
                       float *v) {
    int64_t hd = kv->head_dim;
    for (int64_t r = 0; r < count; r++)
        for (int64_t head = 0; head < kv->kv_heads; head++)
            for (int64_t d = 0; d < hd; d++) {
                const uint8_t *from = head_of(compute, kv, first + r, head);
                int64_t in_page = (first + r) % QVL_KV_PAGE, to = (r * kv->kv_heads + head) * hd + d;
                k[to] = get(compute, from, key_element(hd, in_page, d));
                v[to] = get(compute, from, value_element(hd, in_page, d));
            }
}

/* ---- attention of one block of queries of one kv head */

typedef struct causal_job {
    const qvl_compute *compute;
    const qvl_kv *kv;
    const float *q; /* [rows, heads, head_dim] */
    int64_t first, rows, heads, group;
    float factor; /* scale * log2(e) */
    float *out;   /* [rows, heads, head_dim] */
    int64_t blocks, spans;
    float *partial; /* of spans apart: [kv_heads][spans] states; NULL: a task takes all spans of its block */
} causal_job;

/* Softmax of up to QUERY_BLOCK queries after some keys. */
typedef struct state {
    float *top, *sum, *values; /* [QUERY_BLOCK], the same, [QUERY_BLOCK][value_width]: one block of memory */
} state;

static int64_t state_floats(int64_t head_dim) {
    return QUERY_BLOCK * (2 + value_width(head_dim));
}

static state state_at(float *memory) {
    return (state){memory, memory + QUERY_BLOCK, memory + 2 * QUERY_BLOCK};
}

typedef struct block {
    int64_t kv_head, first, count; /* queries first.. of the rows * group that share the kv head */
    float *q;                      /* [count, head_dim] */
} block;

/* Keys that query i of the block sees. */
static int64_t seen_by(const causal_job *job, const block *b, int64_t i) {
    return job->first + (b->first + i) / job->group + 1;
}

static const float *query(const causal_job *job, const block *b, int64_t i) {
    int64_t at = b->first + i, row = at / job->group, head = b->kv_head * job->group + at % job->group;
    return job->q + (row * job->heads + head) * job->kv->head_dim;
}

/* Keys and values of a chunk as floats: the page itself, or widened into buffer. */
static const float *chunk_floats(const causal_job *job, int64_t chunk, int64_t kv_head, float *buffer) {
    const uint8_t *head = head_of(job->compute, job->kv, chunk * QVL_KV_PAGE, kv_head);
    if (!job->compute->round) return (const float *)(const void *)head;
    job->compute->kernels->widen_bf16(head_elements(job->kv->head_dim), (const uint16_t *)(const void *)head,
                                      buffer);
    return buffer;
}

/* 2^((from - to) factor) */
static float decay(const causal_job *job, float from, float to) {
    job->compute->kernels->exponentials(1, &from, to, job->factor, false);
    return from;
}

/* Puts a part that was summed by itself behind what query i has. A part without keys has the top -infinity. */
static void join(const causal_job *job, int64_t i, bool first, const state *part, const state *into) {
    int64_t width = value_width(job->kv->head_dim);
    float *values = into->values + i * width;
    const float *part_values = part->values + i * width;
    if (first) {
        into->top[i] = part->top[i];
        into->sum[i] = part->sum[i];
        memcpy(values, part_values, (size_t)width * sizeof *values);
        return;
    }
    float top = part->top[i] > into->top[i] ? part->top[i] : into->top[i];
    float a = decay(job, into->top[i], top), b = decay(job, part->top[i], top);
    into->sum[i] = into->sum[i] * a + part->sum[i] * b;
    into->top[i] = top;
    job->compute->decoder->merge(width, values, a, part_values, b);
}

/* Softmax of one chunk by itself. Scores that are not finite make the sum NaN. */
static void attend_chunk(const causal_job *job, const block *b, int64_t chunk, float *scratch, const state *part) {
    const qvl_kernels *kernels = job->compute->kernels;
    int64_t hd = job->kv->head_dim, width = value_width(hd), start = chunk * QVL_KV_PAGE;
    int64_t keys = qvl_min_i64(QVL_KV_PAGE, seen_by(job, b, b->count - 1) - start);
    float *scores = scratch, *buffer = scores + QUERY_BLOCK * QVL_KV_PAGE;
    const float *k = chunk_floats(job, chunk, b->kv_head, buffer), *v = k + QVL_KV_PAGE * hd;
    for (int64_t j = 0; j < keys; j += QVL_PANEL)
        kernels->product(b->count, QVL_PANEL, hd, b->q, hd, k + j * hd, QVL_PANEL, scores + j, QVL_KV_PAGE, false,
                         (qvl_ahead){0});
    for (int64_t i = 0; i < b->count; i++) {
        float *row = scores + i * QVL_KV_PAGE;
        int64_t seen = seen_by(job, b, i) - start;
        seen = seen < 0 ? 0 : qvl_min_i64(seen, keys);
        float top = kernels->maximum(seen, row);
        part->top[i] = top;
        part->sum[i] =
            seen ? kernels->exponentials(seen, row, isfinite(top) ? top : 0.0f, job->factor, job->compute->round)
                 : 0.0f;
        if (seen && !isfinite(top)) part->sum[i] = NAN;
        memset(row + seen, 0, (size_t)(keys - seen) * sizeof *row);
    }
    for (int64_t j = 0; j < width;) {
        int64_t columns = width - j >= QVL_PANEL ? QVL_PANEL : 16;
        kernels->product(b->count, columns, keys, scores, QVL_KV_PAGE, v + j, width, part->values + j, width,
                         false, (qvl_ahead){0});
        j += columns;
    }
}

/* All chunks of a span that some query of the block sees. */
static void attend_span(const causal_job *job, const block *b, int64_t span, float *scratch, const state *into) {
    int64_t hd = job->kv->head_dim;
    state part = state_at(scratch);
    int64_t first = span * QVL_SPAN_CHUNKS, end = qvl_ceil_div(seen_by(job, b, b->count - 1), QVL_KV_PAGE);
    for (int64_t chunk = first; chunk < end && chunk < first + QVL_SPAN_CHUNKS; chunk++) {
        attend_chunk(job, b, chunk, scratch + state_floats(hd), &part);
        for (int64_t i = 0; i < b->count; i++)
            if (chunk == first || seen_by(job, b, i) > chunk * QVL_KV_PAGE)
                join(job, i, chunk == first, &part, into);
    }
}

static void put_results(const causal_job *job, const block *b, const state *s) {
    int64_t hd = job->kv->head_dim, width = value_width(hd);
    for (int64_t i = 0; i < b->count; i++) {
        float *out = job->out + (query(job, b, i) - job->q);
        memcpy(out, s->values + i * width, (size_t)hd * sizeof *out);
        job->compute->kernels->scale(hd, out, 1.0f / s->sum[i]);
    }
}

static block take_block(const causal_job *job, int64_t kv_head, int64_t number, float *q) {
    block b = {.kv_head = kv_head, .first = number * QUERY_BLOCK, .q = q};
    b.count = qvl_min_i64(QUERY_BLOCK, job->rows * job->group - b.first);
    int64_t hd = job->kv->head_dim;
    for (int64_t i = 0; i < b.count; i++) {
        if (job->compute->round)
            job->compute->kernels->round_bf16(hd, query(job, &b, i), q + i * hd);
        else
            memcpy(q + i * hd, query(job, &b, i), (size_t)hd * sizeof *q);
    }
    return b;
}

/* A block, span after span. */
static void attend_block(void *user, int64_t task, int worker) {
    const causal_job *job = user;
    int64_t hd = job->kv->head_dim;
    float *q = qvl_pool_scratch(job->compute->pool, worker), *memory = q + QUERY_BLOCK * hd;
    state all = state_at(memory), span_state = state_at(memory + state_floats(hd));
    float *scratch = memory + 2 * state_floats(hd);
    /* The longest first: later blocks see more keys. */
    block b = take_block(job, task % job->kv->kv_heads, job->blocks - 1 - task / job->kv->kv_heads, q);
    int64_t spans = qvl_causal_spans(seen_by(job, &b, b.count - 1));
    for (int64_t span = 0; span < spans; span++) {
        attend_span(job, &b, span, scratch, span ? &span_state : &all);
        for (int64_t i = 0; i < b.count && span; i++)
            if (seen_by(job, &b, i) > span * QVL_SPAN_CHUNKS * QVL_KV_PAGE) join(job, i, false, &span_state, &all);
    }
    put_results(job, &b, &all);
}

/* One span of the only block. */
static void attend_apart(void *user, int64_t task, int worker) {
    const causal_job *job = user;
    float *q = qvl_pool_scratch(job->compute->pool, worker);
    int64_t hd = job->kv->head_dim;
    block b = take_block(job, task / job->spans, 0, q);
    state into = state_at(job->partial + task * state_floats(hd));
    attend_span(job, &b, task % job->spans, q + QUERY_BLOCK * hd, &into);
}

static void join_spans(void *user, int64_t kv_head, int worker) {
    const causal_job *job = user;
    int64_t hd = job->kv->head_dim;
    block b = take_block(job, kv_head, 0, qvl_pool_scratch(job->compute->pool, worker));
    state all = state_at(job->partial + kv_head * job->spans * state_floats(hd));
    for (int64_t span = 1; span < job->spans; span++) {
        state later = state_at(job->partial + (kv_head * job->spans + span) * state_floats(hd));
        for (int64_t i = 0; i < b.count; i++)
            if (seen_by(job, &b, i) > span * QVL_SPAN_CHUNKS * QVL_KV_PAGE) join(job, i, false, &later, &all);
    }
    put_results(job, &b, &all);
}

static bool is_apart(int64_t rows, int64_t group, int64_t length) {
    return rows * group <= QUERY_BLOCK && qvl_causal_spans(length) > 1;
}

int64_t qvl_float_causal_state_floats(int64_t head_dim) {
    return state_floats(head_dim);
}

void qvl_float_causal_attention(qvl_compute *compute, const qvl_kv *kv, const float *q, int64_t first,
                                int64_t rows, int64_t heads, float scale, float *scratch, float *out) {
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
                      .blocks = qvl_ceil_div(rows * group, QUERY_BLOCK),
                      .spans = qvl_causal_spans(first + rows),
                      .partial = scratch};
    if (!is_apart(rows, group, first + rows)) {
        qvl_pool_run(compute->pool, job.blocks * kv->kv_heads, attend_block, &job);
        return;
    }
    qvl_pool_run(compute->pool, kv->kv_heads * job.spans, attend_apart, &job);
    qvl_pool_run(compute->pool, kv->kv_heads, join_spans, &job);
}
