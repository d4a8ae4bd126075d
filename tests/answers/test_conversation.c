/* Conversations through the library, with the random model: three pictures over twenty turns, turns through the cache
 * against the same from scratch, two conversations at once. */
#include "prompt/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS = 20, PICTURES = 3, NEW_TOKENS = 6 };
static const int coming[PICTURES] = {0, 4, 11}; /* turns that bring a picture */

/* What a client has: its messages, and the pictures they show. */
typedef struct client {
    const bench *b;
    qvl_generator *generator;
    char json[16384];
    picture pictures[PICTURES];
    qvl_medium media[PICTURES];
    size_t media_count;
} client;

static qvl_generator *open_generator(const bench *b, const qvl_lm *lm) {
    qvl_generator *generator;
    qvl_error error;
    if (qvl_generator_open(lm, b->prompter, NULL, &generator, &error)) fail_msg("%s", error.message);
    return generator;
}

static void open_client(client *c, const bench *b, const qvl_lm *lm) {
    *c = (client){.b = b, .generator = lm ? open_generator(b, lm) : NULL};
    for (uint32_t i = 0; i < PICTURES; i++) make_picture(&c->pictures[i], 96 + 64 * (int64_t)i, 96, i);
}

static void close_client(client *c) {
    qvl_generator_close(&c->generator);
    for (int i = 0; i < PICTURES; i++) free_picture(&c->pictures[i]);
}

static void add(client *c, const char *text) {
    assert_true(strlen(c->json) + strlen(text) + 2 < sizeof c->json);
    strcat(c->json, *c->json ? "," : "[");
    strcat(c->json, text);
}

static void add_question(client *c, int turn) {
    char text[256];
    bool brings = c->media_count < PICTURES && coming[c->media_count] == turn;
    snprintf(text, sizeof text,
             "{\"role\":\"user\",\"content\":[%s{\"type\":\"text\",\"text\":\"Question %d?\"}]}",
             brings ? "{\"type\":\"image\"}," : "", turn);
    if (brings) {
        c->media[c->media_count] = c->pictures[c->media_count].medium;
        c->media_count++;
    }
    add(c, text);
}

/* The answer as a message; its text is what cJSON would have to escape, so letters that need it are left out. */
static void add_answer(client *c, const qvl_answer *answer) {
    char text[512] = "{\"role\":\"assistant\",\"content\":\"";
    size_t used = strlen(text);
    for (size_t i = 0; i < answer->text_length && used < sizeof text - 4; i++) {
        char letter = answer->text[i];
        if (letter >= ' ' && letter < 0x7f && letter != '"' && letter != '\\') text[used++] = letter;
    }
    strcpy(text + used, "\"}");
    add(c, text);
}

static qvl_prompt prompt_of(const client *c) {
    char json[sizeof c->json + 1];
    snprintf(json, sizeof json, "%s]", c->json);
    return build_media(c->b, json, c->media, c->media_count, NULL);
}

static qvl_answer answer_with(qvl_generator *generator, const qvl_prompt *prompt) {
    qvl_generate_options options;
    qvl_answer answer;
    qvl_error error;
    qvl_generate_options_init(&options);
    options.max_new_tokens = NEW_TOKENS;
    options.logprobs = true;
    if (qvl_generate(generator, prompt, &options, &answer, &error)) fail_msg("%s", error.message);
    return answer;
}

/* What a prompt has in common with the one before and its answer. */
static int64_t common(const qvl_prompt *before, const qvl_answer *said, const qvl_prompt *p) {
    int64_t n = 0;
    while (n < p->length && n < before->length + said->count - 1) {
        int64_t id = n < before->length ? before->input_ids[n] : said->ids[n - before->length];
        if (id != p->input_ids[n]) break;
        n++;
    }
    return n;
}

static void open_all(bench *b, qvl_lm **lm, qvl_cache **cache) {
    qvl_error error;
    *b = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_WEIGHTS, QVL_F32, NULL);
    if (qvl_lm_open(b->model, NULL, lm, &error)) fail_msg("%s", error.message);
    if (cache && qvl_cache_open(NULL, cache, &error)) fail_msg("%s", error.message);
    if (cache && qvl_session_use_cache(b->session, *cache, &error)) fail_msg("%s", error.message);
}

/* The tower runs once for each picture; of each prompt only what is new is read. */
static void test_twenty_turns(void **state) {
    (void)state;
    bench b;
    qvl_lm *lm;
    qvl_cache *cache;
    qvl_cache_stats stats;
    client c;
    open_all(&b, &lm, &cache);
    open_client(&c, &b, lm);
    qvl_prompt before = {0};
    qvl_answer said = {0};
    for (int turn = 0; turn < TURNS; turn++) {
        add_question(&c, turn);
        qvl_prompt p = prompt_of(&c);
        qvl_answer a = answer_with(c.generator, &p);
        assert_int_equal(a.prompt_tokens, p.length);
        assert_int_equal(a.reused_tokens, turn ? common(&before, &said, &p) : 0);
        if (turn) assert_true(a.reused_tokens >= before.length - 1);
        add_answer(&c, &a);
        qvl_prompt_free(&before);
        qvl_answer_free(&said);
        before = p;
        said = a;
    }
    assert_int_equal(qvl_cache_get_stats(cache, &stats, NULL), QVL_OK);
    assert_int_equal(stats.encoded, PICTURES);
    assert_int_equal(stats.memory_hits, TURNS - 1 + TURNS - 5 + TURNS - 12);
    qvl_prompt_free(&before);
    qvl_answer_free(&said);
    close_client(&c);
    qvl_lm_close(&lm);
    close_bench(&b);
    qvl_cache_close(&cache);
}

/* Every turn from scratch says the same as through the cache, bit for bit; so do two conversations that take turns. */
static void test_from_scratch(void **state) {
    (void)state;
    bench b;
    qvl_lm *lm;
    client one, other;
    open_all(&b, &lm, NULL);
    open_client(&one, &b, lm);
    open_client(&other, &b, lm);
    other.pictures[0].medium = other.pictures[2].medium; /* not about the same */
    for (int turn = 0; turn < 6; turn++) {
        client *both[2] = {&one, &other};
        for (int i = 0; i < 2; i++) {
            add_question(both[i], turn);
            qvl_prompt p = prompt_of(both[i]);
            qvl_generator *fresh = open_generator(&b, lm);
            qvl_answer a = answer_with(both[i]->generator, &p), from_scratch = answer_with(fresh, &p);
            assert_int_equal(from_scratch.reused_tokens, 0);
            if (turn) assert_true(a.reused_tokens > p.length / 2);
            assert_int_equal(a.count, from_scratch.count);
            assert_memory_equal(a.ids, from_scratch.ids, (size_t)a.count * sizeof *a.ids);
            assert_memory_equal(a.logprobs, from_scratch.logprobs, (size_t)a.count * sizeof *a.logprobs);
            add_answer(both[i], &a);
            qvl_generator_close(&fresh);
            qvl_answer_free(&a);
            qvl_answer_free(&from_scratch);
            qvl_prompt_free(&p);
        }
    }
    assert_string_not_equal(one.json, other.json);
    close_client(&one);
    close_client(&other);
    qvl_lm_close(&lm);
    close_bench(&b);
}

/* Back and forth between two conversations with one generator: what they share is kept, the rest is read again. */
static void test_shared_generator(void **state) {
    (void)state;
    bench b;
    qvl_lm *lm;
    client one, other;
    open_all(&b, &lm, NULL);
    open_client(&one, &b, lm);
    open_client(&other, &b, NULL);
    add(&one, "{\"role\":\"system\",\"content\":\"Be brief.\"}");
    add(&other, "{\"role\":\"system\",\"content\":\"Be brief.\"}");
    other.pictures[0].medium = other.pictures[2].medium;
    add_question(&one, 0);
    add_question(&other, 0);
    qvl_prompt p = prompt_of(&one), q = prompt_of(&other);
    qvl_answer first = answer_with(one.generator, &p), second = answer_with(one.generator, &q),
               again = answer_with(one.generator, &p);
    assert_int_equal(second.reused_tokens, q.items[0].first.index);
    assert_int_equal(again.reused_tokens, p.items[0].first.index);
    assert_true(p.items[0].first.index > 5);
    assert_int_equal(first.count, again.count);
    assert_memory_equal(first.ids, again.ids, (size_t)first.count * sizeof *first.ids);
    qvl_answer_free(&first);
    qvl_answer_free(&second);
    qvl_answer_free(&again);
    qvl_prompt_free(&p);
    qvl_prompt_free(&q);
    close_client(&one);
    close_client(&other);
    qvl_lm_close(&lm);
    close_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_twenty_turns),
        cmocka_unit_test(test_from_scratch),
        cmocka_unit_test(test_shared_generator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
