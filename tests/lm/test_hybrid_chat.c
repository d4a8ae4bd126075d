/* A conversation of twenty turns with a hybrid model and a template that leaves thoughts out of earlier turns: the state
 * cannot be cut back, so every turn goes on from a snapshot, within the budget. The answers are those of reading every
 * prompt from its beginning, bit for bit. */
#include "lm/prompts.h"
#include "prompt/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TURNS = 20, NEW_TOKENS = 6, PICTURES = 2 };

typedef struct talk {
    bench words;
    qvl_lm *lm;
    char json[16384];
    picture pictures[PICTURES];
    qvl_medium media[PICTURES];
    size_t media_count;
} talk;

static void open_talk(talk *t, char *template) {
    *t = (talk){
        .words = open_bench(make_model_folder("demo-35", "scaled", "f32"), QVL_OPEN_WEIGHTS, QVL_F32, template)};
    qvl_error error;
    if (qvl_lm_open(t->words.model, NULL, &t->lm, &error)) fail_msg("%s", error.message);
    for (uint32_t i = 0; i < PICTURES; i++) make_picture(&t->pictures[i], 96 + 64 * (int64_t)i, 96, i);
}

static void close_talk(talk *t) {
    qvl_lm_close(&t->lm);
    close_bench(&t->words);
    for (int i = 0; i < PICTURES; i++) free_picture(&t->pictures[i]);
}

static void add(talk *t, const char *text) {
    assert_true(strlen(t->json) + strlen(text) + 2 < sizeof t->json);
    strcat(t->json, *t->json ? "," : "[");
    strcat(t->json, text);
}

static void add_question(talk *t, int turn) {
    char text[256];
    bool shows = turn == 0 || turn == 7;
    snprintf(text, sizeof text,
             "{\"role\":\"user\",\"content\":[%s{\"type\":\"text\",\"text\":\"Question %d?\"}]}",
             shows ? "{\"type\":\"image\"}," : "", turn);
    if (shows) t->media[t->media_count] = t->pictures[t->media_count].medium, t->media_count++;
    add(t, text);
}

static qvl_prompt prompt_of(const talk *t, int32_t preserve) {
    char json[sizeof t->json + 1];
    qvl_prompt_options options;
    qvl_prompt_options_init(&options);
    options.preserve_thinking = preserve;
    snprintf(json, sizeof json, "%s]", t->json);
    return build_media(&t->words, json, t->media, t->media_count, &options);
}

static qvl_generator *open_generator(const talk *t, int64_t budget) {
    qvl_sequence_options options;
    qvl_sequence_options_init(&options);
    options.snapshot_bytes = budget;
    qvl_generator *generator = NULL;
    qvl_error error;
    if (qvl_generator_open(t->lm, t->words.prompter, &options, &generator, &error)) fail_msg("%s", error.message);
    return generator;
}

static qvl_answer answer_of(qvl_generator *generator, const qvl_prompt *prompt) {
    qvl_generate_options options;
    qvl_generate_options_init(&options);
    options.max_new_tokens = NEW_TOKENS;
    options.logprobs = true;
    qvl_answer answer;
    qvl_error error;
    if (qvl_generate(generator, prompt, &options, &answer, &error)) fail_msg("%s", error.message);
    return answer;
}

static void assert_same_answer(const qvl_answer *a, const qvl_answer *b, int turn) {
    assert_int_equal(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++)
        if (a->ids[i] != b->ids[i] || memcmp(&a->logprobs[i], &b->logprobs[i], sizeof(float)) != 0)
            fail_msg("turn %d, token %lld: %d (%.9g), from scratch %d (%.9g)", turn, (long long)i, a->ids[i],
                     (double)a->logprobs[i], b->ids[i], (double)b->logprobs[i]);
}

static int64_t last_start(const talk *t, const qvl_prompt *p) {
    int32_t start = id_of(&t->words, "<|im_start|>");
    int64_t i = p->length - 1;
    while (p->input_ids[i] != start) i--;
    return i;
}

/* budget: of snapshots. Every turn after the first must go on from the header of the answer before, at least. */
static void check_talk(const char *name, int32_t preserve, int64_t budget, bool hits) {
    talk t;
    char *template = published_template(name);
    open_talk(&t, template);
    qvl_generator *generator = open_generator(&t, budget);
    int64_t header = 0, state = qvl_lm_get_info(t.lm)->state_bytes, most = 0;
    assert_true(qvl_lm_get_info(t.lm)->linear_layers == 3 && state > 0);
    for (int turn = 0; turn < TURNS; turn++) {
        add_question(&t, turn);
        qvl_prompt p = prompt_of(&t, preserve);
        qvl_answer a = answer_of(generator, &p);
        if (hits && a.reused_tokens < header)
            fail_msg("%s, turn %d: %lld of %lld entries reused, %lld could be", name, turn,
                     (long long)a.reused_tokens, (long long)a.prompt_tokens, (long long)header);
        if (!hits) assert_int_equal(a.reused_tokens, 0);
        qvl_generator *fresh = open_generator(&t, 0);
        qvl_answer b = answer_of(fresh, &p);
        assert_same_answer(&a, &b, turn);
        qvl_generator_close(&fresh);
        qvl_generator_info info;
        qvl_generator_get_info(generator, &info);
        int64_t pages = (info.held + 255) / 256 * 256 * qvl_lm_get_info(t.lm)->cache_bytes;
        int64_t kept = info.bytes - pages - state;
        assert_true(kept >= 0 && kept <= budget);
        most = kept > most ? kept : most;
        header = last_start(&t, &p);
        add(&t, "{\"role\":\"assistant\",\"reasoning_content\":\"hm\",\"content\":\"the model\"}");
        qvl_answer_free(&a);
        qvl_answer_free(&b);
        qvl_prompt_free(&p);
    }
    printf("%s: %d turns, snapshots took at most %lld of %lld bytes, a state is %lld\n", name, TURNS,
           (long long)most, (long long)budget, (long long)state);
    qvl_generator_close(&generator);
    close_talk(&t);
    free(template);
}

static void test_twenty_turns(void **state) {
    (void)state;
    check_talk("qwen3.5.jinja", -1, (int64_t)1 << 30, true);
    check_talk("qwen3.6.jinja", 1, (int64_t)1 << 30, true);
}

/* Two snapshots of this model take less than 32 KiB: the one that every turn needs is always among them. */
static void test_small_budget(void **state) {
    (void)state;
    check_talk("qwen3.5.jinja", -1, 64 << 10, true);
    check_talk("qwen3.5.jinja", -1, 0, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_twenty_turns), cmocka_unit_test(test_small_budget)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
