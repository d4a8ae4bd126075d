/* A prompt's text, for people to look at. */
#ifndef QVL_PROMPT_SPANS_H
#define QVL_PROMPT_SPANS_H

#include "prompt/render.h"

/* Fills in the prompt's text, which is that of the first `kept` tokens without marks, and its spans. counts:
 * the tokens of each pad among them, in order. */
qvl_status qvl_spans_make(const qvl_renderer *renderer, const qvl_text *text, const qvl_tokens *tokens,
                          size_t kept, const int64_t *counts, qvl_prompt *prompt, qvl_error *error);

#endif
