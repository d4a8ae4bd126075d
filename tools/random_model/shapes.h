/* The models this tool knows: their sizes, and the tensors that follow from the sizes by rule. */
#ifndef DEMO_SHAPES_H
#define DEMO_SHAPES_H

#include "generator.h"

#include <stddef.h>

typedef enum demo_family {
    DEMO_QWEN3_VL,
    DEMO_QWEN3_VL_MOE,
    DEMO_QWEN3_5,
    DEMO_QWEN3_5_MOE,
    DEMO_QWEN4_EXP
} demo_family;

typedef struct demo_vision {
    int depth, hidden, heads, intermediate, patch, positions, out_hidden;
    int deepstack_count, deepstack[3];
} demo_vision;

/* A zero means that the family has no such thing. hidden is vision.out_hidden. */
typedef struct demo_text {
    int vocab, layers, intermediate, heads, kv_heads, head_dim, max_positions;
    int mrope_section[3];
    int experts, experts_per_token, expert_intermediate, shared_intermediate;
    int linear_key_heads, linear_value_heads, linear_head_dim;
    double rope_theta, partial_rotary;
    bool tied; /* no lm_head tensor */
} demo_text;

typedef struct demo_tokens {
    int vision_start, vision_end, image, video, end, pad;
} demo_tokens;

typedef struct demo_shape {
    const char *name;
    demo_family family;
    demo_vision vision;
    demo_text text;
    demo_tokens tokens;
    bool text_tensors; /* false: only the vision tower is written */
    demo_init init;
} demo_shape;

/* false where no shape has that name. */
bool demo_shape_find(const char *name, demo_shape *shape);
/* The names in order, NULL beyond the last. */
const char *demo_shape_name(size_t index);
/* Keeps the first depth blocks, and the deepstack indexes among them. depth in 1..shape->vision.depth. */
void demo_shape_shorten(demo_shape *shape, int depth);

bool demo_family_zero_centred(demo_family family);
bool demo_family_hybrid(demo_family family); /* three of four text layers are linear attention */
bool demo_layer_is_linear(const demo_shape *shape, int layer);

#define DEMO_MAX_DIMS 5

typedef struct demo_tensor {
    char name[96];
    int ndim;
    int64_t shape[DEMO_MAX_DIMS];
} demo_tensor;

int64_t demo_tensor_elements(const demo_tensor *tensor);

/* All tensors of a shape, vision first. Owner of *tensors: the caller, free(). false: no memory. */
bool demo_list_tensors(const demo_shape *shape, demo_tensor **tensors, size_t *count);

#endif
