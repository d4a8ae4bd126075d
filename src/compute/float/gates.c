/* What stands around the delta rule: convolution, gates, gated norm. */
#include "compute/context.h"
#include "compute/delta.h"

#include <math.h>
#include <string.h>

#define CHANNELS_PER_TASK 256
#define ROWS_PER_TASK 16

/* ---- convolution */

typedef struct convolution_job {
    const qvl_compute *compute;
    float *x;
    int64_t rows, channels;
    const float *taps;
    int64_t width;
    float *state;
} convolution_job;

/* The state that follows: the last width-1 rows of state and x together. x as it came in. */
static void next_state(const convolution_job *job, int64_t first, int64_t count, float *next) {
    int64_t kept = job->width - 1;
    for (int64_t i = 0; i < kept; i++) {
        int64_t row = job->rows - kept + i; /* of x; negative: of the old state */
        const float *from = row < 0 ? job->state + (row + kept) * job->channels : job->x + row * job->channels;
        memcpy(next + i * CHANNELS_PER_TASK, from + first, (size_t)count * sizeof(float));
    }
}

/* From the last row to the first: a row is overwritten when no other needs it. */
static void convolve_channels(void *user, int64_t task, int worker) {
    const convolution_job *job = user;
    int64_t first = task * CHANNELS_PER_TASK, count = qvl_min_i64(CHANNELS_PER_TASK, job->channels - first);
    int64_t kept = job->width - 1;
    float *next = qvl_pool_scratch(job->compute->pool, worker);
    next_state(job, first, count, next);
    for (int64_t t = job->rows - 1; t >= 0; t--) {
        const float *rows[QVL_CONV_MAX_WIDTH];
        for (int64_t j = 0; j < job->width; j++) {
            int64_t row = t - kept + j;
            rows[j] = (row < 0 ? job->state + (row + kept) * job->channels : job->x + row * job->channels) + first;
        }
        job->compute->delta->convolve(count, job->width, rows, job->taps + first, job->channels,
                                      job->x + t * job->channels + first);
    }
    for (int64_t i = 0; i < kept; i++)
        memcpy(job->state + i * job->channels + first, next + i * CHANNELS_PER_TASK,
               (size_t)count * sizeof(float));
}

void qvl_causal_convolution(qvl_compute *compute, float *x, int64_t rows, int64_t channels, const float *taps,
                            int64_t width, float *state) {
    convolution_job job = {compute, x, rows, channels, taps, width, state};
    qvl_pool_run(compute->pool, qvl_ceil_div(channels, CHANNELS_PER_TASK), convolve_channels, &job);
}

/* ---- gates: two numbers per row and head, so double costs nothing */

static double softplus(double x) {
    return x > 20.0 ? x : log1p(exp(x));
}

void qvl_delta_gates(const float *a, const float *b, const float *a_log, const float *dt_bias, int64_t rows,
                     int64_t heads, float *log_decay, float *beta) {
    for (int64_t h = 0; h < heads; h++) {
        double rate = exp((double)a_log[h]), bias = (double)dt_bias[h];
        for (int64_t i = h; i < rows * heads; i += heads) {
            log_decay[i] = (float)(-rate * softplus((double)a[i] + bias));
            beta[i] = (float)(1.0 / (1.0 + exp(-(double)b[i])));
        }
    }
}

/* ---- gated norm */

typedef struct norm_job {
    const qvl_compute *compute;
    float *x;
    const float *gate, *weight;
    int64_t rows, heads, dim;
    float eps;
} norm_job;

static void norm_rows(void *user, int64_t task, int worker) {
    (void)worker;
    const norm_job *job = user;
    int64_t first = task * ROWS_PER_TASK * job->heads;
    int64_t end = qvl_min_i64(first + ROWS_PER_TASK * job->heads, job->rows * job->heads);
    for (int64_t i = first; i < end; i++)
        job->compute->delta->gated_norm(job->dim, job->x + i * job->dim, job->weight, job->gate + i * job->dim,
                                        job->eps);
}

void qvl_gated_norm(qvl_compute *compute, float *x, const float *gate, const float *weight, int64_t heads,
                    int64_t dim, float eps, qvl_operand *out) {
    norm_job job = {compute, x, gate, weight, out->rows, heads, dim, eps};
    qvl_pool_run(compute->pool, qvl_ceil_div(out->rows, ROWS_PER_TASK), norm_rows, &job);
    qvl_operand_load(compute, x, out);
}

/* ---- output gate */

void qvl_sigmoid_gate(qvl_compute *compute, float *x, const float *gate, int64_t count) {
    qvl_apply_pairs(compute, compute->delta->sigmoid_gate, x, gate, count);
}
