#include "media/canvas.h"

#include "base/memory.h"
#include "media/media.h"

#include <string.h>

/* Turning one row into a column touches a cache line for each pixel. Several rows together fill the lines. */
#define BAND_ROWS 16

/* EXIF orientation 1..8: what happens to a stored row and column to make the picture upright. */
static const struct {
    bool sideways;                /* a stored row becomes a column */
    bool from_right, from_bottom; /* the stored x (y) runs towards smaller coordinates of the result */
} turns[9] = {
    [1] = {false, false, false}, [2] = {false, true, false}, [3] = {false, true, true}, [4] = {false, false, true},
    [5] = {true, false, false},  [6] = {true, false, true},  [7] = {true, true, true},  [8] = {true, true, false},
};

/* Where stored pixels go. */
static void aim(qvl_canvas *canvas, int turn) {
    const qvl_image *image = &canvas->image;
    ptrdiff_t row = 3 * (ptrdiff_t)image->width;
    canvas->step_x = turns[turn].sideways ? row : 3;
    canvas->step_y = turns[turn].sideways ? 3 : row;
    canvas->origin = image->pixels;
    if (turns[turn].from_right) {
        canvas->origin += (image->stored.width - 1) * canvas->step_x;
        canvas->step_x = -canvas->step_x;
    }
    if (turns[turn].from_bottom) {
        canvas->origin += (image->stored.height - 1) * canvas->step_y;
        canvas->step_y = -canvas->step_y;
    }
}

qvl_status qvl_canvas_open(qvl_canvas *canvas, const char *format, int64_t width, int64_t height,
                           int orientation) {
    const char *name = canvas->name;
    int64_t limit = canvas->options->max_pixels ? canvas->options->max_pixels : QVL_DEFAULT_MAX_PIXELS, pixels;
    if (width < 1 || height < 1)
        return qvl_fail(canvas->error, QVL_ERROR_FORMAT, "%.400s: damaged %s: its size is %lld x %lld", name,
                        format, (long long)width, (long long)height);
    if (!qvl_mul_i64(width, height, &pixels) || pixels > limit)
        return qvl_fail(canvas->error, QVL_ERROR_LIMIT,
                        "%.400s: size is %lld x %lld pixels; the limit is %lld pixels", name, (long long)width,
                        (long long)height, (long long)limit);
    if (orientation < 1 || orientation > 8) orientation = 1;
    bool apply = canvas->options->orientation == QVL_ORIENTATION_APPLY || canvas->upright;
    int turn = apply ? orientation : 1;
    qvl_image *image = &canvas->image;
    bool sideways = turns[turn].sideways;
    *image = (qvl_image){.width = sideways ? height : width, .height = sideways ? width : height};
    image->stored =
        (qvl_stored){format,      width,     height,
                     orientation, turn != 1, canvas->work > INT64_MAX ? INT64_MAX : (int64_t)canvas->work};
    if (canvas->probe) return QVL_OK;
    image->pixels = qvl_alloc((size_t)pixels, 3);
    if (!image->pixels) return qvl_fail_memory(canvas->error, name, (size_t)pixels, 3);
    if (sideways) {
        canvas->band = qvl_alloc((size_t)width, 3 * BAND_ROWS);
        if (!canvas->band) return qvl_fail_memory(canvas->error, name, (size_t)width, 3 * BAND_ROWS);
    }
    aim(canvas, turn);
    return QVL_OK;
}

/* Rows first .. first + rows - 1 are in the band: each of its columns is a run of pixels of the result. */
static void turn_band(qvl_canvas *canvas, int64_t first, int64_t rows) {
    int64_t width = canvas->image.stored.width;
    for (int64_t x = 0; x < width; x++) {
        const uint8_t *in = canvas->band + 3 * x;
        uint8_t *out = canvas->origin + x * canvas->step_x + first * canvas->step_y;
        for (int64_t k = 0; k < rows; k++, in += 3 * width, out += canvas->step_y) memcpy(out, in, 3);
    }
}

void qvl_canvas_row(qvl_canvas *canvas, int64_t y, const uint8_t *rgb) {
    const qvl_stored *stored = &canvas->image.stored;
    if (!canvas->band) {
        qvl_canvas_pixels(canvas, 0, y, 1, stored->width, rgb);
        return;
    }
    int64_t k = y % BAND_ROWS;
    size_t row = 3 * (size_t)stored->width;
    memcpy(canvas->band + (size_t)k * row, rgb, row);
    if (k == BAND_ROWS - 1 || y == stored->height - 1) turn_band(canvas, y - k, k + 1);
}

void qvl_canvas_pixels(qvl_canvas *canvas, int64_t x, int64_t y, int64_t dx, int64_t count, const uint8_t *rgb) {
    uint8_t *out = canvas->origin + x * canvas->step_x + y * canvas->step_y;
    ptrdiff_t step = dx * canvas->step_x;
    if (step == 3)
        memcpy(out, rgb, 3 * (size_t)count);
    else
        for (int64_t i = 0; i < count; i++, rgb += 3, out += step) memcpy(out, rgb, 3);
}

uint8_t *qvl_canvas_plain(const qvl_canvas *canvas) {
    return canvas->image.stored.oriented ? NULL : canvas->image.pixels;
}

/* Pillow's paste of a value on a background with the alpha as mask. */
static uint8_t paste(unsigned value, unsigned background, unsigned alpha) {
    unsigned t = value * alpha + background * (255 - alpha) + 128;
    return (uint8_t)(((t >> 8) + t) >> 8);
}

void qvl_canvas_flatten(const qvl_canvas *canvas, uint8_t *rgba, int64_t count) {
    const uint8_t *ground = canvas->options->alpha_colour;
    bool drop = canvas->options->alpha == QVL_ALPHA_DROP;
    uint8_t *rgb = rgba;
    for (int64_t i = 0; i < count; i++, rgba += 4, rgb += 3) {
        unsigned alpha = drop ? 255 : rgba[3];
        for (int c = 0; c < 3; c++) rgb[c] = alpha == 255 ? rgba[c] : paste(rgba[c], ground[c], alpha);
    }
}

uint8_t qvl_canvas_gray16(const qvl_canvas *canvas, unsigned value) {
    if (canvas->options->gray16 == QVL_GRAY16_SCALE) return (uint8_t)(value >> 8);
    return (uint8_t)(value > 255 ? 255 : value);
}

void qvl_cmyk_to_rgb(const uint8_t cmyk[4], uint8_t rgb[3]) {
    int light = 255 - cmyk[3];
    for (int c = 0; c < 3; c++) {
        int t = cmyk[c] * light + 128;
        int value = light - (((t >> 8) + t) >> 8);
        rgb[c] = (uint8_t)(value < 0 ? 0 : value);
    }
}

qvl_status qvl_canvas_damaged(const qvl_canvas *canvas, const char *format, const char *what) {
    return qvl_fail(canvas->error, QVL_ERROR_FORMAT, "%.400s: damaged %s: %s", canvas->name, format, what);
}

qvl_status qvl_canvas_unsupported(const qvl_canvas *canvas, const char *format) {
    return qvl_fail(canvas->error, QVL_ERROR_UNSUPPORTED, "%.400s: %s is not supported; " QVL_READABLE "%s",
                    canvas->name, format, canvas->or_video ? "; of videos " QVL_READABLE_VIDEOS : "");
}

qvl_status qvl_canvas_no_memory(const qvl_canvas *canvas, const char *format) {
    return qvl_fail(canvas->error, QVL_ERROR_MEMORY,
                    "%.400s: out of memory in %s decoding, which needs %zu bytes beside the file and the picture",
                    canvas->name, format, canvas->work);
}

void qvl_canvas_close(qvl_canvas *canvas, bool keep) {
    qvl_free(canvas->band);
    canvas->band = NULL;
    if (!keep) qvl_image_free(&canvas->image);
}
