/* Where templates and their variables come from: folders, and JSON with its numbers as they were written. */
#include "text/template.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_TEMPLATE_FILE ((size_t)8 << 20)
#define MAX_CONFIG_FILE ((size_t)64 << 20)

/* --------------------------------------------------------------------------------------------------- JSON numbers */

/* The next number of the text from *at on, outside strings: where it starts. *at: where it ends. */
static size_t next_number(const char *text, size_t count, size_t *at) {
    size_t i = *at;
    while (i < count && text[i] != '-' && (text[i] < '0' || text[i] > '9')) {
        if (text[i++] != '"') continue;
        while (text[i] != '"') i += text[i] == '\\' ? 2 : 1; /* the text was checked: every string has an end */
        i++;
    }
    size_t start = i;
    while (i < count && text[i] && strchr("+-.eE0123456789", text[i])) i++;
    *at = i;
    return start;
}

/* Would the double alone be another number, or print as an integer where a fraction was written? */
static bool needs_text(const char *number, size_t length, double value) {
    for (size_t i = 0; i < length; i++)
        if (number[i] == '.' || number[i] == 'e' || number[i] == 'E') return floor(value) == value;
    return length > 15;
}

/* Numbers come in the same order in the text and in the tree. */
static bool keep_numbers(cJSON *item, const char *text, size_t count, size_t *at) {
    if (cJSON_IsNumber(item)) {
        size_t start = next_number(text, count, at), length = *at - start;
        if (!needs_text(text + start, length, item->valuedouble)) return true;
        item->valuestring = cJSON_malloc(length + 1);
        if (!item->valuestring) return false;
        memcpy(item->valuestring, text + start, length);
        item->valuestring[length] = 0;
        return true;
    }
    for (cJSON *member = item->child; member; member = member->next)
        if (!keep_numbers(member, text, count, at)) return false;
    return true;
}

qvl_status qvl_template_json(const void *bytes, size_t count, const char *file, cJSON **root, qvl_error *error) {
    size_t at = 0;
    qvl_status status = qvl_json_parse(bytes, count, file, root, error);
    if (status || keep_numbers(*root, bytes, count, &at)) return status;
    cJSON_Delete(*root);
    *root = NULL;
    return qvl_fail_memory(error, file, count, 1);
}

/* ------------------------------------------------------------------------------------------------------- folders */

typedef struct finding {
    const char *folder, *name;
    bool with_tools;
    char **text, **source;
    size_t *count;
    qvl_error *error;
} finding;

static qvl_status keep(const finding *f, const char *text, size_t count, const char *file) {
    *f->text = qvl_alloc(count + 1, 1);
    *f->source = qvl_strdup(file);
    if (!*f->text || !*f->source) {
        qvl_free(*f->text);
        qvl_free(*f->source);
        *f->text = *f->source = NULL;
        return qvl_fail_memory(f->error, "a chat template", count + 1, 1);
    }
    memcpy(*f->text, text, count);
    (*f->text)[count] = 0;
    *f->count = count;
    return QVL_OK;
}

/* A template in a file of its own, if it is there. */
static qvl_status try_text_file(const finding *f, const char *file) {
    uint8_t *bytes = NULL;
    size_t count;
    char *path = qvl_path_join(f->folder, file);
    if (!path) return qvl_fail_memory(f->error, file, 1, 1);
    qvl_status status = QVL_OK;
    if (qvl_file_exists(path)) status = qvl_file_read(path, MAX_TEMPLATE_FILE, &bytes, &count, f->error);
    if (!status && bytes) status = keep(f, (const char *)bytes, count, file);
    qvl_free(bytes);
    qvl_free(path);
    return status;
}

/* The text of the entry of this name in a list of {"name", "template"}, or NULL. */
static const char *find_entry(const cJSON *list, const char *name) {
    for (const cJSON *entry = list->child; entry; entry = entry->next) {
        const cJSON *own = cJSON_GetObjectItemCaseSensitive(entry, "name");
        const cJSON *text = cJSON_GetObjectItemCaseSensitive(entry, "template");
        if (cJSON_IsString(own) && cJSON_IsString(text) && strcmp(own->valuestring, name) == 0)
            return text->valuestring;
    }
    return NULL;
}

/* A key chat_template: a string, or named ones as a list or an object. */
static qvl_status take_key(const finding *f, const cJSON *value, const char *file) {
    const char *text = NULL;
    bool is_default = !f->name || strcmp(f->name, "default") == 0;
    if (cJSON_IsString(value)) {
        if (is_default) text = value->valuestring;
    } else if (cJSON_IsArray(value)) {
        if (!f->name && f->with_tools) text = find_entry(value, "tool_use");
        if (!text) text = find_entry(value, f->name ? f->name : "default");
    } else if (cJSON_IsObject(value)) {
        const cJSON *entry = cJSON_GetObjectItemCaseSensitive(value, f->name ? f->name : "default");
        if (cJSON_IsString(entry)) text = entry->valuestring;
    } else {
        return qvl_fail(f->error, QVL_ERROR_FORMAT,
                        "%s/%s: chat_template must be a string or a list of named templates", f->folder, file);
    }
    if (text) return keep(f, text, strlen(text), file);
    if (f->name || cJSON_IsString(value)) return QVL_OK;
    return qvl_fail(f->error, QVL_ERROR_FORMAT,
                    "%s/%s: several chat templates, none of them named \"default\": choose one by name", f->folder,
                    file);
}

/* The key chat_template of a JSON file, if both are there. */
static qvl_status try_json_file(const finding *f, const char *file) {
    cJSON *root = NULL;
    char *path = qvl_path_join(f->folder, file);
    if (!path) return qvl_fail_memory(f->error, file, 1, 1);
    qvl_status status = QVL_OK;
    if (qvl_file_exists(path)) status = qvl_json_read(path, MAX_CONFIG_FILE, &root, f->error);
    const cJSON *value = root ? cJSON_GetObjectItemCaseSensitive(root, "chat_template") : NULL;
    if (!status && value && !cJSON_IsNull(value)) status = take_key(f, value, file);
    cJSON_Delete(root);
    qvl_free(path);
    return status;
}

/* additional_chat_templates/NAME.jinja. */
static qvl_status try_named_file(const finding *f) {
    char file[300];
    if (!f->name || !*f->name || strchr(f->name, '/') || strlen(f->name) > 200) return QVL_OK;
    snprintf(file, sizeof file, "additional_chat_templates/%s.jinja", f->name);
    return try_text_file(f, file);
}

qvl_status qvl_template_find(const char *folder, const char *name, bool with_tools, char **text, size_t *count,
                             char **source, qvl_error *error) {
    const finding f = {folder, name, with_tools, text, source, count, error};
    *text = *source = NULL;
    *count = 0;
    bool is_default = !name || strcmp(name, "default") == 0;
    qvl_status status = try_json_file(&f, "processor_config.json");
    if (!status && !*text) status = try_json_file(&f, "chat_template.json");
    if (!status && !*text && is_default) status = try_text_file(&f, "chat_template.jinja");
    if (!status && !*text) status = try_named_file(&f);
    if (!status && !*text) status = try_json_file(&f, "tokenizer_config.json");
    if (!status && !*text && name)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "%s: no chat template is named \"%.200s\"", folder, name);
    return status;
}
