/* From the tensors of a folder to packed weights. The same walk plans the memory and fills it. */
#include "vision/tower.h"

#include "base/bf16.h"
#include "base/memory.h"

#include <string.h>

typedef struct packer {
    qvl_compute *compute;
    const qvl_tower_files *files;
    qvl_arena arena; /* base == NULL while planning: then no tensor is looked at */
} packer;

/* count values of a tensor as float. */
static float *pack_floats(packer *p, const qvl_tensor *tensor, int64_t count) {
    float *out = qvl_arena_take(&p->arena, (size_t)count, sizeof(float));
    if (!out) return NULL;
    const uint8_t *source = tensor->data;
    for (int64_t i = 0; i < count; i++) {
        uint16_t half;
        switch (tensor->dtype) {
        case QVL_BF16:
            memcpy(&half, source + 2 * i, 2);
            out[i] = qvl_f32_from_bf16(half);
            break;
        case QVL_F16:
            memcpy(&half, source + 2 * i, 2);
            out[i] = qvl_f32_from_f16(half);
            break;
        default:
            memcpy(&out[i], source + 4 * i, 4);
            break;
        }
    }
    return out;
}

static qvl_norm pack_norm(packer *p, const qvl_raw_norm *raw, int64_t width) {
    float *weight = pack_floats(p, &raw->weight, width);
    return (qvl_norm){weight, pack_floats(p, &raw->bias, width)};
}

static qvl_weight pack_linear(packer *p, const qvl_raw_linear *raw, int64_t n, int64_t k) {
    qvl_weight weight = {.n = n, .k = k};
    weight.bias = pack_floats(p, &raw->bias, n);
    weight.packed = qvl_arena_take(&p->arena, qvl_weight_bytes(p->compute, n, k), 1);
    if (weight.packed) {
        qvl_weight_pack(p->compute, raw->weight.data, raw->weight.dtype, &weight);
        /* Files are as large as what is packed: their pages are not kept beside it. */
        for (int32_t i = 0; i < p->files->count; i++) qvl_map_forget(&p->files->files[i].map);
    }
    return weight;
}

static qvl_merger pack_merger(packer *p, const qvl_raw_merger *raw, int64_t norm_width, int64_t merged,
                              int64_t out) {
    qvl_merger m;
    m.norm = pack_norm(p, &raw->norm, norm_width);
    m.fc1 = pack_linear(p, &raw->fc1, merged, merged);
    m.fc2 = pack_linear(p, &raw->fc2, out, merged);
    return m;
}

static qvl_tower_block pack_block(packer *p, const qvl_raw_block *raw, int64_t d, int64_t inner) {
    qvl_tower_block b;
    b.norm1 = pack_norm(p, &raw->norm1, d);
    b.qkv = pack_linear(p, &raw->qkv, 3 * d, d);
    b.proj = pack_linear(p, &raw->proj, d, d);
    b.norm2 = pack_norm(p, &raw->norm2, d);
    b.fc1 = pack_linear(p, &raw->fc1, inner, d);
    b.fc2 = pack_linear(p, &raw->fc2, d, inner);
    return b;
}

static void pack_all(packer *p, const qvl_raw_tower *raw, qvl_tower *t) {
    const qvl_vision_config *c = &t->config;
    int64_t d = c->hidden_size, merge = c->spatial_merge_size, merged = merge * merge * d;
    int64_t patch = (int64_t)c->in_channels * c->temporal_patch_size * c->patch_size * c->patch_size;
    t->patch_embed = pack_linear(p, &raw->patch_embed, d, patch);
    t->pos_embed = pack_floats(p, &raw->pos_embed, c->num_position_embeddings * d);
    const qvl_raw_block none = {0};
    for (int32_t i = 0; i < c->depth; i++) {
        qvl_tower_block block = pack_block(p, raw->blocks ? &raw->blocks[i] : &none, d, c->intermediate_size);
        if (t->blocks) t->blocks[i] = block;
    }
    t->merger = pack_merger(p, &raw->merger, d, merged, c->out_hidden_size);
    for (int32_t i = 0; i < c->deepstack_count; i++)
        t->deepstack[i] = pack_merger(p, &raw->deepstack[i], merged, merged, c->out_hidden_size);
}

size_t qvl_tower_bytes(const qvl_compute *compute, const qvl_vision_config *config) {
    packer p = {.compute = (qvl_compute *)(uintptr_t)compute};
    const qvl_raw_tower none = {0};
    qvl_tower t = {.config = *config};
    pack_all(&p, &none, &t);
    return p.arena.overflow ? SIZE_MAX : p.arena.used;
}

qvl_status qvl_tower_pack(qvl_compute *compute, const qvl_vision_config *config, const qvl_raw_tower *raw,
                          qvl_tower **out, qvl_error *error) {
    *out = NULL;
    qvl_tower *t = qvl_calloc(1, sizeof *t);
    if (!t) return qvl_fail_memory(error, "vision tower", 1, sizeof *t);
    t->config = *config;
    t->blocks = qvl_calloc((size_t)config->depth, sizeof *t->blocks);
    size_t bytes = qvl_tower_bytes(compute, config);
    if (t->blocks) t->memory = qvl_alloc(bytes, 1);
    if (!t->memory) {
        qvl_tower_free(t);
        return qvl_fail_memory(error, "packed weights", bytes, 1);
    }
    packer p = {.compute = compute, .files = &raw->files, .arena = {.base = t->memory, .capacity = bytes}};
    pack_all(&p, raw, t);
    *out = t;
    return QVL_OK;
}

void qvl_tower_free(qvl_tower *tower) {
    if (!tower) return;
    qvl_free(tower->memory);
    qvl_free(tower->blocks);
    qvl_free(tower);
}
