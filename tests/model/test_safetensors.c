/* The reader against hostile headers, and the writer against the reader. */
#define _GNU_SOURCE
#include "test_folder.h"

#include "model/safetensors.h"

/* length NONE: strlen(header). */
#define NONE UINT64_MAX

/* One F32 of tensor "a" with the given fields. */
#define A(fields) "{\"a\":{" fields "}}"
#define SHAPE_1 "\"dtype\":\"F32\",\"shape\":[1],"
#define OFFSETS_4 ",\"data_offsets\":[0,4]"

/* A file: a header length, a header, bytes of data. Each must be refused with a message of its own. */
static const struct hostile {
    const char *header;
    size_t data;
    uint64_t length;
    qvl_status status;
    const char *says;
} hostile[] = {
    /* the length */
    {"", 0, 0, QVL_ERROR_FORMAT, "the header length is 0; the shortest header has 2"},
    {"{", 0, 1, QVL_ERROR_FORMAT, "the header length is 1; the shortest header has 2"},
    {"{}", 0, 3, QVL_ERROR_FORMAT, "the header length is 3, but the file has only 2 bytes after it"},
    {"{}", 0, (uint64_t)1 << 63, QVL_ERROR_FORMAT, "the header length is 9223372036854775808, but"},
    {"{}", 0, UINT64_MAX - 1, QVL_ERROR_FORMAT, "the header length is 18446744073709551614, but"},
    {"{}", 33 << 20, 33 << 20, QVL_ERROR_LIMIT, "the header length is 34603008; the limit is 33554432"},
    {A(SHAPE_1 "\"data_offsets\":[0,4]"), 4, 20, QVL_ERROR_FORMAT, "the text ends at byte 20: "},
    /* the text */
    {" {}", 0, NONE, QVL_ERROR_FORMAT, "the header starts with byte 0x20; it must be '{'"},
    {"[]", 0, NONE, QVL_ERROR_FORMAT, "the header starts with byte 0x5b"},
    {"\xef\xbb\xbf{}", 0, NONE, QVL_ERROR_FORMAT, "the header starts with byte 0xef"},
    {"{}", 6, 8, QVL_ERROR_FORMAT, "byte 2 is NUL"},
    {"{}x", 0, NONE, QVL_ERROR_FORMAT, "byte 2: something follows the end of the value"},
    {"{\"a\":{\"dtype\":\"F32\",}}", 0, NONE, QVL_ERROR_FORMAT, "byte 20: a key in quotes is expected"},
    {"{\"a\xff\":{}}", 0, NONE, QVL_ERROR_FORMAT, "byte 3: not UTF-8"},
    {"{\"a\\u0000b\":{}}", 0, NONE, QVL_ERROR_FORMAT, "byte 9: an escaped NUL in a string"},
    {"{\"a\":{\"shape\":[1,]}}", 0, NONE, QVL_ERROR_FORMAT, "byte 17: a value is expected"},
    {"{\"a\":{\"shape\":[01]}}", 0, NONE, QVL_ERROR_FORMAT, "byte 16: a number starts with 0"},
    {"{\"a\":{" SHAPE_1 "\"data_offsets\":[0,4]},\"a\":{" SHAPE_1 "\"data_offsets\":[4,8]}}", 8, NONE,
     QVL_ERROR_FORMAT, "the key \"a\" is there twice in one object"},
    {A(SHAPE_1 "\"data_offsets\":[0,4],\"dtype\":\"U8\""), 4, NONE, QVL_ERROR_FORMAT,
     "the key \"dtype\" is there twice in one object"},
    /* metadata */
    {"{\"__metadata__\":\"pt\"}", 0, NONE, QVL_ERROR_FORMAT, "__metadata__ is \"pt\"; it must be an object"},
    {"{\"__metadata__\":[]}", 0, NONE, QVL_ERROR_FORMAT, "__metadata__ is a list; it must be an object"},
    {"{\"__metadata__\":{\"format\":1}}", 0, NONE, QVL_ERROR_FORMAT,
     "__metadata__ has 1 for \"format\"; it must be a string"},
    {"{\"__metadata__\":{\"x\":{}}}", 0, NONE, QVL_ERROR_FORMAT, "__metadata__ has an object for \"x\""},
    /* an entry */
    {"{\"a\":[0,4]}", 4, NONE, QVL_ERROR_FORMAT, "tensor a is a list; it must be an object"},
    {"{\"a\":null}", 0, NONE, QVL_ERROR_FORMAT, "tensor a is null; it must be an object"},
    {A("\"shape\":[1]" OFFSETS_4), 4, NONE, QVL_ERROR_FORMAT, "tensor a has nothing as its dtype"},
    {A("\"dtype\":3,\"shape\":[1]" OFFSETS_4), 4, NONE, QVL_ERROR_FORMAT, "tensor a has 3 as its dtype"},
    {A("\"dtype\":\"F31\",\"shape\":[1]" OFFSETS_4), 4, NONE, QVL_ERROR_UNSUPPORTED, "unknown dtype \"F31\""},
    {A("\"dtype\":\"f32\",\"shape\":[1]" OFFSETS_4), 4, NONE, QVL_ERROR_UNSUPPORTED, "unknown dtype \"f32\""},
    {A("\"dtype\":\"F8_E3M4\",\"shape\":[4]" OFFSETS_4), 4, NONE, QVL_ERROR_UNSUPPORTED,
     "unknown dtype \"F8_E3M4\""},
    {A("\"dtype\":\"F32\"" OFFSETS_4), 4, NONE, QVL_ERROR_FORMAT, "tensor a has no shape list"},
    {"{\"s\":{\"dtype\":\"F32\",\"shape\":1" OFFSETS_4 "}}", 4, NONE, QVL_ERROR_FORMAT,
     "tensor s has no shape list"},
    {A("\"dtype\":\"F32\",\"shape\":[-1]" OFFSETS_4), 4, NONE, QVL_ERROR_FORMAT, "has -1 in its shape"},
    {A("\"dtype\":\"F32\",\"shape\":[1.5]" OFFSETS_4), 4, NONE, QVL_ERROR_FORMAT, "has 1.5 in its shape"},
    {A("\"dtype\":\"F32\",\"shape\":[\"1\"]" OFFSETS_4), 4, NONE, QVL_ERROR_FORMAT, "has \"1\" in its shape"},
    {A("\"dtype\":\"F32\",\"shape\":[[1]]" OFFSETS_4), 4, NONE, QVL_ERROR_FORMAT, "has a list in its shape"},
    {A("\"dtype\":\"F32\",\"shape\":[1e300]" OFFSETS_4), 4, NONE, QVL_ERROR_FORMAT, "e+300 in its shape"},
    {A("\"dtype\":\"F32\",\"shape\":[9007199254740992]" OFFSETS_4), 4, NONE, QVL_ERROR_FORMAT,
     "has 9007199254740992 in its shape"},
    {A("\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1]" OFFSETS_4), 4, NONE, QVL_ERROR_UNSUPPORTED,
     "tensor a has more than 6 dimensions"},
    {A("\"dtype\":\"F32\",\"shape\":[2147483648,2147483648,4]" OFFSETS_4), 4, NONE, QVL_ERROR_FORMAT,
     "tensor a has a shape whose product overflows"},
    {A("\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]"), 2, NONE, QVL_ERROR_FORMAT,
     "tensor a (F4) has 12 bits, not whole bytes"},
    {A("\"dtype\":\"F6_E3M2\",\"shape\":[2],\"data_offsets\":[0,2]"), 2, NONE, QVL_ERROR_FORMAT,
     "tensor a (F6_E3M2) has 12 bits, not whole bytes"},
    /* offsets */
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, NONE, QVL_ERROR_FORMAT, "tensor a has no data_offsets list"},
    {"{\"b\":{" SHAPE_1 "\"data_offsets\":[0]}}", 4, NONE, QVL_ERROR_FORMAT, "tensor b has no data_offsets list"},
    {"{\"c\":{" SHAPE_1 "\"data_offsets\":[0,4,4]}}", 4, NONE, QVL_ERROR_FORMAT, "tensor c has no data_offsets"},
    {A(SHAPE_1 "\"data_offsets\":[-4,4]"), 4, NONE, QVL_ERROR_FORMAT, "data_offsets -4, 4; they must be"},
    {A(SHAPE_1 "\"data_offsets\":[0.5,4]"), 4, NONE, QVL_ERROR_FORMAT, "data_offsets 0.5, 4; they must be"},
    {A(SHAPE_1 "\"data_offsets\":[0,\"4\"]"), 4, NONE, QVL_ERROR_FORMAT, "data_offsets 0, \"4\"; they must be"},
    {A(SHAPE_1 "\"data_offsets\":[0,18446744073709551616]"), 4, NONE, QVL_ERROR_FORMAT,
     "data_offsets 0, 1.8446744073709552e+19; they must be"},
    {A(SHAPE_1 "\"data_offsets\":[4,0]"), 4, NONE, QVL_ERROR_FORMAT, "ends before it begins: data_offsets 4, 0"},
    {A(SHAPE_1 "\"data_offsets\":[0,4]"), 3, NONE, QVL_ERROR_FORMAT, "ends at byte 4 of the data, which has 3"},
    {A(SHAPE_1 "\"data_offsets\":[4503599627370496,4503599627370500]"), 4, NONE, QVL_ERROR_FORMAT,
     "ends at byte 4503599627370500 of the data, which has 4"},
    {A(SHAPE_1 "\"data_offsets\":[0,3]"), 3, NONE, QVL_ERROR_FORMAT,
     "has 3 bytes of data; its shape and type F32"},
    {A(SHAPE_1 "\"data_offsets\":[0,8]"), 8, NONE, QVL_ERROR_FORMAT,
     "has 8 bytes of data; its shape and type F32"},
    {A("\"dtype\":\"I64\",\"shape\":[0,5],\"data_offsets\":[0,8]"), 8, NONE, QVL_ERROR_FORMAT,
     "has 8 bytes of data; its shape and type I64 need 0"},
    /* coverage */
    {A(SHAPE_1 "\"data_offsets\":[4,8]"), 8, NONE, QVL_ERROR_FORMAT,
     "a hole of 4 bytes in the data before tensor a"},
    {"{\"a\":{" SHAPE_1 "\"data_offsets\":[0,4]},\"b\":{" SHAPE_1 "\"data_offsets\":[6,10]}}", 10, NONE,
     QVL_ERROR_FORMAT, "a hole of 2 bytes in the data before tensor b"},
    {"{\"a\":{" SHAPE_1 "\"data_offsets\":[0,4]},\"b\":{" SHAPE_1 "\"data_offsets\":[2,6]}}", 6, NONE,
     QVL_ERROR_FORMAT, "tensors a and b overlap"},
    {"{\"x\":{" SHAPE_1 "\"data_offsets\":[0,4]},\"y\":{" SHAPE_1 "\"data_offsets\":[0,4]}}", 4, NONE,
     QVL_ERROR_FORMAT, "tensors x and y overlap"},
    {"{\"b\":{" SHAPE_1 "\"data_offsets\":[4,8]},\"a\":{" SHAPE_1 "\"data_offsets\":[0,4]}}", 12, NONE,
     QVL_ERROR_FORMAT, "4 stray bytes behind the last tensor"},
    {"{}", 1, NONE, QVL_ERROR_FORMAT, "1 stray bytes behind the last tensor"},
};

/* The file in a block of exactly its size. */
static uint8_t *build(const char *header, uint64_t length, size_t data, size_t *count) {
    size_t text = strlen(header);
    if (length == NONE) length = text;
    *count = 8 + text + data;
    uint8_t *bytes = calloc(1, *count);
    assert_non_null(bytes);
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(length >> (8 * i));
    memcpy(bytes + 8, header, text);
    return bytes;
}

/* Report 86: malicious and sloppy headers. */
static void report_86_hostile_headers(void **state) {
    (void)state;
    size_t cases = sizeof hostile / sizeof hostile[0], distinct = 0;
    for (size_t i = 0; i < cases; i++) {
        size_t count;
        uint8_t *bytes = build(hostile[i].header, hostile[i].length, hostile[i].data, &count);
        qvl_safetensors file;
        qvl_error error = {0};
        qvl_status status = qvl_safetensors_parse(bytes, count, "x.safetensors", &file, &error);
        assert_failure(status, &error, hostile[i].status, hostile[i].says);
        assert_ptr_equal(strstr(error.message, "x.safetensors: "), error.message);
        assert_true(!file.tensors && !file.storage && !file.path && file.count == 0);
        free(bytes);
        bool own = true;
        for (size_t k = 0; k < i; k++) own = own && strcmp(hostile[i].says, hostile[k].says) != 0;
        distinct += own;
    }
    assert_int_equal(distinct, cases);
    assert_true(distinct >= 35);
}

static void test_short_files(void **state) {
    (void)state;
    uint8_t bytes[8] = {2};
    for (size_t count = 0; count < 9; count++) {
        qvl_safetensors file;
        qvl_error error;
        uint8_t *copy = malloc(count + (count == 0));
        memcpy(copy, bytes, count);
        qvl_status status = qvl_safetensors_parse(copy, count, "short", &file, &error);
        if (count < 8)
            assert_failure(status, &error, QVL_ERROR_FORMAT, "a safetensors file starts with 8 bytes");
        else
            assert_failure(status, &error, QVL_ERROR_FORMAT,
                           "the header length is 2, but the file has only 0 bytes");
        free(copy);
    }
}

/* Unusual, but what the format allows. */
static void test_allowed(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t data, tensors;
    } good[] = {
        {"{}", 0, 0},
        {"{}      ", 0, 0},
        {"{\"__metadata__\":{}}", 0, 0},
        {"{\"__metadata__\":null}", 0, 0},
        {"{\"__metadata__\":{\"format\":\"pt\"},\"a\":{" SHAPE_1 "\"data_offsets\":[0,4]}}", 4, 1},
        {A("\"dtype\":\"F32\",\"shape\":[]" OFFSETS_4), 4, 1},
        {A("\"dtype\":\"F4\",\"shape\":[3,4],\"data_offsets\":[0,6]"), 6, 1},
        {A("\"dtype\":\"BOOL\",\"shape\":[1,1,1,1,1,3],\"data_offsets\":[0,3]"), 3, 1},
        {A("\"dtype\":\"F64\",\"shape\":[0,9007199254740991],\"data_offsets\":[0,0]"), 0, 1},
        {A(SHAPE_1 "\"data_offsets\":[0,4],\"note\":{\"any\":1}"), 4, 1},
        {"{\"\":{" SHAPE_1 "\"data_offsets\":[0,4]}}", 4, 1},
        {"{\"b\":{" SHAPE_1
         "\"data_offsets\":[1,5]},\"z\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]},"
         "\"a\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
         5, 3},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        size_t count;
        uint8_t *bytes = build(good[i].header, NONE, good[i].data, &count);
        qvl_safetensors file;
        qvl_error error;
        assert_ok(qvl_safetensors_parse(bytes, count, "x.safetensors", &file, &error), &error);
        assert_int_equal(file.count, good[i].tensors);
        qvl_safetensors_close(&file);
        free(bytes);
    }
}

/* ------------------------------------------------------------------------------------------------- reading,
 * writing */

static const float values[6] = {1.0f, -2.5f, 3e-30f, 4e30f, 0.0f, -0.0f};
static const uint8_t bytes5[5] = {1, 2, 3, 4, 255};
static const int64_t longs[2] = {-1, INT64_MAX};
static const float nan_values[2] = {__builtin_nanf(""), __builtin_inff()};

static void test_round_trip(void **state) {
    (void)state;
    const qvl_tensor tensors[] = {
        {"five bytes", QVL_U8, 1, {5}, bytes5},
        {"m", QVL_F32, 2, {2, 3}, values},
        {"a \"quoted\" \\ name\n\x01 \xc3\xa9", QVL_F32, 1, {2}, nan_values},
        {"", QVL_I64, 1, {2}, longs},
        {"empty", QVL_BF16, 3, {4, 0, 7}, NULL},
        {"scalar", QVL_F32, 0, {0}, values + 1},
        {"halves", QVL_F4, 2, {2, 1}, bytes5},
    };
    const char *const metadata[] = {"format", "pt", "note \"x\"", "line\nbreak"};
    const size_t count = sizeof tensors / sizeof tensors[0];
    test_folder folder;
    qvl_tensor_file *file;
    qvl_error error;
    folder_open(&folder);
    assert_ok(qvl_tensors_save(folder_file(&folder, "t.safetensors"), tensors, count, metadata, 2, &error),
              &error);
    assert_ok(qvl_tensor_file_open(folder.file, &file, &error), &error);
    assert_int_equal(qvl_tensor_file_count(file), count);
    for (size_t i = 0; i < count; i++) {
        qvl_tensor t;
        assert_true(qvl_tensor_file_find(file, tensors[i].name, &t));
        assert_int_equal(t.dtype, tensors[i].dtype);
        assert_int_equal(t.ndim, tensors[i].ndim);
        assert_memory_equal(t.shape, tensors[i].shape, sizeof t.shape);
        size_t bits = qvl_dtype_bits(t.dtype);
        for (int32_t d = 0; d < t.ndim; d++) bits *= (size_t)t.shape[d];
        if (bits) assert_memory_equal(t.data, tensors[i].data, bits / 8);
        /* Wide elements come first, so each tensor is aligned for its type. */
        if (qvl_dtype_bits(t.dtype) >= 8) assert_int_equal((uintptr_t)t.data % (qvl_dtype_bits(t.dtype) / 8), 0);
    }
    for (size_t i = 1; i < count; i++)
        assert_true(strcmp(qvl_tensor_file_get(file, i - 1).name, qvl_tensor_file_get(file, i).name) < 0);
    qvl_tensor untouched = {.name = "untouched"};
    assert_false(qvl_tensor_file_find(file, "no such", &untouched));
    assert_string_equal(untouched.name, "untouched");
    qvl_tensor_file_close(&file);
    assert_null(file);
    qvl_tensor_file_close(&file);
    assert_int_equal(folder_close(&folder), 1);
}

static void test_no_tensors(void **state) {
    (void)state;
    test_folder folder;
    qvl_tensor_file *file;
    qvl_tensor tensor;
    qvl_error error;
    folder_open(&folder);
    assert_ok(qvl_tensors_save(folder_file(&folder, "t.safetensors"), NULL, 0, NULL, 0, &error), &error);
    assert_ok(qvl_tensor_file_open(folder.file, &file, &error), &error);
    assert_int_equal(qvl_tensor_file_count(file), 0);
    assert_false(qvl_tensor_file_find(file, "a", &tensor));
    qvl_tensor_file_close(&file);
    folder_close(&folder);
}

/* Each refused save leaves what was there and nothing else. */
static void test_refused_saves(void **state) {
    (void)state;
    const qvl_tensor good = {"a", QVL_F32, 1, {2}, values};
    static const struct {
        qvl_tensor tensor;
        qvl_status status;
        const char *says;
    } bad[] = {
        {{NULL, QVL_F32, 1, {2}, values}, QVL_ERROR_ARGUMENT, "a tensor has no name"},
        {{"a", QVL_F32, 1, {2}, values}, QVL_ERROR_ARGUMENT, "the key \"a\" is there twice"},
        {{"\xff", QVL_F32, 1, {2}, values}, QVL_ERROR_ARGUMENT, "not UTF-8"},
        {{"__metadata__", QVL_F32, 1, {2}, values}, QVL_ERROR_ARGUMENT, "a tensor is named __metadata__"},
        {{"b", (qvl_dtype)22, 1, {2}, values}, QVL_ERROR_ARGUMENT, "tensor b has an impossible dtype or shape"},
        {{"c", QVL_F32, 7, {2}, values}, QVL_ERROR_ARGUMENT, "tensor c has an impossible dtype or shape"},
        {{"d", QVL_F32, -1, {2}, values}, QVL_ERROR_ARGUMENT, "tensor d has an impossible dtype or shape"},
        {{"e", QVL_F32, 1, {-2}, values}, QVL_ERROR_ARGUMENT, "tensor e has an impossible dtype or shape"},
        {{"f", QVL_F4, 1, {3}, values}, QVL_ERROR_ARGUMENT, "tensor f has an impossible dtype or shape"},
        {{"g", QVL_F32, 2, {INT64_MAX, 8}, values},
         QVL_ERROR_ARGUMENT,
         "tensor g has an impossible dtype or shape"},
        {{"h", QVL_F32, 1, {2}, NULL}, QVL_ERROR_ARGUMENT, "tensor h has no data"},
    };
    test_folder folder;
    qvl_error error;
    folder_open(&folder);
    folder_write_text(&folder, "t.safetensors", "old");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const qvl_tensor pair[] = {good, bad[i].tensor};
        assert_failure(qvl_tensors_save(folder_file(&folder, "t.safetensors"), pair, 2, NULL, 0, &error), &error,
                       bad[i].status, bad[i].says);
    }
    const char *const twice[] = {"k", "1", "k", "2"}, *const half[] = {"k", NULL};
    assert_failure(qvl_tensors_save(folder.file, &good, 1, twice, 2, &error), &error, QVL_ERROR_ARGUMENT,
                   "the key \"k\" is there twice");
    assert_failure(qvl_tensors_save(folder.file, &good, 1, half, 1, &error), &error, QVL_ERROR_ARGUMENT,
                   "metadata pair 0 has a NULL");
    assert_failure(qvl_tensors_save(folder.file, NULL, 1, NULL, 0, &error), &error, QVL_ERROR_ARGUMENT, "NULL");
    assert_failure(qvl_tensors_save(NULL, &good, 1, NULL, 0, &error), &error, QVL_ERROR_ARGUMENT, "path is NULL");
    assert_failure(qvl_tensors_save("/nowhere/t", &good, 1, NULL, 0, &error), &error, QVL_ERROR_IO, "/nowhere/t");
    char old[8] = {0};
    FILE *f = fopen(folder_file(&folder, "t.safetensors"), "rb");
    assert_int_equal(fread(old, 1, sizeof old, f), 3);
    fclose(f);
    assert_string_equal(old, "old");
    assert_int_equal(folder_close(&folder), 1);
}

static void test_open_failures(void **state) {
    (void)state;
    test_folder folder;
    qvl_tensor_file *file;
    qvl_error error;
    folder_open(&folder);
    assert_failure(qvl_tensor_file_open(folder_file(&folder, "none"), &file, &error), &error, QVL_ERROR_IO,
                   "none");
    assert_null(file);
    folder_write_text(&folder, "empty", "");
    assert_failure(qvl_tensor_file_open(folder_file(&folder, "empty"), &file, &error), &error, QVL_ERROR_FORMAT,
                   "empty has 0 bytes");
    assert_failure(qvl_tensor_file_open(folder.path, &file, &error), &error, QVL_ERROR_IO, "it is a folder");
    assert_failure(qvl_tensor_file_open(NULL, &file, &error), &error, QVL_ERROR_ARGUMENT, "path is NULL");
    assert_int_equal(qvl_tensor_file_open("x", NULL, NULL), QVL_ERROR_ARGUMENT);
    folder_close(&folder);
}

/* 100,000 tensors are opened and found without quadratic work; the test's time limit would show it. */
static void test_many_tensors(void **state) {
    (void)state;
    const size_t count = 100000;
    qvl_tensor *tensors = calloc(count, sizeof *tensors);
    char *names = malloc(count * 48);
    test_folder folder;
    qvl_tensor_file *file;
    qvl_tensor found;
    qvl_error error;
    assert_true(tensors && names);
    for (size_t i = 0; i < count; i++) {
        snprintf(names + i * 48, 48, "model.layers.%zu.mlp.experts.%zu.weight", i / 512, i % 512);
        tensors[i] = (qvl_tensor){names + i * 48, QVL_U8, 2, {1, 1}, bytes5 + i % 5};
    }
    folder_open(&folder);
    assert_ok(qvl_tensors_save(folder_file(&folder, "t.safetensors"), tensors, count, NULL, 0, &error), &error);
    assert_ok(qvl_tensor_file_open(folder.file, &file, &error), &error);
    assert_int_equal(qvl_tensor_file_count(file), count);
    for (size_t i = 0; i < count; i++) {
        assert_true(qvl_tensor_file_find(file, tensors[i].name, &found));
        assert_int_equal(*(const uint8_t *)found.data, bytes5[i % 5]);
    }
    qvl_tensor_file_close(&file);
    folder_close(&folder);
    free(names);
    free(tensors);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_86_hostile_headers),
        cmocka_unit_test(test_short_files),
        cmocka_unit_test(test_allowed),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_no_tensors),
        cmocka_unit_test(test_refused_saves),
        cmocka_unit_test(test_open_failures),
        cmocka_unit_test(test_many_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
