/* Added tokens, of tokenizer.json and of tokenizer_config.json. The reference does not take ids from the files: a
 * token that the base vocabulary has keeps its id, others are numbered on. Files in which that gives other ids than
 * they say are refused. */
#include "base/memory.h"
#include "text/load.h"
#include "text/marks.h"

#include <stdlib.h>
#include <string.h>

/* The index of the token of this content, -1: none; *place is where it is in the table, or would be. */
static int32_t find_added(const qvl_added_reader *reader, const char *content, size_t *place) {
    size_t i = qvl_hash_bytes(content, strlen(content)) & reader->mask;
    for (; reader->places[i] >= 0; i = (i + 1) & reader->mask)
        if (strcmp(reader->tokens->items[reader->places[i]].content, content) == 0) break;
    *place = i;
    return reader->places[i];
}

/* Room for one more token, in a table at most half full. */
static qvl_status make_room(qvl_added_reader *reader, qvl_error *error) {
    qvl_added_tokens *tokens = reader->tokens;
    if (tokens->count < reader->capacity) return QVL_OK;
    int32_t grown = reader->capacity ? 2 * reader->capacity : 64;
    qvl_added_token *items = qvl_alloc((size_t)grown, sizeof *items);
    int32_t *places = qvl_alloc((size_t)grown, 2 * sizeof *places);
    if (!items || !places) {
        qvl_free(items);
        qvl_free(places);
        return qvl_fail_memory(error, "added tokens", (size_t)grown, sizeof *items);
    }
    if (tokens->count) memcpy(items, tokens->items, (size_t)tokens->count * sizeof *items);
    qvl_free(tokens->items);
    qvl_free(reader->places);
    tokens->items = items;
    reader->places = places;
    reader->capacity = grown;
    reader->mask = 2 * (size_t)grown - 1;
    memset(places, 0xff, 2 * (size_t)grown * sizeof *places);
    for (int32_t i = 0; i < tokens->count; i++) {
        size_t place;
        find_added(reader, items[i].content, &place);
        places[place] = i;
    }
    return QVL_OK;
}

void qvl_added_reader_free(qvl_added_reader *reader) {
    qvl_free(reader->places);
    reader->places = NULL;
}

/* The reference starts to number anew for each file. */
static void start_numbering(qvl_added_reader *reader) {
    reader->next_id = reader->names->count;
    for (int32_t i = 0; i < reader->tokens->count; i++)
        if (reader->tokens->items[i].id >= reader->next_id) reader->next_id = reader->tokens->items[i].id + 1;
}

static qvl_status read_flags(const cJSON *item, const char *file, qvl_added_token *token, qvl_error *error) {
    const struct {
        const char *key;
        bool *value;
    } flags[] = {{"single_word", &token->single_word},
                 {"lstrip", &token->lstrip},
                 {"rstrip", &token->rstrip},
                 {"normalized", &token->normalized},
                 {"special", &token->special}};
    bool has_normalized = false;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        bool found;
        qvl_status status = qvl_json_bool(item, flags[i].key, file, flags[i].value, &found, error);
        if (status) return status;
        if (found && flags[i].value == &token->normalized) has_normalized = true;
    }
    if (!has_normalized) token->normalized = !token->special;
    return QVL_OK;
}

static qvl_status check_content(const char *content, const char *file, qvl_error *error) {
    size_t count = content ? strlen(content) : 0, size;
    if (count == 0)
        return qvl_fail(error, QVL_ERROR_FORMAT, "%s: an added token has no content, which must be a string",
                        file);
    if (count > QVL_ADDED_BYTES)
        return qvl_fail(error, QVL_ERROR_LIMIT, "%s: the added token \"%.40s...\" has %zu bytes; the limit is %d",
                        file, content, count, QVL_ADDED_BYTES);
    for (const uint8_t *p = (const uint8_t *)content; *p; p += size)
        if (qvl_is_mark(qvl_utf8_get(p, &size)))
            return qvl_fail(error, QVL_ERROR_UNSUPPORTED,
                            "%s: the added token \"%.100s\" has a noncharacter of U+FDD0..U+FDEF", file, content);
    return QVL_OK;
}

/* A new token: its flags, its content, and the id that the file gives it. */
static qvl_status append(qvl_added_reader *reader, const qvl_added_token *flags, const char *content, int64_t id,
                         const char *file, qvl_error *error) {
    int32_t base = qvl_names_find(reader->names, content, strlen(content));
    int32_t expected = base >= 0 ? base : reader->next_id++;
    size_t place;
    if (id != expected)
        return qvl_fail(error, QVL_ERROR_MODEL,
                        "%s: the added token \"%.100s\" has the id %lld; Hugging Face tokenizers would give it %d",
                        file, content, (long long)id, expected);
    if (base < 0 && expected < reader->names->id_limit && reader->names->by_id[expected])
        return qvl_fail(error, QVL_ERROR_MODEL,
                        "%s: the added token \"%.100s\" has the id %d, which is that of \"%.100s\"", file, content,
                        expected, reader->names->by_id[expected]);
    find_added(reader, content, &place);
    qvl_added_token *own = &reader->tokens->items[reader->tokens->count];
    *own = *flags;
    own->id = expected;
    own->content = qvl_strdup(content);
    if (!own->content) return qvl_fail_memory(error, "an added token", strlen(content) + 1, 1);
    reader->places[place] = reader->tokens->count++;
    return QVL_OK;
}

static qvl_status read_token(qvl_added_reader *reader, const cJSON *item, const char *file, qvl_error *error) {
    qvl_added_token flags = {0};
    const char *content = NULL;
    int64_t id = 0;
    size_t place;
    bool found;
    if (!cJSON_IsObject(item))
        return qvl_fail(error, QVL_ERROR_FORMAT, "%s: added_tokens must be a list of objects", file);
    qvl_status status = qvl_json_string(item, "content", file, &content, NULL, error);
    if (!status) status = check_content(content, file, error);
    if (!status) status = qvl_json_int(item, "id", 0, QVL_ID_LIMIT - 1, file, &id, &found, error);
    if (!status && !found)
        status = qvl_fail(error, QVL_ERROR_FORMAT, "%s: the added token \"%.100s\" has no id", file, content);
    if (!status) status = read_flags(item, file, &flags, error);
    if (!status) status = make_room(reader, error);
    if (status) return status;
    if (find_added(reader, content, &place) >= 0)
        return qvl_fail(error, QVL_ERROR_MODEL, "%s: the added token \"%.100s\" is there twice", file, content);
    return append(reader, &flags, content, id, file, error);
}

qvl_status qvl_added_read(qvl_added_reader *reader, const cJSON *list, const char *file, qvl_error *error) {
    if (!list || cJSON_IsNull(list)) return QVL_OK;
    if (!cJSON_IsArray(list)) return qvl_fail(error, QVL_ERROR_FORMAT, "%s: added_tokens must be a list", file);
    start_numbering(reader);
    qvl_status status = QVL_OK;
    for (const cJSON *item = list->child; item && !status; item = item->next)
        status = read_token(reader, item, file, error);
    return status;
}

/* ------------------------------------------------------------------------------------------ tokenizer_config.json */

static bool read_id(const char *text, int64_t *id) {
    *id = 0;
    if (!*text) return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || *id >= QVL_ID_LIMIT) return false;
        *id = 10 * *id + (*text - '0');
    }
    return *id < QVL_ID_LIMIT;
}

/* A token that is known already: the config must agree on the id, and its flags count. */
static qvl_status update(const qvl_added_reader *reader, int32_t index, const qvl_added_token *flags, int64_t id,
                         const char *file, qvl_error *error) {
    qvl_added_token *own = &reader->tokens->items[index];
    if (own->id != id)
        return qvl_fail(error, QVL_ERROR_MODEL,
                        "%s: the added token \"%.100s\" has the id %lld; tokenizer.json says %d", file,
                        own->content, (long long)id, own->id);
    bool same = own->single_word == flags->single_word && own->lstrip == flags->lstrip &&
                own->rstrip == flags->rstrip && own->normalized == flags->normalized &&
                own->special == flags->special;
    if (!same && reader->log) {
        qvl_error note;
        qvl_fail(&note, QVL_OK,
                 "%s: the flags of the added token \"%.100s\" differ from tokenizer.json's, and count", file,
                 own->content);
        reader->log(note.message, reader->log_user);
    }
    qvl_added_token merged = *flags;
    merged.id = own->id;
    merged.content = own->content;
    *own = merged;
    return QVL_OK;
}

static qvl_status read_config_token(qvl_added_reader *reader, const cJSON *item, int64_t id, const char *file,
                                    qvl_error *error) {
    qvl_added_token flags = {0};
    const char *content = NULL;
    size_t place;
    if (!cJSON_IsObject(item))
        return qvl_fail(error, QVL_ERROR_FORMAT, "%s: added_tokens_decoder[\"%.40s\"] must be an object", file,
                        item->string);
    qvl_status status = qvl_json_string(item, "content", file, &content, NULL, error);
    if (!status) status = check_content(content, file, error);
    if (!status) status = read_flags(item, file, &flags, error);
    if (!status) status = make_room(reader, error);
    if (status) return status;
    int32_t known = find_added(reader, content, &place);
    return known >= 0 ? update(reader, known, &flags, id, file, error)
                      : append(reader, &flags, content, id, file, error);
}

typedef struct config_token {
    int64_t id;
    const cJSON *item;
} config_token;

static int compare_ids(const void *a, const void *b) {
    int64_t x = ((const config_token *)a)->id, y = ((const config_token *)b)->id;
    return (x > y) - (x < y);
}

qvl_status qvl_added_read_config(qvl_added_reader *reader, const cJSON *object, const char *file,
                                 qvl_error *error) {
    size_t count = 0, i = 0;
    if (!object || !object->child) return QVL_OK;
    for (const cJSON *item = object->child; item; item = item->next) count++;
    config_token *sorted = qvl_alloc(count, sizeof *sorted);
    if (!sorted) return qvl_fail_memory(error, "added tokens", count, sizeof *sorted);
    qvl_status status = QVL_OK;
    for (const cJSON *item = object->child; item && !status; item = item->next, i++) {
        sorted[i].item = item;
        if (!read_id(item->string, &sorted[i].id))
            status = qvl_fail(error, QVL_ERROR_FORMAT,
                              "%s: added_tokens_decoder has the key \"%.40s\"; it must be an id in 0..%d", file,
                              item->string, QVL_ID_LIMIT - 1);
    }
    /* The reference takes them in order of id. */
    if (!status) qsort(sorted, count, sizeof *sorted, compare_ids);
    start_numbering(reader);
    for (i = 0; i < count && !status; i++)
        status = read_config_token(reader, sorted[i].item, sorted[i].id, file, error);
    qvl_free(sorted);
    return status;
}
