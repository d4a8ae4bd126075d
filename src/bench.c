/* Times single kernels at a model's sizes, each beside the rate that no kernel can exceed. */
#include "base/clock.h"
#include "base/memory.h"
#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_RUNS 1000

/* Everything that the kernels under test read and write, sized for the largest of them. */
typedef struct bench {
    qvl_compute *compute;
    const qvl_vision_config *config;
    int64_t rows;
    int32_t runs;
    double *seconds, *shares, *peaks; /* [runs], [runs], [runs + 1] */
    void *left, *right, *packed, *heads;
    float *values; /* random; also the source of weights */
    float *stream, *qkv, *bias, *angles;
    qvl_kernel_time *times;
    size_t count;
} bench;

typedef struct bench_case {
    enum { STORE, ADD, TANH, ERF, QKV, ATTENTION } kind;
    const char *name;
    int64_t rows, n, k;
} bench_case;

static void run_case(bench *b, const bench_case *c, const qvl_weight *w) {
    const qvl_vision_config *v = b->config;
    int64_t start[2] = {0, b->rows};
    qvl_segments segments = {1, start};
    qvl_operand a = {c->rows, c->k, b->left}, out = {c->rows, c->n, b->right};
    qvl_heads heads = {b->rows, v->num_heads, v->head_dim, (float)(1.0 / sqrt((double)v->head_dim)), b->heads};
    switch (c->kind) {
    case STORE:
        qvl_matmul(b->compute, &a, w, b->stream);
        break;
    case ADD:
        qvl_matmul_add(b->compute, &a, w, b->stream);
        break;
    case TANH:
        qvl_matmul_gelu(b->compute, &a, w, QVL_GELU_TANH, &out);
        break;
    case ERF:
        qvl_matmul_gelu(b->compute, &a, w, QVL_GELU_ERF, &out);
        break;
    case QKV:
        qvl_matmul_qkv(b->compute, &a, w, b->angles, b->angles, &segments, b->qkv, &heads);
        break;
    case ATTENTION:
        qvl_attention(b->compute, &heads, &segments, &out);
        break;
    }
}

static void describe(const bench *b, const bench_case *c, qvl_kernel_time *t) {
    const qvl_vision_config *v = b->config;
    if (c->kind == ATTENTION) {
        t->flops = 4.0 * (double)c->rows * (double)c->rows * v->hidden_size;
        snprintf(t->name, sizeof t->name, "%s %d x %d, %lld keys", c->name, v->num_heads, v->head_dim,
                 (long long)c->rows);
    } else {
        t->flops = 2.0 * (double)c->rows * (double)c->n * (double)c->k;
        snprintf(t->name, sizeof t->name, "%s %lld -> %lld, %lld rows", c->name, (long long)c->k, (long long)c->n,
                 (long long)c->rows);
    }
}

static double time_peak(const bench *b) {
    double seconds, flops = qvl_peak_flops(b->compute, QVL_PEAK_REGISTERS, &seconds);
    return flops / seconds;
}

/* Where others use the same cores, the pace changes between a run and its peak: only runs between two peaks at the best pace
 * tell what the kernel does. */
static void find_share(const bench *b, qvl_kernel_time *t) {
    double best = 0.0;
    for (int32_t r = 0; r <= b->runs; r++) best = b->peaks[r] > best ? b->peaks[r] : best;
    for (int32_t r = 0; r < b->runs; r++) {
        double before = b->peaks[r], after = b->peaks[r + 1];
        if (before < 0.9 * best || after < 0.9 * best) continue;
        b->shares[t->steady_runs++] = t->flops / b->seconds[r] / (0.5 * (before + after));
    }
    t->seconds = qvl_median(b->seconds, b->runs);
    t->peak = qvl_median(b->peaks, b->runs + 1);
    t->share = t->steady_runs ? qvl_median(b->shares, t->steady_runs) : t->flops / t->seconds / t->peak;
}

static void time_case(bench *b, const bench_case *c) {
    qvl_weight w = {c->n, c->k, b->packed, b->bias};
    if (c->kind != ATTENTION) {
        qvl_operand a = {c->rows, c->k, b->left};
        qvl_operand_load(b->compute, b->values, &a);
        qvl_weight_pack(b->compute, b->values, QVL_F32, &w);
    }
    memset(b->stream, 0, (size_t)(c->rows * c->n) * sizeof(float));
    run_case(b, c, &w); /* warms caches */
    for (int32_t r = 0; r < b->runs; r++) {
        b->peaks[r] = time_peak(b);
        double first = qvl_seconds();
        run_case(b, c, &w);
        b->seconds[r] = qvl_seconds() - first;
    }
    b->peaks[b->runs] = time_peak(b);
    qvl_kernel_time *t = &b->times[b->count++];
    *t = (qvl_kernel_time){0};
    describe(b, c, t);
    find_share(b, t);
}

static int64_t largest(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static qvl_status alloc_all(bench *b, const bench_case *cases, size_t count, qvl_error *error) {
    const qvl_vision_config *v = b->config;
    int64_t start[2] = {0, b->rows}, values = 1, stream = 1, n = 1;
    qvl_segments segments = {1, start};
    size_t left = 1, right = 1, packed = 1;
    for (size_t i = 0; i < count; i++) {
        const bench_case *c = &cases[i];
        size_t a = qvl_operand_bytes(b->compute, c->rows, c->k),
               out = qvl_operand_bytes(b->compute, c->rows, c->n);
        size_t w = qvl_weight_bytes(b->compute, c->n, c->k);
        left = a > left ? a : left;
        right = out > right ? out : right;
        packed = w > packed ? w : packed;
        values = largest(values, largest(c->rows * c->k, c->n * c->k));
        stream = largest(stream, c->rows * c->n);
        n = largest(n, c->n);
    }
    b->seconds = qvl_alloc((size_t)b->runs, sizeof(double));
    b->shares = qvl_alloc((size_t)b->runs, sizeof(double));
    b->peaks = qvl_alloc((size_t)b->runs + 1, sizeof(double));
    b->left = qvl_calloc(left, 1);
    b->right = qvl_calloc(right, 1);
    b->packed = qvl_calloc(packed, 1);
    b->heads = qvl_calloc(qvl_heads_bytes(b->compute, b->rows, v->num_heads, v->head_dim, &segments), 1);
    b->values = qvl_alloc((size_t)values, sizeof(float));
    b->stream = qvl_calloc((size_t)stream, sizeof(float));
    b->qkv = qvl_calloc(qvl_matmul_qkv_scratch(b->compute, b->rows, v->num_heads, v->head_dim), sizeof(float));
    b->bias = qvl_calloc((size_t)n, sizeof(float));
    b->angles = qvl_alloc((size_t)(b->rows * v->head_dim / 2), sizeof(float));
    if (!b->seconds || !b->shares || !b->peaks || !b->left || !b->right || !b->packed || !b->heads || !b->values ||
        !b->stream || !b->qkv || !b->bias || !b->angles)
        return qvl_fail_memory(error, "kernel benchmark", (size_t)(values + stream), sizeof(float));
    uint32_t state = 1;
    for (int64_t i = 0; i < values; i++) {
        state = state * 1664525u + 1013904223u;
        b->values[i] = ((float)(state >> 8) - 8388608.0f) / 8388608.0f / sqrtf((float)v->hidden_size);
    }
    for (int64_t i = 0; i < b->rows * v->head_dim / 2; i++) b->angles[i] = 0.7f;
    return QVL_OK;
}

static void free_all(bench *b) {
    void *all[] = {b->seconds, b->shares, b->peaks,  b->left, b->right, b->packed,
                   b->heads,   b->values, b->stream, b->qkv,  b->bias,  b->angles};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) qvl_free(all[i]);
}

#define COPY_BYTES ((size_t)64 << 20)

typedef struct copy_job {
    const uint8_t *from;
    uint8_t *to;
    size_t part;
} copy_job;

static void copy_part(void *user, int64_t task, int worker) {
    (void)worker;
    const copy_job *job = user;
    memcpy(job->to + (size_t)task * job->part, job->from + (size_t)task * job->part, job->part);
}

static qvl_status time_copy(qvl_pool *pool, int32_t runs, double *seconds, double *rate, qvl_error *error) {
    uint8_t *memory = qvl_calloc(2, COPY_BYTES);
    if (!memory) return qvl_fail_memory(error, "copy benchmark", 2, COPY_BYTES);
    int64_t threads = qvl_pool_threads(pool);
    copy_job job = {memory, memory + COPY_BYTES, COPY_BYTES / (size_t)threads};
    qvl_pool_run(pool, threads, copy_part, &job);
    for (int32_t r = 0; r < runs; r++) {
        double first = qvl_seconds();
        qvl_pool_run(pool, threads, copy_part, &job);
        seconds[r] = qvl_seconds() - first;
    }
    *rate = 2.0 * (double)(job.part * (size_t)threads) / qvl_median(seconds, runs);
    qvl_free(memory);
    return QVL_OK;
}

qvl_status qvl_bench_floor(const qvl_model *model, const qvl_grid *grids, size_t grid_count, double *seconds,
                           qvl_error *error) {
    qvl_work work;
    double peak_seconds, padding = qvl_attention_padding(model->compute, model->config.vision.head_dim);
    qvl_status status = qvl_vision_work(model, grids, grid_count, &work, error);
    if (status) return status;
    double flops = qvl_peak_flops(model->compute, QVL_PEAK_LOADED, &peak_seconds);
    *seconds = (work.total + (padding - 1.0) * work.attention) * peak_seconds / flops;
    return QVL_OK;
}

qvl_status qvl_bench_kernels(const qvl_model *model, int64_t rows, int32_t runs,
                             qvl_kernel_time times[QVL_MAX_KERNELS], size_t *count, double *copy_rate,
                             qvl_error *error) {
    const qvl_vision_config *v = &model->config.vision;
    int64_t d = v->hidden_size, inner = v->intermediate_size;
    int64_t merge = (int64_t)v->spatial_merge_size * v->spatial_merge_size;
    int64_t patch = (int64_t)v->in_channels * v->temporal_patch_size * v->patch_size * v->patch_size;
    *count = 0;
    if (rows < merge || rows % merge || rows > (1 << 20) || runs < 1 || runs > MAX_RUNS)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "%lld rows, %d runs; allowed are multiples of %lld rows up to %d, and 1 to %d runs",
                        (long long)rows, runs, (long long)merge, 1 << 20, MAX_RUNS);
    const bench_case cases[] = {
        {STORE, "patch embedding", rows, d, patch},
        {QKV, "qkv, rotated", rows, 3 * d, d},
        {ATTENTION, "attention", rows, d, d},
        {ADD, "projection", rows, d, d},
        {TANH, "fc1, GELU", rows, inner, d},
        {ADD, "fc2", rows, d, inner},
        {ERF, "merger fc1, GELU", rows / merge, merge * d, merge * d},
        {STORE, "merger fc2", rows / merge, v->out_hidden_size, merge * d},
    };
    size_t all = sizeof cases / sizeof cases[0];
    bench b = {.compute = model->compute, .config = v, .rows = rows, .runs = runs, .times = times};
    qvl_status status = alloc_all(&b, cases, all, error);
    for (size_t i = 0; i < all && !status; i++) time_case(&b, &cases[i]);
    if (!status) status = time_copy(model->pool, runs, b.seconds, copy_rate, error);
    free_all(&b);
    if (!status) *count = b.count;
    return status;
}
