/* What a folder's JSON files say about its vision tower and about pictures. The tower is recognised by the keys of
 * vision_config, not by model_type: all families read here share one tower and differ in sizes only. */
#include "model/config.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_FILE ((size_t)16 << 20)
/* No limit in a file can reach it; far below where areas stop being exact doubles. */
#define MAX_PIXELS ((int64_t)1 << 48)

__attribute__((format(printf, 3, 4))) static void note(qvl_log_fn log, void *user, const char *format, ...) {
    if (!log) return;
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    log(line, user);
}

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

/* ------------------------------------------------------------------------------------------ preprocessor files */

/* Class defaults of transformers' Qwen2VLImageProcessor. A file that has no image_mean or image_std means CLIP's;
 * every published file has them, at 0.5. */
static const qvl_processor_config processor_defaults = {
    .limits = {3136, 1003520},
    .source = "class default",
    .mean = {0.48145466f, 0.4578275f, 0.40821073f},
    .std = {0.26862954f, 0.26130258f, 0.27577711f},
    .rescale_factor = 0.00392156862745098,
};

/* Steps that cannot be switched off: every picture goes through them. */
static const char *const fixed_steps[] = {"do_resize", "do_rescale", "do_normalize"};

/* transformers does not load a file with another key in it either. */
static qvl_status check_size_keys(const cJSON *size, const char *where, qvl_error *error) {
    const cJSON *item;
    cJSON_ArrayForEach(item, size) {
        if (strcmp(item->string, "shortest_edge") == 0 || strcmp(item->string, "longest_edge") == 0) continue;
        if (!cJSON_IsNull(item))
            return qvl_fail(error, QVL_ERROR_FORMAT,
                            "%s: size has the key %.100s; it must contain shortest_edge and longest_edge only",
                            where, item->string);
    }
    return QVL_OK;
}

static qvl_status read_limits(const cJSON *object, const char *where, const char *file,
                              qvl_processor_config *processor, qvl_error *error) {
    const cJSON *size;
    int64_t shortest = processor->limits.min_pixels, longest = processor->limits.max_pixels;
    bool has_shortest = true, has_longest = true, has_min, has_max;
    qvl_status status = qvl_json_object(object, "size", where, &size, error);
    if (!status && size)
        status = qvl_json_int(size, "shortest_edge", 1, MAX_PIXELS, where, &shortest, &has_shortest, error);
    if (!status && size)
        status = qvl_json_int(size, "longest_edge", 1, MAX_PIXELS, where, &longest, &has_longest, error);
    if (!status) status = qvl_json_int(object, "min_pixels", 1, MAX_PIXELS, where, &shortest, &has_min, error);
    if (!status) status = qvl_json_int(object, "max_pixels", 1, MAX_PIXELS, where, &longest, &has_max, error);
    if (status) return status;
    /* An object is taken whole, not merged with the class default; the old names complete it. */
    if ((!has_shortest && !has_min) || (!has_longest && !has_max))
        return qvl_fail(error, QVL_ERROR_FORMAT, "%s: size must contain shortest_edge and longest_edge", where);
    status = check_size_keys(size, where, error);
    if (status) return status;
    processor->limits = (qvl_limits){shortest, longest};
    if (size || has_min || has_max) snprintf(processor->source, sizeof processor->source, "%s", base_name(file));
    return QVL_OK;
}

static qvl_status read_channels(const cJSON *object, const char *key, bool divisor, const char *where,
                                float values[3], qvl_error *error) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, key), *item;
    if (!list || cJSON_IsNull(list)) return QVL_OK;
    int i = 0;
    bool good = cJSON_IsArray(list) && cJSON_GetArraySize(list) == 3;
    cJSON_ArrayForEach(item, list) {
        if (!good) break;
        good = cJSON_IsNumber(item) && fabs(item->valuedouble) <= 1e6 && (!divisor || item->valuedouble >= 1e-6);
        values[i++] = good ? (float)item->valuedouble : 0.0f;
    }
    if (!good)
        return qvl_fail(error, QVL_ERROR_FORMAT, "%s: %s must be a list of three numbers in %s..1e6", where, key,
                        divisor ? "1e-6" : "-1e6");
    return QVL_OK;
}

/* The tower fixes these sizes; a file that contradicts it would give rows that the tower cannot read. */
static qvl_status check_sizes(const cJSON *object, const char *where, const qvl_vision_config *vision,
                              qvl_error *error) {
    const struct {
        const char *key, *vision_key;
        int32_t wanted;
    } sizes[] = {
        {"patch_size", "patch_size", vision->patch_size},
        {"temporal_patch_size", "temporal_patch_size", vision->temporal_patch_size},
        {"merge_size", "spatial_merge_size", vision->spatial_merge_size},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int64_t value = sizes[i].wanted;
        qvl_status status = qvl_json_int(object, sizes[i].key, 1, INT32_MAX, where, &value, NULL, error);
        if (status) return status;
        if (value != sizes[i].wanted)
            return qvl_fail(error, QVL_ERROR_MODEL, "%s: %s is %d, but config.json's vision_config has %s %d",
                            where, sizes[i].key, (int)value, sizes[i].vision_key, sizes[i].wanted);
    }
    return QVL_OK;
}

static qvl_status check_steps(const cJSON *object, const char *where, qvl_error *error) {
    for (size_t i = 0; i < sizeof fixed_steps / sizeof fixed_steps[0]; i++) {
        bool on = true;
        qvl_status status = qvl_json_bool(object, fixed_steps[i], where, &on, NULL, error);
        if (status) return status;
        if (!on)
            return qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%s: %s is false; qvl always does it", where,
                            fixed_steps[i]);
    }
    int64_t resample = 3;
    qvl_status status = qvl_json_int(object, "resample", 0, 100, where, &resample, NULL, error);
    if (status) return status;
    if (resample != 3)
        return qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%s: resample is %d; it must be 3 (bicubic)", where,
                        (int)resample);
    return QVL_OK;
}

/* object: an image processor's settings, of the file or of its image_processor. */
static qvl_status read_processor(const cJSON *object, bool nested, const char *file,
                                 const qvl_vision_config *vision, qvl_processor_config *processor,
                                 qvl_error *error) {
    char where[512];
    snprintf(where, sizeof where, "%.400s%s", file, nested ? ": image_processor" : "");
    *processor = processor_defaults;
    qvl_status status = read_limits(object, where, file, processor, error);
    if (!status) status = read_channels(object, "image_mean", false, where, processor->mean, error);
    if (!status) status = read_channels(object, "image_std", true, where, processor->std, error);
    if (!status)
        status =
            qvl_json_number(object, "rescale_factor", 1e-6, 1e6, where, &processor->rescale_factor, NULL, error);
    if (!status) status = check_steps(object, where, error);
    if (!status) status = check_sizes(object, where, vision, error);
    return status;
}

qvl_status qvl_processor_parse(const void *bytes, size_t count, const char *file, const qvl_vision_config *vision,
                               qvl_processor_config *processor, qvl_error *error) {
    cJSON *root;
    const cJSON *nested = NULL;
    *processor = (qvl_processor_config){0};
    qvl_status status = qvl_json_parse(bytes, count, file, &root, error);
    if (!status) status = qvl_json_object(root, "image_processor", file, &nested, error);
    if (!status) status = read_processor(nested ? nested : root, nested != NULL, file, vision, processor, error);
    cJSON_Delete(root);
    if (status) *processor = (qvl_processor_config){0};
    return status;
}

/* -------------------------------------------------------------------------------------------------- the folder */

typedef struct reader {
    qvl_log_fn log;
    void *user;
    char *combined, *plain; /* paths of processor_config.json and preprocessor_config.json */
} reader;

/* What differs, both values of each: "limits 1..2, not 1..3; rescale_factor 1, not 0.5". "" where nothing does. */
static void describe_differences(const qvl_processor_config *other, const qvl_processor_config *used,
                                 char text[512]) {
    const struct {
        const char *key;
        const float *other, *used;
    } channels[] = {{"image_mean", other->mean, used->mean}, {"image_std", other->std, used->std}};
    const qvl_limits *a = &other->limits, *b = &used->limits;
    size_t n = 0;
    text[0] = 0;
    if (a->min_pixels != b->min_pixels || a->max_pixels != b->max_pixels)
        n = (size_t)snprintf(text, 512, "limits %lld..%lld, not %lld..%lld", (long long)a->min_pixels,
                             (long long)a->max_pixels, (long long)b->min_pixels, (long long)b->max_pixels);
    for (size_t i = 0; i < 2; i++) {
        const float *x = channels[i].other, *y = channels[i].used;
        if (memcmp(x, y, 3 * sizeof *x) == 0) continue;
        n += (size_t)snprintf(text + n, 512 - n, "%s%s %g %g %g, not %g %g %g", n ? "; " : "", channels[i].key,
                              (double)x[0], (double)x[1], (double)x[2], (double)y[0], (double)y[1], (double)y[2]);
    }
    if (memcmp(&other->rescale_factor, &used->rescale_factor, sizeof used->rescale_factor) != 0)
        snprintf(text + n, 512 - n, "%srescale_factor %.9g, not %.9g", n ? "; " : "", other->rescale_factor,
                 used->rescale_factor);
}

/* Both files are there and the combined one was read. Nothing about the other can be an error. */
static void note_contradiction(const reader *r, const qvl_vision_config *vision,
                               const qvl_processor_config *used) {
    cJSON *root;
    qvl_processor_config other;
    qvl_error error = {0};
    char differences[512] = "";
    qvl_status status = qvl_json_read(r->plain, MAX_FILE, &root, &error);
    if (!status) status = read_processor(root, false, r->plain, vision, &other, &error);
    cJSON_Delete(root);
    if (status)
        note(r->log, r->user, "%s is used; the other file is not readable: %s", r->combined, error.message);
    else
        describe_differences(&other, used, differences);
    if (*differences)
        note(r->log, r->user, "%s is used, as transformers 5.23 does; %s says otherwise (%s)", r->combined,
             r->plain, differences);
}

/* Inside one file. An area goes by two names; transformers takes the flat one. A misspelt one is no limit at all.
 */
static void note_limits(const reader *r, const cJSON *object, const char *file) {
    static const struct {
        const char *flat, *edge;
    } names[] = {{"min_pixels", "shortest_edge"}, {"max_pixels", "longest_edge"}};
    const cJSON *size = cJSON_GetObjectItemCaseSensitive(object, "size"), *item;
    for (size_t i = 0; i < 2; i++) {
        int64_t flat, edge;
        if (qvl_json_integer(cJSON_GetObjectItemCaseSensitive(object, names[i].flat), 1, MAX_PIXELS, &flat) &&
            qvl_json_integer(cJSON_GetObjectItemCaseSensitive(size, names[i].edge), 1, MAX_PIXELS, &edge) &&
            flat != edge)
            note(r->log, r->user, "%s: %s is %lld but size.%s is %lld; the former is used, as transformers does",
                 file, names[i].flat, (long long)flat, names[i].edge, (long long)edge);
    }
    cJSON_ArrayForEach(item, object) {
        const char *key = item->string;
        if (!strstr(key, "pixel") && !strstr(key, "edge")) continue;
        if (strcmp(key, names[0].flat) == 0 || strcmp(key, names[1].flat) == 0 || cJSON_IsNull(item)) continue;
        note(r->log, r->user,
             "%s: %.100s is not a limit that is read, here or in transformers: those are size.shortest_edge and "
             "size.longest_edge, or min_pixels and max_pixels",
             file, key);
    }
}

static void note_defaults(const reader *r, const cJSON *object, const char *file,
                          const qvl_processor_config *processor) {
    if (strcmp(processor->source, processor_defaults.source) == 0)
        note(r->log, r->user, "%s has no size: transformers' class default of %lld..%lld pixels is used", file,
             (long long)processor->limits.min_pixels, (long long)processor->limits.max_pixels);
    if (!cJSON_GetObjectItemCaseSensitive(object, "image_mean") ||
        !cJSON_GetObjectItemCaseSensitive(object, "image_std"))
        note(r->log, r->user, "%s has no image_mean or image_std: transformers' class default, CLIP's, is used",
             file);
}

/* transformers cannot load such a folder at all; the original system takes these values. */
static void use_class_defaults(const reader *r, const char *folder, qvl_processor_config *processor) {
    *processor = processor_defaults;
    for (int i = 0; i < 3; i++) processor->mean[i] = processor->std[i] = 0.5f;
    note(r->log, r->user,
         "no preprocessor file in %s: class defaults are used, %lld..%lld pixels, mean and std 0.5; published "
         "folders say 65536..16777216",
         folder, (long long)processor->limits.min_pixels, (long long)processor->limits.max_pixels);
}

/* transformers (5.23.0, get_image_processor_dict) takes the image_processor of processor_config.json whole if it
 * is there, and preprocessor_config.json only otherwise. */
static qvl_status read_folder_processor(const reader *r, const char *folder, const qvl_vision_config *vision,
                                        qvl_processor_config *processor, qvl_error *error) {
    cJSON *root = NULL;
    const cJSON *nested = NULL;
    qvl_status status = QVL_OK;
    if (qvl_file_exists(r->combined)) {
        status = qvl_json_read(r->combined, MAX_FILE, &root, error);
        if (!status) status = qvl_json_object(root, "image_processor", r->combined, &nested, error);
        if (status) goto done;
    }
    if (nested) {
        status = read_processor(nested, true, r->combined, vision, processor, error);
        if (status) goto done;
        note_limits(r, nested, r->combined);
        note_defaults(r, nested, r->combined, processor);
        if (qvl_file_exists(r->plain)) note_contradiction(r, vision, processor);
    } else if (qvl_file_exists(r->plain)) {
        cJSON_Delete(root);
        status = qvl_json_read(r->plain, MAX_FILE, &root, error);
        if (!status) status = read_processor(root, false, r->plain, vision, processor, error);
        if (!status) note_limits(r, root, r->plain);
        if (!status) note_defaults(r, root, r->plain, processor);
    } else {
        use_class_defaults(r, folder, processor);
    }
done:
    cJSON_Delete(root);
    return status;
}

qvl_status qvl_config_read(const char *folder, qvl_log_fn log, void *log_user, qvl_config *config,
                           qvl_error *error) {
    *config = (qvl_config){0};
    qvl_status status;
    cJSON *root = NULL;
    char *path = qvl_path_join(folder, "config.json");
    reader r = {.log = log, .user = log_user};
    r.combined = qvl_path_join(folder, "processor_config.json");
    r.plain = qvl_path_join(folder, "preprocessor_config.json");
    if (!path || !r.combined || !r.plain) {
        status = qvl_fail_memory(error, "file names", 3, strlen(folder));
        goto done;
    }
    status = qvl_json_read(path, MAX_FILE, &root, error);
    if (!status) status = read_config(root, path, config, error);
    if (!status) status = read_folder_processor(&r, folder, &config->vision, &config->processor, error);
done:
    cJSON_Delete(root);
    qvl_free(r.plain);
    qvl_free(r.combined);
    qvl_free(path);
    if (status) *config = (qvl_config){0};
    return status;
}
