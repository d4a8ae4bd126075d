/* Where a folder's pixel limits may stand, and what they make of a picture: reports of users whose limits were not
 * applied. */
#define _GNU_SOURCE
#include "test_folder.h"

#include "qvl.h"

#define CONFIG                                                                                                    \
    "{\"model_type\":\"qwen3_vl\",\"vision_config\":{\"depth\":1,\"hidden_size\":8,\"num_heads\":2,"              \
    "\"intermediate_size\":8}}"
#define REST "\"image_mean\":[0.5,0.5,0.5],\"image_std\":[0.5,0.5,0.5],\"patch_size\":16"
#define TABLE(min, max) "\"size\":{\"shortest_edge\":" #min ",\"longest_edge\":" #max "},"
#define NUMBERS(min, max) "\"min_pixels\":" #min ",\"max_pixels\":" #max ","

typedef struct notes {
    int count;
    char all[8192];
} notes;

static void take_note(const char *message, void *user) {
    notes *n = user;
    size_t used = strlen(n->all);
    n->count++;
    snprintf(n->all + used, sizeof n->all - used, "%s\n", message);
}

/* A folder with these two files (NULL: without), opened for preprocessing. */
static qvl_model *open_folder(test_folder *folder, const char *preprocessor, const char *processor, notes *n) {
    qvl_model_options options;
    qvl_model_options_init(&options);
    options.level = QVL_OPEN_CONFIG;
    options.threads = 1;
    options.log = take_note;
    options.log_user = n;
    memset(n, 0, sizeof *n);
    folder_open(folder);
    folder_write_text(folder, "config.json", CONFIG);
    if (preprocessor) folder_write_text(folder, "preprocessor_config.json", preprocessor);
    if (processor) folder_write_text(folder, "processor_config.json", processor);
    qvl_model *model;
    qvl_error error;
    assert_ok(qvl_model_open(folder->path, &options, &model, &error), &error);
    return model;
}

static void close_folder(test_folder *folder, qvl_model *model) {
    qvl_model_close(&model);
    folder_close(folder);
}

/* A grey picture through preprocessing. */
static void assert_becomes(const qvl_model *model, const qvl_preprocess_options *options, int64_t width,
                           int64_t height, int64_t wanted_width, int64_t wanted_height) {
    qvl_image image = {.width = width, .height = height, .pixels = malloc((size_t)(3 * width * height))};
    qvl_patches patches;
    qvl_error error;
    memset(image.pixels, 127, (size_t)(3 * width * height));
    assert_ok(qvl_preprocess(model, &image, 1, options, &patches, &error), &error);
    assert_int_equal(patches.items[0].width, wanted_width);
    assert_int_equal(patches.items[0].height, wanted_height);
    assert_int_equal(patches.items[0].tokens, wanted_width * wanted_height / 1024);
    qvl_patches_free(&patches);
    free(image.pixels);
}

/* Report 14: a fallback processor with limits of its own. In each of the three places the folder's limits hold:
 * 150 x 224 becomes 224 x 320, 70 tokens, not the 160 x 224 of the class default. A missing file is a loud
 * default. */
static void report_14_limits_in_three_places(void **state) {
    (void)state;
    static const struct {
        const char *preprocessor, *processor;
    } places[] = {
        {"{" TABLE(65536, 16777216) REST "}", NULL},
        {"{" NUMBERS(65536, 16777216) REST "}", NULL},
        {NULL, "{\"image_processor\":{" TABLE(65536, 16777216) REST "}}"},
        {NULL, "{\"image_processor\":{" NUMBERS(65536, 16777216) REST "}}"},
    };
    test_folder folder;
    notes n;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        qvl_model *model = open_folder(&folder, places[i].preprocessor, places[i].processor, &n);
        const qvl_model_info *info = qvl_model_get_info(model);
        assert_int_equal(info->image_limits.min_pixels, 65536);
        assert_int_equal(info->image_limits.max_pixels, 16777216);
        assert_string_equal(info->image_limits_source,
                            places[i].processor ? "processor_config.json" : "preprocessor_config.json");
        assert_becomes(model, NULL, 150, 224, 224, 320);
        assert_int_equal(n.count, 0);
        close_folder(&folder, model);
    }
    qvl_model *model = open_folder(&folder, NULL, NULL, &n);
    assert_string_equal(qvl_model_get_info(model)->image_limits_source, "class default");
    assert_becomes(model, NULL, 150, 224, 160, 224);
    assert_int_equal(n.count, 1);
    assert_non_null(strstr(n.all, "no preprocessor file in "));
    assert_non_null(strstr(n.all, "class defaults are used, 3136..1003520 pixels"));
    close_folder(&folder, model);
}

/* Report 8: the limit that is set is the limit that holds, under either name, in the file and for a call. */
static void report_8_limits_that_are_set_hold(void **state) {
    (void)state;
    static const struct {
        const char *preprocessor;
        int64_t width, height; /* of a picture of 640 x 480 */
    } files[] = {
        {"{" TABLE(1024, 65536) REST "}", 288, 192},
        {"{" NUMBERS(1024, 65536) REST "}", 288, 192},
        {"{" TABLE(1024, 16777216) "\"max_pixels\":65536," REST "}", 288,
         192}, /* the flat number is the later one */
        {"{" TABLE(1024, 65536) "\"max_pixels\":16777216," REST "}", 640, 480},
        {"{" TABLE(1048576, 16777216) REST "}", 1184, 896},
        {"{" NUMBERS(1048576, 16777216) REST "}", 1184, 896},
    };
    test_folder folder;
    notes n;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        qvl_model *model = open_folder(&folder, files[i].preprocessor, NULL, &n);
        assert_becomes(model, NULL, 640, 480, files[i].width, files[i].height);
        qvl_preprocess_options options;
        qvl_preprocess_options_init(&options);
        options.min_pixels = 1024;
        options.max_pixels = 147456;
        assert_becomes(model, &options, 640, 480, 416, 320); /* the call beats every file */
        qvl_preprocess_options_init(&options);
        options.min_tokens = 1;
        options.max_tokens = 144;
        assert_becomes(model, &options, 640, 480, 416, 320); /* and so it does in tokens */
        close_folder(&folder, model);
    }
}

/* Two values for one limit, and names that are no limit at all: said, with both values, and never an error. */
static void report_8_contradictions_are_said(void **state) {
    (void)state;
    static const struct {
        const char *preprocessor, *processor;
        int count;
        const char *says[3];
    } cases[] = {
        {"{" TABLE(100, 200) "\"max_pixels\":300," REST "}",
         NULL,
         1,
         {"/preprocessor_config.json: max_pixels is 300 but size.longest_edge is 200; the former is used"}},
        {"{" TABLE(100, 200) NUMBERS(1, 2) REST "}",
         NULL,
         2,
         {"min_pixels is 1 but size.shortest_edge is 100", "max_pixels is 2 but size.longest_edge is 200"}},
        {"{" TABLE(100, 200) NUMBERS(100, 200) REST "}", NULL, 0, {NULL}},
        {NULL,
         "{\"image_processor\":{" TABLE(100, 200) "\"min_pixels\":7," REST "}}",
         1,
         {"/processor_config.json: min_pixels is 7 but size.shortest_edge is 100"}},
        {"{" TABLE(1, 2) REST "}",
         "{\"image_processor\":{" TABLE(100, 200) REST "}}",
         1,
         {"/processor_config.json is used",
          "/preprocessor_config.json says otherwise (limits 1..2, not 100..200)"}},
        {"{" TABLE(1, 2) "\"image_mean\":[0.1,0.2,0.3],\"image_std\":[0.5,0.5,0.5],\"rescale_factor\":1}",
         "{\"image_processor\":{" TABLE(1, 2) REST "}}",
         1,
         {"says otherwise (image_mean 0.1 0.2 0.3, not 0.5 0.5 0.5; rescale_factor 1, not 0.00392156863)"}},
        {"{" TABLE(1, 2) "\"image_mean\":[0.5,0.5,0.5],\"image_std\":[1,1,1]}",
         "{\"image_processor\":{" TABLE(1, 2) REST "}}",
         1,
         {"says otherwise (image_std 1 1 1, not 0.5 0.5 0.5)"}},
        {"{" TABLE(100, 200) "\"max_pixel\":300,\"longest_edge\":5," REST "}",
         NULL,
         2,
         {"max_pixel is not a limit that is read", "longest_edge is not a limit that is read",
          "those are size.shortest_edge and size.longest_edge, or min_pixels and max_pixels"}},
        {"{" TABLE(100, 200) "\"max_pixels\":null,\"other_edge\":null," REST "}", NULL, 0, {NULL}},
    };
    test_folder folder;
    notes n;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        qvl_model *model = open_folder(&folder, cases[i].preprocessor, cases[i].processor, &n);
        if (n.count != cases[i].count) fail_msg("case %zu: %d notes: %s", i, n.count, n.all);
        for (int k = 0; k < 3 && cases[i].says[k]; k++)
            if (!strstr(n.all, cases[i].says[k]))
                fail_msg("case %zu: %s\nis not in: %s", i, cases[i].says[k], n.all);
        close_folder(&folder, model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_14_limits_in_three_places),
        cmocka_unit_test(report_8_limits_that_are_set_hold),
        cmocka_unit_test(report_8_contradictions_are_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
