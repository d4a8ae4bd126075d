/* The boxes of an AVIF file that say where the main picture is and how it is to be shown. */
#ifndef QVL_MEDIA_AVIF_BOXES_H
#define QVL_MEDIA_AVIF_BOXES_H

#include "media/canvas.h"

enum { QVL_AVIF_MAX_EXTENTS = 64 };

/* A part of the coded picture, inside the file's bytes. */
typedef struct qvl_avif_extent {
    const uint8_t *bytes;
    size_t count;
} qvl_avif_extent;

typedef struct qvl_avif_item {
    int64_t width, height;
    int quarters;          /* to be turned counter-clockwise ... */
    int mirror;            /* ... and then mirrored: 1: top and bottom, 2: left and right change places */
    int orientation;       /* both as EXIF's value */
    bool alpha;            /* another item is its alpha plane */
    size_t quarter_bytes;  /* of the coded picture's planes, per pixel */
    bool has_colour;       /* the next three are given here, else in the coded picture */
    int primaries, matrix; /* code points of ITU-T H.273 */
    bool full_range;
    char type[5]; /* "av01": a coded picture */
    qvl_avif_extent extents[QVL_AVIF_MAX_EXTENTS];
    size_t extent_count; /* 0: not in the file, which is cut */
} qvl_avif_item;

/* Reads the main item. Of a cut file the extents may be missing and all else there. */
qvl_status qvl_avif_main_item(const uint8_t *bytes, size_t count, const qvl_canvas *canvas, qvl_avif_item *item);

#endif
