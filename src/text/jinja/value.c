/* Making values: strings that share their bytes, lists, dicts with a hash table once they are large. */
#include "text/jinja/value.h"

#include "text/jinja/text.h"

#include <string.h>

void *jinja_take(jinja_run *run, size_t count, size_t size) {
    void *block = jinja_arena_take(&run->arena, count, size);
    if (block) return block;
    if (run->arena.over_limit)
        jinja_over_limit(run, "more than %lld bytes of memory are needed", (long long)run->max_memory);
    else if (!run->status) {
        jinja_over_limit(run, "out of memory: %zu x %zu bytes", count, size);
        run->status = QVL_ERROR_MEMORY;
    }
    return NULL;
}

/* ----------------------------------------------------------------------------------------------------- strings */

static bool new_string(jinja_run *run, const char *data, size_t length, size_t characters, jinja_value *value) {
    jinja_string *string = jinja_take(run, 1, sizeof *string);
    if (!string) return false;
    *string = (jinja_string){.data = data, .length = length, .characters = characters};
    *value = jinja_from_string(string);
    return true;
}

bool jinja_view_string(jinja_run *run, const char *data, size_t length, jinja_value *string) {
    return new_string(run, data, length, jinja_characters(data, length), string);
}

bool jinja_copy_string(jinja_run *run, const char *data, size_t length, jinja_value *string) {
    char *copy = jinja_take(run, length, 1);
    if (!copy || !jinja_step_bytes(run, length)) return false;
    memcpy(copy, data, length);
    return jinja_view_string(run, copy, length, string);
}

bool jinja_static_string(jinja_run *run, const char *text, jinja_value *string) {
    return jinja_view_string(run, text, strlen(text), string);
}

/* A chain a + b + c, and a text that a loop adds to, are copied once: the left string keeps its bytes, the right
 * one goes into the room behind them, and the longer string is a new view of the block. */
bool jinja_join_strings(jinja_run *run, const jinja_string *left, const jinja_string *right, jinja_value *value) {
    size_t length, characters = left->characters + right->characters;
    if (__builtin_add_overflow(left->length, right->length, &length) || length > SIZE_MAX / 4)
        return jinja_over_limit(run, "a text is too long");
    jinja_string *joined = jinja_take(run, 1, sizeof *joined);
    if (!joined || !jinja_step_bytes(run, right->length)) return false;
    jinja_tail *tail = left->tail;
    if (tail && tail->end == left->data + left->length && tail->room >= right->length) {
        if (right->length) memcpy(tail->end, right->data, right->length);
        tail->end += right->length;
        tail->room -= right->length;
        *joined = (jinja_string){left->data, length, characters, tail};
    } else {
        size_t capacity = length + length / 2 + 32;
        char *data = jinja_take(run, capacity, 1);
        tail = jinja_take(run, 1, sizeof *tail);
        if (!data || !tail || !jinja_step_bytes(run, left->length)) return false;
        memcpy(data, left->data, left->length);
        memcpy(data + left->length, right->data, right->length);
        *tail = (jinja_tail){data + length, capacity - length};
        *joined = (jinja_string){data, length, characters, tail};
    }
    *value = jinja_from_string(joined);
    return true;
}

bool jinja_substring(jinja_run *run, const jinja_string *string, size_t start, size_t end, jinja_value *part) {
    size_t length = end - start;
    size_t characters =
        string->length == string->characters ? length : jinja_characters(string->data + start, length);
    return jinja_step_bytes(run, characters == length ? 0 : length) &&
           new_string(run, string->data + start, length, characters, part);
}

/* ------------------------------------------------------------------------------------------------------- lists */

bool jinja_new_list(jinja_run *run, size_t capacity, jinja_list **list) {
    *list = jinja_take(run, 1, sizeof **list);
    if (!*list) return false;
    **list = (jinja_list){.capacity = capacity};
    if (capacity) (*list)->items = jinja_take(run, capacity, sizeof(jinja_value));
    return capacity == 0 || (*list)->items;
}

bool jinja_list_append(jinja_run *run, jinja_list *list, jinja_value item) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 8;
        jinja_value *items = jinja_take(run, capacity, sizeof *items);
        if (!items) return false;
        if (list->count) memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = item;
    return jinja_step(run, 1);
}

bool jinja_new_tuple(jinja_run *run, const jinja_value *items, size_t count, jinja_value *tuple) {
    jinja_list *list;
    if (!jinja_new_list(run, count, &list)) return false;
    if (count) memcpy(list->items, items, count * sizeof *items);
    list->count = count;
    *tuple = jinja_from_list(JINJA_TUPLE, list);
    return true;
}

/* ------------------------------------------------------------------------------------------------------- dicts */

/* Up to here looking at each pair is as fast as hashing. */
#define FEW_PAIRS 8

bool jinja_new_dict(jinja_run *run, size_t capacity, jinja_dict **dict) {
    *dict = jinja_take(run, 1, sizeof **dict);
    if (!*dict) return false;
    **dict = (jinja_dict){.capacity = capacity};
    if (capacity) (*dict)->pairs = jinja_take(run, capacity, sizeof(jinja_pair));
    return capacity == 0 || (*dict)->pairs;
}

static bool same_key(jinja_run *run, jinja_value a, jinja_value b, bool *same) {
    if (a.kind == JINJA_STRING && b.kind == JINJA_STRING) {
        *same = jinja_is_text(a, b.as.string->data, b.as.string->length);
        return true;
    }
    return jinja_equal(run, a, b, same);
}

/* *at: the slot with the key's pair, or the free one where it belongs. */
static bool find_slot(jinja_run *run, const jinja_dict *dict, jinja_value key, size_t *at) {
    uint64_t hash;
    if (!jinja_hash(run, key, &hash)) return false;
    for (size_t slot = (size_t)hash % dict->slot_count;; slot = (slot + 1) % dict->slot_count) {
        *at = slot;
        if (!dict->slots[slot]) return true;
        bool same;
        if (!jinja_step(run, 1) || !same_key(run, dict->pairs[dict->slots[slot] - 1].key, key, &same))
            return false;
        if (same) return true;
    }
}

/* *at: the index of the key's pair, or count. */
static bool find_pair(jinja_run *run, const jinja_dict *dict, jinja_value key, size_t *at) {
    if (dict->slots) {
        size_t slot;
        if (!find_slot(run, dict, key, &slot)) return false;
        *at = dict->slots[slot] ? dict->slots[slot] - 1 : dict->count;
        return true;
    }
    uint64_t hash;
    if (key.kind != JINJA_STRING && !jinja_hash(run, key, &hash)) return false;
    for (*at = 0; *at < dict->count; ++*at) {
        bool same;
        if (!same_key(run, dict->pairs[*at].key, key, &same)) return false;
        if (same) return true;
    }
    return true;
}

static bool fill_slots(jinja_run *run, jinja_dict *dict) {
    size_t slot_count = dict->capacity * 2;
    uint32_t *slots = jinja_take(run, slot_count, sizeof *slots);
    if (!slots) return false;
    memset(slots, 0, slot_count * sizeof *slots);
    dict->slots = slots;
    dict->slot_count = slot_count;
    for (size_t i = 0; i < dict->count; i++) {
        size_t slot;
        if (!find_slot(run, dict, dict->pairs[i].key, &slot)) return false;
        dict->slots[slot] = (uint32_t)i + 1;
    }
    return true;
}

static bool grow_dict(jinja_run *run, jinja_dict *dict) {
    if (dict->count >= UINT32_MAX / 4) return jinja_over_limit(run, "a dict has too many keys");
    size_t capacity = dict->capacity ? dict->capacity * 2 : 4;
    jinja_pair *pairs = jinja_take(run, capacity, sizeof *pairs);
    if (!pairs) return false;
    if (dict->count) memcpy(pairs, dict->pairs, dict->count * sizeof *pairs);
    dict->pairs = pairs;
    dict->capacity = capacity;
    dict->slots = NULL;
    return true;
}

bool jinja_dict_set(jinja_run *run, jinja_dict *dict, jinja_value key, jinja_value value) {
    size_t at;
    if (!jinja_step(run, 1) || !find_pair(run, dict, key, &at)) return false;
    if (at < dict->count) {
        dict->pairs[at].value = value;
        return true;
    }
    if (dict->count == dict->capacity && !grow_dict(run, dict)) return false;
    dict->pairs[dict->count++] = (jinja_pair){key, value};
    if (dict->count <= FEW_PAIRS) return true;
    if (!dict->slots) return fill_slots(run, dict);
    if (!find_slot(run, dict, key, &at)) return false;
    dict->slots[at] = (uint32_t)dict->count;
    return true;
}

bool jinja_dict_find(jinja_run *run, const jinja_dict *dict, jinja_value key, const jinja_value **found) {
    size_t at;
    *found = NULL;
    if (!find_pair(run, dict, key, &at)) return false;
    if (at < dict->count) *found = &dict->pairs[at].value;
    return true;
}

const jinja_value *jinja_dict_text(jinja_run *run, const jinja_dict *dict, const char *key, size_t length) {
    const jinja_string string = {.data = key, .length = length};
    const jinja_value *found;
    return jinja_dict_find(run, dict, jinja_from_string(&string), &found) ? found : NULL;
}

/* --------------------------------------------------------------------------------------------------- undefined */

static bool new_undefined(jinja_run *run, jinja_undefined content, jinja_value *value) {
    jinja_undefined *undefined = jinja_take(run, 1, sizeof *undefined);
    if (!undefined) return false;
    *undefined = content;
    *value = (jinja_value){.kind = JINJA_UNDEFINED, .as.undefined = undefined};
    return true;
}

bool jinja_undefined_name(jinja_run *run, const jinja_string *name, jinja_value *undefined) {
    return new_undefined(run, (jinja_undefined){.name = jinja_from_string(name)}, undefined);
}

bool jinja_undefined_in(jinja_run *run, jinja_value object, jinja_value name, jinja_value *undefined) {
    return new_undefined(run, (jinja_undefined){.object = object, .name = name}, undefined);
}

bool jinja_undefined_hint(jinja_run *run, const char *hint, jinja_value *undefined) {
    jinja_value text;
    if (!jinja_copy_string(run, hint, strlen(hint), &text)) return false;
    return new_undefined(run, (jinja_undefined){.hint = text.as.string}, undefined);
}
