/* Pictures in the terminal: the exact bytes of half blocks, kitty's protocol read back, means of areas, the first frames
 * of clips, and where nothing may be drawn. */
#define _GNU_SOURCE
#include "base/memory.h"
#include "cli/models.h"
#include "cli/terminal.h"
#include "media/clips.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define SCENE QVL_SOURCE_DIR "/examples/scene.jpg"
#define BLOCK "\xe2\x96\x80"
#define FG(r, g, b) "\033[38;2;" #r ";" #g ";" #b "m"
#define BG(r, g, b) "\033[48;2;" #r ";" #g ";" #b "m"
#define END "\033[0m\r\n"

static const char *model;
static terminal t;

/* No variable of the terminal round the tests counts. */
static void clear_environment(void) {
    static const char *const names[] = {"NO_COLOR", "COLORTERM", "KITTY_WINDOW_ID", "TERM_PROGRAM", "TMUX", "STY"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
}

static int open_model(void **state) {
    (void)state;
    static char folder[512];
    snprintf(folder, sizeof folder, "%s", make_endless_model("endless"));
    model = folder;
    return 0;
}

static int set_up(void **state) {
    (void)state;
    clear_environment();
    return 0;
}

#define ASK(...) QVL("ask", "-m", model, "-q", "--max-new-tokens", "1", __VA_ARGS__)

/* All that comes to a terminal with that TERM; NULL: it is unset. */
static const char *seen_on(const char *term, const char *path) {
    terminal_open_as(&t, term, ASK("--show", path, "Hello"));
    terminal_close(&t, 0);
    return t.seen;
}

/* The same where TERM is xterm, with a variable set. */
static const char *seen_with(const char *name, const char *value, const char *path) {
    assert_int_equal(setenv(name, value, 1), 0);
    return seen_on("xterm", path);
}

static const char *seen(const char *path) {
    return seen_with("COLORTERM", "truecolor", path);
}

static void assert_begins(const char *text, const char *with) {
    if (strncmp(text, with, strlen(with)) != 0) fail_msg("this begins otherwise: %.400s", text);
}

static void write_rgb(const char *path, uint32_t width, uint32_t height, const uint8_t *pixels) {
    static uint8_t file[1 << 17];
    write_file(path, file, write_png(file, width, height, 8, PNG_RGB, pixels, 3 * width));
}

/* ---- half blocks */

static const char *write_known(void) {
    static const uint8_t pixels[3 * 4 * 3] = {255, 0,  0,  255, 0,  0,  0,  255, 0,  0,   0,   255,
                                              255, 0,  0,  0,   0,  0,  0,  255, 0,  255, 255, 255,
                                              10,  20, 30, 10,  20, 30, 10, 20,  30, 10,  20,  30};
    const char *path = scratch("known.png");
    write_rgb(path, 4, 3, pixels);
    return path;
}

static void test_true_colours(void **state) {
    (void)state;
    const char *expected = FG(255, 0, 0) BG(255, 0, 0) BLOCK BG(0, 0, 0) BLOCK FG(0, 255, 0) BG(0, 255, 0)
        BLOCK FG(0, 0, 255) BG(255, 255, 255) BLOCK END FG(10, 20, 30) BLOCK BLOCK BLOCK BLOCK END;
    assert_begins(seen(write_known()), expected);
    assert_null(strstr(t.seen + strlen(expected), BLOCK)); /* then the answer */
    assert_true(strlen(t.seen) > strlen(expected));
    assert_begins(seen_with("COLORTERM", "24bit", write_known()), expected);
}

static void test_256_colours(void **state) {
    (void)state;
    assert_begins(seen_with("COLORTERM", "", write_known()),
                  "\033[38;5;196m\033[48;5;196m" BLOCK "\033[48;5;16m" BLOCK "\033[38;5;46m\033[48;5;46m" BLOCK
                  "\033[38;5;21m\033[48;5;231m" BLOCK END "\033[38;5;233m" BLOCK BLOCK BLOCK BLOCK END);
    /* Each colour of the cube and each grey is itself. */
    static const uint8_t steps[6] = {0, 95, 135, 175, 215, 255};
    uint8_t pixels[3 * 240];
    for (int i = 0; i < 216; i++)
        for (int c = 0; c < 3; c++) pixels[3 * i + c] = steps[i / (c == 0 ? 36 : c == 1 ? 6 : 1) % 6];
    for (int i = 0; i < 24; i++) memset(pixels + 3 * (216 + i), 8 + 10 * i, 3);
    const char *path = scratch("palette.png");
    write_rgb(path, 15, 16, pixels);
    const char *at = seen_with("COLORTERM", "yes", path);
    for (int y = 0; y < 16; y += 2, at += strlen(END))
        for (int x = 0; x < 15; x++, at += strlen(BLOCK)) {
            char colours[64];
            snprintf(colours, sizeof colours, "\033[38;5;%dm\033[48;5;%dm" BLOCK, 16 + 15 * y + x,
                     31 + 15 * y + x);
            assert_begins(at, colours);
            at += strlen(colours) - strlen(BLOCK);
        }
}

/* The pixels that half blocks in true colours show. Owner: the caller, free(). */
static qvl_image read_blocks(const char *text) {
    enum { MOST = 40 };
    qvl_image image = {.pixels = calloc(MOST, 3 * MOST)};
    int64_t x = 0, y = 0;
    uint8_t colours[2][3] = {{0}};
    assert_non_null(image.pixels);
    for (;;) {
        int layer, r, g, b, used = 0;
        if (sscanf(text, "\033[%d;2;%d;%d;%dm%n", &layer, &r, &g, &b, &used) == 4 && used) {
            memcpy(colours[layer == 48], (uint8_t[]){(uint8_t)r, (uint8_t)g, (uint8_t)b}, 3);
            text += used;
        } else if (strncmp(text, BLOCK, strlen(BLOCK)) == 0) {
            assert_true(x < MOST && y + 1 < MOST);
            for (int i = 0; i < 2; i++) memcpy(image.pixels + 3 * ((y + i) * MOST + x), colours[i], 3);
            x++;
            text += strlen(BLOCK);
        } else if (strncmp(text, END, strlen(END)) == 0 && x) {
            image.width = x;
            x = 0;
            y += 2;
            text += strlen(END);
        } else {
            break;
        }
    }
    image.height = y;
    for (y = 1; y < image.height; y++)
        memmove(image.pixels + 3 * y * image.width, image.pixels + 3 * y * MOST, (size_t)(3 * image.width));
    return image;
}

static void test_means(void **state) {
    (void)state;
    static uint8_t pixels[3 * 80 * 80], thirds[3 * 60 * 2];
    for (int y = 0; y < 80; y++)
        for (int x = 0; x < 80; x++)
            for (int c = 0; c < 3; c++) /* the mean of four is x / 2 + 2 y / 2 + 20 */
                pixels[3 * (80 * y + x) + c] = (uint8_t)(x / 2 + y / 2 * 2 + 20 + ((x ^ y) & 1 ? 9 : -9));
    const char *path = scratch("means.png");
    write_rgb(path, 80, 80, pixels);
    qvl_image image = read_blocks(seen(path));
    assert_true(image.width == 40 && image.height == 40);
    for (int i = 0; i < 3 * 40 * 40; i++) assert_int_equal(image.pixels[i], i / 3 % 40 + i / 120 * 2 + 20);
    free(image.pixels);
    /* Three pixels to two: the one in the middle belongs to both. */
    for (int i = 0; i < 3 * 60 * 2; i++) thirds[i] = (uint8_t)(i / 3 % 3 == 0 ? 0 : i / 3 % 3 == 1 ? 30 : 90);
    path = scratch("thirds.png");
    write_rgb(path, 60, 2, thirds);
    assert_begins(seen(path), FG(10, 10, 10) BLOCK FG(70, 70, 70) BLOCK FG(10, 10, 10) BLOCK);
    /* The shape stays, within the bounds. */
    image = read_blocks(seen(SCENE));                     /* 640 x 427 */
    assert_true(image.width == 40 && image.height == 28); /* 27, and the half that is empty */
    free(image.pixels);
    path = scratch("tall.png");
    write_rgb(path, 30, 100, pixels);
    image = read_blocks(seen(path));
    assert_true(image.width == 12 && image.height == 40);
    free(image.pixels);
}

/* ---- kitty */

/* The picture in kitty's commands at the beginning of text; keys: those of the first. Owner: the caller, free(). */
static uint8_t *read_kitty(const char *text, const char *keys, size_t count) {
    uint8_t *pixels = malloc(count + 3), decoded[3 * 1024 + 3];
    size_t used = 0;
    char first[128];
    assert_non_null(pixels);
    snprintf(first, sizeof first, "\033_G%s,m=", keys);
    for (bool more = true; more;) {
        const char *start = used ? "\033_Gm=" : first;
        assert_begins(text, start);
        text += strlen(start);
        more = *text == '1';
        assert_true((*text == '0' || *text == '1') && text[1] == ';');
        text += 2;
        const char *end = strstr(text, "\033\\");
        assert_non_null(end);
        int length = (int)(end - text);
        assert_true(length <= 4096 && length % 4 == 0 && (!more || length == 4096));
        assert_int_equal(EVP_DecodeBlock(decoded, (const uint8_t *)text, length), length / 4 * 3);
        size_t size = (size_t)length / 4 * 3 - (size_t)((end[-1] == '=') + (end[-2] == '='));
        assert_true(used + size <= count);
        memcpy(pixels + used, decoded, size);
        used += size;
        text = end + 2;
    }
    assert_int_equal(used, count);
    assert_begins(text, "\r\n");
    return pixels;
}

static void assert_kitty(const char *path, const char *keys, const uint8_t *expected, size_t count) {
    uint8_t *pixels = read_kitty(seen_with("KITTY_WINDOW_ID", "1", path), keys, count);
    assert_memory_equal(pixels, expected, count);
    free(pixels);
}

static void test_kitty(void **state) {
    (void)state;
    static uint8_t noise[3 * 90 * 51], wide[3 * 2000 * 10], fives[3 * 400 * 2];
    const char *path = scratch("noise.png");
    for (size_t i = 0; i < sizeof noise; i++) noise[i] = (uint8_t)(i * i / 7 + i);
    write_rgb(path, 90, 51, noise);
    assert_kitty(path, "a=T,f=24,q=2,s=90,v=51,c=40", noise, sizeof noise);
    path = scratch("upright.png");
    write_rgb(path, 51, 90, noise);
    assert_kitty(path, "a=T,f=24,q=2,s=51,v=90,r=20", noise, sizeof noise);
    path = scratch("little.png");
    write_rgb(path, 7, 5, noise); /* 105 bytes: base64 without padding */
    assert_kitty(path, "a=T,f=24,q=2,s=7,v=5,c=7", noise, 105);
    /* Ten pixels for half a character, no more. */
    for (size_t i = 0; i < sizeof wide; i++) wide[i] = (uint8_t)(i / 3 % 2000 / 5 * 3 + i % 3 + i / 30000 * 5);
    for (size_t i = 0; i < sizeof fives; i++) fives[i] = (uint8_t)(i / 3 % 400 * 3 + i % 3 + i / 1200 * 5);
    path = scratch("wide.png");
    write_rgb(path, 2000, 10, wide);
    assert_kitty(path, "a=T,f=24,q=2,s=400,v=2,c=40", fives, sizeof fives);
}

static void test_detection(void **state) {
    (void)state;
    const char *known = write_known();
    assert_begins(seen_with("TERM_PROGRAM", "ghostty", known), "\033_Ga=T,");
    assert_begins(seen_with("TERM_PROGRAM", "WezTerm", known), "\033_Ga=T,");
    assert_begins(seen_with("TMUX", "/tmp/tmux-0/default,1,0", known), "\033[38;5;196m");
    clear_environment();
    assert_begins(seen_with("TERM_PROGRAM", "Apple_Terminal", known), "\033[38;5;196m");
    assert_begins(seen_with("KITTY_WINDOW_ID", "2", known), "\033_Ga=T,");
    assert_begins(seen_with("STY", "1.pts", known), "\033[38;5;196m");
    assert_null(strchr(seen_with("NO_COLOR", "1", known), '\033'));
}

static void test_names_of_terminals(void **state) {
    (void)state;
    char known[512];
    snprintf(known, sizeof known, "%s", write_known());
    assert_begins(seen_on("xterm-kitty", known), "\033_Ga=T,");
    assert_begins(seen_on("xterm-ghostty", known), "\033_Ga=T,");
    assert_begins(seen_on("xterm-256color", known), "\033[38;5;196m");
    setenv("KITTY_WINDOW_ID", "1", 1);
    assert_begins(seen_on("tmux-256color", known), "\033[38;5;196m");
    assert_begins(seen_on("screen.xterm-256color", known), "\033[38;5;196m");
    setenv("COLORTERM", "truecolor", 1);
    assert_null(strchr(seen_on("dumb", known), '\033'));
    assert_null(strchr(seen_on("", known), '\033'));
    assert_null(strchr(seen_on(NULL, known), '\033'));
}

/* ---- clips, chat, and pipes */

static void test_clip(void **state) {
    (void)state;
    bytes clip = make_clip(&(clip_spec){.frames = 48, .rate = {24, 1}, .muxer = "mp4"});
    const char *path = scratch("clip.mp4");
    write_file(path, clip.data, clip.count);
    qvl_free(clip.data);
    qvl_image image = read_blocks(seen(path));
    assert_true(image.width == 40 && image.height == 30); /* as 64 to 48 */
    static const corner corners[4] = {CORNER_RED, CORNER_GREEN, CORNER_BLUE, CORNER_WHITE};
    for (int i = 0; i < 4; i++) assert_int_equal(seen_corner(&image, i), corners[i]);
    assert_int_equal(seen_number(&image), 0);
    free(image.pixels);
}

/* The endless model with a video processor of its own. In static memory, till the next call. */
static const char *make_video_model(const char *name, const char *sizes, const char *normalising) {
    static char folder[512];
    char file[600], settings[600];
    snprintf(folder, sizeof folder, "%s", make_endless_model(name));
    snprintf(file, sizeof file, "%s/video_preprocessor_config.json", folder);
    snprintf(settings, sizeof settings,
             "{\"size\":{%s},\"patch_size\":16,\"temporal_patch_size\":2,\"merge_size\":2,%s,"
             "\"video_processor_type\":\"Qwen3VLVideoProcessor\"}",
             sizes, normalising);
    write_file(file, settings, strlen(settings));
    return folder;
}

static void write_short_clip(const char *path) {
    bytes clip = make_clip(&(clip_spec){.frames = 12, .muxer = "mp4"});
    write_file(path, clip.data, clip.count);
    qvl_free(clip.data);
}

/* A clip is normalised with the values of the video processor, which may not be those of pictures. */
static void test_normalising(void **state) {
    (void)state;
    const char *published = model;
    char path[512];
    snprintf(path, sizeof path, "%s", scratch("normalised.mp4"));
    write_short_clip(path);
    qvl_image expected = read_blocks(seen(path));
    model =
        make_video_model("normalising", "\"longest_edge\":25165824,\"shortest_edge\":4096",
                         "\"image_mean\":[0.1,0.9,0.3],\"image_std\":[0.25,0.75,2.0],\"rescale_factor\":0.0025");
    qvl_image image = read_blocks(seen(path));
    model = published;
    assert_true(image.width == 40 && image.height == 30 && expected.width == 40 && expected.height == 30);
    assert_memory_equal(image.pixels, expected.pixels, 3 * 40 * 30);
    free(image.pixels);
    free(expected.pixels);
}

/* The frame alone is refused by the folder's limits, which the clip has others for: the conversation goes on. */
static void test_not_drawn(void **state) {
    (void)state;
    char path[512];
    const char *folder = make_video_model("limits", "\"longest_edge\":4096,\"shortest_edge\":8192",
                                          "\"image_mean\":[0.5,0.5,0.5],\"image_std\":[0.5,0.5,0.5]");
    snprintf(path, sizeof path, "%s", scratch("limits.mp4"));
    write_short_clip(path);
    terminal_open(&t, QVL("chat", "-m", folder, "--video-max-pixels", "40000", path));
    terminal_wait(&t, "note: not drawn: ");
    terminal_wait(&t, "is above its maximum of 4096");
    terminal_wait(&t, "it goes with the next question");
    terminal_wait(&t, "> ");
    terminal_end(&t);
    terminal_close(&t, 0);
}

/* Too narrow for any size but one that is given. */
static void test_size_of_clips(void **state) {
    (void)state;
    bytes clip = make_clip(&(clip_spec){.frames = 4, .width = 1024, .height = 4, .muxer = "mp4"});
    const char *path = scratch("narrow.mp4");
    write_file(path, clip.data, clip.count);
    qvl_free(clip.data);
    setenv("COLORTERM", "truecolor", 1);
    terminal_open(&t, ASK("--show", "--size", "128x32", path, "Hello"));
    terminal_close(&t, 0);
    qvl_image image = read_blocks(t.seen);
    assert_true(image.width == 40 && image.height == 2); /* one line */
    free(image.pixels);
}

static void test_chat(void **state) {
    (void)state;
    char known[512], keys[600];
    setenv("COLORTERM", "truecolor", 1);
    snprintf(known, sizeof known, "%s", write_known());
    terminal_open(&t, QVL("chat", "-m", model, "--max-new-tokens", "1", known));
    terminal_wait(&t, FG(10, 20, 30) BLOCK BLOCK BLOCK BLOCK END "note: ");
    terminal_wait(&t, "> ");
    struct winsize narrow = {.ws_row = 40, .ws_col = 30};
    assert_int_equal(ioctl(t.fd, TIOCSWINSZ, &narrow), 0);
    snprintf(keys, sizeof keys, "/image %s\n", SCENE);
    terminal_type(&t, keys);
    size_t before = t.count;
    terminal_wait(&t, "next question");
    const char *picture = strstr(t.seen + before, "\033[38;2;");
    assert_non_null(picture);
    qvl_image image = read_blocks(picture);
    assert_true(image.width == 30 && image.height == 20); /* 640 x 427 */
    free(image.pixels);
    terminal_end(&t);
    terminal_close(&t, 0);
}

static void test_nothing(void **state) {
    (void)state;
    char known[512], keys[600];
    snprintf(known, sizeof known, "%s", write_known());
    setenv("TERM", "xterm-kitty", 1);
    setenv("COLORTERM", "truecolor", 1);
    result with = expect(0, NULL, ASK("--show", known, "Hello")), without = expect(0, NULL, ASK(known, "Hello"));
    assert_string_equal(with.out, without.out);
    assert_string_equal(with.err, "");
    free_result(&with);
    free_result(&without);
    const char *lines = scratch("lines.txt");
    snprintf(keys, sizeof keys, "/image %s\n", known);
    write_file(lines, keys, strlen(keys));
    result piped = expect(0, lines, QVL("chat", "-m", model));
    assert_null(strchr(piped.err, '\033'));
    free_result(&piped);
    terminal_open(&t, QVL("chat", "-m", model, "-q", known));
    terminal_wait(&t, "> ");
    terminal_end(&t);
    terminal_close(&t, 0);
    assert_null(strstr(t.seen, BLOCK));
    assert_null(strstr(t.seen, "\033_G"));
    /* The media of a conversation are not the program's to draw. */
    const char *chat = scratch("chat.json");
    write_file(chat, "[{\"role\":\"user\",\"content\":\"Hello\"}]", 36);
    result refused = expect(1, NULL, ASK("--show", chat));
    assert_says(refused.err, "--show goes with MEDIA and a question; ");
    free_result(&refused);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_true_colours, set_up),
        cmocka_unit_test_setup(test_256_colours, set_up),
        cmocka_unit_test_setup(test_means, set_up),
        cmocka_unit_test_setup(test_kitty, set_up),
        cmocka_unit_test_setup(test_detection, set_up),
        cmocka_unit_test_setup(test_clip, set_up),
        cmocka_unit_test_setup(test_chat, set_up),
        cmocka_unit_test_setup(test_nothing, set_up),
        cmocka_unit_test_setup(test_names_of_terminals, set_up),
        cmocka_unit_test_setup(test_normalising, set_up),
        cmocka_unit_test_setup(test_size_of_clips, set_up),
        cmocka_unit_test_setup(test_not_drawn, set_up),
    };
    return cmocka_run_group_tests(tests, open_model, NULL);
}
