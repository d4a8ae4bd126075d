/* Where a folder's template is looked for. */
#define _GNU_SOURCE
#include "text/templates.h"

#include <sys/stat.h>

static void assert_found(const test_folder *folder, const char *name, bool with_tools, const char *wanted,
                         const char *where) {
    char *text, *source;
    size_t count;
    qvl_error error = {0};
    assert_ok(qvl_template_find(folder->path, name, with_tools, &text, &count, &source, &error), &error);
    if (!wanted) {
        assert_null(text);
        assert_null(source);
        return;
    }
    if (!text) fail_msg("nothing found, wanted %s of %s", wanted, where);
    assert_string_equal(text, wanted);
    assert_int_equal(count, strlen(wanted));
    assert_string_equal(source, where);
    qvl_free(text);
    qvl_free(source);
}

static void assert_not_found(const test_folder *folder, const char *name, qvl_status status, const char *says) {
    char *text, *source;
    size_t count;
    qvl_error error = {0};
    assert_failure(qvl_template_find(folder->path, name, false, &text, &count, &source, &error), &error, status,
                   says);
    assert_null(text);
    assert_null(source);
}

static void test_order(void **state) {
    (void)state;
    test_folder folder;
    folder_open(&folder);
    assert_found(&folder, NULL, false, NULL, NULL);
    folder_write_text(&folder, "tokenizer_config.json", "{\"chat_template\": \"T\", \"other\": 1}");
    assert_found(&folder, NULL, true, "T", "tokenizer_config.json");
    folder_write_text(&folder, "chat_template.jinja", "J\n");
    assert_found(&folder, NULL, false, "J\n", "chat_template.jinja");
    folder_write_text(&folder, "chat_template.json", "{\"chat_template\": \"L\\u00e4\"}");
    assert_found(&folder, NULL, false, "L\xc3\xa4", "chat_template.json");
    folder_write_text(&folder, "processor_config.json", "{\"chat_template\": null}");
    assert_found(&folder, NULL, false, "L\xc3\xa4", "chat_template.json");
    folder_write_text(&folder, "processor_config.json", "{\"chat_template\": \"P\"}");
    assert_found(&folder, "default", false, "P", "processor_config.json");
    folder_close(&folder);
}

static void test_named(void **state) {
    (void)state;
    test_folder folder;
    folder_open(&folder);
    folder_write_text(
        &folder, "tokenizer_config.json",
        "{\"chat_template\": [{\"name\": \"default\", \"template\": \"D\"}, {\"name\": \"tool_use\", "
        "\"template\": \"U\"}, {\"name\": \"rag\", \"template\": \"R\"}, 5]}");
    assert_found(&folder, NULL, false, "D", "tokenizer_config.json");
    assert_found(&folder, NULL, true, "U", "tokenizer_config.json");
    assert_found(&folder, "rag", true, "R", "tokenizer_config.json");
    assert_not_found(&folder, "nope", QVL_ERROR_ARGUMENT, "no chat template is named \"nope\"");
    folder_write_text(&folder, "chat_template.jinja", "J");
    char inner[128];
    snprintf(inner, sizeof inner, "%s/additional_chat_templates", folder.path);
    assert_int_equal(mkdir(inner, 0700), 0);
    folder_write_text(&folder, "additional_chat_templates/short.jinja", "S");
    assert_found(&folder, NULL, true, "J", "chat_template.jinja");
    assert_found(&folder, "short", false, "S", "additional_chat_templates/short.jinja");
    assert_not_found(&folder, "../chat_template", QVL_ERROR_ARGUMENT, "no chat template is named");
    folder_close(&folder);
}

static void test_faults(void **state) {
    (void)state;
    test_folder folder;
    folder_open(&folder);
    folder_write_text(&folder, "chat_template.json", "{\"chat_template\": 5}");
    assert_not_found(&folder, NULL, QVL_ERROR_FORMAT,
                     "chat_template must be a string or a list of named templates");
    folder_write_text(&folder, "chat_template.json", "{\"chat_template\": ");
    assert_not_found(&folder, NULL, QVL_ERROR_FORMAT, "not JSON");
    folder_write_text(&folder, "chat_template.json",
                      "{\"chat_template\": [{\"name\": \"rag\", \"template\": \"R\"}]}");
    assert_not_found(&folder, NULL, QVL_ERROR_FORMAT, "none of them named \"default\"");
    folder_close(&folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_named),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
