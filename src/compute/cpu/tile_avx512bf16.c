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

/* sums[3][.][16] of 8 rows = or += 8 rows of left tiles x 3 right tiles, over `steps`. */
INLINE void multiply_8x48(const uint16_t *a, const uint16_t *b, int64_t steps, bool add, float *sums) {
    v16 s[8][3];
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 3; j++) s[i][j] = add ? v16_load(sums + j * 512 + i * 16) : v16_set(0.0f);
    for (int64_t step = 0; step < steps; step++, a += 2 * QVL_TILE, b += 3 * QVL_TILE)
        for (int pair = 0; pair < 16; pair++) {
            __m512bh bj[3];
            for (int j = 0; j < 3; j++) bj[j] = load_pairs(b + j * QVL_TILE + pair * 32);
            for (int i = 0; i < 8; i++) {
                __m512bh ai = broadcast_pair(a + i * 32 + pair * 2);
                for (int j = 0; j < 3; j++) s[i][j] = _mm512_dpbf16_ps(s[i][j], ai, bj[j]);
            }
        }
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 3; j++) v16_store(sums + j * 512 + i * 16, s[i][j]);
}

static void product(const qvl_tile_product *p, int64_t first_row, int64_t rows, int64_t first_panel,
                    int64_t panels, float *scratch) {
    int64_t row_panels = (rows + 31) / 32;
    for (int64_t k = 0; k < p->steps; k += p->slice) {
        int64_t steps = p->steps - k < p->slice ? p->steps - k : p->slice;
        bool only = p->slice >= p->steps, last = k + p->slice >= p->steps;
        for (int64_t panel = 0; panel < panels; panel++) {
            const uint16_t *b = p->b + ((first_panel + panel) * p->steps + k) * 3 * QVL_TILE;
            panel_finish f = finish_of_panel(p, first_panel + panel);
            for (int64_t r = 0; r < row_panels; r++) {
                const uint16_t *a = p->a + ((first_row / 32 + r) * p->steps + k) * 2 * QVL_TILE;
                float *sums = scratch + (only ? 0 : (panel * row_panels + r) * BLOCK_FLOATS);
                for (int i = 0; i < 32; i += 8)
                    multiply_8x48(a + i / 16 * QVL_TILE + i % 16 * 32, b, steps, k > 0, sums + i * 16);
                for (int i = 0; i < 32 && last; i++)
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

static void attention(const qvl_tile_attention *a, int64_t tile, float *out, float *scratch) {
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
