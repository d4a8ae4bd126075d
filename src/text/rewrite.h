/* A text changed at some places, and which bytes became which: every stage of the tokenizer is one of these, so that
 * a token's place in the result can be told in the text that came in. */
#ifndef QVL_TEXT_REWRITE_H
#define QVL_TEXT_REWRITE_H

#include "base/error.h"

/* Bytes from..from_end became to..to_end; either may be empty. */
typedef struct qvl_edit {
    size_t from, from_end, to, to_end;
} qvl_edit;

typedef struct qvl_rewrite {
    const uint8_t *in;     /* not owned */
    size_t in_count, done; /* in[0..done) is dealt with */
    uint8_t *out;          /* NULL while nothing changed */
    size_t count, capacity;
    qvl_edit *edits; /* in order */
    size_t edit_count, edit_capacity;
} qvl_rewrite;

void qvl_rewrite_start(qvl_rewrite *rewrite, const uint8_t *in, size_t count);
/* in[from..from_end) becomes bytes; what lies between the last call's end and from stays. from >= that end. */
qvl_status qvl_rewrite_put(qvl_rewrite *rewrite, size_t from, size_t from_end, const void *bytes, size_t count,
                           qvl_error *error);
/* Puts a U+FFFD for everything in the input that is not UTF-8, as Python's errors="replace" does. */
qvl_status qvl_rewrite_repair(qvl_rewrite *rewrite, qvl_error *error);
/* The rest stays. *text and *count are the result: owned by the rewrite, or in itself where nothing changed. */
qvl_status qvl_rewrite_end(qvl_rewrite *rewrite, const uint8_t **text, size_t *count, qvl_error *error);
/* Accepts a zeroed struct. */
void qvl_rewrite_free(qvl_rewrite *rewrite);

/* positions[0..n) in ascending order: from the text that came in to the result. What was put in at a position is
 * behind it. */
void qvl_rewrite_forward(const qvl_rewrite *rewrite, size_t *positions, size_t n);
/* And back. A position inside of what was put in goes to the end of what it replaced. */
void qvl_rewrite_back(const qvl_rewrite *rewrite, size_t *positions, size_t n);

#endif
