/* What the files of compute/ share: the context and the table behind it. */
#ifndef QVL_COMPUTE_CONTEXT_H
#define QVL_COMPUTE_CONTEXT_H

#include "compute/compute.h"
#include "compute/cpu/decoder_kernels.h"
#include "compute/cpu/delta_kernels.h"
#include "compute/cpu/kernels.h"
#include "compute/cpu/tile_kernels.h"

/* Operations whose layouts belong together: what one writes, the other reads. float/: operands are float rows.
 * tile/: operands are bf16 in the tiles that matrix units and bf16 dot products read. */
typedef struct qvl_backend {
    size_t (*operand_bytes)(int64_t rows, int64_t cols);
    void (*operand_load)(qvl_compute *compute, const float *x, qvl_operand *out);
    void (*operand_read)(const qvl_operand *in, float *x);
    size_t (*weight_bytes)(const qvl_compute *compute, int64_t n, int64_t k);
    void (*weight_pack)(qvl_compute *compute, const void *source, qvl_dtype dtype, qvl_weight *weight);
    void (*layer_norm)(qvl_compute *compute, const float *x, int64_t rows, int64_t cols, const float *weight,
                       const float *bias, float eps, int64_t group, qvl_operand *out);
    /* STORE and ADD go to stream, the others to operand. */
    void (*product)(qvl_compute *compute, const qvl_operand *a, const qvl_weight *w, qvl_epilogue kind,
                    float *stream, qvl_operand *operand);
    size_t (*heads_bytes)(int64_t rows, int64_t heads, int64_t head_dim, const qvl_segments *segments);
    size_t (*qkv_scratch)(const qvl_compute *compute, int64_t rows, int64_t heads, int64_t head_dim);
    void (*matmul_qkv)(qvl_compute *compute, const qvl_operand *a, const qvl_weight *w, const float *cosine,
                       const float *sine, const qvl_segments *segments, float *scratch, qvl_heads *out);
    void (*heads_read)(const qvl_heads *in, const qvl_segments *segments, float *q, float *k, float *v);
    void (*attention)(qvl_compute *compute, const qvl_heads *qkv, const qvl_segments *segments, qvl_operand *out);
    /* Of the decoder (decoder.h). */
    void (*project)(qvl_compute *compute, const qvl_operand *a, const qvl_projection *projections, int count);
    size_t (*kv_page_bytes)(const qvl_compute *compute, int64_t kv_heads, int64_t head_dim);
    void (*kv_store)(qvl_compute *compute, const qvl_kv *kv, int64_t first, int64_t rows, const float *k,
                     const float *v); /* k, v NULL: zeros */
    void (*kv_read)(const qvl_compute *compute, const qvl_kv *kv, int64_t first, int64_t count, float *k,
                    float *v);
    int64_t (*causal_state_floats)(
        int64_t head_dim); /* of what a span of keys comes to, for the queries of a kv head */
    void (*causal_attention)(qvl_compute *compute, const qvl_kv *kv, const float *q, int64_t first, int64_t rows,
                             int64_t heads, float scale, float *scratch, float *out);
} qvl_backend;

extern const qvl_backend qvl_backend_float, qvl_backend_tile;

struct qvl_compute {
    qvl_pool *pool;
    const qvl_backend *backend;
    const qvl_kernels *kernels; /* float kernels, for every backend */
    const qvl_delta_kernels *delta;
    const qvl_decoder_kernels *decoder;
    const qvl_tile_kernels *tiles; /* NULL with the float backend */
    const qvl_decoder_tiles *decoder_tiles;
    qvl_dtype dtype;
    bool round; /* bf16 mode with the float backend: operands are rounded */
};

static inline int64_t qvl_ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static inline int64_t qvl_min_i64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* ---- spans of keys: what causal attention puts together first, and what rows that come alone are split over */

#define QVL_SPAN_CHUNKS 16 /* of QVL_KV_PAGE entries */

static inline int64_t qvl_causal_spans(int64_t length) {
    return qvl_ceil_div(length, QVL_KV_PAGE * QVL_SPAN_CHUNKS);
}

/* x = f(x, y), element by element, over count elements. */
void qvl_apply_pairs(qvl_compute *compute, void (*f)(int64_t n, float *x, const float *y), float *x,
                     const float *y, int64_t count);

/* ---- segments
 *
 * Layouts keep a segment's keys in units (panels, blocks of queries) of their own. Segment s that starts at row r
 * begins with unit r/unit + s: no two segments share one, and no table is needed. Some units stay empty. */

static inline int64_t qvl_segment_unit(const qvl_segments *segments, int64_t s, int64_t unit) {
    return segments->start[s] / unit + s;
}

/* All units of `rows` rows. */
static inline int64_t qvl_segment_units(const qvl_segments *segments, int64_t rows, int64_t unit) {
    return rows / unit + segments->count + 1;
}

/* The segment that unit u belongs to (the last that begins at or before it). */
static inline int64_t qvl_segment_of_unit(const qvl_segments *segments, int64_t u, int64_t unit) {
    int64_t low = 0, high = segments->count - 1;
    while (low < high) {
        int64_t mid = (low + high + 1) / 2;
        if (qvl_segment_unit(segments, mid, unit) <= u)
            low = mid;
        else
            high = mid - 1;
    }
    return low;
}

/* The segment that a row lies in. */
static inline int64_t qvl_segment_of_row(const qvl_segments *segments, int64_t row) {
    int64_t low = 0, high = segments->count - 1;
    while (low < high) {
        int64_t mid = (low + high + 1) / 2;
        if (segments->start[mid] <= row)
            low = mid;
        else
            high = mid - 1;
    }
    return low;
}

/* y[m] = x[m] c[m] - x[m+half] s[m]; y[m+half] = x[m+half] c[m] + x[m] s[m] */
static inline void qvl_rotate(int64_t half, const float *x, const float *c, const float *s, float *y) {
    for (int64_t m = 0; m < half; m++) y[m] = x[m] * c[m] - x[m + half] * s[m];
    for (int64_t m = 0; m < half; m++) y[m + half] = x[m + half] * c[m] + x[m] * s[m];
}

/* Element i of count values of F32, BF16 or F16 that may be unaligned. */
float qvl_source_value(const uint8_t *source, qvl_dtype dtype, size_t i);

#endif
