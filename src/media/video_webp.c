#include "media/video_webp.h"

#include "base/memory.h"

#include <webp/demux.h>

#include <string.h>

struct qvl_webp_clip {
    WebPData data;
    WebPAnimDecoder *decoder; /* made when the first frame is asked for: it takes two canvases */
    int64_t next;             /* the frame it gives next */
    uint8_t *pixels;          /* its own, RGBA: frame next - 1 */
    uint8_t *row;
};

enum { FLAGS_AT = 20, ANIMATION = 2 };

bool qvl_webp_is_animated(const uint8_t *head, size_t count) {
    return count > FLAGS_AT && memcmp(head, "RIFF", 4) == 0 && memcmp(head + 8, "WEBPVP8X", 8) == 0 &&
           head[FLAGS_AT] & ANIMATION;
}

static qvl_status take_times(const WebPDemuxer *demuxer, const char *name, qvl_numbers *times, int64_t *end,
                             qvl_error *error) {
    WebPIterator frame;
    qvl_status status = QVL_OK;
    *end = 0;
    if (!WebPDemuxGetFrame(demuxer, 1, &frame))
        return qvl_fail(error, QVL_ERROR_FORMAT, "%.400s: damaged WebP: it holds no frame", name);
    do {
        if (!qvl_numbers_push(times, *end))
            status = qvl_fail_memory(error, name, (size_t)times->count, sizeof *end);
        *end += frame.duration;
    } while (!status && WebPDemuxNextFrame(&frame));
    WebPDemuxReleaseIterator(&frame);
    return status;
}

qvl_status qvl_webp_clip_open(const uint8_t *bytes, size_t count, const char *name, qvl_numbers *times,
                              int64_t *end, int64_t *width, int64_t *height, qvl_webp_clip **clip,
                              qvl_error *error) {
    *clip = NULL;
    WebPData data = {bytes, count};
    WebPDemuxer *demuxer = WebPDemux(&data);
    if (!demuxer)
        return qvl_fail(error, QVL_ERROR_FORMAT, "%.400s: damaged WebP: its chunks are malformed or cut", name);
    *width = WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_WIDTH);
    *height = WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_HEIGHT);
    qvl_status status = take_times(demuxer, name, times, end, error);
    WebPDemuxDelete(demuxer);
    if (status) return status;
    *clip = qvl_calloc(1, sizeof **clip);
    if (!*clip) return qvl_fail_memory(error, name, 1, sizeof **clip);
    (*clip)->data = data;
    return QVL_OK;
}

static qvl_status open_decoder(qvl_webp_clip *clip, const qvl_canvas *canvas) {
    size_t width = (size_t)canvas->image.stored.width;
    WebPAnimDecoderOptions options;
    if (!WebPAnimDecoderOptionsInit(&options))
        return qvl_fail(canvas->error, QVL_ERROR_UNSUPPORTED, "libwebp has another ABI than qvl was built for");
    options.color_mode = MODE_RGBA;
    options.use_threads = 0;
    clip->row = qvl_alloc(width, 4);
    clip->decoder = clip->row ? WebPAnimDecoderNew(&clip->data, &options) : NULL;
    return clip->decoder ? QVL_OK : qvl_canvas_no_memory(canvas, "WebP");
}

qvl_status qvl_webp_clip_draw(qvl_webp_clip *clip, int64_t frame, qvl_canvas *canvas) {
    if (!clip->decoder) {
        qvl_status status = open_decoder(clip, canvas);
        if (status) return status;
    }
    for (int end; clip->next <= frame; clip->next++)
        if (!WebPAnimDecoderGetNext(clip->decoder, &clip->pixels, &end))
            return qvl_canvas_damaged(canvas, "WebP", "a frame cannot be decoded");
    size_t row = 4 * (size_t)canvas->image.stored.width;
    for (int64_t y = 0; y < canvas->image.stored.height; y++) {
        memcpy(clip->row, clip->pixels + (size_t)y * row, row);
        qvl_canvas_flatten(canvas, clip->row, canvas->image.stored.width);
        qvl_canvas_row(canvas, y, clip->row);
    }
    return QVL_OK;
}

void qvl_webp_clip_close(qvl_webp_clip **clip) {
    if (!*clip) return;
    WebPAnimDecoderDelete((*clip)->decoder);
    qvl_free((*clip)->row);
    qvl_free(*clip);
    *clip = NULL;
}
