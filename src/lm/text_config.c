/* What config.json says of its language model. A key that would change the computation and is not followed here is
 * refused with its value: nothing is computed by halves. */
#include "lm/text_config.h"

#include "base/file.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_FILE ((size_t)16 << 20)

/* Those without a default must be there. */
static const struct {
    const char *key;
    size_t offset;
    int32_t max;
    bool required;
} integers[] = {
    {"num_hidden_layers", offsetof(qvl_text_config, layers), QVL_MAX_TEXT_LAYERS, true},
    {"hidden_size", offsetof(qvl_text_config, hidden_size), 1 << 16, true},
    {"num_attention_heads", offsetof(qvl_text_config, heads), 1024, true},
    {"num_key_value_heads", offsetof(qvl_text_config, kv_heads), 1024, false},
    {"head_dim", offsetof(qvl_text_config, head_dim), 512, false},
    {"vocab_size", offsetof(qvl_text_config, vocab_size), 1 << 22, true},
    {"intermediate_size", offsetof(qvl_text_config, intermediate_size), 1 << 20, false},
    {"num_experts", offsetof(qvl_text_config, experts), 4096, false},
    {"num_experts_per_tok", offsetof(qvl_text_config, experts_per_token), 64, false},
    {"moe_intermediate_size", offsetof(qvl_text_config, expert_intermediate_size), 1 << 20, false},
};

static qvl_status read_integers(const cJSON *text, const char *where, qvl_text_config *config, qvl_error *error) {
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++) {
        int32_t *field = (int32_t *)(void *)((char *)config + integers[i].offset);
        int64_t value = 0;
        bool found;
        qvl_status status = qvl_json_int(text, integers[i].key, 1, integers[i].max, where, &value, &found, error);
        if (status) return status;
        if (!found && integers[i].required)
            return qvl_fail(error, QVL_ERROR_MODEL, "%s has no %s", where, integers[i].key);
        if (found) *field = (int32_t)value;
    }
    bool found;
    qvl_status status = qvl_json_int(text, "max_position_embeddings", 1, (int64_t)1 << 31, where,
                                     &config->max_positions, &found, error);
    if (!status && !found) status = qvl_fail(error, QVL_ERROR_MODEL, "%s has no max_position_embeddings", where);
    return status;
}

/* A key that may only have one value, which is also what its absence means. */
static qvl_status want_false(const cJSON *text, const char *key, const char *where, qvl_error *error) {
    bool value = false;
    qvl_status status = qvl_json_bool(text, key, where, &value, NULL, error);
    if (!status && value)
        status = qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%s: %s is true, which qvl does not compute", where, key);
    return status;
}

static qvl_status check_fixed(const cJSON *text, const char *where, qvl_error *error) {
    const char *act = "silu";
    qvl_status status = qvl_json_string(text, "hidden_act", where, &act, NULL, error);
    if (!status && strcmp(act, "silu") != 0)
        status =
            qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%s: hidden_act is \"%.60s\"; it must be \"silu\"", where, act);
    if (!status) status = want_false(text, "attention_bias", where, error);
    if (!status) status = want_false(text, "use_sliding_window", where, error);
    return status;
}

static qvl_status check_experts(const cJSON *text, const char *where, qvl_text_config *c, qvl_error *error) {
    if (!c->experts) {
        if (c->intermediate_size) return QVL_OK;
        return qvl_fail(error, QVL_ERROR_MODEL, "%s has neither intermediate_size nor num_experts", where);
    }
    int64_t sparse_step = 1;
    bool normalise = true;
    qvl_status status = qvl_json_int(text, "decoder_sparse_step", 1, 1, where, &sparse_step, NULL, error);
    if (!status) status = qvl_json_bool(text, "norm_topk_prob", where, &normalise, NULL, error);
    if (status) return status;
    const cJSON *dense = cJSON_GetObjectItemCaseSensitive(text, "mlp_only_layers");
    if (cJSON_GetArraySize(dense) > 0)
        return qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%s: mlp_only_layers has %d entries; it must be empty",
                        where, cJSON_GetArraySize(dense));
    if (!normalise)
        return qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%s: norm_topk_prob is false; it must be true", where);
    if (!c->expert_intermediate_size || !c->experts_per_token || c->experts_per_token > c->experts)
        return qvl_fail(error, QVL_ERROR_MODEL,
                        "%s: %d experts, %d per token, moe_intermediate_size %d, which do not fit together", where,
                        c->experts, c->experts_per_token, c->expert_intermediate_size);
    return QVL_OK;
}

/* ---- rotary embedding */

static qvl_status read_sections(const cJSON *rope, const char *where, qvl_text_config *c, qvl_error *error) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(rope, "mrope_section"), *item;
    bool interleaved = true;
    qvl_status status = qvl_json_bool(rope, "mrope_interleaved", where, &interleaved, NULL, error);
    if (status) return status;
    if (!interleaved)
        return qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%s: mrope_interleaved is false; it must be true", where);
    int count = 0, sum = 0;
    cJSON_ArrayForEach(item, list) {
        int64_t value;
        if (count == 3 || !qvl_json_integer(item, 0, 256, &value)) break;
        c->sections[count++] = (int32_t)value;
        sum += (int)value;
    }
    if (count != 3 || cJSON_GetArraySize(list) != 3 || sum != c->rotary / 2)
        return qvl_fail(
            error, QVL_ERROR_MODEL,
            "%s: mrope_section must be a list of three numbers whose sum is %d, half of the %d dimensions "
            "that turn",
            where, c->rotary / 2, c->rotary);
    /* Frequency i belongs to axis i mod 3 while that axis has some left: see rotary.c. */
    if (c->sections[1] * 3 > c->rotary / 2 + 2 || c->sections[2] * 3 > c->rotary / 2 + 2)
        return qvl_fail(error, QVL_ERROR_UNSUPPORTED,
                        "%s: mrope_section is [%d, %d, %d]; h and w cannot have more than a third each", where,
                        c->sections[0], c->sections[1], c->sections[2]);
    return QVL_OK;
}

static qvl_status read_yarn(const cJSON *rope, const char *where, qvl_text_config *c, qvl_error *error) {
    qvl_yarn *y = &c->yarn;
    bool has_factor, has_original, has_attention;
    static const char *const others[] = {"mscale", "mscale_all_dim", "truncate"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (cJSON_GetObjectItemCaseSensitive(rope, others[i]))
            return qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%s has %s, which qvl does not compute", where,
                            others[i]);
    *y = (qvl_yarn){.on = true, .beta_fast = 32.0, .beta_slow = 1.0};
    qvl_status status = qvl_json_number(rope, "factor", 1.0, 1e6, where, &y->factor, &has_factor, error);
    if (!status)
        status = qvl_json_number(rope, "original_max_position_embeddings", 1.0, 1e9, where,
                                 &y->original_max_positions, &has_original, error);
    if (!status)
        status = qvl_json_number(rope, "attention_factor", 1e-6, 1e6, where, &y->attention_factor, &has_attention,
                                 error);
    if (!status) status = qvl_json_number(rope, "beta_fast", 1e-6, 1e6, where, &y->beta_fast, NULL, error);
    if (!status) status = qvl_json_number(rope, "beta_slow", 1e-6, 1e6, where, &y->beta_slow, NULL, error);
    if (status) return status;
    if (!has_factor || !has_original)
        return qvl_fail(error, QVL_ERROR_MODEL,
                        "%s: rope_type is \"yarn\", which needs factor and original_max_position_embeddings",
                        where);
    if (!has_attention) y->attention_factor = 0.1 * log(y->factor) + 1.0;
    return QVL_OK;
}

/* rope_scaling is the old name of rope_parameters, "type" of "rope_type"; theta may lie beside them. */
static qvl_status read_rope(const cJSON *text, const char *where, qvl_text_config *c, qvl_error *error) {
    const cJSON *rope;
    double theta = 0.0, part = 1.0;
    const char *type = "default";
    bool has_theta = false, in_rope = false, found;
    qvl_status status = qvl_json_number(text, "rope_theta", 1.0, 1e12, where, &theta, &has_theta, error);
    if (!status) status = qvl_json_number(text, "partial_rotary_factor", 0.01, 1.0, where, &part, NULL, error);
    if (!status) status = qvl_json_object(text, "rope_parameters", where, &rope, error);
    if (!status && !rope) status = qvl_json_object(text, "rope_scaling", where, &rope, error);
    if (!status) status = qvl_json_number(rope, "rope_theta", 1.0, 1e12, where, &theta, &in_rope, error);
    if (!status) status = qvl_json_number(rope, "partial_rotary_factor", 0.01, 1.0, where, &part, NULL, error);
    if (!status) status = qvl_json_string(rope, "rope_type", where, &type, &found, error);
    if (!status && !found) status = qvl_json_string(rope, "type", where, &type, NULL, error);
    if (status) return status;
    if (!has_theta && !in_rope) return qvl_fail(error, QVL_ERROR_MODEL, "%s has no rope_theta", where);
    c->rope_theta = (float)theta;
    c->rotary = (int32_t)(c->head_dim * part);
    if (c->rotary < 2 || c->rotary % 2)
        return qvl_fail(
            error, QVL_ERROR_UNSUPPORTED,
            "%s: %d of %d dimensions of a head turn (partial_rotary_factor %g); it must be an even number", where,
            c->rotary, c->head_dim, part);
    status = read_sections(rope, where, c, error);
    if (status) return status;
    if (strcmp(type, "yarn") == 0) return read_yarn(rope, where, c, error);
    if (strcmp(type, "default") == 0 || strcmp(type, "mrope") == 0) return QVL_OK;
    return qvl_fail(error, QVL_ERROR_UNSUPPORTED,
                    "%s: rope_type is \"%.60s\"; qvl computes \"default\" and \"yarn\"", where, type);
}

static qvl_status check_sizes(const char *where, const qvl_text_config *c, qvl_error *error) {
    if (c->heads % c->kv_heads)
        return qvl_fail(error, QVL_ERROR_MODEL, "%s: %d heads are not a multiple of the %d key-value heads", where,
                        c->heads, c->kv_heads);
    if (c->head_dim % 2)
        return qvl_fail(error, QVL_ERROR_MODEL, "%s: head_dim is %d; it must be even", where, c->head_dim);
    const struct {
        const char *what;
        int64_t rows;
    } matrices[] = {{"query projection", (int64_t)c->heads * c->head_dim},
                    {"embedding table", c->vocab_size},
                    {"MLP matrix", c->intermediate_size},
                    {"expert matrix", 2 * (int64_t)c->expert_intermediate_size}};
    for (size_t i = 0; i < sizeof matrices / sizeof matrices[0]; i++)
        if (matrices[i].rows > INT32_MAX / c->hidden_size)
            return qvl_fail(error, QVL_ERROR_LIMIT,
                            "%s: the %s has %lld x %d elements; fewer than 2^31 are allowed", where,
                            matrices[i].what, (long long)matrices[i].rows, c->hidden_size);
    return QVL_OK;
}

static qvl_status read_text(const cJSON *root, const char *file, qvl_text_config *config, qvl_error *error) {
    const char *model_type = "";
    const cJSON *text;
    double eps = 1e-6;
    char where[512];
    snprintf(where, sizeof where, "%.400s: text_config", file);
    qvl_status status = qvl_json_string(root, "model_type", file, &model_type, NULL, error);
    if (!status) status = qvl_json_object(root, "text_config", file, &text, error);
    if (!status && !text) status = qvl_fail(error, QVL_ERROR_MODEL, "%s has no text_config", file);
    if (status) return status;
    snprintf(config->model_type, sizeof config->model_type, "%s", model_type);
    status = read_integers(text, where, config, error);
    if (status) return status;
    if (!config->kv_heads) config->kv_heads = config->heads;
    if (!config->head_dim) config->head_dim = 128; /* what transformers takes */
    status = check_fixed(text, where, error);
    if (!status) status = check_experts(text, where, config, error);
    if (!status) status = check_sizes(where, config, error);
    if (!status) status = read_rope(text, where, config, error);
    if (!status) status = qvl_json_number(text, "rms_norm_eps", 1e-30, 1.0, where, &eps, NULL, error);
    config->eps = (float)eps;
    if (!status && strncmp(model_type, "qwen3_5", 7) == 0)
        status = qvl_hybrid_config_read(text, where, config->layers, config->hidden_size, config->experts > 0,
                                        &config->hybrid, error);
    return status;
}

qvl_status qvl_text_config_parse(const void *bytes, size_t count, const char *file, qvl_text_config *config,
                                 qvl_error *error) {
    *config = (qvl_text_config){0};
    cJSON *root;
    qvl_status status = qvl_json_parse(bytes, count, file, &root, error);
    if (!status) status = read_text(root, file, config, error);
    cJSON_Delete(root);
    return status;
}

qvl_status qvl_text_config_read(const char *folder, qvl_text_config *config, qvl_error *error) {
    *config = (qvl_text_config){0};
    char *path = qvl_path_join(folder, "config.json");
    if (!path) return qvl_fail_memory(error, "file name", strlen(folder), 1);
    cJSON *root;
    qvl_status status = qvl_json_read(path, MAX_FILE, &root, error);
    if (!status) status = read_text(root, path, config, error);
    cJSON_Delete(root);
    qvl_free(path);
    return status;
}
