/* Packing of weights, and the operations that go over rows one by one. */
#include "compute/tile/layout.h"

#include "base/bf16.h"

#include <string.h>

#define ROWS_PER_TASK 16

/* ---- weights */

static size_t weight_bytes(const qvl_compute *compute, int64_t n, int64_t k) {
    (void)compute;
    return (size_t)qvl_ceil_div(n, QVL_PANEL_COLUMNS) * (size_t)qvl_steps(k) * 3 * QVL_TILE * sizeof(uint16_t);
}

typedef struct pack_job {
    const uint8_t *source;
    qvl_dtype dtype;
    const qvl_weight *weight;
} pack_job;

/* Element (pair p, column c, which of the pair) of a right tile is 32 p + 2 c + which. */
static void pack_panel(void *user, int64_t panel, int worker) {
    (void)worker;
    const pack_job *job = user;
    int64_t n = job->weight->n, k = job->weight->k, steps = qvl_steps(k);
    uint16_t *out = (uint16_t *)job->weight->packed + panel * steps * 3 * QVL_TILE;
    memset(out, 0, (size_t)(steps * 3 * QVL_TILE) * sizeof *out);
    for (int64_t c = 0; c < QVL_PANEL_COLUMNS; c++) {
        int64_t row = panel * QVL_PANEL_COLUMNS + c;
        if (row >= n) return;
        for (int64_t l = 0; l < k; l++) {
            uint16_t *tile = out + (l / QVL_STEP * 3 + c / 16) * QVL_TILE;
            float value = qvl_source_value(job->source, job->dtype, (size_t)(row * k + l));
            tile[l % QVL_STEP / 2 * 32 + c % 16 * 2 + l % 2] = qvl_bf16_from_f32(value);
        }
    }
}

static void weight_pack(qvl_compute *compute, const void *source, qvl_dtype dtype, qvl_weight *weight) {
    pack_job job = {source, dtype, weight};
    qvl_pool_run(compute->pool, qvl_ceil_div(weight->n, QVL_PANEL_COLUMNS), pack_panel, &job);
}

/* ---- operands */

static size_t operand_bytes(int64_t rows, int64_t cols) {
    return (size_t)qvl_ceil_div(rows, QVL_PANEL_ROWS) * (size_t)qvl_steps(cols) * 2 * QVL_TILE * sizeof(uint16_t);
}

void qvl_tile_put(uint16_t *data, int64_t steps, int64_t row, int64_t first, int64_t count,
                  const uint16_t *values) {
    while (count > 0) {
        int64_t inside = first % QVL_STEP, n = qvl_min_i64(QVL_STEP - inside, count);
        uint16_t *to = qvl_tile_row(data, steps, row, first / QVL_STEP) + inside;
        if (n == QVL_STEP)
            memcpy(to, values, QVL_STEP * sizeof *values); /* of a constant size: moves instead of a call */
        else
            memcpy(to, values, (size_t)n * sizeof *values);
        first += n;
        values += n;
        count -= n;
    }
}

/* Zeroes columns cols.. of a row up to the end of its last step. */
static void put_padding(uint16_t *data, int64_t row, int64_t cols) {
    static const uint16_t zeros[QVL_STEP] = {0};
    int64_t steps = qvl_steps(cols);
    if (cols % QVL_STEP) qvl_tile_put(data, steps, row, cols, steps * QVL_STEP - cols, zeros);
}

typedef struct row_job {
    const qvl_compute *compute;
    const float *x, *weight, *bias;
    int64_t rows, cols, group;
    float eps;
    qvl_operand *out;
} row_job;

/* One row of floats to `group` places a row of the operand apart. floats: cols, with room for 16 more. */
static void put_floats(const row_job *job, int64_t row, const float *floats, uint16_t *rounded) {
    job->compute->tiles->round(qvl_ceil_div(job->cols, 16) * 16, floats, rounded);
    int64_t out_row = row / job->group, place = row % job->group, out_cols = job->group * job->cols;
    qvl_tile_put(job->out->data, qvl_steps(out_cols), out_row, place * job->cols, job->cols, rounded);
    if (place == job->group - 1) put_padding(job->out->data, out_row, out_cols);
}

/* A row, and where it goes, on their way into the caches. */
static void fetch_row(const row_job *job, int64_t row) {
    const float *x = job->x + row * job->cols;
    int64_t steps = qvl_steps(job->cols), out_steps = qvl_steps(job->group * job->cols);
    int64_t out_row = row / job->group, first = row % job->group * job->cols / QVL_STEP;
    for (int64_t i = 0; i < job->cols; i += 16) __builtin_prefetch(x + i);
    for (int64_t i = 0; i < steps; i++)
        __builtin_prefetch(qvl_tile_row(job->out->data, out_steps, out_row, first + i), 1);
}

/* Loads or, with weights, normalises rows. */
static void put_rows(void *user, int64_t task, int worker) {
    const row_job *job = user;
    int64_t first = task * ROWS_PER_TASK, end = qvl_min_i64(first + ROWS_PER_TASK, job->rows);
    float *floats = qvl_pool_scratch(job->compute->pool, worker);
    uint16_t *rounded = (uint16_t *)(floats + job->cols + 32 - job->cols % 16);
    for (int64_t r = first; r < end; r++) {
        const float *x = job->x + r * job->cols;
        if (r + 1 < end) fetch_row(job, r + 1);
        if (job->weight)
            job->compute->kernels->layer_norm(job->cols, x, job->weight, job->bias, job->eps, false, floats);
        else
            memcpy(floats, x, (size_t)job->cols * sizeof *x);
        put_floats(job, r, floats, rounded);
    }
}

static void operand_load(qvl_compute *compute, const float *x, qvl_operand *out) {
    row_job job = {.compute = compute, .x = x, .rows = out->rows, .cols = out->cols, .group = 1, .out = out};
    qvl_pool_run(compute->pool, qvl_ceil_div(job.rows, ROWS_PER_TASK), put_rows, &job);
}

static void layer_norm(qvl_compute *compute, const float *x, int64_t rows, int64_t cols, const float *weight,
                       const float *bias, float eps, int64_t group, qvl_operand *out) {
    row_job job = {compute, x, weight, bias, rows, cols, group, eps, out};
    qvl_pool_run(compute->pool, qvl_ceil_div(rows, ROWS_PER_TASK), put_rows, &job);
}

static void operand_read(const qvl_operand *in, float *x) {
    int64_t steps = qvl_steps(in->cols);
    for (int64_t r = 0; r < in->rows; r++)
        for (int64_t c = 0; c < in->cols; c++)
            x[r * in->cols + c] = qvl_f32_from_bf16(qvl_tile_row(in->data, steps, r, c / QVL_STEP)[c % QVL_STEP]);
}

const qvl_backend qvl_backend_tile = {
    .operand_bytes = operand_bytes,
    .operand_load = operand_load,
    .operand_read = operand_read,
    .weight_bytes = weight_bytes,
    .weight_pack = weight_pack,
    .layer_norm = layer_norm,
    .product = qvl_tile_run_product,
    .heads_bytes = qvl_tile_heads_bytes,
    .qkv_scratch = qvl_tile_qkv_scratch,
    .matmul_qkv = qvl_tile_matmul_qkv,
    .heads_read = qvl_tile_heads_read,
    .attention = qvl_tile_run_attention,
    .project = qvl_tile_project,
    .kv_page_bytes = qvl_tile_kv_page_bytes,
    .kv_store = qvl_tile_kv_store,
    .kv_read = qvl_tile_kv_read,
    .causal_state_floats = qvl_tile_causal_state_floats,
    .causal_attention = qvl_tile_causal_attention,
};
