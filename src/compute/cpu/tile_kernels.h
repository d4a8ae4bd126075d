/* Kernels of the tile backend: products and attention over bf16 tiles of 1 KB. A tile is 16 rows of 64 bytes:
 *   left tile   16 rows x 32 k
 *   right tile  16 pairs of k x 16 columns x 2 (the two k of a pair lie together)
 * A product of two tiles adds to 16 x 16 floats. One table per instruction set; the sets differ in the rounding of
 * their sums (docs/NUMERICS.md), so results name the set. */
#ifndef QVL_COMPUTE_CPU_TILE_KERNELS_H
#define QVL_COMPUTE_CPU_TILE_KERNELS_H

#include "compute/cpu/kernels.h"

#define QVL_TILE 512           /* bf16 elements of a tile */
#define QVL_PANEL_ROWS 32      /* of an operand's panel: two left tiles side by side per 32 of k */
#define QVL_PANEL_COLUMNS 48   /* of a weight's panel: three right tiles side by side per 32 of k */
#define QVL_MAX_BLOCK_ROWS 256 /* rows that one call of product may take */
#define QVL_MAX_BLOCK_PANELS 24

/* Elements to the 32 columns of a step of a row in [row panels][steps][2 left tiles]. */
static inline int64_t qvl_tile_offset(int64_t steps, int64_t row, int64_t step) {
    return ((row / QVL_PANEL_ROWS * steps + step) * 2 + row % QVL_PANEL_ROWS / 16) * QVL_TILE + row % 16 * 32;
}

/* A whole product; a call computes a block of it.
 *   a  [row panels][steps][2 tiles]   b  [column panels][steps][3 tiles]   steps = 32s of k, k padded with zeros
 */
typedef struct qvl_tile_product {
    const uint16_t *a, *b;
    int64_t rows, n, steps;
    int64_t slice; /* steps whose sums stay in registers; partial sums of slices are added in order */
    qvl_epilogue kind;
    const float *bias;
    float *stream; /* STORE, ADD: rows first_row.. and columns first_column.., rows stream_stride apart */
    int64_t first_row, first_column, stream_stride;
    uint16_t *operand; /* TANH, ERF: [row panels][operand_steps][2 tiles] */
    int64_t operand_steps;
} qvl_tile_product;

/* Attention of one head of one segment: 16 queries at a time over all keys, transposed throughout.
 *   q  [query tiles][dim_steps] right tiles: pairs of dimensions x queries; a softmax numerator is 2^(q k)
 *   k  [key blocks][2][dim_steps] left tiles: 16 keys x 32 dimensions
 *   v  [key blocks][value_tiles] left tiles: 16 dimensions x 32 keys; where head_dim is no multiple of 16, a row of
 *      ones follows the last dimension
 * A key block is 32 keys; what lies beyond `keys` is zero. */
typedef struct qvl_tile_attention {
    const uint16_t *q, *k, *v;
    int64_t keys, head_dim; /* dim_steps = head_dim/32, value_tiles = head_dim/16, rounded up */
    bool bounded;           /* |q||k| of this head and segment is small: no maximum needs to be subtracted */
} qvl_tile_attention;

/* Where `count` rows of a head go: columns column.. of an operand. */
typedef struct qvl_tile_rows {
    uint16_t *data; /* [row panels][steps][2 tiles] */
    int64_t steps, row, count, column;
} qvl_tile_rows;

typedef enum qvl_qkv_part { QVL_PART_Q = 0, QVL_PART_K = 1, QVL_PART_V = 2 } qvl_qkv_part;

/* One head of up to 16 rows of floats of q, k or v on their way into tiles. */
typedef struct qvl_tile_split {
    qvl_qkv_part part;
    const float *rows; /* the first row's head, rows row_stride apart */
    int64_t row_stride, head_dim;
    const float *cosine, *sine; /* q, k: [rows, head_dim/2] */
    float factor;               /* of q, after its rotation */
    uint16_t *out;              /* q, k: dim_steps tiles; v: column of the first key in the block's value tiles */
    uintptr_t next;             /* address of what is written next, laid out as out: fetched meanwhile */
} qvl_tile_split;

/* NaN stays. */
static inline float qvl_larger_or_nan(float a, float b) {
    return b <= a || a != a ? a : b;
}

typedef struct qvl_tile_kernels {
    const char *name;
    /* Around a run of calls on one thread. */
    void (*begin)(void);
    void (*end)(void);
    /* Rows first_row.. (a multiple of 32) and panels first_panel..; at most QVL_MAX_BLOCK_*. scratch: 64-byte
     * aligned, QVL_TILE_SCRATCH bytes. */
    void (*product)(const qvl_tile_product *p, int64_t first_row, int64_t rows, int64_t first_panel,
                    int64_t panels, float *scratch);
    /* Query tile `tile`, normalised. out->count: the queries that exist. scratch as above. */
    void (*attention)(const qvl_tile_attention *a, int64_t tile, const qvl_tile_rows *out, float *scratch);
    /* Rotates (q, k), rounds and lays out `count` rows; the rest of the 16 becomes zeros. Returns the largest |q|^2 or
     * |k|^2 before rounding, NaN if there is one; of v 0. scratch as above. */
    float (*split)(const qvl_tile_split *s, int64_t count, float *scratch);
    /* 64-byte aligned x[n], n a multiple of 16, to bf16. */
    void (*round)(int64_t n, const float *x, uint16_t *out);
    /* n rounds of multiplies on registers alone, between begin and end; returns their FLOPs. */
    double (*multiply_adds)(int64_t n);
    /* The same with every operand loaded from L1, as products must. NULL: loads go beside the multiplies. */
    double (*loaded_multiply_adds)(int64_t n);
} qvl_tile_kernels;

#define QVL_TILE_SCRATCH (QVL_MAX_BLOCK_ROWS * QVL_MAX_BLOCK_PANELS * QVL_PANEL_COLUMNS * 4 + 65536)

extern const qvl_tile_kernels qvl_tile_kernels_avx512bf16, qvl_tile_kernels_amx;

/* Processor and operating system have AMX bf16; asks the latter's permission. */
bool qvl_tile_amx_usable(void);

#endif
