/* The operations of Gated DeltaNet. All memory is the stream: float, row-major; statistics and states are f32 in every
 * compute dtype. Names and sizes: rows t of one sequence in order, key heads Hk, value heads Hv = ratio * Hk,
 * widths dk and dv, channels C = 2 Hk dk + Hv dv.
 *
 * However a sequence is cut into calls, every row gets the same bits: the delta rule works in chunks of
 * QVL_DELTA_CHUNK rows that begin at multiples of it in the sequence, and the state keeps the rows of the unfinished
 * chunk (docs/NUMERICS.md). */
#ifndef QVL_COMPUTE_DELTA_H
#define QVL_COMPUTE_DELTA_H

#include "compute/compute.h"

#define QVL_DELTA_CHUNK 32
#define QVL_DELTA_MAX_WIDTH 512 /* of dk and dv */
#define QVL_CONV_MAX_WIDTH 16

/* Causal depthwise convolution over time, then silu, in place: x[t] = silu(sum over j of taps[j] * x[t-width+1+j]).
 * x [rows, channels]; taps [width, channels], the last tap for the row itself; width 1..QVL_CONV_MAX_WIDTH.
 * state [width-1, channels]: the rows before x as they came in (zeros at the start); on return those before the next
 * call's. */
void qvl_causal_convolution(qvl_compute *compute, float *x, int64_t rows, int64_t channels, const float *taps,
                            int64_t width, float *state);

/* log_decay = -exp(a_log) * softplus(a + dt_bias), beta = sigmoid(b), in double, rounded once.
 * a, b and the results [rows, heads]; a_log, dt_bias [heads]. Results may overwrite a and b. */
void qvl_delta_gates(const float *a, const float *b, const float *a_log, const float *dt_bias, int64_t rows,
                     int64_t heads, float *log_decay, float *beta);

typedef struct qvl_delta_shape {
    int64_t key_heads, value_heads; /* the second a multiple; value head i reads key head i / ratio */
    int64_t key_dim, value_dim;     /* 1..QVL_DELTA_MAX_WIDTH */
} qvl_delta_shape;

/* Floats of the state of one sequence in one layer; all zero at the start. */
int64_t qvl_delta_state_floats(const qvl_delta_shape *shape);

/* Per value head, with q and k normalised to length 1 and q scaled by dk^-0.5:
 *   S = exp(log_decay) S;  d = beta (v - S^T k);  S = S + k d^T;  out = S^T q
 * mixed [rows, C]: q, k, v of a row side by side, head-major. log_decay (at most 0), beta [rows, Hv].
 * position: rows of the sequence before these. out [rows, Hv dv]. */
void qvl_delta_rule(qvl_compute *compute, const qvl_delta_shape *shape, const float *mixed, const float *log_decay,
                    const float *beta, int64_t rows, int64_t position, float *state, float *out);
/* S [Hv, dk, dv] after `position` rows: what the recurrence would hold. */
void qvl_delta_state_read(qvl_compute *compute, const qvl_delta_shape *shape, float *state, int64_t position,
                          float *s);

/* Rows that a call may add at `position` and still be undone by nothing but going back to that position: those left in
 * its chunk. */
static inline int64_t qvl_delta_undoable(int64_t position) {
    return QVL_DELTA_CHUNK - position % QVL_DELTA_CHUNK;
}

/* A copy of what counts of a state at a position, without what is only room. */
int64_t qvl_delta_saved_floats(const qvl_delta_shape *shape, int64_t position);
void qvl_delta_save(const qvl_delta_shape *shape, float *state, int64_t position, float *saved);
/* state may hold anything finite. */
void qvl_delta_load(const qvl_delta_shape *shape, float *saved, int64_t position, float *state);

/* out = x / sqrt(mean of squares over dim + eps) * weight * silu(gate) per head, weight [dim]; x, gate
 * [rows, heads*dim], out the same shape; x is overwritten. */
void qvl_gated_norm(qvl_compute *compute, float *x, const float *gate, const float *weight, int64_t heads,
                    int64_t dim, float eps, qvl_operand *out);

/* x = x * sigmoid(gate), both [count]; NaN where gate is not finite. */
void qvl_sigmoid_gate(qvl_compute *compute, float *x, const float *gate, int64_t count);

#endif
