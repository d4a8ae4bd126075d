#include "base/hash.h"

#include <openssl/err.h>
#include <openssl/evp.h>

qvl_status qvl_sha256(const void *bytes, size_t count, uint8_t digest[QVL_SHA256_BYTES], qvl_error *error) {
    /* OpenSSL keeps a list of errors for each thread; what fails here leaves nothing in the caller's. */
    ERR_set_mark();
    int good = EVP_Digest(bytes, count, digest, NULL, EVP_sha256(), NULL);
    ERR_pop_to_mark();
    if (good == 1) return QVL_OK;
    /* With a sane OpenSSL there is no other reason than memory. */
    return qvl_fail(error, QVL_ERROR_MEMORY, "OpenSSL could not compute the SHA-256 of %zu bytes", count);
}

void qvl_sha256_print(const uint8_t digest[QVL_SHA256_BYTES], char hex[QVL_SHA256_HEX]) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < QVL_SHA256_BYTES; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[2 * QVL_SHA256_BYTES] = 0;
}
