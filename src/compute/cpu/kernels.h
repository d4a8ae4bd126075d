/* What an instruction set provides: a table of kernels over plain float memory. scalar.c is the specification;
 * every other file gives the same bits, since sums run over the same 16 lanes or in the same order with fused
 * multiply-adds in the same places. No kernel knows of threads. */
#ifndef QVL_COMPUTE_CPU_KERNELS_H
#define QVL_COMPUTE_CPU_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#define QVL_LANES 16 /* sums over a row use 16 partial sums, lane = index mod 16, then halves are added */

typedef enum qvl_epilogue {
    QVL_EPILOGUE_STORE,
    QVL_EPILOGUE_ADD,
    QVL_EPILOGUE_TANH,
    QVL_EPILOGUE_ERF
} qvl_epilogue;

/* Memory that is read next. */
typedef struct qvl_ahead {
    const void *from; /* NULL: nothing */
    int64_t bytes;
} qvl_ahead;

typedef struct qvl_kernels {
    const char *name;

    /* c[rows, cols] = or += a[rows, k] b[k, cols], row strides lda, ldb, ldc; cols is 16 or 32.
     * Each element: s = 0, then s = fma(a, b, s) for k ascending; then c = s, or c = c + s if add.
     * next is fetched meanwhile where rows fill a tile of registers; that changes no result. */
    void (*product)(int64_t rows, int64_t cols, int64_t k, const float *a, int64_t lda, const float *b,
                    int64_t ldb, float *c, int64_t ldc, bool add, qvl_ahead next);

    /* v = c + bias; out = v | out = out + v | out = gelu(v). round: out is rounded to bf16. Any cols. */
    void (*finish)(qvl_epilogue kind, bool round, int64_t rows, int64_t cols, const float *c, int64_t ldc,
                   const float *bias, float *out, int64_t ldo);

    /* One row of layer normalisation: mean and variance by lane sums; y = fma((x - mean) * inverse, weight, bias).
     */
    void (*layer_norm)(int64_t n, const float *x, const float *weight, const float *bias, float eps, bool round,
                       float *y);

    /* Largest of n values; NaN is passed over; -infinity if nothing else is there. */
    float (*maximum)(int64_t n, const float *x);
    /* x = 2^((x - top) * factor), rounded to bf16 if round; returns the lane sum of what it stored. */
    float (*exponentials)(int64_t n, float *x, float top, float factor, bool round);
    /* x *= factor */
    void (*scale)(int64_t n, float *x, float factor);

    /* out = x as bf16 bits widened again (rounded to nearest even), and the widening of stored bf16. */
    void (*round_bf16)(int64_t n, const float *x, float *out);
    void (*widen_bf16)(int64_t n, const uint16_t *x, float *out);

    /* n rounds of the multiply-adds of product on registers alone; returns their FLOPs. What products are measured
     * against (qvl_bench_kernels). */
    double (*multiply_adds)(int64_t n);
} qvl_kernels;

extern const qvl_kernels qvl_kernels_scalar, qvl_kernels_avx2, qvl_kernels_avx512;

/* ---- constants of the shared formulas (docs/NUMERICS.md) */

/* 2^r for r in -1/2..1/2, |relative error| < 1e-8: coefficients of r^0..r^7. */
extern const float qvl_exp2_coefficients[8];
#define QVL_EXP2_MIN (-126.0f) /* below: 0 */
#define QVL_EXP2_MAX 127.0f    /* above: taken as this */

/* erfc(z) = t * exp(P(t - 1/2) - z^2) for z >= 0, t = 1 / (1 + z/2), |P| error < 5e-9: coefficients of P. */
#define QVL_ERFC_TERMS 12
extern const float qvl_erfc_coefficients[QVL_ERFC_TERMS];

#define QVL_LOG2E 1.44269502162933349609375f /* log2(e) = the sum of both parts */
#define QVL_LOG2E_LOW 1.925963033500011e-8f
#define QVL_GELU_SLOPE                                                                                            \
    -1.59576912160573071f /* -2 sqrt(2/pi): gelu_tanh(x) = x / (1 + exp(slope (x + 0.044715 x^3))) */
#define QVL_GELU_CUBIC 0.044715f
#define QVL_SQRT_HALF 0.70710678118654752f

#endif
