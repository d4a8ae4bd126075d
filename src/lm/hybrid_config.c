#include "lm/hybrid_config.h"

#include "compute/delta.h"

#include <string.h>

static const struct {
    const char *key;
    size_t offset;
    int32_t min, max,
        standard; /* standard: what transformers takes where the key is missing; 0: it must be there */
} integers[] = {
    {"linear_num_key_heads", offsetof(qvl_hybrid_config, key_heads), 1, 1024, 0},
    {"linear_num_value_heads", offsetof(qvl_hybrid_config, value_heads), 1, 1024, 0},
    {"linear_key_head_dim", offsetof(qvl_hybrid_config, key_dim), 1, QVL_DELTA_MAX_WIDTH, 0},
    {"linear_value_head_dim", offsetof(qvl_hybrid_config, value_dim), 1, QVL_DELTA_MAX_WIDTH, 0},
    {"linear_conv_kernel_dim", offsetof(qvl_hybrid_config, conv_width), 2, QVL_CONV_MAX_WIDTH, 4},
};

static qvl_status read_integers(const cJSON *text, const char *where, qvl_hybrid_config *c, qvl_error *error) {
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++) {
        int64_t value = integers[i].standard;
        bool found;
        qvl_status status =
            qvl_json_int(text, integers[i].key, integers[i].min, integers[i].max, where, &value, &found, error);
        if (status) return status;
        if (!value) return qvl_fail(error, QVL_ERROR_MODEL, "%s has no %s", where, integers[i].key);
        *(int32_t *)(void *)((char *)c + integers[i].offset) = (int32_t)value;
    }
    return QVL_OK;
}

/* layer_types, or else every full_attention_interval-th layer is full attention. */
static qvl_status read_kinds(const cJSON *text, const char *where, int32_t layers, qvl_hybrid_config *c,
                             qvl_error *error) {
    const cJSON *types = cJSON_GetObjectItemCaseSensitive(text, "layer_types"), *item;
    int64_t interval = 4;
    qvl_status status =
        qvl_json_int(text, "full_attention_interval", 1, QVL_MAX_TEXT_LAYERS, where, &interval, NULL, error);
    if (status) return status;
    if (!types || cJSON_IsNull(types)) {
        for (int32_t i = 0; i < layers; i++) c->linear[i] = (i + 1) % interval != 0;
    } else {
        int32_t count = 0;
        if (!cJSON_IsArray(types) || cJSON_GetArraySize(types) != layers)
            return qvl_fail(error, QVL_ERROR_MODEL, "%s: layer_types has %d entries for %d layers", where,
                            cJSON_GetArraySize(types), layers);
        cJSON_ArrayForEach(item, types) {
            const char *type = cJSON_IsString(item) ? item->valuestring : "(not a string)";
            c->linear[count] = strcmp(type, "linear_attention") == 0;
            if (!c->linear[count] && strcmp(type, "full_attention") != 0)
                return qvl_fail(error, QVL_ERROR_UNSUPPORTED,
                                "%s: layer_types[%d] is \"%.60s\"; qvl computes \"linear_attention\" and "
                                "\"full_attention\"",
                                where, count, type);
            count++;
        }
    }
    for (int32_t i = 0; i < layers; i++) c->linear_layers += c->linear[i];
    return QVL_OK;
}

static qvl_status check_sizes(const char *where, int32_t hidden_size, const qvl_hybrid_config *c,
                              qvl_error *error) {
    if (c->value_heads % c->key_heads)
        return qvl_fail(error, QVL_ERROR_MODEL,
                        "%s: linear_num_value_heads is %d, which is no multiple of linear_num_key_heads, %d",
                        where, c->value_heads, c->key_heads);
    int64_t channels = 2 * (int64_t)c->key_heads * c->key_dim + (int64_t)c->value_heads * c->value_dim;
    int64_t state = (int64_t)c->value_heads * c->key_dim * c->value_dim;
    if (channels > INT32_MAX / hidden_size || state > INT32_MAX / 8)
        return qvl_fail(error, QVL_ERROR_LIMIT,
                        "%s: linear attention has %lld channels and a state of %lld values; in_proj_qkv and a "
                        "state must have fewer than 2^31 and 2^28",
                        where, (long long)channels, (long long)state);
    return QVL_OK;
}

/* Keys that may only have one value, which is also what their absence means. */
static qvl_status check_fixed(const cJSON *text, const char *where, qvl_error *error) {
    bool gated = true;
    const char *gate = "swish";
    qvl_status status = qvl_json_bool(text, "attn_output_gate", where, &gated, NULL, error);
    if (!status) status = qvl_json_string(text, "output_gate_type", where, &gate, NULL, error);
    if (!status && !gated)
        status = qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%s: attn_output_gate is false; it must be true", where);
    if (!status && strcmp(gate, "swish") != 0 && strcmp(gate, "silu") != 0)
        status = qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%s: output_gate_type is \"%.60s\"; it must be \"swish\"",
                          where, gate);
    return status;
}

qvl_status qvl_hybrid_config_read(const cJSON *text, const char *where, int32_t layers, int32_t hidden_size,
                                  bool experts, qvl_hybrid_config *c, qvl_error *error) {
    *c = (qvl_hybrid_config){.on = true};
    qvl_status status = read_integers(text, where, c, error);
    if (!status) status = read_kinds(text, where, layers, c, error);
    if (!status) status = check_sizes(where, hidden_size, c, error);
    if (!status) status = check_fixed(text, where, error);
    if (status || !experts) return status;
    int64_t width = 0;
    bool found;
    status = qvl_json_int(text, "shared_expert_intermediate_size", 1, INT32_MAX / hidden_size, where, &width,
                          &found, error);
    if (!status && !found)
        status = qvl_fail(error, QVL_ERROR_MODEL, "%s has no shared_expert_intermediate_size", where);
    c->shared_intermediate_size = (int32_t)width;
    return status;
}
