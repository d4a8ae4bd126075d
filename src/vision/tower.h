/* The vision tower: patch rows -> features (vision_tower.md). */
#ifndef QVL_VISION_TOWER_H
#define QVL_VISION_TOWER_H

#include "compute/compute.h"
#include "model/weights.h"

typedef struct qvl_norm {
    float *weight, *bias; /* [d] */
} qvl_norm;

typedef struct qvl_tower_block {
    qvl_norm norm1, norm2;
    qvl_weight qkv, proj, fc1, fc2;
} qvl_tower_block;

typedef struct qvl_merger {
    qvl_norm norm; /* over d in the main merger, over merge^2 * d in a deepstack merger */
    qvl_weight fc1, fc2;
} qvl_merger;

/* Raised whenever features of equal rows and weights change by a bit: what is cached on disk is then not found. */
#define QVL_NUMERICS 1

/* Packed weights, in one block of memory. */
typedef struct qvl_tower {
    qvl_vision_config config;
    qvl_weight patch_embed;
    float *pos_embed; /* [num_position_embeddings, d] */
    qvl_tower_block *blocks;
    qvl_merger merger;
    qvl_merger deepstack[QVL_MAX_DEEPSTACK];
    void *memory;
} qvl_tower;

/* pack.c. The raw tensors are only read. Owner: the caller, qvl_tower_free (accepts NULL). */
qvl_status qvl_tower_pack(qvl_compute *compute, const qvl_vision_config *config, const qvl_raw_tower *raw,
                          qvl_tower **tower, qvl_error *error);
void qvl_tower_free(qvl_tower *tower);
/* Bytes of the packed weights, before there are any; SIZE_MAX if they do not fit size_t. */
size_t qvl_tower_bytes(const qvl_compute *compute, const qvl_vision_config *config);

/* One run of the tower. Exactly one of patches and hidden is given. */
typedef struct qvl_tower_call {
    const float *patches; /* [rows, patch columns] */
    float *hidden;        /* [rows, d]: read, then overwritten by the last block's output */
    const qvl_grid *grids;
    size_t grid_count;
    qvl_encode_options options;
    qvl_features *features; /* filled, items excepted; NULL: no mergers */
} qvl_tower_call;

/* Scratch of a session: grows to the largest call seen. */
typedef struct qvl_scratch {
    uint8_t *base;
    size_t capacity;
} qvl_scratch;

/* Bytes of scratch of a call with these grids. tap: whether taps are on. */
qvl_status qvl_tower_scratch_bytes(const qvl_vision_config *config, const qvl_compute *compute,
                                   const qvl_grid *grids, size_t grid_count, bool tap, size_t *bytes,
                                   qvl_error *error);

/* On failure features is left empty. */
qvl_status qvl_tower_run(const qvl_tower *tower, qvl_compute *compute, qvl_scratch *scratch,
                         const qvl_tower_call *call, qvl_error *error);

#endif
