/* The memory tier is a hash table of entries in order of use. A flight is a key that somebody encodes: a gate that
 * lets one in at a time, and what the first who succeeded made. */
#include "cache/encoder_cache.h"

#include "base/gate.h"
#include "base/memory.h"
#include "base/options.h"
#include "cache/store_lmdb.h"

#include <stdio.h>
#include <string.h>

typedef struct entry {
    uint8_t key[QVL_SHA256_BYTES];
    struct qvl_shared_features *shared; /* one user is the cache; any other pins it */
    size_t bytes;
    struct entry *next;          /* in its bucket */
    struct entry *newer, *older; /* by use */
} entry;

typedef struct flight {
    uint8_t key[QVL_SHA256_BYTES];
    qvl_gate gate;
    int users;                        /* guarded by the cache's lock */
    struct qvl_shared_features *made; /* written inside the gate; NULL: nobody succeeded yet */
    struct flight *next;
} flight;

struct qvl_cache {
    pthread_mutex_t lock; /* of everything but the store, which has its own */
    entry **buckets;
    size_t bucket_count; /* a power of two */
    entry *newest, *oldest;
    size_t budget;
    flight *flights;
    char *folder;     /* NULL: memory only */
    qvl_store *store; /* NULL: no folder, or it cannot be used */
    qvl_cache_stats stats;
};

#define FIRST_BUCKETS 64

void qvl_cache_options_init(qvl_cache_options *options) {
    *options = (qvl_cache_options){
        .size = sizeof *options, .memory_bytes = (int64_t)512 << 20, .disk_bytes = (int64_t)2 << 30};
}

/* ---- open and close */

static void note_no_store(const qvl_cache_options *options, const qvl_error *reason) {
    if (!options->log) return;
    char line[1200];
    snprintf(line, sizeof line, "nothing is cached on disk: %s", reason->message);
    options->log(line, options->log_user);
}

static qvl_status open_store(qvl_cache *cache, const qvl_cache_options *options, qvl_error *error) {
    cache->folder = qvl_strdup(options->folder);
    if (!cache->folder) return qvl_fail_memory(error, "folder name", strlen(options->folder), 1);
    qvl_error reason = {0};
    qvl_status status = qvl_store_open(cache->folder, options->disk_bytes, options->log, options->log_user,
                                       &cache->store, &reason);
    if (status == QVL_ERROR_ARGUMENT || status == QVL_ERROR_MEMORY) {
        if (error) *error = reason;
        return status;
    }
    if (status) note_no_store(options, &reason);
    cache->stats.disk = !status;
    return QVL_OK;
}

static qvl_status check_options(const qvl_cache_options *o, qvl_error *error) {
    if (o->memory_bytes < 0 || (uint64_t)o->memory_bytes > SIZE_MAX)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "memory_bytes is %lld; allowed is 0 or more",
                        (long long)o->memory_bytes);
    if (!o->folder) return QVL_OK;
    if (!*o->folder) return qvl_fail(error, QVL_ERROR_ARGUMENT, "the name of the cache's folder is empty");
    if (o->disk_bytes < QVL_STORE_LEAST || o->disk_bytes > (int64_t)1 << 46)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "disk_bytes is %lld; allowed is %lld to %lld",
                        (long long)o->disk_bytes, (long long)QVL_STORE_LEAST, (long long)1 << 46);
    return QVL_OK;
}

qvl_status qvl_cache_open(const qvl_cache_options *given, qvl_cache **out, qvl_error *error) {
    *out = NULL;
    qvl_cache_options options;
    qvl_cache_options_init(&options);
    qvl_status status = qvl_options_take(&options, sizeof options, given, error);
    if (!status) status = check_options(&options, error);
    if (status) return status;
    qvl_cache *cache = qvl_calloc(1, sizeof *cache);
    if (!cache) return qvl_fail_memory(error, "cache", 1, sizeof *cache);
    pthread_mutex_init(&cache->lock, NULL);
    cache->budget = (size_t)options.memory_bytes;
    cache->bucket_count = FIRST_BUCKETS;
    cache->buckets = qvl_calloc(cache->bucket_count, sizeof(entry *));
    if (!cache->buckets) status = qvl_fail_memory(error, "cache", cache->bucket_count, sizeof(entry *));
    if (!status && options.folder) status = open_store(cache, &options, error);
    cache->stats.memory_budget = options.memory_bytes;
    cache->stats.disk_budget = cache->stats.disk ? options.disk_bytes : 0;
    if (status) qvl_cache_close(&cache);
    *out = cache;
    return status;
}

const char *qvl_cache_folder(const qvl_cache *cache) {
    return cache->folder;
}

/* ---- the memory tier; the lock is held */

static entry **bucket_of(const qvl_cache *cache, const uint8_t *key) {
    uint64_t hash;
    memcpy(&hash, key, sizeof hash);
    return &cache->buckets[hash & (cache->bucket_count - 1)];
}

static entry *find(const qvl_cache *cache, const uint8_t *key) {
    entry *e = *bucket_of(cache, key);
    while (e && memcmp(e->key, key, sizeof e->key) != 0) e = e->next;
    return e;
}

static void unlink_use(qvl_cache *cache, entry *e) {
    *(e->newer ? &e->newer->older : &cache->newest) = e->older;
    *(e->older ? &e->older->newer : &cache->oldest) = e->newer;
}

static void make_newest(qvl_cache *cache, entry *e) {
    e->newer = NULL;
    e->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = e;
    cache->newest = e;
}

static void forget(qvl_cache *cache, entry *e) {
    entry **at = bucket_of(cache, e->key);
    while (*at != e) at = &(*at)->next;
    *at = e->next;
    unlink_use(cache, e);
    cache->stats.memory_entries--;
    cache->stats.memory_bytes -= (int64_t)e->bytes;
    qvl_shared_release(e->shared);
    qvl_free(e);
}

static bool pinned(const entry *e) {
    return atomic_load_explicit(&e->shared->users, memory_order_acquire) > 1;
}

/* Forgets the entries used longest ago that nobody uses now, if that makes room. */
static bool make_room(qvl_cache *cache, size_t bytes) {
    if (bytes > cache->budget) return false;
    size_t used = (size_t)cache->stats.memory_bytes, goal = cache->budget - bytes, left = used;
    for (entry *e = cache->oldest; e && left > goal; e = e->newer)
        if (!pinned(e)) left -= e->bytes;
    if (left > goal) return false;
    for (entry *e = cache->oldest, *newer; e && (size_t)cache->stats.memory_bytes > goal; e = newer) {
        newer = e->newer;
        if (pinned(e)) continue;
        forget(cache, e);
        cache->stats.evicted++;
    }
    return (size_t)cache->stats.memory_bytes <= goal;
}

/* Without memory for more buckets the old ones just get fuller. */
static void add_buckets(qvl_cache *cache) {
    size_t count = cache->bucket_count, more = 2 * count;
    entry **old = cache->buckets, **buckets = qvl_calloc(more, sizeof *buckets);
    if (!buckets) return;
    cache->buckets = buckets;
    cache->bucket_count = more;
    for (size_t i = 0; i < count; i++) {
        for (entry *e = old[i], *next; e; e = next) {
            next = e->next;
            entry **at = bucket_of(cache, e->key);
            e->next = *at;
            *at = e;
        }
    }
    qvl_free(old);
}

/* Keeps features if there is room; if not, those who asked have them all the same. */
static void keep(qvl_cache *cache, const uint8_t *key, struct qvl_shared_features *shared) {
    size_t bytes = qvl_features_bytes(&shared->features) + sizeof(entry) + sizeof *shared;
    if (find(cache, key) || !make_room(cache, bytes)) return;
    entry *e = qvl_alloc(1, sizeof *e);
    if (!e) return;
    *e = (entry){.shared = qvl_shared_retain(shared), .bytes = bytes};
    memcpy(e->key, key, sizeof e->key);
    if ((size_t)cache->stats.memory_entries >= cache->bucket_count) add_buckets(cache);
    entry **at = bucket_of(cache, key);
    e->next = *at;
    *at = e;
    make_newest(cache, e);
    cache->stats.memory_entries++;
    cache->stats.memory_bytes += (int64_t)bytes;
}

/* ---- flights */

static flight *join_flight(qvl_cache *cache, const uint8_t *key) {
    flight *f = cache->flights;
    while (f && memcmp(f->key, key, sizeof f->key) != 0) f = f->next;
    if (!f) {
        f = qvl_calloc(1, sizeof *f);
        if (!f) return NULL;
        memcpy(f->key, key, sizeof f->key);
        qvl_gate_open(&f->gate, 1);
        f->next = cache->flights;
        cache->flights = f;
    }
    f->users++;
    return f;
}

static void leave_flight(qvl_cache *cache, flight *f) {
    if (--f->users) return;
    flight **at = &cache->flights;
    while (*at != f) at = &(*at)->next;
    *at = f->next;
    qvl_shared_release(f->made);
    qvl_gate_close(&f->gate);
    qvl_free(f);
}

/* ---- looking up */

/* From memory, or a flight to wait in for it; both NULL: no memory. */
static flight *board(qvl_cache *cache, const uint8_t *key, struct qvl_shared_features **shared) {
    flight *f = NULL;
    pthread_mutex_lock(&cache->lock);
    entry *e = find(cache, key);
    if (e) {
        unlink_use(cache, e);
        make_newest(cache, e);
        *shared = qvl_shared_retain(e->shared);
        cache->stats.memory_hits++;
    } else {
        f = join_flight(cache, key);
    }
    pthread_mutex_unlock(&cache->lock);
    return f;
}

static void land(qvl_cache *cache, flight *f) {
    pthread_mutex_lock(&cache->lock);
    leave_flight(cache, f);
    pthread_mutex_unlock(&cache->lock);
}

/* From disk, or encoded. */
static qvl_status make(qvl_cache *cache, const qvl_cache_call *call, struct qvl_shared_features **shared,
                       qvl_found *found, qvl_error *error) {
    qvl_features features = {0};
    qvl_status status = QVL_OK;
    *found = QVL_FOUND_NOWHERE;
    if (cache->store && qvl_store_get(cache->store, call->key, &call->shape, &features))
        *found = QVL_FOUND_DISK;
    else
        status = call->encode(call->user, &features, error);
    return status ? status : qvl_features_share(&features, shared, error);
}

static void count(qvl_cache *cache, qvl_found found) {
    ++*(found == QVL_FOUND_MEMORY ? &cache->stats.shared
        : found == QVL_FOUND_DISK ? &cache->stats.disk_hits
                                  : &cache->stats.encoded);
}

/* Inside the flight's gate: what another flight mate made, or else. */
static qvl_status pilot(qvl_cache *cache, flight *f, const qvl_cache_call *call,
                        struct qvl_shared_features **shared, qvl_found *found, qvl_error *error) {
    *found = QVL_FOUND_MEMORY;
    if (f->made)
        *shared = qvl_shared_retain(f->made);
    else {
        qvl_status status = make(cache, call, shared, found, error);
        if (status) return status;
        f->made = qvl_shared_retain(*shared);
    }
    pthread_mutex_lock(&cache->lock);
    count(cache, *found);
    if (*found != QVL_FOUND_MEMORY) keep(cache, call->key, *shared);
    pthread_mutex_unlock(&cache->lock);
    return QVL_OK;
}

qvl_status qvl_cache_get(qvl_cache *cache, const qvl_cache_call *call, struct qvl_shared_features **shared,
                         qvl_found *found, qvl_error *error) {
    *shared = NULL;
    *found = QVL_FOUND_MEMORY;
    flight *f = board(cache, call->key, shared);
    if (*shared) return QVL_OK;
    if (!f) return qvl_fail_memory(error, "look-up in the cache", 1, sizeof *f);
    qvl_status status;
    if (qvl_gate_enter(&f->gate, call->patience)) {
        status = pilot(cache, f, call, shared, found, error);
        qvl_gate_leave(&f->gate);
    } else {
        status = qvl_fail(error, QVL_ERROR_CANCELLED, "encoding was cancelled while another request did the same");
    }
    land(cache, f);
    /* Behind the gate: nobody waits for the disk but this thread. */
    if (!status && *found == QVL_FOUND_NOWHERE && cache->store)
        qvl_store_put(cache->store, call->key, &(*shared)->features);
    return status;
}

qvl_status qvl_entry_key(const char *content, const char *identity, uint8_t key[QVL_SHA256_BYTES],
                         qvl_error *error) {
    const qvl_part parts[] = {
        {"qvl entry 1\n", 12}, {content, QVL_SHA256_HEX - 1}, {identity, QVL_SHA256_HEX - 1}};
    return qvl_sha256_parts(parts, 3, key, error);
}

/* ---- the public calls */

static void forget_all(qvl_cache *cache) {
    while (cache->oldest) forget(cache, cache->oldest);
}

void qvl_cache_close(qvl_cache **pointer) {
    if (!pointer || !*pointer) return;
    qvl_cache *cache = *pointer;
    *pointer = NULL;
    forget_all(cache);
    qvl_store_close(&cache->store);
    pthread_mutex_destroy(&cache->lock);
    qvl_free(cache->buckets);
    qvl_free(cache->folder);
    qvl_free(cache);
}

qvl_status qvl_cache_get_stats(qvl_cache *cache, qvl_cache_stats *stats, qvl_error *error) {
    qvl_store_totals totals = {0};
    qvl_status status = cache->store ? qvl_store_count(cache->store, &totals, error) : QVL_OK;
    pthread_mutex_lock(&cache->lock);
    *stats = cache->stats;
    pthread_mutex_unlock(&cache->lock);
    stats->disk_entries = totals.entries;
    stats->disk_bytes = totals.bytes;
    stats->dropped = totals.dropped;
    return status;
}

qvl_status qvl_cache_verify(qvl_cache *cache, int64_t *good, int64_t *bad, qvl_error *error) {
    *good = *bad = 0;
    return cache->store ? qvl_store_verify(cache->store, good, bad, error) : QVL_OK;
}

qvl_status qvl_cache_clear(qvl_cache *cache, qvl_error *error) {
    pthread_mutex_lock(&cache->lock);
    forget_all(cache);
    pthread_mutex_unlock(&cache->lock);
    return cache->store ? qvl_store_clear(cache->store, error) : QVL_OK;
}
