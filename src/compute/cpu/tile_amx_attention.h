/* Attention on AMX for head widths 64, 72 and 80: 16 queries against 32 keys at a time, interleaved. Step j multiplies
 * the scores of key block j+1, takes the powers of block j and multiplies the values of block j-1: the three depend on
 * each other only from one step to the next. The values stay in tiles 0..4 throughout. Keys and values are read once
 * per 16 queries, by loads that do not drive the rest out of L1. For tile_amx.c alone. */
#ifndef QVL_COMPUTE_CPU_TILE_AMX_ATTENTION_H
#define QVL_COMPUTE_CPU_TILE_AMX_ATTENTION_H

#include "compute/cpu/tile_avx512.h"

/* Numerators reach 2^32 before what is subtracted from the scores is raised: sums of a million of them stay far below
 * the largest float. */
#define HEADROOM 32.0f

/* What a specialised loop is made for. */
typedef struct interleaving {
    int dim_steps, value_tiles;
    bool ones;    /* the values have a row of ones, whose product is the sum */
    bool tracked; /* scores may be large: a maximum is subtracted */
} interleaving;

typedef struct interleaved_queries {
    const uint16_t *q, *k, *v;
    int64_t keys;
    float *values;
    float *scores;        /* [2][32 keys][16 queries] */
    uint16_t *numerators; /* [2] right tiles */
    v16 top, most;        /* tracked: what is subtracted, and the largest score seen */
    v16 sum, sum_before;  /* without ones; before: without the block whose powers are taken */
} interleaved_queries;

INLINE void take_pair(interleaving s, interleaved_queries *r, v16 s0, v16 s1, uint16_t *out) {
    if (s.tracked) {
        r->most = v16_max(s0, v16_max(s1, r->most));
        s0 = v16_sub(s0, r->top);
        s1 = v16_sub(s1, r->top);
    }
    __m512i pair = numerators(s0, s1, out);
    if (!s.ones) r->sum = add_numerators(r->sum, pair);
}

INLINE void take_pairs(interleaving s, interleaved_queries *r, int64_t j, int first, int count) {
    const float *scores = r->scores + (j & 1) * 512 + first * 32;
    uint16_t *out = r->numerators + (j & 1) * 512 + first * 32;
    for (int i = 0; i < count; i++)
        take_pair(s, r, v16_load(scores + i * 32), v16_load(scores + i * 32 + 16), out + i * 32);
}

/* All pairs of a block in which keys may be missing. */
INLINE void take_block(interleaving s, interleaved_queries *r, int64_t j) {
    const float *scores = r->scores + (j & 1) * 512;
    uint16_t *out = r->numerators + (j & 1) * 512;
    const v16 none = v16_set(-INFINITY);
    for (int64_t i = 0; i < 16; i++) {
        int64_t count = r->keys - 32 * j - 2 * i;
        take_pair(s, r, count > 0 ? v16_load(scores + i * 32) : none,
                  count > 1 ? v16_load(scores + i * 32 + 16) : none, out + i * 32);
    }
}

/* One step of dimensions of one tile of 16 keys. */
INLINE void score_step(const uint16_t *k, const uint16_t *q) {
    _tile_stream_loadd(6, k, 64);
    _tile_loadd(7, q, 64);
    _tile_dpbf16ps(5, 6, 7);
}

INLINE void score_block(interleaving s, interleaved_queries *r, int64_t j) {
    const uint16_t *k = r->k + j * 2 * s.dim_steps * QVL_TILE;
    for (int half = 0; half < 2; half++) {
        _tile_zero(5);
        for (int d = 0; d < s.dim_steps; d++)
            score_step(k + (half * s.dim_steps + d) * QVL_TILE, r->q + d * QVL_TILE);
        _tile_stored(5, r->scores + (j & 1) * 512 + half * 256, 64);
    }
}

INLINE void value_block(interleaving s, interleaved_queries *r, int64_t j) {
    const uint16_t *v = r->v + j * s.value_tiles * QVL_TILE;
    _tile_loadd(7, r->numerators + (j & 1) * 512, 64);
    _tile_stream_loadd(6, v, 64);
    _tile_dpbf16ps(0, 6, 7);
    _tile_stream_loadd(6, v + QVL_TILE, 64);
    _tile_dpbf16ps(1, 6, 7);
    _tile_stream_loadd(6, v + 2 * QVL_TILE, 64);
    _tile_dpbf16ps(2, 6, 7);
    _tile_stream_loadd(6, v + 3 * QVL_TILE, 64);
    _tile_dpbf16ps(3, 6, 7);
    if (s.value_tiles > 4) {
        _tile_stream_loadd(6, v + 4 * QVL_TILE, 64);
        _tile_dpbf16ps(4, 6, 7);
    }
}

/* Scores of block j+1, powers of block j, values of block j-1, all of which exist and miss no key. */
INLINE void whole_step(interleaving s, interleaved_queries *r, int64_t j) {
    const uint16_t *k = r->k + (j + 1) * 2 * s.dim_steps * QVL_TILE;
    const uint16_t *v = r->v + (j - 1) * s.value_tiles * QVL_TILE;
    float *scores = r->scores + ((j + 1) & 1) * 512;
    /* pairs beside each score multiply; the others stand by the values */
    int pair = 0, share = s.dim_steps > 2 ? 1 : 2;
    for (int half = 0; half < 2; half++) {
        _tile_zero(5);
        for (int d = 0; d < s.dim_steps; d++, pair += share) {
            score_step(k + (half * s.dim_steps + d) * QVL_TILE, r->q + d * QVL_TILE);
            take_pairs(s, r, j, pair, share);
        }
        _tile_stored(5, scores + half * 256, 64);
    }
    _tile_loadd(7, r->numerators + ((j - 1) & 1) * 512, 64);
    _tile_stream_loadd(6, v, 64);
    _tile_dpbf16ps(0, 6, 7);
    take_pairs(s, r, j, pair, 2);
    _tile_stream_loadd(6, v + QVL_TILE, 64);
    _tile_dpbf16ps(1, 6, 7);
    take_pairs(s, r, j, pair + 2, 2);
    _tile_stream_loadd(6, v + 2 * QVL_TILE, 64);
    _tile_dpbf16ps(2, 6, 7);
    take_pairs(s, r, j, pair + 4, 2);
    _tile_stream_loadd(6, v + 3 * QVL_TILE, 64);
    _tile_dpbf16ps(3, 6, 7);
    take_pairs(s, r, j, pair + 6, 2);
    if (s.value_tiles > 4) {
        _tile_stream_loadd(6, v + 4 * QVL_TILE, 64);
        _tile_dpbf16ps(4, 6, 7);
        take_pairs(s, r, j, pair + 8, 2);
    }
}

INLINE void store_values(float *values) {
    _tile_stored(0, values, 64);
    _tile_stored(1, values + 256, 64);
    _tile_stored(2, values + 512, 64);
    _tile_stored(3, values + 768, 64);
    _tile_stored(4, values + 1024, 64);
}

INLINE void load_values(const float *values) {
    _tile_loadd(0, values, 64);
    _tile_loadd(1, values + 256, 64);
    _tile_loadd(2, values + 512, 64);
    _tile_loadd(3, values + 768, 64);
    _tile_loadd(4, values + 1024, 64);
}

/* The scores of block j are too large for what was subtracted: everything is scaled down and its powers are taken
 * again. */
INLINE void raise_top(interleaving s, interleaved_queries *r, int64_t j) {
    v16 top = v16_max(r->most, r->top), decay = fast_exp2(v16_sub(r->top, top));
    store_values(r->values);
    barrier();
    for (int i = 0; i < s.value_tiles * 16; i++)
        v16_store(r->values + i * 16, v16_mul(v16_load(r->values + i * 16), decay));
    barrier();
    load_values(r->values);
    r->sum = v16_mul(r->sum_before, decay);
    r->top = top;
    take_block(s, r, j);
    barrier();
}

INLINE v16 first_top(const interleaved_queries *r) {
    v16 top = v16_set(-INFINITY);
    for (int64_t i = 0; i < 32 && i < r->keys; i++) top = v16_max(v16_load(r->scores + i * 16), top);
    return top;
}

INLINE void interleaved_attention(interleaving s, const qvl_tile_attention *a, int64_t tile,
                                  const qvl_tile_rows *out, float *scratch) {
    int64_t blocks = (a->keys + 31) / 32;
    interleaved_queries r = {.q = a->q + tile * s.dim_steps * QVL_TILE,
                             .k = a->k,
                             .v = a->v,
                             .keys = a->keys,
                             .values = scratch,
                             .scores = scratch + 5 * 256,
                             .numerators = (uint16_t *)(scratch + 5 * 256 + 1024),
                             .top = v16_set(0.0f),
                             .most = v16_set(-INFINITY),
                             .sum = v16_set(0.0f)};
    zero_sums();
    score_block(s, &r, 0);
    barrier();
    if (s.tracked) r.top = first_top(&r);
    for (int64_t j = 0; j < blocks; j++) {
        r.sum_before = r.sum;
        if (j > 0 && j + 1 < blocks) {
            whole_step(s, &r, j);
        } else {
            take_block(s, &r, j);
            if (j + 1 < blocks) score_block(s, &r, j + 1);
            if (j > 0) value_block(s, &r, j - 1);
        }
        barrier();
        if (s.tracked && _mm512_cmp_ps_mask(r.most, v16_add(r.top, v16_set(HEADROOM)), _CMP_GT_OQ))
            raise_top(s, &r, j);
    }
    value_block(s, &r, blocks - 1);
    store_values(r.values);
    barrier();
    v16 sum = s.ones ? v16_load(r.values + a->head_dim * 16) : r.sum;
    put_queries(r.values, reciprocal_of_sums(sum, r.top), a->head_dim, out);
}

#endif
