/* Which methods a value has, and those of dicts, lists and numbers. */
#include "text/jinja/methods.h"

#include "text/jinja/print.h"

#include <math.h>
#include <string.h>

/* -------------------------------------------------------------------------------------------------------- dicts */

static bool dict_get(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    const jinja_value *found;
    if (!jinja_dict_find(run, in->self.as.dict, in->bound[0], &found)) return false;
    *result = found ? *found : in->bound[1].kind == JINJA_MISSING ? jinja_none() : in->bound[1];
    return true;
}

static bool view(jinja_run *run, const jinja_invocation *in, jinja_view which, jinja_value *result) {
    *result = jinja_from_dict(JINJA_VIEW, in->self.as.dict);
    result->mark = (uint8_t)which;
    return jinja_step(run, 1);
}

static bool dict_keys(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return view(run, in, JINJA_KEYS, result);
}

static bool dict_values(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return view(run, in, JINJA_VALUES, result);
}

static bool dict_items(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return view(run, in, JINJA_ITEMS, result);
}

/* Lists and dicts do not change, so a copy is the same one. */
static bool copy(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    *result = in->self;
    return jinja_step(run, 1);
}

static const jinja_function dict_methods[] = {
    {"copy", "", copy},        {"fromkeys", NULL, NULL}, {"get", "/key default?", dict_get},
    {"items", "", dict_items}, {"keys", "", dict_keys},  {"values", "", dict_values},
    {NULL, NULL, NULL},
};

/* -------------------------------------------------------------------------------------------- lists and the like */

static bool sequence_count(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_iterator *iterator;
    int64_t count = 0;
    if (!jinja_iterate(run, in->self, &iterator)) return false;
    for (;;) {
        jinja_value item;
        bool done, equal;
        if (!jinja_next(run, iterator, &item, &done)) return false;
        if (done) break;
        if (!jinja_equal(run, item, in->bound[0], &equal)) return false;
        count += equal;
    }
    *result = jinja_int(count);
    return true;
}

static bool sequence_index(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_iterator *iterator;
    int64_t length, ends[2] = {0, INT64_MAX};
    if (!jinja_length(run, in->self, &length) || !jinja_iterate(run, in->self, &iterator)) return false;
    for (int i = 0; i < 2; i++) {
        if (in->bound[1 + i].kind == JINJA_MISSING) continue;
        if (!jinja_is_int(in->bound[1 + i], &ends[i]))
            return jinja_raise(run, "slice indices must be integers or have an __index__ method");
        if (ends[i] < 0) ends[i] = ends[i] + length < 0 ? 0 : ends[i] + length;
    }
    for (int64_t at = 0; at < length; at++) {
        jinja_value item;
        bool done, equal;
        if (!jinja_next(run, iterator, &item, &done)) return false;
        if (at < ends[0] || at >= ends[1]) continue;
        if (!jinja_equal(run, item, in->bound[0], &equal)) return false;
        *result = jinja_int(at);
        if (equal) return true;
    }
    jinja_text text = {.run = run};
    if (!jinja_repr(&text, in->bound[0])) return false;
    return jinja_raise(run, "%.*s is not in %s", (int)(text.length < 200 ? text.length : 200), text.data,
                       jinja_type(in->self));
}

static const jinja_function list_methods[] = {
    {"copy", "", copy},
    {"count", "/value", sequence_count},
    {"index", "/value start? stop?", sequence_index},
    {NULL, NULL, NULL},
};
/* Without copy: of tuples and ranges. */
static const jinja_function *const tuple_methods = list_methods + 1;

/* ------------------------------------------------------------------------------------------------------ numbers */

static bool int_bit_length(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    int64_t integer = 0, bits = 0;
    jinja_is_int(in->self, &integer);
    for (uint64_t left = integer < 0 ? 0 - (uint64_t)integer : (uint64_t)integer; left; left >>= 1) bits++;
    *result = jinja_int(bits);
    return jinja_step(run, 1);
}

static bool int_conjugate(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    int64_t integer = 0;
    jinja_is_int(in->self, &integer);
    *result = jinja_int(integer);
    return jinja_step(run, 1);
}

static bool float_is_integer(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    *result = jinja_bool(isfinite(in->self.as.real) && floor(in->self.as.real) == in->self.as.real);
    return jinja_step(run, 1);
}

static const jinja_function int_methods[] = {
    {"as_integer_ratio", NULL, NULL},
    {"bit_count", NULL, NULL},
    {"bit_length", "", int_bit_length},
    {"conjugate", "", int_conjugate},
    {"from_bytes", NULL, NULL},
    {"to_bytes", NULL, NULL},
    {NULL, NULL, NULL},
};

static const jinja_function float_methods[] = {
    {"as_integer_ratio", NULL, NULL},     {"conjugate", "", copy}, {"fromhex", NULL, NULL}, {"hex", NULL, NULL},
    {"is_integer", "", float_is_integer}, {NULL, NULL, NULL},
};

/* -------------------------------------------------------------------------------------------------------- others */

static bool cycler_next(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_cycler *cycler = in->self.as.cycler;
    *result = cycler->items->items[cycler->at];
    cycler->at = (cycler->at + 1) % cycler->items->count;
    return jinja_step(run, 1);
}

static bool cycler_reset(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    in->self.as.cycler->at = 0;
    *result = jinja_none();
    return jinja_step(run, 1);
}

static const jinja_function cycler_methods[] = {
    {"next", "", cycler_next},
    {"reset", "", cycler_reset},
    {NULL, NULL, NULL},
};

static const jinja_function *find_in(const jinja_function *table, const jinja_string *name) {
    for (; table->name; table++)
        if (jinja_is_text(jinja_from_string(name), table->name, strlen(table->name))) return table;
    return NULL;
}

const jinja_function *jinja_find_method(jinja_value object, const jinja_string *name) {
    const jinja_function *found;
    switch (object.kind) {
    case JINJA_STRING:
        found = find_in(jinja_text_methods, name);
        return found ? found : find_in(jinja_search_methods, name);
    case JINJA_DICT:
        return find_in(dict_methods, name);
    case JINJA_LIST:
        return find_in(list_methods, name);
    case JINJA_TUPLE:
    case JINJA_RANGE:
        return find_in(tuple_methods, name);
    case JINJA_INT:
    case JINJA_BOOL:
        return find_in(int_methods, name);
    case JINJA_FLOAT:
        return find_in(float_methods, name);
    case JINJA_CYCLER:
        return find_in(cycler_methods, name);
    default:
        return NULL;
    }
}
