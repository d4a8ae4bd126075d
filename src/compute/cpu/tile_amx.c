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

/* Fetches what finish_row will write, before it does: other rows' work hides the wait. */
INLINE void fetch_destination(qvl_epilogue kind, const panel_finish *f, int64_t row) {
    if (kind == QVL_EPILOGUE_STORE || kind == QVL_EPILOGUE_ADD) {
        const float *out = stream_at(f->p, row, f->column);
        for (int j = 0; j < 3; j++) __builtin_prefetch(out + 16 * j, 1);
    } else {
        const uint16_t *out = f->p->operand + qvl_tile_offset(f->p->operand_steps, row, f->column / 32);
        for (int j = 0; j < 2; j++) __builtin_prefetch(out + j * 2 * QVL_TILE, 1);
    }
}

/* Adds `steps` steps to the six tiles. Meanwhile each step writes a row of the block before, fetches `lines` lines
 * of the next weights, and what a row of this block will be written to (fetch; NULL: nothing), from `row` on. */
INLINE void multiply_block(qvl_epilogue kind, const uint16_t *a, const uint16_t *b, int64_t steps, pending_rows *w,
                           const char *next, int lines, const panel_finish *fetch, int64_t row) {
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
        if (fetch && step < 32) fetch_destination(kind, fetch, row + step);
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
            const char *next = weights_after(p, first_panel, panels, panel, k);
            panel_finish f = finish_of_panel(p, first_panel + panel);
            for (int64_t r = 0; r < row_panels; r++) {
                const uint16_t *a = p->a + ((first_row / 32 + r) * p->steps + k) * 2 * QVL_TILE;
                /* Two blocks take turns where no sums are kept: one is written while the other is computed. */
                float *sums = scratch + (one_slice ? blocks++ % 2 : panel * row_panels + r) * BLOCK_FLOATS;
                if (k > 0)
                    load_sums(sums);
                else
                    zero_sums();
                multiply_block(kind, a, b, steps, &waiting, next + r * steps * lines * 64, lines, last ? &f : NULL,
                               first_row + 32 * r);
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

/* ---- attention for the head widths of the published towers */

#include "compute/cpu/tile_amx_attention.h"

static void attention(const qvl_tile_attention *a, int64_t tile, const qvl_tile_rows *out, float *scratch) {
    if (a->head_dim == 72 && a->bounded)
        interleaved_attention((interleaving){3, 5, true, false}, a, tile, out, scratch);
    else if (a->head_dim == 72)
        interleaved_attention((interleaving){3, 5, true, true}, a, tile, out, scratch);
    else if (a->head_dim == 80)
        interleaved_attention((interleaving){3, 5, false, true}, a, tile, out, scratch);
    else if (a->head_dim == 64 && a->bounded)
        interleaved_attention((interleaving){2, 4, false, false}, a, tile, out, scratch);
    else if (a->head_dim == 64)
        interleaved_attention((interleaving){2, 4, false, true}, a, tile, out, scratch);
    else
        chunked_attention(a, tile, out, scratch, score_keys, add_values);
}

/* Numbers that are not all alike: the clock depends on the data. */
static void fill_tiles(uint16_t *tiles, int count) {
    for (int i = 0; i < count * QVL_TILE; i++)
        tiles[i] = (uint16_t)(0x3f00 + (i * 7919) % 256 + (i % 3 ? 0x8000 : 0));
    barrier();
}

static double multiply_adds(int64_t n) {
    static _Thread_local uint16_t tiles[4 * QVL_TILE] __attribute__((aligned(64)));
    fill_tiles(tiles, 4);
    zero_sums();
    _tile_loadd(4, tiles, 64);
    _tile_loadd(5, tiles + QVL_TILE, 64);
    _tile_loadd(6, tiles + 2 * QVL_TILE, 64);
    _tile_loadd(7, tiles + 3 * QVL_TILE, 64);
    for (int64_t i = 0; i < n; i++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    return 4.0 * 2 * 16 * 16 * 32 * (double)n;
}

/* Two by two tiles: the fewest loads that a multiply can have with eight registers. */
static double loaded_multiply_adds(int64_t n) {
    static _Thread_local uint16_t tiles[8 * QVL_TILE] __attribute__((aligned(64)));
    fill_tiles(tiles, 8);
    zero_sums();
    for (int64_t i = 0; i < n; i++) {
        const uint16_t *t = tiles + i % 2 * 4 * QVL_TILE;
        _tile_loadd(4, t, 64);
        _tile_loadd(6, t + QVL_TILE, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, t + 2 * QVL_TILE, 64);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, t + 3 * QVL_TILE, 64);
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
    .loaded_multiply_adds = loaded_multiply_adds,
};

/* ---- the decoder's */

#include "compute/cpu/decoder_tile.h"

/* 16 rows of w, from first on, to the right tiles of column group `group`; rows that w does not have become zeros. */
static void turn_rows(const qvl_tile_dot *d, int64_t first, int64_t group) {
    for (int64_t step = 0; step < d->steps; step++) {
        __mmask32 mask = step + 1 < d->steps ? 0xffffffffu : d->last;
        v16 pairs[16];
        for (int64_t i = 0; i < 16; i++) {
            const uint8_t *from = d->w + (size_t)(first + i) * d->row_bytes + step * 64;
            pairs[i] = first + i < d->columns
                           ? _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(mask, (const void *)from))
                           : v16_set(0.0f);
        }
        transpose_16(pairs);
        for (int i = 0; i < 16; i++)
            v16_store((float *)(void *)(d->scratch + (step * 3 + group) * QVL_TILE + i * 32), pairs[i]);
    }
}

INLINE void load_rows(const float *sums) {
    const float *lower = sums + 16 * QVL_DOT_COLUMNS;
    _tile_loadd(0, sums, 4 * QVL_DOT_COLUMNS);
    _tile_loadd(1, sums + 16, 4 * QVL_DOT_COLUMNS);
    _tile_loadd(2, sums + 32, 4 * QVL_DOT_COLUMNS);
    _tile_loadd(3, lower, 4 * QVL_DOT_COLUMNS);
    _tile_loadd(4, lower + 16, 4 * QVL_DOT_COLUMNS);
    _tile_loadd(5, lower + 32, 4 * QVL_DOT_COLUMNS);
}

INLINE void store_rows(float *sums) {
    float *lower = sums + 16 * QVL_DOT_COLUMNS;
    _tile_stored(0, sums, 4 * QVL_DOT_COLUMNS);
    _tile_stored(1, sums + 16, 4 * QVL_DOT_COLUMNS);
    _tile_stored(2, sums + 32, 4 * QVL_DOT_COLUMNS);
    _tile_stored(3, lower, 4 * QVL_DOT_COLUMNS);
    _tile_stored(4, lower + 16, 4 * QVL_DOT_COLUMNS);
    _tile_stored(5, lower + 32, 4 * QVL_DOT_COLUMNS);
}

/* 48 columns from `first` on. w is laid out as right tiles first. Rows beyond the last give sums that nobody reads. */
static void dot_48(const qvl_tile_dot *d, int64_t first) {
    const uint16_t *a = d->a;
    float *sums = d->sums + first;
    for (int64_t group = 0; group < 3; group++) turn_rows(d, first + 16 * group, group);
    barrier();
    for (int64_t i = 0; i < d->rows; i += 32, a += d->a_steps * 2 * QVL_TILE, sums += 32 * QVL_DOT_COLUMNS) {
        pending_rows none = {.row = 0, .end = 0};
        if (d->add)
            load_rows(sums);
        else
            zero_sums();
        multiply_block(QVL_EPILOGUE_STORE, a, d->scratch, d->steps, &none, NULL, 0, NULL, 0);
        store_rows(sums);
    }
    barrier();
}

static void dot(const qvl_tile_dot *d) {
    for (int64_t first = 0; first < d->columns; first += 48) dot_48(d, first);
}

const qvl_decoder_tiles qvl_decoder_tiles_amx = {
    .expand = expand,
    .dot = dot,
    .finish = finish_sums,
    .right_tiles = right_tiles,
    .attend = attend,
    .join = join,
    .result = result,
};
