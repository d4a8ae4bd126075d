/* Keys and values of a sequence in pages of QVL_KV_PAGE entries, all layers of them side by side. Copies of a sequence
 * share the pages that they have in common; a page is copied before one of several owners writes to it. */
#ifndef QVL_LM_KV_CACHE_H
#define QVL_LM_KV_CACHE_H

#include "compute/decoder.h"

typedef struct qvl_kv_cache {
    int64_t layers; /* those that have keys and values */
    int64_t kv_heads, head_dim;
    size_t layer_bytes; /* of one layer's page */
    uint8_t **pages;    /* [capacity], page_count of them */
    int64_t page_count, capacity;
} qvl_kv_cache;

/* Nothing is allocated. */
void qvl_kv_cache_init(const qvl_compute *compute, int64_t layers, int64_t kv_heads, int64_t head_dim,
                       qvl_kv_cache *cache);
/* Accepts a zeroed struct. */
void qvl_kv_cache_free(qvl_kv_cache *cache);

/* Bytes that `entries` entries take, in whole pages; SIZE_MAX if they do not fit size_t. */
size_t qvl_kv_cache_bytes(const qvl_kv_cache *cache, int64_t entries);

/* Makes entries from..to-1 writable: allocates their pages, zeroed, and copies a shared one. On failure the cache holds
 * what it held. */
qvl_status qvl_kv_cache_reserve(qvl_kv_cache *cache, int64_t from, int64_t to, qvl_error *error);
/* Lets entries length.. go; what a page that stays has behind them becomes zero. */
void qvl_kv_cache_cut(qvl_compute *compute, qvl_kv_cache *cache, int64_t length);
/* *copy shares all pages. */
qvl_status qvl_kv_cache_share(const qvl_kv_cache *cache, qvl_kv_cache *copy, qvl_error *error);

/* One layer's view. */
qvl_kv qvl_kv_cache_layer(const qvl_kv_cache *cache, int64_t layer);

#endif
