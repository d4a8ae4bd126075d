/* Hostile templates and variables: bounded time, depth, output and memory, and errors that tell where. */
#define _GNU_SOURCE
#include "text/templates.h"

#include <locale.h>
#include <time.h>

static char *repeated(const char *before, const char *part, size_t count, const char *after) {
    size_t length = strlen(part);
    char *text = malloc(strlen(before) + count * length + strlen(after) + 1), *at = text;
    assert_non_null(text);
    at = stpcpy(at, before);
    for (size_t i = 0; i < count; i++) at = stpcpy(at, part);
    strcpy(at, after);
    return text;
}

static qvl_status render_with(const qvl_template_options *options, const char *template, const char *variables,
                              qvl_error *error) {
    qvl_rendered rendered;
    qvl_status status = qvl_template_render(template, variables, options, &rendered, error);
    qvl_rendered_free(&rendered);
    return status;
}

/* ---- where an error is */

static void test_places(void **state) {
    (void)state;
    assert_refused("a\nb {{ 1 +\n  2 / 0 }}", "{}", QVL_ERROR_ARGUMENT,
                   "template: line 3, column 3: division by zero");
    assert_refused("\xc3\xa4\xe2\x82\xac {{ x.y.z }}", "{\"x\":{}}", QVL_ERROR_ARGUMENT,
                   "line 1, column 11: 'dict object' has no attribute 'y'");
    assert_refused("a\r\nb\r{% if %}", "{}", QVL_ERROR_FORMAT, "line 3, column 7: Expected an expression");
    assert_refused("{% set x = 1 %}\n\n  {{ raise_exception('no ' ~ x) }}", "{}", QVL_ERROR_ARGUMENT,
                   "template: line 3, column 6: no 1");
    assert_refused("\n{% for x in 5 %}{% endfor %}", "{}", QVL_ERROR_ARGUMENT,
                   "line 2, column 4: 'int' object is not iterable");
    assert_refused("{% include 'x' %}", "{}", QVL_ERROR_UNSUPPORTED,
                   "line 1, column 4: the tag 'include' is not supported");
    assert_refused("{{ 'x'.encode() }}", "{}", QVL_ERROR_UNSUPPORTED, "column 8: encode() is not supported");
    assert_refused("{{ 'x'|pprint }}", "{}", QVL_ERROR_UNSUPPORTED, "pprint() is not supported");
    assert_refused("{{ 2 ** 64 }}", "{}", QVL_ERROR_UNSUPPORTED,
                   "integers beyond 64 bits are not calculated with");
    assert_refused("{{ strftime_now('%Q') }}", "{}", QVL_ERROR_ARGUMENT, "%Q is not supported");
    qvl_error error = {0};
    assert_failure(render_with(NULL, "{{ strftime_now('%Y') }}", "{}", &error), &error, QVL_ERROR_ARGUMENT,
                   "strftime_now needs a time");
}

static void test_name(void **state) {
    (void)state;
    qvl_template_options options;
    qvl_error error = {0};
    qvl_template_options_init(&options);
    options.name = "folder/chat_template.jinja";
    assert_failure(render_with(&options, "{{", "{}", &error), &error, QVL_ERROR_FORMAT,
                   "folder/chat_template.jinja: line 1, column 3: ");
    options.max_depth = 1001;
    assert_failure(render_with(&options, "", "{}", &error), &error, QVL_ERROR_ARGUMENT, "max_depth 1001");
    options.size = 3;
    assert_failure(render_with(&options, "", "{}", &error), &error, QVL_ERROR_ARGUMENT, "options of size 3");
}

/* ---- nesting */

static void test_depth(void **state) {
    (void)state;
    static const struct {
        const char *before, *part, *after;
    } cases[] = {
        {"{{ ", "(", ""},
        {"{{ ", "[", ""},
        {"{{ ", "-", "1 }}"},
        {"{{ ", "not ", "1 }}"},
        {"{{ x", ".a", " }}"},
        {"{{ x", "|list", " }}"},
        {"{{ x", "[0]", " }}"},
        {"{{ x", "()", " }}"},
        {"{{ 1", " + 1", " }}"},
        {"{{ 1", " and 1", " }}"},
        {"{{ 1", " if 1 else 1", " }}"},
        {"", "{% if x %}", ""},
        {"", "{% for x in y %}", ""},
        {"", "{% macro m() %}", ""},
        {"{% set x = ", "{1: ", ""},
        {"{% if 1 %}", "{% elif 1 %}", "{% endif %}"}, /* is flat */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = repeated(cases[i].before, cases[i].part, 20000, cases[i].after);
        qvl_error error = {0};
        qvl_status status = render_with(NULL, text, "{\"x\":[],\"y\":[]}", &error);
        bool flat = strncmp(cases[i].part, "{% elif", 7) == 0;
        if (status != (flat ? QVL_OK : QVL_ERROR_LIMIT) && status != QVL_ERROR_FORMAT)
            fail_msg("%s: %s", cases[i].part, error.message);
        free(text);
    }
}

static void test_recursion(void **state) {
    (void)state;
    assert_refused("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{}", QVL_ERROR_LIMIT,
                   "nested deeper than 1000");
    assert_refused("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "{}", QVL_ERROR_LIMIT,
                   "nested deeper than 1000");
    static const char stacked[] =
        "{%% set ns = namespace(x=[]) %%}{%% for i in range(5000) %%}{%% set ns.x = %s %%}"
        "{%% endfor %%}{{ %s }}";
    static const char *const pairs[][2] = {
        {"[ns.x]", "ns.x"},
        {"[ns.x]", "ns.x|tojson"},
        {"[ns.x]", "ns.x == [ns.x]"},
        {"[ns.x]", "ns.x < [ns.x]"},
        {"{'a': ns.x}", "ns.x"},
        {"(ns.x,)", "{ns.x: 1}"},
        {"ns.x|map('string')", "ns.x|list"},
        {"ns.x|select", "ns.x|first"},
        {"ns.x|items", "1 in ns.x"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char text[512];
        qvl_error error = {0};
        snprintf(text, sizeof text, stacked, pairs[i][0], pairs[i][1]);
        qvl_status status = render_with(NULL, text, "{}", &error);
        if (status != QVL_ERROR_LIMIT && status != QVL_ERROR_ARGUMENT)
            fail_msg("%s, %s: %s %s", pairs[i][0], pairs[i][1], qvl_status_name(status), error.message);
    }
    assert_renders("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}{{ [ns] == [ns] }}", "{}",
                   "<Namespace {'a': <Namespace {...}>}>True");
    assert_renders("{% set ns = namespace() %}{% set ns.a = [(ns,)] %}{{ ns.a }}{{ ns.a[0] }}", "{}",
                   "[(<Namespace {'a': [...]}>,)](<Namespace {'a': [(...)]}>,)");
}

/* ---- time, output, memory */

static void test_work(void **state) {
    (void)state;
    static const char *const endless[] = {
        "{% for a in range(100000) %}{% for b in range(100000) %}{% for c in range(100000) %}{% endfor %}{% "
        "endfor %}"
        "{% endfor %}",
        "{{ range(100000)|map('string')|join|length }}{% for i in range(100000) %}{{ (s * 100000) is string }}{% "
        "endfor %}",
        "{% for i in range(100000) %}{{ s.replace('a', 'b')|length }}{% endfor %}",
        "{% for i in range(100000) %}{{ 'b' in s }}{{ s.find('ab') }}{{ s.rfind('ab') }}{{ s.count('b') }}{% "
        "endfor %}",
        "{% for i in range(100000) %}{{ s == t }}{{ s < t }}{{ s|upper|length }}{{ s|trim|length }}{% endfor %}",
        "{% set x = range(100000)|list %}{% for i in range(100000) %}{{ x == x }}{{ x|sort|first }}{{ 5.5 in x "
        "}}{% endfor %}",
        "{% for i in range(100000) %}{{ s.strip(s)|length }}{% endfor %}",
        "{% for i in range(100000) %}{{ s.split('b')|length }}{{ s.splitlines()|length }}{{ u[99999:] }}{% endfor "
        "%}",
        "{{ s.ljust(100000000000)|length }}",
        "{{ '%1000000000d' % 5 }}",
        "{{ s|indent(1000000000000)|length }}",
        "{{ s|center(1000000000000)|length }}",
        "{{ [1] * 1000000000000 }}",
        "{{ 'a' * 1000000000000 }}",
        "{{ range(3)|slice(100000000000)|list|length }}",
        "{{ [1]|batch(100000000000, 0)|list|length }}",
        "{{ x|tojson(indent=100000000000) }}",
        "{% macro m(n) %}{{ n }}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(100) }}",
    };
    char *long_text = repeated("{\"x\":{\"a\":1},\"s\":\"", "a", 100000, "\",\"t\":\"");
    char *more = repeated(long_text, "a", 99999, "b\",\"u\":\"");
    char *variables = repeated(more, "\xc3\xa4", 100000, "\"}");
    qvl_template_options options;
    qvl_template_options_init(&options);
    options.max_steps = 10000000; /* a fifth of the default: seconds are counted under sanitizers, too */
    for (size_t i = 0; i < sizeof endless / sizeof endless[0]; i++) {
        qvl_error error = {0};
        clock_t start = clock();
        qvl_status status = render_with(&options, endless[i], variables, &error);
        double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        if (status != QVL_ERROR_LIMIT && status != QVL_ERROR_ARGUMENT)
            fail_msg("%s: %s", endless[i], error.message);
        if (seconds > 20) fail_msg("%s took %.1f s", endless[i], seconds);
    }
    free(long_text);
    free(more);
    free(variables);
}

static void test_output_and_memory(void **state) {
    (void)state;
    qvl_template_options options;
    qvl_error error = {0};
    qvl_template_options_init(&options);
    options.max_output = 10;
    assert_ok(render_with(&options, "{{ 'a' * 10 }}", "{}", &error), &error);
    assert_failure(render_with(&options, "{{ 'a' * 10 }}b", "{}", &error), &error, QVL_ERROR_LIMIT,
                   "line 1, column 15: the output is longer than 10 bytes");
    /* What is captured and then left out is no output. */
    assert_ok(render_with(&options, "{% set x %}{{ 'a' * 100 }}{% endset %}", "{}", &error), &error);
    qvl_template_options_init(&options);
    options.max_memory = 1 << 20;
    assert_failure(render_with(&options, "{% set x = 'a' * 2000000 %}", "{}", &error), &error, QVL_ERROR_LIMIT,
                   "more than 1048576 bytes of memory are needed");
    options.max_steps = 100;
    assert_failure(render_with(&options, "{% for i in range(1000) %}{% endfor %}", "{}", &error), &error,
                   QVL_ERROR_LIMIT, "takes too long");
}

/* Memory may end at any point of reading and of rendering. */
static void test_every_memory_limit(void **state) {
    (void)state;
    static const char text[] =
        "{% macro m(a, b=2) %}{{ a ~ b }}{{ caller() }}{% endmacro %}{% set ns = namespace(x=[], s='') %}"
        "{% for k, v in d|dictsort %}{% call m(k) %}{{ v }}{% endcall %}{% set ns.s = ns.s + k %}{% endfor %}"
        "{% for x in range(300) if x is odd %}{% set ns.x = ns.x + [x] %}{{ loop.last }}{% endfor %}"
        "{% generation %}{{ ns.x|map('string')|join|upper }}{% endgeneration %}{{ d|tojson(indent=2) }}{{ d }}"
        "{{ '{:>9}%s'.format(ns.s) % 1 }}{{ 'a-b'.split('-')|sort|reverse|list }}{{ people|groupby('n') }}";
    static const char variables[] = "{\"d\":{\"k1\":1.0,\"k2\":[1,{\"a\":null}],\"k3\":\"\\u00e4\"},"
                                    "\"people\":[{\"n\":1},{\"n\":2},{\"n\":1}]}";
    int refused = 0;
    qvl_template_options options;
    qvl_template_options_init(&options);
    for (options.max_memory = 1;; options.max_memory += 97) {
        qvl_error error = {0};
        qvl_status status = render_with(&options, text, variables, &error);
        if (status == QVL_OK) break;
        assert_failure(status, &error, QVL_ERROR_LIMIT, "bytes of memory are needed");
        refused++;
    }
    assert_true(refused > 300);
}

/* Adding to a text in a loop costs what is added, not the whole text each time. */
static void test_growing_text(void **state) {
    (void)state;
    qvl_template_options options;
    qvl_rendered rendered;
    qvl_error error = {0};
    qvl_template_options_init(&options);
    options.max_memory = (int64_t)128 << 20;
    static const char text[] =
        "{% set ns = namespace(s='') %}{% for i in range(100000) %}{% set ns.s = ns.s + 'abcdefgh' "
        "~ i %}{% endfor %}{{ ns.s|length }}";
    assert_ok(qvl_template_render(text, "{}", &options, &rendered, &error), &error);
    assert_string_equal(rendered.text, "1288890");
    qvl_rendered_free(&rendered);
    /* A text that two others begin with stays what it is. */
    assert_renders(
        "{% set a = 'x' + 'y' %}{% set b = a + '1' %}{% set c = a + '2' %}{{ a }} {{ b }} {{ c }} {{ b + '3' }}",
        "{}", "xy xy1 xy2 xy13");
}

static void test_large_template(void **state) {
    (void)state;
    char *text = repeated("", "{{ x }}\n", 140000, "");
    qvl_error error = {0};
    assert_failure(render_with(NULL, text, "{}", &error), &error, QVL_ERROR_LIMIT, "a template of 1120000 bytes");
    text[1000000] = 0;
    assert_ok(render_with(NULL, text, "{}", &error), &error);
    free(text);
    text = repeated("{{ f(", "a=1,", 100000, ") }}");
    assert_failure(render_with(NULL, text, "{}", &error), &error, QVL_ERROR_FORMAT, "keyword argument repeated");
    free(text);
}

/* ---- texts and numbers */

static void test_encodings(void **state) {
    (void)state;
    assert_refused("a\xff", "{}", QVL_ERROR_FORMAT, "the template is not UTF-8");
    assert_refused("{{ x }}", "{\"x\":\"\xff\"}", QVL_ERROR_FORMAT, "not UTF-8");
    assert_refused("{{ '\\ud800' }}", "{}", QVL_ERROR_FORMAT, "half a surrogate pair");
    /* A tree of the caller's own may hold anything. */
    cJSON *variables = cJSON_CreateObject();
    cJSON_AddStringToObject(variables, "x", "a\xff\xe2\x82z");
    qvl_template *template;
    qvl_rendered rendered;
    qvl_error error = {0};
    assert_ok(qvl_template_open("{{ x }}{{ x|length }}", 21, NULL, &template, &error), &error);
    assert_ok(qvl_template_run(template, variables, NULL, &rendered, &error), &error);
    assert_string_equal(rendered.text, "a\xef\xbf\xbd\xef\xbf\xbdz4");
    qvl_rendered_free(&rendered);
    cJSON *list = cJSON_CreateArray();
    assert_failure(qvl_template_run(template, list, NULL, &rendered, &error), &error, QVL_ERROR_ARGUMENT,
                   "the variables are not an object");
    cJSON_Delete(list);
    cJSON_Delete(variables);
    qvl_template_close(&template);
    /* A NUL is a character like others. */
    assert_ok(qvl_template_render("a{{ '\\x00' }}b", "{}", NULL, &rendered, &error), &error);
    assert_int_equal(rendered.length, 3);
    assert_memory_equal(rendered.text, "a\0b", 4);
    qvl_rendered_free(&rendered);
}

static void test_numbers(void **state) {
    (void)state;
    assert_renders(
        "{{ x|tojson }}",
        "{\"x\":[1,1.0,-0.0,-0,1e5,1E-7,0.1,12345678901234567,123456789012345678901,-9223372036854775808,1e400]}",
        "[1, 1.0, -0.0, 0, 100000.0, 1e-07, 0.1, 12345678901234567, 123456789012345678901, "
        "-9223372036854775808, Infinity]");
    assert_renders("{{ x.a is integer }}{{ x.b is float }}{{ x['1.5'] }}",
                   "{\"x\":{\"a\":1,\"b\":1.0,\"1.5\":\"2.0\\\"\"}}", "TrueTrue2.0\"");
    cJSON *root;
    qvl_error error = {0};
    assert_ok(qvl_template_json("{\"a\":2.0,\"b\":[3,\"4.0\"],\"c\":0.5}", 31, "file", &root, &error), &error);
    const cJSON *a = cJSON_GetObjectItem(root, "a");
    assert_true(cJSON_IsNumber(a) && a->valuedouble == 2.0);
    assert_string_equal(a->valuestring, "2.0");
    assert_null(cJSON_GetObjectItem(root, "c")->valuestring);
    assert_null(cJSON_GetObjectItem(root, "b")->child->valuestring);
    cJSON_Delete(root);
}

/* Another locale's decimal comma changes nothing, and the locale stays. */
static void test_locale(void **state) {
    (void)state;
    static const char *const locales[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "C.UTF-8"};
    const char *set = NULL;
    for (size_t i = 0; i < 4 && !set; i++) set = setlocale(LC_ALL, locales[i]);
    assert_renders("{{ 1.5 }} {{ x }} {{ '%.2f' % 2.25 }} {{ '2.5'|float }} {{ strftime_now('%A %B') }}",
                   "{\"x\":0.25}", "1.5 0.25 2.25 2.5 Thursday February");
    if (set) assert_string_equal(setlocale(LC_ALL, NULL), set);
    setlocale(LC_ALL, "C");
}

static void test_clock(void **state) {
    (void)state;
    static const struct {
        int64_t time;
        const char *shows;
    } cases[] = {
        {0, "1970-01-01 00:00:00 4 001"},
        {-1, "1969-12-31 23:59:59 3 365"},
        {951782400, "2000-02-29 00:00:00 2 060"},
        {4107542400, "2100-03-01 00:00:00 1 060"},
        {1735689599, "2024-12-31 23:59:59 2 366"},
        {-62135596800, "1-01-01 00:00:00 1 001"},
        {253402300799, "9999-12-31 23:59:59 5 365"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        qvl_template_options options;
        qvl_rendered rendered;
        qvl_error error = {0};
        qvl_template_options_init(&options);
        options.time = cases[i].time;
        assert_ok(qvl_template_render("{{ strftime_now('%Y-%m-%d %H:%M:%S %u %j') }}", "{}", &options, &rendered,
                                      &error),
                  &error);
        assert_string_equal(rendered.text, cases[i].shows);
        qvl_rendered_free(&rendered);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_name),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_recursion),
        cmocka_unit_test(test_work),
        cmocka_unit_test(test_output_and_memory),
        cmocka_unit_test(test_growing_text),
        cmocka_unit_test(test_large_template),
        cmocka_unit_test(test_every_memory_limit),
        cmocka_unit_test(test_encodings),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_locale),
        cmocka_unit_test(test_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
