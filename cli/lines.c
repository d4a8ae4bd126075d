#define _GNU_SOURCE
#include "lines.h"

#include "interrupt.h"

#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

enum { HISTORY_LINES = 1000 };

struct cli_lines {
    const char *prompt;
    EditLine *editor; /* NULL: lines from a pipe */
    History *history;
    mbstate_t partial; /* of a character whose bytes are not all there */
    char *line;
    size_t capacity;
};

static char *prompt_of(EditLine *editor) {
    const cli_lines *lines = NULL;
    el_get(editor, EL_CLIENTDATA, &lines);
    return (char *)(size_t)lines->prompt;
}

/* The next character. While a line is edited Ctrl-C can only come in here, where it is waited for: between two keys it
 * would be seen with the next key at the earliest. */
static int read_key(EditLine *editor, wchar_t *key) {
    cli_lines *lines = NULL;
    el_get(editor, EL_CLIENTDATA, &lines);
    sigset_t open;
    pthread_sigmask(SIG_SETMASK, NULL, &open);
    sigdelset(&open, SIGINT);
    while (!cli_interrupted()) {
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        char byte;
        if (ppoll(&input, 1, NULL, &open) < 0) {
            if (errno == EINTR) continue;
            return -1;
        }
        ssize_t n = read(STDIN_FILENO, &byte, 1);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return (int)n;
        if (!byte) continue; /* Ctrl-D of a time when the terminal kept lines: libedit would quote the next key */
        size_t used = mbrtowc(key, &byte, 1, &lines->partial);
        if (used == (size_t)-1) { /* what came before was no character; this may begin one */
            memset(&lines->partial, 0, sizeof lines->partial);
            used = mbrtowc(key, &byte, 1, &lines->partial);
        }
        if (used <= 1) return 1;
        if (used == (size_t)-1) memset(&lines->partial, 0, sizeof lines->partial);
    }
    return -1;
}

/* The editor needs to know where a character ends. */
static void use_utf8(void) {
    if (!setlocale(LC_CTYPE, "") || strcmp(nl_langinfo(CODESET), "UTF-8") != 0) setlocale(LC_CTYPE, "C.UTF-8");
}

static bool open_editor(cli_lines *lines) {
    HistEvent event;
    use_utf8();
    lines->history = history_init();
    lines->editor = el_init("qvl", stdin, stderr, stderr);
    if (!lines->history || !lines->editor) return false;
    history(lines->history, &event, H_SETSIZE, HISTORY_LINES);
    history(lines->history, &event, H_SETUNIQUE, 1);
    el_set(lines->editor, EL_CLIENTDATA, lines);
    el_set(lines->editor, EL_PROMPT, prompt_of);
    el_set(lines->editor, EL_GETCFN, read_key);
    el_set(lines->editor, EL_EDITOR, "emacs");
    el_set(lines->editor, EL_HIST, history, lines->history);
    return true;
}

cli_lines *cli_lines_open(const char *prompt) {
    cli_lines *lines = calloc(1, sizeof *lines);
    if (!lines) return NULL;
    lines->prompt = prompt;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO) || open_editor(lines)) return lines;
    cli_lines_close(lines);
    return NULL;
}

void cli_lines_close(cli_lines *lines) {
    if (!lines) return;
    if (lines->editor) el_end(lines->editor);
    if (lines->history) history_end(lines->history);
    free(lines->line);
    free(lines);
}

bool cli_lines_typed(const cli_lines *lines) {
    return lines->editor;
}

static cli_line read_plain(cli_lines *lines, const char **text, size_t *count) {
    ssize_t n = getline(&lines->line, &lines->capacity, stdin);
    if (n < 0) return CLI_LINE_END;
    if (n > 0 && lines->line[n - 1] == '\n') lines->line[--n] = 0;
    *text = lines->line;
    *count = (size_t)n;
    return CLI_LINE_TEXT;
}

static cli_line read_edited(cli_lines *lines, const char **text, size_t *count) {
    HistEvent event;
    sigset_t interrupt, before;
    int n = 0;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    el_resize(lines->editor); /* the window may have another size now */
    pthread_sigmask(SIG_BLOCK, &interrupt, &before);
    el_set(lines->editor, EL_PREP_TERM, 1); /* libedit itself would only after the prompt, which invites keys */
    const char *line = el_gets(lines->editor, &n);
    bool interrupted = cli_interrupted();
    cli_interrupt_forget();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (interrupted) {
        fputs("^C\n", stderr);
        return CLI_LINE_DROPPED;
    }
    if (!line || n <= 0) return CLI_LINE_END;
    free(lines->line);
    lines->line = strndup(line, (size_t)n);
    if (!lines->line) return CLI_LINE_END;
    *count = strcspn(lines->line, "\n");
    lines->line[*count] = 0;
    *text = lines->line;
    if (*count) history(lines->history, &event, H_ENTER, lines->line);
    return CLI_LINE_TEXT;
}

cli_line cli_lines_next(cli_lines *lines, const char **text, size_t *count) {
    return lines->editor ? read_edited(lines, text, count) : read_plain(lines, text, count);
}
