#include "media/video_picture.h"

#include "base/memory.h"

#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>

#include <string.h>

/* libswscale writes whole groups of pixels: rows have room for them and begin where it likes them to. */
enum { ROW_ALIGN = 64, ROW_SPARE = 64 };

/* The formats of JPEG are the others in full range, and libswscale warns of them. */
static enum AVPixelFormat plain_format(enum AVPixelFormat format) {
    switch (format) {
    case AV_PIX_FMT_YUVJ420P:
        return AV_PIX_FMT_YUV420P;
    case AV_PIX_FMT_YUVJ422P:
        return AV_PIX_FMT_YUV422P;
    case AV_PIX_FMT_YUVJ444P:
        return AV_PIX_FMT_YUV444P;
    case AV_PIX_FMT_YUVJ440P:
        return AV_PIX_FMT_YUV440P;
    case AV_PIX_FMT_YUVJ411P:
        return AV_PIX_FMT_YUV411P;
    default:
        return format;
    }
}

void qvl_video_converter_close(qvl_video_converter *converter) {
    sws_freeContext(converter->context);
    qvl_free(converter->pixels);
    *converter = (qvl_video_converter){0};
}

static bool is_for(const qvl_video_converter *converter, const AVFrame *frame) {
    return converter->context && converter->width == frame->width && converter->height == frame->height &&
           converter->format == frame->format && converter->colorspace == (int)frame->colorspace &&
           converter->range == (int)frame->color_range;
}

/* As torchcodec does it: the matrix is the one that the frame names, BT.601 where it names none, and chroma between
 * samples is interpolated with the flag for bicubic, where libswscale interpolates at all. The range is the frame's
 * too, limited where it names none. */
static qvl_status open_converter(qvl_video_converter *converter, const AVFrame *frame, bool keep_alpha,
                                 const qvl_canvas *canvas) {
    qvl_video_converter_close(converter);
    enum AVPixelFormat format = plain_format(frame->format);
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(format);
    if (!descriptor || !sws_isSupportedInput(format))
        return qvl_fail(canvas->error, QVL_ERROR_UNSUPPORTED, "%.400s: frames of the kind %s cannot be converted",
                        canvas->name, descriptor ? descriptor->name : "unknown");
    converter->alpha = keep_alpha && descriptor->flags & (AV_PIX_FMT_FLAG_ALPHA | AV_PIX_FMT_FLAG_PAL);
    int channels = converter->alpha ? 4 : 3;
    converter->stride = (channels * frame->width + ROW_SPARE + ROW_ALIGN - 1) / ROW_ALIGN * ROW_ALIGN;
    converter->pixels = qvl_alloc((size_t)frame->height, (size_t)converter->stride);
    converter->context =
        sws_getContext(frame->width, frame->height, format, frame->width, frame->height,
                       converter->alpha ? AV_PIX_FMT_RGBA : AV_PIX_FMT_RGB24, SWS_BICUBIC, NULL, NULL, NULL);
    if (!converter->pixels || !converter->context)
        return qvl_fail_memory(canvas->error, canvas->name, (size_t)frame->height, (size_t)converter->stride);
    bool full = frame->color_range == AVCOL_RANGE_JPEG || format != frame->format;
    const int *matrix = sws_getCoefficients((int)frame->colorspace);
    sws_setColorspaceDetails(converter->context, matrix, full, matrix, 1, 0, 1 << 16, 1 << 16);
    converter->width = frame->width;
    converter->height = frame->height;
    converter->format = frame->format;
    converter->colorspace = (int)frame->colorspace;
    converter->range = (int)frame->color_range;
    return QVL_OK;
}

qvl_status qvl_video_convert(qvl_video_converter *converter, const AVFrame *frame, qvl_canvas *canvas) {
    bool keep_alpha = canvas->options->alpha != QVL_ALPHA_DROP;
    if (!is_for(converter, frame)) {
        qvl_status status = open_converter(converter, frame, keep_alpha, canvas);
        if (status) return status;
    }
    uint8_t *planes[4] = {converter->pixels};
    int strides[4] = {converter->stride};
    const uint8_t *const *from = (const uint8_t *const *)frame->data;
    int rows = sws_scale(converter->context, from, frame->linesize, 0, frame->height, planes, strides);
    if (rows != frame->height)
        return qvl_fail(canvas->error, QVL_ERROR_FORMAT, "%.400s: a frame cannot be converted to RGB",
                        canvas->name);
    for (int y = 0; y < frame->height; y++) {
        uint8_t *row = converter->pixels + (ptrdiff_t)y * converter->stride;
        if (converter->alpha) qvl_canvas_flatten(canvas, row, frame->width);
        qvl_canvas_row(canvas, y, row);
    }
    return QVL_OK;
}
