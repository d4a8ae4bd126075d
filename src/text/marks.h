/* Marked text: what tokenizer.h says of it, made and taken apart. */
#ifndef QVL_TEXT_MARKS_H
#define QVL_TEXT_MARKS_H

#include "text/added.h"
#include "text/rewrite.h"

/* Puts marks into rewrite, whose input is valid UTF-8, in NFC if tokens with `normalized` are to be found. added: the
 * tokens that stay recognised. */
qvl_status qvl_marks_put(const qvl_added_tokens *tokens, const qvl_unicode *unicode, qvl_added added,
                         qvl_rewrite *rewrite, qvl_error *error);

/* Takes the marks of text[start..end), valid UTF-8, out, and puts hidden characters back. */
qvl_status qvl_marks_take(qvl_rewrite *rewrite, size_t start, size_t end, qvl_error *error);

/* The code point may not be in an added token: it is one that marks are made of. */
static inline bool qvl_is_mark(uint32_t code) {
    return code >= 0xfdd0 && code <= 0xfdef;
}

#endif
