#include "shapes.h"

#include <string.h>

/* ---- published models: sizes of the vision classes and of each model's text part */

typedef enum vision_class { CLASS_S, CLASS_M, CLASS_L } vision_class;

static const demo_vision classes[] = {
    [CLASS_S] = {.depth = 12, .hidden = 768, .heads = 12, .intermediate = 3072, .patch = 16, .positions = 2304},
    [CLASS_M] = {.depth = 24, .hidden = 1024, .heads = 16, .intermediate = 4096, .patch = 16, .positions = 2304},
    [CLASS_L] = {.depth = 27, .hidden = 1152, .heads = 16, .intermediate = 4304, .patch = 16, .positions = 2304},
};

typedef struct published {
    const char *name;
    demo_family family;
    vision_class vision;
    int hidden, intermediate, layers, heads, kv_heads;
    int experts, experts_per_token, expert_intermediate;
    int value_heads; /* of linear attention */
    bool tied;
} published;

static const published models[] = {
    {"qwen3-vl-2b", DEMO_QWEN3_VL, CLASS_M, 2048, 6144, 28, 16, 8, 0, 0, 0, 0, true},
    {"qwen3-vl-4b", DEMO_QWEN3_VL, CLASS_M, 2560, 9728, 36, 32, 8, 0, 0, 0, 0, true},
    {"qwen3-vl-8b", DEMO_QWEN3_VL, CLASS_L, 4096, 12288, 36, 32, 8, 0, 0, 0, 0, false},
    {"qwen3-vl-32b", DEMO_QWEN3_VL, CLASS_L, 5120, 25600, 64, 64, 8, 0, 0, 0, 0, false},
    {"qwen3-vl-30b-a3b", DEMO_QWEN3_VL_MOE, CLASS_L, 2048, 6144, 48, 32, 4, 128, 8, 768, 0, false},
    {"qwen3-vl-235b-a22b", DEMO_QWEN3_VL_MOE, CLASS_L, 4096, 12288, 94, 64, 4, 128, 8, 1536, 0, false},
    {"qwen3.5-0.8b", DEMO_QWEN3_5, CLASS_S, 1024, 3584, 24, 8, 2, 0, 0, 0, 16, true},
    {"qwen3.5-2b", DEMO_QWEN3_5, CLASS_M, 2048, 6144, 24, 8, 2, 0, 0, 0, 16, true},
    {"qwen3.5-4b", DEMO_QWEN3_5, CLASS_M, 2560, 9216, 32, 16, 4, 0, 0, 0, 32, true},
    {"qwen3.5-9b", DEMO_QWEN3_5, CLASS_L, 4096, 12288, 32, 16, 4, 0, 0, 0, 32, false},
    {"qwen3.5-27b", DEMO_QWEN3_5, CLASS_L, 5120, 17408, 64, 24, 4, 0, 0, 0, 48, false},
    {"qwen3.6-27b", DEMO_QWEN3_5, CLASS_L, 5120, 17408, 64, 24, 4, 0, 0, 0, 48, false},
    {"qwen3.8-27b", DEMO_QWEN3_5, CLASS_L, 5120, 17408, 64, 24, 4, 0, 0, 0, 48, false},
    {"qwen3.5-35b-a3b", DEMO_QWEN3_5_MOE, CLASS_L, 2048, 0, 40, 16, 2, 256, 8, 512, 32, false},
    {"qwen3.6-35b-a3b", DEMO_QWEN3_5_MOE, CLASS_L, 2048, 0, 40, 16, 2, 256, 8, 512, 32, false},
    {"qwen3.5-122b-a10b", DEMO_QWEN3_5_MOE, CLASS_L, 3072, 0, 48, 32, 2, 256, 8, 1024, 64, false},
    {"qwen3.5-397b-a17b", DEMO_QWEN3_5_MOE, CLASS_L, 4096, 0, 60, 32, 2, 512, 10, 1024, 64, false},
    {"qwen3.8-flash-next", DEMO_QWEN4_EXP, CLASS_L, 2560, 0, 48, 24, 2, 512, 10, 640, 48, false},
};

static demo_text published_text(const published *model) {
    bool hybrid = demo_family_hybrid(model->family);
    demo_text text = {.vocab = hybrid ? 248320 : 151936,
                      .layers = model->layers,
                      .intermediate = model->intermediate,
                      .heads = model->heads,
                      .kv_heads = model->kv_heads,
                      .head_dim = hybrid ? 256 : 128,
                      .max_positions = 262144,
                      .mrope_section = {24, 20, 20},
                      .experts = model->experts,
                      .experts_per_token = model->experts_per_token,
                      .expert_intermediate = model->expert_intermediate,
                      .rope_theta = hybrid ? 1e7 : 5e6,
                      .tied = model->tied};
    if (!hybrid) return text;
    memcpy(text.mrope_section, (int[3]){11, 11, 10}, sizeof text.mrope_section);
    text.shared_intermediate = model->expert_intermediate;
    text.linear_key_heads = 16;
    text.linear_value_heads = model->value_heads;
    text.linear_head_dim = 128;
    text.partial_rotary = 0.25;
    return text;
}

static demo_shape published_shape(const published *model) {
    demo_shape shape = {.name = model->name, .family = model->family, .vision = classes[model->vision]};
    shape.vision.out_hidden = model->hidden;
    shape.text = published_text(model);
    if (demo_family_hybrid(model->family)) {
        shape.tokens = (demo_tokens){248053, 248054, 248056, 248057, 248046, 248044};
        return shape;
    }
    static const int indexes[][3] = {[CLASS_M] = {5, 11, 17}, [CLASS_L] = {8, 16, 24}};
    shape.vision.deepstack_count = 3;
    memcpy(shape.vision.deepstack, indexes[model->vision], sizeof shape.vision.deepstack);
    shape.tokens = (demo_tokens){151652, 151653, 151655, 151656, 151645, 151643};
    return shape;
}

/* ---- small models, written whole */

static const demo_shape demo = {
    .name = "demo",
    .family = DEMO_QWEN3_VL,
    .vision = {.depth = 4,
               .hidden = 64,
               .heads = 2,
               .intermediate = 128,
               .patch = 16,
               .positions = 576,
               .out_hidden = 64,
               .deepstack_count = 2,
               .deepstack = {0, 2}},
    .text = {.vocab = 512,
             .layers = 2,
             .intermediate = 128,
             .heads = 4,
             .kv_heads = 2,
             .head_dim = 16,
             .max_positions = 32768,
             .mrope_section = {4, 2, 2},
             .rope_theta = 5e6},
    .tokens = {.vision_start = 508, .vision_end = 509, .image = 510, .video = 511, .end = 507, .pad = 505},
    .text_tensors = true,
    .init = DEMO_SCALED,
};

/* The demo's sizes in the hybrid family: no deepstack, linear attention, the same vocabulary. */
static const demo_shape demo_35 = {
    .name = "demo-35",
    .family = DEMO_QWEN3_5,
    .vision = {.depth = 4,
               .hidden = 64,
               .heads = 2,
               .intermediate = 128,
               .patch = 16,
               .positions = 576,
               .out_hidden = 64},
    .text = {.vocab = 512,
             .layers = 4,
             .intermediate = 128,
             .heads = 4,
             .kv_heads = 2,
             .head_dim = 32,
             .max_positions = 32768,
             .mrope_section = {4, 2, 2},
             .linear_key_heads = 2,
             .linear_value_heads = 4,
             .linear_head_dim = 16,
             .rope_theta = 1e7,
             .partial_rotary = 0.5},
    .tokens = {.vision_start = 508, .vision_end = 509, .image = 510, .video = 511, .end = 507, .pad = 505},
    .text_tensors = true,
    .init = DEMO_SCALED,
};

/* The models of the published test vectors: alike but for family, depths and the second deepstack index. */
typedef struct tiny {
    const char *name;
    demo_family family;
    int depth, text_layers, last_deepstack, experts;
} tiny;

static const tiny tinies[] = {
    {"tiny-vl", DEMO_QWEN3_VL, 3, 3, 2, 0},
    {"tiny-vlmoe", DEMO_QWEN3_VL_MOE, 2, 2, 1, 6},
    {"tiny-35", DEMO_QWEN3_5, 3, 4, 0, 0},
    {"tiny-35moe", DEMO_QWEN3_5_MOE, 2, 4, 0, 6},
};

static demo_text tiny_text(const tiny *model) {
    bool hybrid = demo_family_hybrid(model->family);
    demo_text text = {.vocab = 64,
                      .layers = model->text_layers,
                      .intermediate = hybrid && model->experts ? 0 : 40,
                      .heads = hybrid ? 2 : 4,
                      .kv_heads = hybrid ? 1 : 2,
                      .head_dim = 16,
                      .max_positions = 512,
                      .mrope_section = {4, 2, 2},
                      .experts = model->experts,
                      .rope_theta = hybrid ? 1e7 : 5e6};
    if (model->experts) {
        text.experts_per_token = 2;
        text.expert_intermediate = 16;
        text.shared_intermediate = hybrid ? 12 : 0;
    }
    if (hybrid) {
        memcpy(text.mrope_section, (int[3]){2, 1, 1}, sizeof text.mrope_section);
        text.partial_rotary = 0.5;
        text.linear_key_heads = 2;
        text.linear_value_heads = 4;
        text.linear_head_dim = 8;
    }
    return text;
}

static demo_shape tiny_shape(const tiny *model) {
    return (demo_shape){
        .name = model->name,
        .family = model->family,
        .vision = {.depth = model->depth,
                   .hidden = 32,
                   .heads = 2,
                   .intermediate = 48,
                   .patch = 4,
                   .positions = 36,
                   .out_hidden = 24,
                   .deepstack_count = model->last_deepstack ? 2 : 0,
                   .deepstack = {0, model->last_deepstack}},
        .text = tiny_text(model),
        .tokens = {.vision_start = 58, .vision_end = 59, .image = 60, .video = 61, .end = 63, .pad = 62},
        .text_tensors = true,
        .init = DEMO_QUARTER,
    };
}

/* Hybrid models with the head sizes of published ones: deep and wide enough to be compared in bf16, small enough to be
 * written in a second. */
static demo_shape mid_shape(const char *name, demo_family family) {
    demo_shape shape = demo_35;
    shape.name = name;
    shape.family = family;
    shape.vision.out_hidden = 256;
    demo_text *text = &shape.text;
    text->layers = 8;
    text->intermediate = 512;
    text->heads = 2;
    text->kv_heads = 1;
    text->head_dim = 256;
    memcpy(text->mrope_section, (int[3]){11, 11, 10}, sizeof text->mrope_section);
    text->linear_head_dim = 128;
    text->partial_rotary = 0.25;
    if (family == DEMO_QWEN3_5) return shape;
    text->intermediate = 0;
    text->experts = 8;
    text->experts_per_token = 2;
    text->expert_intermediate = text->shared_intermediate = 128;
    return shape;
}

/* Language models that are large enough for distances to mean something: 8 layers over a small tower. */
static demo_shape lm_shape(const char *name, demo_family family) {
    bool experts = family == DEMO_QWEN3_VL_MOE;
    demo_shape shape = demo;
    shape.name = name;
    shape.family = family;
    shape.vision.depth = shape.vision.deepstack_count = 3;
    memcpy(shape.vision.deepstack, (int[3]){0, 1, 2}, sizeof shape.vision.deepstack);
    shape.vision.out_hidden = experts ? 256 : 512;
    demo_text *text = &shape.text;
    text->vocab = 4096;
    text->layers = 8;
    text->intermediate = experts ? 512 : 1536;
    text->heads = 8;
    text->kv_heads = experts ? 4 : 2;
    text->head_dim = 64;
    text->max_positions = 8192;
    memcpy(text->mrope_section, (int[3]){12, 10, 10}, sizeof text->mrope_section);
    if (!experts) return shape;
    text->experts = 16;
    text->experts_per_token = 4;
    text->expert_intermediate = 128;
    return shape;
}

static const struct mid {
    const char *name;
    demo_family family;
    demo_shape (*shape)(const char *name, demo_family family);
} mids[] = {{"lm-test", DEMO_QWEN3_VL, lm_shape},
            {"lm-test-moe", DEMO_QWEN3_VL_MOE, lm_shape},
            {"mid-35", DEMO_QWEN3_5, mid_shape},
            {"mid-35moe", DEMO_QWEN3_5_MOE, mid_shape}};

/* ---- all of them: the demos, the middle ones, the tiny ones, the published ones */

static const demo_shape *const demos[] = {&demo, &demo_35};

enum { DEMOS = sizeof demos / sizeof *demos, MIDS = sizeof mids / sizeof *mids };
enum { TINY = sizeof tinies / sizeof *tinies, PUBLISHED = sizeof models / sizeof *models };

const char *demo_shape_name(size_t index) {
    if (index < DEMOS) return demos[index]->name;
    index -= DEMOS;
    if (index < MIDS) return mids[index].name;
    index -= MIDS;
    if (index < TINY) return tinies[index].name;
    return index < TINY + PUBLISHED ? models[index - TINY].name : NULL;
}

bool demo_shape_find(const char *name, demo_shape *shape) {
    const char *known;
    for (size_t i = 0; (known = demo_shape_name(i)); i++) {
        if (strcmp(known, name) != 0) continue;
        if (i < DEMOS)
            *shape = *demos[i];
        else if (i < DEMOS + MIDS)
            *shape = mids[i - DEMOS].shape(mids[i - DEMOS].name, mids[i - DEMOS].family);
        else if (i < DEMOS + MIDS + TINY)
            *shape = tiny_shape(&tinies[i - DEMOS - MIDS]);
        else
            *shape = published_shape(&models[i - DEMOS - MIDS - TINY]);
        return true;
    }
    return false;
}

void demo_shape_shorten(demo_shape *shape, int depth) {
    demo_vision *vision = &shape->vision;
    vision->depth = depth;
    while (vision->deepstack_count > 0 && vision->deepstack[vision->deepstack_count - 1] >= depth)
        vision->deepstack_count--;
}

bool demo_family_hybrid(demo_family family) {
    return family >= DEMO_QWEN3_5;
}

bool demo_family_zero_centred(demo_family family) {
    return family >= DEMO_QWEN3_5;
}

bool demo_layer_is_linear(const demo_shape *shape, int layer) {
    return demo_family_hybrid(shape->family) && layer % 4 != 3;
}
