#include "messages.h"

/* A member of an object or, without a key, of a list. The parent owns the child, also if there was no memory. */
static cJSON *put(cJSON *parent, const char *key, cJSON *child) {
    bool good = child && (key ? cJSON_AddItemToObject(parent, key, child) : cJSON_AddItemToArray(parent, child));
    if (good) return child;
    cJSON_Delete(child);
    return NULL;
}

bool cli_add_message(cJSON *messages, const char *role, const char *text) {
    cJSON *message = put(messages, NULL, cJSON_CreateObject());
    return message && cJSON_AddStringToObject(message, "role", role) &&
           cJSON_AddStringToObject(message, "content", text);
}

bool cli_add_answer(cJSON *messages, const qvl_answer *answer) {
    cJSON *message = put(messages, NULL, cJSON_CreateObject());
    return message && cJSON_AddStringToObject(message, "role", "assistant") &&
           (!answer->reasoning || cJSON_AddStringToObject(message, "reasoning_content", answer->reasoning)) &&
           cJSON_AddStringToObject(message, "content", answer->text ? answer->text : "");
}

bool cli_add_question(cJSON *messages, const qvl_medium *media, size_t count, const char *text) {
    if (count == 0) return cli_add_message(messages, "user", text);
    cJSON *message = put(messages, NULL, cJSON_CreateObject());
    cJSON *parts = message && cJSON_AddStringToObject(message, "role", "user")
                       ? put(message, "content", cJSON_CreateArray())
                       : NULL;
    for (size_t i = 0; parts && i < count; i++) {
        cJSON *part = put(parts, NULL, cJSON_CreateObject());
        const char *kind = media[i].kind == QVL_MEDIUM_VIDEO ? "video" : "image";
        if (!part || !cJSON_AddStringToObject(part, "type", kind)) return false;
    }
    cJSON *part = parts ? put(parts, NULL, cJSON_CreateObject()) : NULL;
    return part && cJSON_AddStringToObject(part, "type", "text") && cJSON_AddStringToObject(part, "text", text);
}
