/* Frames by number: every way a clip can be laid out, judged by the numbers drawn into its frames. */
#include "media/clips.h"

#include "base/hash.h"
#include "base/memory.h"
#include "media/video_decoder.h"

#include <math.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- every frame in its place */

/* Opens, and reads all frames: each shows its number, offset by `first`, and comes at its time. */
static void check_numbers(const clip_spec *spec, int count, int first) {
    bytes clip = make_clip(spec);
    notes taken = {0};
    qvl_video *video = open_clip(&clip, NULL, &taken);
    const qvl_video_info *info = qvl_video_get_info(video);
    const char *what = spec->encoder ? spec->encoder : spec->muxer ? spec->muxer : "x264";
    if (info->frame_count != count) fail_msg("%s: %d frames, not %d", what, (int)info->frame_count, count);
    double rate = spec->rate.num ? av_q2d(spec->rate) : 25;
    for (int i = 0; i < count; i++) {
        qvl_image image = frame_of(video, i);
        int seen = seen_number(&image);
        if (seen != i + first) fail_msg("%s: frame %d shows %d, not %d", what, i, seen, i + first);
        assert_int_equal(image.width, spec->width ? spec->width : 64);
        assert_int_equal(image.height, spec->height ? spec->height : 48);
        assert_int_equal(seen_corner(&image, 0), CORNER_RED);
        assert_int_equal(seen_corner(&image, 1), CORNER_GREEN);
        assert_int_equal(seen_corner(&image, 2), CORNER_BLUE);
        assert_int_equal(seen_corner(&image, 3), CORNER_WHITE);
        double second = spec->times ? (double)(spec->times[i] - spec->times[0]) / 1000 : i / rate;
        assert_true(fabs(qvl_video_seconds(video, i) - second) <= 0.00101);
        qvl_image_free(&image);
    }
    assert_int_equal(info->variable_rate, spec->times != NULL);
    if (taken.count) fail_msg("%s: %s", what, taken.last);
    qvl_video_close(&video);
    assert_null(video);
    qvl_free(clip.data);
}

static void containers_and_codecs(void **state) {
    (void)state;
    static const clip_spec specs[] = {
        {.muxer = "mp4", .frames = 40},
        {.muxer = "mov", .frames = 40, .audio = true},
        {.muxer = "matroska", .frames = 40},
        {.muxer = "mpegts", .frames = 40},
        {.muxer = "flv", .frames = 40},
        {.muxer = "avi", .encoder = "mpeg4", .options = "bf=2", .frames = 40},
        {.muxer = "avi", .encoder = "mjpeg", .format = AV_PIX_FMT_YUVJ420P, .frames = 12},
        {.muxer = "mpegts", .encoder = "mpeg2video", .options = "bf=2", .frames = 40},
        {.muxer = "vob", .encoder = "mpeg2video", .options = "bf=2", .frames = 40},
        {.muxer = "webm",
         .encoder = "libvpx",
         .options = "auto-alt-ref=1:lag-in-frames=16:deadline=good",
         .frames = 40},
        {.muxer = "webm", .encoder = "libvpx-vp9", .options = "lag-in-frames=16:cpu-used=6", .frames = 40},
        {.muxer = "mp4", .encoder = "libaom-av1", .options = "cpu-used=8:usage=1", .frames = 12},
        {.muxer = "asf", .encoder = "wmv2", .frames = 20},
        {.muxer = "matroska", .encoder = "ffv1", .frames = 12},
        {.muxer = "ogg", .encoder = "libtheora", .frames = 20},
    };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) check_numbers(&specs[i], specs[i].frames, 0);
}

static void pixel_formats_and_odd_sizes(void **state) {
    (void)state;
    static const clip_spec specs[] = {
        {.format = AV_PIX_FMT_YUV420P10LE, .frames = 8},
        {.format = AV_PIX_FMT_YUV422P, .frames = 8},
        {.format = AV_PIX_FMT_YUV444P, .frames = 8, .width = 67, .height = 45},
        {.encoder = "ffv1", .format = AV_PIX_FMT_YUV420P, .frames = 8, .width = 67, .height = 45},
        {.encoder = "ffv1", .format = AV_PIX_FMT_YUV420P10LE, .frames = 8, .width = 33, .height = 33},
        {.encoder = "ffv1", .format = AV_PIX_FMT_YUVA420P, .frames = 8},
        {.encoder = "libx264rgb", .format = AV_PIX_FMT_BGR24, .options = "preset=veryfast", .frames = 8},
        {.encoder = "prores_ks", .muxer = "mov", .format = AV_PIX_FMT_YUVA444P10LE, .frames = 8},
    };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) check_numbers(&specs[i], specs[i].frames, 0);
}

/* Report 50: clips of one frame and a few more, and one of 0.1 s. */
static void report_50_shortest_clips(void **state) {
    (void)state;
    for (int frames = 1; frames <= 9; frames++) {
        check_numbers(&(clip_spec){.muxer = "mp4", .frames = frames}, frames, 0);
        check_numbers(&(clip_spec){.frames = frames}, frames, 0);
    }
    bytes clip = make_clip(&(clip_spec){.muxer = "mp4", .frames = 3, .rate = {30, 1}});
    qvl_video *video = open_clip(&clip, NULL, NULL);
    const qvl_video_info *info = qvl_video_get_info(video);
    assert_true(fabs(info->duration - 0.1) < 1e-9);
    assert_int_equal(info->frame_count, 3);
    qvl_video_close(&video);
    qvl_free(clip.data);
}

/* Report 53: in ten seconds at 30000/1001, the frame at a second is the one that shows its number. */
static void report_53_numbers_and_seconds(void **state) {
    (void)state;
    bytes clip = make_clip(&(clip_spec){.muxer = "mp4", .frames = 300, .rate = {30000, 1001}, .gop = 250});
    qvl_video *video = open_clip(&clip, NULL, NULL);
    const qvl_video_info *info = qvl_video_get_info(video);
    assert_int_equal(info->rate.num, 30000);
    assert_int_equal(info->rate.den, 1001);
    assert_int_equal(info->header_frames, 300);
    assert_true(fabs(info->duration - 10.01) < 1e-9);
    for (int64_t i = 0; i < 300; i += 15) {
        qvl_image image = frame_of(video, i);
        int seen = seen_number(&image);
        assert_int_equal(seen, i);
        assert_true(fabs(qvl_video_seconds(video, i) - seen * 1001.0 / 30000) < 1e-9);
        qvl_image_free(&image);
    }
    qvl_video_close(&video);
    qvl_free(clip.data);
}

static void variable_rate(void **state) {
    (void)state;
    static const int64_t times[] = {0, 40, 50, 400, 410, 1000, 1700, 1701, 3000, 9000, 9040, 9080};
    check_numbers(&(clip_spec){.muxer = "mp4", .frames = 12, .times = times}, 12, 0);
    check_numbers(&(clip_spec){.muxer = "matroska", .frames = 12, .times = times}, 12, 0);
}

/* What MP4's edit list cuts off the start is decoded and has no number. */
static void edit_list(void **state) {
    (void)state;
    check_numbers(&(clip_spec){.muxer = "mp4", .frames = 30, .first = -7}, 23, 7);
    check_numbers(&(clip_spec){.muxer = "mov", .frames = 30, .first = -13, .options = "bf=0"}, 17, 13);
}

/* A recording of a broadcast starts anywhere: its first frame is the first that can be decoded. */
static void starts_anywhere(void **state) {
    (void)state;
    static const clip_spec specs[] = {
        {.muxer = "mpegts", .frames = 100, .gop = 20},
        {.muxer = "mpegts",
         .frames = 100,
         .gop = 20,
         .options = "preset=veryfast:bf=3:b_strategy=0:x264-params=open-gop=1"},
        {.muxer = "mpegts", .encoder = "mpeg2video", .options = "bf=2", .frames = 100, .gop = 20},
    };
    for (int i = 0; i < 9; i++) {
        bytes clip = make_clip(&specs[i % 3]);
        size_t cut = clip.count / 188 * (size_t)(1 + i / 3) / 5 * 188;
        bytes rest = {clip.data + cut, clip.count - cut};
        qvl_video *video = open_clip(&rest, NULL, NULL);
        int64_t n = qvl_video_get_info(video)->frame_count;
        assert_in_range(n, 20, 99);
        for (int64_t k = 0; k < n; k++) {
            qvl_image image = frame_of(video, k);
            assert_int_equal(seen_number(&image), 100 - n + k);
            assert_true(fabs(qvl_video_seconds(video, k) - (double)k / 25) < 1e-3);
            qvl_image_free(&image);
        }
        qvl_video_close(&video);
        qvl_free(clip.data);
    }
}

/* ---- rotation */

/* The corners of an upright frame, and those of one as stored, by EXIF's orientation. */
static const corner stored_corners[9][4] = {
    [1] = {CORNER_RED, CORNER_GREEN, CORNER_BLUE, CORNER_WHITE},
    [2] = {CORNER_GREEN, CORNER_RED, CORNER_WHITE, CORNER_BLUE},
    [3] = {CORNER_WHITE, CORNER_BLUE, CORNER_GREEN, CORNER_RED},
    [4] = {CORNER_BLUE, CORNER_WHITE, CORNER_RED, CORNER_GREEN},
    [6] = {CORNER_BLUE, CORNER_RED, CORNER_WHITE, CORNER_GREEN},
    [8] = {CORNER_GREEN, CORNER_WHITE, CORNER_RED, CORNER_BLUE},
};

static void check_corners(const bytes *clip, qvl_orientation policy, int orientation, int rotation) {
    qvl_media_options options;
    qvl_media_options_init(&options);
    options.orientation = policy;
    bool applied = policy == QVL_ORIENTATION_APPLY && orientation != 1;
    qvl_video *video = open_clip(clip, &options, NULL);
    const qvl_video_info *info = qvl_video_get_info(video);
    qvl_image image = frame_of(video, 0);
    bool swapped = applied && orientation >= 5;
    assert_int_equal(info->orientation, orientation);
    assert_int_equal(info->rotation, rotation);
    assert_int_equal(info->oriented, applied);
    assert_int_equal(info->stored_width, 64);
    assert_int_equal(info->width, swapped ? 48 : 64);
    assert_int_equal(info->height, swapped ? 64 : 48);
    assert_int_equal(image.width, info->width);
    assert_int_equal(image.height, info->height);
    assert_int_equal(image.stored.orientation, orientation);
    assert_int_equal(image.stored.oriented, applied);
    for (int i = 0; i < 4; i++)
        assert_int_equal(seen_corner(&image, i), stored_corners[applied ? orientation : 1][i]);
    qvl_image_free(&image);
    qvl_video_close(&video);
}

/* Report 61: phones write a matrix instead of turning the picture. */
static void report_61_rotation(void **state) {
    (void)state;
    enum { ONE = 1 << 16, W = 1 << 30 };
    static const struct {
        int32_t matrix[9];
        int orientation, rotation;
    } cases[] = {
        {{ONE, 0, 0, 0, ONE, 0, 0, 0, W}, 1, 0},     {{0, ONE, 0, -ONE, 0, 0, 0, 0, W}, 6, 90},
        {{-ONE, 0, 0, 0, -ONE, 0, 0, 0, W}, 3, 180}, {{0, -ONE, 0, ONE, 0, 0, 0, 0, W}, 8, 270},
        {{-ONE, 0, 0, 0, ONE, 0, 0, 0, W}, 2, 0},    {{ONE, 0, 0, 0, -ONE, 0, 0, 0, W}, 4, 180},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes clip = make_clip(&(clip_spec){.muxer = "mp4", .frames = 2, .matrix = cases[i].matrix});
        check_corners(&clip, QVL_ORIENTATION_APPLY, cases[i].orientation, cases[i].rotation);
        check_corners(&clip, QVL_ORIENTATION_IGNORE, cases[i].orientation, cases[i].rotation);
        qvl_free(clip.data);
    }
    static const int32_t skewed[9] = {ONE, ONE / 2, 0, -ONE / 2, ONE, 0, 0, 0, W};
    bytes clip = make_clip(&(clip_spec){.muxer = "mp4", .frames = 2, .matrix = skewed});
    notes taken = {0};
    qvl_video *video = open_clip(&clip, NULL, &taken);
    assert_int_equal(taken.count, 1);
    assert_non_null(strstr(taken.last, "no multiple of 90"));
    assert_int_equal(qvl_video_get_info(video)->orientation, 1);
    qvl_video_close(&video);
    qvl_free(clip.data);
}

/* ---- jumping ahead */

static void digest_of(qvl_image *image, uint8_t digest[QVL_SHA256_BYTES]) {
    assert_int_equal(qvl_sha256(image->pixels, (size_t)(image->width * image->height * 3), digest, NULL), QVL_OK);
    qvl_image_free(image);
}

/* Frames asked for one by one, all of them and a few, are the same; whatever was left out or jumped over. */
static void check_picks(const clip_spec *spec) {
    static const int steps[] = {2, 3, 7, 40, 61, 97, 150};
    bytes clip = make_clip(spec);
    uint8_t(*all)[QVL_SHA256_BYTES] = qvl_alloc((size_t)spec->frames, QVL_SHA256_BYTES), one[QVL_SHA256_BYTES];
    assert_non_null(all);
    qvl_video *video = open_clip(&clip, NULL, NULL);
    for (int i = 0; i < spec->frames; i++) {
        qvl_image image = frame_of(video, i);
        digest_of(&image, all[i]);
    }
    qvl_video_close(&video);
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        video = open_clip(&clip, NULL, NULL);
        for (int i = (int)s; i < spec->frames; i += steps[s]) {
            qvl_image image = frame_of(video, i);
            assert_int_equal(seen_number(&image), i);
            digest_of(&image, one);
            if (memcmp(one, all[i], sizeof one) != 0)
                fail_msg("%s: frame %d differs in steps of %d", spec->muxer, i, steps[s]);
        }
        qvl_video_close(&video);
    }
    qvl_free(all);
    qvl_free(clip.data);
}

static void picks_equal_all_frames(void **state) {
    (void)state;
    static const clip_spec specs[] = {
        {.muxer = "mp4", .frames = 300, .gop = 25},
        {.muxer = "mp4", .frames = 300, .gop = 25, .options = "preset=veryfast:bf=3:x264-params=open-gop=1"},
        {.muxer = "mp4", .frames = 300, .gop = 25, .options = "preset=veryfast:intra-refresh=1:bf=0"},
        {.muxer = "matroska", .frames = 300, .gop = 25},
        {.muxer = "mpegts", .frames = 300, .gop = 25},
        {.muxer = "mp4", .encoder = "mpeg4", .options = "bf=2", .frames = 300, .gop = 25},
        {.muxer = "mpegts", .encoder = "mpeg2video", .options = "bf=2", .frames = 300, .gop = 25},
        {.muxer = "avi", .encoder = "mpeg4", .options = "bf=2", .frames = 300, .gop = 25},
        {.muxer = "webm",
         .encoder = "libvpx",
         .options = "auto-alt-ref=1:lag-in-frames=16:cpu-used=8",
         .frames = 200,
         .gop = 25},
        {.muxer = "webm",
         .encoder = "libvpx-vp9",
         .options = "lag-in-frames=16:cpu-used=8",
         .frames = 200,
         .gop = 25},
    };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) check_picks(&specs[i]);
}

/* The jump itself: to every key, straight from the start, and the frame there is the key's. */
static void jumps_reach_their_key(void **state) {
    (void)state;
    static const char *const muxers[] = {"mp4", "matroska", "mpegts"};
    for (size_t m = 0; m < sizeof muxers / sizeof *muxers; m++) {
        bytes clip = make_clip(&(clip_spec){.muxer = muxers[m], .frames = 200, .gop = 20});
        qvl_input input = {.kind = QVL_INPUT_BYTES, .bytes = clip.data, .byte_count = clip.count};
        qvl_video_source source;
        qvl_video_index index;
        qvl_video_decoder decoder;
        AVFrame *frame = av_frame_alloc();
        assert_int_equal(qvl_video_source_open(&input, "clip", &source, NULL), QVL_OK);
        assert_int_equal(qvl_video_source_rewind(&source, NULL, NULL), QVL_OK);
        assert_int_equal(qvl_video_index_read(&source, NULL, &index, NULL), QVL_OK);
        assert_true(index.sure && qvl_video_index_sort(&index));
        assert_true(index.key_count >= 10);
        for (int64_t k = 0; k < index.key_count; k++) {
            bool found;
            assert_int_equal(qvl_video_source_rewind(&source, NULL, NULL), QVL_OK);
            assert_int_equal(qvl_video_decoder_open(&source, &index, 1 << 20, &decoder, NULL), QVL_OK);
            assert_true(qvl_video_decoder_jump(&decoder, &index.keys[k]));
            assert_int_equal(decoder.number, index.keys[k].packet);
            assert_int_equal(qvl_video_decoder_next(&decoder, INT64_MIN, frame, &found, NULL), QVL_OK);
            assert_true(found);
            assert_int_equal(frame->pts, index.keys[k].time);
            av_frame_unref(frame);
            qvl_video_decoder_close(&decoder);
        }
        av_frame_free(&frame);
        qvl_video_index_free(&index);
        qvl_video_source_close(&source);
        qvl_free(clip.data);
    }
}

/* Patience that lasts for so many questions. */
typedef struct countdown {
    int left, asked;
} countdown;

static bool count_down(void *user) {
    countdown *c = user;
    c->asked++;
    return c->left-- > 0;
}

/* Opens the clip with that much patience; returns how often it was asked. */
static int open_patiently(const bytes *clip, int patience, qvl_status wanted) {
    qvl_input input = {.kind = QVL_INPUT_BYTES, .name = "clip", .bytes = clip->data, .byte_count = clip->count};
    countdown count = {.left = patience};
    const qvl_patience asking = {count_down, &count};
    qvl_video *video;
    qvl_error error = {0};
    assert_int_equal(qvl_video_open(&input, NULL, NULL, NULL, &asking, &video, &error), wanted);
    if (wanted) assert_null(video);
    if (wanted) assert_string_equal(error.message, "clip: reading was cancelled");
    qvl_video_close(&video);
    return count.asked;
}

/* Also where the whole clip must be decoded to know its frames, as that of an AVI whose packets have no times. */
static void opening_is_called_off(void **state) {
    (void)state;
    const clip_spec indexed = {.muxer = "mp4", .frames = 300},
                    decoded = {.muxer = "avi", .encoder = "mpeg4", .options = "bf=2", .frames = 300, .gop = 25};
    bytes clips[2] = {make_clip(&indexed), make_clip(&decoded)};
    for (int i = 0; i < 2; i++) {
        int asked = open_patiently(&clips[i], 10000, QVL_OK);
        if (i == 0) assert_int_equal(asked, 2);
        if (i == 1) assert_true(asked >= 2 + 300 / 16);
        for (int k = 0; k < asked; k++) assert_int_equal(open_patiently(&clips[i], k, QVL_ERROR_CANCELLED), k + 1);
        qvl_free(clips[i].data);
    }
}

static void frames_go_forward(void **state) {
    (void)state;
    bytes clip = make_clip(&(clip_spec){.frames = 10});
    qvl_video *video = open_clip(&clip, NULL, NULL);
    qvl_image image = frame_of(video, 5), again = frame_of(video, 5);
    assert_memory_equal(image.pixels, again.pixels, 64 * 48 * 3);
    qvl_image_free(&image);
    qvl_image_free(&again);
    static const int64_t wrong[] = {4, -1, 10};
    for (int i = 0; i < 3; i++) {
        qvl_error error;
        assert_int_equal(qvl_video_frame(video, wrong[i], &image, &error), QVL_ERROR_ARGUMENT);
        assert_non_null(strstr(error.message, "allowed are 5 to 9"));
        assert_null(image.pixels);
    }
    qvl_video_close(&video);
    qvl_video_close(&video);
    qvl_video_close(NULL);
    qvl_free(clip.data);
}

/* ---- memory */

/* More that a long clip may take, in KiB. The address sanitizer keeps what was freed for a while. */
#ifdef __SANITIZE_ADDRESS__
enum { SPARE = 320 * 1024 };
#else
enum { SPARE = 16 * 1024 };
#endif

/* Most memory, in KiB, that a process takes which reads 40 frames spread over the whole of a file, and then runs
 * through the rest of it. */
static long peak_of(const char *path, int64_t frames) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        qvl_input input = {.kind = QVL_INPUT_FILE, .name = path};
        qvl_video *video;
        bool good = qvl_video_open(&input, NULL, NULL, NULL, NULL, &video, NULL) == QVL_OK &&
                    qvl_video_get_info(video)->frame_count == frames;
        for (int64_t i = 0; i < 40 && good; i++) {
            qvl_image image;
            good = qvl_video_frame(video, i * (frames / 40 - 1), &image, NULL) == QVL_OK;
            qvl_image_free(&image);
        }
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        long peak = good ? usage.ru_maxrss : -1;
        _exit(write(ends[1], &peak, sizeof peak) != sizeof peak);
    }
    long peak = -1;
    close(ends[1]);
    assert_int_equal(read(ends[0], &peak, sizeof peak), sizeof peak);
    close(ends[0]);
    waitpid(child, NULL, 0);
    assert_true(peak > 0);
    return peak;
}

/* Report 58: 20,000 frames of 854 x 480 in one key frame's reach took 22 GB elsewhere. What a clip takes does not
 * depend on its length, but for a few bytes a frame. */
static void report_58_flat_memory(void **state) {
    (void)state;
    clip_spec spec = {.muxer = "mp4", .frames = 250, .width = 854, .height = 480, .gop = 250, .still = true};
    bytes clip = make_clip(&spec);
    char *path = write_clip(&clip);
    long brief = peak_of(path, 250);
    unlink(path);
    free(path);
    qvl_free(clip.data);
    spec.repeat = 80;
    clip = make_clip(&spec);
    path = write_clip(&clip);
    qvl_free(clip.data);
    long whole = peak_of(path, 20000);
    unlink(path);
    free(path);
    if (whole > brief + SPARE) fail_msg("%ld KiB for 20,000 frames, %ld for 250", whole, brief);
    assert_true(whole < 1024 * 1024);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(containers_and_codecs),
        cmocka_unit_test(pixel_formats_and_odd_sizes),
        cmocka_unit_test(report_50_shortest_clips),
        cmocka_unit_test(report_53_numbers_and_seconds),
        cmocka_unit_test(variable_rate),
        cmocka_unit_test(edit_list),
        cmocka_unit_test(starts_anywhere),
        cmocka_unit_test(report_61_rotation),
        cmocka_unit_test(picks_equal_all_frames),
        cmocka_unit_test(jumps_reach_their_key),
        cmocka_unit_test(opening_is_called_off),
        cmocka_unit_test(frames_go_forward),
        cmocka_unit_test(report_58_flat_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
