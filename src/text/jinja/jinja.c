#include "text/jinja/jinja.h"

#include "text/jinja/lexer.h"
#include "text/jinja/number.h"
#include "text/jinja/parser.h"
#include "text/jinja/state.h"
#include "text/jinja/text.h"
#include "text/utf8.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------- compiling */

/* One kind of newline, and none at the end: Jinja drops one there. */
static bool copy_source(jinja_run *run, const char *text, size_t count, jinja_program *program) {
    char *source = jinja_take(run, count, 1);
    size_t length = 0;
    if (!source) return false;
    for (size_t i = 0; i < count; i++) {
        if (text[i] == '\r' && i + 1 < count && text[i + 1] == '\n') continue;
        source[length++] = text[i] == '\r' ? '\n' : text[i];
    }
    if (length && source[length - 1] == '\n') length--;
    program->source = source;
    program->length = length;
    return true;
}

bool jinja_compile(jinja_run *run, const char *text, size_t count, jinja_program *program) {
    jinja_token *tokens;
    size_t token_count;
    if (!copy_source(run, text, count, program)) return false;
    if (!jinja_lex(run, program->source, program->length, &tokens, &token_count) ||
        !jinja_parse(run, tokens, &program->body) || !jinja_resolve(run, program))
        return false;
    program->arena = run->arena;
    run->arena = (jinja_arena){0};
    return true;
}

/* --------------------------------------------------------------------------------------------------------- JSON */

/* A view of UTF-8; otherwise a copy with U+FFFD for what is none. */
static bool string_from_json(jinja_run *run, const char *string, jinja_value *value) {
    size_t length = strlen(string), valid = qvl_utf8_valid((const uint8_t *)string, length);
    if (!jinja_step_bytes(run, length)) return false;
    if (valid == length) return jinja_view_string(run, string, length, value);
    jinja_text text = {.run = run};
    for (bool cut;;) {
        if (!jinja_text_add(&text, string, valid)) return false;
        string += valid;
        length -= valid;
        if (length == 0) return jinja_text_finish(&text, value);
        size_t bad = qvl_utf8_bad((const uint8_t *)string, length, &cut);
        if (!jinja_text_put(&text, 0xfffd)) return false;
        string += bad;
        length -= bad;
        valid = qvl_utf8_valid((const uint8_t *)string, length);
    }
}

static bool number_from_json(jinja_run *run, const cJSON *item, jinja_value *value) {
    const char *text = item->valuestring; /* see qvl_template_json */
    double real = item->valuedouble;
    bool ok = false;
    if (!text) {
        bool whole = floor(real) == real && fabs(real) < 0x1p63;
        *value = whole ? jinja_int((int64_t)real) : jinja_float(real);
        return true;
    }
    bool is_float = strpbrk(text, ".eE") != NULL;
    if (is_float ? !jinja_parse_float(run, text, strlen(text), &real, &ok)
                 : !jinja_parse_int(run, text, strlen(text), 10, value, &ok))
        return false;
    if (is_float) *value = jinja_float(real);
    return ok || jinja_raise(run, "\"%.40s\" is not a number", text);
}

static bool value_from_json(jinja_run *run, const cJSON *item, jinja_value *value);

static bool list_from_json(jinja_run *run, const cJSON *array, jinja_value *value) {
    jinja_list *list;
    size_t count = 0;
    for (const cJSON *member = array->child; member; member = member->next) count++;
    if (!jinja_new_list(run, count, &list)) return false;
    for (const cJSON *member = array->child; member; member = member->next) {
        jinja_value item;
        if (!value_from_json(run, member, &item) || !jinja_list_append(run, list, item)) return false;
    }
    *value = jinja_from_list(JINJA_LIST, list);
    return true;
}

static bool dict_from_json(jinja_run *run, const cJSON *object, jinja_dict **dict) {
    size_t count = 0;
    for (const cJSON *member = object->child; member; member = member->next) count++;
    if (!jinja_new_dict(run, count, dict)) return false;
    for (const cJSON *member = object->child; member; member = member->next) {
        jinja_value key, value;
        if (!string_from_json(run, member->string, &key) || !value_from_json(run, member, &value) ||
            !jinja_dict_set(run, *dict, key, value))
            return false;
    }
    return true;
}

static bool nested_from_json(jinja_run *run, const cJSON *item, jinja_value *value) {
    jinja_dict *dict;
    if (cJSON_IsArray(item)) return list_from_json(run, item, value);
    if (!dict_from_json(run, item, &dict)) return false;
    *value = jinja_from_dict(JINJA_DICT, dict);
    return true;
}

static bool value_from_json(jinja_run *run, const cJSON *item, jinja_value *value) {
    *value = jinja_none();
    if (cJSON_IsBool(item)) *value = jinja_bool(cJSON_IsTrue(item));
    if (cJSON_IsString(item)) return string_from_json(run, item->valuestring, value);
    if (cJSON_IsNumber(item)) return number_from_json(run, item, value);
    if (!cJSON_IsArray(item) && !cJSON_IsObject(item)) return jinja_step(run, 1);
    if (!jinja_enter(run)) return false;
    bool done = nested_from_json(run, item, value);
    jinja_leave(run);
    return done;
}

/* ---------------------------------------------------------------------------------------------------- rendering */

bool jinja_render(jinja_run *run, const jinja_program *program, const cJSON *variables) {
    jinja_dict *globals, *values;
    jinja_frame *frame;
    if (!jinja_make_globals(run, &globals) || !dict_from_json(run, variables, &values)) return false;
    run->globals = globals;
    run->variables = values;
    return jinja_new_frame(run, NULL, program->scope, &frame) &&
           jinja_execute(run, frame, &program->body) == FLOW_ON;
}
