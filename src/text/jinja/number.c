#include "text/jinja/number.h"

#include "text/jinja/text.h"

#include <stdlib.h>
#include <string.h>

/* More digits than this Python itself refuses to convert. */
#define MAX_DIGITS 4300

static int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'z' ? c - 'a' + 10 : 99;
}

/* Removes white space at both ends. */
static bool trim(jinja_run *run, const char **data, size_t *length) {
    const jinja_string string = {.data = *data, .length = *length};
    size_t start, end;
    if (!jinja_strip(run, &string, NULL, true, true, &start, &end)) return false;
    *data += start;
    *length = end - start;
    return true;
}

/* Underscores may stand between digits (or behind a base's prefix), one at a time. Copies what else there is. */
static bool drop_underscores(const char *data, size_t length, int base, bool may_start, char *out, size_t *count) {
    *count = 0;
    for (size_t i = 0; i < length; i++) {
        if (data[i] != '_') {
            out[(*count)++] = data[i];
            continue;
        }
        bool after = i > 0 ? digit_of(data[i - 1]) < base : may_start;
        if (!after || i + 1 == length || digit_of(data[i + 1]) >= base) return false;
    }
    return true;
}

static int prefix_base(const char *data, size_t length) {
    if (length < 2 || data[0] != '0') return 0;
    char c = (char)(data[1] | 0x20);
    return c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
}

static bool make_big(jinja_run *run, bool negative, const char *digits, size_t count, jinja_value *value) {
    jinja_text text = {.run = run};
    if (negative && !jinja_text_put(&text, '-')) return false;
    if (!jinja_text_add(&text, digits, count) || !jinja_text_finish(&text, value)) return false;
    value->kind = JINJA_BIG;
    return true;
}

static bool convert(jinja_run *run, bool negative, const char *digits, size_t count, int base, jinja_value *value,
                    bool *ok) {
    int64_t integer = 0;
    bool beyond = false;
    while (count > 1 && digits[0] == '0') {
        digits++;
        count--;
    }
    for (size_t i = 0; i < count; i++) {
        int digit = digit_of(digits[i]);
        if (digit >= base) return true;
        beyond = beyond || __builtin_mul_overflow(integer, base, &integer) ||
                 __builtin_sub_overflow(integer, digit, &integer);
    }
    /* Counted downwards, because the smallest integer has no positive twin. */
    beyond = beyond || (!negative && integer == INT64_MIN);
    *ok = true;
    *value = jinja_int(beyond || negative ? integer : -integer);
    if (!beyond) return true;
    if (base != 10) return jinja_unsupported(run, "an integer beyond 64 bits that is not decimal");
    return make_big(run, negative, digits, count, value);
}

bool jinja_parse_int(jinja_run *run, const char *data, size_t length, int base, jinja_value *value, bool *ok) {
    char digits[MAX_DIGITS];
    size_t count;
    *ok = false;
    if (base != 0 && (base < 2 || base > 36)) return jinja_raise(run, "int() base must be >= 2 and <= 36, or 0");
    if (!trim(run, &data, &length)) return false;
    bool negative = length > 0 && data[0] == '-';
    if (negative || (length > 0 && data[0] == '+')) {
        data++;
        length--;
    }
    int prefix = prefix_base(data, length);
    bool prefixed = prefix && (base == 0 || base == prefix);
    if (prefixed) {
        data += 2;
        length -= 2;
        base = prefix;
    }
    if (length == 0 || length > MAX_DIGITS || !drop_underscores(data, length, 36, prefixed, digits, &count))
        return true;
    if (base == 0) {
        base = 10;
        for (size_t i = 0; digits[0] == '0' && i < count; i++)
            if (digits[i] != '0') return true; /* 007 */
    }
    return convert(run, negative, digits, count, base, value, ok);
}

/* nan, inf, infinity in any case. */
static bool is_word(const char *data, size_t length) {
    static const char *const words[] = {"nan", "inf", "infinity"};
    for (size_t i = 0; i < 3; i++) {
        bool same = length == strlen(words[i]);
        for (size_t k = 0; same && k < length; k++) same = (data[k] | 0x20) == words[i][k];
        if (same) return true;
    }
    return false;
}

bool jinja_parse_float(jinja_run *run, const char *data, size_t length, double *real, bool *ok) {
    char number[MAX_DIGITS + 1], *end;
    size_t count;
    *ok = false;
    if (!trim(run, &data, &length)) return false;
    if (length == 0 || length > MAX_DIGITS || !drop_underscores(data, length, 10, false, number, &count))
        return true;
    number[count] = 0;
    size_t sign = number[0] == '-' || number[0] == '+';
    bool word = is_word(number + sign, count - sign);
    for (size_t i = sign; i < count && !word; i++) /* strtod also takes hexadecimal and "nan(...)" */
        if (!strchr("0123456789.eE+-", number[i]) || number[i] == 0) return true;
    *real = strtod(number, &end);
    *ok = end == number + count;
    return true;
}
