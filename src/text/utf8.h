/* UTF-8: characters of valid text, and what is none. */
#ifndef QVL_TEXT_UTF8_H
#define QVL_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The character at p, which must be the first byte of one in valid UTF-8; *size is how many bytes it has. */
static inline uint32_t qvl_utf8_get(const uint8_t *p, size_t *size) {
    uint32_t c = p[0];
    if (c < 0x80) {
        *size = 1;
        return c;
    }
    if (c < 0xe0) {
        *size = 2;
        return (c & 0x1fu) << 6 | (p[1] & 0x3fu);
    }
    if (c < 0xf0) {
        *size = 3;
        return (c & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    }
    *size = 4;
    return (c & 0x07u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
}

/* Bytes of the character whose first byte is given. */
static inline size_t qvl_utf8_size(uint8_t first) {
    return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* Writes a code point that is no surrogate; returns how many bytes. */
size_t qvl_utf8_put(uint32_t code, uint8_t bytes[4]);

/* The character before end, not before start, in valid UTF-8: where it begins. */
static inline size_t qvl_utf8_back(const uint8_t *text, size_t end) {
    do end--;
    while ((text[end] & 0xc0) == 0x80);
    return end;
}

/* How many of the first count bytes are whole, valid characters. */
size_t qvl_utf8_valid(const uint8_t *bytes, size_t count);

/* bytes[0..count) begin with no whole character: how many of them one U+FFFD stands for. Those are the bytes that
 * could begin a character, at least one. *cut: a character that only lacks its end. */
size_t qvl_utf8_bad(const uint8_t *bytes, size_t count, bool *cut);

#endif
