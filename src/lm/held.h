/* What a sequence holds, entry by entry: ids, and the pictures and videos they stand for. Two prompts are the same up to
 * an entry if their ids are and every picture up to there has the same key in the same place; equal keys are equal
 * features, and equal grids are equal positions. */
#ifndef QVL_LM_HELD_H
#define QVL_LM_HELD_H

#include "base/error.h"

typedef struct qvl_held_item {
    qvl_medium_kind kind;
    int64_t first, last; /* entries */
    char key[QVL_KEY_HEX];
} qvl_held_item;

typedef struct qvl_held {
    int64_t count, capacity;
    int64_t *ids; /* [count] */
    size_t item_count, item_capacity;
    qvl_held_item *items;
} qvl_held;

/* Accepts a zeroed struct. */
void qvl_held_free(qvl_held *held);

/* Entries that a prompt has in common with what is held, fewer than it has altogether: the last entry is always read
 * again, since its logits are needed. Never ends inside a picture. *difference: what ended it. */
int64_t qvl_held_common(const qvl_held *held, const qvl_prompt *prompt, qvl_difference *difference);

/* Keeps the first count entries, which do not end inside a picture. */
void qvl_held_truncate(qvl_held *held, int64_t count);

/* Makes room for what a prompt adds, and tokens more: then neither of the next two fails. */
qvl_status qvl_held_reserve(qvl_held *held, const qvl_prompt *prompt, int64_t tokens, qvl_error *error);
/* Entries held->count and on of a prompt that is the same up to there. */
void qvl_held_add(qvl_held *held, const qvl_prompt *prompt);
void qvl_held_push(qvl_held *held, int64_t id);

#endif
