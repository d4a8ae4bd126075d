/* The operations of a language model's decoder, beside those of compute.h. The stream is float, row-major; operands are
 * the backend's. Matrices are not packed at load: they stay in the mapped file, in the type it has, and every product
 * lays out a few columns at a time on its way. A row's result depends on no other row: the same bits whether rows come
 * together (prefill) or one by one (decode), for any number of threads. */
#ifndef QVL_COMPUTE_DECODER_H
#define QVL_COMPUTE_DECODER_H

#include "compute/compute.h"

/* ---- matrices as they lie: W [n, k] */

typedef struct qvl_matrix {
    int64_t n, k;
    qvl_dtype dtype;       /* F32, BF16, F16; U32 for MLX's affine quantisation, the lowest bits of a word first */
    int32_t bits;          /* 4 or 8 where dtype is U32, else 0 */
    int32_t group;         /* values of a row that share scale and bias: 32, 64 or 128 */
    bool by_columns;       /* element (row, column) is number column * stride + row, else row * stride + column */
    int64_t stride;        /* in values, at least k, or at least n by columns */
    const uint8_t *data;   /* no alignment */
    qvl_dtype scale_dtype; /* F32, BF16 or F16; a value is round(round(scale * q) + bias), rounded to this type */
    const uint8_t *scales, *biases; /* [n, k / group] */
} qvl_matrix;

/* Values (row, first .. first + count - 1) as float, exactly what the file says. Any matrix; slow. */
void qvl_matrix_read(const qvl_matrix *w, int64_t row, int64_t first, int64_t count, float *out);

/* One of the products that share a left factor: y [rows, w->n] = or += a W^T. */
typedef struct qvl_projection {
    const qvl_matrix *w;
    float *y;
    bool add;
} qvl_projection;

#define QVL_MAX_PROJECTIONS 4

/* count products with the same a [rows, k]. Rounds both factors in bf16 mode. */
void qvl_project(qvl_compute *compute, const qvl_operand *a, const qvl_projection *projections, int count);

/* ---- rows */

/* y = x / sqrt(mean of squares + eps) * weight over cols; x, y [rows, cols]. y may be x. */
void qvl_rms_norm(qvl_compute *compute, const float *x, int64_t rows, int64_t cols, const float *weight, float eps,
                  float *y);
/* x [rows, heads, head_dim], each head normalised as by qvl_rms_norm with weight [head_dim]; then dimension
 * m < rotary/2 and m + rotary/2 are turned by the angle of cosine[row, m], sine[row, m], both [rows, rotary/2]. */
void qvl_norm_rotate(qvl_compute *compute, float *x, int64_t rows, int64_t heads, int64_t head_dim,
                     const float *weight, float eps, const float *cosine, const float *sine, int64_t rotary);
/* gate = silu(gate) * up, [count] */
void qvl_swiglu(qvl_compute *compute, float *gate, const float *up, int64_t count);
/* x = softmax(x) over [cols] of each row. */
void qvl_softmax_rows(qvl_compute *compute, float *x, int64_t rows, int64_t cols);

/* ---- attention over a cache of pages */

#define QVL_KV_PAGE 256 /* entries of a page */

/* The keys and values of one layer: page i holds entries i * QVL_KV_PAGE .. at pages[i] + offset, in the backend's
 * layout, f32 in f32 mode and bf16 in bf16 mode. A page is zero where nothing was stored. */
typedef struct qvl_kv {
    int64_t kv_heads, head_dim;
    uint8_t *const *pages;
    size_t offset;
} qvl_kv;

/* Bytes of a page of one layer: a multiple of 64. */
size_t qvl_kv_page_bytes(const qvl_compute *compute, int64_t kv_heads, int64_t head_dim);
/* Entries first .. first + rows - 1: k (rotated) and v, each [rows, kv_heads, head_dim]. */
void qvl_kv_store(qvl_compute *compute, const qvl_kv *kv, int64_t first, int64_t rows, const float *k,
                  const float *v);
/* Makes entries first .. of the page they lie in what they were before they were stored. */
void qvl_kv_clear(qvl_compute *compute, const qvl_kv *kv, int64_t first);
/* Back to float [count, kv_heads, head_dim], for tests. */
void qvl_kv_read(qvl_compute *compute, const qvl_kv *kv, int64_t first, int64_t count, float *k, float *v);

/* Floats of scratch that qvl_causal_attention needs in a sequence of `length` entries, however many rows there are. */
size_t qvl_causal_scratch(const qvl_compute *compute, int64_t kv_heads, int64_t head_dim, int64_t length);
/* out [rows, heads * head_dim] = softmax(scale q k^T) v: query head i of row r, entry first + r, sees the keys of head
 * i / (heads / kv_heads) of the entries up to its own. q [rows, heads, head_dim], rotated. Exact for any scores.
 * Keys go in chunks of QVL_KV_PAGE; chunks of a span of 16 are put together in order, then spans in order. */
void qvl_causal_attention(qvl_compute *compute, const qvl_kv *kv, const float *q, int64_t first, int64_t rows,
                          int64_t heads, float scale, float *scratch, float *out);

#endif
