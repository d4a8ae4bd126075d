/* The context, packing, and the operations that go over rows one by one. Products and attention have their own
 * files. */
#include "compute/context.h"

#include "base/bf16.h"
#include "base/memory.h"

#include <string.h>

static const qvl_kernels *choose_kernels(uint32_t cpu_mask) {
    __builtin_cpu_init();
    /* __builtin_cpu_supports also asks whether the operating system saves the registers. */
    if ((cpu_mask & QVL_CPU_AVX512) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return &qvl_kernels_avx512;
    if ((cpu_mask & QVL_CPU_AVX2) && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &qvl_kernels_avx2;
    return &qvl_kernels_scalar;
}

qvl_status qvl_compute_open(qvl_pool *pool, qvl_dtype dtype, uint32_t cpu_mask, qvl_compute **out,
                            qvl_error *error) {
    *out = NULL;
    if (dtype != QVL_F32 && dtype != QVL_BF16)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "compute dtype is %s; allowed are F32 and BF16",
                        qvl_dtype_name(dtype));
    qvl_compute *compute = qvl_calloc(1, sizeof *compute);
    if (!compute) return qvl_fail_memory(error, "compute context", 1, sizeof *compute);
    compute->pool = pool;
    compute->dtype = dtype;
    compute->round = dtype == QVL_BF16;
    compute->kernels = choose_kernels(cpu_mask);
    *out = compute;
    return QVL_OK;
}

void qvl_compute_close(qvl_compute **compute) {
    if (!compute) return;
    qvl_free(*compute);
    *compute = NULL;
}

const char *qvl_compute_kernels(const qvl_compute *compute) {
    return compute->kernels->name;
}

qvl_dtype qvl_compute_dtype(const qvl_compute *compute) {
    return compute->dtype;
}

/* ---- weights */

size_t qvl_weight_bytes(const qvl_compute *compute, int64_t n, int64_t k) {
    size_t element = compute->round ? sizeof(uint16_t) : sizeof(float);
    return (size_t)qvl_ceil_div(n, QVL_PANEL) * QVL_PANEL * (size_t)k * element;
}

/* Element i of a source that may be unaligned. */
static float source_value(const uint8_t *source, qvl_dtype dtype, size_t i) {
    uint16_t h;
    float f;
    switch (dtype) {
    case QVL_BF16:
        memcpy(&h, source + 2 * i, 2);
        return qvl_f32_from_bf16(h);
    case QVL_F16:
        memcpy(&h, source + 2 * i, 2);
        return qvl_f32_from_f16(h);
    default:
        memcpy(&f, source + 4 * i, 4);
        return f;
    }
}

typedef struct pack_job {
    const qvl_compute *compute;
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
            float v = row < n ? source_value(job->source, job->dtype, (size_t)(row * k + l)) : 0.0f;
            size_t at = (size_t)(l * QVL_PANEL + lane);
            if (job->compute->round)
                halves[at] = qvl_bf16_from_f32(v);
            else
                floats[at] = v;
        }
    }
}

void qvl_weight_pack(qvl_compute *compute, const void *source, qvl_dtype dtype, qvl_weight *weight) {
    pack_job job = {compute, source, dtype, weight};
    qvl_pool_run(compute->pool, qvl_ceil_div(weight->n, QVL_PANEL), pack_panel, &job);
}

/* ---- operations over rows or runs of elements */

#define RUN 16384 /* elements of one task */

typedef struct row_job {
    const qvl_compute *compute;
    const float *x;
    float *y;
    int64_t rows, cols, count;
    const float *weight, *bias;
    float eps;
    const float *table;
    const int32_t (*indices)[4];
    const float (*factors)[4];
    void *out;
} row_job;

size_t qvl_operand_bytes(const qvl_compute *compute, int64_t rows, int64_t cols) {
    (void)compute;
    return (size_t)rows * (size_t)cols * sizeof(float);
}

static int64_t run_length(const row_job *job, int64_t task) {
    int64_t left = job->count - task * RUN;
    return left < RUN ? left : RUN;
}

static void load_run(void *user, int64_t task, int worker) {
    (void)worker;
    const row_job *job = user;
    size_t at = (size_t)(task * RUN);
    int64_t n = run_length(job, task);
    if (job->compute->round)
        job->compute->kernels->round_bf16(n, job->x + at, job->y + at);
    else
        memcpy(job->y + at, job->x + at, (size_t)n * sizeof(float));
}

void qvl_operand_load(qvl_compute *compute, const float *x, qvl_operand *out) {
    row_job job = {.compute = compute, .x = x, .y = out->data, .count = out->rows * out->cols};
    qvl_pool_run(compute->pool, qvl_ceil_div(job.count, RUN), load_run, &job);
}

void qvl_operand_read(qvl_compute *compute, const qvl_operand *in, float *x) {
    (void)compute;
    memcpy(x, in->data, (size_t)in->rows * (size_t)in->cols * sizeof(float));
}

#define ROWS_PER_TASK 16

static void norm_rows(void *user, int64_t task, int worker) {
    (void)worker;
    const row_job *job = user;
    int64_t first = task * ROWS_PER_TASK,
            end = first + ROWS_PER_TASK < job->rows ? first + ROWS_PER_TASK : job->rows;
    for (int64_t r = first; r < end; r++)
        job->compute->kernels->layer_norm(job->cols, job->x + r * job->cols, job->weight, job->bias, job->eps,
                                          job->compute->round, job->y + r * job->cols);
}

void qvl_layer_norm(qvl_compute *compute, const float *x, int64_t rows, int64_t cols, const float *weight,
                    const float *bias, float eps, int64_t group, qvl_operand *out) {
    /* Operands are row-major without padding: group rows side by side are the same memory. */
    (void)group;
    row_job job = {.compute = compute,
                   .x = x,
                   .y = out->data,
                   .rows = rows,
                   .cols = cols,
                   .weight = weight,
                   .bias = bias,
                   .eps = eps};
    qvl_pool_run(compute->pool, qvl_ceil_div(rows, ROWS_PER_TASK), norm_rows, &job);
}

static void gather_rows(void *user, int64_t task, int worker) {
    (void)worker;
    const row_job *job = user;
    int64_t first = task * ROWS_PER_TASK,
            end = first + ROWS_PER_TASK < job->rows ? first + ROWS_PER_TASK : job->rows;
    for (int64_t r = first; r < end; r++) {
        const int32_t *index = job->indices[r];
        const float *w = job->factors[r];
        const float *t0 = job->table + index[0] * job->cols, *t1 = job->table + index[1] * job->cols;
        const float *t2 = job->table + index[2] * job->cols, *t3 = job->table + index[3] * job->cols;
        float *y = job->y + r * job->cols;
        for (int64_t j = 0; j < job->cols; j++) y[j] += t0[j] * w[0] + t1[j] * w[1] + t2[j] * w[2] + t3[j] * w[3];
    }
}

void qvl_gather_add(qvl_compute *compute, const float *table, const int32_t (*indices)[4],
                    const float (*weights)[4], int64_t rows, int64_t cols, float *x) {
    row_job job = {.compute = compute,
                   .y = x,
                   .rows = rows,
                   .cols = cols,
                   .table = table,
                   .indices = indices,
                   .factors = weights};
    qvl_pool_run(compute->pool, qvl_ceil_div(rows, ROWS_PER_TASK), gather_rows, &job);
}

static void store_run(void *user, int64_t task, int worker) {
    (void)worker;
    const row_job *job = user;
    size_t at = (size_t)(task * RUN);
    int64_t n = run_length(job, task);
    uint16_t *out = (uint16_t *)job->out + at;
    for (int64_t i = 0; i < n; i++) out[i] = qvl_bf16_from_f32(job->x[at + (size_t)i]);
}

void qvl_store(qvl_compute *compute, const float *x, int64_t count, qvl_dtype dtype, void *out) {
    if (dtype == QVL_F32) {
        memcpy(out, x, (size_t)count * sizeof(float));
        return;
    }
    row_job job = {.compute = compute, .x = x, .count = count, .out = out};
    qvl_pool_run(compute->pool, qvl_ceil_div(count, RUN), store_run, &job);
}

int64_t qvl_first_nonfinite(qvl_compute *compute, const float *x, int64_t count) {
    (void)compute;
    for (int64_t i = 0; i < count; i++)
        if ((qvl_bits_from_f32(x[i]) & 0x7f800000u) == 0x7f800000u) return i;
    return -1;
}
