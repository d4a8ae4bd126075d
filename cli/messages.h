/* Messages of a conversation, as qvl prompt reads them. Each function returns false where there is no memory. */
#ifndef CLI_MESSAGES_H
#define CLI_MESSAGES_H

#include "qvl.h"

#include <cjson/cJSON.h>

bool cli_add_message(cJSON *messages, const char *role, const char *text);
/* An assistant's message, with its thoughts as templates read them. */
bool cli_add_answer(cJSON *messages, const qvl_answer *answer);
/* A user's message: a part without a source for each of the media, then the text. */
bool cli_add_question(cJSON *messages, const qvl_medium *media, size_t count, const char *text);

#endif
