/* The operations of the tower, named by mathematics. Model code calls these and knows nothing of instruction sets.
 *
 * Three kinds of memory:
 *  - the stream: float, row-major; what is added to and normalised (the residual stream, products that leave)
 *  - operands:   the left factor of a product, in a layout and element type that only the backend knows
 *  - weights:    the right factor, packed once at load
 * An operation that feeds a product writes an operand, so activations stay in the backend's layout between
 * products.
 *
 * In bf16 mode every factor of a product (weights, operands, q, k, v and softmax numerators) is rounded to bf16,
 * products are accumulated in f32, and the stream stays f32. In f32 mode nothing is rounded.
 * Orders of summation are fixed (docs/NUMERICS.md): a row's result depends on no other row, on no thread count. */
#ifndef QVL_COMPUTE_COMPUTE_H
#define QVL_COMPUTE_COMPUTE_H

#include "base/pool.h"

typedef struct qvl_compute qvl_compute;

/* dtype: QVL_F32 or QVL_BF16. cpu_mask: QVL_CPU_*. pool outlives the context. */
qvl_status qvl_compute_open(qvl_pool *pool, qvl_dtype dtype, uint32_t cpu_mask, qvl_compute **compute,
                            qvl_error *error);
void qvl_compute_close(qvl_compute **compute);
const char *qvl_compute_kernels(const qvl_compute *compute); /* "scalar", "avx2", "avx512" */
qvl_dtype qvl_compute_dtype(const qvl_compute *compute);

/* ---- weights: y = x W^T + b, W [n, k] */

typedef struct qvl_weight {
    int64_t n, k;
    void *packed;      /* qvl_weight_bytes(n, k) */
    const float *bias; /* [n] */
} qvl_weight;

size_t qvl_weight_bytes(const qvl_compute *compute, int64_t n, int64_t k);
/* source: row-major [n, k] of F32, BF16 or F16; rounded to the compute dtype. Fills weight->packed. */
void qvl_weight_pack(qvl_compute *compute, const void *source, qvl_dtype dtype, qvl_weight *weight);

/* ---- operands */

typedef struct qvl_operand {
    int64_t rows, cols;
    void *data; /* qvl_operand_bytes(rows, cols) */
} qvl_operand;

size_t qvl_operand_bytes(const qvl_compute *compute, int64_t rows, int64_t cols);
/* x [rows, cols], rounded to the compute dtype. */
void qvl_operand_load(qvl_compute *compute, const float *x, qvl_operand *out);
/* Back to float [rows, cols], for taps and tests. */
void qvl_operand_read(qvl_compute *compute, const qvl_operand *in, float *x);

/* ---- normalisation: (x - mean) / sqrt(var + eps) * weight + bias over cols, biased variance, two passes.
 * x [rows, cols]; out has rows/group rows of group*cols: group rows side by side (1 or merge^2). */
void qvl_layer_norm(qvl_compute *compute, const float *x, int64_t rows, int64_t cols, const float *weight,
                    const float *bias, float eps, int64_t group, qvl_operand *out);

/* ---- products; y [a.rows, w.n] row-major */

/* y = a W^T + b */
void qvl_matmul(qvl_compute *compute, const qvl_operand *a, const qvl_weight *w, float *y);
/* y += a W^T + b */
void qvl_matmul_add(qvl_compute *compute, const qvl_operand *a, const qvl_weight *w, float *y);

typedef enum qvl_gelu { QVL_GELU_TANH, QVL_GELU_ERF } qvl_gelu;
/* out = gelu(a W^T + b) */
void qvl_matmul_gelu(qvl_compute *compute, const qvl_operand *a, const qvl_weight *w, qvl_gelu kind,
                     qvl_operand *out);

/* ---- attention */

/* Consecutive runs of rows that attend to themselves only: rows start[i] .. start[i+1]-1. */
typedef struct qvl_segments {
    int64_t count;
    const int64_t *start; /* [count + 1], start[0] = 0, increasing */
} qvl_segments;

/* q, k, v of every head, rotated, in the backend's layout. scale is what attention multiplies scores by; a backend may
 * keep it inside q. */
typedef struct qvl_heads {
    int64_t rows, heads, head_dim;
    float scale;
    void *data; /* qvl_heads_bytes(...) */
} qvl_heads;

size_t qvl_heads_bytes(const qvl_compute *compute, int64_t rows, int64_t heads, int64_t head_dim,
                       const qvl_segments *segments);
/* [q k v] = a W^T + b with W [3*heads*head_dim, k]; then q and k are rotated: dimension m < head_dim/2 pairs with
 * m + head_dim/2 under the angle of cosine[row, m], sine[row, m] (both [rows, head_dim/2]). scratch: float of
 * qvl_matmul_qkv_scratch(...) elements. */
size_t qvl_matmul_qkv_scratch(const qvl_compute *compute, int64_t rows, int64_t heads, int64_t head_dim);
void qvl_matmul_qkv(qvl_compute *compute, const qvl_operand *a, const qvl_weight *w, const float *cosine,
                    const float *sine, const qvl_segments *segments, float *scratch, qvl_heads *out);
/* The parts back as float, each [rows, heads, head_dim], for taps and tests. */
void qvl_heads_read(qvl_compute *compute, const qvl_heads *in, const qvl_segments *segments, float *q, float *k,
                    float *v);
/* out [rows, heads*head_dim] = softmax(scale q k^T) v within each segment. Exact for any scores. */
void qvl_attention(qvl_compute *compute, const qvl_heads *qkv, const qvl_segments *segments, qvl_operand *out);

/* ---- measuring */

typedef enum qvl_peak {
    QVL_PEAK_REGISTERS, /* multiply-adds on registers: the rate that products of this context cannot exceed */
    QVL_PEAK_LOADED     /* with operands loaded from L1, where loads take time of their own; the same elsewhere */
} qvl_peak;

/* FLOPs done by all threads in some milliseconds of multiply-adds, and the seconds they took. */
double qvl_peak_flops(qvl_compute *compute, qvl_peak peak, double *seconds);

/* FLOPs that attention does for a useful one: tiles hold whole steps of 32 dimensions of q and k, and of 16 of v. */
double qvl_attention_padding(const qvl_compute *compute, int64_t head_dim);

/* ---- the rest */

/* x[r, :] += sum over i of weights[r,i] * table[indices[r,i], :]; i in 0..3, summed in order in f32, then added.
 * table [.., cols] f32. */
void qvl_gather_add(qvl_compute *compute, const float *table, const int32_t (*indices)[4],
                    const float (*weights)[4], int64_t rows, int64_t cols, float *x);
/* x to out in dtype F32 or BF16 (rounded). */
void qvl_store(qvl_compute *compute, const float *x, int64_t count, qvl_dtype dtype, void *out);
/* The first index that is not finite, or -1. */
int64_t qvl_first_nonfinite(qvl_compute *compute, const float *x, int64_t count);

#endif
