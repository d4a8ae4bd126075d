/* What the program remembers between runs: files in the user's cache folder. Nothing fails where they are missing,
 * unreadable or damaged: then nothing is remembered. */
#ifndef CLI_CACHE_H
#define CLI_CACHE_H

#include "options.h"

#include <cjson/cJSON.h>

/* $XDG_CACHE_HOME/qvl, else $HOME/.cache/qvl; made, for this user only, if it is not there. path: at least 4096
 * bytes. false where there is no such folder. */
bool cli_cache_folder(char *path, size_t size);

/* The features kept there, for a session from now on; *cache belongs to the caller: qvl_cache_close, after the session.
 * NULL, and nothing else, where the options say so or there is no such folder. */
qvl_status cli_use_cache(const cli_options *options, qvl_session *session, qvl_cache **cache, qvl_error *error);
/* "hit", "miss", or "part" of a clip; NULL where no cache was used. */
const char *cli_cache_word(const cli_options *options, const qvl_item *item);

/* The JSON file NAME of that folder, NULL where there is none to read. Owner: the caller, cJSON_Delete. */
cJSON *cli_cache_read(const char *name);
/* Writes it whole, in place of the one there. */
bool cli_cache_write(const char *name, const cJSON *json);

#endif
