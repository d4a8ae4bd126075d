/* Layouts of the tile backend (tiles: cpu/tile_kernels.h). "steps" are 32s of k or of columns, the last one
 * padded. operand  [row panels of 32][steps][2 left tiles]: rows 0..15 and 16..31 of the panel. Columns beyond
 * cols are zero; rows beyond rows hold anything. weight   [column panels of 48][steps][3 right tiles], zero beyond
 * n and k */
#ifndef QVL_COMPUTE_TILE_LAYOUT_H
#define QVL_COMPUTE_TILE_LAYOUT_H

#include "compute/context.h"

#define QVL_STEP 32

static inline int64_t qvl_steps(int64_t k) {
    return qvl_ceil_div(k, QVL_STEP);
}

/* Where the 32 columns of a step of a row begin. */
static inline uint16_t *qvl_tile_row(uint16_t *data, int64_t steps, int64_t row, int64_t step) {
    return data + qvl_tile_offset(steps, row, step);
}

/* rows.c: count bf16 values to columns first.. of a row; any alignment. */
void qvl_tile_put(uint16_t *data, int64_t steps, int64_t row, int64_t first, int64_t count,
                  const uint16_t *values);

/* products.c: a product without its destination, and a whole one */
qvl_tile_product qvl_tile_plan_product(const qvl_operand *a, const qvl_weight *w, qvl_epilogue kind);
void qvl_tile_run_product(qvl_compute *compute, const qvl_operand *a, const qvl_weight *w, qvl_epilogue kind,
                          float *stream, qvl_operand *operand);

/* attention.c */
size_t qvl_tile_heads_bytes(int64_t rows, int64_t heads, int64_t head_dim, const qvl_segments *segments);
size_t qvl_tile_qkv_scratch(const qvl_compute *compute, int64_t rows, int64_t heads, int64_t head_dim);
void qvl_tile_matmul_qkv(qvl_compute *compute, const qvl_operand *a, const qvl_weight *w, const float *cosine,
                         const float *sine, const qvl_segments *segments, float *scratch, qvl_heads *out);
void qvl_tile_heads_read(const qvl_heads *in, const qvl_segments *segments, float *q, float *k, float *v);
void qvl_tile_run_attention(qvl_compute *compute, const qvl_heads *qkv, const qvl_segments *segments,
                            qvl_operand *out);

/* decoder.c, causal.c */
void qvl_tile_project(qvl_compute *compute, const qvl_operand *a, const qvl_projection *projections, int count);
size_t qvl_tile_kv_page_bytes(const qvl_compute *compute, int64_t kv_heads, int64_t head_dim);
void qvl_tile_kv_store(qvl_compute *compute, const qvl_kv *kv, int64_t first, int64_t rows, const float *k,
                       const float *v);
void qvl_tile_kv_read(const qvl_compute *compute, const qvl_kv *kv, int64_t first, int64_t count, float *k,
                      float *v);
int64_t qvl_tile_causal_state_floats(int64_t head_dim);
void qvl_tile_causal_attention(qvl_compute *compute, const qvl_kv *kv, const float *q, int64_t first, int64_t rows,
                               int64_t heads, float scale, float *scratch, float *out);

#endif
