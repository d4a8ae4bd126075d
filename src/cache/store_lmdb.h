/* Features on disk, in LMDB: a folder that several processes share and that survives the death of any of them at any
 * moment. An entry has its length and a SHA-256 over key and content; one that does not fit them is dropped when it is
 * read. The entries that were not used for longest make room. Whatever fails is a miss, and the first time a note:
 * without its store a cache only does less. Its layout has a number that is part of the folder's name. */
#ifndef QVL_CACHE_STORE_LMDB_H
#define QVL_CACHE_STORE_LMDB_H

#include "base/hash.h"
#include "vision/features.h"

typedef struct qvl_store qvl_store;

#define QVL_STORE_LEAST ((int64_t)1 << 20) /* bytes a store may be limited to */

/* Opens the store below folder, which is there or is made (its parent must be there), for its owner only. One process
 * must not open it twice: that is an error. budget: bytes of the file, at least QVL_STORE_LEAST. folder and log must
 * outlive it. May be used by threads at once; log is called by any of them.
 * *store belongs to the caller: qvl_store_close. */
qvl_status qvl_store_open(const char *folder, int64_t budget, qvl_log_fn log, void *log_user, qvl_store **store,
                          qvl_error *error);
/* Accepts NULL and a pointer to NULL; nulls the pointer. */
void qvl_store_close(qvl_store **store);

/* Features of this shape under key; false: there are none. *features belongs to the caller: qvl_features_free. */
bool qvl_store_get(qvl_store *store, const uint8_t key[QVL_SHA256_BYTES], const qvl_features_shape *shape,
                   qvl_features *features);
/* Once it returns true the entry is there for all, whatever happens to this process. */
bool qvl_store_put(qvl_store *store, const uint8_t key[QVL_SHA256_BYTES], const qvl_features *features);

typedef struct qvl_store_totals {
    int64_t entries, bytes; /* of their values */
    int64_t dropped;        /* bad ones that this process met */
} qvl_store_totals;

qvl_status qvl_store_count(qvl_store *store, qvl_store_totals *totals, qvl_error *error);
/* Reads every entry, drops the bad ones. */
qvl_status qvl_store_verify(qvl_store *store, int64_t *good, int64_t *bad, qvl_error *error);
/* Drops all entries; gives the disk its space back if no other process has the store open. */
qvl_status qvl_store_clear(qvl_store *store, qvl_error *error);

#endif
