#include "text/utf8.h"

#include <string.h>

size_t qvl_utf8_put(uint32_t code, uint8_t bytes[4]) {
    if (code < 0x80) {
        bytes[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        bytes[0] = (uint8_t)(0xc0 | code >> 6);
        bytes[1] = (uint8_t)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        bytes[0] = (uint8_t)(0xe0 | code >> 12);
        bytes[1] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
        bytes[2] = (uint8_t)(0x80 | (code & 0x3f));
        return 3;
    }
    bytes[0] = (uint8_t)(0xf0 | code >> 18);
    bytes[1] = (uint8_t)(0x80 | (code >> 12 & 0x3f));
    bytes[2] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
    bytes[3] = (uint8_t)(0x80 | (code & 0x3f));
    return 4;
}

/* How many bytes at the front belong to one character that may still become valid; *wanted is how many it takes. */
static size_t char_prefix(const uint8_t *bytes, size_t count, size_t *wanted) {
    uint8_t lead = bytes[0], low = 0x80, high = 0xbf;
    *wanted = 1;
    if (lead < 0x80) return 1;
    if (lead < 0xc2 || lead > 0xf4) return 0;
    *wanted = qvl_utf8_size(lead);
    /* The second byte's range keeps out overlong forms, surrogates and what is above U+10FFFF. */
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
    size_t n = 1;
    while (n < *wanted && n < count && bytes[n] >= low && bytes[n] <= high) {
        n++;
        low = 0x80;
        high = 0xbf;
    }
    return n;
}

size_t qvl_utf8_valid(const uint8_t *bytes, size_t count) {
    size_t at = 0, wanted;
    while (at < count) {
        uint64_t eight;
        if (count - at >= 8) {
            memcpy(&eight, bytes + at, 8);
            if (!(eight & 0x8080808080808080u)) {
                at += 8;
                continue;
            }
        }
        size_t n = char_prefix(bytes + at, count - at, &wanted);
        if (n < wanted) return at;
        at += n;
    }
    return at;
}

size_t qvl_utf8_bad(const uint8_t *bytes, size_t count, bool *cut) {
    size_t wanted, n = char_prefix(bytes, count, &wanted);
    *cut = n > 0 && n == count;
    return n ? n : 1;
}
