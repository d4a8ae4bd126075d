#include "text/jinja/run.h"

#include <stdarg.h>
#include <stdio.h>

static bool fail(jinja_run *run, qvl_status status, const char *format, va_list args) {
    if (run->status) return false;
    run->status = status;
    vsnprintf(run->message, sizeof run->message, format, args);
    return false;
}

bool jinja_raise(jinja_run *run, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fail(run, QVL_ERROR_ARGUMENT, format, args);
    va_end(args);
    return false;
}

bool jinja_unsupported(jinja_run *run, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fail(run, QVL_ERROR_UNSUPPORTED, format, args);
    va_end(args);
    return false;
}

bool jinja_over_limit(jinja_run *run, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fail(run, QVL_ERROR_LIMIT, format, args);
    va_end(args);
    return false;
}

bool jinja_out_of_steps(jinja_run *run) {
    run->steps = 0;
    return jinja_over_limit(run, "the template takes too long: its limit of steps is reached");
}

bool jinja_enter(jinja_run *run) {
    if (run->depth >= run->max_depth)
        return jinja_over_limit(run, "nested deeper than %lld levels", (long long)run->max_depth);
    run->depth++;
    return true;
}
