#include "prompt/defuse.h"

#include "prompt/chat.h"

#include <string.h>

typedef struct defuser {
    const qvl_tokenizer *tokenizer;
    qvl_defusing defusing;
    bool any;
    qvl_error *error;
} defuser;

static bool is_name(const char *text) {
    return text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-. $")] == 0;
}

/* The marked text is given to cJSON, which has its own copies. */
static qvl_status mark(defuser *d, const char *text, qvl_added added, char **copy) {
    qvl_text marked;
    qvl_status status = qvl_text_mark(d->tokenizer, text, strlen(text), added, &marked, d->error);
    if (status) return status;
    bool changed = strcmp(marked.bytes, text) != 0;
    d->any |= changed;
    if (changed) {
        *copy = cJSON_malloc(marked.byte_count + 1);
        if (*copy)
            memcpy(*copy, marked.bytes, marked.byte_count + 1);
        else
            status = qvl_fail(d->error, QVL_ERROR_MEMORY, "not enough memory to mark %zu bytes of text",
                              marked.byte_count);
    }
    qvl_text_free(&marked);
    return status;
}

static qvl_status defuse_key(defuser *d, cJSON *item, qvl_added added) {
    char *key = NULL;
    if (!item->string || is_name(item->string)) return QVL_OK;
    qvl_status status = mark(d, item->string, added, &key);
    if (status || !key) return status;
    if (!(item->type & cJSON_StringIsConst)) cJSON_free(item->string);
    item->type &= ~cJSON_StringIsConst;
    item->string = key;
    return QVL_OK;
}

static qvl_status defuse_string(defuser *d, cJSON *item, qvl_added added) {
    char *value = NULL;
    bool compared = item->string && (strcmp(item->string, "role") == 0 || strcmp(item->string, "type") == 0);
    if (compared && is_name(item->valuestring)) return QVL_OK;
    qvl_status status = mark(d, item->valuestring, added, &value);
    if (status || !value) return status;
    cJSON_free(item->valuestring);
    item->valuestring = value;
    return QVL_OK;
}

/* Everything below item. Nesting is bounded by the parser. */
static qvl_status defuse_tree(defuser *d, cJSON *item, qvl_added added) {
    qvl_status status = defuse_key(d, item, added);
    if (!status && cJSON_IsString(item)) status = defuse_string(d, item, added);
    for (cJSON *child = item->child; child && !status; child = child->next) status = defuse_tree(d, child, added);
    return status;
}

static qvl_added kept(const defuser *d, const cJSON *message) {
    const char *role = qvl_message_role(message);
    bool writes_added = role && (strcmp(role, "assistant") == 0 || strcmp(role, "tool") == 0);
    return writes_added || d->defusing == QVL_DEFUSE_SPECIAL ? QVL_ADDED_ORDINARY : QVL_ADDED_NONE;
}

static qvl_status defuse_variable(defuser *d, cJSON *variable, const cJSON *specials) {
    qvl_status status = QVL_OK;
    if (strcmp(variable->string, "messages") == 0) {
        for (cJSON *message = variable->child; message && !status; message = message->next)
            status = defuse_tree(d, message, kept(d, message));
        return status;
    }
    const cJSON *own = cJSON_GetObjectItemCaseSensitive(specials, variable->string);
    if (own && cJSON_Compare(own, variable, true)) return QVL_OK;
    return defuse_tree(d, variable, d->defusing == QVL_DEFUSE_SPECIAL ? QVL_ADDED_ORDINARY : QVL_ADDED_NONE);
}

qvl_status qvl_defuse(const qvl_tokenizer *tokenizer, const cJSON *variables, const cJSON *specials,
                      qvl_defusing defusing, cJSON **marked, bool *any, qvl_error *error) {
    defuser d = {.tokenizer = tokenizer, .defusing = defusing, .error = error};
    *any = false;
    *marked = cJSON_Duplicate(variables, true);
    if (!*marked) return qvl_fail(error, QVL_ERROR_MEMORY, "not enough memory for a copy of the conversation");
    qvl_status status = QVL_OK;
    for (cJSON *variable = (*marked)->child; variable && !status; variable = variable->next)
        status = defuse_variable(&d, variable, specials);
    *any = d.any;
    if (!status) return QVL_OK;
    cJSON_Delete(*marked);
    *marked = NULL;
    return status;
}
