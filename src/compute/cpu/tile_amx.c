/* Tile kernels on AMX: TDPBF16PS multiplies a left tile by a right tile into 16 x 16 floats.
 *
 * What the hardware asks for: a tile multiply takes 16 clocks, in which the vector units are free, and a tile
 * store that finds the units asleep (half a microsecond without either) waits 300 ns. So the vector work of a
 * finished block is spread over the multiplies of the next one, and a loop without such work issues one idle
 * vector instruction a step. The intrinsics name registers by literal numbers and do not tell the compiler what
 * memory they touch: barriers stand where vectors and tiles exchange data. */
#define _GNU_SOURCE
#include "compute/cpu/tile_avx512.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- permission and configuration */

bool qvl_tile_amx_usable(void) {
    unsigned a, b, c, d, xcr0_low, xcr0_high;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    const unsigned amx_bf16 = 1u << 22, amx_tile = 1u << 24;
    if (!(d & amx_bf16) || !(d & amx_tile)) return false;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return false;
    __asm__ volatile("xgetbv" : "=a"(xcr0_low), "=d"(xcr0_high) : "c"(0));
    const unsigned tile_state = 3u << 17;
    if ((xcr0_low & tile_state) != tile_state) return false;
    const long request_permission = 0x1023, tile_data = 18; /* ARCH_REQ_XCOMP_PERM, for the whole process */
    return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

static inline void barrier(void) {
    __asm__ volatile("" ::: "memory");
}

/* Eight tiles of 16 rows x 64 bytes. */
static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} __attribute__((aligned(64))) configuration = {
    .palette = 1,
    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {16, 16, 16, 16, 16, 16, 16, 16},
};

static void begin(void) {
    barrier();
    _tile_loadconfig(&configuration);
}

static void end(void) {
    _tile_release();
}

/* ---- products: 32 rows x 48 columns in six tiles, 0..2 the upper rows, 3..5 the lower */

/* A finished block whose rows wait to be written. */
typedef struct pending_rows {
    panel_finish f;
    const float *sums;
    int64_t row, end; /* of the whole product; sums are those of row % 32 */
} pending_rows;

INLINE void finish_next(qvl_epilogue kind, pending_rows *w) {
    if (w->row < w->end) {
        finish_row(kind, &w->f, w->sums + w->row % 32 * 16, w->row);
        w->row++;
    } else {
        __asm__ volatile("vpxord %%zmm31, %%zmm31, %%zmm31" ::: "xmm31");
    }
}

INLINE void finish_rest(qvl_epilogue kind, pending_rows *w) {
    while (w->row < w->end) finish_next(kind, w);
}

INLINE void load_sums(const float *sums) {
    _tile_loadd(0, sums, 64);
    _tile_loadd(1, sums + 512, 64);
    _tile_loadd(2, sums + 1024, 64);
    _tile_loadd(3, sums + 256, 64);
    _tile_loadd(4, sums + 768, 64);
    _tile_loadd(5, sums + 1280, 64);
}

INLINE void zero_sums(void) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
}

INLINE void store_sums(float *sums) {
    _tile_stored(0, sums, 64);
    _tile_stored(1, sums + 512, 64);
    _tile_stored(2, sums + 1024, 64);
    _tile_stored(3, sums + 256, 64);
    _tile_stored(4, sums + 768, 64);
    _tile_stored(5, sums + 1280, 64);
}

/* Adds `steps` steps to the six tiles. Meanwhile each step writes a row of the block before, fetches `lines` lines
 * of the next weights, and the row of the stream that this block's sums will go to (NULL: none). */
INLINE void multiply_block(qvl_epilogue kind, const uint16_t *a, const uint16_t *b, int64_t steps, pending_rows *w,
                           const char *next, int lines, const float *stream, int64_t stream_row) {
    for (int64_t step = 0; step < steps; step++, a += 2 * QVL_TILE, b += 3 * QVL_TILE) {
        _tile_loadd(6, a, 64);
        _tile_loadd(7, b, 64);
        _tile_dpbf16ps(0, 6, 7);
        _tile_loadd(7, b + QVL_TILE, 64);
        _tile_dpbf16ps(1, 6, 7);
        _tile_loadd(7, b + 2 * QVL_TILE, 64);
        _tile_dpbf16ps(2, 6, 7);
        _tile_loadd(6, a + QVL_TILE, 64);
        _tile_dpbf16ps(5, 6, 7);
        _tile_loadd(7, b + QVL_TILE, 64);
        _tile_dpbf16ps(4, 6, 7);
        _tile_loadd(7, b, 64);
        for (int i = 0; i < lines; i++, next += 64) _mm_prefetch(next, _MM_HINT_T1);
        if (stream && step < 32)
            for (int i = 0; i < 3; i++) __builtin_prefetch(stream + step * stream_row + 16 * i, 1);
        finish_next(kind, w);
        _tile_dpbf16ps(3, 6, 7);
    }
}

INLINE void product_of_kind(qvl_epilogue kind, const qvl_tile_product *p, int64_t first_row, int64_t rows,
                            int64_t first_panel, int64_t panels, float *scratch) {
    int64_t row_panels = (rows + 31) / 32, blocks = 0;
    int lines = (int)((48 + row_panels - 1) / row_panels);
    bool one_slice = p->slice >= p->steps;
    pending_rows waiting = {.row = 0, .end = 0};
    for (int64_t k = 0; k < p->steps; k += p->slice) {
        int64_t steps = p->steps - k < p->slice ? p->steps - k : p->slice;
        bool last = k + p->slice >= p->steps;
        for (int64_t panel = 0; panel < panels; panel++) {
            const uint16_t *b = p->b + ((first_panel + panel) * p->steps + k) * 3 * QVL_TILE;
            const char *next = (const char *)(b + p->steps * 3 * QVL_TILE);
            panel_finish f = finish_of_panel(p, first_panel + panel);
            for (int64_t r = 0; r < row_panels; r++) {
                const uint16_t *a = p->a + ((first_row / 32 + r) * p->steps + k) * 2 * QVL_TILE;
                /* Two blocks take turns where no sums are kept: one is written while the other is computed. */
                float *sums = scratch + (one_slice ? blocks++ % 2 : panel * row_panels + r) * BLOCK_FLOATS;
                if (k > 0)
                    load_sums(sums);
                else
                    zero_sums();
                const float *stream = NULL;
                if (last && p->stream) stream = p->stream + (first_row + 32 * r) * p->n + f.column;
                multiply_block(kind, a, b, steps, &waiting, next + r * steps * lines * 64, lines, stream, p->n);
                finish_rest(kind, &waiting);
                store_sums(sums);
                barrier();
                if (last)
                    waiting = (pending_rows){f, sums, first_row + 32 * r,
                                             first_row + (32 * r + 32 < rows ? 32 * r + 32 : rows)};
            }
        }
    }
    finish_rest(kind, &waiting);
}

static void product(const qvl_tile_product *p, int64_t first_row, int64_t rows, int64_t first_panel,
                    int64_t panels, float *scratch) {
    switch (p->kind) {
    case QVL_EPILOGUE_STORE:
        product_of_kind(QVL_EPILOGUE_STORE, p, first_row, rows, first_panel, panels, scratch);
        break;
    case QVL_EPILOGUE_ADD:
        product_of_kind(QVL_EPILOGUE_ADD, p, first_row, rows, first_panel, panels, scratch);
        break;
    case QVL_EPILOGUE_TANH:
        product_of_kind(QVL_EPILOGUE_TANH, p, first_row, rows, first_panel, panels, scratch);
        break;
    case QVL_EPILOGUE_ERF:
        product_of_kind(QVL_EPILOGUE_ERF, p, first_row, rows, first_panel, panels, scratch);
        break;
    }
}

/* ---- attention for any scores and head widths, phase after phase */

static void score_keys(const qvl_tile_attention *a, const uint16_t *q, const uint16_t *k, int64_t tiles,
                       float *scores) {
    int64_t dim_steps = (a->head_dim + 31) / 32;
    for (int64_t t = 0; t < tiles; t++, scores += 256) {
        _tile_zero(0);
        for (int64_t step = 0; step < dim_steps; step++, k += QVL_TILE) {
            _tile_loadd(6, k, 64);
            _tile_loadd(7, q + step * QVL_TILE, 64);
            _tile_dpbf16ps(0, 6, 7);
        }
        _tile_stored(0, scores, 64);
    }
    barrier();
}

static void add_values(const qvl_tile_attention *a, const uint16_t *v, int64_t pairs, const uint16_t *numerator,
                       float *values) {
    int64_t tiles = (a->head_dim + 15) / 16, blocks = pairs / 16;
    barrier();
    for (int64_t t = 0; t < tiles; t++) {
        _tile_loadd(0, values + t * 256, 64);
        for (int64_t b = 0; b < blocks; b++) {
            _tile_loadd(6, v + (b * tiles + t) * QVL_TILE, 64);
            _tile_loadd(7, numerator + b * QVL_TILE, 64);
            _tile_dpbf16ps(0, 6, 7);
        }
        _tile_stored(0, values + t * 256, 64);
    }
    barrier();
}

/* ---- attention for bounded scores and up to five value tiles, interleaved
 *
 * Step j multiplies the scores of key block j+1, takes the powers of block j and multiplies the values of block
 * j-1: the three depend on each other only from one step to the next. The values stay in tiles 0..4 throughout. */

typedef struct bounded_run {
    const uint16_t *q, *k, *v;
    float *scores;        /* [2][512] */
    uint16_t *numerators; /* [2][512] */
    v16 sum;
} bounded_run;

INLINE void take_pairs(bounded_run *r, int64_t j, int first, int count) {
    const float *scores = r->scores + (j & 1) * 512 + first * 32;
    uint16_t *out = r->numerators + (j & 1) * 512 + first * 32;
    for (int i = 0; i < count; i++)
        numerators(v16_load(scores + i * 32), v16_load(scores + i * 32 + 16), &r->sum, out + i * 32);
}

/* One step of dimensions of one tile of 16 keys. */
INLINE void score_step(const uint16_t *k, const uint16_t *q) {
    _tile_loadd(6, k, 64);
    _tile_loadd(7, q, 64);
    _tile_dpbf16ps(5, 6, 7);
}

INLINE void score_block(bounded_run *r, int dim_steps, int64_t j) {
    const uint16_t *k = r->k + j * 2 * dim_steps * QVL_TILE;
    for (int half = 0; half < 2; half++) {
        _tile_zero(5);
        for (int d = 0; d < dim_steps; d++) score_step(k + (half * dim_steps + d) * QVL_TILE, r->q + d * QVL_TILE);
        _tile_stored(5, r->scores + (j & 1) * 512 + half * 256, 64);
    }
}

INLINE void value_block(bounded_run *r, int value_tiles, int64_t j) {
    const uint16_t *v = r->v + j * value_tiles * QVL_TILE;
    _tile_loadd(7, r->numerators + (j & 1) * 512, 64);
    _tile_loadd(6, v, 64);
    _tile_dpbf16ps(0, 6, 7);
    _tile_loadd(6, v + QVL_TILE, 64);
    _tile_dpbf16ps(1, 6, 7);
    _tile_loadd(6, v + 2 * QVL_TILE, 64);
    _tile_dpbf16ps(2, 6, 7);
    _tile_loadd(6, v + 3 * QVL_TILE, 64);
    _tile_dpbf16ps(3, 6, 7);
    if (value_tiles > 4) {
        _tile_loadd(6, v + 4 * QVL_TILE, 64);
        _tile_dpbf16ps(4, 6, 7);
    }
}

/* Scores of block j+1, powers of block j, values of block j-1, all of which exist. */
INLINE void whole_step(bounded_run *r, int dim_steps, int value_tiles, int64_t j) {
    const uint16_t *k = r->k + (j + 1) * 2 * dim_steps * QVL_TILE, *v = r->v + (j - 1) * value_tiles * QVL_TILE;
    float *scores = r->scores + ((j + 1) & 1) * 512;
    int pair = 0,
        share = dim_steps > 2 ? 1 : 2; /* pairs beside each score multiply; the others stand by the values */
    for (int half = 0; half < 2; half++) {
        _tile_zero(5);
        for (int d = 0; d < dim_steps; d++, pair += share) {
            score_step(k + (half * dim_steps + d) * QVL_TILE, r->q + d * QVL_TILE);
            take_pairs(r, j, pair, share);
        }
        _tile_stored(5, scores + half * 256, 64);
    }
    _tile_loadd(7, r->numerators + ((j - 1) & 1) * 512, 64);
    _tile_loadd(6, v, 64);
    _tile_dpbf16ps(0, 6, 7);
    take_pairs(r, j, pair, 2);
    _tile_loadd(6, v + QVL_TILE, 64);
    _tile_dpbf16ps(1, 6, 7);
    take_pairs(r, j, pair + 2, 2);
    _tile_loadd(6, v + 2 * QVL_TILE, 64);
    _tile_dpbf16ps(2, 6, 7);
    take_pairs(r, j, pair + 4, 2);
    _tile_loadd(6, v + 3 * QVL_TILE, 64);
    _tile_dpbf16ps(3, 6, 7);
    take_pairs(r, j, pair + 6, 2);
    if (value_tiles > 4) {
        _tile_loadd(6, v + 4 * QVL_TILE, 64);
        _tile_dpbf16ps(4, 6, 7);
        take_pairs(r, j, pair + 8, 2);
    }
}

INLINE void bounded_attention(const qvl_tile_attention *a, int dim_steps, int value_tiles, int64_t tile,
                              float *out, float *scratch) {
    int64_t blocks = (a->keys + 31) / 32;
    float *values = scratch;
    bounded_run r = {.q = a->q + tile * dim_steps * QVL_TILE,
                     .k = a->k,
                     .v = a->v,
                     .scores = values + 5 * 256,
                     .numerators = (uint16_t *)(values + 5 * 256 + 1024),
                     .sum = v16_set(0.0f)};
    zero_sums();
    score_block(&r, dim_steps, 0);
    for (int64_t j = 0; j < blocks; j++) {
        barrier();
        if (j > 0 && j + 1 < blocks) {
            whole_step(&r, dim_steps, value_tiles, j);
            continue;
        }
        const float *scores = r.scores + (j & 1) * 512;
        uint16_t *pairs = r.numerators + (j & 1) * 512;
        for (int64_t i = 0; i < 16; i++)
            some_numerators(scores + i * 32, a->keys - 32 * j - 2 * i, v16_set(0.0f), &r.sum, pairs + i * 32);
        if (j + 1 < blocks) score_block(&r, dim_steps, j + 1);
        if (j > 0) value_block(&r, value_tiles, j - 1);
    }
    barrier();
    value_block(&r, value_tiles, blocks - 1);
    _tile_stored(0, values, 64);
    _tile_stored(1, values + 256, 64);
    _tile_stored(2, values + 512, 64);
    _tile_stored(3, values + 768, 64);
    _tile_stored(4, values + 1024, 64);
    barrier();
    v16 scale = v16_div(v16_set(1.0f), r.sum);
    for (int t = 0; t < value_tiles; t++)
        transpose_scaled(values + t * 256, scale, out + t * 16, value_tiles * 16);
}

static void attention(const qvl_tile_attention *a, int64_t tile, float *out, float *scratch) {
    int64_t dim_steps = (a->head_dim + 31) / 32, value_tiles = (a->head_dim + 15) / 16;
    if (a->bounded && dim_steps == 3 && value_tiles == 5) /* 72 and 80 */
        bounded_attention(a, 3, 5, tile, out, scratch);
    else if (a->bounded && dim_steps == 2 && value_tiles == 4) /* 64 */
        bounded_attention(a, 2, 4, tile, out, scratch);
    else
        chunked_attention(a, tile, out, scratch, score_keys, add_values);
}

/* On numbers that are not all alike: the clock depends on the data. */
static double multiply_adds(int64_t n) {
    static _Thread_local uint16_t tiles[4][QVL_TILE] __attribute__((aligned(64)));
    for (int i = 0; i < 4 * QVL_TILE; i++)
        tiles[i / QVL_TILE][i % QVL_TILE] = (uint16_t)(0x3f00 + (i * 7919) % 256 + (i % 3 ? 0x8000 : 0));
    barrier();
    zero_sums();
    _tile_loadd(4, tiles[0], 64);
    _tile_loadd(5, tiles[1], 64);
    _tile_loadd(6, tiles[2], 64);
    _tile_loadd(7, tiles[3], 64);
    for (int64_t i = 0; i < n; i++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    return 4.0 * 2 * 16 * 16 * 32 * (double)n;
}

const qvl_tile_kernels qvl_tile_kernels_amx = {
    .name = "amx",
    .begin = begin,
    .end = end,
    .product = product,
    .attention = attention,
    .split = split_rows,
    .round = round_to_bf16,
    .multiply_adds = multiply_adds,
};
