#include "prompt/chat.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "prompt/folding.h"
#include "prompt/sources.h"
#include "text/template.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void qvl_prompt_note(const qvl_prompt_options *options, const char *format, ...) {
    if (!options->log) return;
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    options->log(line, options->log_user);
}

bool qvl_member_put(cJSON *object, const char *key, cJSON *value) {
    cJSON *old = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!value) return false;
    if (!old) {
        if (cJSON_AddItemToObject(object, key, value)) return true;
        cJSON_Delete(value);
        return false;
    }
    char *name = cJSON_malloc(strlen(key) + 1);
    if (!name) {
        cJSON_Delete(value);
        return false;
    }
    memcpy(name, key, strlen(key) + 1);
    if (value->string && !(value->type & cJSON_StringIsConst)) cJSON_free(value->string);
    value->string = name;
    value->type &= ~cJSON_StringIsConst;
    return cJSON_ReplaceItemViaPointer(object, old, value);
}

const char *qvl_message_role(const cJSON *message) {
    const cJSON *role = cJSON_GetObjectItemCaseSensitive(message, "role");
    return cJSON_IsString(role) ? role->valuestring : NULL;
}

void qvl_conversation_place(const qvl_conversation *c, const cJSON *message, size_t index, char place[QVL_PLACE]) {
    const char *role = qvl_message_role(message);
    snprintf(place, QVL_PLACE, "%.200s: message %zu (%.80s)", c->name, index + 1, role ? role : "no role");
}

/* What is being read. */
typedef struct reader {
    const qvl_chat *chat;
    const qvl_prompt_options *options;
    qvl_conversation *conversation;
    size_t next_given[QVL_MEDIUM_VIDEO + 1]; /* of each kind: where in the caller's media to look on */
    qvl_error *error;
} reader;

/* A part, and where it is. */
typedef struct part_place {
    const cJSON *message;
    size_t index, part;
} part_place;

static void print_place(const reader *r, const part_place *at, char text[QVL_PLACE]) {
    qvl_conversation_place(r->conversation, at->message, at->index, text);
    size_t used = strlen(text);
    snprintf(text + used, QVL_PLACE - used, ", part %zu", at->part + 1);
}

static qvl_status no_memory(const reader *r) {
    return qvl_fail_memory(r->error, "conversation", r->chat->byte_count, 1);
}

/* ------------------------------------------------------------------------------------------------ parts:
 * media */

/* The next of the caller's media of a kind; NULL where none is left. */
static const qvl_medium *next_given(reader *r, qvl_medium_kind kind) {
    size_t *next = &r->next_given[kind];
    while (*next < r->chat->media_count) {
        const qvl_medium *medium = &r->chat->media[(*next)++];
        if (medium->kind == kind) return medium;
    }
    return NULL;
}

static qvl_status add_source(reader *r, qvl_medium_kind kind, const cJSON *part, const part_place *at) {
    qvl_conversation *c = r->conversation;
    char text[QVL_PLACE];
    print_place(r, at, text);
    qvl_source *source = &c->sources[c->source_count++];
    *source = (qvl_source){.kind = kind, .message = at->index, .part = at->part};
    qvl_status status = qvl_source_read(r->chat, part, text, source, r->error);
    if (status || source->input.name) return status;
    source->medium = next_given(r, kind);
    source->name = qvl_strdup(source->medium && source->medium->name ? source->medium->name : text);
    return source->name ? QVL_OK : no_memory(r);
}

/* ---------------------------------------------------------------------------------------------- parts:
 * messages */

static bool has(const cJSON *part, const char *key) {
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(part, key);
    return member && !cJSON_IsNull(member);
}

/* A member that is null is not there: transformers says so of messages, and tables of messages fill parts up with
 * such. */
static void drop_nulls(cJSON *object) {
    for (cJSON *member = object->child, *next; member; member = next) {
        next = member->next;
        if (cJSON_IsNull(member)) cJSON_Delete(cJSON_DetachItemViaPointer(object, member));
    }
}

static bool is_type(const cJSON *part, const char *name) {
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(part, "type");
    return cJSON_IsString(type) && strcmp(type->valuestring, name) == 0;
}

/* As the templates tell: by a key or by the type, pictures first; and OpenAI's types. */
int qvl_part_kind(const cJSON *part) {
    if (has(part, "image") || has(part, "image_url") || is_type(part, "image") || is_type(part, "image_url") ||
        is_type(part, "input_image"))
        return QVL_MEDIUM_IMAGE;
    if (has(part, "video") || has(part, "video_url") || is_type(part, "video") || is_type(part, "video_url"))
        return QVL_MEDIUM_VIDEO;
    return 0;
}

/* The templates look at the kind of a part only, never at its source. */
static cJSON *media_part(int kind) {
    cJSON *part = cJSON_CreateObject();
    if (part && cJSON_AddStringToObject(part, "type", kind == QVL_MEDIUM_IMAGE ? "image" : "video")) return part;
    cJSON_Delete(part);
    return NULL;
}

/* A picture or video. Templates would leave text in the same part out. */
static qvl_status read_medium(reader *r, cJSON *content, cJSON *part, int kind, const part_place *at) {
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(part, "text");
    char where[QVL_PLACE];
    if (cJSON_IsString(text) && *text->valuestring) {
        print_place(r, at, where);
        return qvl_fail(r->error, QVL_ERROR_FORMAT, "%s has %s and text; each must be a part of its own", where,
                        kind == QVL_MEDIUM_IMAGE ? "a picture" : "a video");
    }
    qvl_status status = add_source(r, (qvl_medium_kind)kind, part, at);
    cJSON *plain = status ? NULL : media_part(kind);
    if (!status && !plain) status = no_memory(r);
    if (!status) cJSON_ReplaceItemViaPointer(content, part, plain);
    return status;
}

static qvl_status fail_part(const reader *r, const cJSON *part, const part_place *at) {
    char where[QVL_PLACE], found[QVL_JSON_DESCRIPTION];
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(part, "text");
    print_place(r, at, where);
    if (!cJSON_IsObject(part)) {
        qvl_json_describe(part, found);
        return qvl_fail(r->error, QVL_ERROR_FORMAT, "%s is %s; it must be an object", where, found);
    }
    if (text || is_type(part, "text")) {
        qvl_json_describe(text, found);
        return qvl_fail(r->error, QVL_ERROR_FORMAT, "%s: its text is %s; it must be a string", where, found);
    }
    qvl_json_describe(cJSON_GetObjectItemCaseSensitive(part, "type"), found);
    return qvl_fail(r->error, QVL_ERROR_UNSUPPORTED,
                    "%s: its type is %s; qvl knows text, image, image_url, input_image, video and video_url",
                    where, found);
}

static qvl_status read_part(reader *r, cJSON *content, cJSON *part, const part_place *at) {
    if (cJSON_IsObject(part)) drop_nulls(part);
    int kind = cJSON_IsObject(part) ? qvl_part_kind(part) : 0;
    if (kind) return read_medium(r, content, part, kind, at);
    bool good = cJSON_IsObject(part) && cJSON_IsString(cJSON_GetObjectItemCaseSensitive(part, "text"));
    return good ? QVL_OK : fail_part(r, part, at);
}

static qvl_status read_content(reader *r, cJSON *message, size_t index) {
    cJSON *content = cJSON_GetObjectItemCaseSensitive(message, "content");
    if (!content || cJSON_IsString(content)) return QVL_OK;
    if (!cJSON_IsArray(content)) {
        char where[QVL_PLACE], found[QVL_JSON_DESCRIPTION];
        qvl_conversation_place(r->conversation, message, index, where);
        qvl_json_describe(content, found);
        return qvl_fail(r->error, QVL_ERROR_FORMAT, "%s: content is %s; it must be a string or a list of parts",
                        where, found);
    }
    part_place at = {.message = message, .index = index};
    for (cJSON *part = content->child, *next; part; part = next, at.part++) {
        next = part->next;
        qvl_status status = read_part(r, content, part, &at);
        if (status) return status;
    }
    return QVL_OK;
}

/* As transformers does: reasoning goes by three names. */
static qvl_status tidy_message(const reader *r, cJSON *message) {
    static const char *const reasoning[] = {"reasoning_content", "thinking", "reasoning"};
    const cJSON *first = NULL;
    for (int i = 0; i < 3 && !first; i++) first = cJSON_GetObjectItemCaseSensitive(message, reasoning[i]);
    for (int i = 0; i < 2 && first; i++) {
        if (has(message, reasoning[i])) continue;
        if (!qvl_member_put(message, reasoning[i], cJSON_Duplicate(first, true))) return no_memory(r);
    }
    return QVL_OK;
}

static qvl_status read_messages(reader *r) {
    qvl_conversation *c = r->conversation;
    size_t index = 0, parts = 0;
    const cJSON *message, *part;
    cJSON_ArrayForEach(message, c->messages) {
        const cJSON *content = cJSON_GetObjectItemCaseSensitive(message, "content");
        if (cJSON_IsArray(content)) cJSON_ArrayForEach(part, content) parts++;
    }
    c->sources = qvl_calloc(parts + 1, sizeof *c->sources);
    if (!c->sources) return no_memory(r);
    for (cJSON *item = c->messages->child; item; item = item->next, index++) {
        if (!cJSON_IsObject(item) || !qvl_message_role(item))
            return qvl_fail(r->error, QVL_ERROR_FORMAT,
                            "%s: message %zu is not an object with a role, which a message must be", c->name,
                            index + 1);
        drop_nulls(item);
        qvl_status status = tidy_message(r, item);
        if (!status) status = read_content(r, item, index);
        if (status) return status;
    }
    return QVL_OK;
}

/* ------------------------------------------------------------------------------------------------- variables */

/* Takes value; NULL is no memory. */
static qvl_status put_variable(const reader *r, const char *name, cJSON *value) {
    return qvl_member_put(r->conversation->variables, name, value) ? QVL_OK : no_memory(r);
}

/* The members of an object, but "messages", which are the chat's own. what names the object. */
static qvl_status put_all(const reader *r, const cJSON *object, const char *what) {
    enum { MOST = 1000 }; /* each is looked for among the others */
    const cJSON *member;
    int count = object ? cJSON_GetArraySize(object) : 0;
    if (count > MOST)
        return qvl_fail(r->error, QVL_ERROR_LIMIT, "%s: %s has %d members; at most %d are read",
                        r->conversation->name, what, count, MOST);
    cJSON_ArrayForEach(member, object) {
        if (strcmp(member->string, "messages") == 0)
            return qvl_fail(r->error, QVL_ERROR_FORMAT,
                            "%s: messages are no variable: %s must not have them, but the chat itself",
                            r->conversation->name, what);
        qvl_status status = put_variable(r, member->string, cJSON_Duplicate(member, true));
        if (status) return status;
    }
    return QVL_OK;
}

static qvl_status put_switch(const reader *r, const char *name, int32_t value) {
    return value < 0 ? QVL_OK : put_variable(r, name, cJSON_CreateBool(value));
}

/* The members of a chat that are variables of the template: two lists, and switches. */
enum { LISTS = 2 };
static const char *const known[] = {"tools",           "documents",        "add_generation_prompt",
                                    "enable_thinking", "reasoning_effort", "preserve_thinking",
                                    "add_vision_id"};

static bool is_known(const char *name) {
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i], name) == 0) return true;
    return false;
}

/* A saved request has members that say how to generate; they change nothing here. */
static void note_ignored(const reader *r, const cJSON *root) {
    char list[512] = "";
    size_t used = 0;
    const cJSON *member;
    cJSON_ArrayForEach(member, root) {
        const char *name = member->string;
        if (is_known(name) || strcmp(name, "messages") == 0 || strcmp(name, "chat_template_kwargs") == 0 ||
            strcmp(name, "continue_final_message") == 0 || used > 400)
            continue;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%.60s", used ? ", " : "", name);
    }
    if (used) qvl_prompt_note(r->options, "%s: not for the prompt, ignored: %s", r->conversation->name, list);
}

/* Parses an object, or where allowed a list, which is then the only member of *root, called LIST. */
#define LIST "list"
static qvl_status parse(const char *text, size_t count, const char *name, bool *is_list, cJSON **root,
                        qvl_error *error) {
    static const char head[] = "{\"" LIST "\":";
    size_t at = 0, size = sizeof head - 1;
    *root = NULL;
    while (at < count && (text[at] == ' ' || text[at] == '\t' || text[at] == '\r' || text[at] == '\n')) at++;
    *is_list = at < count && text[at] == '[';
    if (!*is_list) return qvl_template_json(text, count, name, root, error);
    qvl_status status = qvl_json_check(text, count, name, error); /* so that messages have the text's own places */
    if (status) return status;
    char *wrapped = qvl_alloc(count + sizeof head, 1);
    if (!wrapped) return qvl_fail_memory(error, name, count, 1);
    memcpy(wrapped, head, size);
    memcpy(wrapped + size, text, count);
    wrapped[size + count] = '}';
    status = qvl_template_json(wrapped, size + count + 1, name, root, error);
    qvl_free(wrapped);
    return status;
}

static qvl_status put_json_option(const reader *r, const char *text, const char *name, bool list) {
    cJSON *root;
    bool is_list;
    if (!text) return QVL_OK;
    qvl_status status = parse(text, strlen(text), name, &is_list, &root, r->error);
    if (status) return status;
    if (is_list != list)
        status = qvl_fail(r->error, QVL_ERROR_FORMAT, "%s must be %s", name, list ? "a list" : "an object");
    else if (list)
        status = put_variable(r, "tools", cJSON_DetachItemFromObjectCaseSensitive(root, LIST));
    else
        status = put_all(r, root, name);
    cJSON_Delete(root);
    return status;
}

static qvl_status put_options(const reader *r) {
    const qvl_prompt_options *o = r->options;
    qvl_status status = put_json_option(r, o->variables_json, "the variables", false);
    if (!status) status = put_json_option(r, o->tools_json, "the tools", true);
    if (!status) status = put_switch(r, "add_generation_prompt", o->add_generation_prompt);
    if (!status) status = put_switch(r, "enable_thinking", o->enable_thinking);
    if (!status) status = put_switch(r, "preserve_thinking", o->preserve_thinking);
    if (!status) status = put_switch(r, "add_vision_id", o->add_vision_id);
    if (!status && o->reasoning_effort)
        status = put_variable(r, "reasoning_effort", cJSON_CreateString(o->reasoning_effort));
    return status;
}

static qvl_status fail_list(const reader *r, const char *name, const cJSON *item) {
    char found[QVL_JSON_DESCRIPTION];
    qvl_json_describe(item, found);
    return qvl_fail(r->error, QVL_ERROR_FORMAT, "%s: %s is %s; it must be a list", r->conversation->name, name,
                    found);
}

/* Everything but messages: the folder's, the chat's, the caller's, each before what it had. */
static qvl_status put_variables(const reader *r, const cJSON *root, const cJSON *specials) {
    const cJSON *others = NULL;
    qvl_status status = put_all(r, specials, "tokenizer_config.json");
    if (!status) status = put_variable(r, "tools", cJSON_CreateNull());
    if (!status) status = put_variable(r, "documents", cJSON_CreateNull());
    if (!status) status = qvl_json_object(root, "chat_template_kwargs", r->conversation->name, &others, r->error);
    if (!status) status = put_all(r, others, "chat_template_kwargs");
    for (size_t i = 0; i < sizeof known / sizeof known[0] && !status; i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, known[i]);
        if (!item || (cJSON_IsNull(item) && i >= LISTS)) continue;
        if (i < LISTS && !cJSON_IsArray(item) && !cJSON_IsNull(item)) return fail_list(r, known[i], item);
        status = put_variable(r, known[i], cJSON_Duplicate(item, true));
    }
    return status ? status : put_options(r);
}

/* Which of the two ends the prompt has. */
static qvl_status choose_end(const reader *r, const cJSON *root) {
    qvl_conversation *c = r->conversation;
    bool asked = r->options->continue_final_message == 1;
    qvl_status status = QVL_OK;
    if (r->options->continue_final_message < 0)
        status = qvl_json_bool(root, "continue_final_message", c->name, &asked, NULL, r->error);
    if (status) return status;
    const cJSON *generation = cJSON_GetObjectItemCaseSensitive(c->variables, "add_generation_prompt");
    if (!generation) status = put_variable(r, "add_generation_prompt", cJSON_CreateBool(!asked));
    if (!status && asked && cJSON_IsTrue(generation))
        status =
            qvl_fail(r->error, QVL_ERROR_ARGUMENT,
                     "%s: continue_final_message leaves the last message open, add_generation_prompt begins the "
                     "next: only one of them can be",
                     c->name);
    c->continue_final = asked;
    return status;
}

static qvl_status read_root(reader *r, cJSON *root, bool is_list, const cJSON *specials) {
    qvl_conversation *c = r->conversation;
    cJSON *messages = cJSON_DetachItemFromObjectCaseSensitive(root, is_list ? LIST : "messages");
    if (!cJSON_IsArray(messages)) {
        cJSON_Delete(messages);
        return qvl_fail(r->error, QVL_ERROR_FORMAT,
                        "%s has no messages: it must be a list of them, or an object with one", c->name);
    }
    c->variables = cJSON_CreateObject();
    if (!c->variables) {
        cJSON_Delete(messages);
        return no_memory(r);
    }
    qvl_status status = put_variable(r, "messages", messages);
    if (!status) c->messages = messages;
    if (!status) status = put_variables(r, root, specials);
    if (!status) status = choose_end(r, root);
    if (!status && r->options->dropped == QVL_DROPPED_FOLD) status = qvl_fold_systems(messages, c->name, r->error);
    if (!status) status = read_messages(r);
    if (!status) note_ignored(r, root);
    return status;
}

qvl_status qvl_conversation_read(const qvl_chat *chat, const qvl_prompt_options *options, const cJSON *specials,
                                 qvl_conversation *c, qvl_error *error) {
    cJSON *root;
    bool is_list;
    *c = (qvl_conversation){.name = chat->name ? chat->name : "chat"};
    reader r = {.chat = chat, .options = options, .conversation = c, .error = error};
    qvl_status status = parse(chat->json, chat->byte_count, c->name, &is_list, &root, error);
    if (status) return status;
    for (size_t i = 0; i < chat->media_count; i++) {
        c->given_images += chat->media[i].kind == QVL_MEDIUM_IMAGE;
        c->given_videos += chat->media[i].kind == QVL_MEDIUM_VIDEO;
    }
    status = read_root(&r, root, is_list, specials);
    cJSON_Delete(root);
    if (status) qvl_conversation_free(c);
    return status;
}

void qvl_conversation_free(qvl_conversation *c) {
    for (size_t i = 0; i < c->source_count; i++) qvl_source_clear(&c->sources[i]);
    qvl_free(c->sources);
    cJSON_Delete(c->variables);
    *c = (qvl_conversation){0};
}
