/* A text that is made to be hashed, line by line: what a key stands for can be read. */
#ifndef QVL_BASE_LISTING_H
#define QVL_BASE_LISTING_H

#include "base/hash.h"

typedef struct qvl_listing {
    char *text;
    size_t used, size;
    qvl_status status; /* of what went wrong first */
    qvl_error *error;
} qvl_listing;

#define QVL_LISTING_LINE 320 /* the longest line: three long numbers, a name, a digest */

/* Room for so many lines. Ended by qvl_listing_close, which must be called. */
qvl_listing qvl_listing_open(size_t lines, qvl_error *error);
void qvl_listing_put(qvl_listing *listing, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "what SHA-256" of bytes, as a line. */
void qvl_listing_digest(qvl_listing *listing, const char *what, const void *bytes, size_t count);
/* key: the SHA-256 of the text; "" on failure. */
qvl_status qvl_listing_close(qvl_listing *listing, char key[QVL_SHA256_HEX]);

#endif
