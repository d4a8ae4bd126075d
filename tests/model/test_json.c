/* Strict parsing: every kind of damage has its own message with the byte it is at. */
#define _GNU_SOURCE
#include "test_folder.h"

#include "base/json.h"

/* A fault in a text: where it is and what the message says. count 0: strlen(text). */
static const struct {
    const char *text;
    size_t count;
    const char *says;
} faults[] = {
    {"", 0, "the text ends at byte 0: there is nothing but white space"},
    {" \n\t ", 0, "the text ends at byte 4: there is nothing but white space"},
    {"{", 0, "the text ends at byte 1: a key in quotes is expected"},
    {"{\"a\":1,", 0, "the text ends at byte 7: a key in quotes is expected"},
    {"{\"a\":1,}", 0, "byte 7: a key in quotes is expected"},
    {"{a:1}", 0, "byte 1: a key in quotes is expected"},
    {"{\"a\" 1}", 0, "byte 5: ':' is expected"},
    {"{\"a\":1 \"b\":2}", 0, "byte 7: ',' or '}' is expected"},
    {"{\"a\":[1 2]}", 0, "byte 8: ',' or ']' is expected"},
    {"{\"a\":[1,2}", 0, "byte 9: ',' or ']' is expected"},
    {"{\"a\":}", 0, "byte 5: a value is expected"},
    {"{\"a\":tru}", 0, "byte 5: a value is expected"},
    {"{\"a\":NaN}", 0, "byte 5: a value is expected"},
    {"{\"a\":Infinity}", 0, "byte 5: a value is expected"},
    {"{\"a\":+1}", 0, "byte 5: a value is expected"},
    {"{\"a\":.5}", 0, "byte 5: a value is expected"},
    {"{\"a\":-}", 0, "byte 6: a digit is expected"},
    {"{\"a\":1.}", 0, "byte 7: a digit is expected"},
    {"{\"a\":1e+}", 0, "byte 8: a digit is expected"},
    {"{\"a\":01}", 0, "byte 6: a number starts with 0"},
    {"{\"a\":0x10}", 0, "byte 6: ',' or '}' is expected"},
    {"{\"a\":1111111111222222222233333333334444444444555555555566666666667777}", 0,
     "byte 5: a number is longer than 63 characters"},
    {"{\"a\":\"b", 0, "the text ends at byte 7: a string has no end"},
    {"{\"a\":\"b\\", 0, "the text ends at byte 8: an unknown escape"},
    {"{\"a\":\"b\\q\"}", 0, "byte 8: an unknown escape"},
    {"{\"a\":\"\\u12g4\"}", 0, "byte 10: a hexadecimal digit is expected"},
    {"{\"a\\u0000\":1}", 0, "byte 9: an escaped NUL in a string"},
    {"{\"a\":\"\\ud800x\"}", 0, "byte 12: half a surrogate pair"},
    {"{\"a\":\"\\ud800\\n\"}", 0, "byte 13: half a surrogate pair"},
    {"{\"a\":\"\\ud800\\ud800\"}", 0, "byte 18: half a surrogate pair"},
    {"{\"a\":\"\\udc00\"}", 0, "byte 12: half a surrogate pair"},
    {"{\"a\":\"\\udc00\\udc00\"}", 0, "byte 12: half a surrogate pair"},
    {"{\"a\":\"\n\"}", 0, "byte 6: a control character in a string"},
    {"{\"a\":\"\xff\"}", 0, "byte 6: not UTF-8"},
    {"{\"a\":\"\xc0\xaf\"}", 0, "byte 6: not UTF-8"},
    {"{\"a\":\"\xc3\"}", 0, "byte 7: not UTF-8"},
    {"{\"a\":\"\xe0\x80\x80\"}", 0, "byte 7: not UTF-8"},
    {"{\"a\":\"\xed\xa0\x80\"}", 0, "byte 7: not UTF-8"},
    {"{\"a\":\"\xf0\x80\x80\x80\"}", 0, "byte 7: not UTF-8"},
    {"{\"a\":\"\xf4\x90\x80\x80\"}", 0, "byte 7: not UTF-8"},
    {"{\"a\":\"\xf0\x9f\x98\"}", 0, "byte 9: not UTF-8"},
    {"\xef\xbb\xbf{}", 0, "byte 0: a value is expected"},
    {"{} x", 0, "byte 3: something follows the end of the value"},
    {"{}{}", 0, "byte 2: something follows the end of the value"},
    {"{}\0", 3, "byte 2 is NUL"},
    {"{\"a\":1\0}", 8, "byte 6 is NUL"},
    {"{\"a\":\"x\0y\"}", 11, "byte 7 is NUL"},
    {"[]", 0, "the file is a list; it must be a JSON object"},
    {"\"text\"", 0, "the file is \"text\"; it must be a JSON object"},
    {"3", 0, "the file is 3; it must be a JSON object"},
    {"{\"a\":1,\"b\":2,\"a\":3}", 0, "the key \"a\" is there twice in one object"},
    {"{\"x\":[{\"deep\":1,\"deep\":1}]}", 0, "the key \"deep\" is there twice in one object"},
    {"{\"a\":1,\"\\u0061\":3}", 0, "the key \"a\" is there twice in one object"},
};

static void test_faults(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        /* A block of exactly this size, so that AddressSanitizer sees a byte read behind it. */
        size_t count = faults[i].count ? faults[i].count : strlen(faults[i].text);
        char *text = malloc(count + (count == 0));
        assert_non_null(text);
        memcpy(text, faults[i].text, count);
        cJSON *root = (cJSON *)(uintptr_t)1;
        qvl_error error = {0};
        qvl_status status = qvl_json_parse(text, count, "folder/some.json", &root, &error);
        assert_failure(status, &error, QVL_ERROR_FORMAT, faults[i].says);
        assert_ptr_equal(strstr(error.message, "folder/some.json: "), error.message);
        assert_null(root);
        free(text);
    }
}

static void test_every_prefix_is_refused(void **state) {
    (void)state;
    const char *text =
        "{\"key\": [1.5e3, -2, true, null, \"a\\u00e9\\ud83d\\ude00\xc3\xa9\"], \"o\": {\"p\": {}}}";
    cJSON *root;
    qvl_error error;
    assert_int_equal(qvl_json_parse(text, strlen(text), "f", &root, &error), QVL_OK);
    cJSON_Delete(root);
    for (size_t count = 0; count < strlen(text); count++) {
        char *cut = malloc(count + (count == 0));
        memcpy(cut, text, count);
        assert_int_equal(qvl_json_parse(cut, count, "f", &root, &error), QVL_ERROR_FORMAT);
        free(cut);
    }
}

static void test_depth(void **state) {
    (void)state;
    cJSON *root;
    qvl_error error;
    char text[2048];
    for (int depth = 127; depth <= 128; depth++) {
        size_t used = (size_t)snprintf(text, sizeof text, "{\"a\":");
        for (int i = 0; i < depth; i++) text[used++] = '[';
        for (int i = 0; i < depth; i++) text[used++] = ']';
        text[used++] = '}';
        qvl_status status = qvl_json_parse(text, used, "f", &root, &error);
        if (depth == 127)
            assert_ok(status, &error);
        else
            assert_failure(status, &error, QVL_ERROR_LIMIT,
                           "byte 132: brackets are nested deeper than 128 levels");
        cJSON_Delete(root);
    }
}

static void test_value_limit(void **state) {
    (void)state;
    size_t values = ((size_t)1 << 21) - 2; /* with the object and the list: the limit */
    cJSON *root;
    qvl_error error;
    char *text = malloc(2 * values + 16);
    assert_non_null(text);
    for (size_t extra = 0; extra < 2; extra++) {
        size_t used = (size_t)sprintf(text, "{\"a\":[0");
        for (size_t i = 1; i < values + extra; i++) {
            text[used++] = ',';
            text[used++] = '0';
        }
        text[used++] = ']';
        text[used++] = '}';
        qvl_status status = qvl_json_parse(text, used, "f", &root, &error);
        if (extra)
            assert_failure(status, &error, QVL_ERROR_LIMIT, "there are more than 2097152 values");
        else
            assert_ok(status, &error);
        cJSON_Delete(root);
    }
    free(text);
}

/* 200,000 keys: a search for each would be 2e10 comparisons and run into the test's time limit. */
static void test_many_keys(void **state) {
    (void)state;
    size_t keys = 200000, used = 0;
    cJSON *root;
    qvl_error error;
    char *text = malloc(keys * 20);
    assert_non_null(text);
    for (int twice = 0; twice < 2; twice++) {
        used = 0;
        for (size_t i = 0; i < keys; i++) used += (size_t)sprintf(text + used, "%s\"key%zu\":0", i ? "," : "{", i);
        if (twice) used += (size_t)sprintf(text + used, ",\"key77\":0");
        text[used++] = '}';
        qvl_status status = qvl_json_parse(text, used, "f", &root, &error);
        if (twice)
            assert_failure(status, &error, QVL_ERROR_FORMAT, "the key \"key77\" is there twice");
        else
            assert_ok(status, &error);
        cJSON_Delete(root);
    }
    free(text);
}

static void test_accessors(void **state) {
    (void)state;
    const char *text =
        "{\"i\": 7, \"big\": 9007199254740993, \"most\": 9007199254740991, \"f\": 1.5, \"s\": \"text\","
        " \"b\": true, \"n\": null, \"o\": {\"i\": -3}, \"l\": [], \"huge\": 1e999, \"e\": 2e3}";
    cJSON *root;
    qvl_error error;
    assert_int_equal(qvl_json_parse(text, strlen(text), "file.json", &root, &error), QVL_OK);
    int64_t i = -1;
    double d = -1;
    bool found, b = false;
    const char *s = "unset";
    const cJSON *o;

    assert_int_equal(qvl_json_int(root, "i", 0, 10, "file.json", &i, &found, &error), QVL_OK);
    assert_true(found && i == 7);
    assert_int_equal(qvl_json_int(root, "e", 0, 2000, "file.json", &i, NULL, &error), QVL_OK);
    assert_true(i == 2000);
    assert_int_equal(qvl_json_int(root, "most", 0, INT64_MAX, "file.json", &i, NULL, &error), QVL_OK);
    assert_true(i == 9007199254740991);
    assert_int_equal(qvl_json_int(root, "I", 0, 10, "file.json", &i, &found, &error), QVL_OK);
    assert_true(!found && i == 9007199254740991); /* keys are case-sensitive; absent leaves the value alone */
    assert_int_equal(qvl_json_int(root, "n", 0, 10, "file.json", &i, &found, &error), QVL_OK);
    assert_false(found);
    assert_failure(qvl_json_int(root, "i", 8, 10, "file.json", &i, NULL, &error), &error, QVL_ERROR_FORMAT,
                   "file.json: i is 7; it must be an integer in 8..10");
    assert_failure(qvl_json_int(root, "f", 0, 10, "file.json", &i, NULL, &error), &error, QVL_ERROR_FORMAT,
                   "f is 1.5; it must be an integer in 0..10");
    assert_failure(qvl_json_int(root, "big", 0, INT64_MAX, "file.json", &i, NULL, &error), &error,
                   QVL_ERROR_FORMAT, "big is 9007199254740992; it must be");
    assert_failure(qvl_json_int(root, "huge", 0, INT64_MAX, "file.json", &i, NULL, &error), &error,
                   QVL_ERROR_FORMAT, "huge is inf; it must be");
    assert_failure(qvl_json_int(root, "s", 0, 10, "file.json", &i, NULL, &error), &error, QVL_ERROR_FORMAT,
                   "s is \"text\"; it must be an integer");

    assert_int_equal(qvl_json_number(root, "f", 0.0, 2.0, "file.json", &d, &found, &error), QVL_OK);
    assert_true(found && d == 1.5);
    assert_failure(qvl_json_number(root, "huge", 0.0, 2.0, "file.json", &d, NULL, &error), &error,
                   QVL_ERROR_FORMAT, "huge is inf; it must be a number in 0..2");
    assert_failure(qvl_json_number(root, "l", 0.0, 2.0, "file.json", &d, NULL, &error), &error, QVL_ERROR_FORMAT,
                   "l is a list");

    assert_int_equal(qvl_json_bool(root, "b", "file.json", &b, &found, &error), QVL_OK);
    assert_true(found && b);
    assert_failure(qvl_json_bool(root, "i", "file.json", &b, NULL, &error), &error, QVL_ERROR_FORMAT,
                   "i is 7; it must be true or false");
    assert_int_equal(qvl_json_string(root, "s", "file.json", &s, &found, &error), QVL_OK);
    assert_string_equal(s, "text");
    assert_failure(qvl_json_string(root, "b", "file.json", &s, NULL, &error), &error, QVL_ERROR_FORMAT,
                   "b is true; it must be a string");
    assert_int_equal(qvl_json_object(root, "o", "file.json", &o, &error), QVL_OK);
    assert_int_equal(qvl_json_int(o, "i", -5, 0, "file.json", &i, NULL, &error), QVL_OK);
    assert_true(i == -3);
    assert_failure(qvl_json_object(root, "i", "file.json", &o, &error), &error, QVL_ERROR_FORMAT,
                   "i is 7; it must be an object");
    assert_int_equal(qvl_json_object(root, "n", "file.json", &o, &error), QVL_OK);
    assert_null(o);
    cJSON_Delete(root);
}

static void test_read(void **state) {
    (void)state;
    test_folder folder;
    cJSON *root;
    qvl_error error;
    folder_open(&folder);
    folder_write_text(&folder, "a.json", "{\"a\": 1}\n");
    assert_int_equal(qvl_json_read(folder_file(&folder, "a.json"), 9, &root, &error), QVL_OK);
    cJSON_Delete(root);
    assert_failure(qvl_json_read(folder_file(&folder, "a.json"), 8, &root, &error), &error, QVL_ERROR_LIMIT,
                   "a.json has 9 bytes; the limit is 8");
    assert_failure(qvl_json_read(folder_file(&folder, "b.json"), 8, &root, &error), &error, QVL_ERROR_IO,
                   "b.json");
    assert_null(root);
    folder_close(&folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),    cmocka_unit_test(test_every_prefix_is_refused),
        cmocka_unit_test(test_depth),     cmocka_unit_test(test_value_limit),
        cmocka_unit_test(test_many_keys), cmocka_unit_test(test_accessors),
        cmocka_unit_test(test_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
