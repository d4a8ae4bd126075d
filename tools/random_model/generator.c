#include "generator.h"

#include <math.h>
#include <string.h>

uint32_t demo_seed(const char *name) {
    uint32_t hash = 2166136261u;
    for (const unsigned char *p = (const unsigned char *)name; *p; p++) hash = (hash ^ *p) * 16777619u;
    return hash;
}

/* Element index of the sequence that starts at seed. Every step is exact in f32: 24 bits, centred. */
static inline float mixed(uint32_t seed, uint32_t index) {
    uint32_t x = seed + index * 0x9E3779B9u;
    x ^= x >> 16;
    x *= 0x85EBCA6Bu;
    x ^= x >> 13;
    x *= 0xC2B2AE35u;
    x ^= x >> 16;
    return (float)((int32_t)(x >> 8) - 8388608) * 0x1p-23f;
}

/* Indices count modulo 2^32, as the rule of the generator says. */
static void fill(uint32_t seed, uint32_t first, int64_t count, float *u) {
    for (int64_t i = 0; i < count; i++) u[i] = mixed(seed, first + (uint32_t)i);
}

void demo_fill(const char *name, int64_t first, int64_t count, float *u) {
    fill(demo_seed(name), (uint32_t)first, count, u);
}

/* The dotted part that is `back` parts before the end ("" if there are fewer): start and length. */
static const char *name_part(const char *name, int back, size_t *length) {
    const char *end = name + strlen(name);
    const char *start = end;
    for (;; back--) {
        while (start > name && start[-1] != '.') start--;
        if (back == 0) break;
        if (start == name) {
            end = name;
            break;
        }
        end = --start;
    }
    *length = (size_t)(end - start);
    return start;
}

static bool part_contains(const char *part, size_t length, const char *word) {
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= length; i++)
        if (memcmp(part + i, word, n) == 0) return true;
    return false;
}

static bool is_norm_weight(const char *name) {
    size_t last_length, before_length;
    const char *last = name_part(name, 0, &last_length);
    const char *before = name_part(name, 1, &before_length);
    return last_length == 6 && memcmp(last, "weight", 6) == 0 && part_contains(before, before_length, "norm");
}

static bool is_bias(const char *name) {
    size_t length;
    const char *last = name_part(name, 0, &length);
    return part_contains(last, length, "bias");
}

demo_rule demo_value_rule(demo_init init, bool zero_centred, const char *name, const int64_t *shape, int ndim) {
    if (is_norm_weight(name)) {
        bool offset = !zero_centred || strstr(name, "visual.") || strstr(name, "linear_attn.norm.");
        return (demo_rule){.scale = 0.25, .offset = offset ? 1.0 : 0.0};
    }
    bool table = strstr(name, "pos_embed.") || strstr(name, "embed_tokens.");
    if (init == DEMO_SCALED && is_bias(name)) return (demo_rule){.scale = 0.1};
    if (init == DEMO_SCALED && strstr(name, "A_log")) return (demo_rule){.scale = 3.0, .offset = -3.0};
    if (init == DEMO_QUARTER || table || ndim < 2) return (demo_rule){.scale = 0.25};
    double fan_in = 1;
    for (int i = 1; i < ndim; i++) fan_in *= (double)shape[i];
    return (demo_rule){.scale = sqrt(3.0 / fan_in)};
}

void demo_fill_f32(const char *name, demo_rule rule, int64_t first, int64_t count, float *values) {
    demo_fill(name, first, count, values);
    for (int64_t i = 0; i < count; i++) values[i] = (float)(rule.offset + rule.scale * (double)values[i]);
}

void demo_fill_bf16(const char *name, demo_rule rule, int64_t first, int64_t count, uint16_t *values) {
    enum { CHUNK = 4096 };
    float chunk[CHUNK];
    for (int64_t done = 0; done < count; done += CHUNK) {
        int64_t n = count - done < CHUNK ? count - done : CHUNK;
        demo_fill_f32(name, rule, first + done, n, chunk);
        for (int64_t i = 0; i < n; i++) {
            uint32_t bits;
            memcpy(&bits, &chunk[i], 4);
            values[done + i] = (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
        }
    }
}
