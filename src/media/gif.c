/* GIF: the first frame where it stands on its canvas. The structure is read here; FFmpeg undoes the compression.
 *
 * FFmpeg draws pixels, and what is wanted are the indices behind them: the colour under a transparent pixel is
 * wanted too, and which index fills the canvas around the frame is decided here, as Pillow does it. So FFmpeg is
 * handed a GIF of the frame alone, with a palette in which colour i is (i, i, i). It starts with a transparent
 * frame and stops drawing, without a word, where the data is damaged: what is still transparent then tells. */
#include "base/memory.h"
#include "media/ffmpeg.h"
#include "media/media.h"

#include <string.h>

enum { HEADER_BYTES = 13, IMAGE_BYTES = 10, EXTENSION = 0x21, IMAGE = 0x2c, TRAILER = 0x3b, CONTROL = 0xf9 };

typedef struct gif_picture {
    int64_t width, height; /* of the canvas */
    const uint8_t *image;  /* the frame's descriptor */
    const uint8_t *data;   /* ... and its compressed indices: the code size, then blocks with their ends */
    size_t data_count;
    int transparent;         /* index, or -1 */
    uint8_t palette[256][4]; /* RGBA */
} gif_picture;

static int64_t number(const uint8_t *bytes) {
    return bytes[0] | bytes[1] << 8;
}

/* Where the blocks that start at `at` end, behind the empty one; 0 if the file ends first. */
static size_t skip_blocks(const uint8_t *bytes, size_t count, size_t at) {
    while (at < count) {
        size_t length = bytes[at++];
        if (length == 0) return at;
        if (length > count - at) break;
        at += length;
    }
    return 0;
}

/* Takes the palette that flags announce, and returns where it ends; 0 if the file ends first. A palette of fewer
 * than 256 colours goes on in black, as Pillow's does. */
static size_t take_palette(gif_picture *gif, uint8_t flags, const uint8_t *bytes, size_t count, size_t at) {
    if (!(flags & 0x80)) return at;
    size_t colours = (size_t)2 << (flags & 7);
    if (count - at < 3 * colours) return 0;
    for (size_t i = 0; i < 256; i++)
        for (size_t c = 0; c < 3; c++) gif->palette[i][c] = i < colours ? bytes[at + 3 * i + c] : 0;
    return at + 3 * colours;
}

/* Reads up to the first frame's descriptor and its palette. Returns what is wrong, or NULL. */
static const char *find_frame(gif_picture *gif, const uint8_t *bytes, size_t count) {
    static const char cut[] = "the file ends before the picture does";
    gif->transparent = -1;
    memset(gif->palette, 255, sizeof gif->palette);
    for (int i = 0; i < 256; i++) memset(gif->palette[i], i, 3);
    if (count < HEADER_BYTES) return cut;
    gif->width = number(bytes + 6);
    gif->height = number(bytes + 8);
    size_t at = take_palette(gif, bytes[10], bytes, count, HEADER_BYTES);
    if (at == 0) return cut;
    while (at < count && bytes[at] != IMAGE) {
        if (bytes[at] == 0) { /* padding that some encoders leave */
            at++;
            continue;
        }
        if (bytes[at] == TRAILER) return "it holds no picture";
        if (bytes[at] != EXTENSION) return "a block of an unknown kind";
        if (count - at >= 7 && bytes[at + 1] == CONTROL && bytes[at + 2] >= 4 && bytes[at + 3] & 1)
            gif->transparent = bytes[at + 6];
        at = count - at > 2 ? skip_blocks(bytes, count, at + 2) : 0;
        if (at == 0) return cut;
    }
    if (count - at < IMAGE_BYTES) return cut;
    gif->image = bytes + at;
    at = take_palette(gif, gif->image[9], bytes, count, at + IMAGE_BYTES);
    if (at == 0) return cut;
    gif->data = bytes + at;
    gif->data_count = count - at;
    if (gif->transparent >= 0) gif->palette[gif->transparent][3] = 0;
    /* A frame that reaches beyond the canvas widens it. */
    int64_t right = number(gif->image + 1) + number(gif->image + 5);
    int64_t bottom = number(gif->image + 3) + number(gif->image + 7);
    if (gif->width < right) gif->width = right;
    if (gif->height < bottom) gif->height = bottom;
    return NULL;
}

/* The frame alone, for FFmpeg. Owner: the caller. */
static uint8_t *write_frame(const gif_picture *gif, size_t *count) {
    *count = HEADER_BYTES + IMAGE_BYTES + 768 + gif->data_count + 1;
    uint8_t *out = qvl_calloc(*count + AV_INPUT_BUFFER_PADDING_SIZE, 1), *p = out;
    if (!out) return NULL;
    memcpy(p, "GIF89a", 6);
    memcpy(p + 6, gif->image + 5, 4); /* the canvas is as large as the frame */
    p += HEADER_BYTES;
    *p = IMAGE;
    memcpy(p + 5, gif->image + 5, 4);
    p[9] = 0x87 | (gif->image[9] & 0x40); /* a palette of 256; interlaced or not */
    p += IMAGE_BYTES;
    for (int i = 0; i < 256; i++, p += 3) memset(p, i, 3);
    memcpy(p, gif->data, gif->data_count);
    p[gif->data_count] = TRAILER;
    return out;
}

/* One row of the canvas as RGBA. `pixels` is FFmpeg's row of the frame, or NULL above and below it. */
static bool draw_row(const gif_picture *gif, const uint8_t *pixels, uint8_t *row) {
    const uint8_t *ground = gif->palette[gif->transparent < 0 ? 0 : gif->transparent];
    for (int64_t x = 0; x < gif->width; x++) memcpy(row + 4 * x, ground, 4);
    if (!pixels) return true;
    int64_t left = number(gif->image + 1), width = number(gif->image + 5);
    for (int64_t x = 0; x < width; x++) {
        uint32_t argb;
        memcpy(&argb, pixels + 4 * x, 4);
        if (argb >> 24 == 0) return false; /* never drawn */
        memcpy(row + 4 * (left + x), gif->palette[argb & 0xff], 4);
    }
    return true;
}

static qvl_status draw(const gif_picture *gif, const AVFrame *frame, qvl_canvas *canvas) {
    int64_t top = number(gif->image + 3), height = number(gif->image + 7);
    uint8_t *row = qvl_alloc((size_t)gif->width, 4);
    if (!row) return qvl_fail_memory(canvas->error, "GIF row", (size_t)gif->width, 4);
    qvl_status status = QVL_OK;
    for (int64_t y = 0; y < gif->height && !status; y++) {
        bool inside = y >= top && y < top + height;
        if (!draw_row(gif, inside ? frame->data[0] + (y - top) * frame->linesize[0] : NULL, row)) {
            status = qvl_canvas_damaged(canvas, "GIF", "its data ends before the picture does");
        } else {
            qvl_canvas_flatten(canvas, row, gif->width);
            qvl_canvas_row(canvas, y, row);
        }
    }
    qvl_free(row);
    return status;
}

qvl_status qvl_gif_read(const uint8_t *bytes, size_t count, qvl_canvas *canvas) {
    gif_picture gif = {0};
    const char *wrong = find_frame(&gif, bytes, count);
    if (wrong) return qvl_canvas_damaged(canvas, "GIF", wrong);
    canvas->work =
        4 * (size_t)(number(gif.image + 5) * number(gif.image + 7)) + count; /* FFmpeg's frame, the copy */
    qvl_status status = qvl_canvas_open(canvas, "GIF", gif.width, gif.height, 1);
    if (status || canvas->probe) return status;
    int64_t width = number(gif.image + 5), height = number(gif.image + 7);
    if (width == 0 || height == 0) return qvl_canvas_damaged(canvas, "GIF", "its first frame is empty");
    size_t end = gif.data_count ? skip_blocks(gif.data, gif.data_count, 1) : 0;
    if (end == 0) return qvl_canvas_damaged(canvas, "GIF", "the file ends before the picture does");
    gif.data_count = end;
    size_t frame_count;
    uint8_t *alone = write_frame(&gif, &frame_count);
    if (!alone) return qvl_fail_memory(canvas->error, canvas->name, frame_count, 1);
    AVFrame *frame = NULL;
    status = qvl_ffmpeg_decode(AV_CODEC_ID_GIF, alone, frame_count, width, height, "GIF", canvas, &frame);
    if (!status && (frame->format != AV_PIX_FMT_RGB32 || frame->width != width || frame->height != height))
        status = qvl_canvas_damaged(canvas, "GIF", "its data cannot be decoded");
    if (!status) status = draw(&gif, frame, canvas);
    av_frame_free(&frame);
    qvl_free(alone);
    return status;
}
