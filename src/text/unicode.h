/* What the reference's regular expressions and normalisation know about each code point, in one byte, and UTF-8. */
#ifndef QVL_TEXT_UNICODE_H
#define QVL_TEXT_UNICODE_H

#include "base/error.h"

/* Bits 0..2: general category as the pre-tokenizer's patterns tell it (\p{L}, \p{M}, \p{N}, \s). */
#define QVL_KIND 0x07
#define QVL_KIND_OTHER 0
#define QVL_KIND_LETTER 1
#define QVL_KIND_MARK 2
#define QVL_KIND_NUMBER 3
#define QVL_KIND_SPACE 4
/* Bits 3..4: the part it has in NFC. */
#define QVL_NFC 0x18
#define QVL_NFC_STARTS 0x00  /* stands as it is; what follows may compose with it */
#define QVL_NFC_INERT 0x08   /* newer than the reference's tables: neither moves nor composes, nor lets others */
#define QVL_NFC_MOVES 0x10   /* has a combining class: sorted among its neighbours, never replaced */
#define QVL_NFC_CHANGES 0x18 /* may be replaced, or compose with what is before it */
/* Bit 5: \w, as single_word of added tokens has it. */
#define QVL_WORD 0x20

typedef struct qvl_unicode_range {
    uint32_t first, last;
    uint8_t value;
} qvl_unicode_range;

/* In order; code points between them have value 0. */
extern const qvl_unicode_range qvl_unicode_ranges[];
extern const size_t qvl_unicode_range_count;

#define QVL_UNICODE_LIMIT 0x110000u
#define QVL_UNICODE_BLOCK 128u

typedef struct qvl_unicode {
    uint16_t index[QVL_UNICODE_LIMIT / QVL_UNICODE_BLOCK];
    uint8_t *values; /* blocks of QVL_UNICODE_BLOCK, the ones that are alike kept once */
} qvl_unicode;

qvl_status qvl_unicode_open(qvl_unicode *unicode, qvl_error *error);
void qvl_unicode_close(qvl_unicode *unicode);

/* code < QVL_UNICODE_LIMIT. */
static inline uint8_t qvl_unicode_value(const qvl_unicode *unicode, uint32_t code) {
    return unicode->values[unicode->index[code / QVL_UNICODE_BLOCK] * QVL_UNICODE_BLOCK + code % QVL_UNICODE_BLOCK];
}

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
