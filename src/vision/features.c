#include "vision/features.h"

#include "base/memory.h"
#include "preprocess/item.h"

size_t qvl_features_array_bytes(const qvl_features *f) {
    return (size_t)f->tokens * (size_t)f->width * qvl_dtype_bits(f->dtype) / 8;
}

size_t qvl_features_bytes(const qvl_features *f) {
    return qvl_features_array_bytes(f) * (size_t)(1 + f->deepstack_count);
}

qvl_status qvl_features_alloc(const qvl_features_shape *shape, qvl_features *f, qvl_error *error) {
    *f = (qvl_features){.dtype = shape->dtype,
                        .tokens = shape->tokens,
                        .width = shape->width,
                        .deepstack_count = shape->deepstack_count};
    size_t count = (size_t)f->tokens * (size_t)f->width, element = qvl_dtype_bits(f->dtype) / 8;
    f->embeds = qvl_alloc(count, element);
    bool complete = f->embeds != NULL;
    for (int32_t i = 0; i < f->deepstack_count; i++) {
        f->deepstack[i] = qvl_alloc(count, element);
        complete = complete && f->deepstack[i];
    }
    if (complete) return QVL_OK;
    qvl_features_free(f);
    return qvl_fail_memory(error, "features", count, element);
}

static void free_arrays(qvl_features *f) {
    qvl_free(f->embeds);
    for (int32_t i = 0; i < QVL_MAX_DEEPSTACK; i++) qvl_free(f->deepstack[i]);
}

void qvl_features_free(qvl_features *features) {
    if (!features) return;
    if (features->shared)
        qvl_shared_release(features->shared);
    else
        free_arrays(features);
    qvl_items_free(features->items, features->item_count);
    *features = (qvl_features){0};
}

qvl_status qvl_features_share(qvl_features *features, struct qvl_shared_features **shared, qvl_error *error) {
    *shared = qvl_alloc(1, sizeof **shared);
    if (!*shared) {
        qvl_features_free(features);
        return qvl_fail_memory(error, "features", 1, sizeof **shared);
    }
    atomic_init(&(*shared)->users, 1);
    (*shared)->features = *features;
    *features = (qvl_features){0};
    return QVL_OK;
}

struct qvl_shared_features *qvl_shared_retain(struct qvl_shared_features *shared) {
    atomic_fetch_add_explicit(&shared->users, 1, memory_order_relaxed);
    return shared;
}

void qvl_shared_release(struct qvl_shared_features *shared) {
    if (!shared || atomic_fetch_sub_explicit(&shared->users, 1, memory_order_acq_rel) != 1) return;
    free_arrays(&shared->features);
    qvl_free(shared);
}

qvl_features qvl_shared_view(struct qvl_shared_features *shared) {
    qvl_features view = shared->features;
    view.shared = qvl_shared_retain(shared);
    return view;
}
