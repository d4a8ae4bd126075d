/* Clips against the bytes, numbers and times that torchcodec (transformers' loader of videos) gives for them, or PyAV:
 * tests/fixtures/video, made by tools/oracle/make_video_fixtures.py. */
#include "media/clips.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"

#include <cjson/cJSON.h>

#include <math.h>

static bytes load_video(const char *file) {
    char path[512];
    snprintf(path, sizeof path, QVL_FIXTURES "/video/%s", file);
    bytes b;
    qvl_error error;
    if (qvl_file_read(path, (size_t)1 << 20, &b.data, &b.count, &error)) fail_msg("%s", error.message);
    return b;
}

static double number_of(const cJSON *object, const char *key) {
    const cJSON *value = cJSON_GetObjectItem(object, key);
    assert_true(cJSON_IsNumber(value));
    return value->valuedouble;
}

static void check_frame(qvl_video *video, const cJSON *clip, int frame) {
    const char *file = cJSON_GetObjectItem(clip, "file")->valuestring;
    const char *wanted = cJSON_GetArrayItem(cJSON_GetObjectItem(clip, "sha256"), frame)->valuestring;
    double second = cJSON_GetArrayItem(cJSON_GetObjectItem(clip, "seconds"), frame)->valuedouble;
    qvl_image image = frame_of(video, frame);
    uint8_t digest[QVL_SHA256_BYTES];
    char hex[QVL_SHA256_HEX];
    assert_int_equal(qvl_sha256(image.pixels, (size_t)(image.width * image.height * 3), digest, NULL), QVL_OK);
    qvl_sha256_print(digest, hex);
    if (strcmp(hex, wanted) != 0)
        fail_msg("%s: frame %d differs from %s's", file, frame, cJSON_GetObjectItem(clip, "source")->valuestring);
    assert_true(fabs(qvl_video_seconds(video, frame) - second) < 1e-6);
    qvl_image_free(&image);
}

static void check_clip(const cJSON *clip, int step) {
    const char *file = cJSON_GetObjectItem(clip, "file")->valuestring;
    bytes b = load_video(file);
    qvl_media_options options;
    qvl_media_options_init(&options);
    options.alpha = QVL_ALPHA_DROP; /* as the loaders do */
    notes taken = {0};
    qvl_video *video = open_clip(&b, &options, &taken);
    const qvl_video_info *info = qvl_video_get_info(video);
    int frames = cJSON_GetArraySize(cJSON_GetObjectItem(clip, "sha256"));
    if (info->frame_count != frames) fail_msg("%s: %d frames, not %d", file, (int)info->frame_count, frames);
    assert_int_equal(info->width, (int64_t)number_of(clip, "width"));
    assert_int_equal(info->height, (int64_t)number_of(clip, "height"));
    assert_true(fabs((double)info->frame_count / info->duration - number_of(clip, "average_fps")) < 1e-6);
    for (int i = 0; i < frames; i += step) check_frame(video, clip, i);
    if (taken.count) fail_msg("%s: %s", file, taken.last);
    qvl_video_close(&video);
    qvl_free(b.data);
}

static void check_clips(int step) {
    bytes json = load_video("expected.json");
    cJSON *root = cJSON_ParseWithLength((const char *)json.data, json.count);
    assert_non_null(root);
    const cJSON *clips = cJSON_GetObjectItem(root, "clips"), *clip;
    assert_true(cJSON_GetArraySize(clips) >= 25);
    cJSON_ArrayForEach(clip, clips) check_clip(clip, step);
    cJSON_Delete(root);
    qvl_free(json.data);
}

static void every_frame(void **state) {
    (void)state;
    check_clips(1);
}

static void some_frames(void **state) {
    (void)state;
    check_clips(3);
    check_clips(7);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_frame), cmocka_unit_test(some_frames)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
