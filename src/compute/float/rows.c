/* Packing of weights, and the operations that go over rows one by one. */
#include "compute/float/layout.h"

#include "base/bf16.h"

#include <string.h>

#define RUN 16384 /* elements of one task */
#define ROWS_PER_TASK 16

/* ---- weights */

static size_t weight_bytes(const qvl_compute *compute, int64_t n, int64_t k) {
    size_t element = compute->round ? sizeof(uint16_t) : sizeof(float);
    return (size_t)qvl_ceil_div(n, QVL_PANEL) * QVL_PANEL * (size_t)k * element;
}

typedef struct pack_job {
    bool round;
    const uint8_t *source;
    qvl_dtype dtype;
    const qvl_weight *weight;
} pack_job;

static void pack_panel(void *user, int64_t panel, int worker) {
    (void)worker;
    const pack_job *job = user;
    int64_t n = job->weight->n, k = job->weight->k;
    size_t base = (size_t)panel * (size_t)k * QVL_PANEL;
    uint16_t *halves = (uint16_t *)job->weight->packed + base;
    float *floats = (float *)job->weight->packed + base;
    for (int64_t lane = 0; lane < QVL_PANEL; lane++) {
        int64_t row = panel * QVL_PANEL + lane;
        for (int64_t l = 0; l < k; l++) {
            float v = row < n ? qvl_source_value(job->source, job->dtype, (size_t)(row * k + l)) : 0.0f;
            size_t at = (size_t)(l * QVL_PANEL + lane);
            if (job->round)
                halves[at] = qvl_bf16_from_f32(v);
            else
                floats[at] = v;
        }
    }
}

static void weight_pack(qvl_compute *compute, const void *source, qvl_dtype dtype, qvl_weight *weight) {
    pack_job job = {compute->round, source, dtype, weight};
    qvl_pool_run(compute->pool, qvl_ceil_div(weight->n, QVL_PANEL), pack_panel, &job);
}

/* ---- operands */

static size_t operand_bytes(int64_t rows, int64_t cols) {
    return (size_t)rows * (size_t)cols * sizeof(float);
}

typedef struct load_job {
    const qvl_compute *compute;
    const float *x;
    float *out;
    int64_t count;
} load_job;

static void load_run(void *user, int64_t task, int worker) {
    (void)worker;
    const load_job *job = user;
    int64_t at = task * RUN, n = qvl_min_i64(RUN, job->count - at);
    if (job->compute->round)
        job->compute->kernels->round_bf16(n, job->x + at, job->out + at);
    else
        memcpy(job->out + at, job->x + at, (size_t)n * sizeof(float));
}

static void operand_load(qvl_compute *compute, const float *x, qvl_operand *out) {
    load_job job = {compute, x, out->data, out->rows * out->cols};
    qvl_pool_run(compute->pool, qvl_ceil_div(job.count, RUN), load_run, &job);
}

static void operand_read(const qvl_operand *in, float *x) {
    memcpy(x, in->data, (size_t)in->rows * (size_t)in->cols * sizeof(float));
}

/* ---- layer norm */

typedef struct norm_job {
    const qvl_compute *compute;
    const float *x, *weight, *bias;
    int64_t rows, cols;
    float eps;
    float *out;
} norm_job;

static void norm_rows(void *user, int64_t task, int worker) {
    (void)worker;
    const norm_job *job = user;
    int64_t first = task * ROWS_PER_TASK, end = qvl_min_i64(first + ROWS_PER_TASK, job->rows);
    for (int64_t r = first; r < end; r++)
        job->compute->kernels->layer_norm(job->cols, job->x + r * job->cols, job->weight, job->bias, job->eps,
                                          job->compute->round, job->out + r * job->cols);
}

static void layer_norm(qvl_compute *compute, const float *x, int64_t rows, int64_t cols, const float *weight,
                       const float *bias, float eps, int64_t group, qvl_operand *out) {
    (void)group; /* rows without padding: group rows side by side are the same memory */
    norm_job job = {compute, x, weight, bias, rows, cols, eps, out->data};
    qvl_pool_run(compute->pool, qvl_ceil_div(rows, ROWS_PER_TASK), norm_rows, &job);
}

const qvl_backend qvl_backend_float = {
    .operand_bytes = operand_bytes,
    .operand_load = operand_load,
    .operand_read = operand_read,
    .weight_bytes = weight_bytes,
    .weight_pack = weight_pack,
    .layer_norm = layer_norm,
    .product = qvl_float_product,
    .heads_bytes = qvl_float_heads_bytes,
    .qkv_scratch = qvl_float_qkv_scratch,
    .matmul_qkv = qvl_float_matmul_qkv,
    .heads_read = qvl_float_heads_read,
    .attention = qvl_float_attention,
    .project = qvl_float_project,
    .kv_page_bytes = qvl_float_kv_page_bytes,
    .kv_store = qvl_float_kv_store,
    .kv_read = qvl_float_kv_read,
    .causal_state_floats = qvl_float_causal_state_floats,
    .causal_attention = qvl_float_causal_attention,
};
