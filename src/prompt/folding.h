/* System messages that come late, put where every template has room for them. */
#ifndef QVL_PROMPT_FOLDING_H
#define QVL_PROMPT_FOLDING_H

#include "base/error.h"

#include <cjson/cJSON.h>

/* The text of every system or developer message but the first message goes, after an empty line each, to the
 * end of the first message, which is made if it is not one of these; the messages themselves go. Pictures in
 * them are an error. name of the chat: for messages. */
qvl_status qvl_fold_systems(cJSON *messages, const char *name, qvl_error *error);

#endif
