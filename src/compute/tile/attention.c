/* Attention over tiles, transposed: scores are keys x queries, so that softmax runs over lanes of queries and its
 * numerators come out as the right factor of the product with the values.
 *
 * Layout of qvl_heads, bf16 tiles; a block is 32 rows of one segment (a segment unit, context.h), zero beyond its end:
 *   q      [heads][blocks][2][dim_steps] right tiles: 16 pairs of dimensions x 16 queries, times scale log2(e), so
 *          that softmax numerators are 2^score
 *   k      [heads][blocks][2][dim_steps] left tiles: 16 keys x 32 dimensions
 *   v      [heads][blocks][value_tiles] left tiles: 16 dimensions x 32 keys, and a row of ones behind the dimensions
 *          where there is room
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

/* ---- q, k and v: a product whose block is rotated and laid out while it lies in L2
 *
 * A task is a chunk of rows and a group of heads. For q, then k, then v it makes the panels of columns that hold the
 * group's (those at the seams hold neighbours' columns too) and lays out the blocks of rows that begin in the chunk.
 * The last of them may reach into the next chunk's rows, which are then multiplied twice. */

#define GROUP_COLUMNS 192 /* wide enough that seams cost little */
#define CHUNK_ROWS (QVL_MAX_BLOCK_ROWS - BLOCK)

typedef struct split_job {
    const qvl_compute *compute;
    qvl_tile_product product;
    const float *cosine, *sine;
    const qvl_segments *segments;
    const qvl_heads *heads;
    heads_layout layout;
    int64_t group, groups;
    int64_t stride; /* floats between rows */
    float *rows;    /* [workers][QVL_MAX_BLOCK_ROWS][stride] */
} split_job;

/* The f32 columns of a group's q, k or v, from their first panel on, and the rows that they are of. */
typedef struct part_rows {
    qvl_qkv_part part;
    float *rows;
    int64_t first_row, first_column;
} part_rows;

/* One head of a block of rows start..end. */
static void split_head(const split_job *job, const part_rows *from, int64_t block, int64_t head, int64_t start,
                       int64_t end, float *scratch) {
    const heads_layout *l = &job->layout;
    int64_t hd = job->heads->head_dim, width = job->heads->heads * hd, at = head * l->blocks + block;
    const bool values = from->part == QVL_PART_V;
    /* elements of the block, and to its second 16 rows: columns of v's tiles, tiles of the others */
    const int64_t whole = values ? l->v_block : l->qk_block, half = values ? 16 : l->dim_steps * QVL_TILE;
    uint16_t *out = (values ? l->v : from->part == QVL_PART_Q ? l->q : l->k) + at * whole;
    qvl_tile_split s = {
        .part = from->part, .row_stride = job->stride, .head_dim = hd, .factor = job->heads->scale * QVL_LOG2E};
    float norm = 0.0f;
    for (int64_t i = 0; i < BLOCK; i += 16) {
        int64_t row = start + i, count = row >= end ? 0 : qvl_min_i64(16, end - row);
        s.rows = from->rows +
                 ((row - from->first_row) * job->stride + from->part * width + head * hd - from->first_column);
        s.cosine = job->cosine + row * (hd / 2);
        s.sine = job->sine + row * (hd / 2);
        s.out = i ? out + half : out;
        s.next = (uintptr_t)out + (uintptr_t)(i ? whole : half) * sizeof *out;
        norm = qvl_larger_or_nan(norm, job->compute->tiles->split(&s, count, scratch));
    }
    if (!values) l->norms[2 * at + s.part] = norm;
}

/* The first row at or behind `row` where a block begins; all rows if there is none. */
static int64_t next_block(const qvl_segments *segments, int64_t row) {
    if (row >= segments->start[segments->count]) return segments->start[segments->count];
    int64_t s = qvl_segment_of_row(segments, row), start = segments->start[s];
    return qvl_min_i64(start + qvl_ceil_div(row - start, BLOCK) * BLOCK, segments->start[s + 1]);
}

/* One head of the blocks of rows row..end, which lie one behind the other. */
static void split_blocks(const split_job *job, const part_rows *from, int64_t head, int64_t row, int64_t end,
                         float *scratch) {
    while (row < end) {
        int64_t s = qvl_segment_of_row(job->segments, row), start = job->segments->start[s];
        int64_t block = qvl_segment_unit(job->segments, s, BLOCK) + (row - start) / BLOCK;
        int64_t next = qvl_min_i64(row + BLOCK, job->segments->start[s + 1]);
        split_head(job, from, block, head, row, next, scratch);
        row = next;
    }
}

static void split_chunk(void *user, int64_t task, int worker) {
    const split_job *job = user;
    const qvl_tile_kernels *tiles = job->compute->tiles;
    int64_t first = task % job->groups * job->group, last = qvl_min_i64(first + job->group, job->heads->heads);
    int64_t hd = job->heads->head_dim, width = job->heads->heads * hd;
    part_rows from = {.rows = job->rows + worker * QVL_MAX_BLOCK_ROWS * job->stride,
                      .first_row = task / job->groups * CHUNK_ROWS};
    int64_t row = next_block(job->segments, from.first_row);
    int64_t end = next_block(job->segments, qvl_min_i64(from.first_row + CHUNK_ROWS, job->product.rows));
    if (row >= end) return;
    float *scratch = qvl_pool_scratch(job->compute->pool, worker);
    tiles->begin();
    for (int part = QVL_PART_Q; part <= QVL_PART_V; part++) {
        int64_t panel = (part * width + first * hd) / QVL_PANEL_COLUMNS;
        int64_t panels = qvl_ceil_div(part * width + last * hd, QVL_PANEL_COLUMNS) - panel;
        from.part = (qvl_qkv_part)part;
        from.first_column = panel * QVL_PANEL_COLUMNS;
        qvl_tile_product product = job->product;
        product.stream = from.rows;
        product.first_row = from.first_row;
        product.first_column = from.first_column;
        tiles->product(&product, from.first_row, end - from.first_row, panel, panels, scratch);
        for (int64_t head = first; head < last; head++) split_blocks(job, &from, head, row, end, scratch);
    }
    tiles->end();
}

static int64_t heads_of_group(int64_t heads, int64_t head_dim) {
    int64_t group = 1;
    while (group < heads && group * head_dim % QVL_PANEL_COLUMNS && group * head_dim < GROUP_COLUMNS) group++;
    return group;
}

/* Of a group's columns of one part, wherever in a panel they begin. */
static int64_t group_stride(int64_t group, int64_t head_dim) {
    return (qvl_ceil_div(group * head_dim, QVL_PANEL_COLUMNS) + 1) * QVL_PANEL_COLUMNS;
}

size_t qvl_tile_qkv_scratch(const qvl_compute *compute, int64_t rows, int64_t heads, int64_t head_dim) {
    (void)rows;
    return (size_t)qvl_pool_threads(compute->pool) * QVL_MAX_BLOCK_ROWS *
           (size_t)group_stride(heads_of_group(heads, head_dim), head_dim);
}

void qvl_tile_matmul_qkv(qvl_compute *compute, const qvl_operand *a, const qvl_weight *w, const float *cosine,
                         const float *sine, const qvl_segments *segments, float *scratch, qvl_heads *out) {
    int64_t group = heads_of_group(out->heads, out->head_dim);
    split_job job = {.compute = compute,
                     .product = qvl_tile_plan_product(a, w, QVL_EPILOGUE_STORE),
                     .cosine = cosine,
                     .sine = sine,
                     .segments = segments,
                     .heads = out,
                     .layout = layout_of(out, segments),
                     .group = group,
                     .groups = qvl_ceil_div(out->heads, group),
                     .stride = group_stride(group, out->head_dim),
                     .rows = scratch};
    job.product.stream_stride = job.stride;
    qvl_pool_run(compute->pool, qvl_ceil_div(a->rows, CHUNK_ROWS) * job.groups, split_chunk, &job);
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
    int64_t cols = job->heads->heads * a.head_dim;
    qvl_tile_rows out = {.data = job->out->data, .steps = qvl_steps(cols), .column = head * a.head_dim};
    float *scratch = qvl_pool_scratch(job->compute->pool, worker);
    job->compute->tiles->begin();
    for (int64_t query = first; query < keys && query < first + unit; query += 16) {
        out.row = start + query;
        out.count = qvl_min_i64(16, keys - query);
        job->compute->tiles->attention(&a, query / 16, &out, scratch);
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
