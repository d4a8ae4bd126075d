/* The one thing EXIF says that matters here. */
#ifndef QVL_MEDIA_EXIF_H
#define QVL_MEDIA_EXIF_H

#include <stddef.h>
#include <stdint.h>

/* Orientation, 1..8, of a block of EXIF data: a TIFF header and its first directory, with or without "Exif\0\0"
 * before it. 1 where there is none, or where anything on the way to it is malformed. NULL with 0 bytes is allowed.
 */
int qvl_exif_orientation(const uint8_t *bytes, size_t count);

#endif
