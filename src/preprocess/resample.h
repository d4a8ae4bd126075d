/* Bicubic resampling of RGB8, bit for bit as Pillow 13 (22-bit weights; Pillow 12 differs in the order of the two
 * passes) or as torch's uint8 path on the CPU (16-bit weights with a precision per axis) does it. */
#ifndef QVL_PREPROCESS_RESAMPLE_H
#define QVL_PREPROCESS_RESAMPLE_H

#include "base/pool.h"
#include "preprocess/cpu/kernels.h"

typedef enum qvl_filter { QVL_FILTER_PILLOW = 0, QVL_FILTER_TORCH = 1 } qvl_filter;

/* out is allocated here: width x height, both >= 1. An unchanged size is a copy. The same bytes for any pool.
 * Owner: the caller, qvl_image_free. */
qvl_status qvl_resample(qvl_pool *pool, const qvl_image *in, int64_t width, int64_t height, qvl_filter filter,
                        qvl_image *out, qvl_error *error);

/* The same with the kernels of one instruction set, which the processor must have: for tests. */
qvl_status qvl_resample_with(const qvl_resample_kernels *kernels, qvl_pool *pool, const qvl_image *in,
                             int64_t width, int64_t height, qvl_filter filter, qvl_image *out, qvl_error *error);

/* Bytes that qvl_resample allocates, the result among them, tables aside. Sides are at most QVL_MAX_SIDE. */
size_t qvl_resample_bytes(int64_t in_width, int64_t in_height, int64_t width, int64_t height, qvl_filter filter);

#endif
