/* The kernels over vectors of 16 lanes. The file that includes this has included the operations of its instruction
 * set (v16_*.h) and defines
 *   TILE_ROWS, TILE_VECTORS: rows x vectors of c that product keeps in registers;
 *   KERNELS, KERNELS_NAME: the table to fill.
 * Lane i of vector j of a row is element 16 j + i: the lanes of kernels.h. */
#ifndef QVL_COMPUTE_CPU_SIMD_KERNELS_H
#define QVL_COMPUTE_CPU_SIMD_KERNELS_H

#include "compute/cpu/v16_math.h"

#include <math.h>

/* ---- rows: whole vectors, then one masked rest */

INLINE m16 rest_mask(int64_t rest) {
    return m16_first((int)rest);
}

INLINE v16 finish_vector(qvl_epilogue kind, bool round, v16 v, v16 out) {
    if (kind == QVL_EPILOGUE_ADD) v = v16_add(out, v);
    if (kind == QVL_EPILOGUE_TANH) v = gelu_tanh(v);
    if (kind == QVL_EPILOGUE_ERF) v = gelu_erf(v);
    return round ? v16_round_bf16(v) : v;
}

INLINE void finish_rows(qvl_epilogue kind, bool round, int64_t rows, int64_t cols, const float *c, int64_t ldc,
                        const float *bias, float *out, int64_t ldo) {
    int64_t whole = cols / 16 * 16;
    m16 mask = rest_mask(cols - whole);
    for (int64_t i = 0; i < rows; i++) {
        const float *ci = c + i * ldc;
        float *oi = out + i * ldo;
        for (int64_t j = 0; j < whole; j += 16) {
            v16 v = v16_add(v16_load(ci + j), v16_load(bias + j));
            v16_store(oi + j, finish_vector(kind, round, v, v16_load(oi + j)));
        }
        if (whole < cols) {
            v16 v = v16_add(v16_load_mask(ci + whole, mask), v16_load_mask(bias + whole, mask));
            v16_store_mask(oi + whole, mask, finish_vector(kind, round, v, v16_load_mask(oi + whole, mask)));
        }
    }
}

/* One specialised loop per kind and rounding: the branches leave the loops. */
static void finish(qvl_epilogue kind, bool round, int64_t rows, int64_t cols, const float *c, int64_t ldc,
                   const float *bias, float *out, int64_t ldo) {
    switch (kind) {
    case QVL_EPILOGUE_STORE:
        finish_rows(QVL_EPILOGUE_STORE, round, rows, cols, c, ldc, bias, out, ldo);
        break;
    case QVL_EPILOGUE_ADD:
        finish_rows(QVL_EPILOGUE_ADD, round, rows, cols, c, ldc, bias, out, ldo);
        break;
    case QVL_EPILOGUE_TANH:
        finish_rows(QVL_EPILOGUE_TANH, round, rows, cols, c, ldc, bias, out, ldo);
        break;
    case QVL_EPILOGUE_ERF:
        finish_rows(QVL_EPILOGUE_ERF, round, rows, cols, c, ldc, bias, out, ldo);
        break;
    }
}

static void layer_norm(int64_t n, const float *x, const float *weight, const float *bias, float eps, bool round,
                       float *y) {
    int64_t whole = n / 16 * 16;
    m16 mask = rest_mask(n - whole);
    v16 sum = v16_set(0.0f);
    for (int64_t i = 0; i < whole; i += 16) sum = v16_add(sum, v16_load(x + i));
    if (whole < n) sum = v16_add(sum, v16_load_mask(x + whole, mask));
    float mean_value = v16_sum(sum) / (float)n;
    v16 mean = v16_set(mean_value), squares = v16_set(0.0f);
    for (int64_t i = 0; i < whole; i += 16) {
        v16 d = v16_sub(v16_load(x + i), mean);
        squares = v16_fma(d, d, squares);
    }
    if (whole < n) {
        v16 d = v16_keep(mask, v16_sub(v16_load_mask(x + whole, mask), mean));
        squares = v16_fma(d, d, squares);
    }
    v16 inverse = v16_set(1.0f / sqrtf(v16_sum(squares) / (float)n + eps));
    for (int64_t i = 0; i < whole; i += 16) {
        v16 d = v16_mul(v16_sub(v16_load(x + i), mean), inverse);
        v16 v = v16_fma(d, v16_load(weight + i), v16_load(bias + i));
        v16_store(y + i, round ? v16_round_bf16(v) : v);
    }
    if (whole < n) {
        v16 d = v16_mul(v16_sub(v16_load_mask(x + whole, mask), mean), inverse);
        v16 v = v16_fma(d, v16_load_mask(weight + whole, mask), v16_load_mask(bias + whole, mask));
        v16_store_mask(y + whole, mask, round ? v16_round_bf16(v) : v);
    }
}

static float maximum(int64_t n, const float *x) {
    int64_t i = 0;
    v16 m = v16_set(-INFINITY);
    for (; i + 16 <= n; i += 16) m = v16_max(v16_load(x + i), m);
    float lanes[16];
    v16_store(lanes, m);
    float top = -INFINITY;
    for (int j = 0; j < 16; j++) top = lanes[j] > top ? lanes[j] : top;
    for (; i < n; i++) top = x[i] > top ? x[i] : top;
    return top;
}

static float exponentials(int64_t n, float *x, float top, float factor, bool round) {
    int64_t whole = n / 16 * 16;
    v16 sum = v16_set(0.0f), t = v16_set(top), f = v16_set(factor);
    for (int64_t i = 0; i < whole; i += 16) {
        v16 p = exp2_scaled(v16_sub(v16_load(x + i), t), f);
        p = round ? v16_round_bf16(p) : p;
        v16_store(x + i, p);
        sum = v16_add(sum, p);
    }
    if (whole < n) {
        m16 mask = rest_mask(n - whole);
        v16 p = exp2_scaled(v16_sub(v16_load_mask(x + whole, mask), t), f);
        p = v16_keep(mask, round ? v16_round_bf16(p) : p);
        v16_store_mask(x + whole, mask, p);
        sum = v16_add(sum, p);
    }
    return v16_sum(sum);
}

static void scale(int64_t n, float *x, float factor) {
    int64_t i = 0;
    v16 f = v16_set(factor);
    for (; i + 16 <= n; i += 16) v16_store(x + i, v16_mul(v16_load(x + i), f));
    for (; i < n; i++) x[i] *= factor;
}

static void round_bf16(int64_t n, const float *x, float *out) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) v16_store(out + i, v16_round_bf16(v16_load(x + i)));
    if (i < n) {
        m16 mask = rest_mask(n - i);
        v16_store_mask(out + i, mask, v16_round_bf16(v16_load_mask(x + i, mask)));
    }
}

static void widen_bf16(int64_t n, const uint16_t *x, float *out) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) v16_store(out + i, v16_widen_bf16(x + i));
    for (; i < n; i++) {
        uint32_t bits = (uint32_t)x[i] << 16;
        __builtin_memcpy(out + i, &bits, 4);
    }
}

/* ---- products: a tile of rows x vectors of c stays in registers over all of k */

INLINE void product_tile(int rows, int vectors, int64_t k, const float *a, int64_t lda, const float *b,
                         int64_t ldb, float *c, int64_t ldc, bool add, qvl_ahead next) {
    v16 s[TILE_ROWS][TILE_VECTORS];
    uintptr_t from = (uintptr_t)next.from;
    int64_t lines = from ? (next.bytes + 64 * k - 1) / (64 * k) : 0; /* for one of k */
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++) s[i][j] = v16_set(0.0f);
    for (int64_t l = 0; l < k; l++) {
        for (int64_t i = 0; i < lines; i++, from += 64) __builtin_prefetch((const void *)from, 0, 2);
        v16 bl[TILE_VECTORS];
        for (int j = 0; j < vectors; j++) bl[j] = v16_load(b + l * ldb + 16 * j);
        for (int i = 0; i < rows; i++) {
            v16 ai = v16_set(a[i * lda + l]);
            for (int j = 0; j < vectors; j++) s[i][j] = v16_fma(ai, bl[j], s[i][j]);
        }
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++) {
            float *cij = c + i * ldc + 16 * j;
            v16_store(cij, add ? v16_add(v16_load(cij), s[i][j]) : s[i][j]);
        }
}

/* Rows that do not fill a tile are taken in fours, twos (the delta rule of one token) or one by one. The first whole
 * tile fetches what is next. */
INLINE void product_columns(int vectors, int64_t rows, int64_t k, const float *a, int64_t lda, const float *b,
                            int64_t ldb, float *c, int64_t ldc, bool add, qvl_ahead next) {
    const qvl_ahead none = {NULL, 0};
    int64_t i = 0;
    if (next.from && rows >= TILE_ROWS) {
        product_tile(TILE_ROWS, vectors, k, a, lda, b, ldb, c, ldc, add, next);
        i = TILE_ROWS;
    }
    for (; i + TILE_ROWS <= rows; i += TILE_ROWS)
        product_tile(TILE_ROWS, vectors, k, a + i * lda, lda, b, ldb, c + i * ldc, ldc, add, none);
    for (; i + 4 <= rows; i += 4)
        product_tile(4, vectors, k, a + i * lda, lda, b, ldb, c + i * ldc, ldc, add, none);
    for (; i + 2 <= rows; i += 2)
        product_tile(2, vectors, k, a + i * lda, lda, b, ldb, c + i * ldc, ldc, add, none);
    for (; i < rows; i++) product_tile(1, vectors, k, a + i * lda, lda, b, ldb, c + i * ldc, ldc, add, none);
}

#define GATHERED_K 256

/* Columns that are half a cache line pair of b's rows fall into half of the sets of L1 and do not stay there: for many
 * rows they are laid side by side first. */
INLINE void product_of_half_rows(int64_t rows, int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb,
                                 float *c, int64_t ldc, bool add, qvl_ahead next) {
    float columns[GATHERED_K * 16] __attribute__((aligned(64)));
    for (int64_t l = 0; l < k; l++) v16_store(columns + 16 * l, v16_load(b + l * ldb));
    product_columns(1, rows, k, a, lda, columns, 16, c, ldc, add, next);
}

/* What the columns j.. of all have to fetch: a burst of all of it beside the first columns would have to wait. */
INLINE qvl_ahead share_of(qvl_ahead next, int64_t j, int64_t columns, int64_t all) {
    int64_t bytes = next.bytes * columns / all;
    uintptr_t from = (uintptr_t)next.from + (uintptr_t)(j / columns * bytes);
    return (qvl_ahead){next.from ? (const void *)from : NULL, bytes};
}

static void product(int64_t rows, int64_t cols, int64_t k, const float *a, int64_t lda, const float *b,
                    int64_t ldb, float *c, int64_t ldc, bool add, qvl_ahead next) {
    const int64_t wide = 16 * TILE_VECTORS;
    int64_t j = 0;
    bool gather = TILE_VECTORS == 1 && cols > 16 && k <= GATHERED_K && rows >= 8 * TILE_ROWS;
    for (; gather && j < cols; j += 16)
        product_of_half_rows(rows, k, a, lda, b + j, ldb, c + j, ldc, add, share_of(next, j, 16, cols));
    for (; j + wide <= cols; j += wide)
        product_columns(TILE_VECTORS, rows, k, a, lda, b + j, ldb, c + j, ldc, add, share_of(next, j, wide, cols));
    for (; j < cols; j += 16)
        product_columns(1, rows, k, a, lda, b + j, ldb, c + j, ldc, add, share_of(next, j, 16, cols));
}

static double multiply_adds(int64_t n) {
    v16 s[TILE_ROWS][TILE_VECTORS], a = v16_set(0.5f), b = v16_set(0.25f);
    for (int i = 0; i < TILE_ROWS; i++)
        for (int j = 0; j < TILE_VECTORS; j++) s[i][j] = v16_set((float)(i + j));
    for (int64_t l = 0; l < n; l++)
        for (int i = 0; i < TILE_ROWS; i++)
            for (int j = 0; j < TILE_VECTORS; j++) s[i][j] = v16_fma(s[i][j], a, b);
    v16 all = s[0][0];
    for (int i = 0; i < TILE_ROWS; i++)
        for (int j = 0; j < TILE_VECTORS; j++) all = v16_add(all, s[i][j]);
    volatile float result = v16_sum(all);
    (void)result;
    return 2.0 * 16 * TILE_ROWS * TILE_VECTORS * (double)n;
}

const qvl_kernels KERNELS = {
    .name = KERNELS_NAME,
    .product = product,
    .finish = finish,
    .layer_norm = layer_norm,
    .maximum = maximum,
    .exponentials = exponentials,
    .scale = scale,
    .round_bf16 = round_bf16,
    .widen_bf16 = widen_bf16,
    .multiply_adds = multiply_adds,
};

#endif
