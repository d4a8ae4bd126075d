#include "progress.h"

#include <stdio.h>
#include <unistd.h>

/* Carriage return, then "erase to the end of the line". */
#define RESTART "\r\x1b[K"

void cli_progress_init(cli_progress *progress, bool quiet) {
    *progress = (cli_progress){.active = !quiet && isatty(STDERR_FILENO), .what = "encoding"};
}

void cli_progress_say(cli_progress *progress, const char *what) {
    if (!progress->active) return;
    fprintf(stderr, RESTART "%s", what);
    fflush(stderr);
    progress->shown = true;
}

bool cli_progress_step(int64_t done, int64_t total, void *user) {
    cli_progress *progress = user;
    if (!progress->active || total < 1) return true;
    enum { WIDTH = 30 };
    char bar[WIDTH + 1];
    for (int i = 0; i < WIDTH; i++) bar[i] = i * total < done * WIDTH ? '#' : '.';
    bar[WIDTH] = 0;
    fprintf(stderr, RESTART "%s [%s] %lld/%lld", progress->what, bar, (long long)done, (long long)total);
    fflush(stderr);
    progress->shown = true;
    return true;
}

void cli_progress_clear(cli_progress *progress) {
    if (progress->shown) fputs(RESTART, stderr);
    progress->shown = false;
}

void cli_restart_line(void) {
    if (isatty(STDERR_FILENO)) fputs(RESTART, stderr);
}
