/* Values as tensors and features store them. */
#ifndef CLI_VALUES_H
#define CLI_VALUES_H

#include "qvl.h"

#include <string.h>

/* Number index of an array of QVL_F32, or else of QVL_BF16. */
static inline double cli_value(qvl_dtype dtype, const void *data, size_t index) {
    if (dtype == QVL_F32) return (double)((const float *)data)[index];
    uint32_t bits = (uint32_t)((const uint16_t *)data)[index] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

#endif
