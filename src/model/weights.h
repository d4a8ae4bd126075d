/* The vision tower's tensors of a folder, found and checked, still in the mapped files. */
#ifndef QVL_MODEL_WEIGHTS_H
#define QVL_MODEL_WEIGHTS_H

#include "model/config.h"
#include "model/safetensors.h"

/* weight [out, in] row-major, bias [out]. */
typedef struct qvl_raw_linear {
    qvl_tensor weight, bias;
} qvl_raw_linear;

/* weight [d], bias [d]. */
typedef struct qvl_raw_norm {
    qvl_tensor weight, bias;
} qvl_raw_norm;

typedef struct qvl_raw_block {
    qvl_raw_norm norm1, norm2;
    qvl_raw_linear qkv, proj, fc1, fc2;
} qvl_raw_block;

typedef struct qvl_raw_merger {
    qvl_raw_norm norm;
    qvl_raw_linear fc1, fc2;
} qvl_raw_merger;

/* dtypes are F32, BF16 or F16, tensor by tensor; data has no alignment (see safetensors.h). patch_embed.weight is
 * [d, C, tp, p, p] in Hugging Face order. */
typedef struct qvl_raw_tower {
    qvl_raw_linear patch_embed;
    qvl_tensor pos_embed;  /* [num_position_embeddings, d] */
    qvl_raw_block *blocks; /* [depth] */
    qvl_raw_merger merger;
    qvl_raw_merger deepstack[QVL_MAX_DEEPSTACK];
    char prefix[64];
    char dtype[16]; /* "BF16", ... or "mixed" */
    int32_t tensor_count, file_count;
    int64_t parameter_count;
    qvl_safetensors *files;
} qvl_raw_tower;

/* Hugging Face folders: model.safetensors, else the shards of model.safetensors.index.json that hold the tower.
 * Strict: a missing, wrong-shaped or unreadable tensor, or one under the tower's prefix that the tower does not
 * use (rotary_pos_emb.inv_freq excepted), is an error with its name. No tensor of a tower at all is the error
 * "no vision tower tensors in FOLDER". */
qvl_status qvl_raw_tower_open(const char *folder, const qvl_vision_config *config, qvl_raw_tower *tower,
                              qvl_error *error);
/* Accepts a zeroed struct. */
void qvl_raw_tower_close(qvl_raw_tower *tower);

#endif
