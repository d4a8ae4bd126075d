#include "text/tokenizer.h"

#include "base/file.h"
#include "base/memory.h"

#include <string.h>

/* Published files have 10 to 20 MB. */
#define TOKENIZER_BYTES ((size_t)128 << 20)
#define CONFIG_BYTES ((size_t)16 << 20)

qvl_status qvl_tokenizer_parse(const char *folder, const qvl_tokenizer_files *files, qvl_log_fn log,
                               void *log_user, qvl_tokenizer **tokenizer, qvl_error *error) {
    *tokenizer = NULL;
    qvl_tokenizer *t = qvl_calloc(1, sizeof *t);
    if (!t) return qvl_fail_memory(error, "tokenizer", 1, sizeof *t);
    t->folder = qvl_strdup(folder);
    qvl_status status = t->folder ? qvl_tokenizer_load(t, files, log, log_user, error)
                                  : qvl_fail_memory(error, "folder name", strlen(folder) + 1, 1);
    if (status) qvl_tokenizer_close(&t);
    *tokenizer = t;
    return status;
}

static qvl_status read_file(const char *folder, const char *name, size_t limit, bool needed, uint8_t **bytes,
                            size_t *count, qvl_error *error) {
    char *path = qvl_path_join(folder, name);
    if (!path) return qvl_fail_memory(error, "file name", strlen(folder), 1);
    qvl_status status = needed || qvl_file_exists(path) ? qvl_file_read(path, limit, bytes, count, error) : QVL_OK;
    qvl_free(path);
    return status;
}

qvl_status qvl_tokenizer_open(const char *folder, qvl_log_fn log, void *log_user, qvl_tokenizer **tokenizer,
                              qvl_error *error) {
    uint8_t *json = NULL, *config = NULL;
    qvl_tokenizer_files files = {0};
    *tokenizer = NULL;
    qvl_status status =
        read_file(folder, "tokenizer.json", TOKENIZER_BYTES, true, &json, &files.json_count, error);
    if (!status)
        status =
            read_file(folder, "tokenizer_config.json", CONFIG_BYTES, false, &config, &files.config_count, error);
    files.json = json;
    files.config = config;
    if (!status) status = qvl_tokenizer_parse(folder, &files, log, log_user, tokenizer, error);
    qvl_free(json);
    qvl_free(config);
    return status;
}

void qvl_tokenizer_close(qvl_tokenizer **tokenizer) {
    if (!tokenizer || !*tokenizer) return;
    qvl_tokenizer *t = *tokenizer;
    qvl_vocabulary_close(&t->vocabulary);
    qvl_bpe_close(&t->bpe);
    qvl_added_free(&t->added);
    qvl_unicode_close(&t->unicode);
    qvl_free(t->folder);
    qvl_free(t);
    *tokenizer = NULL;
}

void qvl_tokenizer_get_info(const qvl_tokenizer *tokenizer, qvl_tokenizer_info *info) {
    *info = (qvl_tokenizer_info){.folder = tokenizer->folder,
                                 .base_count = tokenizer->vocabulary.base_count,
                                 .added_count = tokenizer->added.count,
                                 .id_limit = tokenizer->vocabulary.id_limit,
                                 .splitter = qvl_splitter_name(tokenizer->splitter)};
}

bool qvl_token_get(const qvl_tokenizer *tokenizer, int32_t id, qvl_token *token) {
    const qvl_vocabulary *v = &tokenizer->vocabulary;
    *token = (qvl_token){0};
    if (!qvl_vocabulary_has(v, id)) return false;
    token->id = id;
    token->bytes = qvl_vocabulary_bytes(v, id, &token->byte_count);
    token->added = v->flags[id] & QVL_TOKEN_ADDED;
    token->special = v->flags[id] & QVL_TOKEN_SPECIAL;
    return true;
}

bool qvl_token_find(const qvl_tokenizer *tokenizer, const char *content, qvl_token *token) {
    const qvl_added_tokens *added = &tokenizer->added;
    *token = (qvl_token){0};
    for (int32_t i = 0; i < added->count; i++)
        if (strcmp(added->items[i].content, content) == 0)
            return qvl_token_get(tokenizer, added->items[i].id, token);
    return false;
}

qvl_token qvl_token_added(const qvl_tokenizer *tokenizer, int32_t index) {
    qvl_token token;
    qvl_token_get(tokenizer, tokenizer->added.items[index].id, &token);
    return token;
}

void qvl_tokenize_options_init(qvl_tokenize_options *options) {
    *options = (qvl_tokenize_options){.size = sizeof *options};
}

void qvl_tokens_free(qvl_tokens *tokens) {
    if (!tokens) return;
    qvl_free(tokens->ids);
    qvl_free(tokens->starts);
    *tokens = (qvl_tokens){0};
}

void qvl_text_free(qvl_text *text) {
    if (!text) return;
    qvl_free(text->bytes);
    *text = (qvl_text){0};
}
