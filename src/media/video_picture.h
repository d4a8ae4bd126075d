/* A decoded frame as RGB8, by libswscale. */
#ifndef QVL_MEDIA_VIDEO_PICTURE_H
#define QVL_MEDIA_VIDEO_PICTURE_H

#include "media/canvas.h"

#include <libavutil/frame.h>

typedef struct qvl_video_converter {
    struct SwsContext *context;
    int width, height, format, colorspace, range; /* that it is for */
    bool alpha;                                   /* it makes RGBA */
    uint8_t *pixels;                              /* a whole frame, rows `stride` apart */
    int stride;
} qvl_video_converter;

/* Draws the frame on a canvas that is open for its size. */
qvl_status qvl_video_convert(qvl_video_converter *converter, const AVFrame *frame, qvl_canvas *canvas);
/* Accepts a zeroed converter. */
void qvl_video_converter_close(qvl_video_converter *converter);

#endif
