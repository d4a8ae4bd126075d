/* Values of matrices as they lie in a file. */
#include "compute/matrix.h"
#include "compute/context.h"

#include "base/bf16.h"

#include <string.h>

void qvl_read_run(const uint8_t *data, qvl_dtype dtype, size_t first, int64_t count, float *out) {
    switch (dtype) {
    case QVL_F32:
        memcpy(out, data + 4 * first, (size_t)count * sizeof(float));
        break;
    case QVL_BF16:
        for (int64_t i = 0; i < count; i++) {
            uint16_t bits;
            memcpy(&bits, data + 2 * (first + (size_t)i), 2);
            out[i] = qvl_f32_from_bf16(bits);
        }
        break;
    default:
        for (int64_t i = 0; i < count; i++) out[i] = qvl_source_value(data, dtype, first + (size_t)i);
        break;
    }
}

/* The values of one group lie between whole words: a group has 32 or more. */
static void read_quantised(const qvl_matrix *w, int64_t row, int64_t first, int64_t count, float *out) {
    const uint8_t *packed = w->data + (size_t)(row * w->stride) * (size_t)w->bits / 8;
    int64_t groups = w->k / w->group;
    for (int64_t i = 0; i < count; i++) {
        int64_t column = first + i;
        size_t at = (size_t)(row * groups + column / w->group);
        uint32_t byte = packed[column * w->bits / 8];
        float q = (float)(w->bits == 8 ? byte : byte >> (column % 2 * 4) & 15u);
        float product = qvl_round_to(w->scale_dtype, qvl_source_value(w->scales, w->scale_dtype, at) * q);
        out[i] = qvl_round_to(w->scale_dtype, product + qvl_source_value(w->biases, w->scale_dtype, at));
    }
}

void qvl_matrix_read(const qvl_matrix *w, int64_t row, int64_t first, int64_t count, float *out) {
    if (w->bits)
        read_quantised(w, row, first, count, out);
    else if (w->by_columns)
        for (int64_t i = 0; i < count; i++)
            out[i] = qvl_source_value(w->data, w->dtype, (size_t)((first + i) * w->stride + row));
    else
        qvl_read_run(w->data, w->dtype, (size_t)(row * w->stride + first), count, out);
}
