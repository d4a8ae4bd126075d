#include "lm/held.h"

#include "base/memory.h"

#include <string.h>

void qvl_held_free(qvl_held *held) {
    qvl_free(held->ids);
    qvl_free(held->items);
    *held = (qvl_held){0};
}

/* ---- what is common */

/* An item without a key could not be told from others. */
static bool same_item(const qvl_held_item *held, const qvl_prompt_item *item) {
    return held->kind == item->kind && held->first == item->first.index && held->last == item->last.index &&
           *held->key && strcmp(held->key, item->key) == 0;
}

/* The entry itself, or the first of the item that an end there would cut in two. */
static int64_t before_item(const qvl_prompt *prompt, int64_t end) {
    for (size_t i = 0; i < prompt->item_count; i++) {
        const qvl_prompt_item *item = &prompt->items[i];
        if (item->first.index < end && end <= item->last.index) return item->first.index;
    }
    return end;
}

int64_t qvl_held_common(const qvl_held *held, const qvl_prompt *prompt, qvl_difference *difference) {
    int64_t common = 0, most = held->count < prompt->length - 1 ? held->count : prompt->length - 1;
    while (common < most && held->ids[common] == prompt->input_ids[common]) common++;
    *difference = common < most ? QVL_DIFFERENCE_TEXT : QVL_DIFFERENCE_NONE;
    for (size_t i = 0; i < prompt->item_count && prompt->items[i].first.index < common; i++) {
        if (i < held->item_count && same_item(&held->items[i], &prompt->items[i])) continue;
        common = prompt->items[i].first.index;
        *difference = QVL_DIFFERENCE_MEDIA;
    }
    return before_item(prompt, common);
}

/* ---- changes */

void qvl_held_truncate(qvl_held *held, int64_t count) {
    if (count < held->count) held->count = count;
    while (held->item_count && held->items[held->item_count - 1].last >= count) held->item_count--;
}

qvl_status qvl_held_reserve(qvl_held *held, const qvl_prompt *prompt, int64_t tokens, qvl_error *error) {
    int64_t entries = prompt->length + tokens;
    if (entries > held->capacity) {
        int64_t *ids = qvl_grow(held->ids, (size_t)held->count, (size_t)entries, sizeof *ids);
        if (!ids) return qvl_fail_memory(error, "ids of a sequence", (size_t)entries, sizeof *ids);
        held->ids = ids;
        held->capacity = entries;
    }
    if (prompt->item_count > held->item_capacity) {
        qvl_held_item *items = qvl_grow(held->items, held->item_count, prompt->item_count, sizeof *items);
        if (!items) return qvl_fail_memory(error, "items of a sequence", prompt->item_count, sizeof *items);
        held->items = items;
        held->item_capacity = prompt->item_count;
    }
    return QVL_OK;
}

void qvl_held_add(qvl_held *held, const qvl_prompt *prompt) {
    int64_t from = held->count;
    memcpy(held->ids + from, prompt->input_ids + from, (size_t)(prompt->length - from) * sizeof *held->ids);
    held->count = prompt->length;
    for (size_t i = 0; i < prompt->item_count; i++) {
        const qvl_prompt_item *item = &prompt->items[i];
        if (item->first.index < from) continue;
        qvl_held_item *added = &held->items[held->item_count++];
        *added = (qvl_held_item){.kind = item->kind, .first = item->first.index, .last = item->last.index};
        memcpy(added->key, item->key, sizeof added->key);
    }
}

void qvl_held_push(qvl_held *held, int64_t id) {
    held->ids[held->count++] = id;
}
