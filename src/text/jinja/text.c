#define _GNU_SOURCE
#include "text/jinja/text.h"

#include "text/utf8.h"

#include <string.h>

/* ---------------------------------------------------------------------------------------------------- building */

static bool reserve(jinja_text *text, size_t more) {
    if (more <= text->capacity - text->length) return true;
    jinja_run *run = text->run;
    size_t needed, capacity;
    if (__builtin_add_overflow(text->length, more, &needed) || needed > SIZE_MAX / 4)
        return jinja_over_limit(run, "a text is too long");
    capacity = needed < 64 ? 128 : needed + needed / 2;
    if (text->data && jinja_arena_extend(&run->arena, text->data, text->capacity, capacity)) {
        text->capacity = capacity;
        return true;
    }
    char *data = jinja_take(run, capacity, 1);
    if (!data) return false;
    if (text->length) memcpy(data, text->data, text->length);
    text->data = data;
    text->capacity = capacity;
    return true;
}

bool jinja_text_add(jinja_text *text, const char *data, size_t length) {
    if (length == 0) return true;
    jinja_run *run = text->run;
    if (!jinja_step_bytes(run, length)) return false;
    if (text == run->root && length > (size_t)run->max_output - text->length)
        return jinja_over_limit(run, "the output is longer than %lld bytes", (long long)run->max_output);
    if (!reserve(text, length)) return false;
    memcpy(text->data + text->length, data, length);
    text->length += length;
    return true;
}

bool jinja_text_puts(jinja_text *text, const char *string) {
    return jinja_text_add(text, string, strlen(string));
}

bool jinja_text_put(jinja_text *text, uint32_t character) {
    char bytes[4];
    return jinja_text_add(text, bytes, jinja_encode(character, bytes));
}

bool jinja_text_repeat(jinja_text *text, uint32_t character, size_t count) {
    for (; count > 0; count--)
        if (!jinja_text_put(text, character)) return false;
    return true;
}

bool jinja_text_string(jinja_text *text, const jinja_string *string) {
    return jinja_text_add(text, string->data, string->length);
}

bool jinja_text_finish(jinja_text *text, jinja_value *value) {
    jinja_run *run = text->run;
    jinja_string *string = jinja_take(run, 1, sizeof *string);
    if (!string) return false;
    *string = (jinja_string){.data = text->data ? text->data : "", .length = text->length};
    string->characters = jinja_characters(string->data, string->length);
    if (text->capacity > text->length) {
        string->tail = jinja_take(run, 1, sizeof *string->tail);
        if (!string->tail) return false;
        *string->tail = (jinja_tail){text->data + text->length, text->capacity - text->length};
    }
    *text = (jinja_text){.run = run};
    *value = jinja_from_string(string);
    return true;
}

/* ------------------------------------------------------------------------------------------------------- UTF-8 */

size_t jinja_decode(const char *data, size_t at, uint32_t *character) {
    size_t size;
    *character = qvl_utf8_get((const uint8_t *)data + at, &size);
    return size;
}

size_t jinja_decode_before(const char *data, size_t at, uint32_t *character) {
    size_t start = qvl_utf8_back((const uint8_t *)data, at);
    return jinja_decode(data, start, character);
}

size_t jinja_encode(uint32_t character, char bytes[4]) {
    return qvl_utf8_put(character, (uint8_t *)bytes);
}

size_t jinja_characters(const char *data, size_t length) {
    size_t continuations = 0;
    for (size_t i = 0; i < length; i++) continuations += ((uint8_t)data[i] & 0xc0) == 0x80;
    return length - continuations;
}

size_t jinja_offset(const jinja_string *string, size_t character) {
    if (string->length == string->characters || character == 0) return character;
    size_t at = 0;
    for (; at < string->length; at++) {
        if (((uint8_t)string->data[at] & 0xc0) == 0x80) continue;
        if (character-- == 0) break;
    }
    return at;
}

bool jinja_find(jinja_run *run, const char *data, size_t length, const jinja_string *needle, size_t *found) {
    *found = SIZE_MAX;
    const char *at = memmem(data, length, needle->data, needle->length);
    if (at) *found = (size_t)(at - data);
    return jinja_step_bytes(run, (at ? *found : length) + needle->length);
}

bool jinja_find_last(jinja_run *run, const char *data, size_t length, const jinja_string *needle, size_t *found) {
    *found = SIZE_MAX;
    if (needle->length > length) return jinja_step(run, 1);
    size_t left = length - needle->length + 1;
    for (;;) {
        const char *at = memrchr(data, needle->data[0], left);
        if (!jinja_step_bytes(run, needle->length + left - (at ? (size_t)(at - data) : 0))) return false;
        if (!at) return true;
        left = (size_t)(at - data);
        if (memcmp(at, needle->data, needle->length) != 0) continue;
        *found = left;
        return true;
    }
}

static bool in_set(jinja_run *run, const jinja_string *set, uint32_t character, bool *is_in) {
    *is_in = set ? false : jinja_is_space(character);
    for (size_t at = 0; set && at < set->length && !*is_in;) {
        uint32_t member;
        at += jinja_decode(set->data, at, &member);
        *is_in = member == character;
    }
    return jinja_step_bytes(run, set ? set->length : 0);
}

bool jinja_strip(jinja_run *run, const jinja_string *string, const jinja_string *set, bool left, bool right,
                 size_t *start, size_t *end) {
    size_t from = 0, to = string->length, count = 0;
    uint32_t character;
    for (bool on = left; on && from < to; from += on ? count : 0) {
        count = jinja_decode(string->data, from, &character);
        if (!in_set(run, set, character, &on)) return false;
    }
    for (bool on = right; on && to > from; to -= on ? count : 0) {
        count = jinja_decode_before(string->data, to, &character);
        if (!in_set(run, set, character, &on)) return false;
    }
    *start = from;
    *end = to;
    return true;
}
