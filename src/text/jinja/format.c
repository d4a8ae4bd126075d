/* text % values, and text.format(values). */
#include "text/jinja/format.h"

#include "text/jinja/number.h"
#include "text/jinja/print.h"
#include "text/jinja/state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Where formatting is in its text. */
typedef struct cursor {
    jinja_run *run;
    jinja_text out;
    const jinja_string *format;
    size_t at;
    bool markup;
    /* of %: */
    jinja_value values;
    size_t next, count;
    /* of format(): */
    const jinja_arguments *arguments;
    int64_t automatic; /* the next number of {}; -1 once a number was given, 0 at first */
    bool manual;
} cursor;

static int here(const cursor *c) {
    return c->at < c->format->length ? (uint8_t)c->format->data[c->at] : -1;
}

static bool read_number(cursor *c, int64_t *number) {
    *number = 0;
    for (; here(c) >= '0' && here(c) <= '9'; c->at++) {
        *number = *number * 10 + (here(c) - '0');
        if (*number > JINJA_MAX_FIELD) return jinja_over_limit(c->run, "a field wider than %d", JINJA_MAX_FIELD);
    }
    return true;
}

/* Converted by repr or str; ascii: what is not ASCII as escapes. Markup's helpers escape both. */
static bool convert(cursor *c, jinja_value value, char conversion, jinja_value *string) {
    jinja_run *run = c->run;
    jinja_text text = {.run = run};
    if (conversion == 's' && value.kind == JINJA_STRING) {
        *string = value;
    } else {
        bool done = conversion == 's' ? jinja_str(&text, value) : jinja_repr(&text, value);
        if (!done || !jinja_text_finish(&text, string)) return false;
    }
    if (conversion != 'a') return true;
    const jinja_string *source = string->as.string;
    for (size_t at = 0; at < source->length;) {
        char escape[12];
        uint32_t character;
        at += jinja_decode(source->data, at, &character);
        const char *format = character < 0x100 ? "\\x%02x" : character < 0x10000 ? "\\u%04x" : "\\U%08x";
        if (character < 0x80) {
            if (!jinja_text_put(&text, character)) return false;
            continue;
        }
        snprintf(escape, sizeof escape, format, (unsigned)character);
        if (!jinja_text_puts(&text, escape)) return false;
    }
    return jinja_text_finish(&text, string);
}

/* --------------------------------------------------------------------------------------------- text % values */

static bool next_value(cursor *c, jinja_value *value) {
    if (c->next >= c->count) return jinja_raise(c->run, "not enough arguments for format string");
    *value = c->values.kind == JINJA_TUPLE ? c->values.as.list->items[c->next] : c->values;
    c->next++;
    return true;
}

/* %(key)s: the value of the key. */
static bool keyed_value(cursor *c, jinja_value *value) {
    size_t start = ++c->at;
    const jinja_value *found;
    jinja_value key;
    for (int depth = 1; depth > 0; c->at++) {
        if (here(c) < 0) return jinja_raise(c->run, "incomplete format key");
        depth += here(c) == '(' ? 1 : here(c) == ')' ? -1 : 0;
    }
    if (c->values.kind == JINJA_UNDEFINED) return jinja_raise_undefined(c->run, c->values);
    if (c->values.kind != JINJA_DICT) return jinja_raise(c->run, "format requires a mapping");
    if (!jinja_substring(c->run, c->format, start, c->at - 1, &key) ||
        !jinja_dict_find(c->run, c->values.as.dict, key, &found))
        return false;
    if (!found) return jinja_raise(c->run, "'%.*s'", (int)key.as.string->length, key.as.string->data);
    *value = *found;
    return true;
}

/* A width or precision: digits, or * for the next value. */
static bool read_star(cursor *c, int64_t *number) {
    jinja_value value;
    if (here(c) != '*') return read_number(c, number);
    c->at++;
    if (!next_value(c, &value)) return false;
    if (!jinja_is_int(value, number)) return jinja_raise(c->run, "* wants int");
    if (*number > JINJA_MAX_FIELD || *number < -JINJA_MAX_FIELD)
        return jinja_over_limit(c->run, "a field wider than %d", JINJA_MAX_FIELD);
    return true;
}

/* Flags, width, precision, length: everything up to the type. */
static bool read_percent(cursor *c, jinja_field *field) {
    *field = (jinja_field){.fill = ' ', .align = '>', .sign = '-', .precision = -1};
    bool zero = false;
    for (; here(c) > 0 && strchr("-+ #0", here(c)); c->at++) {
        if (here(c) == '-') field->align = '<';
        if (here(c) == '+' || (here(c) == ' ' && field->sign == '-')) field->sign = (char)here(c);
        if (here(c) == '#') field->alternate = true;
        if (here(c) == '0') zero = true;
    }
    if (!read_star(c, &field->width)) return false;
    if (field->width < 0) {
        field->width = -field->width;
        field->align = '<';
    }
    if (here(c) == '.') {
        c->at++;
        if (!read_star(c, &field->precision)) return false;
        if (field->precision < 0) field->precision = 0;
    }
    if (here(c) == 'h' || here(c) == 'l' || here(c) == 'L') c->at++;
    if (here(c) < 0) return jinja_raise(c->run, "incomplete format");
    field->type = (char)c->format->data[c->at++];
    if (zero && field->align != '<' && strchr("diouxXeEfFgG", field->type)) {
        field->fill = '0';
        field->align = '=';
    }
    return true;
}

static bool percent_int(cursor *c, jinja_field *field, jinja_value value) {
    int64_t integer;
    char type = field->type;
    if (value.kind == JINJA_UNDEFINED) return jinja_raise_undefined(c->run, value);
    if (value.kind == JINJA_FLOAT && strchr("diu", type)) {
        if (!(fabs(value.as.real) < 0x1p63)) return jinja_raise(c->run, "cannot convert float to integer");
        value = jinja_int((int64_t)value.as.real);
    }
    if (value.kind == JINJA_BIG && strchr("diu", type)) return jinja_field_text(&c->out, field, value.as.string);
    if (!jinja_is_int(value, &integer))
        return jinja_raise(c->run, "%%%c format: %s is required, not %s", type,
                           strchr("diu", type) ? "a real number" : "an integer", jinja_type(value));
    return jinja_field_int(&c->out, field, integer);
}

static bool percent_character(cursor *c, jinja_field *field, jinja_value value) {
    int64_t code;
    field->precision = -1;
    if (value.kind == JINJA_STRING && value.as.string->characters == 1)
        return jinja_field_text(&c->out, field, value.as.string);
    if (!jinja_is_int(value, &code)) return jinja_raise(c->run, "%%c requires int or char");
    if (code < 0 || code > 0x10ffff) return jinja_raise(c->run, "%%c arg not in range(0x110000)");
    if (code >= 0xd800 && code <= 0xdfff) return jinja_unsupported(c->run, "%%c of half a surrogate pair");
    char bytes[4];
    const jinja_string one = {.data = bytes, .length = jinja_encode((uint32_t)code, bytes), .characters = 1};
    return jinja_field_text(&c->out, field, &one);
}

static bool percent_float(cursor *c, jinja_field *field, jinja_value value) {
    if (value.kind == JINJA_UNDEFINED) return jinja_raise_undefined(c->run, value);
    if (!jinja_is_number(value)) return jinja_raise(c->run, "must be real number, not %s", jinja_type(value));
    return jinja_field_float(&c->out, field, jinja_to_double(value));
}

/* Behind a '%'. */
static bool percent_field(cursor *c) {
    jinja_value value = jinja_missing(), string;
    jinja_field field;
    if (here(c) == '(' && !keyed_value(c, &value)) return false;
    if (!read_percent(c, &field)) return false;
    if (field.type == '%') return jinja_text_put(&c->out, '%');
    if (value.kind == JINJA_MISSING && !next_value(c, &value)) return false;
    switch (field.type) {
    case 's':
    case 'r':
    case 'a':
        if (!convert(c, value, field.type, &string)) return false;
        if (c->markup && !jinja_escape(c->run, string, &string)) return false;
        return jinja_field_text(&c->out, &field, string.as.string);
    case 'c':
        return percent_character(c, &field, value);
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
        return percent_int(c, &field, value);
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
        return percent_float(c, &field, value);
    default:
        return jinja_raise(c->run, "unsupported format character '%c'", field.type);
    }
}

/* Values that are looked into by key need not all be used. */
static bool is_mapping_like(jinja_value value) {
    return value.kind == JINJA_DICT || value.kind == JINJA_LIST || value.kind == JINJA_RANGE ||
           value.kind == JINJA_UNDEFINED;
}

bool jinja_percent(jinja_run *run, jinja_value format, jinja_value value, jinja_value *result) {
    cursor c = {
        .run = run, .out = {.run = run}, .format = format.as.string, .markup = format.mark, .values = value};
    c.count = value.kind == JINJA_TUPLE ? value.as.list->count : 1;
    while (c.at < c.format->length) {
        const char *start = c.format->data + c.at;
        const char *percent = memchr(start, '%', c.format->length - c.at);
        size_t plain = percent ? (size_t)(percent - start) : c.format->length - c.at;
        if (!jinja_text_add(&c.out, start, plain)) return false;
        c.at += plain + (percent != NULL);
        if (percent && !percent_field(&c)) return false;
    }
    if (c.next < c.count && !is_mapping_like(value))
        return jinja_raise(run, "not all arguments converted during string formatting");
    if (!jinja_text_finish(&c.out, result)) return false;
    result->mark = format.mark;
    return true;
}

/* ----------------------------------------------------------------------------------------- text.format(values) */

static bool is_align(int c) {
    return c == '<' || c == '>' || c == '^' || c == '=';
}

/* The part behind ':' of a field. */
static bool read_spec(cursor *c, jinja_field *field) {
    *field = (jinja_field){.fill = ' ', .sign = 0, .precision = -1};
    const jinja_string *spec = c->format;
    uint32_t fill;
    size_t count = spec->length ? jinja_decode(spec->data, 0, &fill) : 0;
    if (count && count < spec->length && is_align(spec->data[count])) {
        field->fill = fill;
        c->at = count;
    }
    if (is_align(here(c))) field->align = spec->data[c->at++];
    if (here(c) == '+' || here(c) == '-' || here(c) == ' ') field->sign = spec->data[c->at++];
    if (here(c) == '#') {
        field->alternate = true;
        c->at++;
    }
    if (here(c) == '0' && !field->align) {
        field->fill = '0';
        field->align = '=';
    }
    if (!read_number(c, &field->width)) return false;
    if (here(c) == ',' || here(c) == '_') field->grouping = spec->data[c->at++];
    if (here(c) == '.') {
        c->at++;
        if (here(c) < '0' || here(c) > '9') return jinja_raise(c->run, "Format specifier missing precision");
        if (!read_number(c, &field->precision)) return false;
    }
    if (here(c) >= 0) field->type = spec->data[c->at++];
    return here(c) < 0 || jinja_raise(c->run, "Invalid format specifier");
}

static bool unknown_code(cursor *c, const jinja_field *field, jinja_value value) {
    return jinja_raise(c->run, "Unknown format code '%c' for object of type '%s'", field->type, jinja_type(value));
}

static bool format_string(cursor *c, jinja_field *field, const jinja_string *string) {
    if (field->type && field->type != 's') return unknown_code(c, field, jinja_from_string(string));
    if (field->sign) return jinja_raise(c->run, "Sign not allowed in string format specifier");
    if (field->alternate) return jinja_raise(c->run, "Alternate form (#) not allowed in string format specifier");
    if (field->grouping) return jinja_raise(c->run, "Cannot specify '%c' with 's'.", field->grouping);
    if (field->align == '=') {
        if (field->fill != '0') return jinja_raise(c->run, "'=' alignment not allowed in string format specifier");
        field->align = '<';
    }
    return jinja_field_text(&c->out, field, string);
}

static bool format_number(cursor *c, jinja_field *field, jinja_value value) {
    int64_t integer;
    bool is_int = jinja_is_int(value, &integer);
    if (field->type && !strchr(is_int ? "bcdoxXneEfFgG%" : "eEfFgGn%", field->type))
        return unknown_code(c, field, value);
    if (!is_int) return jinja_field_float(&c->out, field, value.as.real);
    bool as_int = !field->type || strchr("bcdoxXn", field->type);
    if (as_int && field->precision >= 0)
        return jinja_raise(c->run, "Precision not allowed in integer format specifier");
    if (field->grouping == ',' && field->type && strchr("boxX", field->type))
        return jinja_raise(c->run, "Cannot specify ',' with '%c'.", field->type);
    if (field->type == 'c') {
        if (integer < 0 || integer > 0x10ffff || (integer >= 0xd800 && integer <= 0xdfff))
            return jinja_raise(c->run, "%%c arg not in range(0x110000)");
        char bytes[4];
        const jinja_string one = {
            .data = bytes, .length = jinja_encode((uint32_t)integer, bytes), .characters = 1};
        return jinja_field_text(&c->out, field, &one);
    }
    return jinja_field_int(&c->out, field, integer);
}

/* format(value, spec), added to out. */
static bool format_plain(cursor *c, jinja_value value, const jinja_string *spec, jinja_text *out) {
    jinja_field field;
    if (spec->length == 0 || value.kind == JINJA_BIG) return jinja_str(out, value);
    if (value.kind != JINJA_STRING && !jinja_is_number(value))
        return jinja_raise(c->run, "unsupported format string passed to %s.__format__", jinja_type(value));
    cursor inner = {.run = c->run, .out = *out, .format = spec};
    if (!read_spec(&inner, &field)) return false;
    bool done = value.kind == JINJA_STRING ? format_string(&inner, &field, value.as.string)
                                           : format_number(&inner, &field, value);
    *out = inner.out;
    return done;
}

/* Markup escapes what it puts in, except for other Markup. */
static bool format_value(cursor *c, jinja_value value, const jinja_string *spec) {
    jinja_text plain = {.run = c->run};
    jinja_value string;
    if (!c->markup || value.mark) return format_plain(c, value, spec, &c->out);
    return format_plain(c, value, spec, &plain) && jinja_text_finish(&plain, &string) &&
           jinja_escape(c->run, string, &string) && jinja_text_string(&c->out, string.as.string);
}

/* The first part of a field's name: a number, nothing (the next number), or a keyword. */
static bool first_value(cursor *c, const char *name, size_t length, jinja_value *value) {
    jinja_run *run = c->run;
    int64_t number = 0;
    bool digits = true;
    for (size_t i = 0; i < length; i++) digits = digits && name[i] >= '0' && name[i] <= '9';
    if (!digits) {
        for (size_t i = 0; i < c->arguments->keyword_count; i++)
            if (jinja_is_text(c->arguments->keywords[i].key, name, length)) {
                *value = c->arguments->keywords[i].value;
                return true;
            }
        return jinja_raise(run, "'%.*s'", (int)length, name);
    }
    for (size_t i = 0; i < length && number <= JINJA_MAX_FIELD; i++) number = number * 10 + (name[i] - '0');
    if (length == 0 ? c->manual : c->automatic > 0)
        return jinja_raise(run, "cannot switch between automatic and manual field numbering");
    if (length == 0) number = c->automatic++;
    c->manual = c->manual || length > 0;
    if ((size_t)number >= c->arguments->count)
        return jinja_raise(run, "Replacement index %lld out of range for positional args tuple",
                           (long long)number);
    *value = c->arguments->values[number];
    return true;
}

/* name.attribute[index]... */
static bool field_value(cursor *c, const char *name, size_t length, jinja_value *value) {
    jinja_run *run = c->run;
    size_t at = 0;
    while (at < length && name[at] != '.' && name[at] != '[') at++;
    if (!first_value(c, name, at, value)) return false;
    while (at < length) {
        bool index = name[at] == '[', ok;
        size_t start = ++at;
        while (at < length && (index ? name[at] != ']' : name[at] != '.' && name[at] != '[')) at++;
        jinja_value key, number;
        if (at == start) return jinja_raise(run, "Empty attribute in format string");
        if (!jinja_view_string(run, name + start, at - start, &key)) return false;
        if (!index) {
            if (!jinja_get_attribute(run, *value, key.as.string, value)) return false;
            continue;
        }
        if (at == length) return jinja_raise(run, "Missing ']' in format string");
        at++;
        if (at < length && name[at] != '.' && name[at] != '[')
            return jinja_raise(run, "Only '.' or '[' may follow ']' in format field specifier");
        if (!jinja_parse_int(run, key.as.string->data, key.as.string->length, 10, &number, &ok)) return false;
        bool plain = ok && key.as.string->data[0] >= '0' && key.as.string->data[0] <= '9';
        if (!jinja_get_item(run, *value, plain ? number : key, value)) return false;
    }
    return true;
}

static bool format_text(cursor *c, int depth);

/* A spec may have fields of its own. */
static bool read_nested(cursor *c, size_t start, size_t end, jinja_value *spec, int depth) {
    if (!jinja_substring(c->run, c->format, start, end, spec)) return false;
    if (!memchr(spec->as.string->data, '{', spec->as.string->length)) return true;
    cursor inner = *c;
    inner.out = (jinja_text){.run = c->run};
    inner.format = spec->as.string;
    inner.at = 0;
    if (!format_text(&inner, depth + 1)) return false;
    c->automatic = inner.automatic;
    c->manual = inner.manual;
    return jinja_text_finish(&inner.out, spec);
}

/* Behind a '{', which closes with its '}'. */
static bool format_field(cursor *c, int depth) {
    jinja_run *run = c->run;
    const char *data = c->format->data;
    size_t start = c->at, name_end, spec_at;
    int open = 1;
    bool bracket = false;
    for (; open > 0; c->at++) {
        if (here(c) < 0) return jinja_raise(run, "expected '}' before end of string");
        open += here(c) == '{' ? 1 : here(c) == '}' ? -1 : 0;
    }
    size_t end = c->at - 1;
    for (name_end = start; name_end < end; name_end++) {
        bracket = data[name_end] == '[' || (bracket && data[name_end] != ']');
        if (!bracket && (data[name_end] == '!' || data[name_end] == ':')) break;
    }
    jinja_value value, spec;
    if (!field_value(c, data + start, name_end - start, &value)) return false;
    spec_at = name_end;
    if (spec_at < end && data[spec_at] == '!') {
        char conversion = spec_at + 1 < end ? data[spec_at + 1] : 0;
        if (conversion != 'r' && conversion != 's' && conversion != 'a')
            return jinja_raise(run, "Unknown conversion specifier");
        if (!convert(c, value, conversion, &value)) return false;
        spec_at += 2;
        if (spec_at < end && data[spec_at] != ':')
            return jinja_raise(run, "expected ':' after conversion specifier");
    }
    if (!read_nested(c, spec_at < end ? spec_at + 1 : end, end, &spec, depth)) return false;
    return format_value(c, value, spec.as.string);
}

static bool format_text(cursor *c, int depth) {
    if (depth > 1) return jinja_raise(c->run, "Max string recursion exceeded");
    while (here(c) >= 0) {
        int sign = here(c);
        c->at++;
        if ((sign == '{' || sign == '}') && here(c) == sign) {
            c->at++;
            if (!jinja_text_put(&c->out, (uint32_t)sign)) return false;
        } else if (sign == '}') {
            return jinja_raise(c->run, "Single '}' encountered in format string");
        } else if (sign == '{') {
            if (here(c) < 0) return jinja_raise(c->run, "Single '{' encountered in format string");
            if (!format_field(c, depth)) return false;
        } else if (!jinja_text_add(&c->out, c->format->data + c->at - 1, 1)) {
            return false;
        }
    }
    return true;
}

bool jinja_format(jinja_run *run, jinja_value format, const jinja_arguments *arguments, jinja_value *result) {
    cursor c = {.run = run,
                .out = {.run = run},
                .format = format.as.string,
                .markup = format.mark,
                .arguments = arguments};
    if (!format_text(&c, 0) || !jinja_text_finish(&c.out, result)) return false;
    result->mark = format.mark;
    return true;
}
