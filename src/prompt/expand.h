/* From placeholders to as many tokens as a picture has. */
#ifndef QVL_PROMPT_EXPAND_H
#define QVL_PROMPT_EXPAND_H

#include "prompt/slots.h"

/* A picture or video whose size is known. */
typedef struct qvl_measured {
    qvl_item item;            /* owned: qvl_item_clear */
    const double *timestamps; /* of a video: item.grid.t of them */
} qvl_measured;

/* Fills in prompt: ids, types, positions, items (but their keys), text and spans, cut to options->max_length.
 * measured: of the conversation's sources. text and tokens are what slots were found in; they are used up.
 * *sources: for each of the prompt's items the source it comes from; qvl_free. On failure the prompt is to be
 * freed. */
qvl_status qvl_expand(const qvl_renderer *renderer, const qvl_measured *measured, const qvl_slot *slots,
                      size_t slot_count, qvl_text *text, qvl_tokens *tokens, qvl_prompt *prompt, size_t **sources,
                      qvl_error *error);

#endif
