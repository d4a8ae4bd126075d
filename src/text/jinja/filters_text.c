/* Filters that make text. */
#define _GNU_SOURCE
#include "text/jinja/filters.h"

#include "text/jinja/methods.h"
#include "text/jinja/node.h"
#include "text/jinja/print.h"

#include <string.h>

/* The value as a string; Markup stays Markup. */
static bool soft(jinja_run *run, const jinja_invocation *in, jinja_value *string) {
    return jinja_to_string(run, in->self, string);
}

static bool filter_string(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return soft(run, in, result);
}

static bool filter_upper(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return soft(run, in, result) && jinja_change_case(run, *result, JINJA_UPPER, result);
}

static bool filter_lower(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return soft(run, in, result) && jinja_change_case(run, *result, JINJA_LOWER, result);
}

static bool filter_capitalize(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return soft(run, in, result) && jinja_capitalize(run, *result, result);
}

static bool is_word_start(uint32_t character) {
    return character == '-' || character == '(' || character == '{' || character == '[' || character == '<' ||
           jinja_is_space(character);
}

/* Unlike str.title: words start behind white space, '-' and opening brackets only. */
static bool filter_title(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_text text = {.run = run};
    jinja_value value, rest;
    if (!soft(run, in, &value)) return false;
    const jinja_string *string = value.as.string;
    for (size_t at = 0; at < string->length;) {
        uint32_t character;
        size_t count = jinja_decode(string->data, at, &character);
        if (!jinja_text_convert(&text, string, at, at + count, JINJA_UPPER)) return false;
        at += count;
        if (is_word_start(character)) continue;
        size_t start = at;
        while (at < string->length) {
            count = jinja_decode(string->data, at, &character);
            if (is_word_start(character)) break;
            at += count;
        }
        if (!jinja_substring(run, string, start, at, &rest) ||
            !jinja_text_convert(&text, rest.as.string, 0, at - start, JINJA_LOWER))
            return false;
    }
    return jinja_text_finish(&text, result);
}

static bool filter_trim(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return soft(run, in, result) && jinja_trim(run, *result, in->bound[0], true, true, result);
}

static bool filter_center(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    int64_t width = 80;
    if (in->bound[0].kind != JINJA_MISSING && !jinja_need_int(run, in->bound[0], &width)) return false;
    return soft(run, in, result) && jinja_center(run, *result, width, result);
}

static bool filter_replace(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_value string, old, by;
    int64_t count = -1;
    jinja_value given = in->bound[2];
    if (given.kind != JINJA_MISSING && given.kind != JINJA_NONE && !jinja_need_int(run, given, &count))
        return false;
    if (!soft(run, in, &string) || !jinja_to_string(run, in->bound[0], &old) ||
        !jinja_to_string(run, in->bound[1], &by))
        return false;
    string.mark = 0;
    return jinja_replace(run, string, old, by, count, result);
}

static bool filter_format(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    const jinja_arguments *given = in->arguments;
    jinja_value string, values;
    jinja_dict *named;
    if (given->count && given->keyword_count)
        return jinja_raise(run, "can't handle positional and keyword arguments at the same time");
    if (!soft(run, in, &string)) return false;
    if (given->keyword_count == 0)
        return jinja_new_tuple(run, given->values, given->count, &values) &&
               jinja_percent(run, string, values, result);
    if (!jinja_new_dict(run, given->keyword_count, &named)) return false;
    for (size_t i = 0; i < given->keyword_count; i++)
        if (!jinja_dict_set(run, named, given->keywords[i].key, given->keywords[i].value)) return false;
    return jinja_percent(run, string, jinja_from_dict(JINJA_DICT, named), result);
}

/* -------------------------------------------------------------------------------------------------------- HTML */

bool jinja_escape(jinja_run *run, jinja_value value, jinja_value *markup) {
    jinja_text text = {.run = run};
    if (value.kind == JINJA_STRING && value.mark) {
        *markup = value;
        return true;
    }
    if (!jinja_to_string(run, value, &value)) return false;
    const jinja_string *string = value.as.string;
    for (size_t i = 0; i < string->length; i++) {
        char c = string->data[i];
        const char *entity = c == '&'    ? "&amp;"
                             : c == '<'  ? "&lt;"
                             : c == '>'  ? "&gt;"
                             : c == '"'  ? "&#34;"
                             : c == '\'' ? "&#39;"
                                         : NULL;
        if (!(entity ? jinja_text_puts(&text, entity) : jinja_text_add(&text, &c, 1))) return false;
    }
    if (!jinja_text_finish(&text, markup)) return false;
    markup->mark = 1;
    return true;
}

static bool filter_escape(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return jinja_escape(run, in->self, result);
}

static bool filter_forceescape(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    if (!soft(run, in, result)) return false;
    result->mark = 0;
    return jinja_escape(run, *result, result);
}

static bool filter_safe(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    if (!soft(run, in, result)) return false;
    result->mark = 1;
    return true;
}

/* Bytes but letters, digits, _.-~ and, unless for a query, '/' as %XX. */
static bool quote(jinja_run *run, jinja_value value, bool query, jinja_text *text) {
    static const char digits[] = "0123456789ABCDEF";
    if (!jinja_to_string(run, value, &value)) return false;
    const jinja_string *string = value.as.string;
    for (size_t i = 0; i < string->length; i++) {
        uint8_t c = (uint8_t)string->data[i];
        bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
        char escaped[3] = {'%', digits[c >> 4], digits[c & 15]};
        bool plain = letter || (c >= '0' && c <= '9') || (c && strchr(query ? "_.-~" : "_.-~/", c));
        if (query && c == ' ') {
            if (!jinja_text_put(text, '+')) return false;
        } else if (!(plain ? jinja_text_put(text, c) : jinja_text_add(text, escaped, 3))) {
            return false;
        }
    }
    return true;
}

static bool filter_urlencode(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_text text = {.run = run};
    jinja_value pairs = in->self;
    jinja_iterator *iterator;
    if (in->self.kind == JINJA_STRING || !jinja_is_iterable(in->self))
        return quote(run, in->self, false, &text) && jinja_text_finish(&text, result);
    if (pairs.kind == JINJA_DICT) {
        pairs.kind = JINJA_VIEW;
        pairs.mark = JINJA_ITEMS;
    }
    if (!jinja_iterate(run, pairs, &iterator)) return false;
    for (size_t i = 0;; i++) {
        jinja_value item;
        jinja_list *pair;
        bool done;
        if (!jinja_next(run, iterator, &item, &done)) return false;
        if (done) return jinja_text_finish(&text, result);
        if (!jinja_to_list(run, item, &pair)) return false;
        if (pair->count != 2) return jinja_raise(run, "not enough or too many values to unpack (expected 2)");
        if ((i && !jinja_text_put(&text, '&')) || !quote(run, pair->items[0], true, &text) ||
            !jinja_text_put(&text, '=') || !quote(run, pair->items[1], true, &text))
            return false;
    }
}

/* ------------------------------------------------------------------------------------------------------- layout */

static bool filter_indent(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_text text = {.run = run};
    jinja_list *lines;
    jinja_value with_end, newline, by = in->bound[0];
    int64_t width = 4;
    if (in->self.kind == JINJA_UNDEFINED) return jinja_raise_undefined(run, in->self);
    if (in->self.kind != JINJA_STRING)
        return jinja_raise(run, "unsupported operand type(s) for +=: '%s' and 'str'", jinja_type(in->self));
    if (by.kind != JINJA_STRING) {
        jinja_text spaces = {.run = run};
        if (by.kind != JINJA_MISSING && !jinja_need_int(run, by, &width)) return false;
        if (width > 0 && !jinja_text_repeat(&spaces, ' ', (size_t)width)) return false;
        if (!jinja_text_finish(&spaces, &by)) return false;
    }
    if (!jinja_static_string(run, "\n", &newline) ||
        !jinja_join_strings(run, in->self.as.string, newline.as.string, &with_end) ||
        !jinja_split_lines(run, with_end, false, &lines))
        return false;
    bool first = jinja_truth(in->bound[1]), blank = jinja_truth(in->bound[2]);
    for (size_t i = 0; i < lines->count; i++) {
        const jinja_string *line = lines->items[i].as.string;
        bool indented = i ? blank || line->length : first;
        if ((i && !jinja_text_put(&text, '\n')) || (indented && !jinja_text_string(&text, by.as.string)) ||
            !jinja_text_string(&text, line))
            return false;
    }
    if (!jinja_text_finish(&text, result)) return false;
    result->mark = in->self.mark;
    return true;
}

static bool filter_truncate(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    int64_t length = 255, leeway = 5, count;
    jinja_value end = in->bound[2], part;
    if (in->bound[0].kind != JINJA_MISSING && !jinja_need_int(run, in->bound[0], &length)) return false;
    if (in->bound[3].kind != JINJA_MISSING && in->bound[3].kind != JINJA_NONE &&
        !jinja_need_int(run, in->bound[3], &leeway))
        return false;
    if (end.kind == JINJA_MISSING && !jinja_static_string(run, "...", &end)) return false;
    if (!jinja_need_string(run, "truncate", end)) return false;
    int64_t end_count = (int64_t)end.as.string->characters, limit;
    if (length < end_count)
        return jinja_raise(run, "expected length >= %lld, got %lld", (long long)end_count, (long long)length);
    if (leeway < 0) return jinja_raise(run, "expected leeway >= 0, got %lld", (long long)leeway);
    *result = in->self;
    if (!jinja_length(run, in->self, &count)) return false;
    if (__builtin_add_overflow(length, leeway, &limit) || count <= limit) return true;
    if (!jinja_need_string(run, "truncate", in->self)) return false;
    const jinja_string *string = in->self.as.string;
    size_t stop = jinja_offset(string, (size_t)(length - end_count));
    const char *space = jinja_truth(in->bound[1]) ? NULL : memrchr(string->data, ' ', stop);
    if (space) stop = (size_t)(space - string->data);
    if (!jinja_substring(run, string, 0, stop, &part)) return false;
    part.mark = in->self.mark;
    return jinja_binary(run, OP_ADD, part, end, result);
}

static bool filter_wordcount(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_value value;
    int64_t words = 0;
    bool in_word = false;
    if (!soft(run, in, &value)) return false;
    for (size_t at = 0; at < value.as.string->length;) {
        uint32_t character;
        at += jinja_decode(value.as.string->data, at, &character);
        bool word = jinja_is_word(character);
        words += word && !in_word;
        in_word = word;
    }
    *result = jinja_int(words);
    return jinja_step_bytes(run, value.as.string->length);
}

/* -------------------------------------------------------------------------------------------------------- JSON */

static bool read_separators(jinja_run *run, jinja_value given, jinja_json_format *format) {
    jinja_list *both;
    if (!jinja_to_list(run, given, &both)) return false;
    if (both->count != 2)
        return jinja_raise(run, "%s values to unpack (expected 2%s", both->count > 2 ? "too many" : "not enough",
                           both->count > 2 ? ")" : ", got fewer)");
    if (!jinja_need_string(run, "separators", both->items[0]) ||
        !jinja_need_string(run, "separators", both->items[1]))
        return false;
    format->item_separator = both->items[0].as.string;
    format->key_separator = both->items[1].as.string;
    return true;
}

/* json.dumps with what transformers lets templates choose. */
static bool filter_tojson(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_json_format format = {.ascii = jinja_truth(in->bound[0]), .sorted = jinja_truth(in->bound[3])};
    jinja_value indent = in->bound[1], separators = in->bound[2], item, key;
    jinja_text text = {.run = run}, spaces = {.run = run};
    int64_t width;
    bool broken = indent.kind != JINJA_MISSING && indent.kind != JINJA_NONE;
    if (broken && indent.kind != JINJA_STRING) {
        if (!jinja_is_int(indent, &width))
            return jinja_raise(run, "can't multiply sequence by non-int of type '%s'", jinja_type(indent));
        if (width > 0 && !jinja_text_repeat(&spaces, ' ', (size_t)width)) return false;
        if (!jinja_text_finish(&spaces, &indent)) return false;
    }
    if (!jinja_static_string(run, broken ? "," : ", ", &item) || !jinja_static_string(run, ": ", &key))
        return false;
    if (broken) format.indent = indent.as.string;
    format.item_separator = item.as.string;
    format.key_separator = key.as.string;
    if (separators.kind != JINJA_MISSING && separators.kind != JINJA_NONE &&
        !read_separators(run, separators, &format))
        return false;
    return jinja_json(&text, in->self, &format) && jinja_text_finish(&text, result);
}

const jinja_function jinja_text_filters[] = {
    {"capitalize", "", filter_capitalize},
    {"center", "width?", filter_center},
    {"e", "", filter_escape},
    {"escape", "", filter_escape},
    {"forceescape", "", filter_forceescape},
    {"format", NULL, filter_format},
    {"indent", "width? first? blank?", filter_indent},
    {"lower", "", filter_lower},
    {"replace", "old new count?", filter_replace},
    {"safe", "", filter_safe},
    {"string", "", filter_string},
    {"striptags", NULL, NULL},
    {"title", "", filter_title},
    {"tojson", "ensure_ascii? indent? separators? sort_keys?", filter_tojson},
    {"trim", "chars?", filter_trim},
    {"truncate", "length? killwords? end? leeway?", filter_truncate},
    {"upper", "", filter_upper},
    {"urlencode", "", filter_urlencode},
    {"urlize", NULL, NULL},
    {"wordcount", "", filter_wordcount},
    {"wordwrap", NULL, NULL},
    {"xmlattr", NULL, NULL},
    {NULL, NULL, NULL},
};
