/* Types, truth, equality, order and hashes as Python has them. */
#include "text/jinja/print.h"
#include "text/jinja/text.h"
#include "text/jinja/value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *jinja_type(jinja_value value) {
    static const char *const names[] = {
        [JINJA_MISSING] = "object",
        [JINJA_UNDEFINED] = "Undefined",
        [JINJA_NONE] = "NoneType",
        [JINJA_BOOL] = "bool",
        [JINJA_INT] = "int",
        [JINJA_BIG] = "int",
        [JINJA_FLOAT] = "float",
        [JINJA_STRING] = "str",
        [JINJA_LIST] = "list",
        [JINJA_TUPLE] = "tuple",
        [JINJA_DICT] = "dict",
        [JINJA_VIEW] = "dict_keys",
        [JINJA_RANGE] = "range",
        [JINJA_ITERATOR] = "generator",
        [JINJA_NAMESPACE] = "namespace",
        [JINJA_LOOP] = "LoopContext",
        [JINJA_MACRO] = "Macro",
        [JINJA_FUNCTION] = "function",
        [JINJA_METHOD] = "builtin_function_or_method",
        [JINJA_CYCLER] = "Cycler",
        [JINJA_JOINER] = "Joiner",
    };
    if (value.kind == JINJA_STRING && value.mark) return "Markup";
    if (value.kind == JINJA_ITERATOR) return value.as.iterator->name;
    if (value.kind == JINJA_VIEW && value.mark == JINJA_VALUES) return "dict_values";
    if (value.kind == JINJA_VIEW && value.mark == JINJA_ITEMS) return "dict_items";
    return names[value.kind];
}

/* How Jinja names an object in the text of an undefined error. */
static const char *type_phrase(jinja_value value) {
    switch (value.kind) {
    case JINJA_NONE:
        return "None";
    case JINJA_STRING:
        return value.mark ? "markupsafe.Markup object" : "str object";
    case JINJA_LOOP:
        return "jinja2.runtime.LoopContext object";
    case JINJA_MACRO:
        return "jinja2.runtime.Macro object";
    case JINJA_CYCLER:
        return "jinja2.utils.Cycler object";
    case JINJA_JOINER:
        return "jinja2.utils.Joiner object";
    default:
        return NULL;
    }
}

bool jinja_raise_undefined(jinja_run *run, jinja_value value) {
    const jinja_undefined *undefined = value.as.undefined;
    if (undefined->hint) return jinja_raise(run, "%.*s", (int)undefined->hint->length, undefined->hint->data);
    jinja_text name = {.run = run};
    if (!jinja_repr(&name, undefined->name)) return false;
    int length = (int)(name.length < 300 ? name.length : 300);
    if (undefined->object.kind == JINJA_MISSING) return jinja_raise(run, "%.*s is undefined", length, name.data);
    const char *type = type_phrase(undefined->object), *object = "";
    if (!type) {
        type = jinja_type(undefined->object);
        object = " object";
    }
    if (undefined->name.kind != JINJA_STRING)
        return jinja_raise(run, "%s%s has no element %.*s", type, object, length, name.data);
    return jinja_raise(run, "'%s%s' has no attribute %.*s", type, object, length, name.data);
}

bool jinja_truth(jinja_value value) {
    switch (value.kind) {
    case JINJA_MISSING:
    case JINJA_UNDEFINED:
    case JINJA_NONE:
        return false;
    case JINJA_BOOL:
        return value.as.boolean;
    case JINJA_INT:
        return value.as.integer != 0;
    case JINJA_FLOAT:
        return value.as.real != 0.0;
    case JINJA_STRING:
        return value.as.string->length > 0;
    case JINJA_LIST:
    case JINJA_TUPLE:
        return value.as.list->count > 0;
    case JINJA_DICT:
    case JINJA_VIEW:
        return value.as.dict->count > 0;
    case JINJA_RANGE:
        return value.as.range->count > 0;
    default:
        return true;
    }
}

/* ---------------------------------------------------------------------------------------------------- equality */

/* -1, 0, 1, or JINJA_UNORDERED. */
static int compare_doubles(double a, double b) {
    if (isnan(a) || isnan(b)) return JINJA_UNORDERED;
    return a < b ? -1 : a > b;
}

static int compare_int_double(int64_t a, double b) {
    if (isnan(b)) return JINJA_UNORDERED;
    if (b >= 0x1p63) return -1;
    if (b < -0x1p63) return 1;
    int64_t whole = (int64_t)b;
    if (a != whole) return a < whole ? -1 : 1;
    return compare_doubles((double)whole, b);
}

static bool is_negative(jinja_value big) {
    return big.as.string->data[0] == '-';
}

static double big_to_double(jinja_value big) {
    char digits[512];
    size_t length = big.as.string->length;
    if (length >= sizeof digits) return is_negative(big) ? -INFINITY : INFINITY;
    memcpy(digits, big.as.string->data, length);
    digits[length] = 0;
    return strtod(digits, NULL);
}

static int compare_bigs(jinja_value a, jinja_value b) {
    const jinja_string *x = a.as.string, *y = b.as.string;
    bool negative = is_negative(a);
    if (negative != is_negative(b)) return negative ? -1 : 1;
    int order = x->length != y->length ? (x->length < y->length ? -1 : 1) : memcmp(x->data, y->data, x->length);
    order = (order > 0) - (order < 0);
    return negative ? -order : order;
}

static int compare_numbers(jinja_value a, jinja_value b) {
    int64_t i, j;
    if (a.kind == JINJA_BIG && b.kind == JINJA_BIG) return compare_bigs(a, b);
    if (a.kind == JINJA_BIG && b.kind == JINJA_FLOAT) return compare_doubles(big_to_double(a), b.as.real);
    if (a.kind == JINJA_BIG) return is_negative(a) ? -1 : 1;
    if (b.kind == JINJA_BIG || (a.kind == JINJA_FLOAT && b.kind != JINJA_FLOAT)) {
        int order = compare_numbers(b, a);
        return order == JINJA_UNORDERED ? order : -order;
    }
    if (a.kind == JINJA_FLOAT) return compare_doubles(a.as.real, b.as.real);
    if (!jinja_is_int(a, &i)) return JINJA_UNORDERED;
    if (b.kind == JINJA_FLOAT) return compare_int_double(i, b.as.real);
    if (!jinja_is_int(b, &j)) return JINJA_UNORDERED;
    return i < j ? -1 : i > j;
}

static bool is_numeric(jinja_value value) {
    return jinja_is_number(value) || value.kind == JINJA_BIG;
}

bool jinja_same(jinja_value a, jinja_value b) {
    if (a.kind != b.kind || a.mark != b.mark) return false;
    switch (a.kind) {
    case JINJA_NONE:
        return true;
    case JINJA_BOOL:
        return a.as.boolean == b.as.boolean;
    case JINJA_INT:
        return a.as.integer == b.as.integer;
    case JINJA_FLOAT:
        return a.as.real == b.as.real;
    case JINJA_STRING:
    case JINJA_BIG:
        return a.as.string == b.as.string ||
               (a.as.string->length == b.as.string->length &&
                memcmp(a.as.string->data, b.as.string->data, a.as.string->length) == 0);
    default:
        return a.as.pointer == b.as.pointer;
    }
}

/* As containers compare their items: identity first, which tells for NaN. */
static bool equal_items(jinja_run *run, jinja_value a, jinja_value b, bool *equal) {
    if (a.kind == b.kind && a.kind == JINJA_FLOAT && memcmp(&a.as.real, &b.as.real, sizeof a.as.real) == 0) {
        *equal = true;
        return true;
    }
    return jinja_equal(run, a, b, equal);
}

static bool equal_lists(jinja_run *run, const jinja_list *a, const jinja_list *b, bool *equal) {
    *equal = a->count == b->count;
    for (size_t i = 0; i < a->count && *equal; i++)
        if (!equal_items(run, a->items[i], b->items[i], equal)) return false;
    return true;
}

static bool equal_dicts(jinja_run *run, const jinja_dict *a, const jinja_dict *b, bool *equal) {
    *equal = a->count == b->count;
    for (size_t i = 0; i < a->count && *equal; i++) {
        const jinja_value *other;
        if (!jinja_dict_find(run, b, a->pairs[i].key, &other)) return false;
        *equal = other != NULL;
        if (other && !equal_items(run, a->pairs[i].value, *other, equal)) return false;
    }
    return true;
}

static bool equal_ranges(const jinja_range *a, const jinja_range *b) {
    return a->count == b->count && (a->count == 0 || a->start == b->start) && (a->count < 2 || a->step == b->step);
}

bool jinja_equal(jinja_run *run, jinja_value a, jinja_value b, bool *equal) {
    *equal = false;
    if (!jinja_step(run, 1)) return false;
    if (is_numeric(a) && is_numeric(b)) {
        *equal = compare_numbers(a, b) == 0;
        return true;
    }
    if (a.kind != b.kind) return true;
    bool done;
    switch (a.kind) {
    case JINJA_UNDEFINED:
        *equal = true;
        return true;
    case JINJA_STRING:
        *equal = jinja_is_text(a, b.as.string->data, b.as.string->length);
        return jinja_step_bytes(run, *equal ? a.as.string->length : 0);
    case JINJA_RANGE:
        *equal = equal_ranges(a.as.range, b.as.range);
        return true;
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_DICT:
        if (!jinja_enter(run)) return false;
        done = a.kind == JINJA_DICT ? equal_dicts(run, a.as.dict, b.as.dict, equal)
                                    : equal_lists(run, a.as.list, b.as.list, equal);
        jinja_leave(run);
        return done;
    default:
        *equal = jinja_same(a, b);
        return true;
    }
}

/* ------------------------------------------------------------------------------------------------------- order */

static bool order_lists(jinja_run *run, const jinja_list *a, const jinja_list *b, const char *symbol, int *order) {
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        bool equal;
        if (!equal_items(run, a->items[i], b->items[i], &equal)) return false;
        if (!equal) return jinja_order(run, a->items[i], b->items[i], symbol, order);
    }
    *order = a->count < b->count ? -1 : a->count > b->count;
    return true;
}

static int order_strings(const jinja_string *a, const jinja_string *b) {
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->data, b->data, shorter); /* bytes of UTF-8 order as code points do */
    return order ? order : a->length < b->length ? -1 : a->length > b->length;
}

bool jinja_order(jinja_run *run, jinja_value a, jinja_value b, const char *symbol, int *order) {
    *order = 0;
    if (!jinja_step(run, 1)) return false;
    if (a.kind == JINJA_UNDEFINED) return jinja_raise_undefined(run, a);
    if (b.kind == JINJA_UNDEFINED) return jinja_raise_undefined(run, b);
    if (is_numeric(a) && is_numeric(b)) {
        *order = compare_numbers(a, b);
        return true;
    }
    if (a.kind == JINJA_STRING && b.kind == JINJA_STRING) {
        int found = order_strings(a.as.string, b.as.string);
        *order = (found > 0) - (found < 0);
        return jinja_step_bytes(run, a.as.string->length);
    }
    if (a.kind == b.kind && (a.kind == JINJA_LIST || a.kind == JINJA_TUPLE)) {
        if (!jinja_enter(run)) return false;
        bool done = order_lists(run, a.as.list, b.as.list, symbol, order);
        jinja_leave(run);
        return done;
    }
    return jinja_raise(run, "'%s' not supported between instances of '%s' and '%s'", symbol, jinja_type(a),
                       jinja_type(b));
}

/* ------------------------------------------------------------------------------------------------------ hashes */

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static uint64_t hash_bytes(const char *data, size_t length) {
    uint64_t hash = length, word;
    for (; length >= sizeof word; data += sizeof word, length -= sizeof word) {
        memcpy(&word, data, sizeof word);
        hash = mix(hash, word);
    }
    word = 0;
    memcpy(&word, data, length);
    return mix(hash, word);
}

/* Numbers that are equal have the same hash, whatever their type. */
static uint64_t hash_number(jinja_value value) {
    double real = value.kind == JINJA_BIG ? big_to_double(value) : value.as.real;
    int64_t integer;
    if (!jinja_is_int(value, &integer)) {
        if (!(real >= -0x1p63 && real < 0x1p63) || real != (double)(int64_t)real)
            return hash_bytes((const char *)&real, sizeof real);
        integer = (int64_t)real;
    }
    return mix(1, (uint64_t)integer);
}

static bool hash_tuple(jinja_run *run, const jinja_list *list, uint64_t *hash) {
    *hash = list->count;
    if (!jinja_enter(run)) return false;
    for (size_t i = 0; i < list->count; i++) {
        uint64_t item;
        if (!jinja_hash(run, list->items[i], &item)) return false;
        *hash = mix(*hash, item);
    }
    jinja_leave(run);
    return true;
}

bool jinja_hash(jinja_run *run, jinja_value value, uint64_t *hash) {
    if (!jinja_step(run, 1)) return false;
    switch (value.kind) {
    case JINJA_NONE:
    case JINJA_UNDEFINED:
        *hash = value.kind;
        return true;
    case JINJA_BOOL:
    case JINJA_INT:
    case JINJA_BIG:
    case JINJA_FLOAT:
        *hash = hash_number(value);
        return true;
    case JINJA_STRING:
        *hash = hash_bytes(value.as.string->data, value.as.string->length);
        return jinja_step_bytes(run, value.as.string->length);
    case JINJA_TUPLE:
        return hash_tuple(run, value.as.list, hash);
    case JINJA_RANGE:
        *hash = mix(2, (uint64_t)value.as.range->count);
        return true;
    case JINJA_VIEW:
        *hash = mix(3, (uint64_t)(uintptr_t)value.as.pointer);
        return value.mark == JINJA_VALUES || jinja_raise(run, "unhashable type: '%s'", jinja_type(value));
    case JINJA_LIST:
    case JINJA_DICT:
        return jinja_raise(run, "unhashable type: '%s'", jinja_type(value));
    default:
        *hash = mix(3, (uint64_t)(uintptr_t)value.as.pointer);
        return true;
    }
}

/* -------------------------------------------------------------------------------------------------- membership */

static bool contains_among(jinja_run *run, jinja_value container, jinja_value item, bool *contains) {
    jinja_iterator *iterator;
    if (!jinja_iterate(run, container, &iterator)) return false;
    for (bool done = false; !*contains;) {
        jinja_value member;
        if (!jinja_next(run, iterator, &member, &done)) return false;
        if (done) return true;
        if (!equal_items(run, member, item, contains)) return false;
    }
    return true;
}

bool jinja_contains(jinja_run *run, jinja_value container, jinja_value item, bool *contains) {
    *contains = false;
    const jinja_value *found;
    size_t at;
    switch (container.kind) {
    case JINJA_STRING:
        if (item.kind != JINJA_STRING)
            return jinja_raise(run, "'in <string>' requires string as left operand, not %s", jinja_type(item));
        if (!jinja_find(run, container.as.string->data, container.as.string->length, item.as.string, &at))
            return false;
        *contains = at != SIZE_MAX;
        return true;
    case JINJA_DICT:
        if (!jinja_dict_find(run, container.as.dict, item, &found)) return false;
        *contains = found != NULL;
        return true;
    case JINJA_VIEW:
        if (container.mark == JINJA_KEYS)
            return jinja_contains(run, jinja_from_dict(JINJA_DICT, container.as.dict), item, contains);
        return contains_among(run, container, item, contains);
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_RANGE:
    case JINJA_ITERATOR:
    case JINJA_UNDEFINED:
    case JINJA_LOOP:
        return contains_among(run, container, item, contains);
    default:
        return jinja_raise(run, "argument of type '%s' is not iterable", jinja_type(container));
    }
}

/* ------------------------------------------------------------------------------------------------------ length */

bool jinja_has_length(jinja_value value) {
    return (value.kind >= JINJA_STRING && value.kind <= JINJA_RANGE) || value.kind == JINJA_UNDEFINED ||
           value.kind == JINJA_LOOP;
}
