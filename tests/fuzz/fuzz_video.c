/* Any bytes as a video, animations as clips too: its first, middle and last frame, within the limit and of the size
 * that was announced, or a refusal that names the input. */
#include "media/video.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PIXELS (1 << 16)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void refuse(const qvl_error *error, qvl_status status) {
    if (error->status != status || !strstr(error->message, "the-name")) abort();
}

static void read_frame(qvl_video *video, int64_t frame) {
    const qvl_video_info *info = qvl_video_get_info(video);
    qvl_image image;
    qvl_error error = {0};
    qvl_status status = qvl_video_frame(video, frame, &image, &error);
    if (status) {
        refuse(&error, status);
        if (image.pixels) abort();
        return;
    }
    if (image.width != info->width || image.height != info->height) abort();
    volatile unsigned sum = 0; /* every pixel is there to be read */
    for (int64_t i = 0; i < image.width * image.height * 3; i++) sum = sum + image.pixels[i];
    qvl_image_free(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    qvl_input input = {.kind = QVL_INPUT_BYTES, .name = "the-name", .bytes = data, .byte_count = size};
    qvl_media_options options;
    qvl_media_options_init(&options);
    options.max_pixels = MAX_PIXELS;
    options.animation = QVL_ANIMATION_CLIP;
    qvl_video *video;
    qvl_error error = {0};
    qvl_status status = qvl_video_open(&input, &options, NULL, NULL, NULL, &video, &error);
    if (status) {
        refuse(&error, status);
        if (video) abort();
        return 0;
    }
    const qvl_video_info *info = qvl_video_get_info(video);
    if (info->frame_count < 1 || info->width * info->height > MAX_PIXELS || info->rate.den < 1) abort();
    double last = 0;
    for (int64_t i = 0; i < info->frame_count; i++) {
        double second = qvl_video_seconds(video, i);
        if (!(second >= last)) abort();
        last = second;
    }
    if (!(info->duration >= last)) abort();
    read_frame(video, 0);
    read_frame(video, info->frame_count / 2);
    read_frame(video, info->frame_count - 1);
    qvl_video_close(&video);
    return 0;
}
