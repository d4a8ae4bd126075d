/* Features in memory: made, counted, freed. Arrays that several results show at once are shared and never written
 * to again. */
#ifndef QVL_VISION_FEATURES_H
#define QVL_VISION_FEATURES_H

#include "base/error.h"

#include <stdatomic.h>

/* What an encoding of some rows comes to. */
typedef struct qvl_features_shape {
    qvl_dtype dtype;
    int64_t tokens, width;
    int32_t deepstack_count;
} qvl_features_shape;

/* Arrays that are not written to yet, no items. On failure features is empty.
 * *features belongs to the caller: qvl_features_free. */
qvl_status qvl_features_alloc(const qvl_features_shape *shape, qvl_features *features, qvl_error *error);
/* Bytes of one array, and of all of them. */
size_t qvl_features_array_bytes(const qvl_features *features);
size_t qvl_features_bytes(const qvl_features *features);

struct qvl_shared_features {
    atomic_int users;
    qvl_features features; /* the arrays; no items, owner NULL */
};

/* Takes features, which has no items, whether it succeeds or not. *shared has one user, the caller:
 * qvl_shared_release. */
qvl_status qvl_features_share(qvl_features *features, struct qvl_shared_features **shared, qvl_error *error);
struct qvl_shared_features *qvl_shared_retain(struct qvl_shared_features *shared);
/* The last user frees. Accepts NULL. */
void qvl_shared_release(struct qvl_shared_features *shared);
/* The arrays as features of their own, one user more: qvl_features_free. */
qvl_features qvl_shared_view(struct qvl_shared_features *shared);

#endif
