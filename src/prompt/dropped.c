#define _GNU_SOURCE
#include "prompt/dropped.h"

#include "prompt/render.h"

#include <string.h>

typedef struct search {
    const qvl_conversation *conversation;
    const qvl_text *rendered;
    size_t at; /* where the last text ended */
} search;

/* A message's text, or one part's, behind an assistant's thoughts. */
static const char *spoken(const char *role, const char *text) {
    static const char end[] = "</think>";
    if (strcmp(role, "assistant") != 0) return text;
    for (const char *next = text; (next = strstr(next, end));) text = next += sizeof end - 1;
    return text;
}

/* Was the same text in a message before this one? */
static bool was_said(const qvl_conversation *c, const cJSON *until, const char *text) {
    for (const cJSON *message = c->messages->child; message != until; message = message->next) {
        const cJSON *content = cJSON_GetObjectItemCaseSensitive(message, "content");
        if (cJSON_IsString(content) && strcmp(content->valuestring, text) == 0) return true;
    }
    return false;
}

/* Behind the last text; a system message may have been moved, but then it is not one that was there already. */
static bool is_shown(search *s, const cJSON *message, const char *text) {
    size_t start = 0, end = strlen(text);
    qvl_python_strip(text, &start, &end);
    if (start == end) return true;
    const char *all = s->rendered->bytes;
    const char *found = memmem(all + s->at, s->rendered->byte_count - s->at, text + start, end - start);
    if (found) {
        s->at = (size_t)(found - all) + (end - start);
        return true;
    }
    const char *role = qvl_message_role(message);
    bool movable = strcmp(role, "system") == 0 || strcmp(role, "developer") == 0;
    return movable && !was_said(s->conversation, message, text) &&
           memmem(all, s->rendered->byte_count, text + start, end - start);
}

static bool shows_message(search *s, const cJSON *message) {
    const char *role = qvl_message_role(message);
    const cJSON *content = cJSON_GetObjectItemCaseSensitive(message, "content"), *part;
    if (cJSON_IsString(content)) return is_shown(s, message, spoken(role, content->valuestring));
    const cJSON *first = content ? content->child : NULL; /* the last part where thoughts end */
    cJSON_ArrayForEach(part, content) {
        const cJSON *text = cJSON_GetObjectItemCaseSensitive(part, "text");
        if (cJSON_IsString(text) && spoken(role, text->valuestring) != text->valuestring) first = part;
    }
    for (part = first; part; part = part->next) {
        const cJSON *text = cJSON_GetObjectItemCaseSensitive(part, "text");
        if (cJSON_IsString(text) && !is_shown(s, message, spoken(role, text->valuestring))) return false;
    }
    return true;
}

qvl_status qvl_check_dropped(const qvl_conversation *c, const qvl_prompt_options *options,
                             const qvl_text *rendered, qvl_error *error) {
    enum { MOST_NOTES = 64 }; /* each may have gone through the whole text */
    search s = {.conversation = c, .rendered = rendered};
    size_t index = 0, notes = 0;
    const cJSON *message;
    cJSON_ArrayForEach(message, c->messages) {
        char where[QVL_PLACE];
        bool left_open = c->continue_final && !message->next; /* it carries a tag that was cut off */
        bool shown = left_open || shows_message(&s, message);
        index++;
        if (shown) continue;
        qvl_conversation_place(c, message, index - 1, where);
        if (options->dropped != QVL_DROPPED_NOTE)
            return qvl_fail(
                error, QVL_ERROR_ARGUMENT,
                "%s: the template leaves its text out; system messages can be folded into the first one, "
                "or the loss accepted (qvl_dropped, --dropped)",
                where);
        bool last = ++notes == MOST_NOTES;
        qvl_prompt_note(options, "%s: the template leaves its text out%s", where, last ? "; and so on" : "");
        if (last) break;
    }
    return QVL_OK;
}
