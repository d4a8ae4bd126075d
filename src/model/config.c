/* What a folder's JSON files say about its vision tower and about pictures. The tower is recognised by the keys of
 * vision_config, not by model_type: all families read here share one tower and differ in sizes only. */
#include "model/config.h"
#include "model/processor.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_FILE ((size_t)16 << 20)

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---------------------------------------------------------------------------------------------- vision_config */

/* The integers of vision_config. Those without a default are what every writer of this tower stores: a
 * vision_config without them is another kind of tower. */
static const struct {
    const char *key;
    size_t offset;
    int32_t min, max;
    bool required;
} vision_integers[] = {
    {"depth", offsetof(qvl_vision_config, depth), 1, 1024, true},
    {"hidden_size", offsetof(qvl_vision_config, hidden_size), 1, 65536, true},
    {"intermediate_size", offsetof(qvl_vision_config, intermediate_size), 1, 1 << 20, true},
    {"out_hidden_size", offsetof(qvl_vision_config, out_hidden_size), 1, 1 << 20, false},
    {"in_channels", offsetof(qvl_vision_config, in_channels), 3, 3, false},
    {"spatial_merge_size", offsetof(qvl_vision_config, spatial_merge_size), 1, 8, false},
    {"num_position_embeddings", offsetof(qvl_vision_config, num_position_embeddings), 1, 1 << 24, false},
};

/* What transformers takes for a key that is not there. */
static const qvl_vision_config vision_defaults = {
    .out_hidden_size = 3584,
    .in_channels = 3,
    .patch_size = 16,
    .temporal_patch_size = 2,
    .spatial_merge_size = 2,
    .num_position_embeddings = 2304,
    .rope_theta = 10000.0f,
};

/* Towers that look alike and are not: by name, and by a key that this tower does not have. */
static const char *const other_towers[] = {"qwen2_vl", "qwen2_5_vl", "qwen2_5_omni"};
static const char *const other_keys[] = {"embed_dim", "fullatt_block_indexes", "window_size"};

static qvl_status refuse_other_towers(const char *type, const char *file, qvl_error *error) {
    for (size_t i = 0; i < sizeof other_towers / sizeof other_towers[0]; i++)
        if (strncmp(type, other_towers[i], strlen(other_towers[i])) == 0)
            return qvl_fail(error, QVL_ERROR_UNSUPPORTED,
                            "%s: model_type is %.60s, which has another vision tower than Qwen3-VL and later",
                            file, type);
    return QVL_OK;
}

static qvl_status read_integers(const cJSON *vision, const char *where, qvl_vision_config *config,
                                qvl_error *error) {
    for (size_t i = 0; i < sizeof vision_integers / sizeof vision_integers[0]; i++) {
        const char *key = vision_integers[i].key;
        int32_t *field = (int32_t *)(void *)((char *)config + vision_integers[i].offset);
        int64_t value = *field;
        bool found;
        qvl_status status = qvl_json_int(vision, key, vision_integers[i].min, vision_integers[i].max, where,
                                         &value, &found, error);
        if (status) return status;
        if (!found && vision_integers[i].required)
            return qvl_fail(error, QVL_ERROR_MODEL, "%s has no %s: not a tower that qvl knows", where, key);
        *field = (int32_t)value;
    }
    return QVL_OK;
}

/* num_heads in the files, num_attention_heads as the newer class also calls it. */
static qvl_status read_heads(const cJSON *vision, const char *where, qvl_vision_config *config, qvl_error *error) {
    int64_t heads = 0, alias = 0;
    bool has_heads, has_alias;
    qvl_status status = qvl_json_int(vision, "num_heads", 1, 1024, where, &heads, &has_heads, error);
    if (status) return status;
    status = qvl_json_int(vision, "num_attention_heads", 1, 1024, where, &alias, &has_alias, error);
    if (status) return status;
    if (!has_heads && !has_alias)
        return qvl_fail(error, QVL_ERROR_MODEL, "%s has no num_heads: not a tower that qvl knows", where);
    if (has_heads && has_alias && heads != alias)
        return qvl_fail(error, QVL_ERROR_MODEL, "%s: num_heads is %d but num_attention_heads is %d", where,
                        (int)heads, (int)alias);
    config->num_heads = (int32_t)(has_heads ? heads : alias);
    if (config->hidden_size % config->num_heads != 0)
        return qvl_fail(error, QVL_ERROR_MODEL, "%s: hidden_size %d is not a multiple of the %d heads", where,
                        config->hidden_size, config->num_heads);
    config->head_dim = config->hidden_size / config->num_heads;
    if (config->head_dim % 4 != 0)
        return qvl_fail(error, QVL_ERROR_MODEL,
                        "%s: a head has width %d (hidden_size %d, %d heads); it must be a multiple of 4", where,
                        config->head_dim, config->hidden_size, config->num_heads);
    int64_t head_dim = config->head_dim;
    return qvl_json_int(vision, "head_dim", head_dim, head_dim, where, &head_dim, NULL, error);
}

/* An integer, or a list of `length` equal ones, which transformers allows for patch sizes. */
static qvl_status read_side(const cJSON *vision, const char *key, int length, int32_t max, const char *where,
                            int32_t *side, qvl_error *error) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(vision, key);
    int64_t value = *side;
    if (!cJSON_IsArray(item)) {
        qvl_status status = qvl_json_int(vision, key, 1, max, where, &value, NULL, error);
        *side = (int32_t)value;
        return status;
    }
    const cJSON *first = item->child, *element;
    bool equal = cJSON_GetArraySize(item) == length && qvl_json_integer(first, 1, max, &value);
    cJSON_ArrayForEach(element, item) {
        int64_t other;
        equal = equal && qvl_json_integer(element, 1, max, &other) && other == value;
    }
    if (!equal)
        return qvl_fail(error, QVL_ERROR_UNSUPPORTED,
                        "%s: %s is a list; it must be an integer in 1..%d or a list of %d equal ones", where, key,
                        max, length);
    *side = (int32_t)value;
    return QVL_OK;
}

static qvl_status read_deepstack(const cJSON *vision, const char *where, qvl_vision_config *config,
                                 qvl_error *error) {
    const char *key = "deepstack_visual_indexes";
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(vision, key), *item;
    if (!list || cJSON_IsNull(list)) return QVL_OK;
    if (!cJSON_IsArray(list))
        return qvl_fail(error, QVL_ERROR_FORMAT, "%s: %s must be a list of block numbers", where, key);
    int64_t least = 0;
    cJSON_ArrayForEach(item, list) {
        if (config->deepstack_count == QVL_MAX_DEEPSTACK)
            return qvl_fail(error, QVL_ERROR_LIMIT, "%s: %s has more than %d entries", where, key,
                            QVL_MAX_DEEPSTACK);
        int64_t block;
        if (!qvl_json_integer(item, least, config->depth - 1, &block)) {
            char found[QVL_JSON_DESCRIPTION];
            qvl_json_describe(item, found);
            return qvl_fail(error, QVL_ERROR_MODEL,
                            "%s: %s has the entry %s; entries must be increasing integers in 0..%d", where, key,
                            found, config->depth - 1);
        }
        config->deepstack_indexes[config->deepstack_count++] = (int32_t)block;
        least = block + 1;
    }
    return QVL_OK;
}

/* As transformers standardises it: rope_scaling is the old name of rope_parameters, "type" of "rope_type", theta
 * may lie beside them, and "default" means this tower's own type, "axial". */
static qvl_status read_rope(const cJSON *vision, const char *where, qvl_vision_config *config, qvl_error *error) {
    const cJSON *rope;
    double theta = (double)config->rope_theta;
    const char *type = "axial";
    bool found;
    qvl_status status = qvl_json_number(vision, "rope_theta", 1.0, 1e12, where, &theta, NULL, error);
    if (status) return status;
    status = qvl_json_object(vision, "rope_scaling", where, &rope, error);
    if (!status && !rope) status = qvl_json_object(vision, "rope_parameters", where, &rope, error);
    if (status) return status;
    status = qvl_json_number(rope, "rope_theta", 1.0, 1e12, where, &theta, NULL, error);
    if (status) return status;
    status = qvl_json_string(rope, "rope_type", where, &type, &found, error);
    if (!status && !found) status = qvl_json_string(rope, "type", where, &type, NULL, error);
    if (status) return status;
    if (strcmp(type, "axial") != 0 && strcmp(type, "default") != 0)
        return qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%s: rope_type is \"%.60s\"; it must be \"axial\"", where,
                        type);
    config->rope_theta = (float)theta;
    return QVL_OK;
}

/* Every weight matrix must have fewer than 2^31 elements, so that later products cannot overflow. */
static qvl_status check_products(const qvl_vision_config *c, const char *where, qvl_error *error) {
    int64_t d = c->hidden_size, merged = (int64_t)c->spatial_merge_size * c->spatial_merge_size * d;
    int64_t patch = (int64_t)c->in_channels * c->temporal_patch_size * c->patch_size * c->patch_size;
    const struct {
        const char *what;
        int64_t rows, columns;
    } matrices[] = {
        {"qkv matrix", 3 * d, d},          {"MLP matrix", c->intermediate_size, d},
        {"merger matrix", merged, merged}, {"merger output matrix", c->out_hidden_size, merged},
        {"patch embedding", patch, d},     {"position table", c->num_position_embeddings, d},
    };
    for (size_t i = 0; i < sizeof matrices / sizeof matrices[0]; i++)
        if (matrices[i].rows > INT32_MAX / matrices[i].columns)
            return qvl_fail(error, QVL_ERROR_LIMIT,
                            "%s: the %s has %lld x %lld elements; fewer than 2^31 are allowed", where,
                            matrices[i].what, (long long)matrices[i].rows, (long long)matrices[i].columns);
    return QVL_OK;
}

static qvl_status read_vision(const cJSON *vision, const char *where, qvl_vision_config *config,
                              qvl_error *error) {
    *config = vision_defaults;
    const char *act = "gelu_pytorch_tanh";
    for (size_t i = 0; i < sizeof other_keys / sizeof other_keys[0]; i++)
        if (cJSON_GetObjectItemCaseSensitive(vision, other_keys[i]))
            return qvl_fail(error, QVL_ERROR_UNSUPPORTED,
                            "%s has %s: it is another tower than that of Qwen3-VL and later", where,
                            other_keys[i]);
    qvl_status status = read_integers(vision, where, config, error);
    if (!status) status = read_heads(vision, where, config, error);
    if (!status) status = read_side(vision, "patch_size", 2, 256, where, &config->patch_size, error);
    if (!status)
        status = read_side(vision, "temporal_patch_size", 1, 16, where, &config->temporal_patch_size, error);
    if (!status) status = read_deepstack(vision, where, config, error);
    if (!status) status = read_rope(vision, where, config, error);
    if (!status) status = qvl_json_string(vision, "hidden_act", where, &act, NULL, error);
    if (status) return status;
    if (strcmp(act, "gelu_pytorch_tanh") != 0)
        return qvl_fail(error, QVL_ERROR_UNSUPPORTED,
                        "%s: hidden_act is \"%.60s\"; it must be \"gelu_pytorch_tanh\"", where, act);
    config->position_side = (int32_t)sqrt((double)config->num_position_embeddings);
    return check_products(config, where, error);
}

/* root: config.json of a model with eyes; file: its path. */
static qvl_status read_config(const cJSON *root, const char *file, qvl_config *config, qvl_error *error) {
    const char *model_type = "", *vision_type = "";
    const cJSON *vision;
    char where[512];
    snprintf(where, sizeof where, "%.400s: vision_config", file);
    qvl_status status = qvl_json_string(root, "model_type", file, &model_type, NULL, error);
    if (!status) status = refuse_other_towers(model_type, file, error);
    if (!status) status = qvl_json_object(root, "vision_config", file, &vision, error);
    if (status) return status;
    if (!vision) {
        const char *name = base_name(file);
        int folder = name > file ? (int)(name - file) - 1 : 0;
        return qvl_fail(error, QVL_ERROR_MODEL, "no vision tower in %.*s: %s has no vision_config",
                        folder ? folder : 1, folder ? file : ".", name);
    }
    status = qvl_json_string(vision, "model_type", where, &vision_type, NULL, error);
    if (!status) status = refuse_other_towers(vision_type, where, error);
    if (status) return status;
    if (!*model_type) model_type = vision_type;
    if (strlen(model_type) >= sizeof config->model_type)
        return qvl_fail(error, QVL_ERROR_LIMIT, "%s: model_type has %zu characters; at most %zu are allowed", file,
                        strlen(model_type), sizeof config->model_type - 1);
    memcpy(config->model_type, model_type, strlen(model_type) + 1);
    return read_vision(vision, where, &config->vision, error);
}

qvl_status qvl_config_parse(const void *bytes, size_t count, const char *file, qvl_config *config,
                            qvl_error *error) {
    cJSON *root;
    *config = (qvl_config){0};
    qvl_status status = qvl_json_parse(bytes, count, file, &root, error);
    if (!status) status = read_config(root, file, config, error);
    cJSON_Delete(root);
    if (status) *config = (qvl_config){0};
    return status;
}

qvl_status qvl_config_read(const char *folder, qvl_log_fn log, void *log_user, qvl_config *config,
                           qvl_error *error) {
    *config = (qvl_config){0};
    cJSON *root = NULL;
    char *path = qvl_path_join(folder, "config.json");
    if (!path) return qvl_fail_memory(error, "file name", strlen(folder), 1);
    qvl_status status = qvl_json_read(path, MAX_FILE, &root, error);
    if (!status) status = read_config(root, path, config, error);
    if (!status) status = qvl_processors_read(folder, log, log_user, config, error);
    cJSON_Delete(root);
    qvl_free(path);
    if (status) *config = (qvl_config){0};
    return status;
}
