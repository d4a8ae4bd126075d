#include "media/ffmpeg.h"

#include <limits.h>

/* Added to the level of every message of a decoder, which makes it less important than anything that is printed;
 * and together they stay in the one byte that FFmpeg has for levels. Its log level and its callback belong to the
 * whole process and are left alone. */
#define SILENT 128

static qvl_status fail_decoding(int code, const char *format, const qvl_canvas *canvas) {
    if (code == AVERROR(ENOMEM)) return qvl_canvas_no_memory(canvas, format);
    return qvl_canvas_damaged(canvas, format, "its data cannot be decoded");
}

/* Some of FFmpeg's checks of sizes print past the level: none of them may fail. This is their formula, with room
 * for what decoders add for alignment. */
static bool is_size_possible(int64_t width, int64_t height) {
    return width <= INT_MAX / 16 && height <= INT_MAX / 16 && (8 * width + 2048) * (height + 256) < INT_MAX;
}

static qvl_status open_decoder(enum AVCodecID id, int64_t max_pixels, const char *format, const qvl_canvas *canvas,
                               AVCodecContext **context) {
    const AVCodec *codec = avcodec_find_decoder(id);
    if (!codec)
        return qvl_fail(canvas->error, QVL_ERROR_UNSUPPORTED,
                        "%.400s: this FFmpeg was built without a decoder for %s", canvas->name, format);
    *context = avcodec_alloc_context3(codec);
    if (!*context) return fail_decoding(AVERROR(ENOMEM), format, canvas);
    (*context)->log_level_offset = SILENT;
    (*context)->thread_count = 1;
    (*context)->flags = AV_CODEC_FLAG_LOW_DELAY;
    (*context)->err_recognition = AV_EF_EXPLODE | AV_EF_CRCCHECK | AV_EF_BITSTREAM | AV_EF_BUFFER;
    (*context)->max_pixels = max_pixels;
    int code = avcodec_open2(*context, codec, NULL);
    return code < 0 ? fail_decoding(code, format, canvas) : QVL_OK;
}

qvl_status qvl_ffmpeg_decode(enum AVCodecID id, const uint8_t *bytes, size_t count, int64_t width, int64_t height,
                             const char *format, const qvl_canvas *canvas, AVFrame **frame) {
    *frame = NULL;
    if (!is_size_possible(width, height))
        return qvl_fail(canvas->error, QVL_ERROR_LIMIT,
                        "%.400s: %s of %lld x %lld pixels is more than FFmpeg takes", canvas->name, format,
                        (long long)width, (long long)height);
    int64_t max_pixels = (width + 63) / 64 * 64 * height; /* as rows are padded */
    AVCodecContext *context = NULL;
    AVPacket *packet = av_packet_alloc();
    *frame = av_frame_alloc();
    qvl_status status = QVL_OK;
    if (!packet || !*frame)
        status = fail_decoding(AVERROR(ENOMEM), format, canvas);
    else if (count == 0 || count > INT_MAX)
        status = qvl_canvas_damaged(canvas, format, "it holds no coded picture");
    else
        status = open_decoder(id, max_pixels, format, canvas, &context);
    if (!status) {
        packet->data = (uint8_t *)(uintptr_t)bytes; /* is only read */
        packet->size = (int)count;
        packet->flags = AV_PKT_FLAG_KEY;
        int code = avcodec_send_packet(context, packet);
        if (code >= 0) code = avcodec_send_packet(context, NULL); /* no more comes: hand over what there is */
        if (code >= 0) code = avcodec_receive_frame(context, *frame);
        if (code < 0) status = fail_decoding(code, format, canvas);
    }
    if (status) av_frame_free(frame);
    av_packet_free(&packet);
    avcodec_free_context(&context);
    return status;
}
