/* Attributes, items and slices, as Jinja's immutable sandbox looks them up. */
#include "text/jinja/methods.h"
#include "text/jinja/print.h"
#include "text/jinja/state.h"

#include <stdio.h>
#include <string.h>

/* -------------------------------------------------------------------------------------------------- attributes */

/* Python's methods that change a list or a dict: the sandbox hands out an undefined value for them. */
static bool is_mutator(jinja_value object, const jinja_string *name) {
    static const char *const of_list[] = {"append", "clear",  "pop",    "reverse", "insert",
                                          "sort",   "extend", "remove", NULL};
    static const char *const of_dict[] = {"clear", "pop", "popitem", "setdefault", "update", NULL};
    const char *const *names = object.kind == JINJA_LIST ? of_list : object.kind == JINJA_DICT ? of_dict : NULL;
    for (; names && *names; names++)
        if (jinja_is_text(jinja_from_string(name), *names, strlen(*names))) return true;
    return false;
}

static bool unsafe_attribute(jinja_run *run, jinja_value object, const jinja_string *name, jinja_value *result) {
    char hint[200];
    snprintf(hint, sizeof hint, "access to attribute '%.*s' of '%s' object is unsafe.",
             (int)(name->length < 100 ? name->length : 100), name->data, jinja_type(object));
    return jinja_undefined_hint(run, hint, result);
}

static bool macro_property(jinja_run *run, const jinja_macro *macro, const jinja_string *name, jinja_value *result,
                           bool *found) {
    const jinja_value asked = jinja_from_string(name);
    *found = true;
    if (jinja_is_text(asked, "name", 4)) {
        *result = macro->name ? jinja_from_string(macro->name) : jinja_none();
    } else if (jinja_is_text(asked, "caller", 6)) {
        *result = jinja_bool(macro->node->caller);
    } else if (jinja_is_text(asked, "catch_kwargs", 12)) {
        *result = jinja_bool(macro->node->kwargs);
    } else if (jinja_is_text(asked, "catch_varargs", 13)) {
        *result = jinja_bool(macro->node->varargs);
    } else if (jinja_is_text(asked, "arguments", 9)) {
        if (!jinja_new_tuple(run, NULL, 0, result)) return false;
        for (size_t i = 0; i < macro->node->items.count; i++)
            if (!jinja_list_append(run, result->as.list, jinja_from_string(macro->node->items.at[i]->name)))
                return false;
    } else {
        *found = false;
    }
    return true;
}

/* Parts of numbers and ranges that are no methods. */
static bool plain_property(jinja_value object, const jinja_string *name, jinja_value *result) {
    const jinja_value asked = jinja_from_string(name);
    int64_t integer;
    bool is_int = jinja_is_int(object, &integer);
    if (is_int || object.kind == JINJA_FLOAT) {
        bool real = jinja_is_text(asked, "real", 4), imag = jinja_is_text(asked, "imag", 4);
        if (is_int) *result = jinja_int(integer);
        if (!is_int) *result = object;
        if (imag) *result = is_int ? jinja_int(0) : jinja_float(0.0);
        if (is_int && jinja_is_text(asked, "denominator", 11)) *result = jinja_int(1);
        return real || imag ||
               (is_int && (jinja_is_text(asked, "numerator", 9) || jinja_is_text(asked, "denominator", 11)));
    }
    if (object.kind == JINJA_RANGE) {
        const jinja_range *range = object.as.range;
        bool start = jinja_is_text(asked, "start", 5), stop = jinja_is_text(asked, "stop", 4);
        *result = jinja_int(start ? range->start : stop ? range->stop : range->step);
        return start || stop || jinja_is_text(asked, "step", 4);
    }
    if (object.kind == JINJA_TUPLE && object.mark && object.as.list->count == 2) { /* of groupby */
        bool list = jinja_is_text(asked, "list", 4);
        *result = object.as.list->items[list];
        return list || jinja_is_text(asked, "grouper", 7);
    }
    if (object.kind == JINJA_CYCLER && jinja_is_text(asked, "current", 7)) {
        *result = object.as.cycler->items->items[object.as.cycler->at];
        return true;
    }
    return false;
}

bool jinja_get_property(jinja_run *run, jinja_value object, const jinja_string *name, jinja_value *result,
                        bool *found) {
    const jinja_value *value;
    *found = false;
    if (object.kind == JINJA_UNDEFINED) return jinja_raise_undefined(run, object);
    if (object.kind == JINJA_NAMESPACE) {
        if (!jinja_dict_find(run, object.as.dict, jinja_from_string(name), &value)) return false;
        *found = value != NULL;
        if (value) *result = *value;
        return true;
    }
    if (object.kind == JINJA_LOOP) return jinja_loop_property(run, object, name, result, found);
    if (object.kind == JINJA_MACRO) return macro_property(run, object.as.macro, name, result, found);
    if (is_mutator(object, name)) {
        *found = true;
        return unsafe_attribute(run, object, name, result);
    }
    if (plain_property(object, name, result)) {
        *found = true;
        return true;
    }
    const jinja_function *function = jinja_find_method(object, name);
    if (!function) return true;
    jinja_method *method = jinja_take(run, 1, sizeof *method);
    if (!method) return false;
    *method = (jinja_method){object, function};
    *result = (jinja_value){.kind = JINJA_METHOD, .as.method = method};
    *found = true;
    return true;
}

/* -------------------------------------------------------------------------------------------------------- items */

/* Python's index into a sequence of count, from the end if negative. */
static bool in_sequence(jinja_value index, int64_t count, int64_t *at) {
    if (!jinja_is_int(index, at)) return false;
    if (*at < 0) *at += count;
    return *at >= 0 && *at < count;
}

/* object[index]; *found false for what is not there or not possible. */
static bool find_item(jinja_run *run, jinja_value object, jinja_value index, jinja_value *result, bool *found) {
    int64_t at;
    const jinja_value *value;
    *found = false;
    switch (object.kind) {
    case JINJA_LIST:
    case JINJA_TUPLE:
        *found = in_sequence(index, (int64_t)object.as.list->count, &at);
        if (*found) *result = object.as.list->items[at];
        return true;
    case JINJA_RANGE:
        *found = in_sequence(index, object.as.range->count, &at);
        if (*found) *result = jinja_int(jinja_range_item(object.as.range, (size_t)at));
        return true;
    case JINJA_DICT:
        if (index.kind == JINJA_LIST || index.kind == JINJA_DICT || index.kind == JINJA_VIEW) return true;
        if (!jinja_dict_find(run, object.as.dict, index, &value)) return false;
        *found = value != NULL;
        if (value) *result = *value;
        return true;
    case JINJA_STRING: {
        const jinja_string *string = object.as.string;
        uint32_t character;
        if (!in_sequence(index, (int64_t)string->characters, &at)) return true;
        size_t start = jinja_offset(string, (size_t)at);
        if (!jinja_step_bytes(run, string->length == string->characters ? 0 : start)) return false;
        size_t count = jinja_decode(string->data, start, &character);
        *found = true;
        if (!jinja_substring(run, string, start, start + count, result)) return false;
        result->mark = object.mark;
        return true;
    }
    default:
        return true;
    }
}

bool jinja_get_attribute(jinja_run *run, jinja_value object, const jinja_string *name, jinja_value *result) {
    bool found;
    if (!jinja_get_property(run, object, name, result, &found)) return false;
    if (!found && !find_item(run, object, jinja_from_string(name), result, &found)) return false;
    return found || jinja_undefined_in(run, object, jinja_from_string(name), result);
}

bool jinja_get_item(jinja_run *run, jinja_value object, jinja_value index, jinja_value *result) {
    bool found;
    if (object.kind == JINJA_UNDEFINED) return jinja_raise_undefined(run, object);
    if (!find_item(run, object, index, result, &found)) return false;
    if (!found && index.kind == JINJA_STRING && !jinja_get_property(run, object, index.as.string, result, &found))
        return false;
    return found || jinja_undefined_in(run, object, index, result);
}

/* ------------------------------------------------------------------------------------------------------- slices */

typedef struct bounds {
    int64_t start, stop, step, count; /* count: of items */
} bounds;

/* Python's slice.indices. */
static bool slice_bounds(jinja_run *run, const jinja_value parts[3], int64_t count, bounds *found) {
    int64_t ends[2];
    *found = (bounds){.step = 1};
    for (int i = 0; i < 3; i++) {
        int64_t part;
        if (parts[i].kind == JINJA_UNDEFINED || (parts[i].kind != JINJA_NONE && !jinja_is_int(parts[i], &part)))
            return jinja_raise(run, "slice indices must be integers or None or have an __index__ method");
    }
    if (jinja_is_int(parts[2], &found->step) && found->step == 0)
        return jinja_raise(run, "slice step cannot be zero");
    bool down = found->step < 0;
    int64_t low = down ? -1 : 0, high = down ? count - 1 : count;
    for (int i = 0; i < 2; i++) {
        if (!jinja_is_int(parts[i], &ends[i])) {
            ends[i] = (i == 0) == down ? high : low;
            continue;
        }
        if (ends[i] < 0) ends[i] += count;
        if (ends[i] < low) ends[i] = low;
        if (ends[i] > high) ends[i] = high;
    }
    int64_t distance = down ? ends[0] - ends[1] : ends[1] - ends[0];
    uint64_t stride = down ? 0 - (uint64_t)found->step : (uint64_t)found->step;
    found->start = ends[0];
    found->stop = ends[1];
    found->count = distance <= 0 ? 0 : (int64_t)(((uint64_t)distance - 1) / stride + 1);
    return true;
}

static bool slice_string(jinja_run *run, const jinja_string *string, const bounds *b, jinja_value *result) {
    bool plain = string->length == string->characters;
    if (!jinja_step_bytes(run, plain ? 0 : string->length)) return false;
    if (b->count == 0) return jinja_static_string(run, "", result);
    size_t at = jinja_offset(string, (size_t)b->start);
    if (b->step == 1)
        return jinja_substring(run, string, at, jinja_offset(string, (size_t)(b->start + b->count)), result);
    jinja_text text = {.run = run};
    for (int64_t i = 0; i < b->count; i++) {
        uint32_t character;
        size_t length = jinja_decode(string->data, at, &character);
        if (!jinja_text_add(&text, string->data + at, length)) return false;
        for (int64_t k = 0; i + 1 < b->count && k < (b->step < 0 ? -b->step : b->step); k++)
            at = b->step < 0 ? at - jinja_decode_before(string->data, at, &character)
                             : at + jinja_decode(string->data, at, &character);
    }
    return jinja_text_finish(&text, result);
}

static bool slice_range(jinja_run *run, const jinja_range *range, const bounds *b, jinja_value *result) {
    jinja_range *part = jinja_take(run, 1, sizeof *part);
    if (!part) return false;
    *part = (jinja_range){.count = b->count};
    if (__builtin_mul_overflow(range->step, b->step, &part->step) ||
        __builtin_mul_overflow(range->step, b->stop, &part->stop) ||
        __builtin_add_overflow(range->start, part->stop, &part->stop) ||
        __builtin_mul_overflow(range->step, b->start, &part->start) ||
        __builtin_add_overflow(range->start, part->start, &part->start))
        return jinja_over_limit(run, "a range beyond 64 bits");
    *result = (jinja_value){.kind = JINJA_RANGE, .as.range = part};
    return true;
}

bool jinja_get_slice(jinja_run *run, jinja_value object, const jinja_value parts[3], jinja_value *result) {
    int64_t count;
    bounds b;
    if (object.kind == JINJA_UNDEFINED) return jinja_raise_undefined(run, object);
    if (object.kind == JINJA_DICT) return jinja_raise(run, "unhashable type: 'slice'");
    bool sequence = object.kind == JINJA_STRING || object.kind == JINJA_LIST || object.kind == JINJA_TUPLE ||
                    object.kind == JINJA_RANGE;
    if (!sequence) return jinja_raise(run, "'%s' object is not subscriptable", jinja_type(object));
    if (!jinja_length(run, object, &count) || !slice_bounds(run, parts, count, &b)) return false;
    if (object.kind == JINJA_RANGE) return slice_range(run, object.as.range, &b, result);
    if (object.kind == JINJA_STRING) {
        if (!slice_string(run, object.as.string, &b, result)) return false;
        result->mark = object.mark;
        return true;
    }
    jinja_list *list;
    if (!jinja_new_list(run, (size_t)b.count, &list)) return false;
    for (int64_t i = 0; i < b.count; i++)
        if (!jinja_list_append(run, list, object.as.list->items[b.start + i * b.step])) return false;
    *result = jinja_from_list(object.kind, list);
    return true;
}
