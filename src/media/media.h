/* Bytes to RGB8. media.c tells formats apart by content; one file per decoder. */
#ifndef QVL_MEDIA_MEDIA_H
#define QVL_MEDIA_MEDIA_H

#include "base/error.h"

#define QVL_DEFAULT_MAX_PIXELS ((int64_t)178956970)

/* Decoders: bytes are one whole file, name is for messages. The size in the header is checked against max_pixels
 * before anything of the picture's size is allocated. Damage that can touch a pixel is an error, a cut file
 * included; a JPEG may lack its end marker, as Pillow has it. */
qvl_status qvl_jpeg_read(const uint8_t *bytes, size_t count, const char *name, int64_t max_pixels,
                         qvl_image *image, qvl_error *error);
qvl_status qvl_png_read(const uint8_t *bytes, size_t count, const char *name, int64_t max_pixels, qvl_image *image,
                        qvl_error *error);

/* Allocates image->pixels for width x height after checking both against max_pixels. */
qvl_status qvl_image_alloc(int64_t width, int64_t height, int64_t max_pixels, const char *name, qvl_image *image,
                           qvl_error *error);

#endif
