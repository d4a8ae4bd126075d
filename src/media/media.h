/* Bytes to RGB8. media.c tells formats apart by content; one file per decoder; canvas.h is what they draw on. */
#ifndef QVL_MEDIA_MEDIA_H
#define QVL_MEDIA_MEDIA_H

#include "media/canvas.h"

#define QVL_DEFAULT_MAX_PIXELS ((int64_t)178956970)
#define QVL_MAX_FILE_BYTES ((size_t)1 << 30) /* of a file that is read whole */

/* The defaults with what is given (may be NULL), checked; name is for messages. */
qvl_status qvl_media_options_take(const qvl_media_options *given, const char *name, qvl_media_options *own,
                                  qvl_error *error);

#define QVL_READABLE "qvl reads JPEG, PNG, WebP, GIF, BMP, TIFF, and AVIF without alpha"
#define QVL_READABLE_VIDEOS "MP4, QuickTime, Matroska, WebM, AVI, MPEG-TS, MPEG-PS, FLV, Ogg, ASF and IVF"

/* As qvl_image_probe, where a video would have been read too: what is neither is refused as such. */
qvl_status qvl_image_probe_medium(const qvl_input *input, const qvl_media_options *options, qvl_image *image,
                                  qvl_error *error);

/* Decoders: bytes are one whole file. Each reads the header, opens the canvas and, unless the canvas only probes,
 * draws the whole picture. Damage that can touch a pixel is an error, a cut file included; a JPEG may lack its end
 * marker, as Pillow has it. */
qvl_status qvl_jpeg_read(const uint8_t *bytes, size_t count, qvl_canvas *canvas);
qvl_status qvl_png_read(const uint8_t *bytes, size_t count, qvl_canvas *canvas);
qvl_status qvl_webp_read(const uint8_t *bytes, size_t count, qvl_canvas *canvas);
qvl_status qvl_gif_read(const uint8_t *bytes, size_t count, qvl_canvas *canvas);
qvl_status qvl_bmp_read(const uint8_t *bytes, size_t count, qvl_canvas *canvas);
qvl_status qvl_tiff_read(const uint8_t *bytes, size_t count, qvl_canvas *canvas);
qvl_status qvl_avif_read(const uint8_t *bytes, size_t count, qvl_canvas *canvas);

#endif
