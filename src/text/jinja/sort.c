#include "text/jinja/sort.h"

typedef struct entry {
    jinja_value item, key;
} entry;

/* Merges two sorted halves of from, [low, middle) and [middle, high), into to. Equal ones keep their order. */
static bool merge(jinja_run *run, const entry *from, entry *to, size_t low, size_t middle, size_t high) {
    size_t left = low, right = middle;
    for (size_t at = low; at < high; at++) {
        bool take_right = left == middle;
        if (left < middle && right < high) {
            int order;
            if (!jinja_order(run, from[right].key, from[left].key, "<", &order)) return false;
            take_right = order == -1;
        }
        to[at] = take_right ? from[right++] : from[left++];
    }
    return true;
}

static void reverse_entries(entry *entries, size_t count) {
    for (size_t i = 0; i < count / 2; i++) {
        entry other = entries[i];
        entries[i] = entries[count - 1 - i];
        entries[count - 1 - i] = other;
    }
}

/* Bottom up; *entries is where the result lies in the end. */
static bool sort_entries(jinja_run *run, entry **entries, entry *other, size_t count) {
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t low = 0; low < count; low += 2 * width) {
            size_t middle = low + width < count ? low + width : count;
            size_t high = low + 2 * width < count ? low + 2 * width : count;
            if (!merge(run, *entries, other, low, middle, high)) return false;
        }
        entry *sorted = other;
        other = *entries;
        *entries = sorted;
    }
    return true;
}

bool jinja_sort(jinja_run *run, jinja_value *items, jinja_value *keys, size_t count, bool reverse) {
    if (count < 2) return true;
    entry *entries = jinja_take(run, count, sizeof *entries), *other = jinja_take(run, count, sizeof *other);
    if (!entries || !other) return false;
    for (size_t i = 0; i < count; i++) entries[i] = (entry){items[i], keys[i]};
    /* Reversed twice, so that equal ones keep their order in this case too. */
    if (reverse) reverse_entries(entries, count);
    if (!sort_entries(run, &entries, other, count)) return false;
    if (reverse) reverse_entries(entries, count);
    for (size_t i = 0; i < count; i++) {
        items[i] = entries[i].item;
        keys[i] = entries[i].key;
    }
    return true;
}

bool jinja_sorted_pairs(jinja_run *run, const jinja_dict *dict, const jinja_pair **pairs) {
    size_t count = dict->count;
    jinja_value *keys = jinja_take(run, count, sizeof *keys), *values = jinja_take(run, count, sizeof *values);
    jinja_pair *sorted = jinja_take(run, count, sizeof *sorted);
    if (!keys || !values || !sorted) return false;
    for (size_t i = 0; i < count; i++) {
        keys[i] = dict->pairs[i].key;
        values[i] = dict->pairs[i].value;
    }
    if (!jinja_sort(run, values, keys, count, false)) return false;
    for (size_t i = 0; i < count; i++) sorted[i] = (jinja_pair){keys[i], values[i]};
    *pairs = sorted;
    return true;
}
