/* Attention over tiles, transposed: scores are keys x queries, so that softmax runs over lanes of queries and its
 * numerators come out as the right factor of the product with the values.
 *
 * Layout of qvl_heads, bf16 tiles; a block is 32 rows of one segment (a segment unit, context.h), zero beyond its end:
 *   q      [heads][blocks][2][dim_steps] right tiles: 16 pairs of dimensions x 16 queries, times scale log2(e), so
 *          that softmax numerators are 2^score
 *   k      [heads][blocks][2][dim_steps] left tiles: 16 keys x 32 dimensions
 *   v      [heads][blocks][value_tiles] left tiles: 16 dimensions x 32 keys
 *   norms  float [heads][blocks][2]: the largest |q|^2 and |k|^2 of a block */
#include "compute/tile/layout.h"

#include "base/bf16.h"

#include <math.h>
#include <string.h>

#define BLOCK 32
#define QUERY_BLOCKS 2 /* of one task: 64 queries */

/* 2^64 times the sums of a million numerators stays far below the largest float. */
#define SAFE_EXPONENT 64.0f

typedef struct heads_layout {
    int64_t blocks, dim_steps, value_tiles;
    int64_t qk_block, v_block; /* elements of a block of one head */
    uint16_t *q, *k, *v;
    float *norms;
} heads_layout;

static heads_layout layout_of(const qvl_heads *heads, const qvl_segments *segments) {
    heads_layout l = {.blocks = qvl_segment_units(segments, heads->rows, BLOCK)};
    l.dim_steps = qvl_ceil_div(heads->head_dim, QVL_STEP);
    l.value_tiles = qvl_ceil_div(heads->head_dim, 16);
    l.qk_block = 2 * l.dim_steps * QVL_TILE;
    l.v_block = l.value_tiles * QVL_TILE;
    l.q = heads->data;
    if (!l.q) return l;
    l.k = l.q + heads->heads * l.blocks * l.qk_block;
    l.v = l.k + heads->heads * l.blocks * l.qk_block;
    l.norms = (float *)(void *)(l.v + heads->heads * l.blocks * l.v_block);
    return l;
}

size_t qvl_tile_heads_bytes(int64_t rows, int64_t heads, int64_t head_dim, const qvl_segments *segments) {
    qvl_heads shape = {.rows = rows, .heads = heads, .head_dim = head_dim};
    heads_layout l = layout_of(&shape, segments);
    return (size_t)(heads * l.blocks) *
           ((size_t)(2 * l.qk_block + l.v_block) * sizeof(uint16_t) + 2 * sizeof(float));
}

/* ---- from rows of [q k v] to tiles */

#define QKV_ROWS 512 /* rows whose f32 [q k v] wait in cache for their rotation */

size_t qvl_tile_qkv_scratch(int64_t rows, int64_t heads, int64_t head_dim) {
    return (size_t)qvl_min_i64(rows, QKV_ROWS) * 3 * (size_t)(heads * head_dim);
}

typedef struct split_job {
    const qvl_compute *compute;
    const float *qkv; /* rows first_row.. as [3, heads, head_dim] */
    int64_t first_row;
    const float *cosine, *sine;
    const qvl_segments *segments;
    const qvl_heads *heads;
    heads_layout layout;
    int64_t first_block;
} split_job;

/* One head of a block of rows start..end. */
static void split_head(const split_job *job, int64_t block, int64_t head, int64_t start, int64_t end,
                       float *scratch) {
    const heads_layout *l = &job->layout;
    int64_t hd = job->heads->head_dim, width = job->heads->heads * hd, at = head * l->blocks + block;
    float *norms = l->norms + 2 * at;
    norms[0] = norms[1] = 0.0f;
    for (int64_t i = 0; i < BLOCK; i += 16) {
        int64_t row = start + i, count = row >= end ? 0 : qvl_min_i64(16, end - row);
        qvl_tile_split s = {.row = job->qkv + (row - job->first_row) * 3 * width + head * hd,
                            .row_stride = 3 * width,
                            .width = width,
                            .head_dim = hd,
                            .cosine = job->cosine + row * (hd / 2),
                            .sine = job->sine + row * (hd / 2),
                            .factor = job->heads->scale * QVL_LOG2E,
                            .q = l->q + at * l->qk_block + i / 16 * l->dim_steps * QVL_TILE,
                            .k = l->k + at * l->qk_block + i / 16 * l->dim_steps * QVL_TILE,
                            .v = l->v + at * l->v_block + i};
        job->compute->tiles->split(&s, count, norms, scratch);
    }
}

static void split_block(void *user, int64_t task, int worker) {
    const split_job *job = user;
    int64_t block = job->first_block + task, s = qvl_segment_of_unit(job->segments, block, BLOCK);
    int64_t start = job->segments->start[s] + (block - qvl_segment_unit(job->segments, s, BLOCK)) * BLOCK;
    int64_t end = qvl_min_i64(start + BLOCK, job->segments->start[s + 1]);
    if (start >= end) return; /* a unit between two segments that belongs to neither */
    float *scratch = qvl_pool_scratch(job->compute->pool, worker);
    for (int64_t head = 0; head < job->heads->heads; head++) split_head(job, block, head, start, end, scratch);
}

/* The block that a row lies in. */
static int64_t block_of_row(const qvl_segments *segments, int64_t row) {
    int64_t s = qvl_segment_of_row(segments, row);
    return qvl_segment_unit(segments, s, BLOCK) + (row - segments->start[s]) / BLOCK;
}

/* The last beginning of a block at or before a row. */
static int64_t block_start(const qvl_segments *segments, int64_t row) {
    int64_t start = segments->start[qvl_segment_of_row(segments, row)];
    return start + (row - start) / BLOCK * BLOCK;
}

/* Runs end where blocks do, so that each block is laid out at once; products begin where panels do, so that a few rows
 * at the seam may be multiplied twice. */
void qvl_tile_matmul_qkv(qvl_compute *compute, const qvl_operand *a, const qvl_weight *w, const float *cosine,
                         const float *sine, const qvl_segments *segments, float *scratch, qvl_heads *out) {
    int64_t steps = qvl_steps(a->cols);
    split_job job = {compute, scratch, 0, cosine, sine, segments, out, layout_of(out, segments), 0};
    for (int64_t row = 0, end; row < a->rows; row = end) {
        job.first_row = row / QVL_PANEL_ROWS * QVL_PANEL_ROWS;
        end = job.first_row + QKV_ROWS >= a->rows ? a->rows : block_start(segments, job.first_row + QKV_ROWS);
        qvl_operand part = {end - job.first_row, a->cols,
                            (uint16_t *)a->data + job.first_row / QVL_PANEL_ROWS * steps * 2 * QVL_TILE};
        qvl_tile_run_product(compute, &part, w, QVL_EPILOGUE_STORE, scratch, NULL);
        job.first_block = block_of_row(segments, row);
        qvl_pool_run(compute->pool, block_of_row(segments, end - 1) - job.first_block + 1, split_block, &job);
    }
}

void qvl_tile_heads_read(const qvl_heads *in, const qvl_segments *segments, float *q, float *k, float *v) {
    heads_layout l = layout_of(in, segments);
    float unscale = 1.0f / (in->scale * QVL_LOG2E);
    int64_t hd = in->head_dim, s = 0;
    for (int64_t row = 0; row < in->rows; row++) {
        while (row >= segments->start[s + 1]) s++;
        int64_t key = row - segments->start[s], block = qvl_segment_unit(segments, s, BLOCK) + key / BLOCK;
        int64_t i = key % BLOCK;
        for (int64_t head = 0; head < in->heads; head++)
            for (int64_t d = 0; d < hd; d++) {
                int64_t at = head * l.blocks + block, to = (row * in->heads + head) * hd + d;
                int64_t tile = (i / 16 * l.dim_steps + d / QVL_STEP) * QVL_TILE, in_step = d % QVL_STEP;
                q[to] = unscale * qvl_f32_from_bf16(
                                      l.q[at * l.qk_block + tile + in_step / 2 * 32 + i % 16 * 2 + in_step % 2]);
                k[to] = qvl_f32_from_bf16(l.k[at * l.qk_block + tile + i % 16 * QVL_STEP + in_step]);
                v[to] = qvl_f32_from_bf16(l.v[at * l.v_block + d / 16 * QVL_TILE + d % 16 * 32 + i]);
            }
    }
}

/* ---- attention of a few blocks of queries of one head */

typedef struct attention_job {
    const qvl_compute *compute;
    const qvl_heads *heads;
    const qvl_segments *segments;
    heads_layout layout;
    qvl_operand *out;
    int64_t slots;
} attention_job;

/* Cauchy-Schwarz: no score of this head and segment, in powers of two, exceeds |q||k|; rounding raises either by 2^-8 at
 * most. False if any is not finite. */
static bool is_bounded(const attention_job *job, int64_t head, int64_t first_block, int64_t blocks) {
    const float *norms = job->layout.norms + 2 * (head * job->layout.blocks + first_block);
    float q = 0.0f, k = 0.0f;
    for (int64_t b = 0; b < blocks; b++) {
        q = qvl_larger_or_nan(q, norms[2 * b]);
        k = qvl_larger_or_nan(k, norms[2 * b + 1]);
    }
    return 1.01f * sqrtf(q) * sqrtf(k) <= SAFE_EXPONENT;
}

/* 16 queries: row-major floats [16][value width] to bf16 rows of the operand. */
static void put_queries(const attention_job *job, int64_t head, int64_t row, int64_t count, const float *values,
                        uint16_t *rounded) {
    int64_t hd = job->heads->head_dim, width = job->layout.value_tiles * 16, cols = job->heads->heads * hd;
    job->compute->tiles->round(16 * width, values, rounded);
    for (int64_t i = 0; i < count; i++)
        qvl_tile_put(job->out->data, qvl_steps(cols), row + i, head * hd, hd, rounded + i * width);
}

static void attend_slot(void *user, int64_t task, int worker) {
    const attention_job *job = user;
    const heads_layout *l = &job->layout;
    const int64_t unit = QUERY_BLOCKS * BLOCK;
    int64_t slot = task % job->slots, head = task / job->slots;
    int64_t s = qvl_segment_of_unit(job->segments, slot, unit);
    int64_t start = job->segments->start[s], keys = job->segments->start[s + 1] - start;
    int64_t first =
        (slot - qvl_segment_unit(job->segments, s, unit)) * unit; /* query, counted from the segment's */
    if (first >= keys) return;
    int64_t first_block = qvl_segment_unit(job->segments, s, BLOCK), at = head * l->blocks + first_block;
    qvl_tile_attention a = {.q = l->q + at * l->qk_block,
                            .k = l->k + at * l->qk_block,
                            .v = l->v + at * l->v_block,
                            .keys = keys,
                            .head_dim = job->heads->head_dim,
                            .bounded = is_bounded(job, head, first_block, qvl_ceil_div(keys, BLOCK))};
    float *values = qvl_pool_scratch(job->compute->pool, worker), *scratch = values + 16 * 16 * l->value_tiles * 2;
    uint16_t *rounded = (uint16_t *)(values + 16 * 16 * l->value_tiles);
    job->compute->tiles->begin();
    for (int64_t query = first; query < keys && query < first + unit; query += 16) {
        job->compute->tiles->attention(&a, query / 16, values, scratch);
        put_queries(job, head, start + query, qvl_min_i64(16, keys - query), values, rounded);
    }
    job->compute->tiles->end();
}

void qvl_tile_run_attention(qvl_compute *compute, const qvl_heads *qkv, const qvl_segments *segments,
                            qvl_operand *out) {
    attention_job job = {compute,  qkv,
                         segments, layout_of(qkv, segments),
                         out,      qvl_segment_units(segments, qkv->rows, QUERY_BLOCKS * BLOCK)};
    int64_t cols = qkv->heads * qkv->head_dim, steps = qvl_steps(cols);
    static const uint16_t zeros[QVL_STEP] = {0};
    if (cols % QVL_STEP)
        for (int64_t row = 0; row < out->rows; row++)
            qvl_tile_put(out->data, steps, row, cols, steps * QVL_STEP - cols, zeros);
    qvl_pool_run(compute->pool, job.slots * qkv->heads, attend_slot, &job);
}
