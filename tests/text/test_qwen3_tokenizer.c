/* The published 151k vocabulary, which is not part of the repository: $QVL_DATA/qwen3-tokenizer, by default in
 * ../shared/data beside it. The ids that the reference gives are in tests/fixtures/tokenizer_qwen3.json. */
#define _GNU_SOURCE
#include "small_tokenizer.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#include <time.h>
#include <zlib.h>

static test_folder folder;
static qvl_tokenizer *tokenizer;
static cJSON *fixture;

static void data_file(char *path, size_t size, const char *name) {
    const char *data = getenv("QVL_DATA");
    snprintf(path, size, "%s/qwen3-tokenizer/%s", data ? data : QVL_SOURCE_DIR "/../shared/data", name);
}

static void unpack(const char *from, const char *to) {
    static char buffer[1 << 16];
    gzFile packed = gzopen(from, "rb");
    FILE *plain = fopen(to, "wb");
    if (!packed || !plain) fail_msg("cannot unpack %s; set QVL_DATA to the folder that has qwen3-tokenizer", from);
    for (int n = gzread(packed, buffer, sizeof buffer); n != 0; n = gzread(packed, buffer, sizeof buffer)) {
        assert_true(n > 0);
        assert_int_equal(fwrite(buffer, 1, (size_t)n, plain), n);
    }
    gzclose(packed);
    assert_int_equal(fclose(plain), 0);
}

static int open_all(void **state) {
    (void)state;
    char path[512];
    uint8_t *config;
    size_t count;
    qvl_error error = {0};
    folder_open(&folder);
    data_file(path, sizeof path, "tokenizer.json.gz");
    unpack(path, folder_file(&folder, "tokenizer.json"));
    data_file(path, sizeof path, "tokenizer_config.json");
    assert_ok(qvl_file_read(path, 1 << 20, &config, &count, &error), &error);
    folder_write(&folder, "tokenizer_config.json", config, count);
    qvl_free(config);
    assert_ok(qvl_tokenizer_open(folder.path, NULL, NULL, &tokenizer, &error), &error);
    assert_ok(qvl_json_read(QVL_FIXTURES "/tokenizer_qwen3.json", 1 << 24, &fixture, &error), &error);
    return 0;
}

static int close_all(void **state) {
    (void)state;
    cJSON_Delete(fixture);
    qvl_tokenizer_close(&tokenizer);
    folder_close(&folder);
    return 0;
}

static void check_ids(const cJSON *item, const char *key, const char *text, qvl_added added) {
    const cJSON *wanted = cJSON_GetObjectItemCaseSensitive(item, key);
    qvl_tokenize_options options;
    qvl_tokens tokens;
    qvl_error error = {0};
    if (!wanted) wanted = cJSON_GetObjectItemCaseSensitive(item, "ids");
    qvl_tokenize_options_init(&options);
    options.added = added;
    assert_ok(qvl_tokenize(tokenizer, text, strlen(text), &options, &tokens, &error), &error);
    size_t i = 0;
    for (const cJSON *id = wanted->child; id && i < tokens.count; id = id->next, i++)
        if (tokens.ids[i] != id->valueint)
            fail_msg("%s %zu is %d, not %d: %.200s", key, i, tokens.ids[i], id->valueint, text);
    assert_int_equal(tokens.count, cJSON_GetArraySize(wanted));
    qvl_tokens_free(&tokens);
}

static void test_ids(void **state) {
    (void)state;
    const cJSON *item, *cases = cJSON_GetObjectItemCaseSensitive(fixture, "cases");
    assert_true(cJSON_GetArraySize(cases) > 40);
    cJSON_ArrayForEach(item, cases) {
        const char *text = cJSON_GetObjectItemCaseSensitive(item, "text")->valuestring;
        check_ids(item, "ids", text, QVL_ADDED_ALL);
        check_ids(item, "ordinary", text, QVL_ADDED_ORDINARY);
    }
}

static void test_decoding(void **state) {
    (void)state;
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(fixture, "cases")) {
        const cJSON *ids = cJSON_GetObjectItemCaseSensitive(item, "ids"), *id;
        const cJSON *decoded = cJSON_GetObjectItemCaseSensitive(item, "decoded");
        if (!decoded) decoded = cJSON_GetObjectItemCaseSensitive(item, "text");
        int count = cJSON_GetArraySize(ids), i = 0;
        int32_t *array = malloc(sizeof *array * (size_t)(count + 1));
        qvl_text text;
        qvl_error error = {0};
        assert_non_null(array);
        cJSON_ArrayForEach(id, ids) array[i++] = id->valueint;
        assert_ok(qvl_detokenize(tokenizer, array, (size_t)count, false, &text, &error), &error);
        assert_string_equal(text.bytes, decoded->valuestring);
        qvl_text_free(&text);
        free(array);
    }
}

static void test_added_tokens(void **state) {
    (void)state;
    qvl_tokenizer_info info;
    qvl_token token;
    qvl_tokenizer_get_info(tokenizer, &info);
    assert_int_equal(info.base_count, 151643);
    assert_int_equal(info.added_count, 26);
    assert_int_equal(info.id_limit, 151669);
    assert_string_equal(info.splitter, "qwen2");
    assert_true(qvl_token_find(tokenizer, "<|image_pad|>", &token) && token.id == 151655 && token.special);
    assert_true(qvl_token_find(tokenizer, "<think>", &token) && token.id == 151667 && !token.special);
    assert_false(qvl_token_get(tokenizer, 151669, &token));
}

/* Generous, for sanitizers and busy machines; a plain build takes a fifth of a second. */
static void test_opens_quickly(void **state) {
    (void)state;
    struct timespec start, end;
    qvl_tokenizer *again;
    qvl_error error = {0};
    clock_gettime(CLOCK_MONOTONIC, &start);
    assert_ok(qvl_tokenizer_open(folder.path, NULL, NULL, &again, &error), &error);
    clock_gettime(CLOCK_MONOTONIC, &end);
    qvl_tokenizer_close(&again);
    assert_true((double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec) < 10.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_decoding),
        cmocka_unit_test(test_added_tokens),
        cmocka_unit_test(test_opens_quickly),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
