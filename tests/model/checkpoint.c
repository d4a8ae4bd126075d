#define _GNU_SOURCE
#include "model/checkpoint.h"

#include <sys/stat.h>

const qvl_vision_config checkpoint_config = {
    .depth = 2,
    .hidden_size = 8,
    .num_heads = 2,
    .head_dim = 4,
    .intermediate_size = 12,
    .out_hidden_size = 10,
    .in_channels = 3,
    .patch_size = 4,
    .temporal_patch_size = 2,
    .spatial_merge_size = 2,
    .num_position_embeddings = 16,
    .position_side = 4,
    .deepstack_count = 1,
    .deepstack_indexes = {1},
};

const char checkpoint_config_json[] =
    "{\"model_type\":\"qwen3_vl\",\"vision_config\":{\"depth\":2,\"hidden_size\":8,\"num_heads\":2,"
    "\"intermediate_size\":12,\"out_hidden_size\":10,\"patch_size\":4,\"num_position_embeddings\":16,"
    "\"deepstack_visual_indexes\":[1]}}";

void checkpoint_add(checkpoint *c, const char *prefix, const char *name, int32_t ndim, const int64_t *shape) {
    size_t i = c->count++, elements = 1;
    assert_true(i < MAX_TENSORS);
    for (int32_t k = 0; k < ndim; k++) elements *= (size_t)shape[k];
    snprintf(c->names[i], sizeof c->names[i], "%s%s", prefix, name);
    c->data[i] = calloc(elements, 8);
    assert_non_null(c->data[i]);
    for (size_t k = 0; k < elements; k++) c->data[i][k] = (float)i + (float)k / 1024;
    c->tensors[i] = (qvl_tensor){.name = c->names[i], .dtype = QVL_F32, .ndim = ndim, .data = c->data[i]};
    memcpy(c->tensors[i].shape, shape, (size_t)ndim * sizeof *shape);
}

static void add_pair(checkpoint *c, const char *prefix, const char *base, int64_t out, int64_t in) {
    char name[96];
    const int64_t shape[] = {out, in};
    snprintf(name, sizeof name, "%s.weight", base);
    checkpoint_add(c, prefix, name, in ? 2 : 1, shape);
    snprintf(name, sizeof name, "%s.bias", base);
    checkpoint_add(c, prefix, name, 1, shape);
}

void checkpoint_build(checkpoint *c, const char *prefix) {
    static const struct {
        const char *base;
        int64_t out, in;
    } pairs[] = {
        {"blocks.0.norm1", 8, 0},
        {"blocks.0.norm2", 8, 0},
        {"blocks.0.attn.qkv", 24, 8},
        {"blocks.0.attn.proj", 8, 8},
        {"blocks.0.mlp.linear_fc1", 12, 8},
        {"blocks.0.mlp.linear_fc2", 8, 12},
        {"blocks.1.norm1", 8, 0},
        {"blocks.1.norm2", 8, 0},
        {"blocks.1.attn.qkv", 24, 8},
        {"blocks.1.attn.proj", 8, 8},
        {"blocks.1.mlp.linear_fc1", 12, 8},
        {"blocks.1.mlp.linear_fc2", 8, 12},
        {"merger.norm", 8, 0},
        {"merger.linear_fc1", 32, 32},
        {"merger.linear_fc2", 10, 32},
        {"deepstack_merger_list.0.norm", 32, 0},
        {"deepstack_merger_list.0.linear_fc1", 32, 32},
        {"deepstack_merger_list.0.linear_fc2", 10, 32},
    };
    memset(c, 0, sizeof *c);
    checkpoint_add(c, prefix, "patch_embed.proj.weight", 5, (const int64_t[]){8, 3, 2, 4, 4});
    checkpoint_add(c, prefix, "patch_embed.proj.bias", 1, (const int64_t[]){8});
    checkpoint_add(c, prefix, "pos_embed.weight", 2, (const int64_t[]){16, 8});
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        add_pair(c, prefix, pairs[i].base, pairs[i].out, pairs[i].in);
    assert_int_equal(c->count, TOWER_TENSORS);
    checkpoint_add(c, "", "model.language_model.norm.weight", 1, (const int64_t[]){4});
}

void checkpoint_free(checkpoint *c) {
    for (size_t i = 0; i < MAX_TENSORS; i++) free(c->data[i]);
    memset(c, 0, sizeof *c);
}

size_t checkpoint_find(const checkpoint *c, const char *name) {
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->tensors[i].name, name) == 0) return i;
    fail_msg("no tensor %s", name);
    return 0;
}

/* Leaves the memory to checkpoint_free: only the view goes. */
void checkpoint_drop(checkpoint *c, const char *name) {
    size_t gone = checkpoint_find(c, name);
    c->tensors[gone] = c->tensors[--c->count];
}

void checkpoint_lay_out(checkpoint *c, const char *layout) {
    qvl_tensor *t = &c->tensors[0];
    const float *hf = t->data;
    if (strcmp(layout, "flat") == 0) {
        t->ndim = 2;
        memcpy(t->shape, (const int64_t[5]){8, 96}, 5 * sizeof *t->shape);
    } else if (strcmp(layout, "mlx") == 0) {
        memcpy(t->shape, (const int64_t[5]){8, 2, 4, 4, 3}, 5 * sizeof *t->shape);
        size_t extra = MAX_TENSORS - 1; /* memory that checkpoint_free knows */
        assert_null(c->data[extra]);
        c->data[extra] = malloc(8 * 96 * sizeof(float));
        for (size_t d = 0; d < 8; d++)
            for (size_t pixel = 0; pixel < 32; pixel++)
                for (size_t channel = 0; channel < 3; channel++)
                    c->data[extra][d * 96 + pixel * 3 + channel] = hf[d * 96 + channel * 32 + pixel];
        t->data = c->data[extra];
    } else {
        assert_string_equal(layout, "hugging-face");
    }
}

void checkpoint_save(test_folder *folder, const char *file, const qvl_tensor *tensors, size_t count) {
    qvl_error error;
    assert_ok(qvl_tensors_save(folder_file(folder, file), tensors, count, NULL, 0, &error), &error);
}

void checkpoint_save_single(test_folder *folder, const checkpoint *c) {
    checkpoint_save(folder, "model.safetensors", c->tensors, c->count);
}

void checkpoint_save_sidecar(test_folder *folder, const checkpoint *c) {
    mkdir(folder_file(folder, "optiq"), 0777);
    checkpoint_save(folder, "optiq/optiq_vision.safetensors", c->tensors, c->count);
}
