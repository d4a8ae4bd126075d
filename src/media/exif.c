#include "media/exif.h"

#include <stdbool.h>
#include <string.h>

enum { TAG_ORIENTATION = 0x0112, ENTRY_BYTES = 12 };
enum { TYPE_BYTE = 1, TYPE_SHORT = 3, TYPE_LONG = 4, TYPE_IFD = 13, TYPE_LONG8 = 16 };

static uint32_t number(const uint8_t *bytes, int size, bool little) {
    uint32_t value = 0;
    for (int i = 0; i < size; i++) value = value << 8 | bytes[little ? size - 1 - i : i];
    return value;
}

static int known_or_1(uint32_t value) {
    return value >= 1 && value <= 8 ? (int)value : 1;
}

/* An entry of a directory: tag, type, count, and up to four bytes of value. 0: it says nothing, as its type is
 * unknown or it has no values. 1: also anything else than an orientation. */
static int entry_orientation(const uint8_t *entry, bool little) {
    uint32_t type = number(entry + 2, 2, little), values = number(entry + 4, 4, little);
    if (type < TYPE_BYTE || (type > TYPE_IFD && type != TYPE_LONG8) || values == 0) return 0;
    if ((type != TYPE_SHORT && type != TYPE_LONG) || values != 1) return 1;
    return known_or_1(number(entry + 8, type == TYPE_SHORT ? 2 : 4, little));
}

/* 0: no such tag. 1 too where the header is malformed: Pillow looks no further then. */
static int exif_orientation(const uint8_t *bytes, size_t count) {
    while (count >= 6 && memcmp(bytes, "Exif\0\0", 6) == 0) {
        bytes += 6;
        count -= 6;
    }
    if (count < 8) return count > 0;
    if (memcmp(bytes, "II+\0", 4) == 0 || memcmp(bytes, "MM\0+", 4) == 0) return 0; /* a BigTIFF */
    bool little = memcmp(bytes, "II*\0", 4) == 0;
    if (!little && memcmp(bytes, "MM\0*", 4) != 0) return 1;
    size_t at = number(bytes + 4, 4, little);
    if (at > count - 2) return 0;
    size_t entries = number(bytes + at, 2, little);
    at += 2;
    int orientation = 0;
    for (size_t i = 0; i < entries && !orientation && count - at >= ENTRY_BYTES; i++, at += ENTRY_BYTES)
        if (number(bytes + at, 2, little) == TAG_ORIENTATION) orientation = entry_orientation(bytes + at, little);
    return orientation;
}

/* An attribute or an element, the first that holds a digit; 0: none. */
static int xmp_orientation(const uint8_t *bytes, size_t count) {
    static const char name[] = "tiff:Orientation";
    const size_t length = sizeof name - 1;
    for (size_t i = 0; i + length + 2 <= count; i++) {
        if (memcmp(bytes + i, name, length) != 0) continue;
        const uint8_t *next = bytes + i + length, *end = bytes + count;
        if (next[0] == '=' && next[1] == '"')
            next += 2;
        else if (next[0] == '>')
            next += 1;
        else
            continue;
        if (next < end && *next >= '0' && *next <= '9') return known_or_1(*next - '0');
    }
    return 0;
}

int qvl_orientation_of(const qvl_metadata *m) {
    int orientation = exif_orientation(m->exif, m->exif_count);
    if (!orientation) orientation = xmp_orientation(m->xmp, m->xmp_count);
    return orientation ? orientation : 1;
}
