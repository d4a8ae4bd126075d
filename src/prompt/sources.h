/* Where the picture or video of a part is, and how it is to be read. */
#ifndef QVL_PROMPT_SOURCES_H
#define QVL_PROMPT_SOURCES_H

#include "prompt/chat.h"

/* What a part names, if anything: the first of the keys that may hold a source that is there and not null. source has
 * its kind; the rest is filled in, name and input only if there is a source. where is the part, for messages.
 * On failure qvl_source_clear frees what there is. */
qvl_status qvl_source_read(const qvl_chat *chat, const cJSON *part, const char *where, qvl_source *source,
                           qvl_error *error);
/* Accepts a zeroed struct; empties it. */
void qvl_source_clear(qvl_source *source);

#endif
