/* qvl box: every frame, orientation undone, what is clamped, what is refused. */
#include "cli/pictures.h"
#include "cli/program.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCENE QVL_SOURCE_DIR "/examples/scene.jpg"

static void expect_line(const char *const *arguments, const char *line) {
    result r = expect(0, NULL, arguments);
    assert_string_equal(r.out, line);
    assert_string_equal(r.err, "");
    free_result(&r);
}

static void test_frames(void **state) {
    (void)state;
    /* 640 x 427; the model sees 640 x 416. */
    expect_line(QVL("box", SCENE, "250,500,750,1000"), "160.00,213.50,480.00,427.00\n");
    expect_line(QVL("box", SCENE, "--to", "source", "500,500"), "320.00,213.50\n");
    expect_line(QVL_RANDOM("box", SCENE, "--to", "model", "0,0,500,500"), "0.00,0.00,320.00,208.00\n");
    expect_line(QVL_RANDOM("box", SCENE, "--from", "model", "0,0,320,208"), "0.00,0.00,320.00,213.50\n");
    expect_line(QVL("box", SCENE, "--from", "file", "--to", "norm1000", "64,42.7"), "100.00,100.00\n");
    expect_line(QVL("box", SCENE, "--from", "file", "--to", "file", "9,8,7,6.125"), "7.00,6.12,9.00,8.00\n");
    expect_line(QVL("box", SCENE, "1,2", "10,20,30,40"), "0.64,0.85\n6.40,8.54,19.20,17.08\n");
    expect_line(QVL_RANDOM("box", SCENE, "--from", "model", "--size", "64x32", "32,16"), "320.00,213.50\n");
}

static cJSON *box_json(const char *path, const char *from, const char *to, const char *box) {
    result r = expect(0, NULL, QVL_RANDOM("box", path, "--json", "--from", from, "--to", to, box));
    cJSON *json = cJSON_Parse(r.out);
    if (!json) fail_msg("this is no JSON: %s", r.out);
    free_result(&r);
    return json;
}

static const cJSON *member(const cJSON *json, const char *key) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(json, key);
    if (!value) fail_msg("there is no %s", key);
    return value;
}

/* Maps there, then what came out back. */
static void round_trip(const char *path, const char *from, const char *to) {
    static const double given[4] = {20.25, 30.5, 170.125, 100};
    char box[200];
    snprintf(box, sizeof box, "%.17g,%.17g,%.17g,%.17g", given[0], given[1], given[2], given[3]);
    cJSON *there = box_json(path, from, to, box);
    const cJSON *entry = cJSON_GetArrayItem(member(there, "boxes"), 0), *mapped = member(entry, "mapped");
    assert_true(cJSON_IsFalse(member(entry, "clamped")));
    int length = 0;
    for (int i = 0; i < 4; i++)
        length += snprintf(box + length, sizeof box - (size_t)length, "%s%.17g", i ? "," : "",
                           cJSON_GetArrayItem(mapped, i)->valuedouble);
    cJSON *back = box_json(path, to, from, box);
    mapped = member(cJSON_GetArrayItem(member(back, "boxes"), 0), "mapped");
    for (int i = 0; i < 4; i++)
        assert_true(fabs(cJSON_GetArrayItem(mapped, i)->valuedouble / given[i] - 1) < 1e-9);
    cJSON_Delete(back);
    cJSON_Delete(there);
}

static void report_13_round_trips(void **state) {
    (void)state;
    static const char *const frames[] = {"norm1000", "model", "source", "file"};
    static const uint32_t sizes[][2] = {{800, 800}, {1380, 245}};
    for (size_t s = 0; s < 2; s++) {
        const char *path = scratch(s ? "strip.png" : "square.png");
        write_png(path, sizes[s][0], sizes[s][1]);
        for (size_t a = 0; a < 4; a++)
            for (size_t b = 0; b < 4; b++) round_trip(path, frames[a], frames[b]);
    }
    expect_line(QVL("box", scratch("square.png"), "120,50,880,990"), "96.00,40.00,704.00,792.00\n");
    expect_line(QVL("box", scratch("strip.png"), "120,50,880,990"), "165.60,12.25,1214.40,242.55\n");
    expect_line(QVL_RANDOM("box", scratch("strip.png"), "--from", "model", "688,128,1376,256"),
                "690.00,122.50,1380.00,245.00\n");
}

/* The left tenth of the picture as shown, in the stored pixels (640 x 427) of each orientation. */
static void test_orientations(void **state) {
    (void)state;
    static const char *const expected[9] = {
        NULL,
        "0.00,0.00,64.00,427.00\n",
        "576.00,0.00,640.00,427.00\n",
        "576.00,0.00,640.00,427.00\n",
        "0.00,0.00,64.00,427.00\n",
        "0.00,0.00,640.00,42.70\n",
        "0.00,384.30,640.00,427.00\n",
        "0.00,384.30,640.00,427.00\n",
        "0.00,0.00,640.00,42.70\n",
    };
    for (int orientation = 1; orientation <= 8; orientation++) {
        const char *path = scratch("turned.jpg");
        write_turned_jpeg(path, SCENE, orientation);
        expect_line(QVL("box", path, "0,0,100,1000"), expected[orientation]);
        expect_line(QVL("box", path, "0,0,100,1000", "--orientation", "ignore"), expected[1]);
        cJSON *json = box_json(path, "norm1000", "source", "0,0,100,1000");
        assert_int_equal(member(json, "orientation")->valueint, orientation);
        const cJSON *size = member(json, "source_size");
        assert_int_equal(cJSON_GetArrayItem(size, 0)->valueint, orientation >= 5 ? 427 : 640);
        cJSON_Delete(json);
    }
}

static void test_clamping(void **state) {
    (void)state;
    result r = expect(0, NULL, QVL("box", SCENE, "-5,10,1003,990", "10,10"));
    assert_string_equal(r.out, "0.00,4.27,640.00,422.73\n6.40,4.27\n");
    assert_string_equal(r.err, "note: -5,10,1003,990 reaches beyond the picture and is clamped\n");
    free_result(&r);
    r = expect(0, NULL, QVL("box", "-q", SCENE, "-5,10,1003,990"));
    assert_string_equal(r.err, "");
    free_result(&r);
}

static void test_only_a_header_is_read(void **state) {
    (void)state;
    size_t count;
    char *scene = read_file(SCENE, &count);
    const char *cut = scratch("cut.jpg");
    write_file(cut, scene, count / 2);
    free(scene);
    expect_line(QVL("box", cut, "500,1000"), "320.00,427.00\n");
    result r = expect(0, SCENE, QVL("box", "-", "500,1000"));
    assert_string_equal(r.out, "320.00,427.00\n");
    free_result(&r);
}

static void expect_refused(int code, const char *const *arguments, const char *says) {
    result r = expect(code, NULL, arguments);
    assert_string_equal(r.out, "");
    assert_says(r.err, says);
    free_result(&r);
}

static void test_refusals(void **state) {
    (void)state;
    static const char *const wrong[] = {"1",        "1,2,3", "1,2,3,4,5", "1,2,x,4", "1,,2",   ",1,2",
                                        "1,2,3,4,", "1;2",   "nonsense",  "",        "1e999,2"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect_refused(2, QVL("box", SCENE, wrong[i]), "is no box; allowed is x1,y1,x2,y2, or x,y for a point");
    expect_refused(2, QVL("box"), "an INPUT is missing");
    expect_refused(2, QVL("box", SCENE), "a BOX is missing");
    expect_refused(2, QVL("box", SCENE, "1,2", "--to", "pixels"), "allowed is norm1000, model, source or file");
    expect_refused(2, QVL("box", SCENE, "1,2", "-o", "x"), "--output is a flag of other commands");
    expect_refused(2, QVL("encode", SCENE, "--to", "file"), "--to is a flag of other commands");
    expect_refused(1, QVL("box", SCENE, "nan,2"), "position nan, 2");
    expect_refused(1, QVL("box", SCENE, "1,1e300"), "position 1, 1e+300");
    expect_refused(1, QVL("box", "/nowhere/a.png", "1,2"), "/nowhere/a.png");
    expect_refused(1, QVL("box", SCENE, "1,2", "-m", "/nowhere"), "/nowhere");
    expect_refused(1, QVL_RANDOM("box", SCENE, "1,2", "--size", "33x32"), "multiples of 32");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),
        cmocka_unit_test(report_13_round_trips),
        cmocka_unit_test(test_orientations),
        cmocka_unit_test(test_clamping),
        cmocka_unit_test(test_only_a_header_is_read),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
