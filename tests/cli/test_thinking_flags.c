/* qvl ask and qvl chat with a template that lets the model think: thoughts never stand in a pipe with the answer. The
 * model is made never to end, so all it says is thought. */
#include "cli/models.h"
#include "cli/program.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *template_path = QVL_SOURCE_DIR "/../shared/data/templates/qwen3.5.jinja";
static char model[512];

static int open_model(void **state) {
    (void)state;
    const char *data = getenv("QVL_DATA");
    static char path[1024];
    if (data) {
        snprintf(path, sizeof path, "%s/templates/qwen3.5.jinja", data);
        template_path = path;
    }
    snprintf(model, sizeof model, "%s", make_endless_model("thinking"));
    return 0;
}

#define ASK(...)                                                                                                  \
    QVL("ask", "-m", model, "--template", template_path, "--max-new-tokens", "12", "What is it?", __VA_ARGS__)

static void test_shown_and_hidden(void **state) {
    (void)state;
    result hidden = expect(0, NULL, ASK("--thinking", "hide")), standard = expect(0, NULL, ASK("--seed", "1"));
    result shown = expect(0, NULL, ASK("--thinking", "show")), json = expect(0, NULL, ASK("--json"));
    cJSON *object = cJSON_Parse(json.out);
    const char *thought = cJSON_GetStringValue(cJSON_GetObjectItem(object, "reasoning_content"));
    assert_non_null(thought);
    assert_true(strlen(thought) > 0);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(object, "text")), "");
    assert_string_equal(hidden.out, "");
    assert_string_equal(standard.out, "");
    assert_string_equal(shown.out, "");
    assert_says(shown.err, thought);
    assert_null(strstr(hidden.err, thought));
    cJSON_Delete(object);
    free_result(&hidden);
    free_result(&standard);
    free_result(&shown);
    free_result(&json);
}

/* Without thinking the same words are the answer. */
static void test_switched_off(void **state) {
    (void)state;
    result r = expect(0, NULL, ASK("--enable-thinking", "off", "--json"));
    cJSON *object = cJSON_Parse(r.out);
    assert_null(cJSON_GetObjectItem(object, "reasoning_content"));
    assert_true(strlen(cJSON_GetStringValue(cJSON_GetObjectItem(object, "text"))) > 0);
    cJSON_Delete(object);
    free_result(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shown_and_hidden),
                                       cmocka_unit_test(test_switched_off)};
    return cmocka_run_group_tests(tests, open_model, NULL);
}
