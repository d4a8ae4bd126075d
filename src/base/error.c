#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

qvl_status qvl_fail(qvl_error *error, qvl_status status, const char *format, ...) {
    if (error) {
        error->status = status;
        va_list args;
        va_start(args, format);
        vsnprintf(error->message, sizeof error->message, format, args);
        va_end(args);
        /* Names from files may hold control bytes; a message stays one printable line. */
        for (char *c = error->message; *c; c++)
            if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
    }
    return status;
}

qvl_status qvl_fail_memory(qvl_error *error, const char *what, size_t count, size_t size) {
    return qvl_fail(error, QVL_ERROR_MEMORY, "out of memory: %s needs %zu x %zu bytes", what, count, size);
}

qvl_status qvl_error_prefix(qvl_error *error, qvl_status status, const char *prefix) {
    if (error) {
        qvl_error inner = *error;
        /* Cut at the end, never in the middle: the prefix is the part that says where. */
        snprintf(error->message, sizeof error->message, "%.400s: %.600s", prefix, inner.message);
        error->status = status;
    }
    return status;
}

const char *qvl_status_name(qvl_status status) {
    static const char *const names[] = {"ok",          "argument", "memory", "io",      "format",
                                        "unsupported", "limit",    "model",  "numeric", "cancelled"};
    size_t i = (size_t)status;
    return i < sizeof names / sizeof names[0] ? names[i] : "unknown";
}
