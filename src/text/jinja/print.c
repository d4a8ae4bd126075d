#include "text/jinja/print.h"

#include "text/jinja/sort.h"
#include "text/jinja/state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------------------------------------------- numbers */

bool jinja_text_int(jinja_text *text, int64_t integer) {
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)integer);
    return jinja_text_puts(text, digits);
}

bool jinja_text_float(jinja_text *text, double real) {
    char digits[40];
    if (isnan(real)) return jinja_text_puts(text, "nan");
    if (isinf(real)) return jinja_text_puts(text, real < 0 ? "-inf" : "inf");
    int precision = 0;
    do snprintf(digits, sizeof digits, "%.*e", precision, real);
    while (strtod(digits, NULL) != real && ++precision < 17);
    char *exponent_at = strchr(digits, 'e');
    int exponent = atoi(exponent_at + 1);
    if (exponent < -4 || exponent >= 16) {
        *exponent_at = 0;
        char tail[16];
        snprintf(tail, sizeof tail, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        return jinja_text_puts(text, digits) && jinja_text_puts(text, tail);
    }
    int decimals = precision - exponent;
    snprintf(digits, sizeof digits, "%.*f", decimals > 0 ? decimals : 1, real);
    return jinja_text_puts(text, digits);
}

/* -------------------------------------------------------------------------------------------------------- repr */

static bool repr_character(jinja_text *text, uint32_t c, char quote) {
    char escape[12];
    const char *name = c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : c == '\\' ? "\\\\" : NULL;
    if (name) return jinja_text_puts(text, name);
    if (c == (uint32_t)quote) return jinja_text_put(text, '\\') && jinja_text_put(text, c);
    if (jinja_is_printable(c)) return jinja_text_put(text, c);
    snprintf(escape, sizeof escape, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)c);
    return jinja_text_puts(text, escape);
}

static bool repr_string(jinja_text *text, const jinja_string *string) {
    bool single = memchr(string->data, '\'', string->length) != NULL;
    char quote = single && !memchr(string->data, '"', string->length) ? '"' : '\'';
    if (!jinja_text_put(text, (uint32_t)quote)) return false;
    for (size_t at = 0; at < string->length;) {
        uint32_t character;
        at += jinja_decode(string->data, at, &character);
        if (!repr_character(text, character, quote)) return false;
    }
    return jinja_text_put(text, (uint32_t)quote);
}

static bool repr_members(jinja_text *text, const jinja_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        if (i && !jinja_text_puts(text, ", ")) return false;
        if (!jinja_repr(text, list->items[i])) return false;
    }
    return true;
}

static bool repr_items(jinja_text *text, jinja_list *list, const char *open, const char *close) {
    if (list->printing)
        return jinja_text_puts(text, open) && jinja_text_puts(text, "...") && jinja_text_puts(text, close);
    list->printing = true;
    bool done = jinja_text_puts(text, open) && repr_members(text, list) && jinja_text_puts(text, close);
    list->printing = false;
    return done;
}

static bool repr_pairs(jinja_text *text, const jinja_dict *dict) {
    for (size_t i = 0; i < dict->count; i++) {
        if (i && !jinja_text_puts(text, ", ")) return false;
        if (!jinja_repr(text, dict->pairs[i].key) || !jinja_text_puts(text, ": ") ||
            !jinja_repr(text, dict->pairs[i].value))
            return false;
    }
    return true;
}

static bool repr_dict(jinja_text *text, jinja_dict *dict) {
    if (dict->printing) return jinja_text_puts(text, "{...}");
    dict->printing = true;
    bool done = jinja_text_put(text, '{') && repr_pairs(text, dict) && jinja_text_put(text, '}');
    dict->printing = false;
    return done;
}

static bool repr_view(jinja_text *text, jinja_value view) {
    jinja_list *list;
    if (!jinja_to_list(text->run, view, &list)) return false;
    return jinja_text_puts(text, jinja_type(view)) && repr_items(text, list, "([", "])");
}

static bool repr_range(jinja_text *text, const jinja_range *range) {
    if (!jinja_text_puts(text, "range(") || !jinja_text_int(text, range->start) || !jinja_text_puts(text, ", ") ||
        !jinja_text_int(text, range->stop))
        return false;
    if (range->step != 1 && (!jinja_text_puts(text, ", ") || !jinja_text_int(text, range->step))) return false;
    return jinja_text_put(text, ')');
}

/* What Python prints with an address has none here. */
static bool repr_object(jinja_text *text, jinja_value value) {
    jinja_run *run = text->run;
    if (value.kind == JINJA_LOOP) {
        int64_t length;
        return jinja_length(run, value, &length) && jinja_text_puts(text, "<LoopContext ") &&
               jinja_text_int(text, value.as.loop->index0 + 1) && jinja_text_put(text, '/') &&
               jinja_text_int(text, length) && jinja_text_put(text, '>');
    }
    if (value.kind == JINJA_MACRO) {
        const jinja_string *name = value.as.macro->name;
        if (!name) return jinja_text_puts(text, "<Macro anonymous>");
        return jinja_text_puts(text, "<Macro ") && repr_string(text, name) && jinja_text_put(text, '>');
    }
    return jinja_text_put(text, '<') && jinja_text_puts(text, jinja_type(value)) && jinja_text_put(text, '>');
}

static bool repr_nested(jinja_text *text, jinja_value value) {
    switch (value.kind) {
    case JINJA_LIST:
        return repr_items(text, value.as.list, "[", "]");
    case JINJA_TUPLE:
        /* Python prints the comma of a lone item, but not while it is inside. */
        return repr_items(text, value.as.list, "(",
                          value.as.list->count == 1 && !value.as.list->printing ? ",)" : ")");
    case JINJA_DICT:
        return repr_dict(text, value.as.dict);
    case JINJA_NAMESPACE:
        return jinja_text_puts(text, "<Namespace ") && repr_dict(text, value.as.dict) && jinja_text_put(text, '>');
    case JINJA_VIEW:
        return repr_view(text, value);
    default:
        return repr_object(text, value);
    }
}

bool jinja_repr(jinja_text *text, jinja_value value) {
    jinja_run *run = text->run;
    if (!jinja_step(run, 1)) return false;
    switch (value.kind) {
    case JINJA_UNDEFINED:
        return jinja_text_puts(text, "Undefined");
    case JINJA_MISSING:
    case JINJA_NONE:
        return jinja_text_puts(text, "None");
    case JINJA_BOOL:
        return jinja_text_puts(text, value.as.boolean ? "True" : "False");
    case JINJA_INT:
        return jinja_text_int(text, value.as.integer);
    case JINJA_BIG:
        return jinja_text_string(text, value.as.string);
    case JINJA_FLOAT:
        return jinja_text_float(text, value.as.real);
    case JINJA_STRING:
        if (!value.mark) return repr_string(text, value.as.string);
        return jinja_text_puts(text, "Markup(") && repr_string(text, value.as.string) && jinja_text_put(text, ')');
    case JINJA_RANGE:
        return repr_range(text, value.as.range);
    default:
        if (!jinja_enter(run)) return false;
        bool done = repr_nested(text, value);
        jinja_leave(run);
        return done;
    }
}

bool jinja_str(jinja_text *text, jinja_value value) {
    if (value.kind == JINJA_STRING) return jinja_text_string(text, value.as.string);
    if (value.kind == JINJA_UNDEFINED) return true;
    return jinja_repr(text, value);
}

bool jinja_to_string(jinja_run *run, jinja_value value, jinja_value *string) {
    *string = value;
    if (value.kind == JINJA_STRING) return true;
    jinja_text text = {.run = run};
    return jinja_str(&text, value) && jinja_text_finish(&text, string);
}

/* -------------------------------------------------------------------------------------------------------- JSON */

static bool json_escape(jinja_text *text, uint32_t c) {
    char escape[12];
    snprintf(escape, sizeof escape, "\\u%04x", (unsigned)c);
    return jinja_text_puts(text, escape);
}

static bool json_character(jinja_text *text, uint32_t c, bool ascii) {
    switch (c) {
    case '"':
        return jinja_text_puts(text, "\\\"");
    case '\\':
        return jinja_text_puts(text, "\\\\");
    case '\n':
        return jinja_text_puts(text, "\\n");
    case '\r':
        return jinja_text_puts(text, "\\r");
    case '\t':
        return jinja_text_puts(text, "\\t");
    case '\b':
        return jinja_text_puts(text, "\\b");
    case '\f':
        return jinja_text_puts(text, "\\f");
    default:
        if (c < 0x20 || (ascii && c > 0x7e && c < 0x10000)) return json_escape(text, c);
        if (!ascii || c < 0x10000) return jinja_text_put(text, c);
        return json_escape(text, 0xd800 + ((c - 0x10000) >> 10)) && json_escape(text, 0xdc00 + (c & 0x3ff));
    }
}

static bool json_string(jinja_text *text, const jinja_string *string, bool ascii) {
    if (!jinja_text_put(text, '"')) return false;
    size_t plain = 0, at = 0;
    while (at < string->length) {
        uint8_t c = (uint8_t)string->data[at];
        if (c >= 0x20 && c != '"' && c != '\\' && (!ascii || c < 0x7f)) {
            at++;
            continue;
        }
        uint32_t character;
        if (!jinja_text_add(text, string->data + plain, at - plain)) return false;
        at += jinja_decode(string->data, at, &character);
        if (!json_character(text, character, ascii)) return false;
        plain = at;
    }
    return jinja_text_add(text, string->data + plain, at - plain) && jinja_text_put(text, '"');
}

static bool json_float(jinja_text *text, double real) {
    if (isnan(real)) return jinja_text_puts(text, "NaN");
    if (isinf(real)) return jinja_text_puts(text, real < 0 ? "-Infinity" : "Infinity");
    return jinja_text_float(text, real);
}

/* Between two items, or around them: the line break and the indent of a level. */
static bool json_break(jinja_text *text, const jinja_json_format *format, int level) {
    if (!format->indent) return true;
    if (!jinja_text_put(text, '\n')) return false;
    for (; level > 0; level--)
        if (!jinja_text_string(text, format->indent)) return false;
    return true;
}

static bool json_value(jinja_text *text, jinja_value value, const jinja_json_format *format, int level);

static bool json_list(jinja_text *text, const jinja_list *list, const jinja_json_format *format, int level) {
    if (list->count == 0) return jinja_text_puts(text, "[]");
    if (!jinja_text_put(text, '[') || !json_break(text, format, level + 1)) return false;
    for (size_t i = 0; i < list->count; i++) {
        if (i && (!jinja_text_string(text, format->item_separator) || !json_break(text, format, level + 1)))
            return false;
        if (!json_value(text, list->items[i], format, level + 1)) return false;
    }
    return json_break(text, format, level) && jinja_text_put(text, ']');
}

static bool json_key(jinja_text *text, jinja_value key, const jinja_json_format *format) {
    switch (key.kind) {
    case JINJA_STRING:
        return json_string(text, key.as.string, format->ascii);
    case JINJA_NONE:
    case JINJA_BOOL:
    case JINJA_INT:
    case JINJA_BIG:
    case JINJA_FLOAT:
        return jinja_text_put(text, '"') && json_value(text, key, format, 0) && jinja_text_put(text, '"');
    default:
        return jinja_raise(text->run, "keys must be str, int, float, bool or None, not %s", jinja_type(key));
    }
}

static bool json_dict(jinja_text *text, const jinja_dict *dict, const jinja_json_format *format, int level) {
    jinja_run *run = text->run;
    if (dict->count == 0) return jinja_text_puts(text, "{}");
    const jinja_pair *pairs = dict->pairs;
    if (format->sorted && !jinja_sorted_pairs(run, dict, &pairs)) return false;
    if (!jinja_text_put(text, '{') || !json_break(text, format, level + 1)) return false;
    for (size_t i = 0; i < dict->count; i++) {
        if (i && (!jinja_text_string(text, format->item_separator) || !json_break(text, format, level + 1)))
            return false;
        if (!json_key(text, pairs[i].key, format) || !jinja_text_string(text, format->key_separator) ||
            !json_value(text, pairs[i].value, format, level + 1))
            return false;
    }
    return json_break(text, format, level) && jinja_text_put(text, '}');
}

static bool json_value(jinja_text *text, jinja_value value, const jinja_json_format *format, int level) {
    jinja_run *run = text->run;
    bool done;
    switch (value.kind) {
    case JINJA_NONE:
        return jinja_text_puts(text, "null");
    case JINJA_BOOL:
        return jinja_text_puts(text, value.as.boolean ? "true" : "false");
    case JINJA_INT:
        return jinja_text_int(text, value.as.integer);
    case JINJA_BIG:
        return jinja_text_string(text, value.as.string);
    case JINJA_FLOAT:
        return json_float(text, value.as.real);
    case JINJA_STRING:
        return json_string(text, value.as.string, format->ascii);
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_DICT:
        if (!jinja_enter(run)) return false;
        done = value.kind == JINJA_DICT ? json_dict(text, value.as.dict, format, level)
                                        : json_list(text, value.as.list, format, level);
        jinja_leave(run);
        return done;
    default:
        return jinja_raise(run, "Object of type %s is not JSON serializable", jinja_type(value));
    }
}

bool jinja_json(jinja_text *text, jinja_value value, const jinja_json_format *format) {
    return json_value(text, value, format, 0);
}
