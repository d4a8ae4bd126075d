#include "prompt/folding.h"

#include "base/memory.h"
#include "prompt/chat.h"

#include <string.h>

static bool is_system(const cJSON *message) {
    const char *role = qvl_message_role(message);
    return role && (strcmp(role, "system") == 0 || strcmp(role, "developer") == 0);
}

/* The text of a content, as one string (qvl_free); NULL and *unfit where it has other things than text, or
 * there is no memory. */
static char *text_of(const cJSON *content, bool *unfit) {
    *unfit = false;
    if (!content || cJSON_IsNull(content)) return qvl_strdup("");
    if (cJSON_IsString(content)) return qvl_strdup(content->valuestring);
    size_t size = 1, used = 0;
    const cJSON *part;
    cJSON_ArrayForEach(part, content) {
        const cJSON *text = cJSON_GetObjectItemCaseSensitive(part, "text");
        *unfit |= !cJSON_IsString(text);
        if (!*unfit) size += strlen(text->valuestring);
    }
    if (*unfit || !cJSON_IsArray(content)) {
        *unfit = true;
        return NULL;
    }
    char *joined = qvl_alloc(size, 1);
    if (!joined) return NULL;
    cJSON_ArrayForEach(part, content) {
        const char *text = cJSON_GetObjectItemCaseSensitive(part, "text")->valuestring;
        memcpy(joined + used, text, strlen(text));
        used += strlen(text);
    }
    joined[used] = 0;
    return joined;
}

/* left, an empty line, right; without the line where one of them is empty. */
static char *join(const char *left, const char *right) {
    size_t a = strlen(left), b = strlen(right), gap = a && b ? 2 : 0;
    char *joined = qvl_alloc(a + gap + b + 1, 1);
    if (!joined) return NULL;
    memcpy(joined, left, a);
    memcpy(joined + a, "\n\n", gap);
    memcpy(joined + a + gap, right, b + 1);
    return joined;
}

/* A system message with that text in the place of what the first one says, or before all others. */
static bool put_first(cJSON *messages, const char *text) {
    if (is_system(messages->child)) return qvl_member_put(messages->child, "content", cJSON_CreateString(text));
    cJSON *message = cJSON_CreateObject();
    bool good = message && cJSON_AddStringToObject(message, "role", "system") &&
                qvl_member_put(message, "content", cJSON_CreateString(text)) &&
                cJSON_InsertItemInArray(messages, 0, message);
    if (!good) cJSON_Delete(message);
    return good;
}

/* Adds the text of one message to what there is. */
static qvl_status gather(const cJSON *message, size_t index, const char *name, char **text, qvl_error *error) {
    bool unfit;
    char *own = text_of(cJSON_GetObjectItemCaseSensitive(message, "content"), &unfit);
    if (unfit)
        return qvl_fail(
            error, QVL_ERROR_ARGUMENT,
            "%s: message %zu (%s) has parts that are not text, so it cannot be folded into the first one", name,
            index + 1, qvl_message_role(message));
    char *joined = own ? join(*text, own) : NULL;
    qvl_free(own);
    if (!joined) return qvl_fail_memory(error, "system messages", strlen(*text), 1);
    qvl_free(*text);
    *text = joined;
    return QVL_OK;
}

qvl_status qvl_fold_systems(cJSON *messages, const char *name, qvl_error *error) {
    size_t late = 0, index = 0;
    const cJSON *message;
    cJSON_ArrayForEach(message, messages) late += message != messages->child && is_system(message);
    if (!late) return QVL_OK;
    char *text = qvl_strdup("");
    if (!text) return qvl_fail_memory(error, "system messages", 1, 1);
    qvl_status status = QVL_OK;
    for (cJSON *item = messages->child, *next; item && !status; item = next, index++) {
        next = item->next;
        if (!is_system(item)) continue;
        status = gather(item, index, name, &text, error);
        if (!status && item != messages->child) cJSON_Delete(cJSON_DetachItemViaPointer(messages, item));
    }
    if (!status && !put_first(messages, text)) status = qvl_fail_memory(error, "system messages", strlen(text), 1);
    qvl_free(text);
    return status;
}
