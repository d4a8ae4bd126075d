/* AVIF without alpha: the boxes are read by avif_boxes.c, the coded picture by FFmpeg (dav1d), and its colours
 * become RGB here, by the integer arithmetic of libyuv that Pillow's libavif uses: 6 fraction bits, chroma spread
 * bilinearly with weights 9, 3, 3, 1 of 16. FFmpeg's own conversion rounds otherwise. */
#include "base/memory.h"
#include "media/avif_boxes.h"
#include "media/ffmpeg.h"
#include "media/media.h"

#include <string.h>

#include <libavutil/pixdesc.h>

/* What of luma (scaled by 2^16, then shifted) and of chroma goes into each colour, in 64ths. */
typedef struct yuv_matrix {
    int y_scale, y_bias;
    int u_blue, u_green, v_green, v_red;
} yuv_matrix;

typedef struct yuv_picture {
    const AVFrame *frame;
    int64_t width, height, chroma_width, chroma_height;
    int depth, shift_x, shift_y; /* shifts: of chroma */
    bool gray, identity, full_range;
    yuv_matrix matrix;
} yuv_picture;

/* Code points of H.273. */
enum { BT709 = 1, UNSPECIFIED = 2, BT470BG = 5, BT601 = 6, BT2020 = 9, IDENTITY = 0, DERIVED = 12 };

static bool choose_matrix(int matrix, int primaries, bool full_range, yuv_matrix *chosen) {
    static const yuv_matrix bt601[2] = {{18997, -1160, 128, 25, 52, 102}, {16320, 32, 113, 22, 46, 90}};
    static const yuv_matrix bt709[2] = {{18997, -1160, 128, 14, 34, 115}, {16320, 32, 119, 12, 30, 101}};
    static const yuv_matrix bt2020[2] = {{19003, -1160, 128, 12, 42, 107}, {16320, 32, 120, 11, 37, 94}};
    if (matrix == DERIVED) /* from the primaries, which have numbers of their own */
        matrix = primaries == UNSPECIFIED ? BT709 : primaries;
    switch (matrix) {
    case BT709:
        *chosen = bt709[full_range];
        return true;
    case UNSPECIFIED:
    case BT470BG:
    case BT601:
        *chosen = bt601[full_range];
        return true;
    case BT2020:
        *chosen = bt2020[full_range];
        return true;
    default:
        return false;
    }
}

static qvl_status fail_colours(const qvl_canvas *canvas, const char *what, int value) {
    return qvl_fail(canvas->error, QVL_ERROR_UNSUPPORTED, "%.400s: AVIF with %s %d is not supported", canvas->name,
                    what, value);
}

/* Whose rows are laid out how, and what makes them RGB. */
static qvl_status describe(const AVFrame *frame, const qvl_avif_item *item, yuv_picture *p,
                           const qvl_canvas *canvas) {
    const AVPixFmtDescriptor *format = av_pix_fmt_desc_get(frame->format);
    *p = (yuv_picture){.frame = frame, .width = frame->width, .height = frame->height};
    if (!format || (format->nb_components != 1 && format->nb_components != 3) ||
        (format->flags & (AV_PIX_FMT_FLAG_BE | AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_HWACCEL)) ||
        (format->nb_components == 3 && !(format->flags & AV_PIX_FMT_FLAG_PLANAR)))
        return fail_colours(canvas, "pixel format", frame->format);
    p->depth = format->comp[0].depth;
    p->gray = format->nb_components == 1;
    p->shift_x = format->log2_chroma_w;
    p->shift_y = format->log2_chroma_h;
    p->chroma_width = (p->width + (1 << p->shift_x) - 1) >> p->shift_x;
    p->chroma_height = (p->height + (1 << p->shift_y) - 1) >> p->shift_y;
    p->full_range = item->has_colour ? item->full_range : frame->color_range == AVCOL_RANGE_JPEG;
    int matrix = item->has_colour ? item->matrix : (int)frame->colorspace;
    int primaries = item->has_colour ? item->primaries : (int)frame->color_primaries;
    p->identity = matrix == IDENTITY && !p->gray;
    if (p->gray || (p->identity && p->shift_x == 0 && p->shift_y == 0)) return QVL_OK;
    return choose_matrix(matrix, primaries, p->full_range, &p->matrix)
               ? QVL_OK
               : fail_colours(canvas, "colour matrix", matrix);
}

/* A sample of a plane as the file has it. */
static unsigned sample(const yuv_picture *p, int plane, int64_t x, int64_t y) {
    const uint8_t *row = p->frame->data[plane] + y * p->frame->linesize[plane];
    if (p->depth == 8) return row[x];
    uint16_t value;
    memcpy(&value, row + 2 * x, 2);
    return value;
}

/* A row of a plane in 8 bits, of which count are wanted: in the frame itself, or in buffer. */
static const uint8_t *row8(const yuv_picture *p, int plane, int64_t y, int64_t count, uint8_t *buffer) {
    if (p->depth == 8) return p->frame->data[plane] + y * p->frame->linesize[plane];
    for (int64_t x = 0; x < count; x++) {
        unsigned value = sample(p, plane, x, y) >> (p->depth - 8);
        buffer[x] = (uint8_t)(value > 255 ? 255 : value);
    }
    return buffer;
}

/* The chroma samples on both sides of a pixel, along one axis: the nearer one and the other. At the edges, and
 * without subsampling, both are the same. */
static void neighbours(int64_t at, int64_t size, int shift, int64_t chroma_size, int64_t *near, int64_t *far) {
    *near = *far = at >> shift;
    if (shift == 0 || at == 0 || at == size - 1) return;
    *far = *near + (at & 1 ? 1 : -1);
    if (*far > chroma_size - 1) *far = chroma_size - 1;
}

/* buffer: room for two rows. */
static void chroma_row(const yuv_picture *p, int plane, int64_t y, uint8_t *buffer, uint8_t *out) {
    int64_t near_y, far_y;
    neighbours(y, INT64_MAX, p->shift_y, p->chroma_height, &near_y, &far_y);
    const uint8_t *near = row8(p, plane, near_y, p->chroma_width, buffer);
    const uint8_t *far = row8(p, plane, far_y, p->chroma_width, buffer + p->width);
    for (int64_t x = 0; x < p->width; x++) {
        int64_t near_x, far_x;
        neighbours(x, p->width, p->shift_x, p->chroma_width, &near_x, &far_x);
        int sum = 9 * near[near_x] + 3 * near[far_x] + 3 * far[near_x] + far[far_x];
        out[x] = (uint8_t)((sum + 8) >> 4);
    }
}

static uint8_t clip(int value) {
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void colour_row(const yuv_matrix *m, int64_t width, const uint8_t *y_row, const uint8_t *u_row,
                       const uint8_t *v_row, uint8_t *rgb) {
    for (int64_t x = 0; x < width; x++, rgb += 3) {
        int luma = (y_row[x] * 257 * m->y_scale >> 16) + m->y_bias;
        int u = u_row[x] - 128, v = v_row[x] - 128;
        rgb[0] = clip((luma + v * m->v_red) >> 6);
        rgb[1] = clip((luma - u * m->u_green - v * m->v_green) >> 6);
        rgb[2] = clip((luma + u * m->u_blue) >> 6);
    }
}

/* Grey, and pictures that are stored as green, blue, red: each sample by itself, in f32 as libavif has it. */
static void plain_row(const yuv_picture *p, int64_t y, uint8_t *rgb) {
    float bias = p->full_range ? 0 : (float)(16 << (p->depth - 8));
    float range = (float)(p->full_range ? (1 << p->depth) - 1 : 219 << (p->depth - 8));
    static const int planes[3] = {2, 0, 1};
    for (int64_t x = 0; x < p->width; x++)
        for (int c = 0; c < 3; c++) {
            float value = ((float)sample(p, p->gray ? 0 : planes[c], x, y) - bias) / range;
            value = value < 0 ? 0 : value > 1 ? 1 : value;
            *rgb++ = (uint8_t)(0.5F + value * 255.0F);
        }
}

static qvl_status draw(const yuv_picture *p, qvl_canvas *canvas) {
    size_t width = (size_t)p->width;
    uint8_t *rgb = qvl_alloc(width, 7);
    if (!rgb) return qvl_fail_memory(canvas->error, "AVIF row", width, 7);
    uint8_t *u_row = rgb + 3 * width, *v_row = rgb + 4 * width, *buffer = rgb + 5 * width;
    for (int64_t y = 0; y < p->height; y++) {
        if (p->gray || p->identity) {
            plain_row(p, y, rgb);
        } else {
            chroma_row(p, 1, y, buffer, u_row);
            chroma_row(p, 2, y, buffer, v_row);
            colour_row(&p->matrix, p->width, row8(p, 0, y, p->width, buffer), u_row, v_row, rgb);
        }
        qvl_canvas_row(canvas, y, rgb);
    }
    qvl_free(rgb);
    return QVL_OK;
}

/* The coded picture in one piece, padded as FFmpeg wants it. Owner: the caller. NULL: no memory. */
static uint8_t *gather(const qvl_avif_item *item, size_t *count) {
    *count = 0;
    for (size_t i = 0; i < item->extent_count; i++)
        if (!qvl_add_size(*count, item->extents[i].count, count)) return NULL;
    size_t padded;
    if (!qvl_add_size(*count, AV_INPUT_BUFFER_PADDING_SIZE, &padded)) return NULL;
    uint8_t *bytes = qvl_calloc(padded, 1), *p = bytes;
    for (size_t i = 0; bytes && i < item->extent_count; i++) {
        memcpy(p, item->extents[i].bytes, item->extents[i].count);
        p += item->extents[i].count;
    }
    return bytes;
}

qvl_status qvl_avif_read(const uint8_t *bytes, size_t count, qvl_canvas *canvas) {
    qvl_avif_item item;
    qvl_status status = qvl_avif_main_item(bytes, count, canvas, &item);
    canvas->work =
        (size_t)item.width * (size_t)item.height / 4 * item.quarter_bytes + 2 * count; /* two copies of the data */
    if (!status) status = qvl_canvas_open(canvas, "AVIF", item.width, item.height, item.orientation);
    if (status || canvas->probe) return status;
    size_t coded_count;
    uint8_t *coded = gather(&item, &coded_count);
    if (!coded) return qvl_fail_memory(canvas->error, canvas->name, coded_count, 1);
    AVFrame *frame = NULL;
    yuv_picture picture;
    status =
        qvl_ffmpeg_decode(AV_CODEC_ID_AV1, coded, coded_count, item.width, item.height, "AVIF", canvas, &frame);
    if (!status && (frame->width != item.width || frame->height != item.height))
        status = qvl_canvas_damaged(canvas, "AVIF", "its coded picture has another size than its boxes say");
    if (!status) status = describe(frame, &item, &picture, canvas);
    if (!status) status = draw(&picture, canvas);
    av_frame_free(&frame);
    qvl_free(coded);
    return status;
}
