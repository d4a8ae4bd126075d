/* The answers themselves, through media, preprocessing, tower, prompt and model: right, and the same whichever way they are
 * computed and however the picture is stored. The right ones follow from how the scenes were made. */
#define _GNU_SOURCE
#include "demo/asker.h"

#include "cli/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fixture questions;

static int open_questions(void **state) {
    (void)state;
    questions = read_fixture();
    return 0;
}

static int close_questions(void **state) {
    (void)state;
    free_fixture(&questions);
    return 0;
}

/* ---- right */

static void expect_right(qvl_dtype dtype) {
    asker a = open_asker(&(way){dtype, QVL_CPU_ALL, 1}, NULL, false);
    size_t right = 0;
    for (size_t i = 0; i < questions.count; i++) {
        const question *q = &questions.questions[i];
        char *text = ask_text(&a, q->chat, NULL);
        bool good = strcmp(text, q->answer) == 0;
        if (!good) printf("%s: '%s' instead of '%s'\n", q->name, text, q->answer);
        right += good;
        free(text);
    }
    close_asker(&a);
    if (100 * right < 95 * questions.count)
        fail_msg("in %s %zu of %zu answers are right; wanted are 95 %%", qvl_dtype_name(dtype), right,
                 questions.count);
}

static void test_right(void **state) {
    (void)state;
    expect_right(QVL_BF16);
    expect_right(QVL_F32);
}

/* The other picture is described, asked in the same words: what is said comes from the picture. */
static void test_pictures_are_looked_at(void **state) {
    (void)state;
    const question *one = &questions.questions[find_question(&questions, "describe-1")];
    const question *other = &questions.questions[find_question(&questions, "describe-2")];
    asker a = open_asker(&(way){QVL_BF16, QVL_CPU_ALL, 1}, NULL, false);
    char *own = ask_text(&a, one->chat, NULL), *plain = ask_text(&a, other->chat, NULL);
    char *chat = with_picture(one, "describe-1.png", "describe-2.png");
    char *swapped = ask_text(&a, chat, NULL);
    assert_string_not_equal(swapped, own);
    assert_string_equal(swapped, plain);
    free(own);
    free(plain);
    free(chat);
    free(swapped);
    close_asker(&a);
}

/* ---- the same whichever way */

/* Instruction sets by paths of docs/NUMERICS.md: those of one give the same bits. */
static const struct {
    qvl_dtype dtype;
    int path;
    uint32_t mask;
    const char *kernels; /* where the machine has them */
    int cached;          /* threads with which the cache is used, with the others it is not; 0: both with all */
} sets[] = {
    {QVL_F32, 0, QVL_CPU_AVX2, "avx2", 2},
    {QVL_F32, 0, QVL_CPU_AVX2 | QVL_CPU_AVX512, "avx512", 1},
    {QVL_F32, 0, QVL_CPU_SCALAR, "scalar", 2},
    {QVL_BF16, 1, QVL_CPU_AVX2, "avx2", 2},
    {QVL_BF16, 1, QVL_CPU_AVX2 | QVL_CPU_AVX512, "avx512", 1},
    {QVL_BF16, 1, QVL_CPU_SCALAR, "scalar", 2},
    {QVL_BF16, 2, QVL_CPU_ALL & ~QVL_CPU_AMX, "avx512bf16", 0},
    {QVL_BF16, 3, QVL_CPU_ALL, "amx", 0},
};
enum { PATHS = 4 };

/* Answers to all questions, or to some of them: those not asked are empty. */
typedef struct answers {
    qvl_answer *list; /* [questions.count] */
} answers;

/* Scalar kernels take a hundred times as long: they answer a few questions. So small a model gains nothing from two threads, and
 * loses much where others use the processors: they answer a sixth, another one with each set. */
static bool is_asked(size_t i, size_t set, int threads) {
    static const char *const quick[] = {"color-1", "talk-1"};
    if (sets[set].mask != QVL_CPU_SCALAR) return threads == 1 || i % 6 == set % 6;
    for (size_t k = 0; k < sizeof quick / sizeof *quick; k++)
        if (strcmp(questions.questions[i].name, quick[k]) == 0) return true;
    return false;
}

static answers ask_all(asker *a, size_t set, int threads) {
    answers found = {calloc(questions.count, sizeof *found.list)};
    assert_non_null(found.list);
    for (size_t i = 0; i < questions.count; i++)
        if (is_asked(i, set, threads)) found.list[i] = ask(a, questions.questions[i].chat, NULL);
    return found;
}

static void free_answers(answers *a) {
    for (size_t i = 0; a->list && i < questions.count; i++) qvl_answer_free(&a->list[i]);
    free(a->list);
    *a = (answers){0};
}

/* Of what was asked. bits: the logprobs must be the same bits, too. */
static void assert_same(const answers *wanted, const answers *found, bool bits, const char *what) {
    for (size_t i = 0; i < questions.count; i++) {
        const qvl_answer *w = &wanted->list[i], *f = &found->list[i];
        if (!w->text || !f->text) continue;
        if (strcmp(w->text, f->text) != 0)
            fail_msg("%s, %s: '%s', not '%s'", questions.questions[i].name, what, f->text, w->text);
        if (!bits) continue;
        assert_int_equal(w->count, f->count);
        if (memcmp(w->logprobs, f->logprobs, (size_t)w->count * sizeof *w->logprobs) != 0)
            fail_msg("%s, %s: other logprobs", questions.questions[i].name, what);
    }
}

static qvl_cache *open_cache(void) {
    qvl_cache_options options;
    qvl_cache *cache;
    qvl_error error;
    qvl_cache_options_init(&options);
    options.folder = scratch("features");
    if (qvl_cache_open(&options, &cache, &error)) fail_msg("%s", error.message);
    return cache;
}

/* Once to fill an empty cache, once more by another one that reads the folder; one generator for all questions. */
static void expect_cached(size_t set, int threads, const answers *reference, const char *what) {
    way w = {sets[set].dtype, sets[set].mask, threads};
    assert_non_null(reference->list);
    for (int warm = 0; warm < 2; warm++) {
        char text[160];
        qvl_cache *cache = open_cache();
        qvl_cache_stats stats;
        asker a = open_asker(&w, cache, true);
        answers found = ask_all(&a, set, threads);
        snprintf(text, sizeof text, "%s, %s cache", what, warm ? "warm" : "cold");
        assert_same(reference, &found, true, text);
        assert_int_equal(qvl_cache_get_stats(cache, &stats, NULL), QVL_OK);
        assert_true(stats.disk);
        assert_true(warm ? stats.encoded == 0 && stats.disk_hits > 0 : stats.encoded > 0 && stats.disk_hits == 0);
        free_answers(&found);
        close_asker(&a);
        if (warm) assert_int_equal(qvl_cache_clear(cache, NULL), QVL_OK);
        qvl_cache_close(&cache);
    }
}

/* reference: what the path says, filled where it is empty. */
static void expect_uncached(size_t set, int threads, answers *reference, const char *what) {
    asker a = open_asker(&(way){sets[set].dtype, sets[set].mask, threads}, NULL, false);
    answers found = ask_all(&a, set, threads);
    close_asker(&a);
    if (reference->list) {
        assert_same(reference, &found, true, what);
        free_answers(&found);
    } else {
        *reference = found;
    }
}

static bool has_set(size_t i) {
    asker a = open_asker(&(way){sets[i].dtype, sets[i].mask, 1}, NULL, false);
    bool has = strcmp(qvl_model_get_info(a.model)->kernels, sets[i].kernels) == 0;
    if (!has)
        printf("this machine does not compute in %s by %s\n", qvl_dtype_name(sets[i].dtype), sets[i].kernels);
    close_asker(&a);
    return has;
}

static void expect_set(size_t set, answers *reference) {
    for (int threads = 1; threads <= 2; threads++) {
        char what[80];
        snprintf(what, sizeof what, "%s by %s, %d threads", qvl_dtype_name(sets[set].dtype), sets[set].kernels,
                 threads);
        if (sets[set].cached != threads) expect_uncached(set, threads, reference, what);
        if (!sets[set].cached || sets[set].cached == threads) expect_cached(set, threads, reference, what);
    }
}

static void test_every_way(void **state) {
    (void)state;
    answers references[PATHS] = {{NULL}};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (has_set(i)) expect_set(i, &references[sets[i].path]);
    for (size_t p = 1; p < PATHS; p++)
        if (references[p].list) assert_same(&references[0], &references[p], false, "another path");
    for (size_t p = 0; p < PATHS; p++) free_answers(&references[p]);
}

/* ---- the same however it is stored */

/* Versions of one question stand together. */
static void expect_versions(qvl_dtype dtype) {
    asker a = open_asker(&(way){dtype, QVL_CPU_ALL, 1}, NULL, false);
    char *plain = NULL;
    assert_true(questions.version_count >= 30);
    for (size_t i = 0; i < questions.version_count; i++) {
        const version *v = &questions.versions[i];
        const question *q = &questions.questions[v->question];
        if (i == 0 || v->question != v[-1].question) {
            free(plain);
            plain = ask_text(&a, q->chat, NULL);
        }
        char *chat = with_picture(q, v->picture, v->file), *text = ask_text(&a, chat, NULL);
        if (strcmp(plain, text) != 0) fail_msg("%s: '%s', not '%s'", v->file, text, plain);
        free(text);
        free(chat);
    }
    free(plain);
    close_asker(&a);
}

static void test_versions(void **state) {
    (void)state;
    expect_versions(QVL_BF16);
    expect_versions(QVL_F32);
}

/* They are no copies: read without the policies, a picture on its side, black on black and white on white get other answers. */
static void test_versions_need_the_policies(void **state) {
    (void)state;
    static const char *const files[][2] = {{"describe-1", "turned_3.jpg"},
                                           {"describe-2", "turned_6.jpg"},
                                           {"read-1", "alpha.png"},
                                           {"read-1", "gray_16_bit.png"}};
    qvl_media_options plain;
    qvl_media_options_init(&plain);
    qvl_media_options_reference(&plain);
    asker a = open_asker(&(way){QVL_BF16, QVL_CPU_ALL, 1}, NULL, false);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const question *q = &questions.questions[find_question(&questions, files[i][0])];
        char picture[64], file[64];
        snprintf(picture, sizeof picture, "%s.png", q->name);
        snprintf(file, sizeof file, "%s-%s", q->name, files[i][1]);
        char *chat = with_picture(q, picture, file), *text = ask_text(&a, chat, NULL);
        assert_string_equal(text, q->answer);
        free(text);
        text = ask_text(&a, chat, &plain);
        if (strcmp(text, q->answer) == 0) fail_msg("%s is '%s' without the policies, too", file, text);
        free(text);
        free(chat);
    }
    close_asker(&a);
}

/* ---- the program */

/* The words of a chat's only message. Owner: the caller, free(). */
static char *words_of(const question *q) {
    cJSON *chat = cJSON_Parse(q->chat);
    const cJSON *content = field(cJSON_GetArrayItem(chat, 0), "content");
    char *words = strdup(field(cJSON_GetArrayItem(content, cJSON_GetArraySize(content) - 1), "text")->valuestring);
    assert_non_null(words);
    cJSON_Delete(chat);
    return words;
}

#define ASK(...) QVL("ask", "-m", QVL_DEMO_MODEL, __VA_ARGS__)

/* A picture and a question, and chats: what the library says. Once more, from the cache in the user's folder, the same. */
static void test_program(void **state) {
    (void)state;
    static const char *const names[] = {"read-1", "move-1", "later-1"};
    scratch(""); /* has the program keep its cache there */
    asker a = open_asker(&(way){QVL_BF16, QVL_CPU_ALL, 1}, NULL, false);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const question *q = &questions.questions[find_question(&questions, names[i])];
        char *text = ask_text(&a, q->chat, NULL), *words = i == 0 ? words_of(q) : NULL, line[512], chat[512];
        snprintf(line, sizeof line, "%s\n", text);
        snprintf(chat, sizeof chat, DEMO_FIXTURES "/%s.json", q->name);
        for (int again = 0; again < 2; again++) {
            result r = expect(0, NULL, i == 0 ? ASK(DEMO_FIXTURES "/read-1.png", words) : ASK(chat));
            assert_string_equal(r.out, line);
            assert_int_equal(strstr(r.err, ", found in the cache") != NULL, again);
            free_result(&r);
        }
        free(words);
        free(text);
    }
    close_asker(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),
        cmocka_unit_test(test_pictures_are_looked_at),
        cmocka_unit_test(test_every_way),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_versions_need_the_policies),
        cmocka_unit_test(test_program),
    };
    return cmocka_run_group_tests(tests, open_questions, close_questions);
}
