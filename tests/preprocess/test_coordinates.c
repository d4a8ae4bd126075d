/* Positions between the frames of a picture: by hand, there and back in every orientation, and against the turning
 * that decoding does. */
#include "media/canvas.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const qvl_frame frames[] = {QVL_FRAME_FILE, QVL_FRAME_SOURCE, QVL_FRAME_MODEL, QVL_FRAME_NORM1000};
#define FRAMES (sizeof frames / sizeof frames[0])

/* A picture stored as width x height under an EXIF orientation that reading applied, resized to a size that is
 * roughly as model limits make it. */
static qvl_item make_item(int64_t width, int64_t height, int32_t orientation) {
    bool sideways = orientation >= 5;
    qvl_item item = {.source_width = sideways ? height : width, .source_height = sideways ? width : height};
    item.width = (item.source_width + 31) / 32 * 32;
    item.height = (item.source_height + 31) / 32 * 32;
    item.stored = (qvl_stored){"JPEG", width, height, orientation, orientation != 1, 0};
    return item;
}

static qvl_point map_point(const qvl_item *item, qvl_frame from, qvl_frame to, double x, double y) {
    qvl_point out;
    qvl_error error = {0};
    if (qvl_map_point(item, from, to, (qvl_point){x, y}, &out, &error)) fail_msg("%s", error.message);
    return out;
}

static qvl_box map_box(const qvl_item *item, qvl_frame from, qvl_frame to, qvl_box box) {
    qvl_box out;
    qvl_error error = {0};
    if (qvl_map_box(item, from, to, box, &out, &error)) fail_msg("%s", error.message);
    return out;
}

static void assert_near(double found, double expected) {
    if (fabs(found - expected) > 1e-9 * fmax(1, fabs(expected))) fail_msg("%.17g is not %.17g", found, expected);
}

static void assert_box(qvl_box found, double x1, double y1, double x2, double y2) {
    assert_near(found.x1, x1);
    assert_near(found.y1, y1);
    assert_near(found.x2, x2);
    assert_near(found.y2, y2);
}

/* ---- by hand */

static void frames_of_an_upright_picture(void **state) {
    (void)state;
    qvl_item item = make_item(800, 600, 1); /* the model sees 800 x 608 */
    qvl_box middle = {250, 250, 750, 500};
    assert_box(map_box(&item, QVL_FRAME_NORM1000, QVL_FRAME_SOURCE, middle), 200, 150, 600, 300);
    assert_box(map_box(&item, QVL_FRAME_NORM1000, QVL_FRAME_FILE, middle), 200, 150, 600, 300);
    assert_box(map_box(&item, QVL_FRAME_NORM1000, QVL_FRAME_MODEL, middle), 200, 152, 600, 304);
    assert_box(map_box(&item, QVL_FRAME_MODEL, QVL_FRAME_SOURCE, (qvl_box){0, 304, 800, 608}), 0, 300, 800, 600);
    assert_box(map_box(&item, QVL_FRAME_SOURCE, QVL_FRAME_NORM1000, (qvl_box){0, 0, 800, 600}), 0, 0, 1000, 1000);
}

/* The centre of the first stored pixel, and a box round the stored pixels (1, 0) and (2, 0), of 5 x 3. */
static void each_orientation_by_hand(void **state) {
    (void)state;
    static const struct {
        qvl_point first;
        qvl_box pair;
    } expected[9] = {
        [1] = {{0.5, 0.5}, {1, 0, 3, 1}}, [2] = {{4.5, 0.5}, {2, 0, 4, 1}}, [3] = {{4.5, 2.5}, {2, 2, 4, 3}},
        [4] = {{0.5, 2.5}, {1, 2, 3, 3}}, [5] = {{0.5, 0.5}, {0, 1, 1, 3}}, [6] = {{2.5, 0.5}, {2, 1, 3, 3}},
        [7] = {{2.5, 4.5}, {2, 2, 3, 4}}, [8] = {{0.5, 4.5}, {0, 2, 1, 4}},
    };
    for (int turn = 1; turn <= 8; turn++) {
        qvl_item item = make_item(5, 3, turn);
        qvl_point first = map_point(&item, QVL_FRAME_FILE, QVL_FRAME_SOURCE, 0.5, 0.5);
        assert_near(first.x, expected[turn].first.x);
        assert_near(first.y, expected[turn].first.y);
        qvl_box pair = expected[turn].pair;
        assert_box(map_box(&item, QVL_FRAME_FILE, QVL_FRAME_SOURCE, (qvl_box){1, 0, 3, 1}), pair.x1, pair.y1,
                   pair.x2, pair.y2);
        assert_box(map_box(&item, QVL_FRAME_SOURCE, QVL_FRAME_FILE, pair), 1, 0, 3, 1);
    }
}

/* Every stored pixel is drawn with a colour of its own; its mapped centre must lie in the pixel of that colour. */
static void orientations_as_decoding_turns_them(void **state) {
    (void)state;
    enum { WIDTH = 21, HEIGHT = 18 };
    qvl_media_options options;
    qvl_media_options_init(&options);
    for (int turn = 1; turn <= 8; turn++) {
        qvl_error error = {0};
        qvl_canvas canvas = {.options = &options, .name = "test", .error = &error};
        if (qvl_canvas_open(&canvas, "PNG", WIDTH, HEIGHT, turn)) fail_msg("%s", error.message);
        for (int y = 0; y < HEIGHT; y++) {
            uint8_t row[3 * WIDTH];
            for (int x = 0; x < WIDTH; x++) {
                row[3 * x] = (uint8_t)x;
                row[3 * x + 1] = (uint8_t)y;
                row[3 * x + 2] = 7;
            }
            qvl_canvas_row(&canvas, y, row);
        }
        const qvl_image *image = &canvas.image;
        qvl_item item = {.source_width = image->width, .source_height = image->height, .stored = image->stored};
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++) {
                qvl_point p = map_point(&item, QVL_FRAME_FILE, QVL_FRAME_SOURCE, x + 0.5, y + 0.5);
                const uint8_t *pixel = image->pixels + 3 * ((int64_t)p.y * image->width + (int64_t)p.x);
                if (pixel[0] != x || pixel[1] != y) fail_msg("orientation %d: (%d, %d)", turn, x, y);
            }
        qvl_canvas_close(&canvas, false);
    }
}

/* ---- what users ran into (user reports, by number) */

/* There and back between every two frames, for the two pictures of the report, stored in every orientation. */
static void report_13_round_trips(void **state) {
    (void)state;
    static const int64_t sizes[][2] = {{800, 800}, {1380, 245}};
    static const double parts[][2] = {{0, 0}, {1, 1}, {0.12, 0.05}, {0.88, 0.99}, {1.0 / 3, 0.7}, {-0.01, 1.02}};
    for (size_t s = 0; s < 2; s++)
        for (int turn = 1; turn <= 8; turn++) {
            qvl_item item = make_item(sizes[s][0], sizes[s][1], turn);
            for (size_t from = 0; from < FRAMES; from++)
                for (size_t to = 0; to < FRAMES; to++)
                    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
                        double width, height;
                        assert_int_equal(qvl_frame_size(&item, frames[from], &width, &height, NULL), QVL_OK);
                        qvl_point there =
                            map_point(&item, frames[from], frames[to], parts[i][0] * width, parts[i][1] * height);
                        qvl_point back = map_point(&item, frames[to], frames[from], there.x, there.y);
                        assert_near(back.x, parts[i][0] * width);
                        assert_near(back.y, parts[i][1] * height);
                    }
        }
}

static void report_13_values(void **state) {
    (void)state;
    qvl_item square = make_item(800, 800, 1), strip = make_item(1380, 245, 1);
    strip.width = 1376; /* report 7 */
    strip.height = 256;
    qvl_box answer = {120, 50, 880, 990};
    assert_box(map_box(&square, QVL_FRAME_NORM1000, QVL_FRAME_FILE, answer), 96, 40, 704, 792);
    assert_box(map_box(&strip, QVL_FRAME_NORM1000, QVL_FRAME_FILE, answer), 165.6, 12.25, 1214.4, 242.55);
    assert_box(map_box(&strip, QVL_FRAME_MODEL, QVL_FRAME_FILE, (qvl_box){688, 128, 1376, 256}), 690, 122.5, 1380,
               245);
    /* Read in the wrong frame, the same numbers are another box. */
    assert_box(map_box(&strip, QVL_FRAME_MODEL, QVL_FRAME_NORM1000, (qvl_box){688, 128, 1376, 256}), 500, 500,
               1000, 1000);
}

/* ---- boxes */

static void corners_are_put_in_order(void **state) {
    (void)state;
    for (int turn = 1; turn <= 8; turn++) {
        qvl_item item = make_item(640, 480, turn);
        qvl_box expected = map_box(&item, QVL_FRAME_SOURCE, QVL_FRAME_FILE, (qvl_box){10, 20, 110, 70});
        assert_true(expected.x1 < expected.x2 && expected.y1 < expected.y2);
        assert_near((expected.x2 - expected.x1) * (expected.y2 - expected.y1), 100 * 50);
        const qvl_box others[] = {{110, 20, 10, 70}, {10, 70, 110, 20}, {110, 70, 10, 20}};
        for (size_t i = 0; i < 3; i++)
            assert_box(map_box(&item, QVL_FRAME_SOURCE, QVL_FRAME_FILE, others[i]), expected.x1, expected.y1,
                       expected.x2, expected.y2);
    }
    qvl_item item = make_item(640, 480, 1);
    assert_box(map_box(&item, QVL_FRAME_SOURCE, QVL_FRAME_SOURCE, (qvl_box){9, 8, 7, 6}), 7, 6, 9, 8);
}

static void the_same_frame_changes_no_bit(void **state) {
    (void)state;
    qvl_item item = make_item(1380, 245, 6);
    for (size_t i = 0; i < FRAMES; i++) {
        qvl_point p = map_point(&item, frames[i], frames[i], 0.1, 123.456789);
        assert_true(p.x == 0.1 && p.y == 123.456789);
    }
}

static void clamping(void **state) {
    (void)state;
    assert_box(qvl_clamp_box((qvl_box){-5, 10, 1003, 990}, 1000, 1000), 0, 10, 1000, 990);
    assert_box(qvl_clamp_box((qvl_box){5, 10, 100, 99}, 1000, 1000), 5, 10, 100, 99);
    assert_box(qvl_clamp_box((qvl_box){1010, -20, 1020, -10}, 1000, 1000), 1000, 0, 1000, 0);
}

/* Ignoring orientation makes the file's frame the source's. */
static void orientation_that_was_not_applied(void **state) {
    (void)state;
    qvl_item item = make_item(640, 480, 1);
    item.stored.orientation = 6;
    assert_false(item.stored.oriented);
    assert_box(map_box(&item, QVL_FRAME_SOURCE, QVL_FRAME_FILE, (qvl_box){1, 2, 3, 4}), 1, 2, 3, 4);
}

/* ---- refusals */

static void expect_refused(const qvl_item *item, qvl_frame from, qvl_frame to, qvl_point p, const char *words) {
    qvl_point out = {7, 7};
    qvl_box box = {7, 7, 7, 7};
    qvl_error error = {0};
    assert_int_equal(qvl_map_point(item, from, to, p, &out, &error), QVL_ERROR_ARGUMENT);
    if (!strstr(error.message, words)) fail_msg("'%s' does not say '%s'", error.message, words);
    assert_true(out.x == 0 && out.y == 0);
    assert_int_equal(qvl_map_box(item, from, to, (qvl_box){p.x, p.y, 1, 1}, &box, NULL), QVL_ERROR_ARGUMENT);
    assert_box(box, 0, 0, 0, 0);
}

static void impossible_positions_and_pictures(void **state) {
    (void)state;
    qvl_item item = make_item(640, 480, 6), unknown = {0};
    qvl_point p = {1, 2};
    expect_refused(&item, (qvl_frame)4, QVL_FRAME_FILE, p, "frame 4 is unknown");
    expect_refused(&item, QVL_FRAME_FILE, (qvl_frame)-1, p, "frame -1 is unknown");
    expect_refused(&item, QVL_FRAME_FILE, QVL_FRAME_MODEL, (qvl_point){NAN, 0}, "position nan, 0");
    expect_refused(&item, QVL_FRAME_FILE, QVL_FRAME_MODEL, (qvl_point){0, INFINITY}, "position 0, inf");
    expect_refused(&item, QVL_FRAME_FILE, QVL_FRAME_MODEL, (qvl_point){0, -2e15}, "position 0, -2e+15");
    expect_refused(&unknown, QVL_FRAME_NORM1000, QVL_FRAME_SOURCE, p, "in frame norm1000 is 0 x 0");
    item.width = 0;
    expect_refused(&item, QVL_FRAME_NORM1000, QVL_FRAME_MODEL, p, "in frame model is 0 x 640");
    item.stored.orientation = 9;
    expect_refused(&item, QVL_FRAME_NORM1000, QVL_FRAME_FILE, p, "orientation is 9; allowed are 1 to 8");
    item.stored.orientation = 1;
    expect_refused(&item, QVL_FRAME_NORM1000, QVL_FRAME_FILE, p, "stored size 640 x 480 under orientation 1");
    assert_null(qvl_frame_name((qvl_frame)4));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_of_an_upright_picture),
        cmocka_unit_test(each_orientation_by_hand),
        cmocka_unit_test(orientations_as_decoding_turns_them),
        cmocka_unit_test(report_13_round_trips),
        cmocka_unit_test(report_13_values),
        cmocka_unit_test(corners_are_put_in_order),
        cmocka_unit_test(the_same_frame_changes_no_bit),
        cmocka_unit_test(clamping),
        cmocka_unit_test(orientation_that_was_not_applied),
        cmocka_unit_test(impossible_positions_and_pictures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
