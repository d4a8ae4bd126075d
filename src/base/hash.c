#include "base/hash.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <string.h>

qvl_status qvl_sha256_parts(const qvl_part *parts, size_t part_count, uint8_t digest[QVL_SHA256_BYTES],
                            qvl_error *error) {
    /* OpenSSL keeps a list of errors for each thread; what fails here leaves nothing in the caller's. */
    ERR_set_mark();
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int good = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;
    for (size_t i = 0; i < part_count && good; i++)
        good = EVP_DigestUpdate(context, parts[i].bytes, parts[i].count) == 1;
    good = good && EVP_DigestFinal_ex(context, digest, NULL) == 1;
    EVP_MD_CTX_free(context);
    ERR_pop_to_mark();
    if (good) return QVL_OK;
    /* With a sane OpenSSL there is no other reason than memory. */
    return qvl_fail(error, QVL_ERROR_MEMORY, "OpenSSL could not compute a SHA-256");
}

qvl_status qvl_sha256(const void *bytes, size_t count, uint8_t digest[QVL_SHA256_BYTES], qvl_error *error) {
    return qvl_sha256_parts(&(qvl_part){bytes, count}, 1, digest, error);
}

void qvl_sha256_print(const uint8_t digest[QVL_SHA256_BYTES], char hex[QVL_SHA256_HEX]) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < QVL_SHA256_BYTES; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[2 * QVL_SHA256_BYTES] = 0;
}

bool qvl_sha256_is_hex(const char *text) {
    size_t digits = strspn(text, "0123456789abcdef");
    return digits == QVL_SHA256_HEX - 1 && !text[digits];
}
