/* SHA-256, by OpenSSL: it uses what the CPU has for it. */
#ifndef QVL_BASE_HASH_H
#define QVL_BASE_HASH_H

#include "base/error.h"

#define QVL_SHA256_BYTES 32
#define QVL_SHA256_HEX (2 * QVL_SHA256_BYTES + 1) /* as text, with its NUL */

/* May be called by several threads at once. */
qvl_status qvl_sha256(const void *bytes, size_t count, uint8_t digest[QVL_SHA256_BYTES], qvl_error *error);

/* Lower case. */
void qvl_sha256_print(const uint8_t digest[QVL_SHA256_BYTES], char hex[QVL_SHA256_HEX]);

#endif
