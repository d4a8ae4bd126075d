#include "lm/kv_cache.h"

#include "base/memory.h"

#include <stdatomic.h>
#include <string.h>

/* Before a page's first layer. */
typedef struct page_head {
    atomic_int owners;
} page_head;

#define HEAD_BYTES QVL_ALIGN

static page_head *head_of(uint8_t *page) {
    return (page_head *)(void *)(page - HEAD_BYTES);
}

static size_t page_bytes(const qvl_kv_cache *cache) {
    return cache->layer_bytes * (size_t)cache->layers;
}

static uint8_t *page_new(const qvl_kv_cache *cache, const uint8_t *contents) {
    uint8_t *block = qvl_alloc(HEAD_BYTES + page_bytes(cache), 1);
    if (!block) return NULL;
    uint8_t *page = block + HEAD_BYTES;
    if (contents)
        memcpy(page, contents, page_bytes(cache));
    else
        memset(page, 0, page_bytes(cache));
    atomic_init(&head_of(page)->owners, 1);
    return page;
}

static void page_release(uint8_t *page) {
    if (atomic_fetch_sub_explicit(&head_of(page)->owners, 1, memory_order_acq_rel) == 1)
        qvl_free(page - HEAD_BYTES);
}

void qvl_kv_cache_init(const qvl_compute *compute, int64_t layers, int64_t kv_heads, int64_t head_dim,
                       qvl_kv_cache *cache) {
    *cache = (qvl_kv_cache){.layers = layers, .kv_heads = kv_heads, .head_dim = head_dim};
    cache->layer_bytes = qvl_kv_page_bytes(compute, kv_heads, head_dim);
}

void qvl_kv_cache_free(qvl_kv_cache *cache) {
    for (int64_t i = 0; i < cache->page_count; i++) page_release(cache->pages[i]);
    qvl_free(cache->pages);
    *cache = (qvl_kv_cache){0};
}

static int64_t pages_of(int64_t entries) {
    return (entries + QVL_KV_PAGE - 1) / QVL_KV_PAGE;
}

size_t qvl_kv_cache_bytes(const qvl_kv_cache *cache, int64_t entries) {
    size_t bytes;
    if (!qvl_mul_size(page_bytes(cache), (size_t)pages_of(entries), &bytes)) return SIZE_MAX;
    return bytes;
}

static bool grow_table(qvl_kv_cache *cache, int64_t pages) {
    if (pages <= cache->capacity) return true;
    int64_t capacity = 2 * cache->capacity > pages ? 2 * cache->capacity : pages;
    uint8_t **table = qvl_alloc((size_t)capacity, sizeof *table);
    if (!table) return false;
    if (cache->page_count) memcpy(table, cache->pages, (size_t)cache->page_count * sizeof *table);
    qvl_free(cache->pages);
    cache->pages = table;
    cache->capacity = capacity;
    return true;
}

qvl_status qvl_kv_cache_reserve(qvl_kv_cache *cache, int64_t from, int64_t to, qvl_error *error) {
    int64_t pages = pages_of(to), had = cache->page_count, partial = from / QVL_KV_PAGE;
    bool room = grow_table(cache, pages);
    if (room && partial < had &&
        atomic_load_explicit(&head_of(cache->pages[partial])->owners, memory_order_acquire) > 1) {
        uint8_t *own = page_new(cache, cache->pages[partial]);
        if (own) {
            page_release(cache->pages[partial]);
            cache->pages[partial] = own;
        }
        room = own != NULL;
    }
    while (room && cache->page_count < pages) {
        uint8_t *page = page_new(cache, NULL);
        if (page) cache->pages[cache->page_count++] = page;
        room = page != NULL;
    }
    if (room) return QVL_OK;
    while (cache->page_count > had) page_release(cache->pages[--cache->page_count]);
    return qvl_fail_memory(error, "keys and values", (size_t)(pages - had), page_bytes(cache));
}

void qvl_kv_cache_cut(qvl_compute *compute, qvl_kv_cache *cache, int64_t length) {
    int64_t pages = pages_of(length);
    while (cache->page_count > pages) page_release(cache->pages[--cache->page_count]);
    if (length % QVL_KV_PAGE == 0) return;
    /* A shared page stays as it is: what stands behind is what others stored, which is finite. */
    if (atomic_load_explicit(&head_of(cache->pages[pages - 1])->owners, memory_order_acquire) > 1) return;
    for (int64_t layer = 0; layer < cache->layers; layer++) {
        qvl_kv kv = qvl_kv_cache_layer(cache, layer);
        qvl_kv_clear(compute, &kv, length);
    }
}

qvl_status qvl_kv_cache_share(const qvl_kv_cache *cache, qvl_kv_cache *copy, qvl_error *error) {
    *copy = *cache;
    copy->pages = NULL;
    copy->page_count = copy->capacity = 0;
    if (!grow_table(copy, cache->page_count ? cache->page_count : 1))
        return qvl_fail_memory(error, "page table", (size_t)cache->page_count, sizeof *cache->pages);
    for (int64_t i = 0; i < cache->page_count; i++) {
        atomic_fetch_add_explicit(&head_of(cache->pages[i])->owners, 1, memory_order_relaxed);
        copy->pages[i] = cache->pages[i];
    }
    copy->page_count = cache->page_count;
    return QVL_OK;
}

qvl_kv qvl_kv_cache_layer(const qvl_kv_cache *cache, int64_t layer) {
    return (qvl_kv){cache->kv_heads, cache->head_dim, cache->pages, (size_t)layer * cache->layer_bytes};
}
