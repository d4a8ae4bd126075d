/* What is behind qvl_item.clip. */
#ifndef QVL_PREPROCESS_ITEM_H
#define QVL_PREPROCESS_ITEM_H

#include "base/error.h"

/* A copy in one block, arrays included. Owner: the item it is put in. */
qvl_status qvl_clip_info_make(const qvl_clip_info *source, const qvl_clip_info **made, qvl_error *error);

/* Frees what the item owns and empties it. */
void qvl_item_clear(qvl_item *item);

/* A copy of its own. */
qvl_status qvl_item_copy(const qvl_item *item, qvl_item *copy, qvl_error *error);

/* count items and the array; items may be NULL. */
void qvl_items_free(qvl_item *items, size_t count);

#endif
