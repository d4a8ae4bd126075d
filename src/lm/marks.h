/* Where a later prompt may part from this one: what a sequence that cannot be cut anywhere keeps snapshots for. */
#ifndef QVL_LM_MARKS_H
#define QVL_LM_MARKS_H

#include "base/error.h"

/* Entries of a prompt at which snapshots are worth their memory, those after `first`: behind each picture and video,
 * and where its last two messages begin. The last of those is the header of the answer: templates leave thinking out of
 * earlier answers, so the next prompt parts from this one there. The other is the end of the answer before.
 * *marks: [*count], the caller's, qvl_free. */
qvl_status qvl_prompt_marks(const qvl_tokenizer *tokenizer, const qvl_prompt *prompt, int64_t first,
                            int64_t **marks, size_t *count, qvl_error *error);

#endif
