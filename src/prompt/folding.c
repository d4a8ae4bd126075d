#include "prompt/folding.h"

#include "base/memory.h"
#include "prompt/chat.h"

#include <string.h>

static bool is_system(const cJSON *message) {
    const char *role = qvl_message_role(message);
    return role && (strcmp(role, "system") == 0 || strcmp(role, "developer") == 0);
}

/* The texts of a content one after the other, to out unless it is NULL: their bytes. SIZE_MAX where it has other things
 * than text. */
static size_t put_texts(const cJSON *content, char *out) {
    size_t used = 0;
    const cJSON *part;
    if (!content || cJSON_IsNull(content)) return 0;
    if (cJSON_IsString(content)) {
        used = strlen(content->valuestring);
        if (out) memcpy(out, content->valuestring, used);
        return used;
    }
    if (!cJSON_IsArray(content)) return SIZE_MAX;
    cJSON_ArrayForEach(part, content) {
        const cJSON *text = cJSON_GetObjectItemCaseSensitive(part, "text");
        if (!cJSON_IsString(text) || qvl_part_kind(part)) return SIZE_MAX;
        size_t size = strlen(text->valuestring);
        if (out) memcpy(out + used, text->valuestring, size);
        used += size;
    }
    return used;
}

static const cJSON *content_of(const cJSON *message) {
    return cJSON_GetObjectItemCaseSensitive(message, "content");
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

/* What all system messages need together, each with an empty line before it, and a NUL. */
static qvl_status measure(const cJSON *messages, const char *name, size_t *size, qvl_error *error) {
    size_t index = 0;
    const cJSON *message;
    *size = 1;
    cJSON_ArrayForEach(message, messages) {
        index++;
        if (!is_system(message)) continue;
        size_t own = put_texts(content_of(message), NULL);
        if (own == SIZE_MAX)
            return qvl_fail(
                error, QVL_ERROR_ARGUMENT,
                "%s: message %zu (%s) has parts that are not text, so it cannot be folded into the first one",
                name, index, qvl_message_role(message));
        *size += own + 2;
    }
    return QVL_OK;
}

/* Writes them to text, empty ones without their line, and takes all but the first message out. */
static void gather(cJSON *messages, char *text) {
    size_t used = 0;
    for (cJSON *message = messages->child, *next; message; message = next) {
        next = message->next;
        if (!is_system(message)) continue;
        size_t gap = used ? 2 : 0, own = put_texts(content_of(message), text + used + gap);
        memcpy(text + used, "\n\n", own ? gap : 0);
        used += own ? gap + own : 0;
        if (message != messages->child) cJSON_Delete(cJSON_DetachItemViaPointer(messages, message));
    }
    text[used] = 0;
}

qvl_status qvl_fold_systems(cJSON *messages, const char *name, qvl_error *error) {
    size_t late = 0, size;
    const cJSON *message;
    cJSON_ArrayForEach(message, messages) late += message != messages->child && is_system(message);
    if (!late) return QVL_OK;
    qvl_status status = measure(messages, name, &size, error);
    if (status) return status;
    char *text = qvl_alloc(size, 1);
    if (!text) return qvl_fail_memory(error, "system messages", size, 1);
    gather(messages, text);
    if (!put_first(messages, text)) status = qvl_fail_memory(error, "system messages", size, 1);
    qvl_free(text);
    return status;
}
