/* Lines from standard input: with editing and a history where a person types them, plain where a pipe gives them. */
#ifndef CLI_LINES_H
#define CLI_LINES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cli_lines cli_lines;

typedef enum cli_line {
    CLI_LINE_TEXT = 0,
    CLI_LINE_DROPPED = 1, /* Ctrl-C while it was typed, if cli_interrupt_watch has it remembered */
    CLI_LINE_END = 2      /* no more lines */
} cli_line;

/* prompt: shown to a person; must live as long as the lines. NULL: no memory. */
cli_lines *cli_lines_open(const char *prompt);
/* Accepts NULL. */
void cli_lines_close(cli_lines *lines);
/* Does a person type? Then the prompt and what is typed are shown on stderr. */
bool cli_lines_typed(const cli_lines *lines);
/* *text: count bytes and a NUL, without the newline, valid until the next call. */
cli_line cli_lines_next(cli_lines *lines, const char **text, size_t *count);

#endif
