/* The decoder's operations that need no layout, and the way to those of the backend. */
#include "compute/decoder.h"
#include "compute/context.h"

#include <math.h>

#define ROWS_PER_TASK 16
#define RUN 16384 /* elements of one task */

/* ---- rows */

typedef struct norm_job {
    const qvl_compute *compute;
    const float *x, *weight;
    int64_t rows, cols;
    float eps;
    float *y;
} norm_job;

static void norm_rows(void *user, int64_t task, int worker) {
    (void)worker;
    const norm_job *job = user;
    int64_t first = task * ROWS_PER_TASK, end = qvl_min_i64(first + ROWS_PER_TASK, job->rows);
    for (int64_t r = first; r < end; r++)
        job->compute->decoder->rms_norm(job->cols, job->x + r * job->cols, job->weight, job->eps,
                                        job->y + r * job->cols);
}

void qvl_rms_norm(qvl_compute *compute, const float *x, int64_t rows, int64_t cols, const float *weight, float eps,
                  float *y) {
    norm_job job = {compute, x, weight, rows, cols, eps, y};
    qvl_pool_run(compute->pool, qvl_ceil_div(rows, ROWS_PER_TASK), norm_rows, &job);
}

typedef struct rotate_job {
    const qvl_compute *compute;
    float *x;
    int64_t rows, heads, head_dim;
    const float *weight;
    float eps;
    const float *cosine, *sine;
    int64_t half; /* of the dimensions that turn */
} rotate_job;

static void rotate_rows(void *user, int64_t task, int worker) {
    (void)worker;
    const rotate_job *job = user;
    int64_t hd = job->head_dim, half = job->half;
    int64_t first = task * ROWS_PER_TASK, end = qvl_min_i64(first + ROWS_PER_TASK, job->rows);
    for (int64_t r = first; r < end; r++) {
        const float *c = job->cosine + r * half, *s = job->sine + r * half;
        for (int64_t h = 0; h < job->heads; h++) {
            float *x = job->x + (r * job->heads + h) * hd;
            job->compute->decoder->rms_norm(hd, x, job->weight, job->eps, x);
            for (int64_t m = 0; m < half; m++) {
                float a = x[m], b = x[m + half];
                x[m] = a * c[m] - b * s[m];
                x[m + half] = b * c[m] + a * s[m];
            }
        }
    }
}

void qvl_norm_rotate(qvl_compute *compute, float *x, int64_t rows, int64_t heads, int64_t head_dim,
                     const float *weight, float eps, const float *cosine, const float *sine, int64_t rotary) {
    rotate_job job = {compute, x, rows, heads, head_dim, weight, eps, cosine, sine, rotary / 2};
    qvl_pool_run(compute->pool, qvl_ceil_div(rows, ROWS_PER_TASK), rotate_rows, &job);
}

typedef struct pairs_job {
    void (*f)(int64_t n, float *x, const float *y);
    float *x;
    const float *y;
    int64_t count;
} pairs_job;

static void pairs_run(void *user, int64_t task, int worker) {
    (void)worker;
    const pairs_job *job = user;
    int64_t at = task * RUN;
    job->f(qvl_min_i64(RUN, job->count - at), job->x + at, job->y + at);
}

void qvl_apply_pairs(qvl_compute *compute, void (*f)(int64_t n, float *x, const float *y), float *x,
                     const float *y, int64_t count) {
    pairs_job job = {f, x, y, count};
    qvl_pool_run(compute->pool, qvl_ceil_div(count, RUN), pairs_run, &job);
}

void qvl_swiglu(qvl_compute *compute, float *gate, const float *up, int64_t count) {
    qvl_apply_pairs(compute, compute->decoder->swiglu, gate, up, count);
}

void qvl_softmax_rows(qvl_compute *compute, float *x, int64_t rows, int64_t cols) {
    const qvl_kernels *kernels = compute->kernels;
    for (int64_t r = 0; r < rows; r++, x += cols) {
        bool finite = true; /* exponentials of what is not a number would be finite */
        for (int64_t c = 0; c < cols; c++) finite = finite && isfinite(x[c]);
        float sum = kernels->exponentials(cols, x, kernels->maximum(cols, x), QVL_LOG2E, false);
        kernels->scale(cols, x, finite ? 1.0f / sum : NAN);
    }
}

/* ---- what the backend does */

void qvl_project(qvl_compute *compute, const qvl_operand *a, const qvl_projection *projections, int count) {
    compute->backend->project(compute, a, projections, count);
}

size_t qvl_kv_page_bytes(const qvl_compute *compute, int64_t kv_heads, int64_t head_dim) {
    size_t bytes = compute->backend->kv_page_bytes(compute, kv_heads, head_dim);
    return (bytes + 63) / 64 * 64;
}

void qvl_kv_store(qvl_compute *compute, const qvl_kv *kv, int64_t first, int64_t rows, const float *k,
                  const float *v) {
    compute->backend->kv_store(compute, kv, first, rows, k, v);
}

void qvl_kv_clear(qvl_compute *compute, const qvl_kv *kv, int64_t first) {
    int64_t in_page = first % QVL_KV_PAGE;
    if (in_page) compute->backend->kv_store(compute, kv, first, QVL_KV_PAGE - in_page, NULL, NULL);
}

void qvl_kv_read(qvl_compute *compute, const qvl_kv *kv, int64_t first, int64_t count, float *k, float *v) {
    compute->backend->kv_read(compute, kv, first, count, k, v);
}

size_t qvl_causal_scratch(const qvl_compute *compute, int64_t kv_heads, int64_t head_dim, int64_t length) {
    int64_t spans = qvl_causal_spans(length);
    if (spans < 2) return 0;
    return (size_t)(kv_heads * spans * compute->backend->causal_state_floats(head_dim));
}

void qvl_causal_attention(qvl_compute *compute, const qvl_kv *kv, const float *q, int64_t first, int64_t rows,
                          int64_t heads, float scale, float *scratch, float *out) {
    compute->backend->causal_attention(compute, kv, q, first, rows, heads, scale, scratch, out);
}
