/* Text that a template leaves out without a word. */
#ifndef QVL_PROMPT_DROPPED_H
#define QVL_PROMPT_DROPPED_H

#include "prompt/chat.h"

/* Looks for the text of every message in what was rendered, in order. One that is missing is an error, or a
 * note with QVL_DROPPED_NOTE. Thoughts of an assistant, up to its last </think>, may be left out. */
qvl_status qvl_check_dropped(const qvl_conversation *conversation, const qvl_prompt_options *options,
                             const qvl_text *rendered, qvl_error *error);

#endif
