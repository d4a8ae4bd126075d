/* A line on stderr that says how far an encode is; only where stderr is a terminal. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "qvl.h"

typedef struct cli_progress {
    bool active;
    bool shown;
    const char *what; /* the steps are of, "encoding" at first */
} cli_progress;

void cli_progress_init(cli_progress *progress, bool quiet);
/* A step that has no measure: "reading". */
void cli_progress_say(cli_progress *progress, const char *what);
/* A qvl_progress_fn; user is the cli_progress. */
bool cli_progress_step(int64_t done, int64_t total, void *user);
/* Removes the line. Call it before anything else is printed. */
void cli_progress_clear(cli_progress *progress);
/* The same on a terminal, for notes that come while a line of whoever's may be there. */
void cli_restart_line(void);

#endif
