#include "text/jinja/format.h"
#include "text/jinja/print.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* head (a sign, a prefix), then body, in a field of a width. characters: of body. */
static bool put_field(jinja_text *text, const jinja_field *field, const char *head, const char *body,
                      size_t length, size_t characters, char align) {
    size_t used = strlen(head) + characters;
    size_t padding = field->width > 0 && (size_t)field->width > used ? (size_t)field->width - used : 0;
    if (field->align) align = field->align;
    size_t before = align == '>' ? padding : align == '^' ? padding / 2 : 0;
    size_t between = align == '=' ? padding : 0;
    return jinja_text_repeat(text, field->fill, before) && jinja_text_puts(text, head) &&
           jinja_text_repeat(text, field->fill, between) && jinja_text_add(text, body, length) &&
           jinja_text_repeat(text, field->fill, padding - before - between);
}

bool jinja_field_text(jinja_text *text, const jinja_field *field, const jinja_string *value) {
    size_t characters = value->characters, length = value->length;
    if (field->precision >= 0 && (size_t)field->precision < characters) {
        characters = (size_t)field->precision;
        length = jinja_offset(value, characters);
    }
    return put_field(text, field, "", value->data, length, characters, '<');
}

static const char *sign_of(const jinja_field *field, bool negative) {
    return negative ? "-" : field->sign == '+' ? "+" : field->sign == ' ' ? " " : "";
}

/* Digits with a separator between groups, filled up with zeros to a width if zeros fill it. */
static bool put_digits(jinja_text *text, const jinja_field *field, const char *head, const char *digits,
                       size_t whole) {
    if (!field->grouping) return put_field(text, field, head, digits, strlen(digits), strlen(digits), '>');
    size_t group = strchr("boxX", field->type) && field->type ? 4 : 3, zeros = 0;
    if (field->fill == '0' && field->align == '=' && field->width > 0) {
        size_t rest = strlen(head) + strlen(digits) - whole;
        while (rest + whole + zeros + (whole + zeros - 1) / group < (size_t)field->width) zeros++;
    }
    jinja_text grouped = {.run = text->run};
    for (size_t i = 0; i < whole + zeros; i++) {
        if (i && (whole + zeros - i) % group == 0 && !jinja_text_put(&grouped, (uint32_t)field->grouping))
            return false;
        if (!jinja_text_put(&grouped, i < zeros ? '0' : (uint8_t)digits[i - zeros])) return false;
    }
    if (!jinja_text_puts(&grouped, digits + whole)) return false;
    return put_field(text, field, head, grouped.data, grouped.length, grouped.length, '>');
}

static void write_digits(char digits[72], uint64_t magnitude, char type) {
    if (type == 'b') {
        size_t count = 1;
        while (count < 64 && magnitude >> count) count++;
        for (size_t i = 0; i < count; i++) digits[i] = (char)('0' + (magnitude >> (count - 1 - i) & 1));
        digits[count] = 0;
        return;
    }
    const char *format = type == 'o' ? "%llo" : type == 'x' ? "%llx" : type == 'X' ? "%llX" : "%llu";
    snprintf(digits, 72, format, (unsigned long long)magnitude);
}

bool jinja_field_int(jinja_text *text, const jinja_field *field, int64_t value) {
    char digits[72], head[4];
    if (field->type && strchr("eEfFgG%", field->type)) return jinja_field_float(text, field, (double)value);
    write_digits(digits, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, field->type);
    const char *prefix = "";
    if (field->alternate)
        prefix = field->type == 'x'   ? "0x"
                 : field->type == 'X' ? "0X"
                 : field->type == 'o' ? "0o"
                 : field->type == 'b' ? "0b"
                                      : "";
    snprintf(head, sizeof head, "%s%s", sign_of(field, value < 0), prefix);
    size_t count = strlen(digits);
    if (field->precision <= (int64_t)count) return put_digits(text, field, head, digits, count);
    jinja_text padded = {.run = text->run}; /* of %: so many digits at least */
    if (!jinja_text_repeat(&padded, '0', (size_t)field->precision - count) ||
        !jinja_text_add(&padded, digits, count))
        return false;
    return put_field(text, field, head, padded.data, padded.length, padded.length, '>');
}

/* The digits of a magnitude into a text that ends in a NUL. */
static bool write_float(jinja_text *digits, const jinja_field *field, double magnitude) {
    char type = field->type ? field->type : 'g', format[8];
    size_t at = 0;
    if (!field->type && field->precision < 0)
        return jinja_text_float(digits, magnitude) && jinja_text_add(digits, "", 1);
    int precision = field->precision < 0 ? 6 : (int)field->precision;
    if (type == '%') magnitude *= 100.0;
    format[at++] = '%';
    if (field->alternate) format[at++] = '#';
    memcpy(format + at, ".*", 2);
    format[at + 2] = type == '%' ? 'f' : type == 'n' ? 'g' : type;
    format[at + 3] = 0;
    size_t room = (size_t)precision + 400;
    char *written = jinja_take(digits->run, room, 1);
    if (!written) return false;
    snprintf(written, room, format, precision, magnitude);
    if (!jinja_text_puts(digits, written)) return false;
    bool bare = !field->type && isfinite(magnitude) && !strpbrk(written, ".e");
    if (bare && !jinja_text_puts(digits, ".0")) return false;
    return (type != '%' || jinja_text_put(digits, '%')) && jinja_text_add(digits, "", 1);
}

bool jinja_field_float(jinja_text *text, const jinja_field *field, double value) {
    jinja_text digits = {.run = text->run};
    bool negative = signbit(value) && !isnan(value);
    if (!write_float(&digits, field, fabs(value))) return false;
    size_t whole = strspn(digits.data, "0123456789");
    if (!isfinite(value)) {
        jinja_field plain = *field;
        plain.grouping = 0;
        return put_digits(text, &plain, sign_of(field, negative), digits.data, whole);
    }
    return put_digits(text, field, sign_of(field, negative), digits.data, whole);
}
