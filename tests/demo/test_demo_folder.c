/* The demo model's folder is whole and small, and the program's default. */
#define _GNU_SOURCE
#include "cli/program.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* 16 MB: a clone must stay small. */
#define MOST_BYTES 16000000

static int64_t folder_bytes;

static int add_file(const char *path, const struct stat *status, int kind, struct FTW *where) {
    (void)where;
    if (kind != FTW_D && kind != FTW_F) fail_msg("%s is neither a file nor a folder", path);
    if (kind == FTW_F) folder_bytes += status->st_size;
    return 0;
}

static void test_small(void **state) {
    (void)state;
    assert_int_equal(nftw(QVL_DEMO_MODEL, add_file, 8, FTW_PHYS), 0);
    if (folder_bytes > MOST_BYTES)
        fail_msg("%s has %lld bytes; allowed are %d", QVL_DEMO_MODEL, (long long)folder_bytes, MOST_BYTES);
}

/* Every file that a published folder has, and nothing of it in shards. */
static void test_complete(void **state) {
    (void)state;
    static const char *const files[] = {"config.json",
                                        "generation_config.json",
                                        "preprocessor_config.json",
                                        "tokenizer.json",
                                        "video_preprocessor_config.json",
                                        "tokenizer_config.json",
                                        "chat_template.jinja",
                                        "model.safetensors"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[512];
        size_t count;
        snprintf(path, sizeof path, QVL_DEMO_MODEL "/%s", files[i]);
        char *text = read_file(path, &count);
        cJSON *json = strstr(files[i], ".json") ? cJSON_Parse(text) : NULL;
        if (count == 0 || (strstr(files[i], ".json") && !cJSON_IsObject(json))) fail_msg("%s is not whole", path);
        cJSON_Delete(json);
        free(text);
    }
    cJSON *json = run_json(QVL("info", "--json", "-m", QVL_DEMO_MODEL));
    assert_string_equal(field(json, "model_type")->valuestring, "qwen3_vl");
    cJSON_Delete(json);
}

/* Without -m the program answers with it, and says who it is. */
static void test_default(void **state) {
    (void)state;
    cJSON *json = run_json(QVL("ask", "-q", "--json", "Who are you?"));
    cJSON *named = run_json(QVL("ask", "-q", "--json", "Who are you?", "-m", QVL_DEMO_MODEL));
    assert_says(field(json, "text")->valuestring, "I am the demo model of qvl");
    assert_true(cJSON_Compare(field(json, "ids"), field(named, "ids"), true));
    assert_string_equal(field(json, "finish_reason")->valuestring, "stop");
    char default_config[512];
    snprintf(default_config, sizeof default_config, "%s/config.json", field(json, "model")->valuestring);
    assert_same_file(default_config, QVL_DEMO_MODEL "/config.json");
    cJSON_Delete(json);
    cJSON_Delete(named);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_complete),
        cmocka_unit_test(test_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
