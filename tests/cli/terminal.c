#define _GNU_SOURCE
#include "cli/terminal.h"

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS = 60 };

void terminal_open(terminal *t, const char *const *arguments) {
    terminal_open_as(t, "xterm", arguments);
}

void terminal_open_as(terminal *t, const char *term, const char *const *arguments) {
    struct winsize size = {.ws_row = 40, .ws_col = 200};
    memset(t, 0, sizeof *t);
    scratch("terminal"); /* so that the program remembers things there */
    t->child = forkpty(&t->fd, NULL, NULL, &size);
    assert_true(t->child >= 0);
    if (t->child == 0) {
        if (term)
            setenv("TERM", term, 1);
        else
            unsetenv("TERM");
        execv(arguments[0], (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
}

void terminal_type(terminal *t, const char *keys) {
    size_t count = strlen(keys);
    assert_int_equal(write(t->fd, keys, count), (ssize_t)count);
}

/* false at the end of the program, or when nothing came for so long. */
static bool read_more(terminal *t, int milliseconds) {
    struct pollfd wait = {.fd = t->fd, .events = POLLIN};
    if (poll(&wait, 1, milliseconds) <= 0) return false;
    assert_true(t->count + 1 < sizeof t->seen);
    ssize_t n = read(t->fd, t->seen + t->count, sizeof t->seen - 1 - t->count);
    if (n <= 0) return false; /* EIO: the other end is closed */
    t->count += (size_t)n;
    t->seen[t->count] = 0;
    return true;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* What fits into a message of the test's runner. */
static const char *tail(const terminal *t) {
    return t->seen + (t->count > 700 ? t->count - 700 : 0);
}

/* Reads on; fails the test when nothing more can come. */
static void read_on(terminal *t, double start, const char *awaited) {
    if (now() - start < SECONDS && (read_more(t, 1000) || waitpid(t->child, NULL, WNOHANG) == 0)) return;
    kill(t->child, SIGKILL);
    fail_msg("'%s' did not come; at the end was: %s", awaited, tail(t));
}

void terminal_wait(terminal *t, const char *text) {
    const char *found;
    double start = now();
    while (!(found = strstr(t->seen + t->at, text))) read_on(t, start, text);
    t->at = (size_t)(found - t->seen) + strlen(text);
}

void terminal_wait_bytes(terminal *t, size_t count) {
    double start = now();
    while (t->count < t->at + count) read_on(t, start, "output");
    t->at += count;
}

void terminal_end(terminal *t) {
    double start = now();
    siginfo_t ended = {0};
    while (now() - start < SECONDS && !ended.si_pid) {
        terminal_type(t, "\x04");
        while (read_more(t, 500)) continue;
        waitid(P_PID, (id_t)t->child, &ended, WEXITED | WNOHANG | WNOWAIT);
    }
}

void terminal_close(terminal *t, int code) {
    int status;
    double start = now();
    while (read_more(t, 1000 * SECONDS) && now() - start < SECONDS) continue;
    pid_t ended = 0; /* it closes the terminal a little before */
    for (int i = 0; i < 200 && !(ended = waitpid(t->child, &status, WNOHANG)); i++) usleep(10000);
    if (!ended) {
        kill(t->child, SIGKILL);
        fail_msg("the program did not end; at the end was: %s", tail(t));
    }
    close(t->fd);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
        fail_msg("status %x; at the end was: %s", status, tail(t));
}
