/* Any bytes as a preprocessor file: refused with a message, or limits and factors that arithmetic can bear. */
#include "model/config.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check(bool holds) {
    if (!holds) abort();
}

/* The same bytes as a file about videos. */
static void check_video(const uint8_t *bytes, size_t count, const qvl_vision_config *vision) {
    qvl_video_config v;
    qvl_error error = {0};
    qvl_status status =
        qvl_video_config_parse(bytes, count, "folder/video_preprocessor_config.json", vision, &v, &error);
    if (status) {
        check(error.status == status && error.message[0] && v.max_frames == 0);
        return;
    }
    check(v.fps == 0 || (v.fps >= 1e-6 && v.fps <= 1e6));
    check(v.num_frames >= 0 && v.num_frames <= QVL_MAX_FRAMES && !(v.num_frames && v.fps > 0));
    check(v.min_frames >= 1 && v.min_frames <= QVL_MAX_FRAMES && v.max_frames >= 1 &&
          v.max_frames <= QVL_MAX_FRAMES);
    check(v.max_frame_tokens >= 1 && v.processor.limits.min_pixels >= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    const qvl_vision_config vision = {.patch_size = 16, .temporal_patch_size = 2, .spatial_merge_size = 2};
    qvl_processor_config p;
    qvl_error error = {0};
    check_video(bytes, count, &vision);
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
