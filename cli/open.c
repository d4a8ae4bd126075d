#define _GNU_SOURCE
#include "open.h"

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

static bool has_config(char *path, size_t size, const char *folder, const char *below) {
    int n = snprintf(path, size, "%s%s/config.json", folder, below);
    if (n < 0 || (size_t)n >= size || access(path, R_OK) != 0) return false;
    path[(size_t)n - strlen("/config.json")] = 0;
    return true;
}

bool cli_find_demo(char *path, size_t size) {
    char program[3072];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n > 0) {
        program[n] = 0;
        *strrchr(program, '/') = 0; /* the program's folder, bin ... */
        char *slash = strrchr(program, '/');
        if (slash) *slash = 0; /* ... and the one above */
        if (has_config(path, size, program, "/share/qvl/demo")) return true;
    }
    return has_config(path, size, QVL_DATA_DIR, "/demo") || has_config(path, size, QVL_SOURCE_DIR, "/models/demo");
}

void cli_print_note(const char *message, void *user) {
    (void)user;
    fprintf(stderr, "note: %s\n", message);
}

qvl_status cli_open_model(const cli_options *options, qvl_open_level level, qvl_model **model, qvl_error *error) {
    char demo[4096];
    const char *folder = options->model;
    if (!folder) {
        if (!cli_find_demo(demo, sizeof demo))
            return cli_fail(error, QVL_ERROR_IO, "the demo model is not installed; name a model folder with -m");
        folder = demo;
        if (!options->quiet)
            fprintf(stderr, "note: no -m: using the demo model, whose weights are random: %s\n", demo);
    }
    qvl_model_options open = options->open;
    open.level = level;
    if (!options->quiet) open.log = cli_print_note;
    return qvl_model_open(folder, &open, model, error);
}
