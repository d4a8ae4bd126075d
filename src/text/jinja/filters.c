/* Finding filters, and those that fit no other file. */
#include "text/jinja/filters.h"

#include "text/jinja/node.h"
#include "text/jinja/number.h"
#include "text/jinja/print.h"
#include "text/jinja/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool filter_default(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    bool boolean = jinja_truth(in->bound[1]);
    *result = in->self;
    if (in->self.kind != JINJA_UNDEFINED && (!boolean || jinja_truth(in->self))) return true;
    *result = in->bound[0];
    return in->bound[0].kind != JINJA_MISSING || jinja_static_string(run, "", result);
}

/* As getattr: an attribute, never an item. */
static bool filter_attr(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    bool found;
    if (in->bound[0].kind != JINJA_STRING) return jinja_raise(run, "attribute name must be string");
    if (in->self.kind == JINJA_UNDEFINED) return jinja_raise_undefined(run, in->self);
    if (!jinja_get_property(run, in->self, in->bound[0].as.string, result, &found)) return false;
    return found || jinja_undefined_in(run, in->self, in->bound[0], result);
}

/* ----------------------------------------------------------------------------------------------------- numbers */

static bool filter_abs(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    int64_t integer;
    if (in->self.kind == JINJA_UNDEFINED) return jinja_raise(run, "bad operand type for abs(): 'Undefined'");
    if (in->self.kind == JINJA_FLOAT) {
        *result = jinja_float(fabs(in->self.as.real));
        return true;
    }
    if (in->self.kind == JINJA_BIG)
        return in->self.as.string->data[0] == '-' ? jinja_unary(run, '-', in->self, result)
                                                  : (*result = in->self, true);
    if (!jinja_is_int(in->self, &integer))
        return jinja_raise(run, "bad operand type for abs(): '%s'", jinja_type(in->self));
    return integer < 0 ? jinja_unary(run, '-', jinja_int(integer), result) : (*result = jinja_int(integer), true);
}

/* int() of a float. *ok false: nan, or (raised before) infinity. */
static bool truncate_float(jinja_run *run, double real, jinja_value *result, bool *ok) {
    *ok = !isnan(real);
    if (!*ok) return true;
    if (!(fabs(real) < 0x1p63)) return jinja_unsupported(run, "integers beyond 64 bits are not calculated with");
    *result = jinja_int((int64_t)real);
    return true;
}

static bool string_to_int(jinja_run *run, const jinja_string *string, int base, jinja_value *result, bool *ok) {
    double real;
    if (!jinja_parse_int(run, string->data, string->length, base, result, ok)) return false;
    if (*ok) return true;
    /* So that "42.23" is 42. */
    if (!jinja_parse_float(run, string->data, string->length, &real, ok)) return false;
    if (*ok && isinf(real)) *ok = false;
    return !*ok || truncate_float(run, real, result, ok);
}

static bool filter_int(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    int64_t base = 10, integer;
    bool ok = false;
    if (in->bound[1].kind != JINJA_MISSING && !jinja_is_int(in->bound[1], &base))
        return jinja_raise(run, "'%s' object cannot be interpreted as an integer", jinja_type(in->bound[1]));
    if (in->self.kind == JINJA_UNDEFINED) return jinja_raise_undefined(run, in->self);
    *result = in->self;
    if (in->self.kind == JINJA_BIG) return true;
    if (jinja_is_int(in->self, &integer)) {
        *result = jinja_int(integer);
        return true;
    }
    if (in->self.kind == JINJA_FLOAT) {
        if (isinf(in->self.as.real)) return jinja_raise(run, "cannot convert float infinity to integer");
        if (!truncate_float(run, in->self.as.real, result, &ok)) return false;
    } else if (in->self.kind == JINJA_STRING) {
        bool usable = base == 0 || (base >= 2 && base <= 36);
        if (!string_to_int(run, in->self.as.string, usable ? (int)base : 10, result, &ok)) return false;
    }
    if (!ok) *result = in->bound[0].kind == JINJA_MISSING ? jinja_int(0) : in->bound[0];
    return true;
}

static bool filter_float(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    double real = 0.0;
    bool ok = jinja_is_number(in->self);
    if (in->self.kind == JINJA_UNDEFINED) return jinja_raise_undefined(run, in->self);
    if (ok) real = jinja_to_double(in->self);
    bool digits = in->self.kind == JINJA_STRING || in->self.kind == JINJA_BIG;
    if (digits && !jinja_parse_float(run, in->self.as.string->data, in->self.as.string->length, &real, &ok))
        return false;
    *result = ok ? jinja_float(real) : in->bound[0].kind == JINJA_MISSING ? jinja_float(0.0) : in->bound[0];
    return true;
}

/* round() of an integer to tens, hundreds, ...: half to even. */
static bool round_int(jinja_run *run, int64_t integer, int64_t precision, jinja_value *result) {
    int64_t unit = 1;
    *result = jinja_int(precision <= -19 ? 0 : integer);
    if (precision >= 0 || precision <= -19) return true;
    for (int64_t i = precision; i < 0; i++) unit *= 10;
    int64_t rest = integer % unit, down = integer - rest, twice;
    if (rest < 0) {
        rest += unit;
        if (__builtin_sub_overflow(down, unit, &down)) return jinja_unsupported(run, "an integer beyond 64 bits");
    }
    bool up = __builtin_mul_overflow(rest, 2, &twice) || twice > unit || (twice == unit && down / unit % 2 != 0);
    if (up && __builtin_add_overflow(down, unit, &down))
        return jinja_unsupported(run, "an integer beyond 64 bits");
    *result = jinja_int(down);
    return true;
}

/* round() of a float: the decimal digits of the exact value, half to even. */
static double round_float(double real, int64_t precision) {
    char digits[700];
    if (!isfinite(real) || precision > 323) return real;
    if (precision < -308) return copysign(0.0, real);
    if (precision >= 0) {
        snprintf(digits, sizeof digits, "%.*f", (int)precision, real);
        return strtod(digits, NULL);
    }
    double unit = pow(10.0, (double)-precision), scaled = real / unit, whole = round(scaled);
    if (fabs(scaled - whole) == 0.5) whole = 2.0 * round(scaled / 2.0);
    return whole * unit;
}

static bool filter_round(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    int64_t precision = 0, integer;
    jinja_value method = in->bound[1], power, scaled;
    bool ceiling = jinja_is_text(method, "ceil", 4), floor_it = jinja_is_text(method, "floor", 5);
    if (method.kind != JINJA_MISSING && !ceiling && !floor_it && !jinja_is_text(method, "common", 6))
        return jinja_raise(run, "method must be common, ceil or floor");
    if (in->self.kind == JINJA_UNDEFINED && (ceiling || floor_it)) return jinja_raise_undefined(run, in->self);
    if (!jinja_is_number(in->self))
        return jinja_raise(run, "type %s doesn't define __round__ method", jinja_type(in->self));
    if (in->bound[0].kind != JINJA_MISSING && !jinja_is_int(in->bound[0], &precision))
        return jinja_raise(run, "'%s' object cannot be interpreted as an integer", jinja_type(in->bound[0]));
    if (!ceiling && !floor_it) {
        if (jinja_is_int(in->self, &integer)) return round_int(run, integer, precision, result);
        *result = jinja_float(round_float(in->self.as.real, precision));
        return true;
    }
    if (!jinja_binary(run, OP_POW, jinja_int(10), jinja_int(precision), &power) ||
        !jinja_binary(run, OP_MUL, in->self, power, &scaled))
        return false;
    if (scaled.kind == JINJA_FLOAT) {
        double whole = ceiling ? ceil(scaled.as.real) : floor(scaled.as.real);
        if (!isfinite(whole)) return jinja_raise(run, "cannot convert float to integer");
        scaled = fabs(whole) < 0x1p63 ? jinja_int((int64_t)whole) : jinja_float(whole);
    }
    return jinja_binary(run, OP_DIV, scaled, power, result);
}

static bool filter_filesizeformat(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    static const char *const prefixes = "kMGTPEZY";
    bool binary = jinja_truth(in->bound[0]);
    double base = binary ? 1024 : 1000, bytes = 0;
    char shown[64];
    jinja_value number;
    const jinja_invocation as_float = {.self = in->self, .bound = {jinja_none()}};
    if (!filter_float(run, &as_float, &number)) return false;
    if (number.kind != JINJA_FLOAT) return jinja_raise(run, "could not convert to float");
    bytes = number.as.real;
    if (bytes == 1) return jinja_static_string(run, "1 Byte", result);
    if (bytes < base) {
        if (!(bytes > -0x1p63)) return jinja_raise(run, "cannot convert float to integer");
        snprintf(shown, sizeof shown, "%lld Bytes", (long long)bytes);
        return jinja_copy_string(run, shown, strlen(shown), result);
    }
    double unit = base * base;
    size_t at = 0;
    for (; at < 7 && !(bytes < unit); at++) unit *= base;
    char prefix = prefixes[at] == 'k' && binary ? 'K' : prefixes[at];
    snprintf(shown, sizeof shown, "%.1f %c%s", base * bytes / unit, prefix, binary ? "iB" : "B");
    return jinja_copy_string(run, shown, strlen(shown), result);
}

/* ------------------------------------------------------------------------------------------------ looking up */

static const jinja_function other_filters[] = {
    {"abs", "", filter_abs},
    {"attr", "name", filter_attr},
    {"d", "default_value? boolean?", filter_default},
    {"default", "default_value? boolean?", filter_default},
    {"filesizeformat", "binary?", filter_filesizeformat},
    {"float", "default?", filter_float},
    {"int", "default? base?", filter_int},
    {"pprint", NULL, NULL},
    {"random", NULL, NULL},
    {"round", "precision? method?", filter_round},
    {NULL, NULL, NULL},
};

const jinja_function *jinja_find_filter(const jinja_string *name) {
    const jinja_function *const tables[] = {other_filters, jinja_text_filters, jinja_list_filters,
                                            jinja_order_filters, jinja_select_filters};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (const jinja_function *entry = tables[i]; entry->name; entry++)
            if (jinja_is_text(jinja_from_string(name), entry->name, strlen(entry->name))) return entry;
    return NULL;
}

bool jinja_new_iterator(jinja_run *run, size_t state_size,
                        bool (*next)(jinja_run *, jinja_iterator *, jinja_value *, bool *),
                        jinja_iterator **iterator) {
    *iterator = jinja_take(run, 1, sizeof **iterator);
    if (!*iterator) return false;
    **iterator = (jinja_iterator){.next = next, .name = "generator"};
    if (state_size == 0) return true;
    (*iterator)->state = jinja_take(run, 1, state_size);
    if ((*iterator)->state) memset((*iterator)->state, 0, state_size);
    return (*iterator)->state != NULL;
}

/* ------------------------------------------------------------------------------------------------------- getters */

bool jinja_make_getter(jinja_run *run, jinja_value attribute, bool ignore_case, jinja_value otherwise,
                       jinja_getter *getter) {
    jinja_list *parts;
    *getter = (jinja_getter){.ignore_case = ignore_case, .otherwise = otherwise};
    if (attribute.kind == JINJA_MISSING || attribute.kind == JINJA_NONE) return true;
    if (!jinja_new_list(run, 1, &parts)) return false;
    getter->parts = parts;
    if (attribute.kind != JINJA_STRING) return jinja_list_append(run, parts, attribute);
    const jinja_string *path = attribute.as.string;
    for (size_t start = 0, at = 0; at <= path->length; at++) {
        if (at < path->length && path->data[at] != '.') continue;
        jinja_value part;
        bool digits = at > start, ok = true;
        for (size_t i = start; i < at; i++) digits = digits && path->data[i] >= '0' && path->data[i] <= '9';
        bool done = digits ? jinja_parse_int(run, path->data + start, at - start, 10, &part, &ok)
                           : jinja_substring(run, path, start, at, &part);
        if (!done || !jinja_list_append(run, parts, part)) return false;
        start = at + 1;
    }
    return true;
}

bool jinja_apply_getter(jinja_run *run, const jinja_getter *getter, jinja_value item, jinja_value *result) {
    bool replace = getter->otherwise.kind != JINJA_MISSING && getter->otherwise.kind != JINJA_NONE;
    for (size_t i = 0; getter->parts && i < getter->parts->count; i++) {
        if (!jinja_get_item(run, item, getter->parts->items[i], &item)) return false;
        if (replace && item.kind == JINJA_UNDEFINED) item = getter->otherwise;
    }
    *result = item;
    if (!getter->ignore_case || item.kind != JINJA_STRING) return true;
    jinja_text text = {.run = run};
    return jinja_text_convert(&text, item.as.string, 0, item.as.string->length, JINJA_LOWER) &&
           jinja_text_finish(&text, result);
}
