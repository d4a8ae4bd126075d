#include "base/listing.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>

qvl_listing qvl_listing_open(size_t lines, qvl_error *error) {
    qvl_listing l = {.text = qvl_alloc(lines, QVL_LISTING_LINE), .size = lines * QVL_LISTING_LINE, .error = error};
    if (!l.text) l.status = qvl_fail_memory(error, "text of a key", lines, QVL_LISTING_LINE);
    return l;
}

void qvl_listing_put(qvl_listing *l, const char *format, ...) {
    if (l->status) return;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(l->text + l->used, l->size - l->used, format, args);
    va_end(args);
    l->used += (size_t)n;
}

void qvl_listing_digest(qvl_listing *l, const char *what, const void *bytes, size_t count) {
    uint8_t digest[QVL_SHA256_BYTES];
    char hex[QVL_SHA256_HEX];
    if (!l->status) l->status = qvl_sha256(bytes, count, digest, l->error);
    if (l->status) return;
    qvl_sha256_print(digest, hex);
    qvl_listing_put(l, "%s %s\n", what, hex);
}

qvl_status qvl_listing_close(qvl_listing *l, char key[QVL_SHA256_HEX]) {
    uint8_t digest[QVL_SHA256_BYTES];
    key[0] = 0;
    if (!l->status) l->status = qvl_sha256(l->text, l->used, digest, l->error);
    if (!l->status) qvl_sha256_print(digest, key);
    qvl_free(l->text);
    return l->status;
}
