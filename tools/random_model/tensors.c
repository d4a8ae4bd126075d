/* The tensors of a shape, by rule, under Hugging Face names. */
#include "shapes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct list {
    demo_tensor *items;
    size_t count, capacity;
    bool failed;
} list;

/* One tensor: its dimensions (unused ones zero), then its name. */
static void add(list *out, const int64_t dims[DEMO_MAX_DIMS], const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add(list *out, const int64_t dims[DEMO_MAX_DIMS], const char *format, ...) {
    if (out->count == out->capacity) {
        size_t capacity = out->capacity ? 2 * out->capacity : 256;
        demo_tensor *items = realloc(out->items, capacity * sizeof *items);
        if (!items) {
            out->failed = true;
            return;
        }
        out->items = items;
        out->capacity = capacity;
    }
    demo_tensor *tensor = &out->items[out->count++];
    *tensor = (demo_tensor){0};
    va_list args;
    va_start(args, format);
    vsnprintf(tensor->name, sizeof tensor->name, format, args);
    va_end(args);
    while (tensor->ndim < DEMO_MAX_DIMS && dims[tensor->ndim] > 0) {
        tensor->shape[tensor->ndim] = dims[tensor->ndim];
        tensor->ndim++;
    }
}

#define DIMS(...) ((const int64_t[DEMO_MAX_DIMS]){__VA_ARGS__})

static void add_linear(list *out, int64_t rows, int64_t cols, const char *name) {
    add(out, DIMS(rows, cols), "%s.weight", name);
    add(out, DIMS(rows), "%s.bias", name);
}

static void add_norm(list *out, int64_t width, const char *name) {
    add(out, DIMS(width), "%s.weight", name);
    add(out, DIMS(width), "%s.bias", name);
}

static void add_merger(list *out, const demo_vision *vision, int64_t norm_width, const char *prefix) {
    int64_t merged = 4 * (int64_t)vision->hidden;
    char name[80];
    snprintf(name, sizeof name, "%s.norm", prefix);
    add_norm(out, norm_width, name);
    snprintf(name, sizeof name, "%s.linear_fc1", prefix);
    add_linear(out, merged, merged, name);
    snprintf(name, sizeof name, "%s.linear_fc2", prefix);
    add_linear(out, vision->out_hidden, merged, name);
}

static void add_block(list *out, const demo_vision *vision, int block) {
    int64_t d = vision->hidden;
    const struct {
        const char *part;
        int64_t rows, cols; /* cols 0: a norm */
    } parts[] = {{"norm1", d, 0},
                 {"norm2", d, 0},
                 {"attn.qkv", 3 * d, d},
                 {"attn.proj", d, d},
                 {"mlp.linear_fc1", vision->intermediate, d},
                 {"mlp.linear_fc2", d, vision->intermediate}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char name[80];
        snprintf(name, sizeof name, "model.visual.blocks.%d.%s", block, parts[i].part);
        if (parts[i].cols)
            add_linear(out, parts[i].rows, parts[i].cols, name);
        else
            add_norm(out, parts[i].rows, name);
    }
}

static void add_vision(list *out, const demo_vision *vision) {
    int64_t d = vision->hidden;
    add(out, DIMS(d, 3, 2, vision->patch, vision->patch), "model.visual.patch_embed.proj.weight");
    add(out, DIMS(d), "model.visual.patch_embed.proj.bias");
    add(out, DIMS(vision->positions, d), "model.visual.pos_embed.weight");
    for (int block = 0; block < vision->depth; block++) add_block(out, vision, block);
    add_merger(out, vision, d, "model.visual.merger");
    for (int i = 0; i < vision->deepstack_count; i++) {
        char prefix[64];
        snprintf(prefix, sizeof prefix, "model.visual.deepstack_merger_list.%d", i);
        add_merger(out, vision, 4 * d, prefix);
    }
}

/* ---- the text part. In its layers every tensor is called model.language_model.layers.N.PART. */

#define LAYER "model.language_model.layers.%d."

static void add_full_attention(list *out, const demo_shape *shape, int layer) {
    const demo_text *text = &shape->text;
    int64_t h = shape->vision.out_hidden, q = (int64_t)text->heads * text->head_dim;
    int64_t kv = (int64_t)text->kv_heads * text->head_dim;
    int64_t gated = demo_family_hybrid(shape->family) ? 2 : 1; /* the query projection carries the output gate */
    add(out, DIMS(gated * q, h), LAYER "self_attn.q_proj.weight", layer);
    add(out, DIMS(kv, h), LAYER "self_attn.k_proj.weight", layer);
    add(out, DIMS(kv, h), LAYER "self_attn.v_proj.weight", layer);
    add(out, DIMS(h, q), LAYER "self_attn.o_proj.weight", layer);
    add(out, DIMS(text->head_dim), LAYER "self_attn.q_norm.weight", layer);
    add(out, DIMS(text->head_dim), LAYER "self_attn.k_norm.weight", layer);
}

static void add_linear_attention(list *out, const demo_shape *shape, int layer) {
    const demo_text *text = &shape->text;
    int64_t h = shape->vision.out_hidden, heads = text->linear_value_heads;
    int64_t values = heads * text->linear_head_dim;
    int64_t channels = 2 * (int64_t)text->linear_key_heads * text->linear_head_dim + values;
    add(out, DIMS(heads), LAYER "linear_attn.dt_bias", layer);
    add(out, DIMS(heads), LAYER "linear_attn.A_log", layer);
    add(out, DIMS(channels, 1, 4), LAYER "linear_attn.conv1d.weight", layer);
    add(out, DIMS(text->linear_head_dim), LAYER "linear_attn.norm.weight", layer);
    add(out, DIMS(h, values), LAYER "linear_attn.out_proj.weight", layer);
    add(out, DIMS(channels, h), LAYER "linear_attn.in_proj_qkv.weight", layer);
    add(out, DIMS(values, h), LAYER "linear_attn.in_proj_z.weight", layer);
    add(out, DIMS(heads, h), LAYER "linear_attn.in_proj_b.weight", layer);
    add(out, DIMS(heads, h), LAYER "linear_attn.in_proj_a.weight", layer);
}

static void add_mlp(list *out, int64_t hidden, int64_t intermediate, int layer, const char *part) {
    add(out, DIMS(intermediate, hidden), LAYER "%s.gate_proj.weight", layer, part);
    add(out, DIMS(intermediate, hidden), LAYER "%s.up_proj.weight", layer, part);
    add(out, DIMS(hidden, intermediate), LAYER "%s.down_proj.weight", layer, part);
}

static void add_experts(list *out, const demo_shape *shape, int layer) {
    const demo_text *text = &shape->text;
    int64_t h = shape->vision.out_hidden, width = text->expert_intermediate;
    add(out, DIMS(text->experts, h), LAYER "mlp.gate.weight", layer);
    add(out, DIMS(text->experts, 2 * width, h), LAYER "mlp.experts.gate_up_proj", layer);
    add(out, DIMS(text->experts, h, width), LAYER "mlp.experts.down_proj", layer);
    if (text->shared_intermediate == 0) return;
    add_mlp(out, h, text->shared_intermediate, layer, "mlp.shared_expert");
    add(out, DIMS(1, h), LAYER "mlp.shared_expert_gate.weight", layer);
}

static void add_text(list *out, const demo_shape *shape) {
    int64_t h = shape->vision.out_hidden;
    add(out, DIMS(shape->text.vocab, h), "model.language_model.embed_tokens.weight");
    for (int layer = 0; layer < shape->text.layers; layer++) {
        if (demo_layer_is_linear(shape, layer))
            add_linear_attention(out, shape, layer);
        else
            add_full_attention(out, shape, layer);
        if (shape->text.experts)
            add_experts(out, shape, layer);
        else
            add_mlp(out, h, shape->text.intermediate, layer, "mlp");
        add(out, DIMS(h), LAYER "input_layernorm.weight", layer);
        add(out, DIMS(h), LAYER "post_attention_layernorm.weight", layer);
    }
    add(out, DIMS(h), "model.language_model.norm.weight");
    if (!shape->text.tied) add(out, DIMS(shape->text.vocab, h), "lm_head.weight");
}

bool demo_list_tensors(const demo_shape *shape, demo_tensor **tensors, size_t *count) {
    list out = {0};
    add_vision(&out, &shape->vision);
    if (shape->text_tensors) add_text(&out, shape);
    if (out.failed) {
        free(out.items);
        out = (list){0};
    }
    *tensors = out.items;
    *count = out.count;
    return !out.failed && out.items;
}

int64_t demo_tensor_elements(const demo_tensor *tensor) {
    int64_t n = 1;
    for (int i = 0; i < tensor->ndim; i++) n *= tensor->shape[i];
    return n;
}
