#include "text/unicode.h"

#include "base/memory.h"

#include <string.h>

typedef struct range {
    uint32_t first, last;
    uint8_t value;
} range;

static range range_at(size_t i) {
    const uint32_t *r = &qvl_unicode_ranges[3 * i];
    return (range){r[0], r[1], (uint8_t)r[2]};
}

/* The values of one block; *reached is the first range that may reach into it, and moves on. */
static void fill_block(uint32_t first, uint8_t values[QVL_UNICODE_BLOCK], size_t *reached) {
    uint32_t end = first + QVL_UNICODE_BLOCK;
    memset(values, 0, QVL_UNICODE_BLOCK);
    while (*reached < qvl_unicode_range_count && range_at(*reached).last < first) ++*reached;
    for (size_t i = *reached; i < qvl_unicode_range_count && range_at(i).first < end; i++) {
        range r = range_at(i);
        uint32_t from = r.first > first ? r.first : first, to = r.last + 1 < end ? r.last + 1 : end;
        memset(values + (from - first), r.value, to - from);
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
    size_t capacity = 2 * qvl_unicode_range_count + 256, used = 0, reached = 0;
    unicode->values = qvl_alloc(capacity, QVL_UNICODE_BLOCK);
    if (!unicode->values) return qvl_fail_memory(error, "Unicode classes", capacity, QVL_UNICODE_BLOCK);
    for (uint32_t b = 0; b < blocks; b++) {
        fill_block(b * QVL_UNICODE_BLOCK, values, &reached);
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
