/* What a written result was made from, as a text in its metadata: the source file, the program, the weights, the
 * folder's settings and the flags. Two results of one text are equal. */
#ifndef CLI_MADE_FROM_H
#define CLI_MADE_FROM_H

#include "options.h"

/* Whatever results depend on beside their source file. *settings: free(). */
qvl_status cli_describe_settings(const cli_options *options, const qvl_model *model, char **settings,
                                 qvl_error *error);

/* The text for a source file as it is now; NULL where it cannot be looked at or there is no memory. Owner: the caller,
 * free(). */
char *cli_made_from(const char *settings, const char *source);

/* Whether the result at path is whole and its metadata's "made_from" is this text. */
bool cli_is_made(const char *path, const char *made_from);

#endif
