#include "media/exif.h"

#include <stdbool.h>
#include <string.h>

enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, TYPE_LONG = 4, ENTRY_BYTES = 12 };

static uint32_t number(const uint8_t *bytes, int size, bool little) {
    uint32_t value = 0;
    for (int i = 0; i < size; i++) value = value << 8 | bytes[little ? size - 1 - i : i];
    return value;
}

/* An entry of a directory: tag, type, count, and up to four bytes of value. */
static int entry_orientation(const uint8_t *entry, bool little) {
    uint32_t type = number(entry + 2, 2, little);
    if ((type != TYPE_SHORT && type != TYPE_LONG) || number(entry + 4, 4, little) != 1) return 1;
    uint32_t value = number(entry + 8, type == TYPE_SHORT ? 2 : 4, little);
    return value >= 1 && value <= 8 ? (int)value : 1;
}

int qvl_exif_orientation(const uint8_t *bytes, size_t count) {
    if (count >= 6 && memcmp(bytes, "Exif\0\0", 6) == 0) {
        bytes += 6;
        count -= 6;
    }
    if (count < 8) return 1;
    bool little = memcmp(bytes, "II*\0", 4) == 0;
    if (!little && memcmp(bytes, "MM\0*", 4) != 0) return 1;
    size_t at = number(bytes + 4, 4, little);
    if (at > count - 2) return 1;
    size_t entries = number(bytes + at, 2, little);
    at += 2;
    for (size_t i = 0; i < entries && count - at >= ENTRY_BYTES; i++, at += ENTRY_BYTES)
        if (number(bytes + at, 2, little) == TAG_ORIENTATION) return entry_orientation(bytes + at, little);
    return 1;
}
