#define _GNU_SOURCE
#include "cache/support.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
/* gcc has these, but not the header that declares them. */
void __sanitizer_purge_allocator(void);
size_t __sanitizer_get_current_allocated_bytes(void);
#endif

static char folder[64];
static pid_t owner;

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static void remove_folder(void) {
    if (getpid() == owner) nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *scratch(const char *name) {
    static char paths[8][512];
    static unsigned next;
    if (!folder[0]) {
        strcpy(folder, "/tmp/qvl-cache-XXXXXX");
        assert_non_null(mkdtemp(folder));
        owner = getpid();
        atexit(remove_folder);
    }
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

void make_key(uint64_t number, uint8_t key[QVL_SHA256_BYTES]) {
    assert_int_equal(qvl_sha256(&number, sizeof number, key, NULL), QVL_OK);
}

const qvl_features_shape small_shape = {QVL_BF16, 3, 64, 2};

static void *array_of(const qvl_features *f, int32_t index) {
    return index ? f->deepstack[index - 1] : f->embeds;
}

static uint64_t mix(uint64_t x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    return x ^ x >> 29;
}

/* Word i of array `array`. */
static uint64_t word(uint64_t number, int32_t array, size_t i) {
    return mix(number * 1000003 + (uint64_t)array * 7919 + i);
}

qvl_features make_features(const qvl_features_shape *shape, uint64_t number) {
    qvl_features f;
    assert_int_equal(qvl_features_alloc(shape, &f, NULL), QVL_OK);
    for (int32_t a = 0; a <= f.deepstack_count; a++) {
        uint64_t *words = array_of(&f, a);
        for (size_t i = 0; i < qvl_features_array_bytes(&f) / 8; i++) words[i] = word(number, a, i);
    }
    return f;
}

bool are_features(const qvl_features *f, const qvl_features_shape *shape, uint64_t number) {
    if (f->dtype != shape->dtype || f->tokens != shape->tokens || f->width != shape->width ||
        f->deepstack_count != shape->deepstack_count)
        return false;
    for (int32_t a = 0; a <= f->deepstack_count; a++) {
        const uint64_t *words = array_of(f, a);
        for (size_t i = 0; i < qvl_features_array_bytes(f) / 8; i++)
            if (words[i] != word(number, a, i)) return false;
    }
    return true;
}

void take_note(const char *message, void *user) {
    notes *heard = user;
    snprintf(heard->text, sizeof heard->text, "%s", message);
    heard->count++;
}

qvl_store *open_store(const char *path, int64_t budget, notes *heard) {
    qvl_store *store;
    qvl_error error = {0};
    if (qvl_store_open(path, budget, heard ? take_note : NULL, heard, &store, &error))
        fail_msg("%s", error.message);
    return store;
}

qvl_cache *open_cache(int64_t memory_bytes, const char *path, notes *heard) {
    qvl_cache_options options;
    qvl_cache_options_init(&options);
    options.memory_bytes = memory_bytes;
    options.folder = path;
    options.log = heard ? take_note : NULL;
    options.log_user = heard;
    qvl_cache *cache;
    qvl_error error = {0};
    if (qvl_cache_open(&options, &cache, &error)) fail_msg("%s", error.message);
    return cache;
}

qvl_cache_stats stats_of(qvl_cache *cache) {
    qvl_cache_stats stats;
    qvl_error error = {0};
    if (qvl_cache_get_stats(cache, &stats, &error)) fail_msg("%s", error.message);
    return stats;
}

/* What a process with address sanitizer has resident is mostly freed blocks, which wait up to 256 MB long for late
 * accesses. */
int64_t held_bytes(void) {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_purge_allocator();
    return (int64_t)__sanitizer_get_current_allocated_bytes();
#else
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d %ld", &pages), 1);
    fclose(file);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
#endif
}
