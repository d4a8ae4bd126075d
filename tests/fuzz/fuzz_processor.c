/* Any bytes as a preprocessor file: refused with a message, or limits and factors that arithmetic can bear. */
#include "model/config.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check(bool holds) {
    if (!holds) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    const qvl_vision_config vision = {.patch_size = 16, .temporal_patch_size = 2, .spatial_merge_size = 2};
    qvl_processor_config p;
    qvl_error error = {0};
    qvl_status status = qvl_processor_parse(bytes, count, "folder/preprocessor_config.json", &vision, &p, &error);
    if (status) {
        check(error.status == status && error.message[0] && p.limits.max_pixels == 0);
        return 0;
    }
    check(p.limits.min_pixels >= 1 && p.limits.max_pixels >= 1);
    check(p.limits.min_pixels <= (int64_t)1 << 48 && p.limits.max_pixels <= (int64_t)1 << 48);
    check(p.rescale_factor >= 1e-6 && p.rescale_factor <= 1e6);
    for (int k = 0; k < 3; k++) {
        check(p.mean[k] >= -1e6f && p.mean[k] <= 1e6f);
        check(p.std[k] > 0.0f && p.std[k] <= 1e6f);
    }
    return 0;
}
