/* qvl chat: turns from a pipe and on a terminal, its commands, Ctrl-C, and what is reused. */
#include "cli/models.h"
#include "cli/pictures.h"
#include "cli/terminal.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCENE QVL_SOURCE_DIR "/examples/scene.jpg"
#define EXAMPLE QVL_SOURCE_DIR "/examples/shapes.png"

static const char *model; /* that never ends an answer by itself */

static int open_model(void **state) {
    (void)state;
    static char folder[512];
    snprintf(folder, sizeof folder, "%s", make_endless_model("endless"));
    model = folder;
    return 0;
}

#define CHAT(...) QVL("chat", "-m", model, "--max-new-tokens", "6", __VA_ARGS__)

static const char *lines(const char *text) {
    const char *path = scratch("lines.txt");
    write_file(path, text, strlen(text));
    return path;
}

static int usage_of(const cJSON *answer, const char *key) {
    const cJSON *usage = field(answer, "usage"), *details = field(usage, "prompt_tokens_details");
    const cJSON *item = cJSON_GetObjectItem(usage, key);
    return (item ? item : field(details, key))->valueint;
}

/* The objects of --json, a line each, as a list. Owner: the caller, cJSON_Delete. */
static cJSON *answers_of(char *text) {
    cJSON *list = cJSON_CreateArray();
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        cJSON *answer = cJSON_Parse(line);
        if (!answer) fail_msg("not JSON: %s", line);
        cJSON_AddItemToArray(list, answer);
    }
    return list;
}

/* ---- from a pipe */

static void test_turns(void **state) {
    (void)state;
    result r = expect(0, lines("What is it?\n\n  \nAnd now"), CHAT(SCENE));
    assert_says(r.err, "scene.jpg: 640x416, 260 tokens, encoded in ");
    assert_says(r.err, "; it goes with the next question\n");
    assert_says(r.err, "note: prompt of 281 tokens, 0 reused, 281 read in ");
    assert_null(strchr(r.err, '>')); /* nobody is asked */
    const char *second = strstr(r.err, "; 6 tokens at ");
    assert_non_null(second);
    assert_says(second + 1, "; 6 tokens at ");
    assert_null(
        strstr(strstr(second + 1, "; 6 tokens at ") + 1, "; 6 tokens at ")); /* empty lines are no questions */
    /* The same, as objects. */
    result j = expect(0, lines("What is it?\n\n  \nAnd now"), CHAT(SCENE, "--json", "-q"));
    assert_string_equal(j.err, "");
    cJSON *answers = answers_of(j.out);
    assert_int_equal(cJSON_GetArraySize(answers), 2);
    char both[4096];
    snprintf(both, sizeof both, "%s\n%s\n", field(answers->child, "text")->valuestring,
             field(answers->child->next, "text")->valuestring);
    assert_string_equal(r.out, both);
    cJSON_Delete(answers);
    free_result(&j);
    free_result(&r);
}

/* The first turn is what ask says; a later one, what ask says to the saved conversation. */
static void test_save(void **state) {
    (void)state;
    char typed[1024], saved[512];
    snprintf(saved, sizeof saved, "%s", scratch("saved.json"));
    snprintf(typed, sizeof typed, "/image %s\nWhat is it?\n/save %s\nAnd now?\n", SCENE, saved);
    result r = expect(0, lines(typed), CHAT("-q", "--system", "Be brief.", "--json"));
    cJSON *answers = answers_of(r.out);
    char *text = read_file(saved, NULL);
    cJSON *chat = cJSON_Parse(text);
    assert_int_equal(cJSON_GetArraySize(chat), 3);
    const cJSON *question = cJSON_GetArrayItem(chat, 1), *answer = cJSON_GetArrayItem(chat, 2);
    const cJSON *picture = cJSON_GetArrayItem(field(question, "content"), 0);
    assert_string_equal(field(picture, "image")->valuestring, SCENE);
    assert_string_equal(field(answer, "content")->valuestring, field(answers->child, "text")->valuestring);
    cJSON *next = cJSON_CreateObject();
    cJSON_AddStringToObject(next, "role", "user");
    cJSON_AddStringToObject(next, "content", "And now?");
    cJSON_AddItemToArray(chat, next);
    char *more = cJSON_PrintUnformatted(chat);
    const char *path = scratch("more.json");
    write_file(path, more, strlen(more));
    result asked = expect(0, NULL, QVL("ask", "-m", model, "--max-new-tokens", "6", "-q", "--json", path));
    cJSON *again = cJSON_Parse(asked.out);
    /* Through the cache and from scratch: the same prompt, and the same words. */
    assert_int_equal(usage_of(again, "prompt_tokens"), usage_of(answers->child->next, "prompt_tokens"));
    assert_int_equal(usage_of(again, "cached_tokens"), 0);
    assert_true(usage_of(answers->child->next, "cached_tokens") > 260);
    assert_string_equal(field(again, "text")->valuestring, field(answers->child->next, "text")->valuestring);
    struct stat status;
    assert_int_equal(stat(saved, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    cJSON_free(more);
    cJSON_Delete(again);
    cJSON_Delete(chat);
    cJSON_Delete(answers);
    free(text);
    free_result(&asked);
    free_result(&r);
}

/* Twenty turns about three pictures that come one after the other: each is encoded once, and every turn reads what it
 * adds, no picture of an earlier one. */
static void test_twenty_turns(void **state) {
    (void)state;
    enum { TURNS = 20 };
    static const int coming[3] = {0, 4, 11}; /* turns that bring a picture */
    char typed[4096] = "";
    size_t used = 0;
    for (int turn = 0, picture = 0; turn < TURNS; turn++) {
        if (picture < 3 && coming[picture] == turn) {
            char name[32];
            snprintf(name, sizeof name, "picture%d.png", picture);
            const char *path = scratch(name);
            write_png(path, 200 + 100 * (uint32_t)picture, 200);
            used += (size_t)snprintf(typed + used, sizeof typed - used, "/image %s\n", path);
            picture++;
        }
        used += (size_t)snprintf(typed + used, sizeof typed - used, "Question number %d?\n", turn);
    }
    result r = expect(0, lines(typed), CHAT("--json"));
    int runs = 0, vision = 0;
    cJSON *answers = answers_of(r.out);
    assert_int_equal(cJSON_GetArraySize(answers), TURNS);
    const cJSON *answer, *before = NULL;
    cJSON_ArrayForEach(answer, answers) {
        int read = usage_of(answer, "prompt_tokens") - usage_of(answer, "cached_tokens");
        runs += field(field(answer, "tower"), "encoded")->valueint;
        int new_vision = usage_of(answer, "vision_tokens") - vision;
        if (before) {
            /* All of the turn before but, at most, what its answer's text begins in: the newline in front of it. */
            assert_true(usage_of(answer, "cached_tokens") >= usage_of(before, "prompt_tokens") - 1);
            assert_true(read <= usage_of(answer, "prompt_tokens") - usage_of(before, "prompt_tokens") + 1);
        }
        assert_true(read - new_vision < 120); /* the question, the answer before, and what stands round them */
        vision += new_vision;
        before = answer;
    }
    assert_int_equal(runs, 3);
    assert_true(vision > 150);
    cJSON_Delete(answers);
    free_result(&r);
}

/* A clip, by either command; it is a clip in the saved chat, too. */
static void test_clip(void **state) {
    (void)state;
    char typed[1024], saved[512];
    snprintf(saved, sizeof saved, "%s", scratch("clip.json"));
    snprintf(typed, sizeof typed, "/video %s\nWhat happens?\nAnd then?\n/save %s\n",
             QVL_FIXTURES "/video/vp9.webm", saved);
    result r = expect(0, lines(typed), CHAT("--json"));
    assert_says(r.err, " frames of ");
    cJSON *answers = answers_of(r.out);
    int vision = usage_of(answers->child, "vision_tokens");
    assert_true(vision > 0);
    assert_int_equal(usage_of(answers->child->next, "vision_tokens"), vision);
    assert_true(usage_of(answers->child->next, "cached_tokens") > vision);
    assert_true(field(field(answers->child, "tower"), "encoded")->valueint > 1); /* groups */
    assert_int_equal(field(field(answers->child->next, "tower"), "encoded")->valueint, 0);
    char *text = read_file(saved, NULL);
    assert_says(text, "\"video\":\t\"" QVL_FIXTURES "/video/vp9.webm\"");
    cJSON_Delete(answers);
    free(text);
    free_result(&r);
}

static void test_commands(void **state) {
    (void)state;
    char typed[2048], notes[512];
    snprintf(notes, sizeof notes, "%s", scratch("folder"));
    assert_int_equal(mkdir(notes, 0700), 0);
    snprintf(typed, sizeof typed,
             "/help\n/imgae x.png\n/image\n/image nothing.png\n/save %s\n/quit now\n/image '%s'  \nWhat?\n/reset\n"
             "Again?\n//image\n/quit\nnever read\n",
             notes, SCENE);
    result r = expect(1, lines(typed), CHAT("--json"));
    assert_says(r.err, "  /image FILE      a picture for the next question\n");
    assert_says(r.err, "qvl: unknown command /imgae; did you mean /image; /help lists them\n");
    assert_says(r.err, "qvl: /image needs a FILE\n");
    assert_says(r.err, "qvl: cannot open nothing.png: No such file or directory\n");
    assert_says(r.err, "qvl: cannot write ");
    assert_says(r.err, "qvl: /quit takes nothing behind it\n");
    assert_says(r.err, "note: everything said and every picture is forgotten\n");
    cJSON *answers = answers_of(r.out);
    assert_int_equal(cJSON_GetArraySize(answers), 3);
    assert_int_equal(usage_of(cJSON_GetArrayItem(answers, 0), "vision_tokens"), 260);
    assert_int_equal(usage_of(cJSON_GetArrayItem(answers, 1), "vision_tokens"), 0);
    assert_int_equal(count_files(notes), 0);
    cJSON_Delete(answers);
    free_result(&r);
}

/* A question that does not fit is taken back; its picture waits, and the conversation goes on. */
static void test_too_long(void **state) {
    (void)state;
    char typed[8192], *end = typed;
    end += sprintf(end, "/image %s\n", SCENE);
    for (int i = 0; i < 500; i++) end += sprintf(end, "a %d ", i);
    sprintf(end, "\nWhat?\n");
    result r = expect(1, lines(typed), CHAT("--json", "--context", "400"));
    assert_says(r.err, " tokens; a sequence of 400 entries has no room for it and an answer\n");
    assert_says(r.err, "note: the question is taken back; /reset makes room\n");
    cJSON *answers = answers_of(r.out);
    assert_int_equal(cJSON_GetArraySize(answers), 1);
    assert_int_equal(usage_of(answers->child, "vision_tokens"), 260);
    cJSON_Delete(answers);
    free_result(&r);
    r = expect(1, lines("a\n"), CHAT("--context", "40000"));
    assert_says(r.err, "40000 entries are more than the 32768");
    free_result(&r);
    r = expect(1, lines("a\n"), CHAT("nothing.png"));
    assert_says(r.err, "nothing.png");
    assert_string_equal(r.out, "");
    free_result(&r);
}

static void test_bad_lines(void **state) {
    (void)state;
    const char *path = scratch("bad.txt");
    write_file(path, "a\0b\n\xff\xfe\ngood\n", 10);
    result r = expect(1, path, CHAT("--json"));
    assert_says(r.err, "qvl: the line has a NUL in it\n");
    cJSON *answers = answers_of(r.out);
    assert_int_equal(cJSON_GetArraySize(answers), 1);
    cJSON_Delete(answers);
    free_result(&r);
}

/* ---- on a terminal */

#define ENDLESS(...) QVL("chat", "-m", model, "--max-new-tokens", "30000", __VA_ARGS__)

/* Ctrl-C stops the answer, drops a line, and leaves the program running; what was said stays. */
static void test_interrupt(void **state) {
    (void)state;
    static terminal t;
    char saved[512], keys[600];
    snprintf(saved, sizeof saved, "%s", scratch("interrupted.json"));
    terminal_open(&t, ENDLESS("--temperature", "2", "--seed", "7"));
    terminal_wait(&t, "/help lists the commands");
    terminal_wait(&t, "> ");
    for (int i = 0; i < 50; i++) { /* wherever the program is when it comes */
        terminal_type(&t, "never asked\x03");
        terminal_wait(&t, "^C");
        terminal_wait(&t, "> ");
    }
    terminal_type(&t, "Hello\n");
    terminal_wait(&t, "Hello\r\n");
    terminal_wait_bytes(&t, 600); /* it is talking */
    terminal_type(&t, "\x03");
    terminal_wait(&t, ", interrupted");
    terminal_wait(&t, "> ");
    snprintf(keys, sizeof keys, "/save %s\n", saved);
    terminal_type(&t, keys);
    terminal_wait(&t, "saved to ");
    terminal_wait(&t, "> ");
    terminal_end(&t);
    terminal_close(&t, 0);
    char *text = read_file(saved, NULL);
    cJSON *chat = cJSON_Parse(text);
    assert_int_equal(cJSON_GetArraySize(chat), 2);
    assert_string_equal(field(cJSON_GetArrayItem(chat, 0), "content")->valuestring, "Hello");
    assert_true(strlen(field(cJSON_GetArrayItem(chat, 1), "content")->valuestring) > 0);
    cJSON_Delete(chat);
    free(text);
}

/* Who comes without a model learns what the bundled one knows, and what to try; a question on the line will do. */
static void test_first_visit(void **state) {
    (void)state;
    static terminal t;
    terminal_open(&t, QVL("chat"));
    terminal_wait(&t, "note: no -m: using the demo model, which knows only drawn shapes, ");
    terminal_wait(&t, "/help lists the commands\r\n");
    terminal_wait(&t, "note: try: What can you do?\r\n");
    terminal_wait(&t, "note: then: /image " EXAMPLE "\r\n");
    terminal_wait(&t, "note: and: What do you see?\r\n");
    terminal_wait(&t, "> ");
    assert_null(strstr(t.seen, "opening the modelnote")); /* the note takes the progress line's place */
    terminal_type(&t, "/image " EXAMPLE "\n");
    terminal_wait(&t, "shapes.png: 256x256, 64 tokens, ");
    terminal_wait(&t, "> ");
    terminal_end(&t);
    terminal_close(&t, 0);
    terminal_open(&t, QVL("chat", EXAMPLE));
    terminal_wait(&t, "note: try: What do you see? Or, of a clip: Where does it go?\r\n");
    terminal_wait(&t, "> ");
    terminal_end(&t);
    terminal_close(&t, 0);
    assert_null(strstr(t.seen, "/image"));
    terminal_open(&t, QVL("chat", "-m", model));
    terminal_wait(&t, "> ");
    terminal_end(&t);
    terminal_close(&t, 0);
    assert_null(strstr(t.seen, "try: "));
    terminal_open(&t, QVL("chat", "-q"));
    terminal_wait(&t, "> ");
    terminal_end(&t);
    terminal_close(&t, 0);
    assert_null(strstr(t.seen, "note: "));
}

/* Ctrl-D while an answer is written means nothing, and the next key does not suffer from it. */
static void test_early_key(void **state) {
    (void)state;
    static terminal t;
    terminal_open(&t, QVL("chat", "-m", model, "--max-new-tokens", "1500", "--temperature", "2", "--seed", "7"));
    terminal_wait(&t, "> ");
    terminal_type(&t, "Hello\n");
    terminal_wait(&t, "Hello\r\n");
    terminal_wait_bytes(&t, 200);
    terminal_type(&t, "\x04");
    terminal_wait(&t, "; seed 7");
    terminal_wait(&t, "> ");
    terminal_type(&t, "\x04");
    terminal_close(&t, 0);
}

/* Editing, letters of several bytes, and the history. */
static void test_editing(void **state) {
    (void)state;
    static terminal t;
    char saved[512], keys[600];
    snprintf(saved, sizeof saved, "%s", scratch("edited.json"));
    terminal_open(&t, CHAT("-q"));
    terminal_wait(&t, "> ");
    terminal_type(&t, "orld\x01w\x05 gr\xc3\xbc\xc3\x9f\x7f!\n"); /* to the start, to the end, backspace */
    terminal_wait(&t, "\r\n> ");
    terminal_type(&t, "\x1b[A?\n"); /* the line before, and more */
    terminal_wait(&t, "\r\n> ");
    snprintf(keys, sizeof keys, "/save %s\n", saved);
    terminal_type(&t, keys);
    terminal_wait(&t, "\r\n> ");
    terminal_type(&t, "/quit\n");
    terminal_close(&t, 0);
    char *text = read_file(saved, NULL);
    cJSON *chat = cJSON_Parse(text);
    assert_int_equal(cJSON_GetArraySize(chat), 4);
    assert_string_equal(field(cJSON_GetArrayItem(chat, 0), "content")->valuestring, "world gr\xc3\xbc!");
    assert_string_equal(field(cJSON_GetArrayItem(chat, 2), "content")->valuestring, "world gr\xc3\xbc!?");
    cJSON_Delete(chat);
    free(text);
}

/* ask: the answer so far, and exit code 1. */
static void test_interrupted_ask(void **state) {
    (void)state;
    static terminal t;
    terminal_open(&t, QVL("ask", "-m", model, "-q", "--max-new-tokens", "30000", "Hello"));
    terminal_wait_bytes(&t, 100);
    terminal_type(&t, "\x03");
    terminal_close(&t, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns),           cmocka_unit_test(test_save),
        cmocka_unit_test(test_twenty_turns),    cmocka_unit_test(test_clip),
        cmocka_unit_test(test_commands),        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_bad_lines),       cmocka_unit_test(test_interrupt),
        cmocka_unit_test(test_early_key),       cmocka_unit_test(test_editing),
        cmocka_unit_test(test_interrupted_ask), cmocka_unit_test(test_first_visit),
    };
    return cmocka_run_group_tests(tests, open_model, NULL);
}
