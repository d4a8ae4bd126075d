/* SHA-256, by OpenSSL: it uses what the CPU has for it. */
#ifndef QVL_BASE_HASH_H
#define QVL_BASE_HASH_H

#include "base/error.h"

#define QVL_SHA256_BYTES 32
#define QVL_SHA256_HEX (2 * QVL_SHA256_BYTES + 1) /* as text, with its NUL */

/* May be called by several threads at once. */
qvl_status qvl_sha256(const void *bytes, size_t count, uint8_t digest[QVL_SHA256_BYTES], qvl_error *error);

/* Of bytes in several places, as if they were behind one another. */
typedef struct qvl_part {
    const void *bytes;
    size_t count;
} qvl_part;

qvl_status qvl_sha256_parts(const qvl_part *parts, size_t part_count, uint8_t digest[QVL_SHA256_BYTES],
                            qvl_error *error);

/* Lower case. */
void qvl_sha256_print(const uint8_t digest[QVL_SHA256_BYTES], char hex[QVL_SHA256_HEX]);
/* 64 such digits, and nothing behind them. */
bool qvl_sha256_is_hex(const char *text);

#endif
