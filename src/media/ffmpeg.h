/* The one way into FFmpeg's decoders: a coded picture in, a frame out, nothing printed. */
#ifndef QVL_MEDIA_FFMPEG_H
#define QVL_MEDIA_FFMPEG_H

#include "media/canvas.h"

#include <libavcodec/avcodec.h>

/* bytes: count bytes of one coded picture with AV_INPUT_BUFFER_PADDING_SIZE zeros behind them. width, height: the
 * size it should have; a larger one is refused, a smaller one is the caller's to find. format is for messages.
 * Owner of *frame: the caller, av_frame_free. */
qvl_status qvl_ffmpeg_decode(enum AVCodecID codec, const uint8_t *bytes, size_t count, int64_t width,
                             int64_t height, const char *format, const qvl_canvas *canvas, AVFrame **frame);

#endif
