/* The vision tower's tensors of a folder, found and checked, still in the mapped files. Whatever names and layout
 * the folder has, from here on they are those of Hugging Face. */
#ifndef QVL_MODEL_WEIGHTS_H
#define QVL_MODEL_WEIGHTS_H

#include "model/config.h"
#include "model/weights_files.h"

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
 * [d, C, tp, p, p], from a folder of any layout. */
typedef struct qvl_raw_tower {
    qvl_raw_linear patch_embed;
    qvl_tensor pos_embed;  /* [num_position_embeddings, d] */
    qvl_raw_block *blocks; /* [depth] */
    qvl_raw_merger merger;
    qvl_raw_merger deepstack[QVL_MAX_DEEPSTACK];
    qvl_tensor *tensors; /* [tensor_count]: the same once more, by canonical name (without prefix), in its order */
    int32_t tensor_count;
    int64_t parameter_count;
    const char *prefix; /* "model.visual.", ..., "" for names without one; static */
    const char *layout; /* of patch_embed.weight in the file: "hugging-face", "mlx" or "flat"; static */
    char dtype[16];     /* "BF16", ... or "mixed" */
    qvl_tower_files files;
    void *reordered; /* patch_embed.weight, where the file has another order */
} qvl_raw_tower;

/* Finds the files (weights_files.h) and the tower in them, in any naming generation.
 * Strict: a missing, wrong-shaped or unreadable tensor, a quantised one, or one under the tower's prefix that the
 * tower does not use (rotary_pos_emb.inv_freq excepted), is an error with its name; so are two towers. No tensor
 * of a tower at all is the error "no vision tower tensors in FOLDER". The layout of the patch embedding is told by
 * its shape alone: [d, C, tp, p, p] is Hugging Face's, [d, tp, p, p, C] MLX's, [d, C*tp*p*p] flat in Hugging
 * Face's order. Where the first two coincide (tp = p = 3) it is an error. */
qvl_status qvl_raw_tower_open(const char *folder, const qvl_vision_config *config, qvl_raw_tower *tower,
                              qvl_error *error);
/* The second half of it: tower is zero but for its files. folder is for messages. On failure it is to be closed.
 */
qvl_status qvl_raw_tower_find(const char *folder, const qvl_vision_config *config, qvl_raw_tower *tower,
                              qvl_error *error);
/* Accepts a zeroed struct. */
void qvl_raw_tower_close(qvl_raw_tower *tower);

#endif
