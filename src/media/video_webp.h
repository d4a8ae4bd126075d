/* An animated WebP as a clip, by libwebp's own compositor. FFmpeg reads none. */
#ifndef QVL_MEDIA_VIDEO_WEBP_H
#define QVL_MEDIA_VIDEO_WEBP_H

#include "media/canvas.h"
#include "media/video_index.h"

typedef struct qvl_webp_clip qvl_webp_clip;

/* Whether these first bytes are an animated WebP's. */
bool qvl_webp_is_animated(const uint8_t *head, size_t count);
/* bytes: the whole file, which must stay. Reads sizes and times, in thousandths of a second, with their end.
 * *clip belongs to the caller: qvl_webp_clip_close. */
qvl_status qvl_webp_clip_open(const uint8_t *bytes, size_t count, const char *name, qvl_numbers *times,
                              int64_t *end, int64_t *width, int64_t *height, qvl_webp_clip **clip,
                              qvl_error *error);
/* Draws a frame; frames must not go down. The canvas is open for the clip's size. */
qvl_status qvl_webp_clip_draw(qvl_webp_clip *clip, int64_t frame, qvl_canvas *canvas);
void qvl_webp_clip_close(qvl_webp_clip **clip);

#endif
