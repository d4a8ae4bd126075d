#define _GNU_SOURCE
#include "open.h"

#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

char *cli_printable(char *text) {
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
    return text;
}

qvl_status cli_fail(qvl_error *error, qvl_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    cli_printable(error->message);
    return error->status = status;
}

qvl_status cli_no_memory(qvl_error *error) {
    return cli_fail(error, QVL_ERROR_MEMORY, "not enough memory");
}

int cli_refuse(const qvl_error *error) {
    fprintf(stderr, "qvl: %s\n", error->message);
    return CLI_REFUSED;
}

static bool has(char *path, size_t size, const char *folder, const char *below) {
    int n = snprintf(path, size, "%s/%s", folder, below);
    return n >= 0 && (size_t)n < size && access(path, R_OK) == 0;
}

/* A bundled file: its name as installed, below share/qvl, and in the source tree. */
static bool find_bundled(char *path, size_t size, const char *installed, const char *source) {
    char program[3072];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n > 0) {
        program[n] = 0;
        *strrchr(program, '/') = 0; /* the program's folder, bin ... */
        char *slash = strrchr(program, '/');
        if (slash) *slash = 0; /* ... and the one above */
        char below[64];
        snprintf(below, sizeof below, "share/qvl/%s", installed);
        if (has(path, size, program, below)) return true;
    }
    /* A program that was built here but not installed must not find what another one left installed. */
    return has(path, size, QVL_SOURCE_DIR, source) || has(path, size, QVL_DATA_DIR, installed);
}

bool cli_find_demo(char *path, size_t size) {
    if (!find_bundled(path, size, "demo/config.json", "models/demo/config.json")) return false;
    *strrchr(path, '/') = 0;
    return true;
}

bool cli_find_example(char *path, size_t size) {
    return find_bundled(path, size, "examples/shapes.png", "examples/shapes.png");
}

void cli_print_note(const char *message, void *user) {
    (void)user;
    cli_restart_line();
    fprintf(stderr, "note: %s\n", message);
}

qvl_status cli_choose_model(const cli_options *options, const char *used, char *demo, size_t size,
                            const char **folder, qvl_error *error) {
    *folder = options->model;
    if (*folder) return QVL_OK;
    if (!cli_find_demo(demo, size))
        return cli_fail(error, QVL_ERROR_IO, "the demo model is not installed; name a model folder with -m");
    *folder = demo;
    char text[4096 + 128];
    snprintf(text, sizeof text, "no -m: using the demo model%s: %s", used, demo);
    if (!options->quiet) cli_print_note(text, NULL);
    return QVL_OK;
}

qvl_status cli_open_model(const cli_options *options, qvl_open_level level, qvl_model **model, qvl_error *error) {
    char demo[4096];
    const char *folder, *used = ", which knows only drawn shapes, words and clips of one moving shape";
    qvl_status status = cli_choose_model(options, used, demo, sizeof demo, &folder, error);
    if (status) return status;
    qvl_model_options open = options->open;
    open.level = level;
    if (!options->quiet) open.log = cli_print_note;
    return qvl_model_open(folder, &open, model, error);
}
