/* What a tokenizer.json says about the stages around its model. What is not one of the few forms that Qwen's folders
 * have is refused by name and value: reading on would give ids that are nearly right. */
#include "text/load.h"

#include <string.h>

/* Refuses a value: `what` is where it stands, `allowed` what may stand there. */
static qvl_status refuse(const cJSON *item, const char *what, const char *allowed, const char *file,
                         qvl_error *error) {
    char found[QVL_JSON_DESCRIPTION];
    const cJSON *type = cJSON_IsObject(item) ? cJSON_GetObjectItemCaseSensitive(item, "type") : NULL;
    qvl_json_describe(type ? type : item, found);
    return qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%s: %s is %s; qvl reads %s", file, what, found, allowed);
}

static bool is_absent(const cJSON *item) {
    return !item || cJSON_IsNull(item);
}

/* item is an object with this type. */
static bool has_type(const cJSON *item, const char *name) {
    const cJSON *type = cJSON_IsObject(item) ? cJSON_GetObjectItemCaseSensitive(item, "type") : NULL;
    return cJSON_IsString(type) && strcmp(type->valuestring, name) == 0;
}

/* The members of a Sequence, under `key`; of anything else, and of nothing, the thing itself as the only one. */
#define MAX_MEMBERS 4
typedef struct members {
    const cJSON *items[MAX_MEMBERS];
    int count; /* -1: not a list, or too long a one */
} members;

static members members_of(const cJSON *item, const char *key) {
    members m = {.count = 0};
    if (is_absent(item)) return m;
    if (!has_type(item, "Sequence")) return (members){.items = {item}, .count = 1};
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(item, key);
    if (!cJSON_IsArray(list)) return (members){.count = -1};
    for (const cJSON *member = list->child; member; member = member->next) {
        if (m.count == MAX_MEMBERS) return (members){.count = -1};
        m.items[m.count++] = member;
    }
    return m;
}

static qvl_status read_normalizer(qvl_tokenizer *tokenizer, const cJSON *item, const char *file,
                                  qvl_error *error) {
    members m = members_of(item, "normalizers");
    if (m.count < 0) return refuse(item, "normalizer", "null or \"NFC\"", file, error);
    for (int i = 0; i < m.count; i++)
        if (!has_type(m.items[i], "NFC")) return refuse(m.items[i], "normalizer", "null or \"NFC\"", file, error);
    tokenizer->nfc = m.count > 0;
    return QVL_OK;
}

/* The pattern of a Split that cuts out what matches, each as a word of its own. */
static qvl_status read_split(qvl_tokenizer *tokenizer, const cJSON *split, const char *file, qvl_error *error) {
    const cJSON *pattern = cJSON_GetObjectItemCaseSensitive(split, "pattern");
    const cJSON *regex = cJSON_IsObject(pattern) ? cJSON_GetObjectItemCaseSensitive(pattern, "Regex") : NULL;
    const cJSON *behavior = cJSON_GetObjectItemCaseSensitive(split, "behavior");
    const cJSON *invert = cJSON_GetObjectItemCaseSensitive(split, "invert");
    if (!cJSON_IsString(behavior) || strcmp(behavior->valuestring, "Isolated") != 0)
        return refuse(behavior, "pre_tokenizer: behavior of Split", "\"Isolated\"", file, error);
    if (!is_absent(invert) && !cJSON_IsFalse(invert))
        return refuse(invert, "pre_tokenizer: invert of Split", "false", file, error);
    if (!cJSON_IsString(regex))
        return refuse(pattern, "pre_tokenizer: pattern of Split", "an object with Regex", file, error);
    for (int k = QVL_SPLIT_GPT2; k < QVL_SPLITTERS; k++)
        if (strcmp(regex->valuestring, qvl_splitter_pattern((qvl_splitter)k)) == 0)
            tokenizer->splitter = (qvl_splitter)k;
    if (tokenizer->splitter != QVL_SPLIT_NONE) return QVL_OK;
    return qvl_fail(
        error, QVL_ERROR_UNSUPPORTED,
        "%s: pre_tokenizer: the pattern of Split is %.400s; qvl reads those of Qwen2, Qwen3.5 and GPT-2", file,
        regex->valuestring);
}

static qvl_status read_byte_level(qvl_tokenizer *tokenizer, const cJSON *item, const char *file,
                                  qvl_error *error) {
    bool use_regex = true;
    qvl_status status = qvl_json_bool(item, "add_prefix_space", file, &tokenizer->prefix_space, NULL, error);
    if (!status) status = qvl_json_bool(item, "use_regex", file, &use_regex, NULL, error);
    if (status || !use_regex) return status;
    if (tokenizer->splitter != QVL_SPLIT_NONE)
        return qvl_fail(error, QVL_ERROR_UNSUPPORTED,
                        "%s: pre_tokenizer: ByteLevel after Split has use_regex true; qvl reads false", file);
    tokenizer->splitter = QVL_SPLIT_GPT2;
    return QVL_OK;
}

static qvl_status read_pre_tokenizer(qvl_tokenizer *tokenizer, const cJSON *item, const char *file,
                                     qvl_error *error) {
    const char *allowed = "\"ByteLevel\", or a \"Sequence\" of \"Split\" and \"ByteLevel\"";
    members m = members_of(item, "pretokenizers");
    if (m.count < 1 || m.count > 2) return refuse(item, "pre_tokenizer", allowed, file, error);
    const cJSON *last = m.items[m.count - 1];
    if (!has_type(last, "ByteLevel")) return refuse(last, "the last pre_tokenizer", allowed, file, error);
    if (m.count == 2 && !has_type(m.items[0], "Split"))
        return refuse(m.items[0], "the first pre_tokenizer", allowed, file, error);
    qvl_status status = m.count == 2 ? read_split(tokenizer, m.items[0], file, error) : QVL_OK;
    if (!status) status = read_byte_level(tokenizer, last, file, error);
    tokenizer->prefix_each_word = m.count == 2;
    return status;
}

/* A template of nothing but the text. */
static bool adds_nothing(const cJSON *item) {
    const cJSON *single = cJSON_GetObjectItemCaseSensitive(item, "single");
    const cJSON *only = cJSON_IsArray(single) ? single->child : NULL;
    return has_type(item, "TemplateProcessing") && only && !only->next && cJSON_IsObject(only) &&
           cJSON_GetObjectItemCaseSensitive(only, "Sequence");
}

static qvl_status read_post_processor(const cJSON *item, const char *file, qvl_error *error) {
    const char *allowed = "null, \"ByteLevel\", or a template that adds no tokens";
    members m = members_of(item, "processors");
    if (m.count < 0) return refuse(item, "post_processor", allowed, file, error);
    for (int i = 0; i < m.count; i++)
        if (!has_type(m.items[i], "ByteLevel") && !adds_nothing(m.items[i]))
            return refuse(m.items[i], "post_processor", allowed, file, error);
    return QVL_OK;
}

qvl_status qvl_stages_read(qvl_tokenizer *tokenizer, const cJSON *root, const char *file, qvl_error *error) {
    const cJSON *decoder = cJSON_GetObjectItemCaseSensitive(root, "decoder");
    qvl_status status =
        read_normalizer(tokenizer, cJSON_GetObjectItemCaseSensitive(root, "normalizer"), file, error);
    if (!status)
        status =
            read_pre_tokenizer(tokenizer, cJSON_GetObjectItemCaseSensitive(root, "pre_tokenizer"), file, error);
    if (!status)
        status = read_post_processor(cJSON_GetObjectItemCaseSensitive(root, "post_processor"), file, error);
    if (!status && !has_type(decoder, "ByteLevel"))
        status = refuse(decoder, "decoder", "\"ByteLevel\"", file, error);
    return status;
}
