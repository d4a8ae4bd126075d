/* Layouts of the float backend.
 *   operand  float [rows][cols], values already rounded in bf16 mode
 *   weight   panels of 32 output columns, [panel][k][32], zero beyond n; float, or bf16 bits in bf16 mode */
#ifndef QVL_COMPUTE_FLOAT_LAYOUT_H
#define QVL_COMPUTE_FLOAT_LAYOUT_H

#include "compute/context.h"

#define QVL_PANEL 32

/* products.c */
void qvl_float_product(qvl_compute *compute, const qvl_operand *a, const qvl_weight *w, qvl_epilogue kind,
                       float *stream, qvl_operand *operand);

/* attention.c */
size_t qvl_float_heads_bytes(int64_t rows, int64_t heads, int64_t head_dim, const qvl_segments *segments);
size_t qvl_float_qkv_scratch(const qvl_compute *compute, int64_t rows, int64_t heads, int64_t head_dim);
void qvl_float_matmul_qkv(qvl_compute *compute, const qvl_operand *a, const qvl_weight *w, const float *cosine,
                          const float *sine, const qvl_segments *segments, float *scratch, qvl_heads *out);
void qvl_float_heads_read(const qvl_heads *in, const qvl_segments *segments, float *q, float *k, float *v);
void qvl_float_attention(qvl_compute *compute, const qvl_heads *qkv, const qvl_segments *segments,
                         qvl_operand *out);

/* decoder.c, causal.c */
void qvl_float_project(qvl_compute *compute, const qvl_operand *a, const qvl_projection *projections, int count);
size_t qvl_float_kv_page_bytes(const qvl_compute *compute, int64_t kv_heads, int64_t head_dim);
void qvl_float_kv_store(qvl_compute *compute, const qvl_kv *kv, int64_t first, int64_t rows, const float *k,
                        const float *v);
void qvl_float_kv_read(const qvl_compute *compute, const qvl_kv *kv, int64_t first, int64_t count, float *k,
                       float *v);
int64_t qvl_float_causal_state_floats(int64_t head_dim);
void qvl_float_causal_attention(qvl_compute *compute, const qvl_kv *kv, const float *q, int64_t first,
                                int64_t rows, int64_t heads, float scale, float *scratch, float *out);

#endif
