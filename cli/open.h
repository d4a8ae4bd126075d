/* From the command line to an open model. */
#ifndef CLI_OPEN_H
#define CLI_OPEN_H

#include "options.h"

/* Finds the bundled demo model: beside the installed program, in its source tree, in the data folder it was built
 * for. path: at least 4096 bytes. false where it is in none of them. */
bool cli_find_demo(char *path, size_t size);
/* Finds a picture that the demo model understands, in the same places. */
bool cli_find_example(char *path, size_t size);

/* options->model, or else the demo model, written to demo (at least 4096 bytes), with a note on stderr unless --quiet.
 * used: what the note says of it, behind "the demo model". */
qvl_status cli_choose_model(const cli_options *options, const char *used, char *demo, size_t size,
                            const char **folder, qvl_error *error);
/* Opens options->model, or the demo model with a note on stderr that says so. The library's notes go to stderr
 * unless --quiet. */
qvl_status cli_open_model(const cli_options *options, qvl_open_level level, qvl_model **model, qvl_error *error);

/* A qvl_log_fn: "note: MESSAGE" on stderr. */
void cli_print_note(const char *message, void *user);

/* Control bytes become '?', as in the library's messages: names from files may hold some. Returns text. */
char *cli_printable(char *text);

/* Fills *error with a message of one printable line; returns status. */
qvl_status cli_fail(qvl_error *error, qvl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
qvl_status cli_no_memory(qvl_error *error);

/* "qvl: MESSAGE" on stderr; CLI_REFUSED. */
int cli_refuse(const qvl_error *error);

#endif
