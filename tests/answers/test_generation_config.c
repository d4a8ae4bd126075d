/* generation_config.json: settings, stop tokens of every file, and tokens that never come. */
#define _GNU_SOURCE
#include "lm/generation_config.h"

#include "prompt/support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the parser */

static void keep_note(const char *message, void *user) {
    notes *kept = user;
    snprintf(kept->text + strlen(kept->text), sizeof kept->text - strlen(kept->text), "%s\n", message);
}

static qvl_generate_options parse(const char *json, notes *kept) {
    qvl_generate_options options;
    qvl_error error;
    *kept = (notes){0};
    qvl_generate_options_init(&options);
    if (qvl_generation_config_parse(json, strlen(json), "generation_config.json", keep_note, kept, &options,
                                    &error))
        fail_msg("%s", error.message);
    return options;
}

static void test_settings(void **state) {
    (void)state;
    notes kept;
    /* What Qwen3-VL-8B-Instruct has. */
    qvl_generate_options o = parse("{\"bos_token_id\":151643,\"pad_token_id\":151643,\"do_sample\":true,"
                                   "\"eos_token_id\":[151645,151643],\"top_k\":20,\"top_p\":0.8,"
                                   "\"repetition_penalty\":1.0,\"temperature\":0.7,"
                                   "\"transformers_version\":\"4.56.0\"}",
                                   &kept);
    assert_true(o.sampling.do_sample && o.sampling.temperature == 0.7 && o.sampling.top_k == 20);
    assert_true(o.sampling.top_p == 0.8 && o.sampling.min_p == 0.0 && o.sampling.repetition_penalty == 1.0);
    assert_true(o.sampling.presence_penalty == 0.0);
    assert_int_equal(o.max_new_tokens, 0);
    assert_string_equal(kept.text, "");
    o = parse(
        "{\"do_sample\":null,\"temperature\":null,\"min_p\":0.1,\"presence_penalty\":1.5,\"max_new_tokens\":64,"
        "\"num_beams\":1,\"typical_p\":1.0,\"bad_words_ids\":null}",
        &kept);
    assert_true(!o.sampling.do_sample && o.sampling.temperature == 1.0 && o.sampling.min_p == 0.1);
    assert_true(o.sampling.presence_penalty == 1.5);
    assert_int_equal(o.max_new_tokens, 64);
    assert_string_equal(kept.text, "");
    parse("{\"num_beams\":4,\"no_repeat_ngram_size\":3,\"suppress_tokens\":[1,2]}", &kept);
    assert_string_equal(
        kept.text, "generation_config.json has num_beams 4, which qvl does not have: it is ignored\n"
                   "generation_config.json has no_repeat_ngram_size 3, which qvl does not have: it is ignored\n"
                   "generation_config.json has suppress_tokens a list, which qvl does not have: it is ignored\n");
}

static void test_bad_settings(void **state) {
    (void)state;
    static const struct {
        const char *json, *says;
    } cases[] = {
        {"{\"temperature\":-1}", "generation_config.json: temperature is -1; it must be a number in 0..1e+06"},
        {"{\"top_p\":1.5}", "top_p is 1.5"},
        {"{\"min_p\":\"0.1\"}", "min_p is \"0.1\""},
        {"{\"top_k\":2.5}", "top_k is 2.5"},
        {"{\"top_k\":-1}", "top_k is -1"},
        {"{\"do_sample\":1}", "do_sample is 1; it must be true or false"},
        {"{\"repetition_penalty\":0}", "repetition_penalty is 0"},
        {"{\"max_new_tokens\":0}", "max_new_tokens is 0"},
        {"[]", "it must be a JSON object"},
        {"{", "generation_config.json"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qvl_generate_options o;
        qvl_error error;
        qvl_generate_options_init(&o);
        qvl_status status = qvl_generation_config_parse(cases[i].json, strlen(cases[i].json),
                                                        "generation_config.json", NULL, NULL, &o, &error);
        assert_int_equal(status, QVL_ERROR_FORMAT);
        assert_has(error.message, cases[i].says);
    }
}

/* ---- folders */

static char folder[64];

static void write_text(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* The random model's folder without its weights, and with this generation_config.json (NULL: none). */
static void make_folder(const char *generation_config) {
    static const char *const names[] = {"config.json", "preprocessor_config.json",
                                        "video_preprocessor_config.json", "tokenizer.json",
                                        "tokenizer_config.json"};
    strcpy(folder, "/tmp/qvl-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[256];
        snprintf(path, sizeof path, QVL_RANDOM_MODEL "/%s", names[i]);
        char *text = read_text(path);
        write_text(names[i], text);
        free(text);
    }
    if (generation_config) write_text("generation_config.json", generation_config);
}

static void remove_folder(void) {
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory))
        if (entry->d_name[0] != '.') unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
    assert_int_equal(rmdir(folder), 0);
}

/* The stop tokens of the folder. */
static void assert_stops(const int32_t *want, size_t count) {
    bench b = open_bench(folder, QVL_OPEN_CONFIG, QVL_F32, NULL);
    int32_t *ids;
    size_t got;
    assert_int_equal(qvl_stop_tokens(b.prompter, &ids, &got, NULL), QVL_OK);
    assert_int_equal(got, count);
    for (size_t i = 0; i < count; i++) assert_int_equal(ids[i], want[i]);
    free(ids);
    close_bench(&b);
}

static void test_stop_tokens(void **state) {
    (void)state;
    bench demo = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG, QVL_F32, NULL);
    int32_t end = id_of(&demo, "<|im_end|>"), text_end = id_of(&demo, "<|endoftext|>");
    close_bench(&demo);
    assert_true(text_end < end);
    /* No file: those of the tokenizer and of config.json. */
    make_folder(NULL);
    assert_stops((int32_t[]){text_end, end}, 2);
    remove_folder();
    /* One id, a list, ids twice; config.json's in text_config counts, too. */
    make_folder("{\"eos_token_id\":7}");
    assert_stops((int32_t[]){7, text_end, end}, 3);
    remove_folder();
    make_folder("{\"eos_token_id\":[9,7,9]}");
    write_text("config.json",
               "{\"model_type\":\"qwen3_vl\",\"eos_token_id\":[3],\"text_config\":{\"eos_token_id\":5},"
               "\"vision_config\":{\"depth\":1,\"hidden_size\":64,\"num_heads\":2,\"intermediate_size\":"
               "64,\"out_hidden_size\":64,\"patch_size\":16,\"num_position_embeddings\":576,"
               "\"deepstack_visual_indexes\":[]}}");
    assert_stops((int32_t[]){3, 5, 7, 9, text_end, end}, 6);
    remove_folder();
    make_folder("{\"eos_token_id\":null}");
    assert_stops((int32_t[]){text_end, end}, 2);
    remove_folder();
}

static void test_bad_stop_tokens(void **state) {
    (void)state;
    static const char *const bad[] = {"{\"eos_token_id\":-1}", "{\"eos_token_id\":[1,\"x\"]}",
                                      "{\"eos_token_id\":1.5}", "{\"eos_token_id\":{}}",
                                      "{\"eos_token_id\":4294967296}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        make_folder(bad[i]);
        bench b = open_bench(folder, QVL_OPEN_CONFIG, QVL_F32, NULL);
        int32_t *ids;
        size_t count;
        qvl_error error;
        assert_int_equal(qvl_stop_tokens(b.prompter, &ids, &count, &error), QVL_ERROR_MODEL);
        assert_has(error.message, "generation_config.json: eos_token_id has ");
        assert_null(ids);
        close_bench(&b);
        remove_folder();
    }
}

static void test_defaults(void **state) {
    (void)state;
    qvl_generate_options o;
    make_folder(NULL);
    bench b = open_bench(folder, QVL_OPEN_CONFIG, QVL_F32, NULL);
    assert_int_equal(qvl_generate_options_read(b.prompter, &o, NULL), QVL_OK);
    assert_true(!o.sampling.do_sample && o.sampling.temperature == 1.0 && o.sampling.top_k == 50);
    assert_true(o.sampling.top_p == 1.0 && o.sampling.min_p == 0.0 && o.max_new_tokens == 0);
    close_bench(&b);
    remove_folder();
    make_folder("{\"do_sample\":true,\"temperature\":2}");
    b = open_bench(folder, QVL_OPEN_CONFIG, QVL_F32, NULL);
    assert_int_equal(qvl_generate_options_read(b.prompter, &o, NULL), QVL_OK);
    assert_true(o.sampling.do_sample && o.sampling.temperature == 2.0 && o.sampling.top_k == 50);
    close_bench(&b);
    remove_folder();
    make_folder("{\"top_k\":\"all\"}");
    b = open_bench(folder, QVL_OPEN_CONFIG, QVL_F32, NULL);
    assert_int_equal(qvl_generate_options_read(b.prompter, &o, NULL), QVL_ERROR_FORMAT);
    close_bench(&b);
    remove_folder();
}

static void test_never_tokens(void **state) {
    (void)state;
    enum { VOCAB = 600 };
    bench b = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG, QVL_F32, NULL);
    uint8_t never[VOCAB];
    int32_t stops[2] = {id_of(&b, "<|endoftext|>"), id_of(&b, "<|vision_pad|>")};
    qvl_tokenizer_info info;
    qvl_tokenizer_get_info(qvl_prompter_tokenizer(b.prompter), &info);
    assert_in_range(info.id_limit, 300, VOCAB - 1);
    qvl_never_tokens(b.prompter, stops, 1, VOCAB, never);
    for (int id = info.id_limit; id < VOCAB; id++) assert_int_equal(never[id], 1);
    static const char *const out[] = {"<|image_pad|>",  "<|video_pad|>",  "<|vision_start|>",
                                      "<|vision_end|>", "<|vision_pad|>", "<|fim_pad|>"};
    static const char *const in[] = {"<|endoftext|>", "<|im_end|>",   "<|im_start|>",
                                     "<think>",       "</tool_call>", "<|box_start|>"};
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(never[id_of(&b, out[i])], 1);
        assert_int_equal(never[id_of(&b, in[i])], 0);
    }
    int count = 0;
    for (int id = 0; id < info.id_limit; id++) count += never[id];
    assert_int_equal(count, 6);
    qvl_never_tokens(b.prompter, stops, 2, VOCAB, never); /* what ends an answer may come */
    assert_int_equal(never[stops[1]], 0);
    close_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings),    cmocka_unit_test(test_bad_settings),
        cmocka_unit_test(test_stop_tokens), cmocka_unit_test(test_bad_stop_tokens),
        cmocka_unit_test(test_defaults),    cmocka_unit_test(test_never_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
