/* The kernels of Gated DeltaNet in AVX-512. */
#include "compute/cpu/v16_avx512.h"

#define DELTA_KERNELS qvl_delta_kernels_avx512
#include "compute/cpu/delta_simd.h"
