#include "text/unicode.h"

#include "base/memory.h"

#include <string.h>

/* ----------------------------------------------------------------------------------------------- the classes */

/* The values of one block; *range is the first range that may reach into it, and moves on. */
static void fill_block(uint32_t first, uint8_t values[QVL_UNICODE_BLOCK], size_t *range) {
    uint32_t end = first + QVL_UNICODE_BLOCK;
    memset(values, 0, QVL_UNICODE_BLOCK);
    while (*range < qvl_unicode_range_count && qvl_unicode_ranges[*range].last < first) ++*range;
    for (size_t i = *range; i < qvl_unicode_range_count && qvl_unicode_ranges[i].first < end; i++) {
        const qvl_unicode_range *r = &qvl_unicode_ranges[i];
        uint32_t from = r->first > first ? r->first : first, to = r->last + 1 < end ? r->last + 1 : end;
        memset(values + (from - first), r->value, to - from);
    }
}

static bool is_uniform(const uint8_t values[QVL_UNICODE_BLOCK]) {
    return memcmp(values, values + 1, QVL_UNICODE_BLOCK - 1) == 0;
}

qvl_status qvl_unicode_open(qvl_unicode *unicode, qvl_error *error) {
    uint16_t uniform[256];
    uint8_t values[QVL_UNICODE_BLOCK];
    const uint32_t blocks = QVL_UNICODE_LIMIT / QVL_UNICODE_BLOCK;
    memset(uniform, 0xff, sizeof uniform);
    *unicode = (qvl_unicode){0};
    /* A range ends in at most two blocks that are not uniform. */
    size_t capacity = 2 * qvl_unicode_range_count + 256, used = 0, range = 0;
    unicode->values = qvl_alloc(capacity, QVL_UNICODE_BLOCK);
    if (!unicode->values) return qvl_fail_memory(error, "Unicode classes", capacity, QVL_UNICODE_BLOCK);
    for (uint32_t b = 0; b < blocks; b++) {
        fill_block(b * QVL_UNICODE_BLOCK, values, &range);
        bool alike = is_uniform(values);
        if (alike && uniform[values[0]] != UINT16_MAX) {
            unicode->index[b] = uniform[values[0]];
            continue;
        }
        memcpy(unicode->values + used * QVL_UNICODE_BLOCK, values, QVL_UNICODE_BLOCK);
        if (alike) uniform[values[0]] = (uint16_t)used;
        unicode->index[b] = (uint16_t)used++;
    }
    return QVL_OK;
}

void qvl_unicode_close(qvl_unicode *unicode) {
    qvl_free(unicode->values);
    *unicode = (qvl_unicode){0};
}

/* ----------------------------------------------------------------------------------------------------- UTF-8 */

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
