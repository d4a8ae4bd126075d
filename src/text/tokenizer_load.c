/* A tokenizer out of the bytes of tokenizer.json and tokenizer_config.json. */
#include "base/file.h"
#include "base/memory.h"
#include "text/load.h"
#include "text/normalize.h"

#include <stdlib.h>
#include <string.h>

/* The two files while they are read. */
typedef struct loader {
    qvl_tokenizer *tokenizer;
    char *file, *config_file;
    cJSON *root, *config;
    qvl_names names;
    qvl_added_reader reader;
    const char **by_id; /* [id_limit] names of base and added tokens */
    uint8_t *flags;     /* [id_limit] */
    qvl_log_fn log;
    void *log_user;
} loader;

static void loader_free(loader *l) {
    qvl_free(l->by_id);
    qvl_free(l->flags);
    qvl_added_reader_free(&l->reader);
    qvl_names_free(&l->names);
    cJSON_Delete(l->root);
    cJSON_Delete(l->config);
    qvl_free(l->file);
    qvl_free(l->config_file);
}

static qvl_status parse_files(loader *l, const qvl_tokenizer_files *files, qvl_error *error) {
    l->file = qvl_path_join(l->tokenizer->folder, "tokenizer.json");
    l->config_file = qvl_path_join(l->tokenizer->folder, "tokenizer_config.json");
    if (!l->file || !l->config_file) return qvl_fail_memory(error, "file name", strlen(l->tokenizer->folder), 1);
    qvl_status status = qvl_json_parse(files->json, files->json_count, l->file, &l->root, error);
    if (!status && files->config)
        status = qvl_json_parse(files->config, files->config_count, l->config_file, &l->config, error);
    return status;
}

/* -------------------------------------------------------------------------------------------------------- the model */

static qvl_status refuse(const loader *l, const char *what, const cJSON *item, const char *allowed,
                         qvl_error *error) {
    char found[QVL_JSON_DESCRIPTION];
    qvl_json_describe(item, found);
    return qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%s: %s is %s; qvl reads %s", l->file, what, found, allowed);
}

/* Options of the model that qvl has no use for must be off. */
static qvl_status check_model_options(const loader *l, const cJSON *model, qvl_error *error) {
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(model, "type");
    if (!cJSON_IsString(type) || strcmp(type->valuestring, "BPE") != 0)
        return refuse(l, "model.type", type, "\"BPE\"", error);
    const cJSON *dropout = cJSON_GetObjectItemCaseSensitive(model, "dropout");
    if (dropout && !cJSON_IsNull(dropout) && !(cJSON_IsNumber(dropout) && dropout->valuedouble == 0))
        return refuse(l, "model.dropout", dropout, "null or 0", error);
    const cJSON *fallback = cJSON_GetObjectItemCaseSensitive(model, "byte_fallback");
    if (fallback && !cJSON_IsNull(fallback) && !cJSON_IsFalse(fallback))
        return refuse(l, "model.byte_fallback", fallback, "false", error);
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (int i = 0; i < 2; i++) {
        const cJSON *affix = cJSON_GetObjectItemCaseSensitive(model, affixes[i]);
        if (affix && !cJSON_IsNull(affix) && !(cJSON_IsString(affix) && !affix->valuestring[0]))
            return refuse(l, affixes[i], affix, "null or \"\"", error);
    }
    return QVL_OK;
}

static qvl_status read_model(loader *l, qvl_error *error) {
    const cJSON *model, *vocab;
    qvl_status status = qvl_json_object(l->root, "model", l->file, &model, error);
    if (status) return status;
    if (!model) return qvl_fail(error, QVL_ERROR_FORMAT, "%s: there is no model", l->file);
    status = check_model_options(l, model, error);
    if (!status)
        status = qvl_json_bool(model, "ignore_merges", l->file, &l->tokenizer->ignore_merges, NULL, error);
    if (!status) status = qvl_json_object(model, "vocab", l->file, &vocab, error);
    if (status) return status;
    const cJSON *merges = cJSON_GetObjectItemCaseSensitive(model, "merges");
    if (!vocab || !cJSON_IsArray(merges))
        return qvl_fail(error, QVL_ERROR_FORMAT, "%s: model.vocab must be an object and model.merges a list",
                        l->file);
    status = qvl_names_read(&l->names, vocab, l->file, error);
    if (!status) status = qvl_merges_read(&l->tokenizer->bpe, &l->names, merges, l->file, error);
    return status;
}

/* --------------------------------------------------------------------------------------------------- added tokens */

static void note(const loader *l, const char *key, const char *content) {
    qvl_error text;
    if (!l->log) return;
    qvl_fail(&text, QVL_OK, "%s: %s is \"%.100s\", which is no added token; it is read like any other text",
             l->config_file, key, content);
    l->log(text.message, l->log_user);
}

/* Settings of tokenizer_config.json that would change ids. */
static qvl_status check_config(const loader *l, qvl_error *error) {
    static const struct {
        const char *key, *with; /* only counts where the config names this token; NULL: always */
    } switches[] = {
        {"add_bos_token", "bos_token"}, {"add_eos_token", "eos_token"}, {"split_special_tokens", NULL}};
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        bool on = false;
        qvl_status status = qvl_json_bool(l->config, switches[i].key, l->config_file, &on, NULL, error);
        if (status) return status;
        const cJSON *with =
            switches[i].with ? cJSON_GetObjectItemCaseSensitive(l->config, switches[i].with) : NULL;
        if (on && (!switches[i].with || (with && !cJSON_IsNull(with))))
            return qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%s: %s is true; qvl reads false", l->config_file,
                            switches[i].key);
    }
    bool prefix = l->tokenizer->prefix_space;
    qvl_status status = qvl_json_bool(l->config, "add_prefix_space", l->config_file, &prefix, NULL, error);
    if (!status && prefix != l->tokenizer->prefix_space)
        status = qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%s: add_prefix_space is %s; tokenizer.json says %s",
                          l->config_file, prefix ? "true" : "false", prefix ? "false" : "true");
    return status;
}

/* Names of special tokens should be added tokens; transformers would add them. */
static void check_special_names(const loader *l) {
    static const char *const keys[] = {"bos_token", "eos_token", "unk_token", "pad_token"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        qvl_token token;
        const cJSON *name = cJSON_GetObjectItemCaseSensitive(l->config, keys[i]);
        if (cJSON_IsObject(name)) name = cJSON_GetObjectItemCaseSensitive(name, "content");
        if (cJSON_IsString(name) && !qvl_token_find(l->tokenizer, name->valuestring, &token))
            note(l, keys[i], name->valuestring);
    }
}

static int compare_added(const void *a, const void *b) {
    int32_t x = ((const qvl_added_token *)a)->id, y = ((const qvl_added_token *)b)->id;
    return (x > y) - (x < y);
}

/* A token that is looked for in normalised text must be normalised itself. (The reference would look for its NFC, and
 * decode it to that, but take it for another token when special ones are skipped.) */
static qvl_status check_normalized(const loader *l, const qvl_added_token *token, qvl_error *error) {
    qvl_normalizer normalizer = {0};
    qvl_rewrite rewrite;
    size_t count = strlen(token->content);
    if (!token->normalized || !l->tokenizer->nfc) return QVL_OK;
    qvl_rewrite_start(&rewrite, (const uint8_t *)token->content, count);
    qvl_status status = qvl_normalize(&normalizer, &l->tokenizer->unicode, &rewrite, 0, count, error);
    if (!status && rewrite.edit_count)
        status = qvl_fail(error, QVL_ERROR_UNSUPPORTED,
                          "%s: the added token \"%.100s\" has normalized true and is not in NFC itself", l->file,
                          token->content);
    qvl_rewrite_free(&rewrite);
    qvl_normalizer_free(&normalizer);
    return status;
}

static qvl_status read_added(loader *l, qvl_error *error) {
    qvl_added_tokens *added = &l->tokenizer->added;
    const cJSON *decoder = NULL;
    l->reader = (qvl_added_reader){.tokens = added, .names = &l->names, .log = l->log, .log_user = l->log_user};
    qvl_status status =
        qvl_added_read(&l->reader, cJSON_GetObjectItemCaseSensitive(l->root, "added_tokens"), l->file, error);
    if (!status && l->config) status = check_config(l, error);
    if (!status && l->config)
        status = qvl_json_object(l->config, "added_tokens_decoder", l->config_file, &decoder, error);
    if (!status) status = qvl_added_read_config(&l->reader, decoder, l->config_file, error);
    if (!status && added->count) qsort(added->items, (size_t)added->count, sizeof *added->items, compare_added);
    for (int32_t i = 0; i < added->count && !status; i++) status = check_normalized(l, &added->items[i], error);
    return status ? status : qvl_added_index(added, error);
}

/* ------------------------------------------------------------------------------------------------- the vocabulary */

static qvl_status build_vocabulary(loader *l, qvl_error *error) {
    const qvl_added_tokens *added = &l->tokenizer->added;
    int32_t limit = l->names.id_limit;
    if (added->count && added->items[added->count - 1].id >= limit) limit = added->items[added->count - 1].id + 1;
    l->by_id = qvl_calloc((size_t)limit, sizeof *l->by_id);
    l->flags = qvl_calloc((size_t)limit, sizeof *l->flags);
    if (!l->by_id || !l->flags) return qvl_fail_memory(error, "vocabulary", (size_t)limit, sizeof *l->by_id);
    for (int32_t id = 0; id < l->names.id_limit; id++) {
        l->by_id[id] = l->names.by_id[id];
        if (l->by_id[id]) l->flags[id] = QVL_TOKEN_USED | QVL_TOKEN_WORD;
    }
    for (int32_t i = 0; i < added->count; i++) {
        const qvl_added_token *token = &added->items[i];
        l->by_id[token->id] = token->content;
        l->flags[token->id] |= QVL_TOKEN_USED | QVL_TOKEN_ADDED | (token->special ? QVL_TOKEN_SPECIAL : 0);
    }
    qvl_vocabulary *vocabulary = &l->tokenizer->vocabulary;
    qvl_status status = qvl_vocabulary_open(vocabulary, l->by_id, l->flags, limit, error);
    vocabulary->base_count = l->names.count;
    if (!status && l->tokenizer->ignore_merges) status = qvl_vocabulary_index(vocabulary, error);
    return status;
}

qvl_status qvl_tokenizer_load(qvl_tokenizer *tokenizer, const qvl_tokenizer_files *files, qvl_log_fn log,
                              void *log_user, qvl_error *error) {
    loader l = {.tokenizer = tokenizer, .log = log, .log_user = log_user};
    qvl_status status = qvl_unicode_open(&tokenizer->unicode, error);
    if (!status) status = parse_files(&l, files, error);
    if (!status) status = qvl_stages_read(tokenizer, l.root, l.file, error);
    if (!status) status = read_model(&l, error);
    if (!status) status = read_added(&l, error);
    if (!status) status = build_vocabulary(&l, error);
    if (!status && l.config) check_special_names(&l);
    loader_free(&l);
    return status;
}
