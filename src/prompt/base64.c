#include "prompt/base64.h"

#include "base/memory.h"

#include <string.h>

/* ASCII letters of either case; word is in lower case. */
static bool starts_with(const char *text, const char *word) {
    for (; *word; text++, word++)
        if ((*text >= 'A' && *text <= 'Z' ? *text + 32 : *text) != *word) return false;
    return true;
}

static int digit_of(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

/* What is left behind the digits: padding, which may be missing, and white space. */
static qvl_status check_end(const char *end, const char *text, size_t digits, const char *what, qvl_error *error) {
    const char *at = end;
    size_t padding = 0;
    for (; *at; at++) {
        if (*at == '=')
            padding++;
        else if (!is_space(*at))
            return qvl_fail(error, QVL_ERROR_FORMAT,
                            "%s: character %zu of its base64 text, 0x%02x, does not belong there", what,
                            (size_t)(at - text), (unsigned char)*at);
    }
    if (digits % 4 == 1 || (padding && (digits + padding) % 4 != 0) || padding > 2)
        return qvl_fail(error, QVL_ERROR_FORMAT,
                        "%s: its base64 text has %zu digits and %zu of padding, and is cut short", what, digits,
                        padding);
    return digits ? QVL_OK : qvl_fail(error, QVL_ERROR_FORMAT, "%s: its base64 text is empty", what);
}

qvl_status qvl_base64_decode(const char *text, const char *what, uint8_t **bytes, size_t *count,
                             qvl_error *error) {
    *bytes = NULL;
    *count = 0;
    size_t length = strlen(text), digits = 0, used = 0;
    uint8_t *out = qvl_alloc(length / 4 + 1, 3);
    if (!out) return qvl_fail_memory(error, "base64 data", length / 4 + 1, 3);
    uint32_t group = 0;
    const char *at = text;
    for (; *at; at++) {
        int digit = digit_of(*at);
        if (digit < 0 && is_space(*at)) continue;
        if (digit < 0) break;
        group = group << 6 | (uint32_t)digit;
        if (++digits % 4) continue;
        for (int i = 0; i < 3; i++) out[used++] = (uint8_t)(group >> (16 - 8 * i));
        group = 0;
    }
    qvl_status status = check_end(at, text, digits, what, error);
    if (status) {
        qvl_free(out);
        return status;
    }
    size_t rest = digits % 4; /* 2 digits are a byte, 3 are two */
    if (rest >= 2) out[used++] = (uint8_t)(group >> (rest == 2 ? 4 : 10));
    if (rest == 3) out[used++] = (uint8_t)(group >> 2);
    *bytes = out;
    *count = used;
    return QVL_OK;
}

bool qvl_is_data_url(const char *text) {
    return starts_with(text, "data:");
}

qvl_status qvl_data_url_decode(const char *url, const char *what, uint8_t **bytes, size_t *count,
                               qvl_error *error) {
    static const char mark[] = ";base64";
    const char *comma = strchr(url, ',');
    *bytes = NULL;
    *count = 0;
    if (!comma) return qvl_fail(error, QVL_ERROR_FORMAT, "%s has no comma before its data", what);
    size_t length = sizeof mark - 1;
    if ((size_t)(comma - url) < length || !starts_with(comma - length, mark))
        return qvl_fail(error, QVL_ERROR_UNSUPPORTED,
                        "%s is not in base64, the only coding of data URLs qvl reads", what);
    return qvl_base64_decode(comma + 1, what, bytes, count, error);
}
