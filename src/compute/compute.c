/* The context: which backend and kernels a process uses, and the operations that need no layout. */
#include "compute/context.h"

#include "base/bf16.h"
#include "base/clock.h"
#include "base/memory.h"

#include <string.h>

static bool has_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static const qvl_kernels *choose_kernels(uint32_t cpu_mask) {
    /* __builtin_cpu_supports also asks whether the operating system saves the registers. */
    if ((cpu_mask & QVL_CPU_AVX512) && has_avx512()) return &qvl_kernels_avx512;
    if ((cpu_mask & QVL_CPU_AVX2) && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &qvl_kernels_avx2;
    return &qvl_kernels_scalar;
}

static const qvl_delta_kernels *delta_kernels_beside(const qvl_kernels *kernels) {
    if (kernels == &qvl_kernels_avx512) return &qvl_delta_kernels_avx512;
    return kernels == &qvl_kernels_avx2 ? &qvl_delta_kernels_avx2 : &qvl_delta_kernels_scalar;
}

static const qvl_decoder_kernels *decoder_kernels_beside(const qvl_kernels *kernels) {
    if (kernels == &qvl_kernels_avx512) return &qvl_decoder_kernels_avx512;
    return kernels == &qvl_kernels_avx2 ? &qvl_decoder_kernels_avx2 : &qvl_decoder_kernels_scalar;
}

static const qvl_decoder_tiles *decoder_tiles_beside(const qvl_tile_kernels *tiles) {
    if (!tiles) return NULL;
    return tiles == &qvl_tile_kernels_amx ? &qvl_decoder_tiles_amx : &qvl_decoder_tiles_avx512bf16;
}

/* bf16 dot products pay only where they run at full rate: on Intel they have half the FLOPs of f32 multiply-adds
 * (docs/PERFORMANCE.md), and AMX stands beside them. */
static const qvl_tile_kernels *choose_tiles(uint32_t cpu_mask) {
    if (!(cpu_mask & QVL_CPU_AVX512) || !has_avx512() || !__builtin_cpu_supports("avx512bf16")) return NULL;
    if ((cpu_mask & QVL_CPU_AMX) && qvl_tile_amx_usable()) return &qvl_tile_kernels_amx;
    if ((cpu_mask & QVL_CPU_AVX512BF16) && __builtin_cpu_is("amd")) return &qvl_tile_kernels_avx512bf16;
    return NULL;
}

qvl_status qvl_compute_open(qvl_pool *pool, qvl_dtype dtype, uint32_t cpu_mask, qvl_compute **out,
                            qvl_error *error) {
    *out = NULL;
    if (dtype != QVL_F32 && dtype != QVL_BF16)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "compute dtype is %s; allowed are F32 and BF16",
                        qvl_dtype_name(dtype));
    qvl_compute *compute = qvl_calloc(1, sizeof *compute);
    if (!compute) return qvl_fail_memory(error, "compute context", 1, sizeof *compute);
    __builtin_cpu_init();
    compute->pool = pool;
    compute->dtype = dtype;
    compute->kernels = choose_kernels(cpu_mask);
    compute->delta = delta_kernels_beside(compute->kernels);
    compute->tiles = dtype == QVL_BF16 ? choose_tiles(cpu_mask) : NULL;
    compute->decoder = decoder_kernels_beside(compute->kernels);
    compute->decoder_tiles = decoder_tiles_beside(compute->tiles);
    compute->backend = compute->tiles ? &qvl_backend_tile : &qvl_backend_float;
    compute->round = dtype == QVL_BF16 && !compute->tiles;
    *out = compute;
    return QVL_OK;
}

void qvl_compute_close(qvl_compute **compute) {
    if (!compute) return;
    qvl_free(*compute);
    *compute = NULL;
}

const char *qvl_compute_kernels(const qvl_compute *compute) {
    return compute->tiles ? compute->tiles->name : compute->kernels->name;
}

qvl_dtype qvl_compute_dtype(const qvl_compute *compute) {
    return compute->dtype;
}

float qvl_source_value(const uint8_t *source, qvl_dtype dtype, size_t i) {
    uint16_t half;
    float full;
    switch (dtype) {
    case QVL_BF16:
        memcpy(&half, source + 2 * i, 2);
        return qvl_f32_from_bf16(half);
    case QVL_F16:
        memcpy(&half, source + 2 * i, 2);
        return qvl_f32_from_f16(half);
    default:
        memcpy(&full, source + 4 * i, 4);
        return full;
    }
}

/* ---- what the backend does */

size_t qvl_weight_bytes(const qvl_compute *compute, int64_t n, int64_t k) {
    return compute->backend->weight_bytes(compute, n, k);
}

void qvl_weight_pack(qvl_compute *compute, const void *source, qvl_dtype dtype, qvl_weight *weight) {
    compute->backend->weight_pack(compute, source, dtype, weight);
}

size_t qvl_operand_bytes(const qvl_compute *compute, int64_t rows, int64_t cols) {
    return compute->backend->operand_bytes(rows, cols);
}

void qvl_operand_load(qvl_compute *compute, const float *x, qvl_operand *out) {
    compute->backend->operand_load(compute, x, out);
}

void qvl_operand_read(qvl_compute *compute, const qvl_operand *in, float *x) {
    compute->backend->operand_read(in, x);
}

void qvl_layer_norm(qvl_compute *compute, const float *x, int64_t rows, int64_t cols, const float *weight,
                    const float *bias, float eps, int64_t group, qvl_operand *out) {
    compute->backend->layer_norm(compute, x, rows, cols, weight, bias, eps, group, out);
}

void qvl_matmul(qvl_compute *compute, const qvl_operand *a, const qvl_weight *w, float *y) {
    compute->backend->product(compute, a, w, QVL_EPILOGUE_STORE, y, NULL);
}

void qvl_matmul_add(qvl_compute *compute, const qvl_operand *a, const qvl_weight *w, float *y) {
    compute->backend->product(compute, a, w, QVL_EPILOGUE_ADD, y, NULL);
}

void qvl_matmul_gelu(qvl_compute *compute, const qvl_operand *a, const qvl_weight *w, qvl_gelu kind,
                     qvl_operand *out) {
    compute->backend->product(compute, a, w, kind == QVL_GELU_TANH ? QVL_EPILOGUE_TANH : QVL_EPILOGUE_ERF, NULL,
                              out);
}

size_t qvl_heads_bytes(const qvl_compute *compute, int64_t rows, int64_t heads, int64_t head_dim,
                       const qvl_segments *segments) {
    return compute->backend->heads_bytes(rows, heads, head_dim, segments);
}

size_t qvl_matmul_qkv_scratch(const qvl_compute *compute, int64_t rows, int64_t heads, int64_t head_dim) {
    return compute->backend->qkv_scratch(compute, rows, heads, head_dim);
}

void qvl_matmul_qkv(qvl_compute *compute, const qvl_operand *a, const qvl_weight *w, const float *cosine,
                    const float *sine, const qvl_segments *segments, float *scratch, qvl_heads *out) {
    compute->backend->matmul_qkv(compute, a, w, cosine, sine, segments, scratch, out);
}

void qvl_heads_read(qvl_compute *compute, const qvl_heads *in, const qvl_segments *segments, float *q, float *k,
                    float *v) {
    compute->backend->heads_read(in, segments, q, k, v);
}

void qvl_attention(qvl_compute *compute, const qvl_heads *qkv, const qvl_segments *segments, qvl_operand *out) {
    compute->backend->attention(compute, qkv, segments, out);
}

/* ---- measuring */

typedef struct peak_job {
    const qvl_compute *compute;
    qvl_peak peak;
    int64_t rounds;
    double flops[256]; /* per task */
} peak_job;

static void peak_task(void *user, int64_t task, int worker) {
    (void)worker;
    peak_job *job = user;
    const qvl_tile_kernels *tiles = job->compute->tiles;
    if (!tiles) {
        job->flops[task] = job->compute->kernels->multiply_adds(job->rounds);
        return;
    }
    bool loaded = job->peak == QVL_PEAK_LOADED && tiles->loaded_multiply_adds;
    tiles->begin();
    job->flops[task] = (loaded ? tiles->loaded_multiply_adds : tiles->multiply_adds)(job->rounds);
    tiles->end();
}

double qvl_peak_flops(qvl_compute *compute, qvl_peak peak, double *seconds) {
    peak_job job = {.compute = compute, .peak = peak, .rounds = 100000};
    int threads = qvl_pool_threads(compute->pool);
    for (;;) {
        double start = qvl_seconds();
        qvl_pool_run(compute->pool, threads, peak_task, &job);
        *seconds = qvl_seconds() - start;
        if (*seconds > 3e-3 || job.rounds > INT64_MAX / 8) break;
        job.rounds *= 4;
    }
    double all = 0.0;
    for (int i = 0; i < threads; i++) all += job.flops[i];
    return all;
}

double qvl_attention_padding(const qvl_compute *compute, int64_t head_dim) {
    if (!compute->tiles) return 1.0;
    int64_t padded = qvl_ceil_div(head_dim, 32) * 32 + qvl_ceil_div(head_dim, 16) * 16;
    return (double)padded / (double)(2 * head_dim);
}

/* ---- what needs no layout */

#define RUN 16384 /* elements of one task */
#define ROWS_PER_TASK 16

typedef struct gather_job {
    const float *table;
    const int32_t (*indices)[4];
    const float (*weights)[4];
    int64_t rows, cols;
    float *x;
} gather_job;

static void gather_rows(void *user, int64_t task, int worker) {
    (void)worker;
    const gather_job *job = user;
    int64_t first = task * ROWS_PER_TASK, end = qvl_min_i64(first + ROWS_PER_TASK, job->rows);
    for (int64_t r = first; r < end; r++) {
        const int32_t *index = job->indices[r];
        const float *w = job->weights[r];
        const float *t0 = job->table + index[0] * job->cols, *t1 = job->table + index[1] * job->cols;
        const float *t2 = job->table + index[2] * job->cols, *t3 = job->table + index[3] * job->cols;
        float *x = job->x + r * job->cols;
        for (int64_t j = 0; j < job->cols; j++) x[j] += t0[j] * w[0] + t1[j] * w[1] + t2[j] * w[2] + t3[j] * w[3];
    }
}

void qvl_gather_add(qvl_compute *compute, const float *table, const int32_t (*indices)[4],
                    const float (*weights)[4], int64_t rows, int64_t cols, float *x) {
    gather_job job = {table, indices, weights, rows, cols, x};
    qvl_pool_run(compute->pool, qvl_ceil_div(rows, ROWS_PER_TASK), gather_rows, &job);
}

typedef struct store_job {
    const float *x;
    int64_t count;
    uint16_t *out;
} store_job;

static void store_run(void *user, int64_t task, int worker) {
    (void)worker;
    const store_job *job = user;
    int64_t end = qvl_min_i64((task + 1) * RUN, job->count);
    for (int64_t i = task * RUN; i < end; i++) job->out[i] = qvl_bf16_from_f32(job->x[i]);
}

void qvl_store(qvl_compute *compute, const float *x, int64_t count, qvl_dtype dtype, void *out) {
    if (dtype == QVL_F32) {
        memcpy(out, x, (size_t)count * sizeof(float));
        return;
    }
    store_job job = {x, count, out};
    qvl_pool_run(compute->pool, qvl_ceil_div(count, RUN), store_run, &job);
}

int64_t qvl_first_nonfinite(qvl_compute *compute, const float *x, int64_t count) {
    (void)compute;
    for (int64_t i = 0; i < count; i++)
        if ((qvl_bits_from_f32(x[i]) & 0x7f800000u) == 0x7f800000u) return i;
    return -1;
}
