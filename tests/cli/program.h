/* What the tests of the programs share: running one and reading what it said, and a folder for its files. */
#ifndef QVL_TESTS_CLI_PROGRAM_H
#define QVL_TESTS_CLI_PROGRAM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "qvl.h"

#include <cjson/cJSON.h>

typedef struct result {
    int code; /* of exit(); a signal fails the test */
    char *out, *err;
    int64_t peak_bytes; /* of resident memory */
} result;

/* Runs arguments[0] with standard input from a file (NULL: empty). arguments ends with NULL. */
result run_program(const char *const *arguments, const char *input);
void free_result(result *r);

/* Runs a program that must exit with code; prints what it said otherwise. Owner: the caller, free_result. */
result expect(int code, const char *input, const char *const *arguments);
#define ARGUMENTS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define QVL(...) ARGUMENTS(QVL_PROGRAM, __VA_ARGS__)
/* With the random model. */
#define QVL_RANDOM(...) QVL(__VA_ARGS__, "-m", QVL_RANDOM_MODEL)

/* Runs a program that must succeed. */
void run(const char *const *arguments);
/* What a program that must exit with code says on standard output, which must be JSON. Owner: the caller, cJSON_Delete. */
cJSON *json_of(int code, const char *const *arguments, const char *input);
cJSON *run_json(const char *const *arguments); /* with code 0 and empty input */

void assert_says(const char *text, const char *part);

/* A member that must be there. */
const cJSON *field(const cJSON *object, const char *key);
void assert_ints(const cJSON *array, const int *expected, int count);

/* A folder of the test program's own, removed with all it holds when the program ends. In rotating static memory:
 * the last eight paths stay valid. XDG_CACHE_HOME is its folder "cache". */
const char *scratch(const char *name);
/* The number of entries in a folder. */
int count_files(const char *folder);

/* A whole file, NUL-terminated; fails the test if it cannot be read. Owner: the caller, free. */
char *read_file(const char *path, size_t *count);
void write_file(const char *path, const void *bytes, size_t count);
void assert_same_file(const char *a, const char *b);

qvl_tensor_file *open_tensors(const char *path);
/* A tensor that must be there. */
qvl_tensor tensor_of(const qvl_tensor_file *file, const char *name);
size_t tensor_bytes(const qvl_tensor *tensor);
void assert_same_tensor(const qvl_tensor *a, const qvl_tensor *b);

#endif
