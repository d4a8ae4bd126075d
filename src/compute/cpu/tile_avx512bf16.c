/* Tile kernels on VDPBF16PS: each instruction adds the products of one pair of k for 16 columns. */
#include "compute/cpu/tile_avx512.h"

#include <string.h>

static void nothing(void) {
}

/* The two bf16 at p, in every lane. */
INLINE __m512bh broadcast_pair(const uint16_t *p) {
    int both;
    memcpy(&both, p, sizeof both);
    return (__m512bh)_mm512_set1_epi32(both);
}

INLINE __m512bh load_pairs(const uint16_t *p) {
    return (__m512bh)_mm512_loadu_si512((const void *)p);
}

/* ---- products */

/* sums[3][.][16] of 8 rows = or += 8 rows of left tiles x 3 right tiles, over `steps`. Each step fetches `lines`
 * lines from next on. */
INLINE void multiply_8x48(const uint16_t *a, const uint16_t *b, int64_t steps, bool add, float *sums,
                          const char *next, int64_t lines) {
    v16 s[8][3];
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 3; j++) s[i][j] = add ? v16_load(sums + j * 512 + i * 16) : v16_set(0.0f);
    for (int64_t step = 0; step < steps; step++, a += 2 * QVL_TILE, b += 3 * QVL_TILE) {
        for (int64_t i = 0; i < lines; i++, next += 64) _mm_prefetch(next, _MM_HINT_T1);
        for (int pair = 0; pair < 16; pair++) {
            __m512bh bj[3];
            for (int j = 0; j < 3; j++) bj[j] = load_pairs(b + j * QVL_TILE + pair * 32);
            for (int i = 0; i < 8; i++) {
                __m512bh ai = broadcast_pair(a + i * 32 + pair * 2);
                for (int j = 0; j < 3; j++) s[i][j] = _mm512_dpbf16_ps(s[i][j], ai, bj[j]);
            }
        }
    }
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 3; j++) v16_store(sums + j * 512 + i * 16, s[i][j]);
}

static void product(const qvl_tile_product *p, int64_t first_row, int64_t rows, int64_t first_panel,
                    int64_t panels, float *scratch) {
    int64_t row_panels = (rows + 31) / 32, eights = (rows + 7) / 8, lines = (48 + eights - 1) / eights;
    for (int64_t k = 0; k < p->steps; k += p->slice) {
        int64_t steps = p->steps - k < p->slice ? p->steps - k : p->slice;
        bool only = p->slice >= p->steps, last = k + p->slice >= p->steps;
        for (int64_t panel = 0; panel < panels; panel++) {
            const uint16_t *b = p->b + ((first_panel + panel) * p->steps + k) * 3 * QVL_TILE;
            const char *next = weights_after(p, first_panel, panels, panel, k);
            int64_t left = steps * 48; /* lines of three tiles a step */
            panel_finish f = finish_of_panel(p, first_panel + panel);
            for (int64_t r = 0; r < row_panels; r++) {
                const uint16_t *a = p->a + ((first_row / 32 + r) * p->steps + k) * 2 * QVL_TILE;
                float *sums = scratch + (only ? 0 : (panel * row_panels + r) * BLOCK_FLOATS);
                int64_t there = rows - 32 * r < 32 ? rows - 32 * r : 32;
                for (int64_t i = 0; i < there; i += 8, next += steps * lines * 64, left -= steps * lines)
                    multiply_8x48(a + i / 16 * QVL_TILE + i % 16 * 32, b, steps, k > 0, sums + i * 16, next,
                                  left > 0 ? lines : 0);
                for (int64_t i = 0; i < there && last; i++)
                    finish_row(p->kind, &f, sums + i * 16, first_row + 32 * r + i);
            }
        }
    }
}

/* ---- attention */

/* scores[keys][16 queries] of `tiles` tiles of 16 keys. */
static void score_keys(const qvl_tile_attention *a, const uint16_t *q, const uint16_t *k, int64_t tiles,
                       float *scores) {
    int64_t dim_steps = (a->head_dim + 31) / 32, pairs = a->head_dim / 2;
    for (int64_t t = 0; t < tiles; t++, k += dim_steps * QVL_TILE, scores += 256) {
        v16 s[16];
        for (int i = 0; i < 16; i++) s[i] = v16_set(0.0f);
        for (int64_t pair = 0; pair < pairs; pair++) {
            const uint16_t *kp = k + pair / 16 * QVL_TILE + pair % 16 * 2;
            __m512bh qp = load_pairs(q + pair * 32);
            for (int i = 0; i < 16; i++) s[i] = _mm512_dpbf16_ps(s[i], broadcast_pair(kp + i * 32), qp);
        }
        for (int i = 0; i < 16; i++) v16_store(scores + i * 16, s[i]);
    }
}

/* values[value_tiles * 16][16 queries] += v of the chunk x numerators. */
static void add_values(const qvl_tile_attention *a, const uint16_t *v, int64_t pairs, const uint16_t *numerator,
                       float *values) {
    int64_t tiles = (a->head_dim + 15) / 16;
    for (int64_t t = 0; t < tiles; t++, v += QVL_TILE, values += 256) {
        v16 s[16];
        for (int i = 0; i < 16; i++) s[i] = v16_load(values + i * 16);
        for (int64_t pair = 0; pair < pairs; pair++) {
            const uint16_t *vp = v + pair / 16 * tiles * QVL_TILE + pair % 16 * 2;
            __m512bh pp = load_pairs(numerator + pair * 32);
            for (int i = 0; i < 16; i++) s[i] = _mm512_dpbf16_ps(s[i], broadcast_pair(vp + i * 32), pp);
        }
        for (int i = 0; i < 16; i++) v16_store(values + i * 16, s[i]);
    }
}

static void attention(const qvl_tile_attention *a, int64_t tile, const qvl_tile_rows *out, float *scratch) {
    chunked_attention(a, tile, out, scratch, score_keys, add_values);
}

static double multiply_adds(int64_t n) {
    v16 s[8][3];
    __m512bh a = (__m512bh)_mm512_set1_epi32(0x3f003f00), b = (__m512bh)_mm512_set1_epi32(0x3e803e80);
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 3; j++) s[i][j] = v16_set((float)(i + j));
    for (int64_t l = 0; l < n; l++)
        for (int i = 0; i < 8; i++)
            for (int j = 0; j < 3; j++) s[i][j] = _mm512_dpbf16_ps(s[i][j], a, b);
    v16 all = s[0][0];
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 3; j++) all = v16_add(all, s[i][j]);
    volatile float result = v16_sum(all);
    (void)result;
    return 2.0 * 32 * 24 * (double)n;
}

const qvl_tile_kernels qvl_tile_kernels_avx512bf16 = {
    .name = "avx512bf16",
    .begin = nothing,
    .end = nothing,
    .product = product,
    .attention = attention,
    .split = split_rows,
    .round = round_to_bf16,
    .multiply_adds = multiply_adds,
};

/* ---- the decoder's */

#include "compute/cpu/decoder_tile.h"

/* Dot products run over 16 pairs of k side by side, whose sums are added at the end of a slice; slices are added in
 * order. A slice of eight rows of a and of six of w fits the first cache. */
#define SLICE 32 /* steps */

/* Those of 32 values that the mask names; others are not read. */
INLINE __m512i load_last(const uint8_t *p, __mmask32 mask) {
    return _mm512_maskz_loadu_epi16(mask, (const void *)p);
}

/* One row x of a, [steps][32], times eight rows of w from `column` on, which are read once, as they stream by; the next
 * eight are fetched meanwhile. Rows that w does not have are its last once more. The sums of the first slice are lanes
 * 0..7 of the result, those of the second 8..15. */
INLINE v16 dot_1x8(const qvl_tile_dot *d, const uint16_t *x, int64_t column) {
    int64_t whole = d->last == UINT32_MAX ? d->steps : d->steps - 1;
    const uint8_t *w[8];
    uintptr_t next = (uintptr_t)(column + 8 < d->columns ? d->w + (size_t)(column + 8) * d->row_bytes : d->next);
    v16 s[16];
    for (int c = 0; c < 8; c++)
        w[c] = d->w + (size_t)(column + c < d->columns ? column + c : d->columns - 1) * d->row_bytes;
    for (int c = 0; c < 16; c++) s[c] = v16_set(0.0f);
    for (int slice = 0; slice < 2; slice++) {
        int64_t first = slice * SLICE, end = first + SLICE < whole ? first + SLICE : whole;
        for (int64_t step = first; step < end; step++) {
            __m512bh xs = load_pairs(x + step * 32);
            for (int c = 0; c < 8; c++) {
                const uint8_t *from = w[c] + step * 64;
                _mm_prefetch((const char *)(next + (size_t)c * d->row_bytes + (size_t)step * 64), _MM_HINT_T1);
                s[slice * 8 + c] =
                    _mm512_dpbf16_ps(s[slice * 8 + c], xs, (__m512bh)_mm512_loadu_si512((const void *)from));
            }
        }
        if (whole == d->steps || whole / SLICE != slice) continue;
        for (int c = 0; c < 8; c++)
            s[slice * 8 + c] = _mm512_dpbf16_ps(s[slice * 8 + c], load_pairs(x + whole * 32),
                                                (__m512bh)load_last(w[c] + whole * 64, d->last));
    }
    return sums_of_16(s);
}

/* Columns first.. of row i. */
static void dot_row(const qvl_tile_dot *d, const uint16_t *x, int64_t i, int64_t first) {
    for (int64_t c = first; c < d->columns; c += 8) {
        __mmask8 mask = (__mmask8)(d->columns - c < 8 ? (1u << (d->columns - c)) - 1u : 0xffu);
        float *to = d->sums + i * QVL_DOT_COLUMNS + c;
        v16 both = dot_1x8(d, x, c);
        __m256 sum = _mm512_castps512_ps256(both);
        if (d->add) sum = _mm256_add_ps(_mm256_maskz_loadu_ps(mask, to), sum);
        if (d->steps > SLICE) sum = _mm256_add_ps(sum, _mm512_extractf32x8_ps(both, 1));
        _mm256_mask_storeu_ps(to, mask, sum);
    }
}

/* Four rows of a, of [steps][8][32], times six of w, [steps][6][32]: sums of columns 0..3 go to results [4][8], the
 * vectors of columns 4 and 5 to rest. */
INLINE void dot_4x6(const uint16_t *x, const uint16_t *w, int64_t steps, float *results, v16 rest[8]) {
    v16 s[4][6];
    for (int i = 0; i < 4; i++)
        for (int c = 0; c < 6; c++) s[i][c] = v16_set(0.0f);
    for (int64_t step = 0; step < steps; step++, x += 256, w += 192) {
        __m512bh xs[4];
        for (int i = 0; i < 4; i++) xs[i] = load_pairs(x + i * 32);
        for (int c = 0; c < 6; c++) {
            __m512bh y = load_pairs(w + c * 32);
            for (int i = 0; i < 4; i++) s[i][c] = _mm512_dpbf16_ps(s[i][c], xs[i], y);
        }
    }
    v16 first[16];
    for (int i = 0; i < 16; i++) first[i] = s[i / 4][i % 4];
    for (int i = 0; i < 8; i++) rest[i] = s[i / 2][4 + i % 2];
    v16 sums = sums_of_16(first);
    _mm_storeu_ps(results, _mm512_extractf32x4_ps(sums, 0));
    _mm_storeu_ps(results + 8, _mm512_extractf32x4_ps(sums, 1));
    _mm_storeu_ps(results + 16, _mm512_extractf32x4_ps(sums, 2));
    _mm_storeu_ps(results + 24, _mm512_extractf32x4_ps(sums, 3));
}

static void dot_8x6(const uint16_t *x, const uint16_t *w, int64_t steps, bool add, float *out) {
    float results[8 * 8], pairs[16];
    v16 rest[16];
    dot_4x6(x, w, steps, results, rest);
    dot_4x6(x + 128, w, steps, results + 32, rest + 8);
    v16_store(pairs, sums_of_16(rest));
    for (int i = 0; i < 8; i++, out += QVL_DOT_COLUMNS) {
        memcpy(results + i * 8 + 4, pairs + 2 * i, 2 * sizeof *pairs);
        __m256 sum = _mm256_loadu_ps(results + i * 8);
        if (add) sum = _mm256_add_ps(_mm256_maskz_loadu_ps(0x3f, out), sum);
        _mm256_mask_storeu_ps(out, 0x3f, sum);
    }
}

/* `count` rows of left tiles, from row i on, to [steps][count][32]: tiles lie too far apart for the first cache. */
INLINE void gather_rows(const qvl_tile_dot *d, int64_t i, int count, int64_t step, int64_t steps, uint16_t *out) {
    const uint16_t *a = d->a + qvl_tile_offset(d->a_steps, i, step);
    for (int64_t s = 0; s < steps; s++, a += 2 * QVL_TILE, out += count * 32)
        for (int r = 0; r < count; r++)
            _mm512_storeu_si512((void *)(out + r * 32), _mm512_loadu_si512((const void *)(a + r * 32)));
}

/* Fetches eight rows from i on for the next gather. */
INLINE void fetch_rows(const qvl_tile_dot *d, int64_t i, int64_t step, int64_t steps) {
    const uint16_t *a = d->a + qvl_tile_offset(d->a_steps, i, step);
    for (int64_t s = 0; s < steps; s++, a += 2 * QVL_TILE)
        for (int r = 0; r < 8; r++) _mm_prefetch((const char *)(a + r * 32), _MM_HINT_T1);
}

/* Sixes of rows of w to [sixes][steps][6][32]: rows as they lie may all fall into the same set of the first cache. */
static void gather_sixes(const qvl_tile_dot *d, int64_t columns, int64_t step, int64_t steps, uint16_t *out) {
    for (int64_t c = 0; c < columns; c++) {
        const uint8_t *w = d->w + (size_t)c * d->row_bytes + step * 64;
        uint16_t *to = out + c / 6 * steps * 192 + c % 6 * 32;
        for (int64_t s = 0; s < steps; s++)
            _mm512_storeu_si512((void *)(to + s * 192),
                                load_last(w + s * 64, step + s + 1 < d->steps ? UINT32_MAX : d->last));
    }
}

/* rows and columns: multiples of eight and six. */
static void dot_blocks(const qvl_tile_dot *d, int64_t rows, int64_t columns) {
    uint16_t *w = d->scratch, *x = w + SLICE * QVL_DOT_COLUMNS * 32;
    for (int64_t step = 0; step < d->steps; step += SLICE) {
        int64_t steps = d->steps - step < SLICE ? d->steps - step : SLICE;
        gather_sixes(d, columns, step, steps, w);
        for (int64_t i = 0; i < rows; i += 8) {
            gather_rows(d, i, 8, step, steps, x);
            if (i + 8 < rows) fetch_rows(d, i + 8, step, steps);
            for (int64_t c = 0; c < columns; c += 6)
                dot_8x6(x, w + c / 6 * steps * 192, steps, d->add || step > 0, d->sums + i * QVL_DOT_COLUMNS + c);
        }
    }
}

static void dot(const qvl_tile_dot *d) {
    int64_t eights = d->rows / 8 * 8, sixes = d->columns / 6 * 6;
    if (eights) dot_blocks(d, eights, sixes);
    for (int64_t i = 0; i < d->rows; i++) {
        int64_t first = i < eights ? sixes : 0; /* what the blocks left */
        if (first == d->columns) continue;
        gather_rows(d, i, 1, 0, d->steps, d->scratch);
        dot_row(d, d->scratch, i, first);
    }
}

const qvl_decoder_tiles qvl_decoder_tiles_avx512bf16 = {
    .expand = expand,
    .dot = dot,
    .finish = finish_sums,
    .right_tiles = right_tiles,
    .attend = attend,
    .join = join,
    .result = result,
};
