/* Normalisation form C as the reference has it: of Unicode 9, whatever version utf8proc is of. */
#ifndef QVL_TEXT_NORMALIZE_H
#define QVL_TEXT_NORMALIZE_H

#include "text/pieces.h"
#include "text/rewrite.h"
#include "text/unicode.h"

/* Scratch of one caller; zeroed at first, kept between calls. */
typedef struct qvl_normalizer {
    int32_t *codes, *sorted; /* [capacity] */
    uint8_t *bytes;          /* [4 * capacity] */
    size_t capacity;
} qvl_normalizer;

/* Puts what changes of text[start..end) into rewrite, whose input text is. Valid UTF-8. What is outside of the range
 * does not count. The time is linear in the size. */
qvl_status qvl_normalize(qvl_normalizer *normalizer, const qvl_unicode *unicode, qvl_rewrite *rewrite,
                         size_t start, size_t end, qvl_error *error);
/* Accepts a zeroed struct. */
void qvl_normalizer_free(qvl_normalizer *normalizer);

#endif
