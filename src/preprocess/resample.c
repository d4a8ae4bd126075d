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

/* The most that the picture between the passes may take. A larger one is made and used up in bands; smaller bands
 * would leave threads without work. */
#define BAND_BYTES ((size_t)32 << 20)

typedef qvl_axis axis;

static void axis_free(axis *a) {
    qvl_free(a->first);
    qvl_free(a->count);
    qvl_free(a->weights);
    qvl_free(a->high);
    qvl_free(a->low);
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

/* Lays the weights out for the kernels of a horizontal pass. */
static qvl_status axis_group(axis *a, qvl_error *error) {
    a->groups = (a->capacity + QVL_TAPS - 1) / QVL_TAPS;
    size_t values;
    if (!qvl_mul_size((size_t)a->out, (size_t)a->groups * QVL_TAP_VALUES, &values))
        return qvl_fail(error, QVL_ERROR_LIMIT, "resize to %" PRId64 " needs too many weights", a->out);
    a->high = qvl_calloc(values, sizeof *a->high);
    if (a->wide) a->low = qvl_calloc(values, sizeof *a->low);
    if (!a->high || (a->wide && !a->low)) return qvl_fail_memory(error, "resize weights", values, sizeof *a->high);
    for (int64_t i = 0; i < a->out; i++)
        for (int64_t k = 0; k < a->count[i]; k++) {
            int32_t w = a->weights[i * a->capacity + k];
            int64_t at = (i * a->groups + k / QVL_TAPS) * QVL_TAP_VALUES + k % QVL_TAPS / 2 * 8 + k % 2;
            for (int channel = 0; channel < 3; channel++) {
                a->high[at + 2 * channel] = (int16_t)(a->wide ? w >> QVL_LOW_BITS : w);
                if (a->wide) a->low[at + 2 * channel] = (int16_t)(w & ((1 << QVL_LOW_BITS) - 1));
            }
        }
    return QVL_OK;
}

static qvl_status axis_make(axis *a, int64_t in, int64_t out, qvl_filter filter, bool horizontal,
                            qvl_error *error) {
    /* ceil(2 * scale) * 2 + 1 without rounding, and never more than there are samples. */
    int64_t widest = in > out ? (2 * in + out - 1) / out * 2 + 1 : 5;
    *a = (axis){.in = in, .out = out, .capacity = widest < in ? widest : in, .wide = filter == QVL_FILTER_PILLOW};
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
        if (horizontal) status = axis_group(a, error);
    } else {
        status = qvl_fail_memory(error, "resize weights", weights, sizeof *a->weights);
    }
    if (status) axis_free(a);
    qvl_free(window);
    return status;
}

/* One pass: rows of `in` to rows of `out`. */
typedef struct pass {
    const qvl_resample_kernels *kernels;
    const axis *axis;
    const uint8_t *in;
    uint8_t *out;
    size_t in_stride, out_stride; /* bytes */
    int64_t rows;                 /* of out */
    int64_t first_row;            /* vertical: the row of the picture that `in` starts at, */
    int64_t first_out;            /* and the output that `out` starts at */
} pass;

static void horizontal_task(void *user, int64_t task, int worker) {
    (void)worker;
    const pass *p = user;
    int64_t y = task * ROWS_PER_TASK, rows = p->rows - y < ROWS_PER_TASK ? p->rows - y : ROWS_PER_TASK;
    const uint8_t *end = p->in + (size_t)p->rows * p->in_stride;
    p->kernels->horizontal(p->axis, rows, p->in + (size_t)y * p->in_stride, p->in_stride, end,
                           p->out + (size_t)y * p->out_stride, p->out_stride);
}

static void vertical_task(void *user, int64_t task, int worker) {
    (void)worker;
    const pass *p = user;
    int64_t end = (task + 1) * ROWS_PER_TASK;
    for (int64_t y = task * ROWS_PER_TASK; y < end && y < p->rows; y++) {
        int64_t i = p->first_out + y;
        const uint8_t *in = p->in + (size_t)(p->axis->first[i] - p->first_row) * p->in_stride;
        p->kernels->vertical(p->axis, i, in, p->in_stride, p->out_stride, p->out + (size_t)y * p->out_stride);
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

static qvl_status vertical_then_horizontal(qvl_pool *pool, const qvl_resample_kernels *kernels,
                                           const qvl_image *in, const axis *across, const axis *down,
                                           uint8_t *result, qvl_error *error) {
    size_t in_stride = (size_t)across->in * 3, stride = (size_t)across->out * 3, rows = (size_t)down->out;
    uint8_t *between = qvl_alloc(rows, in_stride);
    if (!between) return qvl_fail_memory(error, "half resized picture", rows, in_stride);
    vertical_pass(pool, &(pass){kernels, down, in->pixels, between, in_stride, in_stride, down->out, 0, 0});
    horizontal_pass(pool, &(pass){kernels, across, between, result, in_stride, stride, down->out, 0, 0});
    qvl_free(between);
    return QVL_OK;
}

/* How many outputs of the vertical pass are made at a time, so that the rows they read stay within BAND_BYTES. */
static int64_t band_outputs(int64_t in, int64_t out, size_t stride) {
    double rows = (double)(BAND_BYTES / stride), rows_per_output = in > out ? (double)in / (double)out : 1;
    double outputs = (rows - 4 * rows_per_output) / rows_per_output; /* a window reaches beyond on both sides */
    return outputs >= (double)out ? out : outputs > ROWS_PER_TASK ? (int64_t)outputs : ROWS_PER_TASK;
}

/* The row behind the last one that outputs below `end` read. Windows only move down. */
static int64_t rows_end(const axis *down, int64_t end) {
    return down->first[end - 1] + down->count[end - 1];
}

static qvl_status horizontal_then_vertical(qvl_pool *pool, const qvl_resample_kernels *kernels,
                                           const qvl_image *in, const axis *across, const axis *down,
                                           uint8_t *result, qvl_error *error) {
    size_t in_stride = (size_t)across->in * 3, stride = (size_t)across->out * 3;
    int64_t band = band_outputs(down->in, down->out, stride), most = 0;
    for (int64_t y = 0; y < down->out; y += band) {
        int64_t end = y + band < down->out ? y + band : down->out, rows = rows_end(down, end) - down->first[y];
        if (rows > most) most = rows;
    }
    uint8_t *between = qvl_alloc((size_t)most, stride);
    if (!between) return qvl_fail_memory(error, "half resized picture", (size_t)most, stride);
    int64_t have = down->first[0], have_end = have; /* the rows that are in `between` */
    for (int64_t y = 0; y < down->out; y += band) {
        int64_t end = y + band < down->out ? y + band : down->out;
        int64_t first = down->first[y], new_end = rows_end(down, end);
        size_t kept = first < have_end ? (size_t)(have_end - first) : 0; /* of the last band's */
        memmove(between, between + (size_t)(first - have) * stride, kept * stride);
        have = first;
        int64_t next = first + (int64_t)kept;
        horizontal_pass(pool, &(pass){kernels, across, in->pixels + (size_t)next * in_stride,
                                      between + kept * stride, in_stride, stride, new_end - next, 0, 0});
        have_end = new_end;
        vertical_pass(
            pool, &(pass){kernels, down, between, result + (size_t)y * stride, stride, stride, end - y, first, y});
    }
    qvl_free(between);
    return QVL_OK;
}

size_t qvl_resample_bytes(int64_t in_width, int64_t in_height, int64_t width, int64_t height, qvl_filter filter) {
    size_t stride = 3 * (size_t)width, result = stride * (size_t)height;
    if (in_width == width || in_height == height) return result;
    if (vertical_first(in_width, in_height, width, height, filter))
        return result + 3 * (size_t)in_width * (size_t)height;
    size_t whole = stride * (size_t)in_height;
    return result + (band_outputs(in_height, height, stride) == height || whole < BAND_BYTES ? whole : BAND_BYTES);
}

qvl_status qvl_resample(qvl_pool *pool, const qvl_image *in, int64_t width, int64_t height, qvl_filter filter,
                        qvl_image *out, qvl_error *error) {
    return qvl_resample_with(qvl_resample_choose(), pool, in, width, height, filter, out, error);
}

qvl_status qvl_resample_with(const qvl_resample_kernels *kernels, qvl_pool *pool, const qvl_image *in,
                             int64_t width, int64_t height, qvl_filter filter, qvl_image *out, qvl_error *error) {
    memset(out, 0, sizeof *out);
    qvl_status status = check_sizes(in, width, height, error);
    if (status != QVL_OK) return status;
    size_t in_stride = (size_t)in->width * 3, stride = (size_t)width * 3;
    bool wider = width != in->width, taller = height != in->height; /* or narrower, or shorter */
    axis across = {0}, down = {0};
    uint8_t *result = qvl_alloc((size_t)height, stride);
    if (!result) return qvl_fail_memory(error, "resized picture", (size_t)height, stride);
    if (wider) status = axis_make(&across, in->width, width, filter, true, error);
    if (taller && status == QVL_OK) status = axis_make(&down, in->height, height, filter, false, error);
    if (status != QVL_OK) goto done;

    if (wider && taller && vertical_first(in->width, in->height, width, height, filter))
        status = vertical_then_horizontal(pool, kernels, in, &across, &down, result, error);
    else if (wider && taller)
        status = horizontal_then_vertical(pool, kernels, in, &across, &down, result, error);
    else if (wider)
        horizontal_pass(pool, &(pass){kernels, &across, in->pixels, result, in_stride, stride, height, 0, 0});
    else if (taller)
        vertical_pass(pool, &(pass){kernels, &down, in->pixels, result, stride, stride, height, 0, 0});
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
