/* Conversations with up to six pictures and videos, both generations of the vocabulary, published templates:
 * ids, token types, positions and deltas as transformers has them (tools/oracle/prompt_fixtures.py). */
#define _GNU_SOURCE
#include "base/hash.h"
#include "prompt/support.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIXTURE QVL_FIXTURES "/prompt/conversations.json"

static const cJSON *get(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!item) fail_msg("%s: no %s", FIXTURE, key);
    return item;
}

static int64_t integer(const cJSON *list, int index) {
    return (int64_t)cJSON_GetArrayItem(list, index)->valuedouble;
}

static void assert_hash(const cJSON *expected, const char *key, const int64_t *values, int64_t count) {
    uint8_t digest[QVL_SHA256_BYTES];
    char hex[QVL_SHA256_HEX];
    assert_int_equal(qvl_sha256(values, (size_t)count * sizeof *values, digest, NULL), QVL_OK);
    qvl_sha256_print(digest, hex);
    if (strcmp(hex, get(expected, key)->valuestring) != 0) {
        char *chat = cJSON_PrintUnformatted(get(expected, "chat"));
        fail_msg("%s: %s differ: %s", get(expected, "template")->valuestring, key, chat);
    }
}

/* The media of a case. Pictures have no pixels to speak of: only their sizes matter. */
typedef struct media {
    qvl_input inputs[8];
    qvl_item items[8];
    qvl_patches patches[8];
    double timestamps[8][64];
    qvl_medium list[16];
    size_t count;
} media;

static void make_media(const cJSON *expected, const qvl_model_info *info, media *m) {
    static uint8_t pixels[3 * 400 * 400];
    const cJSON *entry;
    *m = (media){0};
    cJSON_ArrayForEach(entry, get(expected, "pictures")) {
        qvl_input *input = &m->inputs[m->count];
        *input = (qvl_input){
            .kind = QVL_INPUT_RGB8, .bytes = pixels, .width = integer(entry, 1), .height = integer(entry, 0)};
        m->list[m->count++] = (qvl_medium){.kind = QVL_MEDIUM_IMAGE, .input = input};
    }
    size_t videos = 0;
    cJSON_ArrayForEach(entry, get(expected, "videos")) {
        const cJSON *grid = get(entry, "grid"), *stamps = get(entry, "timestamps");
        qvl_item *item = &m->items[videos];
        item->grid = (qvl_grid){integer(grid, 0), integer(grid, 1), integer(grid, 2)};
        int count = cJSON_GetArraySize(stamps);
        for (int i = 0; i < count; i++) m->timestamps[videos][i] = cJSON_GetArrayItem(stamps, i)->valuedouble;
        m->patches[videos] = (qvl_patches){.rows = item->grid.t * item->grid.h * item->grid.w,
                                           .cols = (int64_t)info->in_channels * info->temporal_patch_size *
                                                   info->patch_size * info->patch_size,
                                           .item_count = 1,
                                           .items = item};
        m->list[m->count++] = (qvl_medium){.kind = QVL_MEDIUM_VIDEO,
                                           .patches = &m->patches[videos],
                                           .timestamps = m->timestamps[videos],
                                           .timestamp_count = (size_t)count};
        videos++;
    }
}

static void check_case(const bench *b, const cJSON *expected, const cJSON *limits) {
    media m;
    make_media(expected, qvl_model_get_info(b->model), &m);
    char *chat = cJSON_PrintUnformatted(get(expected, "chat"));
    qvl_prompt_options options;
    qvl_prompt_options_init(&options);
    options.preprocess.min_pixels = integer(limits, 0);
    options.preprocess.max_pixels = integer(limits, 1);
    qvl_prompt p = plan_media(b, chat, m.list, m.count, &options);
    assert_hash(expected, "ids", p.input_ids, p.length);
    assert_hash(expected, "types", p.token_types, p.length);
    assert_hash(expected, "positions", p.position_ids, 3 * p.length);
    assert_int_equal(p.length, get(expected, "length")->valuedouble);
    assert_int_equal(p.rope_delta, get(expected, "delta")->valuedouble);
    qvl_prompt_free(&p);
    cJSON_free(chat);
}

/* The folder of the second generation, made by random_model. */
static const char *make_demo_35(void) {
    static char folder[] = "/tmp/qvl-prompt-XXXXXX";
    static char path[128];
    char command[512];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/model", folder);
    snprintf(command, sizeof command, "'%s' --shape demo-35 '%s'", QVL_RANDOM_MODEL_TOOL, path);
    assert_int_equal(system(command), 0);
    return path;
}

static void remove_demo_35(const char *path) {
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%.*s'", (int)(strlen(path) - strlen("/model")), path);
    assert_int_equal(system(command), 0);
}

static void test_conversations(void **state) {
    (void)state;
    char *text = read_text(FIXTURE);
    cJSON *fixture = cJSON_Parse(text);
    assert_non_null(fixture);
    const char *other = make_demo_35(), *opened = "";
    bench b = {0};
    int count = 0, families[2] = {0};
    const cJSON *expected;
    cJSON_ArrayForEach(expected, get(fixture, "cases")) {
        const char *family = get(expected, "family")->valuestring, *name = get(expected, "template")->valuestring;
        bool second = strcmp(family, "qwen3_5") == 0;
        if (strcmp(opened, name) != 0 || (families[second] == 0)) { /* cases come template by template */
            char *published = strcmp(name, "own") == 0 ? NULL : published_template(name);
            close_bench(&b);
            b = open_bench(second ? other : QVL_RANDOM_MODEL, QVL_OPEN_CONFIG, QVL_BF16, published);
            free(published);
            opened = name;
        }
        check_case(&b, expected, get(fixture, "limits"));
        families[second]++;
        count++;
    }
    assert_true(families[0] >= 90 && families[1] >= 150);
    assert_true(count >= 200);
    close_bench(&b);
    remove_demo_35(other);
    cJSON_Delete(fixture);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_conversations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
