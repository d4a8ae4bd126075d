/* + - * / // % ** and signs, with Python's rules for numbers, strings and lists. */
#include "text/jinja/print.h"
#include "text/jinja/state.h"

#include <math.h>
#include <string.h>

static const char *const symbols[] = {"+", "-", "*", "/", "//", "%", "**"};

static bool unsupported_operands(jinja_run *run, int op, jinja_value a, jinja_value b) {
    return jinja_raise(run, "unsupported operand type(s) for %s: '%s' and '%s'",
                       op == OP_POW ? "** or pow()" : symbols[op], jinja_type(a), jinja_type(b));
}

static bool too_big(jinja_run *run) {
    return jinja_unsupported(run, "integers beyond 64 bits are not calculated with");
}

/* ----------------------------------------------------------------------------------------------------- numbers */

/* Towards minus infinity. */
static int64_t floor_divide(int64_t a, int64_t b) {
    int64_t quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

static bool power_of_ints(jinja_run *run, int64_t base, int64_t exponent, jinja_value *result) {
    if (exponent < 0) {
        if (base == 0) return jinja_raise(run, "0.0 cannot be raised to a negative power");
        *result = jinja_float(pow((double)base, (double)exponent));
        return true;
    }
    int64_t product = 1;
    while (exponent > 0) {
        if (exponent & 1 && __builtin_mul_overflow(product, base, &product)) return too_big(run);
        exponent >>= 1;
        if (exponent && __builtin_mul_overflow(base, base, &base)) return too_big(run);
    }
    *result = jinja_int(product);
    return true;
}

static bool binary_ints(jinja_run *run, int op, int64_t a, int64_t b, jinja_value *result) {
    int64_t number = 0;
    if (op >= OP_DIV && op <= OP_MOD && b == 0)
        return jinja_raise(run, op == OP_DIV   ? "division by zero"
                                : op == OP_MOD ? "integer modulo by zero"
                                               : "integer division or modulo by zero");
    if ((op == OP_FLOORDIV || op == OP_MOD) && b == -1) { /* INT64_MIN / -1 is a trap */
        if (op == OP_FLOORDIV && a == INT64_MIN) return too_big(run);
        *result = jinja_int(op == OP_MOD ? 0 : -a);
        return true;
    }
    switch (op) {
    case OP_ADD:
        if (__builtin_add_overflow(a, b, &number)) return too_big(run);
        break;
    case OP_SUB:
        if (__builtin_sub_overflow(a, b, &number)) return too_big(run);
        break;
    case OP_MUL:
        if (__builtin_mul_overflow(a, b, &number)) return too_big(run);
        break;
    case OP_DIV:
        *result = jinja_float((double)((long double)a / (long double)b));
        return true;
    case OP_FLOORDIV:
        number = floor_divide(a, b);
        break;
    case OP_MOD:
        number = a - floor_divide(a, b) * b;
        break;
    default:
        return power_of_ints(run, a, b, result);
    }
    *result = jinja_int(number);
    return true;
}

/* Python's float remainder: the sign of the divisor. */
static double modulo(double a, double b) {
    double rest = fmod(a, b);
    if (rest == 0.0) return copysign(0.0, b);
    return (b < 0) != (rest < 0) ? rest + b : rest;
}

static double floor_quotient(double a, double b) {
    double rest = fmod(a, b), quotient = (a - rest) / b;
    if (rest != 0.0 && (b < 0) != (rest < 0)) quotient -= 1.0;
    if (quotient == 0.0) return copysign(0.0, a / b);
    double whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1.0 : whole;
}

static bool binary_floats(jinja_run *run, int op, double a, double b, jinja_value *result) {
    double number;
    if (op >= OP_DIV && op <= OP_MOD && b == 0.0)
        return jinja_raise(run, op == OP_DIV        ? "float division by zero"
                                : op == OP_FLOORDIV ? "float floor division by zero"
                                                    : "float modulo");
    switch (op) {
    case OP_ADD:
        number = a + b;
        break;
    case OP_SUB:
        number = a - b;
        break;
    case OP_MUL:
        number = a * b;
        break;
    case OP_DIV:
        number = a / b;
        break;
    case OP_FLOORDIV:
        number = floor_quotient(a, b);
        break;
    case OP_MOD:
        number = modulo(a, b);
        break;
    default:
        if (a == 0.0 && b < 0.0) return jinja_raise(run, "0.0 cannot be raised to a negative power");
        if (a < 0.0 && isfinite(a) && isfinite(b) && b != floor(b))
            return jinja_unsupported(run, "complex numbers are not supported");
        number = pow(a, b);
        if (isinf(number) && isfinite(a) && isfinite(b))
            return jinja_raise(run, "(34, 'Numerical result out of range')");
    }
    *result = jinja_float(number);
    return true;
}

/* --------------------------------------------------------------------------------------------------- sequences */

static bool add_strings(jinja_run *run, jinja_value a, jinja_value b, jinja_value *result) {
    if (a.mark != b.mark && !jinja_escape(run, a.mark ? b : a, a.mark ? &b : &a)) return false;
    if (!jinja_join_strings(run, a.as.string, b.as.string, result)) return false;
    result->mark = a.mark;
    return true;
}

static bool add_lists(jinja_run *run, jinja_value a, jinja_value b, jinja_value *result) {
    const jinja_list *left = a.as.list, *right = b.as.list;
    jinja_list *list;
    size_t count = left->count + right->count;
    if (!jinja_step(run, count) || !jinja_new_list(run, count, &list)) return false;
    if (left->count) memcpy(list->items, left->items, left->count * sizeof *list->items);
    if (right->count) memcpy(list->items + left->count, right->items, right->count * sizeof *list->items);
    list->count = count;
    *result = jinja_from_list(a.kind, list);
    return true;
}

static bool repeat(jinja_run *run, jinja_value sequence, int64_t times, jinja_value *result) {
    size_t count = times < 0 ? 0 : (size_t)times;
    if (sequence.kind == JINJA_STRING) {
        jinja_text text = {.run = run};
        for (size_t i = 0; i < count && sequence.as.string->length; i++)
            if (!jinja_text_string(&text, sequence.as.string)) return false;
        if (!jinja_text_finish(&text, result)) return false;
        result->mark = sequence.mark;
        return true;
    }
    const jinja_list *source = sequence.as.list;
    size_t total;
    jinja_list *list;
    if (__builtin_mul_overflow(source->count, count, &total)) return jinja_over_limit(run, "a list is too long");
    if (!jinja_step(run, total) || !jinja_new_list(run, total, &list)) return false;
    for (; list->count < total; list->count += source->count)
        memcpy(list->items + list->count, source->items, source->count * sizeof *list->items);
    *result = jinja_from_list(sequence.kind, list);
    return true;
}

static bool is_sequence(jinja_value value) {
    return value.kind == JINJA_STRING || value.kind == JINJA_LIST || value.kind == JINJA_TUPLE;
}

static bool binary_sequences(jinja_run *run, int op, jinja_value a, jinja_value b, jinja_value *result) {
    int64_t times;
    if (op == OP_ADD && a.kind == b.kind && is_sequence(a))
        return a.kind == JINJA_STRING ? add_strings(run, a, b, result) : add_lists(run, a, b, result);
    if (op == OP_ADD && is_sequence(a) && !(a.kind == JINJA_STRING && a.mark))
        return jinja_raise(run, "can only concatenate %s (not \"%s\") to %s", jinja_type(a), jinja_type(b),
                           jinja_type(a));
    if (op == OP_MUL && is_sequence(a) && jinja_is_int(b, &times)) return repeat(run, a, times, result);
    if (op == OP_MUL && is_sequence(b) && jinja_is_int(a, &times)) return repeat(run, b, times, result);
    if (op == OP_MUL && (is_sequence(a) || is_sequence(b)))
        return jinja_raise(run, "can't multiply sequence by non-int of type '%s'",
                           jinja_type(is_sequence(a) ? b : a));
    return unsupported_operands(run, op, a, b);
}

bool jinja_binary(jinja_run *run, int op, jinja_value a, jinja_value b, jinja_value *result) {
    int64_t i, j;
    /* A format takes an undefined value like any other; everything else fails on one. */
    if (op == OP_MOD && a.kind == JINJA_STRING) return jinja_percent(run, a, b, result);
    if (a.kind == JINJA_UNDEFINED) return jinja_raise_undefined(run, a);
    if (b.kind == JINJA_UNDEFINED) return jinja_raise_undefined(run, b);
    if ((a.kind == JINJA_BIG && (jinja_is_number(b) || b.kind == JINJA_BIG)) ||
        (b.kind == JINJA_BIG && jinja_is_number(a)))
        return too_big(run);
    if (jinja_is_int(a, &i) && jinja_is_int(b, &j)) return binary_ints(run, op, i, j, result);
    if (jinja_is_number(a) && jinja_is_number(b))
        return binary_floats(run, op, jinja_to_double(a), jinja_to_double(b), result);
    return binary_sequences(run, op, a, b, result);
}

bool jinja_unary(jinja_run *run, int op, jinja_value a, jinja_value *result) {
    int64_t integer;
    if (a.kind == JINJA_UNDEFINED) return jinja_raise_undefined(run, a);
    if (a.kind == JINJA_FLOAT) {
        *result = op == '-' ? jinja_float(-a.as.real) : a;
        return true;
    }
    if (a.kind == JINJA_BIG) {
        *result = a;
        if (op == '+') return true;
        const jinja_string *digits = a.as.string;
        bool negative = digits->data[0] == '-';
        jinja_text text = {.run = run};
        if (!negative && !jinja_text_put(&text, '-')) return false;
        if (!jinja_text_add(&text, digits->data + negative, digits->length - negative) ||
            !jinja_text_finish(&text, result))
            return false;
        result->kind = JINJA_BIG;
        if (jinja_is_text(jinja_from_string(result->as.string), "-9223372036854775808", 20))
            *result = jinja_int(INT64_MIN);
        return true;
    }
    if (!jinja_is_int(a, &integer))
        return jinja_raise(run, "bad operand type for unary %c: '%s'", op, jinja_type(a));
    if (op == '-' && integer == INT64_MIN) return too_big(run);
    *result = jinja_int(op == '-' ? -integer : integer);
    return true;
}
