/* Filters that compare items: sorting, the smallest and largest, those that are there once, groups. */
#include "text/jinja/filters.h"
#include "text/jinja/sort.h"

/* The items of the value and their keys, as arrays of the same length. */
static bool collect(jinja_run *run, jinja_value value, const jinja_getter *getter, jinja_list **items,
                    jinja_value **keys) {
    if (!jinja_to_list(run, value, items)) return false;
    *keys = jinja_take(run, (*items)->count, sizeof **keys);
    if (!*keys) return false;
    for (size_t i = 0; i < (*items)->count; i++)
        if (!jinja_apply_getter(run, getter, (*items)->items[i], &(*keys)[i])) return false;
    return true;
}

/* ------------------------------------------------------------------------------------------------------ sorting */

/* A key of sort: a list of what the comma separated attributes give. */
static bool sort_keys(jinja_run *run, jinja_value attribute, bool ignore_case, const jinja_list *items,
                      jinja_value *keys) {
    jinja_value name = attribute;
    bool several = attribute.kind == JINJA_STRING;
    size_t length = several ? attribute.as.string->length : 0;
    for (size_t i = 0; i < items->count; i++) {
        jinja_list *key;
        if (!jinja_new_list(run, 1, &key)) return false;
        keys[i] = jinja_from_list(JINJA_LIST, key);
    }
    for (size_t start = 0, at = 0; at <= length; at++) {
        if (at < length && attribute.as.string->data[at] != ',') continue;
        jinja_getter getter;
        if (several && !jinja_substring(run, attribute.as.string, start, at, &name)) return false;
        start = at + 1;
        if (!jinja_make_getter(run, name, ignore_case, jinja_missing(), &getter)) return false;
        for (size_t i = 0; i < items->count; i++) {
            jinja_value part;
            if (!jinja_apply_getter(run, &getter, items->items[i], &part) ||
                !jinja_list_append(run, keys[i].as.list, part))
                return false;
        }
    }
    return true;
}

static bool filter_sort(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_list *items;
    if (!jinja_to_list(run, in->self, &items)) return false;
    jinja_value *keys = jinja_take(run, items->count, sizeof *keys);
    if (!keys || !sort_keys(run, in->bound[2], !jinja_truth(in->bound[1]), items, keys)) return false;
    *result = jinja_from_list(JINJA_LIST, items);
    return jinja_sort(run, items->items, keys, items->count, jinja_truth(in->bound[0]));
}

static bool filter_dictsort(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_value view = in->self, by = in->bound[1];
    jinja_list *items;
    bool by_value = jinja_is_text(by, "value", 5);
    if (by.kind != JINJA_MISSING && !by_value && !jinja_is_text(by, "key", 3))
        return jinja_raise(run, "You can only sort by either \"key\" or \"value\"");
    if (view.kind == JINJA_UNDEFINED) return jinja_raise_undefined(run, view);
    if (view.kind != JINJA_DICT) return jinja_raise(run, "'%s' object has no attribute 'items'", jinja_type(view));
    view.kind = JINJA_VIEW;
    view.mark = JINJA_ITEMS;
    if (!jinja_to_list(run, view, &items)) return false;
    jinja_value *keys = jinja_take(run, items->count, sizeof *keys);
    if (!keys) return false;
    const jinja_getter getter = {.ignore_case = !jinja_truth(in->bound[0])};
    for (size_t i = 0; i < items->count; i++)
        if (!jinja_apply_getter(run, &getter, items->items[i].as.list->items[by_value], &keys[i])) return false;
    *result = jinja_from_list(JINJA_LIST, items);
    return jinja_sort(run, items->items, keys, items->count, jinja_truth(in->bound[2]));
}

/* --------------------------------------------------------------------------------------------- smallest, largest */

static bool extreme(jinja_run *run, const jinja_invocation *in, bool largest, jinja_value *result) {
    jinja_getter getter;
    jinja_iterator *iterator;
    jinja_value best = jinja_missing();
    if (!jinja_make_getter(run, in->bound[1], !jinja_truth(in->bound[0]), jinja_missing(), &getter) ||
        !jinja_iterate(run, in->self, &iterator))
        return false;
    for (;;) {
        jinja_value item, key;
        bool done;
        int order = -1;
        if (!jinja_next(run, iterator, &item, &done)) return false;
        if (done) break;
        if (!jinja_apply_getter(run, &getter, item, &key)) return false;
        if (best.kind != JINJA_MISSING) {
            if (!jinja_order(run, key, best, largest ? ">" : "<", &order)) return false;
            if (order != (largest ? 1 : -1)) continue;
        }
        best = key;
        *result = item;
    }
    return best.kind != JINJA_MISSING ||
           jinja_undefined_hint(run, "No aggregated item, sequence was empty.", result);
}

static bool filter_min(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return extreme(run, in, false, result);
}

static bool filter_max(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return extreme(run, in, true, result);
}

/* --------------------------------------------------------------------------------------------------------- once */

typedef struct unique {
    jinja_getter getter;
    jinja_dict *seen;
} unique;

static bool next_unique(jinja_run *run, jinja_iterator *it, jinja_value *item, bool *done) {
    unique *u = it->state;
    if (!it->inner && !jinja_iterate(run, it->source, &it->inner)) return false;
    for (;;) {
        jinja_value key;
        if (!jinja_next(run, it->inner, item, done)) return false;
        if (*done) return true;
        size_t before = u->seen->count;
        if (!jinja_apply_getter(run, &u->getter, *item, &key) || !jinja_dict_set(run, u->seen, key, jinja_none()))
            return false;
        if (u->seen->count > before) return true;
    }
}

static bool filter_unique(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_iterator *iterator;
    if (!jinja_new_iterator(run, sizeof(unique), next_unique, &iterator)) return false;
    unique *u = iterator->state;
    iterator->source = in->self;
    *result = jinja_from_iterator(iterator);
    return jinja_make_getter(run, in->bound[1], !jinja_truth(in->bound[0]), jinja_missing(), &u->getter) &&
           jinja_new_dict(run, 0, &u->seen);
}

/* ------------------------------------------------------------------------------------------------------- groups */

static bool add_group(jinja_run *run, jinja_list *groups, jinja_value key, jinja_list *members) {
    const jinja_value both[2] = {key, jinja_from_list(JINJA_LIST, members)};
    jinja_value group;
    if (!jinja_new_tuple(run, both, 2, &group)) return false;
    group.mark = 1;
    return jinja_list_append(run, groups, group);
}

static bool filter_groupby(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_getter getter, shown;
    jinja_list *items, *groups, *members = NULL;
    jinja_value *keys;
    bool ignore_case = !jinja_truth(in->bound[2]);
    if (!jinja_make_getter(run, in->bound[0], ignore_case, in->bound[1], &getter) ||
        !collect(run, in->self, &getter, &items, &keys) ||
        !jinja_sort(run, items->items, keys, items->count, false) || !jinja_new_list(run, 0, &groups))
        return false;
    shown = getter; /* the group's key is that of its first member, in its own case */
    shown.ignore_case = false;
    for (size_t i = 0; i < items->count; i++) {
        bool same = false;
        if (i && !jinja_equal(run, keys[i - 1], keys[i], &same)) return false;
        if (!same) {
            jinja_value key;
            if (!jinja_new_list(run, 0, &members) || !jinja_apply_getter(run, &shown, items->items[i], &key) ||
                !add_group(run, groups, key, members))
                return false;
        }
        if (!jinja_list_append(run, members, items->items[i])) return false;
    }
    *result = jinja_from_list(JINJA_LIST, groups);
    return true;
}

const jinja_function jinja_order_filters[] = {
    {"dictsort", "case_sensitive? by? reverse?", filter_dictsort},
    {"groupby", "attribute default? case_sensitive?", filter_groupby},
    {"max", "case_sensitive? attribute?", filter_max},
    {"min", "case_sensitive? attribute?", filter_min},
    {"sort", "reverse? case_sensitive? attribute?", filter_sort},
    {"unique", "case_sensitive? attribute?", filter_unique},
    {NULL, NULL, NULL},
};
