/* The policies: orientation, alpha, 16-bit grey, and Pillow's rule for ink. Numbers are Pillow's where nothing else
 * is said. */
#include "base/memory.h"
#include "media/exif.h"
#include "media/support.h"

static qvl_media_options default_options(void) {
    qvl_media_options options;
    qvl_media_options_init(&options);
    return options;
}

/* ---- alpha */

/* Report 25: a logo, 272 x 92, with noise under transparent pixels; a third each is clear, half clear and opaque. */
static void report_25_transparent(void **state) {
    (void)state;
    enum { WIDTH = 272, HEIGHT = 92 };
    static uint8_t rgba[HEIGHT * WIDTH * 4], png[sizeof rgba + 1000], rgb[HEIGHT * WIDTH * 3];
    static const uint8_t alphas[3] = {0, 128, 255};
    uint32_t seed = 1;
    for (size_t i = 0; i < HEIGHT * WIDTH; i++) {
        for (size_t c = 0; c < 3; c++) rgba[4 * i + c] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
        rgba[4 * i + 3] = alphas[i % 3];
    }
    /* The stored block of write_png holds less than 64 KiB: two halves. */
    for (size_t half = 0; half < 2; half++) {
        const uint8_t *part = rgba + half * sizeof rgba / 2;
        size_t count = write_png(png, WIDTH, HEIGHT / 2, 8, PNG_RGBA, part, WIDTH * 4);
        qvl_media_options options = default_options();
        const uint8_t *ground = options.alpha_colour;
        for (int policy = 0; policy < 3; policy++) { /* on white, on a colour, dropped */
            if (policy == 1) memcpy(options.alpha_colour, (uint8_t[]){200, 30, 90}, 3);
            if (policy == 2) options.alpha = QVL_ALPHA_DROP;
            for (size_t i = 0; i < WIDTH * HEIGHT / 2; i++)
                for (size_t c = 0; c < 3; c++) {
                    unsigned value = part[4 * i + c], alpha = policy == 2 ? 255 : part[4 * i + 3];
                    unsigned t = value * alpha + ground[c] * (255 - alpha) + 128;
                    rgb[3 * i + c] = (uint8_t)(((t >> 8) + t) >> 8);
                }
            expect_pixels(png, count, &options, WIDTH, HEIGHT / 2, rgb);
        }
    }
}

/* Pillow's own numbers for colours 0, 100, 255 under alphas 0, 1, 128, 254, 255. */
static void alpha_is_pasted_as_pillow_does(void **state) {
    (void)state;
    static const uint8_t values[3] = {0, 100, 255}, alphas[5] = {0, 1, 128, 254, 255};
    static const uint8_t on_white[5][3] = {
        {255, 255, 255}, {254, 254, 255}, {127, 177, 255}, {1, 101, 255}, {0, 100, 255}};
    static const uint8_t on_colour[5][3] = {
        {200, 30, 90}, {199, 30, 91}, {100, 65, 173}, {1, 100, 254}, {0, 100, 255}};
    uint8_t rgba[5 * 4], png[200];
    for (size_t i = 0; i < 5; i++) {
        memcpy(rgba + 4 * i, values, 3);
        rgba[4 * i + 3] = alphas[i];
    }
    size_t count = write_png(png, 5, 1, 8, PNG_RGBA, rgba, sizeof rgba);
    qvl_media_options options = default_options();
    expect_pixels(png, count, &options, 5, 1, on_white[0]);
    memcpy(options.alpha_colour, on_colour[0], 3);
    expect_pixels(png, count, &options, 5, 1, on_colour[0]);
    options.alpha = QVL_ALPHA_DROP;
    static const uint8_t dropped[15] = {0, 100, 255, 0, 100, 255, 0, 100, 255, 0, 100, 255, 0, 100, 255};
    expect_pixels(png, count, &options, 5, 1, dropped);
}

/* ---- 16-bit grey */

/* Report 26: a ramp of 256 steps as grey, grey with alpha, RGB and RGBA. */
static void report_26_gray16(void **state) {
    (void)state;
    static const struct {
        int colour;
        size_t channels;
    } kinds[] = {{PNG_GRAY, 1}, {PNG_GRAY_ALPHA, 2}, {PNG_RGB, 3}, {PNG_RGBA, 4}};
    for (size_t k = 0; k < 4; k++) {
        uint8_t samples[256 * 4 * 2], png[3000], ramp[256 * 3], white[256 * 3];
        size_t channels = kinds[k].channels;
        for (size_t i = 0; i < 256; i++) {
            for (size_t c = 0; c < channels; c++) {
                bool alpha = channels % 2 == 0 && c == channels - 1;
                samples[(i * channels + c) * 2] = samples[(i * channels + c) * 2 + 1] = alpha ? 255 : (uint8_t)i;
            }
            memset(ramp + 3 * i, (int)i, 3);
            memset(white + 3 * i, i ? 255 : 0, 3);
        }
        size_t count = write_png(png, 256, 1, 16, kinds[k].colour, samples, 256 * channels * 2);
        qvl_media_options options = default_options();
        expect_pixels(png, count, &options, 256, 1, ramp);
        options = reference_options();
        expect_pixels(png, count, &options, 256, 1, k == 0 ? white : ramp);
        options.gray16 = QVL_GRAY16_SCALE; /* each policy by itself */
        expect_pixels(png, count, &options, 256, 1, ramp);
    }
}

static void gray16_saturates_as_pillow_does(void **state) {
    (void)state;
    static const uint8_t samples[] = {0, 0, 0,  77, 0,   255, 1,
                                      0, 1, 44, 3,  232, 255, 255}; /* 0 77 255 256 300 1000 */
    static const uint8_t saturated[] = {0, 77, 255, 255, 255, 255, 255}, scaled[] = {0, 0, 0, 1, 1, 3, 255};
    uint8_t png[300], rgb[21];
    size_t count = write_png(png, 7, 1, 16, PNG_GRAY, samples, sizeof samples);
    qvl_media_options options = default_options();
    for (size_t i = 0; i < 21; i++) rgb[i] = scaled[i / 3];
    expect_pixels(png, count, &options, 7, 1, rgb);
    options.gray16 = QVL_GRAY16_SATURATE;
    for (size_t i = 0; i < 21; i++) rgb[i] = saturated[i / 3];
    expect_pixels(png, count, &options, 7, 1, rgb);
}

/* White as zero, 16 bits: turned round where it is scaled, and as it is where Pillow's plain conversion is wanted. */
static void inverted_gray16_of_tiff(void **state) {
    (void)state;
    uint8_t tiff[] = {'I', 'I', '*',  0, 12, 0, 0, 0, 0x34, 0x12, 0xfe, 0xff, /* samples 0x1234, 0xfffe */
                      8,   0,   0,    1, 3,  0, 1, 0, 0,    0,    2,    0,    0, 0,  1, 1, 3, 0, 1, 0, 0,
                      0,   1,   0,    0, 0,  2, 1, 3, 0,    1,    0,    0,    0, 16, 0, 0, 0, 3, 1, 3, 0,
                      1,   0,   0,    0, 1,  0, 0, 0, 6,    1,    3,    0,    1, 0,  0, 0, 0, 0, 0, 0, 0x11,
                      1,   4,   0,    1, 0,  0, 0, 8, 0,    0,    0,    0x15, 1, 3,  0, 1, 0, 0, 0, 1, 0,
                      0,   0,   0x17, 1, 4,  0, 1, 0, 0,    0,    4,    0,    0, 0,  0, 0, 0, 0};
    qvl_media_options options = default_options();
    expect_pixels(tiff, sizeof tiff, &options, 2, 1, (uint8_t[]){0xed, 0xed, 0xed, 0, 0, 0});
    options = reference_options();
    expect_pixels(tiff, sizeof tiff, &options, 2, 1, (uint8_t[]){255, 255, 255, 255, 255, 255});
}

/* ---- ink */

/* Report 28: an Adobe marker that says CMYK, none, and one that says YCCK; four channels are always taken as inverted.
 * That the bytes are Pillow's is what expected.json says of the first and the last. */
static void report_28_cmyk(void **state) {
    (void)state;
    bytes b = load("cmyk.jpg");
    qvl_image marked = read_good(b.data, b.count, NULL);
    size_t at = 2;
    while (b.data[at + 1] != 0xee) at += 2 + (size_t)(b.data[at + 2] << 8 | b.data[at + 3]);
    assert_int_equal(b.data[at + 15], 0); /* its transform: none */
    size_t length = 2 + (size_t)(b.data[at + 2] << 8 | b.data[at + 3]);
    memmove(b.data + at, b.data + at + length, b.count - at - length);
    expect_pixels(b.data, b.count - length, NULL, marked.width, marked.height, marked.pixels);
    qvl_image_free(&marked);
    qvl_free(b.data);

    static const uint8_t inks[][4] = {
        {0, 0, 0, 0}, {255, 0, 0, 0}, {0, 255, 255, 0}, {9, 99, 199, 50}, {1, 2, 3, 255}};
    static const uint8_t colours[][3] = {{255, 255, 255}, {0, 255, 255}, {255, 0, 0}, {198, 125, 45}, {0, 0, 0}};
    for (size_t i = 0; i < 5; i++) {
        uint8_t rgb[3];
        qvl_cmyk_to_rgb(inks[i], rgb);
        assert_memory_equal(rgb, colours[i], 3);
    }
}

/* ---- orientation */

/* A TIFF header and one tag. */
static size_t write_exif(uint8_t *out, bool little, unsigned tag, unsigned type, uint32_t count, uint32_t value) {
    static const uint8_t big[] = {'M', 'M', 0, '*', 0, 0, 0, 8, 0, 1},
                         low[] = {'I', 'I', '*', 0, 8, 0, 0, 0, 1, 0};
    memcpy(out, little ? low : big, 10);
    uint32_t fields[4] = {tag, type, count, value};
    static const int sizes[4] = {2, 2, 4, 4};
    uint8_t *p = out + 10;
    for (int f = 0; f < 4; f++) {
        int size = f == 3 && type == 3 ? 2 : sizes[f];
        for (int i = 0; i < size; i++) p[little ? i : size - 1 - i] = (uint8_t)(fields[f] >> 8 * i);
        p += sizes[f];
    }
    memset(p, 0, 4);
    return 26;
}

static int exif_orientation(const uint8_t *block, size_t count) {
    return qvl_orientation_of(&(qvl_metadata){.exif = block, .exif_count = count});
}

static void exif_values_of_both_byte_orders(void **state) {
    (void)state;
    uint8_t exif[40] = "Exif\0";
    for (int little = 0; little < 2; little++)
        for (unsigned type = 3; type <= 4; type++)
            for (uint32_t value = 0; value <= 70000; value = value < 20 ? value + 1 : value * 2) {
                size_t count = write_exif(exif + 6, little, 0x0112, type, 1, value);
                uint32_t seen = type == 3 ? value & 0xffff : value;
                int expected = seen >= 1 && seen <= 8 ? (int)seen : 1;
                assert_int_equal(exif_orientation(exif + 6, count), expected);
                assert_int_equal(exif_orientation(exif, count + 6), expected);
            }
}

static void malformed_exif_is_ignored(void **state) {
    (void)state;
    uint8_t good[32], exif[32];
    size_t count = write_exif(good, true, 0x0112, 3, 1, 6);
    assert_int_equal(exif_orientation(good, count), 6);
    assert_int_equal(exif_orientation(NULL, 0), 1);
    for (size_t i = 0; i < 22; i++) { /* cut before the tag is whole; each in its own block */
        uint8_t *cut = malloc(i ? i : 1);
        assert_non_null(cut);
        memcpy(cut, good, i);
        assert_int_equal(exif_orientation(cut, i), 1);
        free(cut);
    }
    static const struct {
        unsigned tag, type;
        uint32_t count;
    } wrong[] = {{0x0113, 3, 1}, {0x0112, 2, 1}, {0x0112, 5, 1},
                 {0x0112, 3, 2}, {0x0112, 3, 0}, {0x0112, 0xffff, 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        count = write_exif(exif, true, wrong[i].tag, wrong[i].type, wrong[i].count, 6);
        assert_int_equal(exif_orientation(exif, count), 1);
    }
    static const uint8_t offsets[][4] = {{0xff, 0xff, 0xff, 0xff}, {26, 0, 0, 0}, {25, 0, 0, 0}, {24, 0, 0, 0}};
    for (size_t i = 0; i < 4; i++) {
        memcpy(exif, good, sizeof exif);
        memcpy(exif + 4, offsets[i], 4);
        assert_int_equal(exif_orientation(exif, 26), 1);
    }
    memcpy(exif, good, sizeof exif);
    exif[8] = exif[9] = 0xff; /* more entries than there are; the first is still read */
    assert_int_equal(exif_orientation(exif, 26), 6);
    exif[0] = 'X';
    assert_int_equal(exif_orientation(exif, 26), 1);
}

static int xmp_orientation(const char *text, size_t length, const uint8_t *exif, size_t exif_count) {
    return qvl_orientation_of(&(qvl_metadata){exif, (const uint8_t *)text, exif_count, length});
}

static void xmp_counts_where_exif_says_nothing(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int orientation;
    } cases[] = {{"", 1},
                 {"tiff:Orientation=\"6\"", 6},
                 {"<x><tiff:Orientation>8</tiff:Orientation></x>", 8},
                 {"tiff:Orientation='6'", 1},
                 {"tiff:Orientation = \"6\"", 1},
                 {"tiff:Orientation=\"x\" tiff:Orientation=\"5\" tiff:Orientation=\"6\"", 5},
                 {"tiff:Orientation=\"9\" tiff:Orientation=\"5\"", 1},
                 {"tiff:Orientation=\"0\"", 1},
                 {"tiff:Orientation=\"", 1},
                 {"tiff:Orientation>", 1},
                 {"tiff:Orientation=", 1},
                 {"tiff:Orientatio", 1}};
    uint8_t says[32], silent[32], odd[32], unknown[32];
    size_t count = write_exif(says, true, 0x0112, 3, 1, 3);
    write_exif(silent, true, 0x0113, 3, 1, 3);
    write_exif(odd, true, 0x0112, 3, 1, 9);
    write_exif(unknown, true, 0x0112, 14, 1, 3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t length = strlen(cases[i].text);
        char *text = malloc(length ? length : 1); /* its own block, without a NUL */
        assert_non_null(text);
        memcpy(text, cases[i].text, length);
        assert_int_equal(xmp_orientation(text, length, NULL, 0), cases[i].orientation);
        assert_int_equal(xmp_orientation(text, length, silent, count), cases[i].orientation);
        assert_int_equal(xmp_orientation(text, length, silent, 16), cases[i].orientation); /* cut, */
        assert_int_equal(xmp_orientation(text, length, silent, 5), 1);                     /* in its header */
        assert_int_equal(xmp_orientation(text, length, unknown, count), cases[i].orientation);
        assert_int_equal(xmp_orientation(text, length, says, count), 3);
        assert_int_equal(xmp_orientation(text, length, odd, count), 1);
        free(text);
    }
}

/* 3 x 2 pixels, numbered, and what each orientation makes of them. */
static void orientations_turn_as_exif_transpose(void **state) {
    (void)state;
    static const char *const turned[9] = {NULL,     "123456", "321654", "654321", "456123",
                                          "142536", "415263", "635241", "362514"};
    for (uint32_t value = 1; value <= 8; value++) {
        uint8_t samples[6] = {'1', '2', '3', '4', '5', '6'}, png[300], rgb[18], stored[18], exif[32];
        size_t count = write_png(png, 3, 2, 8, PNG_GRAY, samples, 3);
        size_t exif_count = write_exif(exif, value % 2, 0x0112, 3, 1, value);
        memmove(png + 33 + exif_count + 12, png + 33, count - 33); /* behind IHDR */
        count += put_chunk(png + 33, "eXIf", exif, exif_count);
        for (size_t i = 0; i < 18; i++) {
            rgb[i] = (uint8_t)turned[value][i / 3];
            stored[i] = samples[i / 3];
        }
        qvl_media_options options = default_options();
        bool sideways = value >= 5;
        expect_pixels(png, count, &options, sideways ? 2 : 3, sideways ? 3 : 2, rgb);
        options.orientation = QVL_ORIENTATION_IGNORE;
        expect_pixels(png, count, &options, 3, 2, stored);
        qvl_image image = read_good(png, count, &options);
        assert_int_equal(image.stored.orientation, value); /* found, */
        assert_false(image.stored.oriented);               /* but not applied */
        qvl_image_free(&image);
    }
}

/* Every stored row in order, also where several are turned together: 8 orientations of 40 x 37 pixels. */
static void large_pictures_are_turned_whole(void **state) {
    (void)state;
    enum { WIDTH = 40, HEIGHT = 37 };
    uint8_t stored[WIDTH * HEIGHT * 3];
    for (size_t i = 0; i < sizeof stored; i++) stored[i] = (uint8_t)(i * 7 + i / 251);
    qvl_media_options options = default_options();
    for (int value = 1; value <= 8; value++) {
        qvl_error error;
        qvl_canvas canvas = {.options = &options, .name = "the-name", .error = &error};
        assert_int_equal(qvl_canvas_open(&canvas, "RGB8", WIDTH, HEIGHT, value), QVL_OK);
        for (int64_t y = 0; y < HEIGHT; y++) qvl_canvas_row(&canvas, y, stored + y * WIDTH * 3);
        const qvl_image *image = &canvas.image;
        for (int64_t y = 0; y < image->height; y++)
            for (int64_t x = 0; x < image->width; x++) {
                int64_t sx = value >= 5 ? y : x, sy = value >= 5 ? x : y;
                if (value == 2 || value == 3 || value == 7 || value == 8) sx = WIDTH - 1 - sx;
                if (value == 3 || value == 4 || value == 6 || value == 7) sy = HEIGHT - 1 - sy;
                assert_memory_equal(image->pixels + (y * image->width + x) * 3, stored + (sy * WIDTH + sx) * 3, 3);
            }
        qvl_canvas_close(&canvas, false);
    }
}

/* As Pillow turns it on reading, plain conversion or not. */
static void tiff_is_always_upright(void **state) {
    (void)state;
    bytes b = load("orientation_6.tif");
    qvl_media_options options = reference_options();
    qvl_image upright = read_good(b.data, b.count, NULL), plain = read_good(b.data, b.count, &options);
    assert_true(plain.stored.oriented);
    assert_int_equal(plain.width, plain.stored.height);
    assert_int_equal(plain.width, upright.width);
    assert_memory_equal(plain.pixels, upright.pixels, (size_t)(plain.width * plain.height * 3));
    qvl_image_free(&upright);
    qvl_image_free(&plain);
    qvl_free(b.data);
}

/* ---- options */

static void defaults_and_reference(void **state) {
    (void)state;
    qvl_media_options options = default_options();
    assert_int_equal(options.size, sizeof options);
    assert_int_equal(options.max_pixels, 178956970);
    assert_int_equal(options.orientation, QVL_ORIENTATION_APPLY);
    assert_int_equal(options.alpha, QVL_ALPHA_PASTE);
    assert_memory_equal(options.alpha_colour, "\xff\xff\xff", 3);
    assert_int_equal(options.gray16, QVL_GRAY16_SCALE);
    options.max_pixels = 5;
    qvl_media_options_reference(&options);
    assert_int_equal(options.max_pixels, 5);
    assert_int_equal(options.orientation, QVL_ORIENTATION_IGNORE);
    assert_int_equal(options.alpha, QVL_ALPHA_DROP);
    assert_int_equal(options.gray16, QVL_GRAY16_SATURATE);
}

static void unknown_policies_are_refused(void **state) {
    (void)state;
    uint8_t png[200];
    size_t count = write_png(png, 1, 1, 8, PNG_GRAY, (uint8_t[]){7}, 1);
    static const char *const parts[] = {"orientation is 2; allowed are 0 and 1", "alpha is 3;",
                                        "gray16 is 4294967295;", "options of size 0"};
    for (int i = 0; i < 4; i++) {
        qvl_media_options options = default_options();
        if (i == 0) options.orientation = (qvl_orientation)2;
        if (i == 1) options.alpha = (qvl_alpha)3;
        if (i == 2) options.gray16 = (qvl_gray16)-1;
        if (i == 3) options.size = 0;
        qvl_image image;
        qvl_error error;
        qvl_status status = read_bytes(png, count, &options, &image, &error);
        assert_int_equal(status, QVL_ERROR_ARGUMENT);
        check_refused(status, &image, &error, parts[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_25_transparent),
        cmocka_unit_test(alpha_is_pasted_as_pillow_does),
        cmocka_unit_test(report_26_gray16),
        cmocka_unit_test(gray16_saturates_as_pillow_does),
        cmocka_unit_test(inverted_gray16_of_tiff),
        cmocka_unit_test(report_28_cmyk),
        cmocka_unit_test(exif_values_of_both_byte_orders),
        cmocka_unit_test(malformed_exif_is_ignored),
        cmocka_unit_test(xmp_counts_where_exif_says_nothing),
        cmocka_unit_test(orientations_turn_as_exif_transpose),
        cmocka_unit_test(large_pictures_are_turned_whole),
        cmocka_unit_test(tiff_is_always_upright),
        cmocka_unit_test(defaults_and_reference),
        cmocka_unit_test(unknown_policies_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
