/* Filters on sequences. */
#include "text/jinja/filters.h"

#include "text/jinja/methods.h"
#include "text/jinja/node.h"
#include "text/jinja/print.h"

static bool filter_length(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    int64_t length;
    if (!jinja_length(run, in->self, &length)) return false;
    *result = jinja_int(length);
    return true;
}

static bool filter_list(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_list *list;
    if (!jinja_to_list(run, in->self, &list)) return false;
    *result = jinja_from_list(JINJA_LIST, list);
    return true;
}

static bool filter_first(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_iterator *iterator;
    bool done;
    if (!jinja_iterate(run, in->self, &iterator) || !jinja_next(run, iterator, result, &done)) return false;
    return !done || jinja_undefined_hint(run, "No first item, sequence was empty.", result);
}

static bool filter_last(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_iterator *iterator;
    bool done;
    if (!jinja_reversed(run, in->self, &iterator)) return false;
    if (!iterator) return jinja_raise(run, "'%s' object is not reversible", jinja_type(in->self));
    if (!jinja_next(run, iterator, result, &done)) return false;
    return !done || jinja_undefined_hint(run, "No last item, sequence was empty.", result);
}

static bool filter_reverse(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_iterator *iterator;
    jinja_list *list;
    if (in->self.kind == JINJA_STRING) {
        const jinja_value parts[3] = {jinja_none(), jinja_none(), jinja_int(-1)};
        return jinja_get_slice(run, in->self, parts, result);
    }
    if (!jinja_reversed(run, in->self, &iterator)) return false;
    if (iterator) {
        *result = jinja_from_iterator(iterator);
        return true;
    }
    if (!jinja_is_iterable(in->self)) return jinja_raise(run, "argument must be iterable");
    if (!jinja_to_list(run, in->self, &list)) return false;
    for (size_t i = 0; i < list->count / 2; i++) {
        jinja_value other = list->items[i];
        list->items[i] = list->items[list->count - 1 - i];
        list->items[list->count - 1 - i] = other;
    }
    *result = jinja_from_list(JINJA_LIST, list);
    return true;
}

static bool next_item_pair(jinja_run *run, jinja_iterator *it, jinja_value *item, bool *done) {
    if (!it->inner) {
        jinja_value view = it->source;
        if (view.kind != JINJA_DICT && view.kind != JINJA_UNDEFINED)
            return jinja_raise(run, "Can only get item pairs from a mapping.");
        if (view.kind == JINJA_DICT) {
            view.kind = JINJA_VIEW;
            view.mark = JINJA_ITEMS;
        }
        if (!jinja_iterate(run, view, &it->inner)) return false;
    }
    return jinja_next(run, it->inner, item, done);
}

/* A generator: a value that is no mapping is an error only when the first pair is asked for. */
static bool filter_items(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_iterator *iterator;
    if (!jinja_new_iterator(run, 0, next_item_pair, &iterator)) return false;
    iterator->source = in->self;
    *result = jinja_from_iterator(iterator);
    return true;
}

static bool filter_join(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_iterator *iterator;
    jinja_getter getter;
    jinja_value separator = in->bound[0];
    jinja_text text = {.run = run};
    if (separator.kind == JINJA_MISSING && !jinja_static_string(run, "", &separator)) return false;
    if (!jinja_to_string(run, separator, &separator) ||
        !jinja_make_getter(run, in->bound[1], false, jinja_missing(), &getter) ||
        !jinja_iterate(run, in->self, &iterator))
        return false;
    for (bool first = true;; first = false) {
        jinja_value item;
        bool done;
        if (!jinja_next(run, iterator, &item, &done)) return false;
        if (done) return jinja_text_finish(&text, result);
        if (!jinja_apply_getter(run, &getter, item, &item)) return false;
        if ((!first && !jinja_text_string(&text, separator.as.string)) || !jinja_str(&text, item)) return false;
    }
}

static bool filter_sum(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_iterator *iterator;
    jinja_getter getter;
    *result = in->bound[1].kind == JINJA_MISSING ? jinja_int(0) : in->bound[1];
    if (!jinja_make_getter(run, in->bound[0], false, jinja_missing(), &getter) ||
        !jinja_iterate(run, in->self, &iterator))
        return false;
    if (result->kind == JINJA_STRING)
        return jinja_raise(run, "sum() can't sum strings [use ''.join(seq) instead]");
    for (;;) {
        jinja_value item;
        bool done;
        if (!jinja_next(run, iterator, &item, &done)) return false;
        if (done) return true;
        if (!jinja_apply_getter(run, &getter, item, &item) || !jinja_binary(run, OP_ADD, *result, item, result))
            return false;
    }
}

/* ---------------------------------------------------------------------------------------------- batches, slices */

typedef struct parts {
    int64_t size; /* of a batch; or how many slices */
    jinja_value fill, held;
    jinja_list *items; /* of slices: all of them */
    int64_t at;
} parts;

static bool fills(const parts *p) {
    return p->fill.kind != JINJA_MISSING && p->fill.kind != JINJA_NONE;
}

/* So many items at a time, the last list filled up. As in Jinja, batches of size 0 are an empty one and then all
 * items in one, batches of a negative size all items in one. */
static bool next_batch(jinja_run *run, jinja_iterator *it, jinja_value *item, bool *done) {
    parts *p = it->state;
    jinja_list *batch;
    jinja_value next = p->held;
    bool end = false;
    if (!it->inner && !jinja_iterate(run, it->source, &it->inner)) return false;
    if (!jinja_new_list(run, 0, &batch)) return false;
    *item = jinja_from_list(JINJA_LIST, batch);
    *done = false;
    for (;;) {
        if (next.kind == JINJA_MISSING && !jinja_next(run, it->inner, &next, &end)) return false;
        if (end) break;
        bool held = p->held.kind != JINJA_MISSING;
        if ((int64_t)batch->count == p->size && !held) {
            p->held = next;
            return true;
        }
        p->held = jinja_missing();
        if (!jinja_list_append(run, batch, next)) return false;
        next = jinja_missing();
    }
    *done = batch->count == 0;
    while (!*done && fills(p) && (int64_t)batch->count < p->size)
        if (!jinja_list_append(run, batch, p->fill)) return false;
    return true;
}

/* So many lists of about the same length, the longer ones first. */
static bool next_slice(jinja_run *run, jinja_iterator *it, jinja_value *item, bool *done) {
    parts *p = it->state;
    jinja_list *slice;
    if (!p->items && !jinja_to_list(run, it->source, &p->items)) return false;
    if (p->size == 0) return jinja_raise(run, "integer division or modulo by zero");
    *done = p->at >= p->size;
    if (*done) return true;
    int64_t count = (int64_t)p->items->count, each = count / p->size, longer = count % p->size;
    int64_t start = p->at * each + (p->at < longer ? p->at : longer), length = each + (p->at < longer);
    if (!jinja_new_list(run, (size_t)length, &slice)) return false;
    for (int64_t i = 0; i < length; i++)
        if (!jinja_list_append(run, slice, p->items->items[start + i])) return false;
    if (fills(p) && p->at >= longer && !jinja_list_append(run, slice, p->fill)) return false;
    p->at++;
    *item = jinja_from_list(JINJA_LIST, slice);
    return jinja_step(run, 1);
}

static bool new_parts(jinja_run *run, const jinja_invocation *in,
                      bool (*next)(jinja_run *, jinja_iterator *, jinja_value *, bool *), jinja_value *result) {
    jinja_iterator *iterator;
    int64_t size;
    if (!jinja_need_int(run, in->bound[0], &size) || !jinja_new_iterator(run, sizeof(parts), next, &iterator))
        return false;
    iterator->source = in->self;
    *(parts *)iterator->state = (parts){.size = size, .fill = in->bound[1]};
    *result = jinja_from_iterator(iterator);
    return true;
}

static bool filter_batch(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return new_parts(run, in, next_batch, result);
}

static bool filter_slice(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return new_parts(run, in, next_slice, result);
}

const jinja_function jinja_list_filters[] = {
    {"batch", "linecount fill_with?", filter_batch},
    {"count", "", filter_length},
    {"first", "", filter_first},
    {"items", "", filter_items},
    {"join", "d? attribute?", filter_join},
    {"last", "", filter_last},
    {"length", "", filter_length},
    {"list", "", filter_list},
    {"reverse", "", filter_reverse},
    {"slice", "slices fill_with?", filter_slice},
    {"sum", "attribute? start?", filter_sum},
    {NULL, NULL, NULL},
};
