/* One rendering: its memory, its limits, its output and what went wrong. */
#ifndef QVL_TEXT_JINJA_RUN_H
#define QVL_TEXT_JINJA_RUN_H

#include "base/error.h"
#include "text/jinja/arena.h"

typedef struct jinja_node jinja_node;
typedef struct jinja_text jinja_text;
typedef struct jinja_run jinja_run;
struct jinja_dict;

struct jinja_run {
    jinja_arena arena;
    int64_t steps, depth; /* left; nested now */
    int64_t max_depth, max_output, max_memory;
    int64_t time; /* for strftime_now; INT64_MIN: none */
    const struct jinja_dict *globals, *variables;
    jinja_text *out;  /* where output goes now */
    jinja_text *root; /* the rendering itself */
    qvl_span *spans;  /* of generation blocks, in the arena */
    size_t span_count, span_capacity;
    /* What went wrong, first: */
    qvl_status status;
    bool located;
    uint32_t offset; /* in the source, if located */
    char message[900];
};

/* These fill in the error, unless there is one already, and return false. */

/* What Python or Jinja would raise. */
bool jinja_raise(jinja_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool jinja_unsupported(jinja_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool jinja_over_limit(jinja_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Counts work; false, with an error, when the run has done too much of it. */
bool jinja_out_of_steps(jinja_run *run);
static inline bool jinja_step(jinja_run *run, size_t count) {
    if (count >= (size_t)run->steps) return jinja_out_of_steps(run);
    run->steps -= (int64_t)count;
    return true;
}
/* Work on this many bytes. */
static inline bool jinja_step_bytes(jinja_run *run, size_t bytes) {
    return jinja_step(run, 1 + bytes / 32);
}

/* Around everything that nests: false, with an error, when it is too deep. */
bool jinja_enter(jinja_run *run);
static inline void jinja_leave(jinja_run *run) {
    run->depth--;
}

#endif
