#include "naming.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const demo_naming namings[] = {
    {"hf", "model.visual.", "model.language_model.", "lm_head.", DEMO_LAYOUT_HF, "pt", false},
    {"visual", "visual.", "model.", "lm_head.", DEMO_LAYOUT_HF, "pt", false},
    {"mlx", "vision_tower.", "language_model.model.", "language_model.lm_head.", DEMO_LAYOUT_MLX, "mlx", false},
    {"stray", "model.language_model.visual.", "model.language_model.", "lm_head.", DEMO_LAYOUT_HF, "pt", false},
    {"flat", "", "", "lm_head.", DEMO_LAYOUT_HF, "pt", false},
    {"sidecar", "vision_tower.", "language_model.model.", "language_model.lm_head.", DEMO_LAYOUT_MLX, "mlx", true},
};

const demo_naming *demo_naming_find(const char *name) {
    for (size_t i = 0; i < sizeof namings / sizeof *namings; i++)
        if (strcmp(namings[i].name, name) == 0) return &namings[i];
    return NULL;
}

bool demo_layout_find(const char *name, demo_layout *layout) {
    static const char *const names[] = {"hf", "mlx", "flat"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(names[i], name) != 0) continue;
        *layout = (demo_layout)i;
        return true;
    }
    return false;
}

demo_tensor demo_rename(const demo_tensor *tensor, const demo_naming *naming) {
    const struct {
        const char *from, *to;
    } rules[] = {
        {"model.visual.", naming->tower}, {"model.language_model.", naming->text}, {"lm_head.", naming->head}};
    demo_tensor renamed = *tensor;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        size_t length = strlen(rules[i].from);
        if (strncmp(tensor->name, rules[i].from, length) != 0) continue;
        snprintf(renamed.name, sizeof renamed.name, "%s%s", rules[i].to, tensor->name + length);
        break;
    }
    return renamed;
}

/* [d, 3, pixels] -> [d, pixels, 3] */
static bool move_channels_last(int64_t d, int64_t channels, int64_t pixels, char *values, size_t size) {
    size_t row = (size_t)(channels * pixels) * size;
    char *old = malloc(row);
    for (int64_t r = 0; old && r < d; r++) {
        char *to = values + (size_t)r * row;
        memcpy(old, to, row);
        for (int64_t i = 0; i < pixels; i++)
            for (int64_t c = 0; c < channels; c++, to += size)
                memcpy(to, old + (size_t)(c * pixels + i) * size, size);
    }
    free(old);
    return old != NULL;
}

bool demo_lay_out(demo_tensor *tensor, demo_layout layout, void *values, size_t size) {
    const char *patch = "patch_embed.proj.weight";
    size_t length = strlen(tensor->name);
    bool is_patch = length >= strlen(patch) && strcmp(tensor->name + length - strlen(patch), patch) == 0;
    if (!is_patch || layout == DEMO_LAYOUT_HF) return true;
    int64_t *s = tensor->shape, channels = s[1], pixels = s[2] * s[3] * s[4];
    if (layout == DEMO_LAYOUT_FLAT) {
        tensor->ndim = 2;
        s[1] = channels * pixels;
        return true;
    }
    memmove(s + 1, s + 2, 3 * sizeof *s);
    s[4] = channels;
    return move_channels_last(s[0], channels, pixels, values, size);
}
