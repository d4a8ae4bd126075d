/* video_dump FILE [FRAME...]: what the oracle compares. Prints format, codec, size, rotation, frame count, header's
 * count, rate, duration and whether the rate varies, one line; then a line per frame asked for (all without any):
 * its number, its second, and the SHA-256 of its RGB bytes as stored. Notes go to standard error.
 * Options before FILE: --clip (animations are clips), --alpha-drop, --pixels (the bytes themselves on standard output
 * instead of all lines). */
#include "base/hash.h"
#include "media/video.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_note(const char *message, void *user) {
    (void)user;
    fprintf(stderr, "note: %s\n", message);
}

static int fail(const qvl_error *error) {
    fprintf(stderr, "error: %s\n", error->message);
    return 1;
}

static int print_frame(qvl_video *video, int64_t frame, bool pixels) {
    qvl_image image;
    qvl_error error;
    if (qvl_video_frame(video, frame, &image, &error)) return fail(&error);
    size_t count = (size_t)image.width * (size_t)image.height * 3;
    uint8_t digest[QVL_SHA256_BYTES];
    char hex[QVL_SHA256_HEX];
    int code = 0;
    if (pixels)
        code = fwrite(image.pixels, 1, count, stdout) != count;
    else if (qvl_sha256(image.pixels, count, digest, &error))
        code = fail(&error);
    else
        qvl_sha256_print(digest, hex);
    if (!code && !pixels) printf("%" PRId64 " %.17g %s\n", frame, qvl_video_seconds(video, frame), hex);
    qvl_image_free(&image);
    return code;
}

int main(int argc, char **argv) {
    qvl_media_options options;
    qvl_media_options_init(&options);
    options.orientation = QVL_ORIENTATION_IGNORE;
    bool pixels = false;
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--clip") == 0) options.animation = QVL_ANIMATION_CLIP;
        if (strcmp(argv[at], "--alpha-drop") == 0) options.alpha = QVL_ALPHA_DROP;
        if (strcmp(argv[at], "--pixels") == 0) pixels = true;
    }
    if (at >= argc) return 2;
    qvl_input input = {.kind = QVL_INPUT_FILE, .name = argv[at++]};
    qvl_video *video;
    qvl_error error;
    if (qvl_video_open(&input, &options, print_note, NULL, NULL, &video, &error)) return fail(&error);
    const qvl_video_info *info = qvl_video_get_info(video);
    if (!pixels)
        printf("%s %s %" PRId64 " %" PRId64 " %d %" PRId64 " %" PRId64 " %" PRId64 "/%" PRId64 " %.17g %d\n",
               info->format, info->codec, info->width, info->height, (int)info->rotation, info->frame_count,
               info->header_frames, info->rate.num, info->rate.den, info->duration, info->variable_rate);
    int code = 0;
    if (at == argc)
        for (int64_t i = 0; i < info->frame_count && !code; i++) code = print_frame(video, i, pixels);
    for (; at < argc && !code; at++) code = print_frame(video, strtoll(argv[at], NULL, 10), pixels);
    qvl_video_close(&video);
    return code;
}
