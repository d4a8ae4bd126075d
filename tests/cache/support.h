/* What the tests of the cache share: folders that are removed, and features by a formula. */
#ifndef QVL_TESTS_CACHE_SUPPORT_H
#define QVL_TESTS_CACHE_SUPPORT_H

#include "cache/encoder_cache.h"
#include "cache/store_lmdb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A path in a folder of this process's own, removed with all it holds when it ends. The last eight stay valid. */
const char *scratch(const char *name);

/* Key number `number`. */
void make_key(uint64_t number, uint8_t key[QVL_SHA256_BYTES]);

extern const qvl_features_shape small_shape; /* 3 tokens of 64, two deepstack arrays, bf16 */

/* Every byte depends on the number. Owner: the caller, qvl_features_free. */
qvl_features make_features(const qvl_features_shape *shape, uint64_t number);
bool are_features(const qvl_features *features, const qvl_features_shape *shape, uint64_t number);

/* Keeps the last note in text, and counts. */
typedef struct notes {
    char text[1200];
    int count;
} notes;
void take_note(const char *message, void *user);

qvl_store *open_store(const char *folder, int64_t budget, notes *heard);
qvl_cache *open_cache(int64_t memory_bytes, const char *folder, notes *heard);
qvl_cache_stats stats_of(qvl_cache *cache);

/* Bytes of memory that this process holds: resident, or allocated and not freed where address sanitizer counts. */
int64_t held_bytes(void);

#endif
