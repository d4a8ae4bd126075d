/* The float kernels in AVX2. */
#include "compute/cpu/v16_avx2.h"

#define TILE_ROWS 6
#define TILE_VECTORS 1
#define KERNELS qvl_kernels_avx2
#define KERNELS_NAME "avx2"
#include "compute/cpu/simd_kernels.h"
