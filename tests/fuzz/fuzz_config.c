/* Any bytes as config.json: refused with a message, or every size is in its range. */
#include "model/config.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check(bool holds) {
    if (!holds) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    qvl_config config;
    qvl_error error = {0};
    qvl_status status = qvl_config_parse(bytes, count, "folder/config.json", &config, &error);
    if (status) {
        check(error.status == status && error.message[0] && config.vision.depth == 0);
        return 0;
    }
    const qvl_vision_config *v = &config.vision;
    int64_t merged = (int64_t)v->spatial_merge_size * v->spatial_merge_size * v->hidden_size;
    int64_t patch = (int64_t)v->in_channels * v->temporal_patch_size * v->patch_size * v->patch_size;
    check(v->depth >= 1 && v->depth <= 1024 && v->in_channels == 3);
    check(v->head_dim >= 4 && v->head_dim % 4 == 0 && v->head_dim * v->num_heads == v->hidden_size);
    check(merged >= v->hidden_size && merged * merged <= INT32_MAX && merged * v->out_hidden_size <= INT32_MAX);
    check(patch >= 3 && patch * v->hidden_size <= INT32_MAX);
    check((int64_t)v->position_side * v->position_side <= v->num_position_embeddings && v->position_side >= 1);
    check(v->deepstack_count >= 0 && v->deepstack_count <= QVL_MAX_DEEPSTACK);
    for (int32_t i = 0; i < v->deepstack_count; i++)
        check(v->deepstack_indexes[i] >= (i ? v->deepstack_indexes[i - 1] + 1 : 0) &&
              v->deepstack_indexes[i] < v->depth);
    check(v->rope_theta >= 1.0f && v->rope_theta <= 1e12f);
    return 0;
}
