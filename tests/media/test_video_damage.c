/* What is wrong with videos: cut and damaged files, headers that lie, files without frames, and limits. Nothing of it
 * may be printed: FFmpeg's log is watched. */
#define _DEFAULT_SOURCE /* setenv, unlink */
#include "media/clips.h"

#include "base/memory.h"

#include <libavutil/log.h>

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

/* ---- FFmpeg's log */

static int printed;

/* What FFmpeg's own callback would print, by the default level; contexts' offsets are in the level already. */
static void watch(void *context, int level, const char *format, va_list arguments) {
    (void)context;
    if ((level & 0xff) > AV_LOG_INFO) return;
    printed++;
    fprintf(stderr, "FFmpeg: ");
    vfprintf(stderr, format, arguments);
}

static int start_watching(void **state) {
    (void)state;
    av_log_set_callback(av_log_default_callback);
    printed = 0;
    return 0;
}

/* FFmpeg learns late which streams FLV has, and opens its own decoder for them before it can be told to be silent. */
static void watch_log(const char *muxer) {
    if (strcmp(muxer, "flv") != 0) av_log_set_callback(watch);
}

static void check_log(void) {
    av_log_set_callback(av_log_default_callback);
    assert_int_equal(printed, 0);
}

/* ---- cut files */

/* Of a clip's first `part`, whatever frames are there show their numbers; at least `least` are. */
static void check_cut(const clip_spec *spec, double part, int least) {
    bytes clip = make_clip(spec);
    clip.count = (size_t)((double)clip.count * part);
    notes taken = {0};
    watch_log(spec->muxer);
    qvl_video *video = open_clip(&clip, NULL, &taken);
    int64_t n = qvl_video_get_info(video)->frame_count;
    if (n < least || n >= spec->frames) fail_msg("%s: %d frames", spec->muxer, (int)n);
    int wrong = 0;
    for (int64_t i = 0; i < n; i++) {
        /* Frames after a hole in the order of presentation keep their times, so numbers are told by them. */
        qvl_image image = frame_of(video, i);
        wrong += seen_number(&image) != (int)lround(qvl_video_seconds(video, i) * 25);
        qvl_image_free(&image);
    }
    /* Where the file has times only in its packets, the last ones may lack what they refer to. */
    if (wrong > 1) fail_msg("%s: %d of %d frames are wrong", spec->muxer, wrong, (int)n);
    check_log();
    qvl_video_close(&video);
    qvl_free(clip.data);
}

static void cut_files(void **state) {
    (void)state;
    check_cut(&(clip_spec){.muxer = "mp4", .muxer_options = "movflags=faststart", .frames = 60}, 0.8, 20);
    check_cut(&(clip_spec){.muxer = "matroska", .frames = 60}, 0.6, 20);
    check_cut(&(clip_spec){.muxer = "mpegts", .frames = 60}, 0.6, 20);
    check_cut(&(clip_spec){.muxer = "avi", .encoder = "mpeg4", .options = "bf=2", .frames = 60}, 0.8, 20);
    check_cut(&(clip_spec){.muxer = "flv", .frames = 60}, 0.6, 20);
}

static void cut_before_the_index(void **state) {
    (void)state;
    bytes clip = make_clip(&(clip_spec){.muxer = "mp4", .frames = 60});
    clip.count = clip.count * 6 / 10;
    watch_log("");
    refuse_clip(&clip, NULL, QVL_ERROR_FORMAT, "cut short");
    check_log();
    qvl_free(clip.data);
}

/* Every length: refused by name, or readable. */
static void every_length(void **state) {
    (void)state;
    static const char *const muxers[] = {"mp4", "matroska", "mpegts", "avi", "asf"};
    for (size_t m = 0; m < sizeof muxers / sizeof *muxers; m++) {
        clip_spec spec = {.muxer = muxers[m], .muxer_options = m ? NULL : "movflags=faststart", .frames = 4};
        bytes clip = make_clip(&spec);
        watch_log(spec.muxer);
        for (size_t count = clip.count; count > 0; count -= count > 31 ? 31 : count) {
            qvl_input input = {
                .kind = QVL_INPUT_BYTES, .name = "the-name", .bytes = clip.data, .byte_count = count};
            qvl_video *video;
            qvl_error error;
            qvl_image image;
            qvl_status status = qvl_video_open(&input, NULL, NULL, NULL, NULL, &video, &error);
            if (!status) status = qvl_video_frame(video, 0, &image, &error);
            if (status) assert_non_null(strstr(error.message, "the-name"));
            if (!status) qvl_image_free(&image);
            qvl_video_close(&video);
        }
        check_log();
        qvl_free(clip.data);
    }
}

/* ---- damaged packets */

/* Overwrites what lies in the middle of a clip's file. */
static void spoil(bytes *clip, double from, double to) {
    for (size_t i = (size_t)((double)clip->count * from); i < (size_t)((double)clip->count * to); i++)
        clip->data[i] = (uint8_t)(clip->data[i] * 7 + i * 31);
}

/* Frames keep their numbers; what is broken shows a neighbour, and one note says so. */
static void damaged_packets(void **state) {
    (void)state;
    clip_spec spec = {.muxer = "mp4", .frames = 120, .gop = 12, .width = 160, .height = 120};
    bytes clip = make_clip(&spec);
    spoil(&clip, 0.40, 0.45);
    notes taken = {0};
    watch_log("");
    qvl_video *video = open_clip(&clip, NULL, &taken);
    assert_int_equal(qvl_video_get_info(video)->frame_count, 120);
    int wrong = 0, last_wrong = 0, dense[120];
    for (int i = 0; i < 120; i++) {
        qvl_image image = frame_of(video, i);
        int seen = dense[i] = seen_number(&image);
        if (seen != i) {
            wrong++;
            last_wrong = i;
        }
        qvl_image_free(&image);
    }
    check_log();
    assert_in_range(wrong, 1, 36); /* not beyond the third key frame */
    assert_true(last_wrong < 90);
    assert_int_equal(taken.count, 1);
    assert_non_null(strstr(taken.last, "stands in for it"));
    qvl_video_close(&video);
    for (int step = 2; step < 60; step += 3) { /* whatever else is asked for */
        video = open_clip(&clip, NULL, &taken);
        for (int i = 0; i < 120; i += step) {
            qvl_image image = frame_of(video, i);
            assert_int_equal(seen_number(&image), dense[i]);
            qvl_image_free(&image);
        }
        qvl_video_close(&video);
    }
    qvl_free(clip.data);
}

static void nothing_to_decode(void **state) {
    (void)state;
    bytes clip = make_clip(&(clip_spec){.muxer = "mp4", .frames = 30});
    for (size_t i = 48; i + 4 < clip.count; i++) {
        if (memcmp(clip.data + i, "moov", 4) == 0) break;
        clip.data[i] = (uint8_t)(i * 37);
    }
    watch_log("");
    qvl_input input = {.kind = QVL_INPUT_BYTES, .name = "the-name", .bytes = clip.data, .byte_count = clip.count};
    qvl_video *video;
    qvl_image image = {0};
    qvl_error error;
    qvl_status status = qvl_video_open(&input, NULL, NULL, NULL, NULL, &video, &error);
    if (!status) status = qvl_video_frame(video, 0, &image, &error);
    assert_int_equal(status, QVL_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "can be decoded"));
    assert_null(image.pixels);
    check_log();
    qvl_video_close(&video);
    qvl_free(clip.data);
}

/* ---- headers that lie */

static uint8_t *find_bytes(const bytes *clip, const char *what, size_t length) {
    for (size_t i = 0; i + length <= clip->count; i++)
        if (memcmp(clip->data + i, what, length) == 0) return clip->data + i;
    fail_msg("no %s in the file", what);
    return clip->data;
}

static void wrong_frame_count(void **state) {
    (void)state;
    bytes clip =
        make_clip(&(clip_spec){.muxer = "avi", .encoder = "mjpeg", .format = AV_PIX_FMT_YUVJ420P, .frames = 12});
    memcpy(find_bytes(&clip, "avih", 4) + 8 + 16, "\x90\x01\0\0", 4);
    memcpy(find_bytes(&clip, "strh", 4) + 8 + 32, "\x90\x01\0\0", 4);
    notes taken = {0};
    watch_log("");
    qvl_video *video = open_clip(&clip, NULL, &taken);
    assert_int_equal(qvl_video_get_info(video)->header_frames, 400);
    assert_int_equal(qvl_video_get_info(video)->frame_count, 12);
    assert_int_equal(taken.count, 1);
    assert_non_null(strstr(taken.last, "counts 400 frames; there are 12"));
    qvl_image image = frame_of(video, 11);
    assert_int_equal(seen_number(&image), 11);
    qvl_image_free(&image);
    check_log();
    qvl_video_close(&video);
    qvl_free(clip.data);
}

/* A table that says it has 150 million entries, in a file of a few thousand bytes. */
static void hostile_sample_count(void **state) {
    (void)state;
    bytes clip = make_clip(&(clip_spec){.muxer = "mp4", .frames = 12});
    uint8_t *table = find_bytes(&clip, "stsz", 4);
    memcpy(table + 8, "\0\0\0\1\x08\xf0\xd1\x80", 8);
    watch_log("");
    refuse_clip(&clip, NULL, QVL_ERROR_FORMAT, "more than the file can hold");
    memcpy(table + 8, "\0\0\0\0\x08\xf0\xd1\x80", 8); /* a size for each */
    refuse_clip(&clip, NULL, QVL_ERROR_FORMAT, "more than the file can hold");
    check_log();
    qvl_free(clip.data);
}

static void limits(void **state) {
    (void)state;
    bytes clip = make_clip(&(clip_spec){.muxer = "mp4", .frames = 3});
    qvl_media_options options;
    qvl_media_options_init(&options);
    options.max_pixels = 64 * 48;
    qvl_video *video = open_clip(&clip, &options, NULL);
    qvl_image image = frame_of(video, 2);
    qvl_image_free(&image);
    qvl_video_close(&video);
    options.max_pixels--;
    watch_log("");
    refuse_clip(&clip, &options, QVL_ERROR_LIMIT, "frames of 64 x 48 pixels; the limit is 3071 pixels");
    options.max_pixels = -1;
    refuse_clip(&clip, &options, QVL_ERROR_ARGUMENT, "max_pixels is -1");
    check_log();
    qvl_free(clip.data);
}

/* ---- files without a video */

static void no_video(void **state) {
    (void)state;
    bytes clip = make_clip(&(clip_spec){.muxer = "mov", .frames = 1, .no_video = true, .audio = true});
    watch_log("");
    refuse_clip(&clip, NULL, QVL_ERROR_FORMAT, "no video stream, only sound");
    qvl_free(clip.data);
    refuse_clip(&(bytes){NULL, 0}, NULL, QVL_ERROR_FORMAT, "empty, 0 bytes");
    uint8_t text[] = "This is no video, and has no frames at all.";
    refuse_clip(&(bytes){text, sizeof text}, NULL, QVL_ERROR_FORMAT, "not a video qvl reads");
    check_log();
}

static void impossible_inputs(void **state) {
    (void)state;
    static const qvl_input inputs[] = {
        {.kind = QVL_INPUT_RGB8, .name = "pixels"},
        {.kind = QVL_INPUT_FILE},
        {.kind = QVL_INPUT_FILE, .name = "/nowhere/clip.mp4"},
        {.kind = QVL_INPUT_FILE, .name = "/tmp"},
        {.kind = QVL_INPUT_BYTES, .name = "nothing", .byte_count = 12},
    };
    static const qvl_status expected[] = {QVL_ERROR_ARGUMENT, QVL_ERROR_ARGUMENT, QVL_ERROR_IO, QVL_ERROR_IO,
                                          QVL_ERROR_ARGUMENT};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        qvl_video *video;
        qvl_error error = {0};
        assert_int_equal(qvl_video_open(&inputs[i], NULL, NULL, NULL, NULL, &video, &error), expected[i]);
        assert_null(video);
        if (inputs[i].name) assert_non_null(strstr(error.message, inputs[i].name));
    }
    assert_int_equal(qvl_video_open(NULL, NULL, NULL, NULL, NULL, &(qvl_video *){NULL}, NULL), QVL_ERROR_ARGUMENT);
}

static void from_standard_input(void **state) {
    (void)state;
    bytes clip = make_clip(&(clip_spec){.muxer = "mp4", .frames = 5});
    char *path = write_clip(&clip);
    int saved = dup(STDIN_FILENO), fd = open(path, O_RDONLY);
    assert_true(saved >= 0 && fd >= 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO);
    qvl_video *video, *file;
    qvl_status status =
        qvl_video_open(&(qvl_input){.kind = QVL_INPUT_FILE, .name = "-"}, NULL, NULL, NULL, NULL, &video, NULL);
    dup2(saved, STDIN_FILENO);
    close(saved);
    close(fd);
    assert_int_equal(status, QVL_OK);
    assert_int_equal(
        qvl_video_open(&(qvl_input){.kind = QVL_INPUT_FILE, .name = path}, NULL, NULL, NULL, NULL, &file, NULL),
        QVL_OK);
    qvl_image a = frame_of(video, 4), b = frame_of(file, 4);
    assert_memory_equal(a.pixels, b.pixels, 64 * 48 * 3);
    assert_int_equal(seen_number(&a), 4);
    qvl_image_free(&a);
    qvl_image_free(&b);
    qvl_video_close(&video);
    qvl_video_close(&file);
    unlink(path);
    free(path);
    qvl_free(clip.data);
}

/* ---- which files are videos */

static void sniffing(void **state) {
    (void)state;
    static const char *const muxers[] = {"mp4", "mov", "matroska", "webm", "avi", "mpegts", "flv", "asf"};
    for (size_t i = 0; i < sizeof muxers / sizeof *muxers; i++) {
        clip_spec spec = {.muxer = muxers[i], .frames = 4, .encoder = i == 3 ? "libvpx" : NULL};
        bytes clip = make_clip(&spec);
        assert_true(qvl_video_sniff(clip.data, clip.count < 1024 ? clip.count : 1024, NULL));
        qvl_image image;
        qvl_error error;
        qvl_status status = read_bytes(clip.data, clip.count, NULL, &image, &error);
        check_refused(status, &image, &error, "the-name");
        qvl_free(clip.data);
    }
    static const char pictures[][17] = {"\0\0\0\x20"
                                        "ftypavif\0\0\0\0",
                                        "\0\0\0\x20"
                                        "ftypheic\0\0\0\0",
                                        "\0\0\0\x20"
                                        "ftypmif1\0\0\0\0",
                                        "GIF89aGGGGGGGGGG", "\x89PNG\r\n\x1a\n"};
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++)
        assert_false(qvl_video_sniff((const uint8_t *)pictures[i], 16, NULL));
    assert_false(qvl_video_sniff(NULL, 0, NULL));
}

/* An animated GIF or WebP is the picture of its first frame, and a clip only where that is asked for. */
static void check_animation(const clip_spec *spec) {
    bytes clip = make_clip(spec);
    watch_log("");
    assert_false(qvl_video_sniff(clip.data, clip.count, NULL));
    refuse_clip(&clip, NULL, QVL_ERROR_FORMAT, "not a video");
    qvl_image image = read_good(clip.data, clip.count, NULL);
    assert_int_equal(seen_number(&image), 0);
    qvl_image_free(&image);
    qvl_media_options options;
    qvl_media_options_init(&options);
    options.animation = QVL_ANIMATION_CLIP;
    assert_true(qvl_video_sniff(clip.data, clip.count, &options));
    notes taken = {0};
    qvl_video *video = open_clip(&clip, &options, &taken);
    const qvl_video_info *info = qvl_video_get_info(video);
    assert_int_equal(info->frame_count, 10);
    assert_int_equal(info->rate.num, 10 * info->rate.den);
    assert_true(fabs(info->duration - 1) < 1e-9);
    for (int i = 0; i < 10; i += 1 + i / 4) {
        image = frame_of(video, i);
        assert_int_equal(seen_number(&image), i);
        assert_int_equal(image.width, 64);
        assert_int_equal(image.height, 48);
        assert_true(fabs(qvl_video_seconds(video, i) - i / 10.0) < 1e-9);
        qvl_image_free(&image);
    }
    qvl_video_close(&video);
    assert_int_equal(taken.count, 0);
    options.max_pixels = 64 * 48 - 1;
    refuse_clip(&clip, &options, QVL_ERROR_LIMIT, "frames of 64 x 48");
    options.max_pixels = 0;
    clip.count /= 3;
    qvl_input input = {.kind = QVL_INPUT_BYTES, .name = "the-name", .bytes = clip.data, .byte_count = clip.count};
    qvl_error error = {0};
    if (qvl_video_open(&input, &options, NULL, NULL, NULL, &video, &error))
        assert_int_equal(error.status, QVL_ERROR_FORMAT);
    qvl_video_close(&video);
    check_log();
    qvl_free(clip.data);
}

static void animations(void **state) {
    (void)state;
    check_animation(
        &(clip_spec){.muxer = "gif", .encoder = "gif", .format = AV_PIX_FMT_GRAY8, .frames = 10, .rate = {10, 1}});
    check_animation(&(clip_spec){.muxer = "webp",
                                 .encoder = "libwebp_anim",
                                 .options = "lossless=1",
                                 .format = AV_PIX_FMT_BGRA,
                                 .frames = 10,
                                 .rate = {10, 1}});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(cut_files, start_watching),
        cmocka_unit_test_setup(cut_before_the_index, start_watching),
        cmocka_unit_test_setup(every_length, start_watching),
        cmocka_unit_test_setup(damaged_packets, start_watching),
        cmocka_unit_test_setup(nothing_to_decode, start_watching),
        cmocka_unit_test_setup(wrong_frame_count, start_watching),
        cmocka_unit_test_setup(hostile_sample_count, start_watching),
        cmocka_unit_test_setup(limits, start_watching),
        cmocka_unit_test_setup(no_video, start_watching),
        cmocka_unit_test_setup(impossible_inputs, start_watching),
        cmocka_unit_test_setup(from_standard_input, start_watching),
        cmocka_unit_test_setup(sniffing, start_watching),
        cmocka_unit_test_setup(animations, start_watching),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
