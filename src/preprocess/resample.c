/* Two passes, one per axis, with a uint8 picture between them, as both references do it. The two differ in how
 * weights are rounded to integers (axis_fill) and in which pass is first (vertical_first); one pair of kernels
 * serves both: clip((half + sum of weight * byte) >> precision). The sum fits int32: weights of one output add up
 * to about 2^precision with at most a quarter of that in negative lobes, and precision is at most 22. */
#include "preprocess/resample.h"

#include "base/memory.h"
#include "preprocess/geometry.h"

#include <inttypes.h>
#include <string.h>

#define PRECISION_BITS 22 /* Pillow's, and the most that torch uses */
#define ROWS_PER_TASK 8
#define COLUMNS 256 /* bytes of a row the vertical kernel sums at a time */

/* The weights that make one axis of `out` samples from one of `in`. */
typedef struct axis {
    int64_t in, out, capacity; /* capacity: weights kept per output */
    int precision;
    int64_t *first, *count; /* per output: the samples it reads */
    int32_t *weights;       /* [out, capacity] */
} axis;

static void axis_free(axis *a) {
    qvl_free(a->first);
    qvl_free(a->count);
    qvl_free(a->weights);
    memset(a, 0, sizeof *a);
}

/* Cubic convolution with a = -0.5. The outer piece is evaluated as either reference writes it; the two can differ
 * in the last bit of the double. */
static double cubic(double x, qvl_filter filter) {
    const double a = -0.5;
    if (x < 0) x = -x;
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2)
        return filter == QVL_FILTER_PILLOW ? (((x - 5) * x + 8) * x - 4) * a
                                           : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    return 0;
}

/* The window of output i, and its weights: normalised, at most capacity of them. Shrinking widens the window. */
static void axis_window(const axis *a, qvl_filter filter, int64_t i, int64_t *first, int64_t *count, double *w) {
    double scale = (double)a->in / (double)a->out, stretch = scale < 1 ? 1 : scale;
    double support = 2 * stretch, inverse = 1 / stretch, center = ((double)i + 0.5) * scale;
    int64_t low = (int64_t)(center - support + 0.5), high = (int64_t)(center + support + 0.5);
    if (low < 0) low = 0;
    if (high > a->in) high = a->in;
    double sum = 0;
    for (int64_t k = 0; k < high - low; k++) {
        w[k] = cubic(((double)(k + low) - center + 0.5) * inverse, filter);
        sum += w[k];
    }
    if (sum != 0)
        for (int64_t k = 0; k < high - low; k++) w[k] /= sum;
    *first = low;
    *count = high - low;
}

/* torch: as many fraction bits as keep the largest weight of the axis below 2^15. */
static int torch_precision(double largest) {
    int precision = 0;
    while (precision < PRECISION_BITS && 0.5 + largest * (double)((int64_t)2 << precision) < 32768) precision++;
    return precision;
}

static int32_t quantise(double weight, int precision) {
    double scaled = weight * (double)((int64_t)1 << precision);
    return (int32_t)(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

static void axis_fill(axis *a, qvl_filter filter, double *window) {
    a->precision = PRECISION_BITS;
    if (filter == QVL_FILTER_TORCH) {
        double largest = 0;
        for (int64_t i = 0; i < a->out; i++) {
            axis_window(a, filter, i, &a->first[i], &a->count[i], window);
            for (int64_t k = 0; k < a->count[i]; k++)
                if (window[k] > largest) largest = window[k];
        }
        a->precision = torch_precision(largest);
    }
    for (int64_t i = 0; i < a->out; i++) {
        axis_window(a, filter, i, &a->first[i], &a->count[i], window);
        int32_t *weights = a->weights + i * a->capacity;
        for (int64_t k = 0; k < a->count[i]; k++) weights[k] = quantise(window[k], a->precision);
    }
}

static qvl_status axis_make(axis *a, int64_t in, int64_t out, qvl_filter filter, qvl_error *error) {
    /* ceil(2 * scale) * 2 + 1 without rounding, and never more than there are samples. */
    int64_t widest = in > out ? (2 * in + out - 1) / out * 2 + 1 : 5;
    *a = (axis){.in = in, .out = out, .capacity = widest < in ? widest : in};
    size_t outs = (size_t)out, capacity = (size_t)a->capacity, weights;
    qvl_status status = QVL_OK;
    if (!qvl_mul_size(outs, capacity, &weights))
        return qvl_fail(error, QVL_ERROR_LIMIT, "resize from %" PRId64 " to %" PRId64 " needs too many weights",
                        in, out);
    double *window = qvl_alloc(capacity, sizeof *window);
    a->first = qvl_alloc(outs, sizeof *a->first);
    a->count = qvl_alloc(outs, sizeof *a->count);
    a->weights = qvl_alloc(weights, sizeof *a->weights);
    if (window && a->first && a->count && a->weights) {
        axis_fill(a, filter, window);
    } else {
        status = qvl_fail_memory(error, "resize weights", weights, sizeof *a->weights);
        axis_free(a);
    }
    qvl_free(window);
    return status;
}

static uint8_t clip(int32_t sum, int precision) {
    int32_t value = sum >> precision;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* One pass: rows of `in` to rows of `out`. */
typedef struct pass {
    const axis *axis;
    const uint8_t *in;
    uint8_t *out;
    size_t in_stride, out_stride; /* bytes */
    int64_t rows;                 /* of out */
    int64_t first_row;            /* vertical: the row of the picture that `in` starts at */
} pass;

static void horizontal_row(const axis *a, const uint8_t *restrict in, uint8_t *restrict out) {
    const int32_t half = (int32_t)1 << (a->precision - 1);
    for (int64_t i = 0; i < a->out; i++, out += 3) {
        const int32_t *w = a->weights + i * a->capacity;
        const uint8_t *p = in + 3 * a->first[i];
        int32_t red = half, green = half, blue = half;
        for (int64_t k = 0; k < a->count[i]; k++, p += 3) {
            red += w[k] * p[0];
            green += w[k] * p[1];
            blue += w[k] * p[2];
        }
        out[0] = clip(red, a->precision);
        out[1] = clip(green, a->precision);
        out[2] = clip(blue, a->precision);
    }
}

static void horizontal_task(void *user, int64_t task, int worker) {
    (void)worker;
    const pass *p = user;
    int64_t end = (task + 1) * ROWS_PER_TASK;
    for (int64_t y = task * ROWS_PER_TASK; y < end && y < p->rows; y++)
        horizontal_row(p->axis, p->in + (size_t)y * p->in_stride, p->out + (size_t)y * p->out_stride);
}

/* out[j] for n columns from count rows that start at in, stride apart. */
static void vertical_columns(const uint8_t *restrict in, size_t stride, const int32_t *restrict w, int64_t count,
                             int precision, size_t n, uint8_t *restrict out) {
    int32_t sums[COLUMNS];
    for (size_t j = 0; j < n; j++) sums[j] = (int32_t)1 << (precision - 1);
    for (int64_t k = 0; k < count; k++, in += stride)
        for (size_t j = 0; j < n; j++) sums[j] += w[k] * in[j];
    for (size_t j = 0; j < n; j++) out[j] = clip(sums[j], precision);
}

static void vertical_task(void *user, int64_t task, int worker) {
    (void)worker;
    const pass *p = user;
    const axis *a = p->axis;
    int64_t end = (task + 1) * ROWS_PER_TASK;
    for (int64_t y = task * ROWS_PER_TASK; y < end && y < p->rows; y++) {
        const uint8_t *in = p->in + (size_t)(a->first[y] - p->first_row) * p->in_stride;
        uint8_t *out = p->out + (size_t)y * p->out_stride;
        const int32_t *w = a->weights + y * a->capacity;
        for (size_t x = 0; x < p->out_stride; x += COLUMNS) {
            size_t n = p->out_stride - x < COLUMNS ? p->out_stride - x : COLUMNS;
            vertical_columns(in + x, p->in_stride, w, a->count[y], a->precision, n, out + x);
        }
    }
}

static void horizontal_pass(qvl_pool *pool, pass *p) {
    qvl_pool_run(pool, (p->rows + ROWS_PER_TASK - 1) / ROWS_PER_TASK, horizontal_task, p);
}

static void vertical_pass(qvl_pool *pool, pass *p) {
    qvl_pool_run(pool, (p->rows + ROWS_PER_TASK - 1) / ROWS_PER_TASK, vertical_task, p);
}

/* Every size in between is checked too: the sides of the picture between the passes come from either. */
static bool picture_fits(int64_t width, int64_t height) {
    int64_t pixels, bytes;
    return width <= QVL_MAX_SIDE && height <= QVL_MAX_SIDE && qvl_mul_i64(width, height, &pixels) &&
           qvl_mul_i64(pixels, 3, &bytes);
}

static qvl_status check_sizes(const qvl_image *in, int64_t width, int64_t height, qvl_error *error) {
    if (!in->pixels || in->width < 1 || in->height < 1)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "nothing to resize: the picture is %" PRId64 " x %" PRId64 "%s",
                        in->width, in->height, in->pixels ? "" : " without pixels");
    if (width < 1 || height < 1)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "resize to %" PRId64 " x %" PRId64 "; both sides must be at least 1", width, height);
    if (!picture_fits(in->width, in->height) || !picture_fits(width, height) || !picture_fits(width, in->height) ||
        !picture_fits(in->width, height))
        return qvl_fail(error, QVL_ERROR_LIMIT,
                        "resize from %" PRId64 " x %" PRId64 " to %" PRId64 " x %" PRId64
                        "; sides may have at most %" PRId64 ", a picture less than 2^63 bytes",
                        in->width, in->height, width, height, QVL_MAX_SIDE);
    return QVL_OK;
}

/* Pillow 13 shrinks the height first where that leaves the horizontal pass much less to do. Pillow before 13 and
 * torch always start with the horizontal pass. The order shows in the bytes: the picture between is rounded. */
static bool vertical_first(int64_t in_width, int64_t in_height, int64_t width, int64_t height, qvl_filter filter) {
    int64_t shorter = in_height - height, narrower = in_width - width;
    return filter == QVL_FILTER_PILLOW && shorter > 0 && shorter > 2 * narrower;
}

/* Both passes, through a picture between them that is as small as the order allows. */
static qvl_status two_passes(qvl_pool *pool, const qvl_image *in, const axis *across, const axis *down,
                             bool down_first, uint8_t *result, qvl_error *error) {
    size_t in_stride = (size_t)across->in * 3, stride = (size_t)across->out * 3;
    int64_t last = down->out - 1, first = down->first[0]; /* the rows the vertical pass reads */
    int64_t rows = down_first ? down->out : down->first[last] + down->count[last] - first;
    size_t between_stride = down_first ? in_stride : stride;
    uint8_t *between = qvl_alloc((size_t)rows, between_stride);
    if (!between) return qvl_fail_memory(error, "half resized picture", (size_t)rows, between_stride);
    if (down_first) {
        vertical_pass(pool, &(pass){down, in->pixels, between, in_stride, in_stride, rows, 0});
        horizontal_pass(pool, &(pass){across, between, result, in_stride, stride, rows, 0});
    } else {
        const uint8_t *top = in->pixels + (size_t)first * in_stride;
        horizontal_pass(pool, &(pass){across, top, between, in_stride, stride, rows, 0});
        vertical_pass(pool, &(pass){down, between, result, stride, stride, down->out, first});
    }
    qvl_free(between);
    return QVL_OK;
}

size_t qvl_resample_bytes(int64_t in_width, int64_t in_height, int64_t width, int64_t height, qvl_filter filter) {
    size_t result = 3 * (size_t)width * (size_t)height;
    if (in_width == width || in_height == height) return result;
    bool first = vertical_first(in_width, in_height, width, height, filter);
    return result + 3 * (first ? (size_t)in_width * (size_t)height : (size_t)width * (size_t)in_height);
}

qvl_status qvl_resample(qvl_pool *pool, const qvl_image *in, int64_t width, int64_t height, qvl_filter filter,
                        qvl_image *out, qvl_error *error) {
    memset(out, 0, sizeof *out);
    qvl_status status = check_sizes(in, width, height, error);
    if (status != QVL_OK) return status;
    size_t in_stride = (size_t)in->width * 3, stride = (size_t)width * 3;
    bool wider = width != in->width, taller = height != in->height; /* or narrower, or shorter */
    axis across = {0}, down = {0};
    uint8_t *result = qvl_alloc((size_t)height, stride);
    if (!result) return qvl_fail_memory(error, "resized picture", (size_t)height, stride);
    if (wider) status = axis_make(&across, in->width, width, filter, error);
    if (taller && status == QVL_OK) status = axis_make(&down, in->height, height, filter, error);
    if (status != QVL_OK) goto done;

    if (wider && taller)
        status = two_passes(pool, in, &across, &down, vertical_first(in->width, in->height, width, height, filter),
                            result, error);
    else if (wider)
        horizontal_pass(pool, &(pass){&across, in->pixels, result, in_stride, stride, height, 0});
    else if (taller)
        vertical_pass(pool, &(pass){&down, in->pixels, result, stride, stride, height, 0});
    else
        memcpy(result, in->pixels, (size_t)height * stride);
    if (status != QVL_OK) goto done;
    *out = (qvl_image){.width = width, .height = height, .pixels = result};
    result = NULL;
done:
    qvl_free(result);
    axis_free(&down);
    axis_free(&across);
    return status;
}

qvl_status qvl_resize(const qvl_image *image, int64_t width, int64_t height, qvl_preset preset, int32_t threads,
                      qvl_image *out, qvl_error *error) {
    memset(out, 0, sizeof *out);
    if (!qvl_preset_name(preset))
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "preset is %d; allowed are %d to %d", (int)preset,
                        QVL_PRESET_TRANSFORMERS, QVL_PRESET_MLX);
    qvl_pool *pool = NULL;
    qvl_status status = qvl_pool_open(threads, &pool, error);
    if (status != QVL_OK) return status;
    qvl_filter filter = preset == QVL_PRESET_TRANSFORMERS ? QVL_FILTER_TORCH : QVL_FILTER_PILLOW;
    status = qvl_resample(pool, image, width, height, filter, out, error);
    qvl_pool_close(&pool);
    return status;
}
