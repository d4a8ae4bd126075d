/* What the program remembers between runs: files in the user's cache folder. Nothing fails where they are missing,
 * unreadable or damaged: then nothing is remembered. */
#ifndef CLI_CACHE_H
#define CLI_CACHE_H

#include "qvl.h"

#include <cjson/cJSON.h>

/* $XDG_CACHE_HOME/qvl, else $HOME/.cache/qvl; made, for this user only, if it is not there. path: at least 4096
 * bytes. false where there is no such folder. */
bool cli_cache_folder(char *path, size_t size);

/* The JSON file NAME of that folder, NULL where there is none to read. Owner: the caller, cJSON_Delete. */
cJSON *cli_cache_read(const char *name);
/* Writes it whole, in place of the one there. */
bool cli_cache_write(const char *name, const cJSON *json);

#endif
