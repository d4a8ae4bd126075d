/* No text of a conversation becomes a special token: marks (text/tokenizer.h) go into all strings of the variables
 * before the template sees them. */
#ifndef QVL_PROMPT_DEFUSE_H
#define QVL_PROMPT_DEFUSE_H

#include "base/error.h"

#include <cjson/cJSON.h>

/* How much is marked in the turns of system, user and unknown roles, in tools and in other variables. What
 * assistants and tools say keeps added tokens that are not special: <think>, <tool_call>. */
typedef enum qvl_defusing {
    QVL_DEFUSE_ADDED,  /* every added token */
    QVL_DEFUSE_SPECIAL /* special ones only, for templates that look for others in such text */
} qvl_defusing;

/* A copy of the variables with marks in what could become an added token, alone or together with its
 * neighbours. Names that templates compare or look up (roles, types, keys: letters, digits, "_-. $") stay as
 * they are, and so do the variables that are in specials. *any: whether there is a mark. Owner: the caller,
 * cJSON_Delete. */
qvl_status qvl_defuse(const qvl_tokenizer *tokenizer, const cJSON *variables, const cJSON *specials,
                      qvl_defusing defusing, cJSON **marked, bool *any, qvl_error *error);

#endif
