/* The decoder's kernels in AVX2. */
#include "compute/cpu/v16_avx2.h"

#define DECODER_KERNELS qvl_decoder_kernels_avx2
#include "compute/cpu/decoder_simd.h"
