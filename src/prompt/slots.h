/* Which picture goes where. */
#ifndef QVL_PROMPT_SLOTS_H
#define QVL_PROMPT_SLOTS_H

#include "prompt/render.h"

/* A placeholder in the rendered text. */
typedef struct qvl_slot {
    size_t token;  /* its number among the tokens */
    size_t source; /* of the conversation */
} qvl_slot;

/* Finds the placeholders and gives each its source, kind by kind in order. Where their numbers differ the error
 * lists both, message by message. Trusted text may have placeholders of its own, for media that all come from
 * the caller: then the conversation gets sources for them. *slots belongs to the caller: qvl_free; NULL if
 * there are none. */
qvl_status qvl_slots_find(const qvl_renderer *renderer, const qvl_chat *chat, const qvl_tokens *tokens,
                          qvl_slot **slots, size_t *count, qvl_error *error);

#endif
