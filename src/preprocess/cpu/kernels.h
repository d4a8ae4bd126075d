/* The two inner loops of resampling, by instruction set. All give the same bytes: the arithmetic is of integers, and
 * no sum overflows (resample.c), so order does not matter. */
#ifndef QVL_PREPROCESS_CPU_KERNELS_H
#define QVL_PREPROCESS_CPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Taps of one output, laid out for multiply-adds of 16-bit pairs: per 8 taps, 4 lanes of 16 bytes; lane l holds the
 * weights of taps 2l and 2l+1 three times (red, green, blue) and a pair of zeros. */
#define QVL_TAPS 8
#define QVL_TAP_VALUES 32 /* int16 of 8 taps */

/* A weight of more than 16 bits is kept in two parts: w = high * 2^11 + low, 0 <= low < 2^11. */
#define QVL_LOW_BITS 11

/* The weights that make one axis of `out` samples from one of `in`. */
typedef struct qvl_axis {
    int64_t in, out, capacity; /* capacity: weights kept per output */
    int precision;             /* fraction bits of the weights */
    bool wide;                 /* weights need more than 16 bits */
    int64_t *first, *count;    /* per output: the samples it reads */
    int32_t *weights;          /* [out, capacity] */
    /* For a horizontal pass: [out][groups][QVL_TAP_VALUES], zero beyond count; low is NULL unless wide. */
    int64_t groups;
    int16_t *high, *low;
} qvl_axis;

typedef struct qvl_resample_kernels {
    const char *name;
    /* Rows of RGB8, in_stride and out_stride bytes apart. in_end: end of the memory that may be read. */
    void (*horizontal)(const qvl_axis *axis, int64_t rows, const uint8_t *in, size_t in_stride,
                       const uint8_t *in_end, uint8_t *out, size_t out_stride);
    /* Output row i, n columns of bytes, from the rows it reads: in is the first of them, stride bytes apart. */
    void (*vertical)(const qvl_axis *axis, int64_t i, const uint8_t *in, size_t stride, size_t n, uint8_t *out);
} qvl_resample_kernels;

extern const qvl_resample_kernels qvl_resample_scalar, qvl_resample_avx2, qvl_resample_avx512;

/* The fastest that this processor has. */
const qvl_resample_kernels *qvl_resample_choose(void);

static inline uint8_t qvl_clip(int32_t sum, int precision) {
    int32_t value = sum >> precision;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* One output pixel, for any instruction set's last ones. */
static inline void qvl_horizontal_pixel(const qvl_axis *a, int64_t i, const uint8_t *in, uint8_t *out) {
    const int32_t half = (int32_t)1 << (a->precision - 1), *w = a->weights + i * a->capacity;
    const uint8_t *p = in + 3 * a->first[i];
    int32_t red = half, green = half, blue = half;
    for (int64_t k = 0; k < a->count[i]; k++, p += 3) {
        red += w[k] * p[0];
        green += w[k] * p[1];
        blue += w[k] * p[2];
    }
    out[0] = qvl_clip(red, a->precision);
    out[1] = qvl_clip(green, a->precision);
    out[2] = qvl_clip(blue, a->precision);
}

#endif
