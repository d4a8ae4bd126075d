/* The one thing that matters here of what EXIF and XMP say. */
#ifndef QVL_MEDIA_EXIF_H
#define QVL_MEDIA_EXIF_H

#include <stddef.h>
#include <stdint.h>

/* A file's blocks, NULL with 0 bytes where it has none. EXIF is a TIFF header and its first directory, with or
 * without "Exif\0\0" before it; XMP is text. */
typedef struct qvl_metadata {
    const uint8_t *exif, *xmp;
    size_t exif_count, xmp_count;
} qvl_metadata;

/* 1..8: EXIF's tag if there is one, else XMP's, as in Pillow's getexif. 1 if there is neither, if what there is
 * holds anything else, and if EXIF's header is malformed. */
int qvl_orientation_of(const qvl_metadata *metadata);

#endif
