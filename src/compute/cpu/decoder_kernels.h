/* Kernels of the decoder, in the manner of kernels.h: decoder_scalar.c is the specification, every other file gives its
 * bits. Sums over a row run over the 16 lanes of kernels.h. */
#ifndef QVL_COMPUTE_CPU_DECODER_KERNELS_H
#define QVL_COMPUTE_CPU_DECODER_KERNELS_H

#include "compute/decoder.h"

typedef struct qvl_decoder_kernels {
    /* y = (x * (1 / sqrt(mean of squares + eps))) * weight; y may be x. */
    void (*rms_norm)(int64_t n, const float *x, const float *weight, float eps, float *y);
    /* gate = silu(gate) * up */
    void (*swiglu)(int64_t n, float *gate, const float *up);
    /* x = fma(y, b, x * a) */
    void (*merge)(int64_t n, float *x, float a, const float *y, float b);
    /* in [32 rows][ld] to out [n][32], out[i][r] = in[r][i]. Rows may have any alignment of floats. */
    void (*interleave)(int64_t n, const float *in, int64_t ld, float *out);
} qvl_decoder_kernels;

extern const qvl_decoder_kernels qvl_decoder_kernels_scalar, qvl_decoder_kernels_avx2, qvl_decoder_kernels_avx512;

/* ---- tiles (tile_kernels.h) */

/* 16 queries of one kv head against one chunk of at most 256 keys. */
typedef struct qvl_tile_chunk {
    const uint16_t *q; /* dim_steps right tiles, times scale log2(e) */
    const uint16_t *k; /* left tiles: [16 keys of a tile][dim_steps] */
    const uint16_t *v; /* left tiles: [blocks of 32 keys][value_tiles] */
    int64_t head_dim;
    int64_t keys;        /* those that some query sees: 1..256 */
    const int32_t *seen; /* [16]: each query sees the first seen[i] keys; negative counts as none */
} qvl_tile_chunk;

/* What softmax has of 16 queries after some keys. Values are [value_tiles * 16 dimensions][16 queries]. */
#define QVL_TILE_STATE_FLOATS(head_dim) (32 + ((head_dim) + 15) / 16 * 256)
typedef struct qvl_tile_state {
    float *top, *sum, *values; /* [16], [16], [value_tiles * 16][16]: one block of memory in this order, aligned */
} qvl_tile_state;

/* Dot products of rows of bf16, a piece of k long: sums[i][c] = or += a's row i times w's row c. */
#define QVL_DOT_STEPS 64   /* of a piece, at most; all but the last are that long */
#define QVL_DOT_COLUMNS 96 /* rows of w, at most */
#define QVL_DOT_ROWS 256   /* of a, at most: a piece of them stays in L2 */
#define QVL_DOT_SCRATCH ((QVL_DOT_COLUMNS + 8) * QVL_DOT_STEPS * 32)
typedef struct qvl_tile_dot {
    const uint16_t *a; /* left tiles of row panels `a_steps` steps long, from the slice's first step */
    int64_t a_steps, rows;
    const uint8_t *w; /* `columns` rows of bf16, row_bytes apart, without alignment */
    size_t row_bytes;
    const uint8_t
        *next; /* the rows that are read after these: the first eight are fetched with the last of these */
    int64_t columns, steps;
    uint32_t last; /* which of the last step's 32 values w has: others are not read */
    bool add;
    float *sums;       /* [rows rounded up to 32][QVL_DOT_COLUMNS] */
    uint16_t *scratch; /* QVL_DOT_SCRATCH elements */
} qvl_tile_dot;

typedef struct qvl_decoder_tiles {
    /* Rows first_row.. (`rows` of them) and steps first_step.. of w as bf16 to out [rows][ld], zero beyond k. */
    void (*expand)(const qvl_matrix *w, int64_t first_row, int64_t rows, int64_t first_step, int64_t steps,
                   uint16_t *out, int64_t ld);
    /* Between begin and end. */
    void (*dot)(const qvl_tile_dot *d);
    /* out[i, 0 .. columns-1] = or += sums[i]. */
    void (*finish)(bool add, int64_t rows, int64_t columns, const float *sums, float *out, int64_t ldo);
    /* 16 rows of floats [16][ld], ld a multiple of 32 and zero beyond the values, times factor, to ld / 32 right
     * tiles. */
    void (*right_tiles)(const float *rows, int64_t ld, float factor, uint16_t *out);
    /* Folds a chunk into the state; first: of its span, the state is written. Between begin and end. scratch:
     * QVL_TILE_SCRATCH. */
    void (*attend)(const qvl_tile_chunk *c, bool first, qvl_tile_state *state, float *scratch);
    /* Folds the state of a later span into that of the spans before. seen [16]: queries that see any key of it. */
    void (*join)(int64_t head_dim, const qvl_tile_state *later, const int32_t *seen, qvl_tile_state *state);
    /* out [16 queries][value_tiles * 16] = values / sum; NaN where scores were not finite. */
    void (*result)(int64_t head_dim, const qvl_tile_state *state, float *out);
} qvl_decoder_tiles;

extern const qvl_decoder_tiles qvl_decoder_tiles_avx512bf16, qvl_decoder_tiles_amx;

#endif
