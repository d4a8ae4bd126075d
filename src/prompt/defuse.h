/* No text of a conversation becomes a special token: marks (text/tokenizer.h) go into all strings of the variables
 * before the template sees them. */
#ifndef QVL_PROMPT_DEFUSE_H
#define QVL_PROMPT_DEFUSE_H

#include "base/error.h"

#include <cjson/cJSON.h>

/* How much is marked in the turns of system, user and unknown roles, in tools and in other variables. What assistants
 * and tools say keeps added tokens that are not special: <think>, <tool_call>. */
typedef enum qvl_defusing {
    QVL_DEFUSE_ADDED,  /* every added token */
    QVL_DEFUSE_SPECIAL /* special ones only, for templates that look for others in such text */
} qvl_defusing;

/* A copy of the variables with marks: in what spells an added token, and at the ends of what could spell one together
 * with its neighbours. Keys too; the variables in specials are left as they are. *any: whether there is a mark.
 * Owner: the caller, cJSON_Delete. */
qvl_status qvl_defuse(const qvl_tokenizer *tokenizer, const cJSON *variables, const cJSON *specials,
                      qvl_defusing defusing, cJSON **marked, bool *any, qvl_error *error);

/* Marked text without its marks. *offsets [byte_count + 1]: where each byte of it ends up, and its end; NULL if it is
 * not wanted. The text and *offsets belong to the caller: qvl_text_free, qvl_free. */
qvl_status qvl_unmark(const char *marked, size_t byte_count, qvl_text *text, size_t **offsets, qvl_error *error);

#endif
