#include "prompt/prompter.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"

#include <stdio.h>
#include <string.h>

#define MAX_FILE ((size_t)16 << 20)

void qvl_prompter_options_init(qvl_prompter_options *options) {
    *options = (qvl_prompter_options){.size = sizeof *options};
}

/* ---- token ids */

static qvl_status read_json(const char *folder, const char *name, cJSON **root, qvl_error *error) {
    *root = NULL;
    char *path = qvl_path_join(folder, name);
    if (!path) return qvl_fail_memory(error, "file name", strlen(name), 1);
    qvl_status status = qvl_file_exists(path) ? qvl_json_read(path, MAX_FILE, root, error) : QVL_OK;
    qvl_free(path);
    return status;
}

/* The tokenizer's id. config.json may be silent, but not say otherwise: transformers puts one of the two into the
 * text and looks for the other. */
static qvl_status find_pad(const qvl_prompter *p, const cJSON *config, const char *key, const char *content,
                           int32_t *id, qvl_error *error) {
    qvl_token token;
    int64_t said = -1;
    bool found;
    *id = qvl_token_find(p->tokenizer, content, &token) ? token.id : -1;
    qvl_status status = qvl_json_int(config, key, 0, INT32_MAX, "config.json", &said, &found, error);
    if (status || !found || said == *id) return status;
    return qvl_fail(error, QVL_ERROR_MODEL, "%s: config.json has %s %lld, but the tokenizer's %s is %d",
                    p->model->folder, key, (long long)said, content, *id);
}

/* Nothing looks for these ids any more; a wrong one is worth a note. (mlx-vlm's defaults are.) */
static qvl_status find_wrapper(const qvl_prompter *p, const cJSON *config, const char *key, const char *content,
                               int32_t *id, qvl_error *error) {
    qvl_token token;
    int64_t said = -1;
    bool found;
    *id = qvl_token_find(p->tokenizer, content, &token) ? token.id : -1;
    qvl_status status = qvl_json_int(config, key, 0, INT32_MAX, "config.json", &said, &found, error);
    if (status || !found || said == *id || !p->model->log) return status;
    char line[256];
    snprintf(line, sizeof line, "config.json has %s %lld, but the tokenizer's %s is %d, which is used", key,
             (long long)said, content, *id);
    p->model->log(line, p->model->log_user);
    return QVL_OK;
}

static qvl_status find_tokens(qvl_prompter *p, qvl_error *error) {
    cJSON *config;
    qvl_media_tokens *t = &p->tokens;
    qvl_status status = read_json(p->model->folder, "config.json", &config, error);
    if (!status) status = find_pad(p, config, "image_token_id", QVL_IMAGE_PAD, &t->image, error);
    if (!status) status = find_pad(p, config, "video_token_id", QVL_VIDEO_PAD, &t->video, error);
    if (!status) status = find_wrapper(p, config, "vision_start_token_id", QVL_VISION_START, &t->start, error);
    if (!status) status = find_wrapper(p, config, "vision_end_token_id", QVL_VISION_END, &t->end, error);
    cJSON_Delete(config);
    return status;
}

/* The variables that transformers adds: bos_token and so on, where tokenizer_config.json has them. */
static qvl_status read_specials(qvl_prompter *p, qvl_error *error) {
    static const char *const names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};
    cJSON *config;
    qvl_status status = read_json(p->model->folder, "tokenizer_config.json", &config, error);
    if (status) return status;
    p->specials = cJSON_CreateObject();
    bool good = p->specials != NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && good; i++) {
        const cJSON *token = cJSON_GetObjectItemCaseSensitive(config, names[i]);
        if (cJSON_IsObject(token)) token = cJSON_GetObjectItemCaseSensitive(token, "content");
        if (cJSON_IsString(token)) good = cJSON_AddStringToObject(p->specials, names[i], token->valuestring);
    }
    cJSON_Delete(config);
    return good ? QVL_OK : qvl_fail_memory(error, "special tokens", 1, MAX_FILE);
}

/* ---- templates */

/* One of the folder's templates; *template stays NULL where there is none. */
static qvl_status open_template(const qvl_prompter *p, const qvl_prompter_options *options, bool with_tools,
                                qvl_template **template, char **source, qvl_error *error) {
    char *text = NULL;
    size_t count = 0;
    qvl_status status =
        qvl_template_find(p->model->folder, options->template_name, with_tools, &text, &count, source, error);
    if (status || !text) return status;
    qvl_template_options named;
    qvl_template_options_init(&named);
    named.name = *source;
    status = qvl_template_open(text, count, &named, template, error);
    qvl_free(text);
    return status;
}

static qvl_status open_templates(qvl_prompter *p, const qvl_prompter_options *options, qvl_error *error) {
    if (options->template_text) {
        qvl_template_options named;
        qvl_template_options_init(&named);
        if (options->template_source) named.name = options->template_source;
        return qvl_template_open(options->template_text, strlen(options->template_text), &named, &p->chat, error);
    }
    qvl_status status = open_template(p, options, false, &p->chat, &p->chat_source, error);
    if (!status && !options->template_name)
        status = open_template(p, options, true, &p->tools, &p->tools_source, error);
    return status;
}

qvl_status qvl_prompter_template(const qvl_prompter *p, bool with_tools, const qvl_template **template,
                                 qvl_error *error) {
    *template = with_tools && p->tools ? p->tools : p->chat;
    if (*template) return QVL_OK;
    return qvl_fail(error, QVL_ERROR_MODEL,
                    "no chat template in %s: neither chat_template.jinja nor chat_template.json is there, and "
                    "tokenizer_config.json has no chat_template",
                    p->model->folder);
}

/* ---- the whole */

static qvl_status open_parts(qvl_prompter *p, const qvl_prompter_options *options, qvl_error *error) {
    const qvl_model *model = p->model;
    qvl_status status = qvl_tokenizer_open(model->folder, model->log, model->log_user, &p->tokenizer, error);
    if (!status) status = find_tokens(p, error);
    if (!status) status = read_specials(p, error);
    if (!status) status = open_templates(p, options, error);
    if (status || !model->tower) return status;
    status = qvl_embeddings_open(model->folder, model->config.vision.out_hidden_size, &p->embeddings, error);
    p->has_embeddings = !status;
    return status;
}

qvl_status qvl_prompter_open(const qvl_model *model, const qvl_prompter_options *given, qvl_prompter **out,
                             qvl_error *error) {
    *out = NULL;
    qvl_prompter_options options;
    qvl_prompter_options_init(&options);
    qvl_status status = qvl_options_take(&options, sizeof options, given, error);
    if (status) return status;
    qvl_prompter *p = qvl_calloc(1, sizeof *p);
    if (!p) return qvl_fail_memory(error, "prompter", 1, sizeof *p);
    p->model = model;
    status = open_parts(p, &options, error);
    if (status) qvl_prompter_close(&p);
    *out = p;
    return status;
}

void qvl_prompter_close(qvl_prompter **pointer) {
    if (!pointer || !*pointer) return;
    qvl_prompter *p = *pointer;
    *pointer = NULL;
    qvl_embeddings_close(&p->embeddings);
    cJSON_Delete(p->specials);
    qvl_free(p->chat_source);
    qvl_free(p->tools_source);
    qvl_template_close(&p->chat);
    qvl_template_close(&p->tools);
    qvl_tokenizer_close(&p->tokenizer);
    qvl_free(p);
}

const qvl_tokenizer *qvl_prompter_tokenizer(const qvl_prompter *prompter) {
    return prompter->tokenizer;
}
