/* Any bytes as the one file of a folder, against the smallest tower: refused with a message, or every tensor of
 * the tower is there once, by its canonical name and shape, and its bytes can be read. */
#include "model/weights.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check(bool holds) {
    if (!holds) abort();
}

/* 3 + 12 + 6 tensors; patches of [4, 3, 2, 2, 2]. */
static const qvl_vision_config config = {
    .depth = 1,
    .hidden_size = 4,
    .num_heads = 1,
    .head_dim = 4,
    .intermediate_size = 4,
    .out_hidden_size = 4,
    .in_channels = 3,
    .patch_size = 2,
    .temporal_patch_size = 2,
    .spatial_merge_size = 1,
    .num_position_embeddings = 1,
    .position_side = 1,
};

static void check_tower(const qvl_raw_tower *tower) {
    unsigned sum = 0;
    check(tower->tensor_count == 21 && tower->prefix && tower->layout && tower->dtype[0]);
    for (int32_t i = 0; i < tower->tensor_count; i++) {
        const qvl_tensor *t = &tower->tensors[i];
        size_t size = qvl_dtype_bits(t->dtype) / 8;
        for (int32_t k = 0; k < t->ndim; k++) size *= (size_t)t->shape[k];
        check(size > 0 && (i == 0 || strcmp(tower->tensors[i - 1].name, t->name) < 0));
        for (size_t k = 0; k < size; k++) sum += ((const uint8_t *)t->data)[k];
    }
    check(tower->patch_embed.weight.ndim == 5 && tower->patch_embed.weight.shape[1] == 3);
    check(sum <= 255 * 4 * (unsigned)tower->parameter_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    qvl_safetensors *file = calloc(1, sizeof *file);
    qvl_raw_tower tower = {0};
    qvl_error error = {0};
    if (!file) return 0;
    if (qvl_safetensors_parse(bytes, count, "folder/model.safetensors", file, &error)) {
        free(file);
        return 0;
    }
    tower.files = (qvl_tower_files){.files = file, .count = 1, .source = QVL_SINGLE_FILE};
    qvl_status status = qvl_raw_tower_find("folder", &config, &tower, &error);
    if (status)
        check(error.status == status && error.message[0]);
    else
        check_tower(&tower);
    qvl_raw_tower_close(&tower);
    return 0;
}
