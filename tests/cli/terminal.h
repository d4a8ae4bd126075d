/* A program on a terminal of its own: what a person types, and what he sees. */
#ifndef QVL_TESTS_CLI_TERMINAL_H
#define QVL_TESTS_CLI_TERMINAL_H

#include "cli/program.h"

#include <sys/types.h>

typedef struct terminal {
    int fd;
    pid_t child;
    char seen[1 << 16]; /* all the program wrote; NUL-terminated */
    size_t count, at;   /* at: where the next wait begins */
} terminal;

/* Standard output and standard error are the terminal, too. arguments ends with NULL. */
void terminal_open(terminal *t, const char *const *arguments);
/* TERM is xterm there; or term, NULL: unset. */
void terminal_open_as(terminal *t, const char *term, const char *const *arguments);
void terminal_type(terminal *t, const char *keys);
/* Waits until the text comes, behind what earlier calls waited for; fails the test after 60 seconds. */
void terminal_wait(terminal *t, const char *text);
/* Waits until so many bytes more have come. */
void terminal_wait_bytes(terminal *t, size_t count);
/* Ctrl-D, again while nothing comes of it: an editor does not listen yet when it shows its prompt. */
void terminal_end(terminal *t);
/* Waits for the end of the program, which must exit with code. */
void terminal_close(terminal *t, int code);

#endif
