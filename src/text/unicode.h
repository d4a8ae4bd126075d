/* What the reference's regular expressions and normalisation know about each code point, in one byte. */
#ifndef QVL_TEXT_UNICODE_H
#define QVL_TEXT_UNICODE_H

#include "base/error.h"
#include "text/utf8.h"

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

/* Three numbers for each range: the first and the last code point, and the value. In order; code points between them
 * have value 0. The numbers of values above are also in tools/oracle/make_unicode_tables.py. */
extern const uint32_t qvl_unicode_ranges[];
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
    return unicode
        ->values[unicode->index[code / QVL_UNICODE_BLOCK] * QVL_UNICODE_BLOCK + code % QVL_UNICODE_BLOCK];
}

#endif
