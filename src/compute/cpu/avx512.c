/* The float kernels in AVX-512. */
#include "compute/cpu/v16_avx512.h"

#define TILE_ROWS 12
#define TILE_VECTORS 2
#define KERNELS qvl_kernels_avx512
#define KERNELS_NAME "avx512"
#include "compute/cpu/simd_kernels.h"
