/* tools/demo.sh, a first visit: what the demo model answers about the examples. What these show is in
 * tools/demo_model/examples.py. */
#define _GNU_SOURCE
#include "cli/program.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *arguments, *answer;
} wanted[] = {
    {"--show examples/shapes.png \"What do you see?\"",
     "A big red circle, a small blue star, a big green triangle and a small yellow heart."},
    {"examples/shapes.png \"Where is the blue star?\"", "At the top right."},
    {"--show examples/word.png \"What is written?\"", "HELLO."},
    {"--show examples/before.png examples/after.png \"Which picture has more shapes?\"", "The first picture."},
    {"--show examples/moves.mp4 \"Where does it go?\"", "To the right."},
};

static void test_answers(void **state) {
    (void)state;
    scratch("cache"); /* so that the program keeps features there */
    assert_int_equal(chdir(QVL_SOURCE_DIR), 0);
    result r = expect(0, NULL, ARGUMENTS("tools/demo.sh", QVL_PROGRAM));
    const char *at = r.out;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        char said[1024];
        snprintf(said, sizeof said, "\n$ " QVL_PROGRAM " ask %s\n%s\n", wanted[i].arguments, wanted[i].answer);
        if (strncmp(at, said, strlen(said)) != 0) fail_msg("not\n%sbut\n%s", said, at);
        at = strstr(at + strlen(said), " ms\n");
        assert_non_null(at);
        at += strlen(" ms\n");
    }
    assert_string_equal(at, "\nAsk on: " QVL_PROGRAM " chat examples/shapes.png\n");
    assert_null(strchr(r.err, '\x1b')); /* nothing is drawn without a terminal */
    free_result(&r);
}

static void expect_answer(const char *chat, const char *answer) {
    result r = expect(0, NULL, QVL("ask", "-q", chat));
    assert_string_equal(r.out, answer);
    free_result(&r);
}

static void test_chats(void **state) {
    (void)state;
    expect_answer(QVL_SOURCE_DIR "/examples/compare.json", "The first picture.\n");
    expect_answer(QVL_SOURCE_DIR "/examples/clip.json", "A big orange star.\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers), cmocka_unit_test(test_chats)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
