/* The kernels of Gated DeltaNet in AVX2. */
#include "compute/cpu/v16_avx2.h"

#define DELTA_KERNELS qvl_delta_kernels_avx2
#include "compute/cpu/delta_simd.h"
