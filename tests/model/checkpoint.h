/* A tiny tower as a checkpoint being put together: its tensors can be renamed, reshaped, dropped before it is
 * saved. */
#ifndef TESTS_MODEL_CHECKPOINT_H
#define TESTS_MODEL_CHECKPOINT_H

#include "model/test_folder.h"

#include "model/config.h"

/* Depth 2, d 8, patches of 4, one deepstack merger. */
extern const qvl_vision_config checkpoint_config;
/* config.json of the same. */
extern const char checkpoint_config_json[];

#define TOWER_TENSORS 39 /* 3 + 2*12 + 6 + 6 */
#define MAX_TENSORS 64

/* Element k of tensor i has the value i + k / 1024, in memory of 8 bytes an element. */
typedef struct checkpoint {
    qvl_tensor tensors[MAX_TENSORS];
    char names[MAX_TENSORS][96];
    float *data[MAX_TENSORS];
    size_t count;
} checkpoint;

/* The tower under a prefix, in Hugging Face layout, F32, the patch embedding first; then a tensor of a language
 * model. Owner: the caller, checkpoint_free. */
void checkpoint_build(checkpoint *c, const char *prefix);
void checkpoint_free(checkpoint *c);

void checkpoint_add(checkpoint *c, const char *prefix, const char *name, int32_t ndim, const int64_t *shape);
/* The index of a tensor that must be there. */
size_t checkpoint_find(const checkpoint *c, const char *name);
void checkpoint_drop(checkpoint *c, const char *name);
/* Stores the patch embedding as "hugging-face", "mlx" or "flat". */
void checkpoint_lay_out(checkpoint *c, const char *layout);

void checkpoint_save(test_folder *folder, const char *file, const qvl_tensor *tensors, size_t count);
/* As the only file of the folder. */
void checkpoint_save_single(test_folder *folder, const checkpoint *c);
/* As the sidecar. */
void checkpoint_save_sidecar(test_folder *folder, const checkpoint *c);

#endif
