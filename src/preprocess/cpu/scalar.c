/* The specification. */
#include "preprocess/cpu/kernels.h"

static void horizontal(const qvl_axis *axis, int64_t rows, const uint8_t *in, size_t in_stride,
                       const uint8_t *in_end, uint8_t *out, size_t out_stride) {
    (void)in_end;
    for (int64_t y = 0; y < rows; y++)
        for (int64_t i = 0; i < axis->out; i++)
            qvl_horizontal_pixel(axis, i, in + (size_t)y * in_stride, out + (size_t)y * out_stride + 3 * i);
}

#define COLUMNS 256 /* summed at a time */

static void vertical(const qvl_axis *axis, int64_t i, const uint8_t *in, size_t stride, size_t n, uint8_t *out) {
    const int32_t *w = axis->weights + i * axis->capacity;
    for (size_t x = 0; x < n; x += COLUMNS) {
        size_t columns = n - x < COLUMNS ? n - x : COLUMNS;
        int32_t sums[COLUMNS];
        for (size_t j = 0; j < columns; j++) sums[j] = (int32_t)1 << (axis->precision - 1);
        for (int64_t k = 0; k < axis->count[i]; k++) {
            const uint8_t *row = in + (size_t)k * stride + x;
            for (size_t j = 0; j < columns; j++) sums[j] += w[k] * row[j];
        }
        for (size_t j = 0; j < columns; j++) out[x + j] = qvl_clip(sums[j], axis->precision);
    }
}

const qvl_resample_kernels qvl_resample_scalar = {"scalar", horizontal, vertical};

const qvl_resample_kernels *qvl_resample_choose(void) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
        __builtin_cpu_supports("avx512vnni"))
        return &qvl_resample_avx512;
    if (__builtin_cpu_supports("avx2")) return &qvl_resample_avx2;
    return &qvl_resample_scalar;
}
