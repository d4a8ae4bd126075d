/* WebP by libwebp with its defaults, which are Pillow's. Of an animation the first frame is shown where it stands
 * on the canvas; around it the canvas is transparent, or black where the file says that it has no alpha. */
#include "base/memory.h"
#include "media/exif.h"
#include "media/media.h"

#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>

static qvl_status status_of(VP8StatusCode code, qvl_canvas *canvas) {
    switch (code) {
    case VP8_STATUS_OK:
        return QVL_OK;
    case VP8_STATUS_OUT_OF_MEMORY:
        return qvl_canvas_no_memory(canvas, "WebP");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return qvl_fail(canvas->error, QVL_ERROR_UNSUPPORTED,
                        "%.400s: WebP with a feature that libwebp does not know", canvas->name);
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
        return qvl_canvas_damaged(canvas, "WebP", "the file ends before the picture does");
    default:
        return qvl_canvas_damaged(canvas, "WebP", "its data is not what libwebp can decode");
    }
}

static int orientation(const WebPDemuxer *demuxer) {
    WebPChunkIterator exif = {0}, xmp = {0};
    WebPDemuxGetChunk(demuxer, "EXIF", 1, &exif);
    WebPDemuxGetChunk(demuxer, "XMP ", 1, &xmp);
    int found =
        qvl_orientation_of(&(qvl_metadata){exif.chunk.bytes, xmp.chunk.bytes, exif.chunk.size, xmp.chunk.size});
    WebPDemuxReleaseChunkIterator(&exif);
    WebPDemuxReleaseChunkIterator(&xmp);
    return found;
}

/* The frame's pixels to `pixels`, which has room for them: RGBA or RGB by channels. */
static qvl_status decode_frame(const WebPIterator *frame, size_t channels, uint8_t *pixels, qvl_canvas *canvas) {
    size_t stride = (size_t)frame->width * channels, rows = (size_t)frame->height;
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return qvl_fail(canvas->error, QVL_ERROR_UNSUPPORTED, "libwebp has another ABI than qvl was built for");
    config.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA = (WebPRGBABuffer){pixels, (int)stride, rows * stride};
    VP8StatusCode code = WebPDecode(frame->fragment.bytes, frame->fragment.size, &config);
    if (code == VP8_STATUS_OK && (config.output.width != frame->width || config.output.height != frame->height))
        code = VP8_STATUS_BITSTREAM_ERROR;
    WebPFreeDecBuffer(&config.output);
    return status_of(code, canvas);
}

/* Draws the whole canvas: row by row what is around the frame, and the frame's part of the row. */
static void draw(const WebPIterator *frame, size_t channels, const uint8_t *pixels, uint8_t *row,
                 qvl_canvas *canvas) {
    int64_t width = canvas->image.stored.width, height = canvas->image.stored.height;
    size_t frame_row = (size_t)frame->width * channels;
    for (int64_t y = 0; y < height; y++) {
        memset(row, 0, (size_t)width * channels);
        if (y >= frame->y_offset && y < frame->y_offset + frame->height)
            memcpy(row + (size_t)frame->x_offset * channels, pixels + (size_t)(y - frame->y_offset) * frame_row,
                   frame_row);
        if (channels == 4) qvl_canvas_flatten(canvas, row, width);
        qvl_canvas_row(canvas, y, row);
    }
}

/* The frame where it is not decoded in place, libwebp's own picture of lossless data, or its alpha of lossy data. */
static size_t work_bytes(const WebPDemuxer *demuxer, const qvl_canvas *canvas, int turn) {
    WebPIterator frame = {0};
    WebPBitstreamFeatures features = {0};
    size_t pixels = (size_t)WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_WIDTH) *
                    (size_t)WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_HEIGHT);
    bool lossless = true;
    if (WebPDemuxGetFrame(demuxer, 1, &frame) &&
        WebPGetFeatures(frame.fragment.bytes, frame.fragment.size, &features) == VP8_STATUS_OK)
        lossless = features.format == 2;
    WebPDemuxReleaseIterator(&frame);
    bool alpha = WebPDemuxGetI(demuxer, WEBP_FF_FORMAT_FLAGS) & ALPHA_FLAG;
    bool flattened = alpha && canvas->options->alpha != QVL_ALPHA_DROP;
    bool turned = canvas->options->orientation == QVL_ORIENTATION_APPLY && turn != 1;
    return pixels * ((lossless ? 4u : alpha ? 1u : 0u) + (flattened ? 4u : turned ? 3u : 0u));
}

static qvl_status read_frame(const WebPDemuxer *demuxer, const WebPIterator *frame, qvl_canvas *canvas) {
    size_t width = WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_WIDTH);
    size_t height = WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_HEIGHT);
    bool alpha = WebPDemuxGetI(demuxer, WEBP_FF_FORMAT_FLAGS) & ALPHA_FLAG;
    size_t channels = alpha && canvas->options->alpha != QVL_ALPHA_DROP ? 4 : 3;
    size_t pixel_count = (size_t)frame->width * (size_t)frame->height;
    uint8_t *plain = channels == 3 && pixel_count == width * height ? qvl_canvas_plain(canvas) : NULL;
    if (plain) return decode_frame(frame, channels, plain, canvas); /* no second copy of the picture */
    uint8_t *row = qvl_alloc(width, channels), *pixels = qvl_alloc(pixel_count, channels);
    qvl_status status =
        row && pixels ? QVL_OK : qvl_fail_memory(canvas->error, canvas->name, pixel_count, channels);
    if (!status) status = decode_frame(frame, channels, pixels, canvas);
    if (!status) draw(frame, channels, pixels, row, canvas);
    qvl_free(pixels);
    qvl_free(row);
    return status;
}

qvl_status qvl_webp_read(const uint8_t *bytes, size_t count, qvl_canvas *canvas) {
    WebPDemuxState state;
    WebPDemuxer *demuxer = WebPDemuxPartial(&(WebPData){bytes, count}, &state);
    WebPIterator frame = {0};
    qvl_status status = QVL_OK;
    if (state == WEBP_DEMUX_PARSE_ERROR) {
        status = qvl_canvas_damaged(canvas, "WebP", "its chunks are malformed");
        goto done;
    }
    if (!demuxer || state < WEBP_DEMUX_PARSED_HEADER) {
        status = qvl_canvas_damaged(canvas, "WebP", "the file ends before the picture does");
        goto done;
    }
    int turn = orientation(demuxer);
    canvas->work = work_bytes(demuxer, canvas, turn);
    status = qvl_canvas_open(canvas, "WebP", WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_WIDTH),
                             WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_HEIGHT), turn);
    if (status || canvas->probe) goto done;
    if (state != WEBP_DEMUX_DONE || !WebPDemuxGetFrame(demuxer, 1, &frame))
        status = qvl_canvas_damaged(canvas, "WebP", "the file ends before the picture does");
    else
        status = read_frame(demuxer, &frame, canvas);
    WebPDemuxReleaseIterator(&frame);
done:
    WebPDemuxDelete(demuxer);
    return status;
}
