/* Going through what has items. */
#include "text/jinja/state.h"
#include "text/jinja/text.h"

#include <stdio.h>

static bool next_of_list(jinja_run *run, jinja_iterator *it, jinja_value *item, bool *done) {
    const jinja_list *list = it->source.as.list;
    *done = it->at >= list->count;
    if (!*done) *item = list->items[it->at++];
    return jinja_step(run, 1);
}

static bool next_of_string(jinja_run *run, jinja_iterator *it, jinja_value *item, bool *done) {
    const jinja_string *string = it->source.as.string;
    uint32_t character;
    *done = it->at >= string->length;
    if (*done) return true;
    size_t start = it->at;
    it->at += jinja_decode(string->data, start, &character);
    if (!jinja_substring(run, string, start, it->at, item)) return false;
    return jinja_step(run, 1);
}

static bool pair_item(jinja_run *run, const jinja_value *source, const jinja_pair *pair, jinja_value *item) {
    if (source->kind == JINJA_DICT || source->mark == JINJA_KEYS) {
        *item = pair->key;
        return true;
    }
    if (source->mark == JINJA_VALUES) {
        *item = pair->value;
        return true;
    }
    const jinja_value both[2] = {pair->key, pair->value};
    return jinja_new_tuple(run, both, 2, item);
}

static bool next_of_dict(jinja_run *run, jinja_iterator *it, jinja_value *item, bool *done) {
    const jinja_dict *dict = it->source.as.dict;
    *done = it->at >= dict->count;
    return jinja_step(run, 1) && (*done || pair_item(run, &it->source, &dict->pairs[it->at++], item));
}

static bool next_of_range(jinja_run *run, jinja_iterator *it, jinja_value *item, bool *done) {
    const jinja_range *range = it->source.as.range;
    *done = it->at >= (size_t)range->count;
    if (!*done) *item = jinja_int(jinja_range_item(range, it->at++));
    return jinja_step(run, 1);
}

static bool next_of_nothing(jinja_run *run, jinja_iterator *it, jinja_value *item, bool *done) {
    (void)run, (void)it, (void)item;
    *done = true;
    return true;
}

/* An iterator may go through another one, and that through a third: a template can stack them without end. */
bool jinja_next(jinja_run *run, jinja_iterator *iterator, jinja_value *item, bool *done) {
    if (!jinja_enter(run)) return false;
    bool ok = iterator->next(run, iterator, item, done);
    jinja_leave(run);
    return ok;
}

bool jinja_is_iterable(jinja_value value) {
    switch (value.kind) {
    case JINJA_UNDEFINED:
    case JINJA_STRING:
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_DICT:
    case JINJA_VIEW:
    case JINJA_RANGE:
    case JINJA_ITERATOR:
    case JINJA_LOOP:
        return true;
    default:
        return false;
    }
}

bool jinja_iterate(jinja_run *run, jinja_value value, jinja_iterator **iterator) {
    if (value.kind == JINJA_ITERATOR) {
        *iterator = value.as.iterator;
        return true;
    }
    if (value.kind == JINJA_LOOP) return jinja_iterate_loop(run, value, iterator);
    jinja_iterator *it = jinja_take(run, 1, sizeof *it);
    if (!it) return false;
    *it = (jinja_iterator){.source = value, .name = "iterator"};
    switch (value.kind) {
    case JINJA_LIST:
    case JINJA_TUPLE:
        it->next = next_of_list;
        break;
    case JINJA_STRING:
        it->next = next_of_string;
        break;
    case JINJA_DICT:
    case JINJA_VIEW:
        it->next = next_of_dict;
        break;
    case JINJA_RANGE:
        it->next = next_of_range;
        break;
    case JINJA_UNDEFINED:
        it->next = next_of_nothing;
        break;
    default:
        return jinja_raise(run, "'%s' object is not iterable", jinja_type(value));
    }
    *iterator = it;
    return true;
}

bool jinja_to_list(jinja_run *run, jinja_value value, jinja_list **list) {
    jinja_iterator *iterator;
    if (!jinja_iterate(run, value, &iterator)) return false;
    int64_t length = 0;
    if (value.kind != JINJA_STRING && jinja_has_length(value) && !jinja_length(run, value, &length)) return false;
    if (!jinja_new_list(run, (size_t)length, list)) return false;
    for (;;) {
        jinja_value item;
        bool done;
        if (!jinja_next(run, iterator, &item, &done)) return false;
        if (done) return true;
        if (!jinja_list_append(run, *list, item)) return false;
    }
}

bool jinja_length(jinja_run *run, jinja_value value, int64_t *length) {
    switch (value.kind) {
    case JINJA_UNDEFINED:
        *length = 0;
        return true;
    case JINJA_STRING:
        *length = (int64_t)value.as.string->characters;
        return true;
    case JINJA_LIST:
    case JINJA_TUPLE:
        *length = (int64_t)value.as.list->count;
        return true;
    case JINJA_DICT:
    case JINJA_VIEW:
        *length = (int64_t)value.as.dict->count;
        return true;
    case JINJA_RANGE:
        *length = value.as.range->count;
        return true;
    case JINJA_LOOP:
        return jinja_loop_length(run, value.as.loop, length);
    default:
        return jinja_raise(run, "object of type '%s' has no len()", jinja_type(value));
    }
}

/* ---------------------------------------------------------------------------------------------------- backwards */

static bool next_backwards(jinja_run *run, jinja_iterator *it, jinja_value *item, bool *done) {
    jinja_value source = it->source;
    *done = it->end == 0;
    if (*done) return true;
    if (source.kind == JINJA_STRING) {
        uint32_t character;
        size_t end = it->end;
        it->end -= jinja_decode_before(source.as.string->data, end, &character);
        return jinja_step(run, 1) && jinja_substring(run, source.as.string, it->end, end, item);
    }
    it->end--;
    if (source.kind == JINJA_DICT || source.kind == JINJA_VIEW)
        return jinja_step(run, 1) && pair_item(run, &source, &source.as.dict->pairs[it->end], item);
    *item = source.kind == JINJA_RANGE ? jinja_int(jinja_range_item(source.as.range, it->end))
                                       : source.as.list->items[it->end];
    return jinja_step(run, 1);
}

bool jinja_reversed(jinja_run *run, jinja_value value, jinja_iterator **iterator) {
    int64_t length = 0;
    *iterator = NULL;
    if (value.kind != JINJA_UNDEFINED && (value.kind < JINJA_STRING || value.kind > JINJA_RANGE)) return true;
    if (!jinja_length(run, value, &length)) return false;
    jinja_iterator *it = jinja_take(run, 1, sizeof *it);
    if (!it) return false;
    *it = (jinja_iterator){.next = next_backwards, .name = "reversed", .source = value, .end = (size_t)length};
    if (value.kind == JINJA_LIST) it->name = "list_reverseiterator";
    if (value.kind == JINJA_STRING) it->end = value.as.string->length;
    *iterator = it;
    return true;
}
