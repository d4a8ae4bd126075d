/* map, select, reject and their attribute forms: generators, which do nothing until an item is asked for. */
#include "text/jinja/filters.h"

#include "text/jinja/print.h"

/* What is done with each item. */
typedef struct each {
    jinja_arguments arguments;
    bool prepared, keep; /* keep: items for which the test holds (select), else the others */
    bool by_attribute;   /* selectattr, rejectattr, map(attribute=...) */
    jinja_getter getter;
    jinja_value name; /* of the filter or test; MISSING: truth */
    const jinja_function *filter;
    const jinja_test *test;
} each;

static bool unknown_name(jinja_run *run, const char *what, jinja_value name) {
    jinja_text text = {.run = run};
    if (!jinja_repr(&text, name)) return false;
    return jinja_raise(run, "No %s named %.*s.", what, (int)(text.length < 200 ? text.length : 200), text.data);
}

static bool hashable(jinja_run *run, jinja_value name) {
    uint64_t hash;
    return jinja_hash(run, name, &hash);
}

static void drop_first(each *e) {
    e->arguments.values++;
    e->arguments.count--;
}

/* ---------------------------------------------------------------------------------------------------------- map */

static bool prepare_attribute(jinja_run *run, each *e) {
    jinja_value attribute = jinja_missing(), otherwise = jinja_missing();
    for (size_t i = 0; i < e->arguments.keyword_count; i++) {
        const jinja_pair *keyword = &e->arguments.keywords[i];
        const jinja_string *key = keyword->key.as.string;
        if (jinja_is_text(keyword->key, "attribute", 9))
            attribute = keyword->value;
        else if (jinja_is_text(keyword->key, "default", 7))
            otherwise = keyword->value;
        else
            return jinja_raise(run, "Unexpected keyword argument '%.*s'", (int)key->length, key->data);
    }
    e->by_attribute = true;
    return jinja_make_getter(run, attribute, false, otherwise, &e->getter);
}

static bool prepare_map(jinja_run *run, each *e) {
    bool attribute = false;
    for (size_t i = 0; i < e->arguments.keyword_count; i++)
        attribute = attribute || jinja_is_text(e->arguments.keywords[i].key, "attribute", 9);
    if (e->arguments.count == 0 && attribute) return prepare_attribute(run, e);
    if (e->arguments.count == 0) return jinja_raise(run, "map requires a filter argument");
    e->name = e->arguments.values[0];
    drop_first(e);
    return true;
}

static bool apply_filter(jinja_run *run, each *e, jinja_value item, jinja_value *result) {
    if (!e->filter && e->name.kind == JINJA_STRING) e->filter = jinja_find_filter(e->name.as.string);
    if (!e->filter) return hashable(run, e->name) && unknown_name(run, "filter", e->name);
    return jinja_apply_filter(run, e->filter, e->name.as.string, item, &e->arguments, result);
}

/* False in *any where the value is empty, which needs no preparation. */
static bool start(jinja_run *run, jinja_iterator *it, bool (*prepare)(jinja_run *, each *), bool *any) {
    each *e = it->state;
    *any = e->prepared;
    if (e->prepared || !jinja_truth(it->source)) return true;
    e->prepared = *any = true;
    return prepare(run, e) && jinja_iterate(run, it->source, &it->inner);
}

static bool next_mapped(jinja_run *run, jinja_iterator *it, jinja_value *item, bool *done) {
    each *e = it->state;
    bool any;
    if (!start(run, it, prepare_map, &any)) return false;
    *done = !any;
    if (!any) return true;
    if (!jinja_next(run, it->inner, item, done)) return false;
    if (*done) return true;
    return e->by_attribute ? jinja_apply_getter(run, &e->getter, *item, item) : apply_filter(run, e, *item, item);
}

/* ------------------------------------------------------------------------------------------------------- select */

static bool prepare_test(jinja_run *run, each *e) {
    if (e->by_attribute) {
        if (e->arguments.count == 0) return jinja_raise(run, "Missing parameter for attribute name");
        if (!jinja_make_getter(run, e->arguments.values[0], false, jinja_missing(), &e->getter)) return false;
        drop_first(e);
    }
    e->name = jinja_missing();
    if (e->arguments.count == 0) return true;
    e->name = e->arguments.values[0];
    drop_first(e);
    return true;
}

static bool apply_test(jinja_run *run, each *e, jinja_value item, bool *holds) {
    if (!jinja_apply_getter(run, &e->getter, item, &item)) return false;
    if (e->name.kind == JINJA_MISSING) {
        *holds = jinja_truth(item);
        return true;
    }
    if (!e->test && e->name.kind == JINJA_STRING) e->test = jinja_find_test(e->name.as.string);
    if (!e->test) return hashable(run, e->name) && unknown_name(run, "test", e->name);
    return jinja_apply_test(run, e->test, e->name.as.string, item, &e->arguments, holds);
}

static bool next_selected(jinja_run *run, jinja_iterator *it, jinja_value *item, bool *done) {
    each *e = it->state;
    bool any, holds;
    if (!start(run, it, prepare_test, &any)) return false;
    *done = !any;
    while (any) {
        if (!jinja_next(run, it->inner, item, done)) return false;
        if (*done) return true;
        if (!jinja_step(run, 1) || !apply_test(run, e, *item, &holds)) return false;
        if (holds == e->keep) return true;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------ filters */

static bool new_each(jinja_run *run, const jinja_invocation *in,
                     bool (*next)(jinja_run *, jinja_iterator *, jinja_value *, bool *), bool keep,
                     bool by_attribute, jinja_value *result) {
    jinja_iterator *iterator;
    if (!jinja_new_iterator(run, sizeof(each), next, &iterator)) return false;
    iterator->source = in->self;
    *(each *)iterator->state = (each){.arguments = *in->arguments, .keep = keep, .by_attribute = by_attribute};
    *result = jinja_from_iterator(iterator);
    return true;
}

static bool filter_map(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return new_each(run, in, next_mapped, false, false, result);
}

static bool filter_select(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return new_each(run, in, next_selected, true, false, result);
}

static bool filter_reject(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return new_each(run, in, next_selected, false, false, result);
}

static bool filter_selectattr(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return new_each(run, in, next_selected, true, true, result);
}

static bool filter_rejectattr(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return new_each(run, in, next_selected, false, true, result);
}

const jinja_function jinja_select_filters[] = {
    {"map", NULL, filter_map},
    {"reject", NULL, filter_reject},
    {"rejectattr", NULL, filter_rejectattr},
    {"select", NULL, filter_select},
    {"selectattr", NULL, filter_selectattr},
    {NULL, NULL, NULL},
};
