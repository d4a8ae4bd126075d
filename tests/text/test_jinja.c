/* Templates by feature and at random against what Jinja2 makes of them (tests/fixtures/jinja_cases.json, written by
 * tools/oracle/jinja_fixtures.py), and the published templates against tests/fixtures/chat_render.json. */
#define _GNU_SOURCE
#include "text/templates.h"

/* "template: line 3, column 4: " in front of a message is taken off. */
static const char *reason(const char *message) {
    const char *at = strstr(message, ", column ");
    at = at ? strstr(at, ": ") : strstr(message, ": ");
    return at ? at + 2 : message;
}

static bool same_spans(const cJSON *wanted, const qvl_rendered *rendered) {
    size_t i = 0;
    for (const cJSON *span = wanted ? wanted->child : NULL; span; span = span->next, i++) {
        if (i >= rendered->generation_count) return false;
        /* The fixture counts characters. */
        size_t ends[2] = {0, 0};
        for (size_t at = 0; at < rendered->length; at++) {
            bool starts = ((uint8_t)rendered->text[at] & 0xc0) != 0x80;
            ends[0] += starts && at < rendered->generation[i].start;
            ends[1] += starts && at < rendered->generation[i].end;
        }
        if ((double)ends[0] != span->child->valuedouble || (double)ends[1] != span->child->next->valuedouble)
            return false;
    }
    return i == rendered->generation_count;
}

/* Returns 1 if the case went wrong. */
static int check(const char *template, const char *variables, const cJSON *test_case) {
    const char *output = text_of(test_case, "output"), *fault = text_of(test_case, "error");
    bool compares_spans = strcmp(text_of(test_case, "group"), "random") != 0;
    qvl_rendered rendered;
    qvl_error error = {0};
    qvl_status status = render(template, variables, &rendered, &error);
    int wrong = 0;
    if (!output)
        wrong = !status || (fault && strcmp(reason(error.message), fault) != 0);
    else
        wrong = status || strcmp(rendered.text, output) != 0 ||
                (compares_spans && !same_spans(cJSON_GetObjectItem(test_case, "spans"), &rendered));
    if (wrong)
        print_error("%s\n wanted %s\n got    %s\n", template,
                    output  ? output
                    : fault ? fault
                            : "an error",
                    status ? error.message : rendered.text);
    qvl_rendered_free(&rendered);
    return wrong;
}

static void test_cases(void **state) {
    (void)state;
    cJSON *root = read_fixture("jinja_cases.json");
    const char *usual = text_of(root, "variables");
    int wrong = 0, count = 0;
    const cJSON *test_case;
    cJSON_ArrayForEach(test_case, cJSON_GetObjectItem(root, "cases")) {
        const char *own = text_of(test_case, "variables");
        wrong += check(text_of(test_case, "template"), own ? own : usual, test_case);
        count++;
    }
    cJSON_Delete(root);
    assert_int_equal(wrong, 0);
    assert_true(count >= 450);
}

/* ---- published templates */

static char *published(const char *name) {
    const char *data = getenv("QVL_DATA");
    char path[1024];
    uint8_t *bytes;
    size_t count;
    qvl_error error = {0};
    snprintf(path, sizeof path, "%s/templates/%s.jinja", data ? data : QVL_SOURCE_DIR "/../shared/data", name);
    if (qvl_file_read(path, 1 << 20, &bytes, &count, &error))
        fail_msg("%s; set QVL_DATA to the folder that has templates", error.message);
    return (char *)bytes;
}

/* What a vector says of Qwen3.5 holds for its small models, if thinking is switched on where it is left open. */
static void switch_thinking_on(cJSON *inputs) {
    if (!cJSON_GetObjectItem(inputs, "enable_thinking")) cJSON_AddTrueToObject(inputs, "enable_thinking");
}

static int check_vector(const char *template, cJSON *inputs, const cJSON *vector) {
    const char *output = text_of(vector, "output"), *fault = text_of(vector, "error");
    char *variables = cJSON_PrintUnformatted(inputs);
    qvl_rendered rendered;
    qvl_error error = {0};
    qvl_status status = render(template, variables, &rendered, &error);
    bool python = fault && strstr(fault, "Error: "); /* Python's own wording is not compared */
    int wrong = output ? status || strcmp(rendered.text, output) != 0
                       : !status || (!python && !strstr(error.message, fault));
    if (wrong)
        print_error("%s with %s\n wanted %s\n got    %s\n", text_of(vector, "case"), text_of(vector, "template"),
                    output ? output : fault, status ? error.message : rendered.text);
    cJSON_free(variables);
    qvl_rendered_free(&rendered);
    return wrong;
}

static void check_published(const char *name, const char *vectors_of, bool small) {
    char *template = published(name);
    cJSON *vectors = read_fixture("chat_render.json");
    int wrong = 0, count = 0;
    const cJSON *vector;
    cJSON_ArrayForEach(vector, vectors) {
        if (strcmp(text_of(vector, "template"), vectors_of) != 0) continue;
        cJSON *inputs = cJSON_GetObjectItem(vector, "inputs");
        if (small) switch_thinking_on(inputs);
        wrong += check_vector(template, inputs, vector);
        count++;
    }
    cJSON_Delete(vectors);
    qvl_free(template);
    assert_int_equal(count, 32);
    assert_int_equal(wrong, 0);
}

static void test_published(void **state) {
    (void)state;
    check_published("qwen3-vl-instruct", "qwen3vl-instruct", false);
    check_published("qwen3-vl-thinking", "qwen3vl-thinking", false);
    check_published("qwen3.5", "qwen3.5", false);
    check_published("qwen3.5-small", "qwen3.5", true);
    check_published("qwen3.6", "qwen3.6", false);
    check_published("qwen3.8", "qwen3.8", false);
}

static void test_published_variables(void **state) {
    (void)state;
    static const struct {
        const char *name, *variable;
        bool reads;
    } cases[] = {
        {"qwen3-vl-instruct", "messages", true},
        {"qwen3-vl-instruct", "tools", true},
        {"qwen3-vl-instruct", "add_vision_id", true},
        {"qwen3-vl-instruct", "enable_thinking", false},
        {"qwen3.5", "enable_thinking", true},
        {"qwen3.5", "preserve_thinking", false},
        {"qwen3.6", "preserve_thinking", true},
        {"qwen3.6", "reasoning_effort", false},
        {"qwen3.8", "reasoning_effort", true},
        {"qwen3.8", "ns", false},
        {"qwen3.8", "loop", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = published(cases[i].name);
        qvl_template *template;
        qvl_error error = {0};
        assert_ok(qvl_template_open(text, strlen(text), NULL, &template, &error), &error);
        if (qvl_template_reads(template, cases[i].variable) != cases[i].reads)
            fail_msg("%s: %s", cases[i].name, cases[i].variable);
        qvl_template_close(&template);
        assert_null(template);
        qvl_free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_published_variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
