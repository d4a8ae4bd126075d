/* The text of an answer as its tokens come: whole characters, and not a byte that may belong to a stop string. What
 * stands between <think> and </think> is thinking and comes first; the marks are in neither part, nor are newlines that
 * follow them. */
#ifndef QVL_LM_ANSWER_TEXT_H
#define QVL_LM_ANSWER_TEXT_H

#include "base/error.h"

typedef struct qvl_answer_text {
    qvl_detokenizer *stream;
    const char *const *stops; /* the caller's; none empty */
    size_t stop_count;
    size_t longest; /* of the stops, in bytes */
    char *bytes;    /* the whole text; byte_count bytes and a NUL */
    size_t byte_count, capacity;
    size_t released;             /* bytes handed out; what comes next begins here */
    bool stopped;                /* at a stop string: the text ends before it */
    int32_t think_id, answer_id; /* of <think> and </think>; -1: the tokenizer has none */
    bool thinking;               /* what comes is thinking */
    bool marked;                 /* there was a mark: newlines at the beginning of a part go */
    size_t thought;              /* bytes of thinking so far: the answer begins behind them */
} qvl_answer_text;

/* prompt: what is answered; it may end inside of thinking. Owner: the caller, qvl_answer_text_close, which accepts a
 * zeroed struct. */
qvl_status qvl_answer_text_open(const qvl_tokenizer *tokenizer, const qvl_prompt *prompt, const char *const *stops,
                                size_t stop_count, qvl_answer_text *text, qvl_error *error);
void qvl_answer_text_close(qvl_answer_text *text);

/* A token more. Special tokens have no text. */
qvl_status qvl_answer_text_push(qvl_answer_text *text, int32_t id, qvl_error *error);
/* No token comes any more: the beginning of a character is U+FFFD, and nothing is held back. */
qvl_status qvl_answer_text_finish(qvl_answer_text *text, qvl_error *error);

/* What is certain and was not handed out yet: *count bytes of text->bytes, valid until the next push. *thinking: which
 * part they are of. */
const char *qvl_answer_text_release(qvl_answer_text *text, bool finished, size_t *count, bool *thinking);

#endif
