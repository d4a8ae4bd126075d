/* What the tests of templates share. */
#ifndef QVL_TEST_TEMPLATES_H
#define QVL_TEST_TEMPLATES_H

#include "model/test_folder.h"

#include "base/file.h"
#include "base/memory.h"
#include "text/template.h"

#include <cjson/cJSON.h>

/* The time of the fixtures: 2024-02-29 13:04:05. */
#define TEMPLATE_TIME 1709211845

/* A JSON file of tests/fixtures, whatever its root is. Owner: the caller, cJSON_Delete. */
static inline cJSON *read_fixture(const char *name) {
    char path[512];
    uint8_t *bytes;
    size_t count;
    qvl_error error = {0};
    snprintf(path, sizeof path, "%s/%s", QVL_FIXTURES, name);
    assert_ok(qvl_file_read(path, (size_t)64 << 20, &bytes, &count, &error), &error);
    cJSON *root = cJSON_ParseWithLength((const char *)bytes, count);
    qvl_free(bytes);
    if (!root) fail_msg("%s is not JSON", path);
    return root;
}

static inline const char *text_of(const cJSON *object, const char *key) {
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

/* Renders with the fixtures' clock. */
static inline qvl_status render(const char *template, const char *variables, qvl_rendered *rendered,
                                qvl_error *error) {
    qvl_template_options options;
    qvl_template_options_init(&options);
    options.time = TEMPLATE_TIME;
    return qvl_template_render(template, variables, &options, rendered, error);
}

static inline void assert_renders(const char *template, const char *variables, const char *wanted) {
    qvl_rendered rendered;
    qvl_error error = {0};
    if (render(template, variables, &rendered, &error)) fail_msg("%s\ngives %s", template, error.message);
    if (strcmp(rendered.text, wanted) != 0)
        fail_msg("%s\nwanted \"%s\"\n   got \"%s\"", template, wanted, rendered.text);
    assert_int_equal(rendered.length, strlen(rendered.text));
    qvl_rendered_free(&rendered);
}

static inline void assert_refused(const char *template, const char *variables, qvl_status status,
                                  const char *says) {
    static const qvl_rendered empty;
    qvl_rendered rendered;
    qvl_error error = {0};
    assert_failure(render(template, variables, &rendered, &error), &error, status, says);
    assert_memory_equal(&rendered, &empty, sizeof empty);
}

#endif
