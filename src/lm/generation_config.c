#include "lm/generation_config.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "generation_config.json"
#define MAX_FILE ((size_t)16 << 20)

/* ---- settings */

void qvl_generate_options_init(qvl_generate_options *options) {
    *options = (qvl_generate_options){.size = sizeof *options};
    qvl_sampling_init(&options->sampling);
}

/* Settings of transformers that qvl has not, and the values that mean nothing. */
static const struct {
    const char *name;
    double neutral;
} unsupported[] = {
    {"num_beams", 1},
    {"num_beam_groups", 1},
    {"penalty_alpha", 0},
    {"typical_p", 1},
    {"epsilon_cutoff", 0},
    {"eta_cutoff", 0},
    {"top_h", 1},
    {"no_repeat_ngram_size", 0},
    {"encoder_no_repeat_ngram_size", 0},
    {"min_length", 0},
    {"encoder_repetition_penalty", 1},
    {"min_new_tokens", 0},
    {"guidance_scale", 1},
    {"diversity_penalty", 0},
    {"bad_words_ids", 0},
    {"sequence_bias", 0},
    {"suppress_tokens", 0},
    {"begin_suppress_tokens", 0},
    {"forced_bos_token_id", -1},
    {"forced_eos_token_id", -1},
    {"exponential_decay_length_penalty", 0},
    {"stop_strings", 0},
    {"watermarking_config", 0},
};

static void note_unsupported(const cJSON *root, const char *file, qvl_log_fn log, void *log_user) {
    for (size_t i = 0; log && i < sizeof unsupported / sizeof *unsupported; i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, unsupported[i].name);
        if (!item || cJSON_IsNull(item)) continue;
        if (cJSON_IsNumber(item) && item->valuedouble == unsupported[i].neutral) continue;
        char value[QVL_JSON_DESCRIPTION], line[320];
        qvl_json_describe(item, value);
        snprintf(line, sizeof line, "%.120s has %s %s, which qvl does not have: it is ignored", file,
                 unsupported[i].name, value);
        log(line, log_user);
    }
}

static qvl_status read_settings(const cJSON *root, const char *file, qvl_generate_options *options,
                                qvl_error *error) {
    qvl_sampling *s = &options->sampling;
    int64_t top_k = s->top_k;
    qvl_status status = qvl_json_bool(root, "do_sample", file, &s->do_sample, NULL, error);
    if (!status) status = qvl_json_number(root, "temperature", 0, 1e6, file, &s->temperature, NULL, error);
    if (!status) status = qvl_json_int(root, "top_k", 0, INT32_MAX, file, &top_k, NULL, error);
    if (!status) status = qvl_json_number(root, "top_p", 0, 1, file, &s->top_p, NULL, error);
    if (!status) status = qvl_json_number(root, "min_p", 0, 1, file, &s->min_p, NULL, error);
    if (!status)
        status = qvl_json_number(root, "repetition_penalty", 1e-6, 1e6, file, &s->repetition_penalty, NULL, error);
    if (!status)
        status = qvl_json_number(root, "presence_penalty", -1e6, 1e6, file, &s->presence_penalty, NULL, error);
    if (!status)
        status = qvl_json_int(root, "max_new_tokens", 1, INT32_MAX, file, &options->max_new_tokens, NULL, error);
    s->top_k = (int32_t)top_k;
    return status;
}

qvl_status qvl_generation_config_parse(const void *bytes, size_t count, const char *file, qvl_log_fn log,
                                       void *log_user, qvl_generate_options *options, qvl_error *error) {
    cJSON *root;
    qvl_status status = qvl_json_parse(bytes, count, file, &root, error);
    if (!status) status = read_settings(root, file, options, error);
    if (!status) note_unsupported(root, file, log, log_user);
    cJSON_Delete(root);
    return status;
}

static qvl_status read_file(const char *folder, const char *name, uint8_t **bytes, size_t *count,
                            qvl_error *error) {
    char *path = qvl_path_join(folder, name);
    *bytes = NULL;
    if (!path) return qvl_fail_memory(error, "file name", strlen(folder), 1);
    qvl_status status = qvl_file_exists(path) ? qvl_file_read(path, MAX_FILE, bytes, count, error) : QVL_OK;
    qvl_free(path);
    return status;
}

qvl_status qvl_generate_options_read(const qvl_prompter *prompter, qvl_generate_options *options,
                                     qvl_error *error) {
    const qvl_model *model = prompter->model;
    uint8_t *bytes;
    size_t count = 0;
    qvl_generate_options_init(options);
    options->sampling.top_k = 50; /* what transformers 5.23.0 takes where nobody says otherwise */
    qvl_status status = read_file(model->folder, FILE_NAME, &bytes, &count, error);
    if (!status && bytes)
        status = qvl_generation_config_parse(bytes, count, FILE_NAME, model->log, model->log_user, options, error);
    qvl_free(bytes);
    if (status) qvl_generate_options_init(options);
    return status;
}

/* ---- stop tokens */

typedef struct id_list {
    int32_t *ids;
    size_t count, capacity;
} id_list;

static qvl_status add(id_list *list, int64_t id, qvl_error *error) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 8;
        int32_t *grown = qvl_grow(list->ids, list->count, capacity, sizeof *grown);
        if (!grown) return qvl_fail_memory(error, "stop tokens", capacity, sizeof *grown);
        list->ids = grown;
        list->capacity = capacity;
    }
    list->ids[list->count++] = (int32_t)id;
    return QVL_OK;
}

/* eos_token_id of an object: an id, a list of ids, null or nothing. */
static qvl_status add_eos(id_list *list, const cJSON *object, const char *file, qvl_error *error) {
    const cJSON *eos = cJSON_GetObjectItemCaseSensitive(object, "eos_token_id");
    if (!eos || cJSON_IsNull(eos)) return QVL_OK;
    const cJSON *item = cJSON_IsArray(eos) ? eos->child : eos, *end = cJSON_IsArray(eos) ? NULL : eos->next;
    for (; item != end; item = item->next) {
        int64_t id;
        if (!qvl_json_integer(item, 0, INT32_MAX, &id)) {
            char value[QVL_JSON_DESCRIPTION];
            qvl_json_describe(item, value);
            return qvl_fail(error, QVL_ERROR_MODEL,
                            "%s: eos_token_id has %s; allowed is a token id, or a list of them", file, value);
        }
        qvl_status status = add(list, id, error);
        if (status) return status;
    }
    return QVL_OK;
}

static qvl_status add_file(id_list *list, const char *folder, const char *name, qvl_error *error) {
    uint8_t *bytes;
    size_t count = 0;
    cJSON *root = NULL;
    const cJSON *text = NULL;
    qvl_status status = read_file(folder, name, &bytes, &count, error);
    if (!status && bytes) status = qvl_json_parse(bytes, count, name, &root, error);
    qvl_free(bytes);
    if (!status && root) status = add_eos(list, root, name, error);
    if (!status && root) status = qvl_json_object(root, "text_config", name, &text, error);
    if (!status && text) status = add_eos(list, text, name, error);
    cJSON_Delete(root);
    return status;
}

static qvl_status add_token(id_list *list, const qvl_tokenizer *tokenizer, const char *content, qvl_error *error) {
    qvl_token token;
    return content && qvl_token_find(tokenizer, content, &token) ? add(list, token.id, error) : QVL_OK;
}

static int ascending(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

qvl_status qvl_stop_tokens(const qvl_prompter *prompter, int32_t **ids, size_t *count, qvl_error *error) {
    id_list list = {0};
    const char *folder = prompter->model->folder,
               *eos = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(prompter->specials, "eos_token"));
    const qvl_tokenizer *tokenizer = prompter->tokenizer;
    *ids = NULL;
    *count = 0;
    qvl_status status = add_file(&list, folder, FILE_NAME, error);
    if (!status) status = add_file(&list, folder, "config.json", error);
    if (!status) status = add_token(&list, tokenizer, eos, error);
    if (!status) status = add_token(&list, tokenizer, "<|im_end|>", error);
    if (!status) status = add_token(&list, tokenizer, "<|endoftext|>", error);
    if (status) {
        qvl_free(list.ids);
        return status;
    }
    if (list.count) qsort(list.ids, list.count, sizeof *list.ids, ascending);
    for (size_t i = 0; i < list.count; i++)
        if (i == 0 || list.ids[i] != list.ids[i - 1]) list.ids[(*count)++] = list.ids[i];
    *ids = list.ids;
    return QVL_OK;
}

/* ---- tokens that never come */

void qvl_never_tokens(const qvl_prompter *prompter, const int32_t *stops, size_t stop_count, int64_t vocab,
                      uint8_t *never) {
    static const char *const contents[] = {
        QVL_VISION_START,  QVL_VISION_END,  "<|vision_pad|>", QVL_IMAGE_PAD, QVL_VIDEO_PAD,
        "<|audio_start|>", "<|audio_end|>", "<|audio_pad|>",  "<|fim_pad|>", "<tts_pad>",
    };
    qvl_token token;
    for (int64_t id = 0; id < vocab; id++) never[id] = !qvl_token_get(prompter->tokenizer, (int32_t)id, &token);
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++)
        if (qvl_token_find(prompter->tokenizer, contents[i], &token) && token.id < vocab) never[token.id] = 1;
    for (size_t i = 0; i < stop_count; i++)
        if (stops[i] < vocab) never[stops[i]] = 0;
}
