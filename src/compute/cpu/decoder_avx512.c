/* The decoder's kernels in AVX-512. */
#include "compute/cpu/v16_avx512.h"

#define DECODER_KERNELS qvl_decoder_kernels_avx512
#include "compute/cpu/decoder_simd.h"
