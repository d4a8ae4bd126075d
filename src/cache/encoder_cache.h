/* Features by what they show: in memory, then on disk, else encoded, once for all who ask at the same time. */
#ifndef QVL_CACHE_ENCODER_CACHE_H
#define QVL_CACHE_ENCODER_CACHE_H

#include "base/hash.h"
#include "base/wait.h"
#include "vision/features.h"

/* Where features came from. */
typedef enum qvl_found { QVL_FOUND_NOWHERE = 0, QVL_FOUND_MEMORY = 1, QVL_FOUND_DISK = 2 } qvl_found;

/* One look-up. */
typedef struct qvl_cache_call {
    uint8_t key[QVL_SHA256_BYTES];
    qvl_features_shape shape; /* what must come out */
    /* Makes what is not there; called by one thread at a time for a key. *features has no items. */
    qvl_status (*encode)(void *user, qvl_features *features, qvl_error *error);
    void *user;
    const qvl_patience *patience; /* while another thread encodes the same; NULL: as long as it takes */
} qvl_cache_call;

/* *shared has a user for the caller: qvl_shared_release. Nothing the cache forgets later changes it. If whoever
 * encodes the same fails or gives up, the next who waits encodes it. */
qvl_status qvl_cache_get(qvl_cache *cache, const qvl_cache_call *call, struct qvl_shared_features **shared,
                         qvl_found *found, qvl_error *error);

/* The key of an entry: what it shows, and the identity of the tower (content.h, qvl_tower_identity). */
qvl_status qvl_entry_key(const char *content, const char *identity, uint8_t key[QVL_SHA256_BYTES],
                         qvl_error *error);

/* The cache's folder, where fingerprints are remembered too; NULL: it has none. */
const char *qvl_cache_folder(const qvl_cache *cache);

#endif
