/* qvl encode --map: its size, its squares, that nothing but the features decides it, and what is refused. */
#define _GNU_SOURCE
#include "cli/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SCENE QVL_SOURCE_DIR "/examples/scene.jpg"
#define CHART QVL_SOURCE_DIR "/examples/chart.png"
#define CLIP QVL_FIXTURES "/video/vp9.webm"
#define ENCODE(...) QVL_RANDOM("encode", __VA_ARGS__, "-q")

enum { SIDE = 32 }; /* of a token */

static qvl_image read_map(const char *path) {
    qvl_input input = {.kind = QVL_INPUT_FILE, .name = path};
    qvl_image image;
    qvl_error error;
    if (qvl_image_read(&input, NULL, &image, &error)) fail_msg("%s", error.message);
    return image;
}

static const uint8_t *pixel(const qvl_image *image, int64_t x, int64_t y) {
    return image->pixels + 3 * (y * image->width + x);
}

/* Every token is a square of one colour, and colours differ. */
static void assert_squares(const qvl_image *map, int64_t width, int64_t height) {
    bool reached[3][256] = {{false}};
    assert_int_equal(map->width, width);
    assert_int_equal(map->height, height);
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            const uint8_t *p = pixel(map, x, y);
            assert_memory_equal(p, pixel(map, x / SIDE * SIDE, y / SIDE * SIDE), 3);
            for (int c = 0; c < 3; c++) reached[c][p[c]] = true;
        }
    for (int c = 0; c < 3; c++) assert_true(reached[c][0] && reached[c][255]);
}

static void test_picture(void **state) {
    (void)state;
    char map[512], features[512], plain[512], alone[512], output[600];
    snprintf(map, sizeof map, "%s", scratch("map.png"));
    snprintf(features, sizeof features, "%s", scratch("with.safetensors"));
    snprintf(plain, sizeof plain, "%s", scratch("without.safetensors"));
    snprintf(alone, sizeof alone, "%s", scratch("alone"));
    result r = expect(0, NULL, ENCODE(SCENE, "--map", map, "-o", features));
    assert_says(r.out, "map of the features written to ");
    free_result(&r);
    qvl_image image = read_map(map);
    assert_squares(&image, 640, 416);
    qvl_image_free(&image);
    run(ENCODE(SCENE, "-o", plain));
    assert_same_file(features, plain);
    assert_int_equal(mkdir(alone, 0777), 0);
    snprintf(output, sizeof output, "%s/map.png", alone);
    cJSON *json = run_json(ENCODE(SCENE, "--map", output, "--json"));
    assert_string_equal(field(json, "map")->valuestring, output);
    assert_true(cJSON_IsNull(field(json, "output")));
    cJSON_Delete(json);
    assert_int_equal(count_files(alone), 1);
    assert_same_file(map, output);
    struct stat status;
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(stat(output, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0666 & ~mask); /* as other results have it */
    json = run_json(ENCODE(SCENE, "--json"));
    assert_true(cJSON_IsNull(field(json, "map")));
    cJSON_Delete(json);
}

/* Found in the cache or not, by one thread or by three: the same bytes. */
static void test_same_bytes(void **state) {
    (void)state;
    char first[512], hit[512], fresh[512], other[512];
    snprintf(first, sizeof first, "%s", scratch("first.png"));
    snprintf(hit, sizeof hit, "%s", scratch("hit.png"));
    snprintf(fresh, sizeof fresh, "%s", scratch("fresh.png"));
    snprintf(other, sizeof other, "%s", scratch("other.png"));
    result r = expect(0, NULL, ENCODE(CHART, "--map", first, "--threads", "1", "--dtype", "f32"));
    assert_says(r.out, ", cache miss");
    free_result(&r);
    r = expect(0, NULL, ENCODE(CHART, "--map", hit, "--dtype", "f32"));
    assert_says(r.out, ", cache hit");
    free_result(&r);
    run(ENCODE(CHART, "--map", fresh, "--threads", "3", "--dtype", "f32", "--no-cache"));
    assert_same_file(first, hit);
    assert_same_file(first, fresh);
    qvl_image a = read_map(first);
    char size[64];
    snprintf(size, sizeof size, "%lldx%lld", (long long)a.width, (long long)a.height);
    run(ENCODE(SCENE, "--map", other, "--dtype", "f32", "--size", size));
    qvl_image b = read_map(other);
    assert_true(a.width == b.width && a.height == b.height);
    assert_memory_not_equal(a.pixels, b.pixels, (size_t)(3 * a.width * a.height));
    qvl_image_free(&a);
    qvl_image_free(&b);
}

/* Groups of a clip lie below one another. */
static void test_clip(void **state) {
    (void)state;
    const char *map = scratch("clip.png");
    cJSON *json = run_json(ENCODE(CLIP, "--map", map, "--json", "--size", "160x96"));
    const cJSON *grid = field(cJSON_GetArrayItem(field(json, "items"), 0), "grid_thw");
    int t = cJSON_GetArrayItem(grid, 0)->valueint;
    cJSON_Delete(json);
    assert_true(t > 1);
    qvl_image image = read_map(map);
    assert_squares(&image, 160, 96 * t);
    qvl_image_free(&image);
}

static void test_one_token(void **state) {
    (void)state;
    const char *map = scratch("one.png");
    run(ENCODE(CHART, "--map", map, "--size", "32x32"));
    qvl_image image = read_map(map);
    assert_true(image.width == SIDE && image.height == SIDE);
    for (int i = 0; i < 3 * SIDE * SIDE; i++) assert_int_equal(image.pixels[i], 128);
    qvl_image_free(&image);
}

static void refuse(int code, const char *says, const char *const *arguments) {
    result r = expect(code, NULL, arguments);
    assert_says(r.err, says);
    assert_string_equal(r.out, "");
    free_result(&r);
}

static void test_refusals(void **state) {
    (void)state;
    char folder[512], map[600], missing[600];
    snprintf(folder, sizeof folder, "%s", scratch("refused"));
    snprintf(map, sizeof map, "%s/map.png", folder);
    snprintf(missing, sizeof missing, "%s/missing.png", folder);
    assert_int_equal(mkdir(folder, 0777), 0);
    refuse(2, "--map draws one INPUT", ENCODE(SCENE, CHART, "--map", map));
    refuse(2, "--map needs a file, not standard output", ENCODE(SCENE, "--map", "-"));
    refuse(2, "--map names an INPUT", ENCODE(SCENE, "--map", SCENE));
    refuse(2, "-o and --map name the same file", ENCODE(SCENE, "--map", map, "-o", map));
    refuse(2, "--taps and --map name the same file", ENCODE(SCENE, "--map", map, "--taps", map));
    refuse(2, "--map is a flag of other commands", QVL("plan", SCENE, "--map", map));
    refuse(1, "is a folder: --map draws one picture or clip", ENCODE(folder, "--map", map));
    refuse(1, "cannot write /nowhere/map.png: ", ENCODE(SCENE, "--map", "/nowhere/map.png"));
    /* Before anything is read. */
    refuse(1, "it exists and is not a regular file", ENCODE(missing, "--map", folder));
    refuse(1, "it exists and is not a regular file", ENCODE(missing, "--map", map, "-o", folder));
    refuse(1, "cannot write /nowhere/?[1m?.png: ", ENCODE(missing, "--map", "/nowhere/\033[1m\177.png"));
    refuse(1, "the map would have 32x1000064 pixels; a side has at most 1000000",
           ENCODE(CLIP, "--map", map, "--size", "32x500032"));
    refuse(1, "the map would have 38400x38400 pixels, 4423718400 bytes; a PNG file has at most 4294967295",
           ENCODE(CHART, "--map", map, "--size", "38400x38400"));
    refuse(1, "missing.png", ENCODE(missing, "--map", map));
    assert_int_equal(count_files(folder), 0);
    /* What was there before a failure stays. */
    write_file(map, "before", 6);
    refuse(1, "missing.png", ENCODE(missing, "--map", map));
    char *kept = read_file(map, NULL);
    assert_string_equal(kept, "before");
    free(kept);
    run(ENCODE(CHART, "--map", map));
    assert_int_equal(count_files(folder), 1);
    qvl_image image = read_map(map);
    qvl_image_free(&image);
}

/* A map that cannot be written, since the temporary name is too long, does not cost the features. */
static void test_features_stay(void **state) {
    (void)state;
    char folder[512], features[600], name[260], map[800];
    snprintf(folder, sizeof folder, "%s", scratch("stay"));
    snprintf(features, sizeof features, "%s/features.safetensors", folder);
    memset(name, 'm', sizeof name);
    snprintf(map, sizeof map, "%s/%.251s.png", folder, name);
    assert_int_equal(mkdir(folder, 0777), 0);
    refuse(1, "File name too long", ENCODE(CHART, "--map", map, "-o", features));
    assert_int_equal(count_files(folder), 1);
    qvl_tensor_file *file = open_tensors(features);
    tensor_of(file, "image_embeds");
    qvl_tensor_file_close(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_picture),   cmocka_unit_test(test_same_bytes), cmocka_unit_test(test_clip),
        cmocka_unit_test(test_one_token), cmocka_unit_test(test_refusals),   cmocka_unit_test(test_features_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
