/* Text is checked here in full before cJSON sees it: cJSON 1.7.15 reads one byte too far after a trailing comma,
 * cuts strings at NUL, takes numbers like 01 and keeps duplicate keys. After the check cJSON only builds the
 * tree, and its only way to fail is memory. */
#include "base/json.h"

#include "base/file.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* serde_json, the reference reader of safetensors headers, stops at the same depth. */
#define MAX_DEPTH 128
/* A tree node costs about 80 bytes where the text may have 2: this bounds a hostile file to 170 MB. The largest
 * files read here (a tokenizer, the header of 100,000 tensors) have up to about a million values. */
#define MAX_VALUES ((size_t)1 << 21)
/* cJSON copies a number into 64 bytes. */
#define MAX_NUMBER 63

/* ---------------------------------------------------------------------------------------- checking the text */

typedef struct scanner {
    const uint8_t *text;
    size_t count, at; /* at: the next byte; after a failure, the byte the problem is at */
    size_t values;
    const char *problem;
    bool over_limit;
} scanner;

static int peek(const scanner *s) {
    return s->at < s->count ? s->text[s->at] : -1;
}

static bool problem(scanner *s, const char *text) {
    s->problem = text;
    return false;
}

static bool limit(scanner *s, const char *text) {
    s->over_limit = true;
    return problem(s, text);
}

static void skip_space(scanner *s) {
    for (int c = peek(s); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek(s)) s->at++;
}

static bool is_digit(int c) {
    return c >= '0' && c <= '9';
}

static bool scan_digits(scanner *s) {
    if (!is_digit(peek(s))) return problem(s, "a digit is expected");
    while (is_digit(peek(s))) s->at++;
    return true;
}

static bool scan_number(scanner *s) {
    size_t start = s->at;
    if (peek(s) == '-') s->at++;
    if (peek(s) == '0')
        s->at++;
    else if (!scan_digits(s))
        return false;
    if (is_digit(peek(s))) return problem(s, "a number starts with 0");
    if (peek(s) == '.') {
        s->at++;
        if (!scan_digits(s)) return false;
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        s->at++;
        if (peek(s) == '+' || peek(s) == '-') s->at++;
        if (!scan_digits(s)) return false;
    }
    if (s->at - start > MAX_NUMBER) {
        s->at = start;
        return problem(s, "a number is longer than 63 characters");
    }
    return true;
}

/* The four digits of a \u escape. */
static bool scan_hex(scanner *s, uint32_t *code) {
    *code = 0;
    for (int i = 0; i < 4; i++, s->at++) {
        int c = peek(s), digit;
        if (is_digit(c))
            digit = c - '0';
        else if (c >= 'a' && c <= 'f')
            digit = c - 'a' + 10;
        else if (c >= 'A' && c <= 'F')
            digit = c - 'A' + 10;
        else
            return problem(s, "a hexadecimal digit is expected");
        *code = *code * 16 + (uint32_t)digit;
    }
    return true;
}

/* After the backslash. */
static bool scan_escape(scanner *s) {
    int c = peek(s);
    if (c < 1 || !strchr("\"\\/bfnrtu", c)) return problem(s, "an unknown escape");
    s->at++;
    if (c != 'u') return true;
    uint32_t code, low;
    if (!scan_hex(s, &code)) return false;
    if (code == 0) return problem(s, "an escaped NUL in a string");
    if (code < 0xd800 || code > 0xdfff) return true;
    if (code > 0xdbff || peek(s) != '\\') return problem(s, "half a surrogate pair");
    s->at++;
    if (peek(s) != 'u') return problem(s, "half a surrogate pair");
    s->at++;
    if (!scan_hex(s, &low)) return false;
    if (low < 0xdc00 || low > 0xdfff) return problem(s, "half a surrogate pair");
    return true;
}

/* One character above 0x7f: no overlong form, no surrogate, nothing above U+10FFFF. */
static bool scan_utf8(scanner *s) {
    int lead = peek(s), more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    int low = 0x80, high = 0xbf;
    if (lead < 0xc2 || lead > 0xf4) return problem(s, "not UTF-8");
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
    s->at++;
    for (; more > 0; more--, s->at++) {
        int c = peek(s);
        if (c < low || c > high) return problem(s, "not UTF-8");
        low = 0x80;
        high = 0xbf;
    }
    return true;
}

static bool scan_string(scanner *s) {
    s->at++;
    for (;;) {
        int c = peek(s);
        if (c < 0) return problem(s, "a string has no end");
        if (c < 0x20) return problem(s, "a control character in a string");
        if (c >= 0x80) {
            if (!scan_utf8(s)) return false;
            continue;
        }
        s->at++;
        if (c == '"') return true;
        if (c == '\\' && !scan_escape(s)) return false;
    }
}

static bool scan_word(scanner *s, const char *word) {
    size_t length = strlen(word);
    if (s->count - s->at < length || memcmp(s->text + s->at, word, length) != 0)
        return problem(s, "a value is expected");
    s->at += length;
    return true;
}

static bool scan_value(scanner *s, int depth);

static bool scan_key(scanner *s) {
    if (peek(s) != '"') return problem(s, "a key in quotes is expected");
    if (!scan_string(s)) return false;
    skip_space(s);
    if (peek(s) != ':') return problem(s, "':' is expected");
    s->at++;
    skip_space(s);
    return true;
}

/* The members of an object (close is '}') or array (close is ']'), from the opening bracket to the closing one. */
static bool scan_members(scanner *s, int close, int depth) {
    if (depth >= MAX_DEPTH) return limit(s, "brackets are nested deeper than 128 levels");
    s->at++;
    skip_space(s);
    if (peek(s) == close) {
        s->at++;
        return true;
    }
    for (;;) {
        if (close == '}' && !scan_key(s)) return false;
        if (!scan_value(s, depth + 1)) return false;
        skip_space(s);
        int c = peek(s);
        if (c != ',' && c != close)
            return problem(s, close == '}' ? "',' or '}' is expected" : "',' or ']' is expected");
        s->at++;
        if (c == close) return true;
        skip_space(s);
    }
}

static bool scan_value(scanner *s, int depth) {
    if (++s->values > MAX_VALUES) return limit(s, "there are more than 2097152 values");
    int c = peek(s);
    switch (c) {
    case '{':
        return scan_members(s, '}', depth);
    case '[':
        return scan_members(s, ']', depth);
    case '"':
        return scan_string(s);
    case 't':
        return scan_word(s, "true");
    case 'f':
        return scan_word(s, "false");
    case 'n':
        return scan_word(s, "null");
    default:
        if (c == '-' || is_digit(c)) return scan_number(s);
        return problem(s, "a value is expected");
    }
}

static bool scan_document(scanner *s) {
    skip_space(s);
    if (s->at == s->count) return problem(s, "there is nothing but white space");
    if (!scan_value(s, 0)) return false;
    skip_space(s);
    return s->at == s->count || problem(s, "something follows the end of the value");
}

qvl_status qvl_json_check(const void *bytes, size_t count, const char *file, qvl_error *error) {
    const uint8_t *text = bytes;
    scanner s = {.text = text, .count = count};
    if (scan_document(&s)) return QVL_OK;
    if (s.over_limit) return qvl_fail(error, QVL_ERROR_LIMIT, "%s: byte %zu: %s", file, s.at, s.problem);
    if (s.at == count)
        return qvl_fail(error, QVL_ERROR_FORMAT, "%s: not JSON: the text ends at byte %zu: %s", file, s.at,
                        s.problem);
    if (text[s.at] == 0) return qvl_fail(error, QVL_ERROR_FORMAT, "%s: not JSON: byte %zu is NUL", file, s.at);
    return qvl_fail(error, QVL_ERROR_FORMAT, "%s: not JSON: byte %zu: %s", file, s.at, s.problem);
}

/* -------------------------------------------------------------------------------------------- duplicate keys */

static int compare_keys(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted, because an object may have 100,000 keys. */
static qvl_status check_keys(const cJSON *object, const char *file, qvl_error *error) {
    const char *few[16], **keys = few;
    size_t count = 0, i = 0;
    for (const cJSON *member = object->child; member; member = member->next) count++;
    if (count < 2) return QVL_OK;
    if (count > sizeof few / sizeof few[0]) keys = qvl_alloc(count, sizeof *keys);
    if (!keys) return qvl_fail_memory(error, "keys of a JSON object", count, sizeof *keys);
    for (const cJSON *member = object->child; member; member = member->next) keys[i++] = member->string;
    qsort(keys, count, sizeof *keys, compare_keys);
    qvl_status status = QVL_OK;
    for (i = 1; i < count && !status; i++)
        if (strcmp(keys[i - 1], keys[i]) == 0)
            status = qvl_fail(error, QVL_ERROR_FORMAT, "%s: the key \"%.200s\" is there twice in one object", file,
                              keys[i]);
    if (keys != few) qvl_free(keys);
    return status;
}

static qvl_status check_all_keys(const cJSON *item, const char *file, qvl_error *error) {
    for (const cJSON *member = item->child; member; member = member->next) {
        qvl_status status = member->child ? check_all_keys(member, file, error) : QVL_OK;
        if (status) return status;
    }
    return cJSON_IsObject(item) ? check_keys(item, file, error) : QVL_OK;
}

/* --------------------------------------------------------------------------------------------------- parsing */

qvl_status qvl_json_parse(const void *bytes, size_t count, const char *file, cJSON **root, qvl_error *error) {
    *root = NULL;
    qvl_status status = qvl_json_check(bytes, count, file, error);
    if (status) return status;
    cJSON *tree = cJSON_ParseWithLength(bytes, count);
    if (!tree) return qvl_fail_memory(error, file, count, 1);
    if (!cJSON_IsObject(tree)) {
        char found[QVL_JSON_DESCRIPTION];
        qvl_json_describe(tree, found);
        status = qvl_fail(error, QVL_ERROR_FORMAT, "%s: the file is %s; it must be a JSON object", file, found);
        goto fail;
    }
    status = check_all_keys(tree, file, error);
    if (status) goto fail;
    *root = tree;
    return QVL_OK;
fail:
    cJSON_Delete(tree);
    return status;
}

qvl_status qvl_json_read(const char *path, size_t limit_bytes, cJSON **root, qvl_error *error) {
    uint8_t *bytes;
    size_t count;
    *root = NULL;
    qvl_status status = qvl_file_read(path, limit_bytes, &bytes, &count, error);
    if (status) return status;
    status = qvl_json_parse(bytes, count, path, root, error);
    qvl_free(bytes);
    return status;
}

/* --------------------------------------------------------------------------------------------------- reading */

void qvl_json_describe(const cJSON *item, char text[QVL_JSON_DESCRIPTION]) {
    const char *kind = "nothing";
    if (cJSON_IsNumber(item)) {
        snprintf(text, QVL_JSON_DESCRIPTION, "%.17g", item->valuedouble);
        return;
    }
    if (cJSON_IsString(item)) {
        snprintf(text, QVL_JSON_DESCRIPTION, "\"%.40s\"", item->valuestring);
        return;
    }
    if (cJSON_IsTrue(item)) kind = "true";
    if (cJSON_IsFalse(item)) kind = "false";
    if (cJSON_IsNull(item)) kind = "null";
    if (cJSON_IsArray(item)) kind = "a list";
    if (cJSON_IsObject(item)) kind = "an object";
    snprintf(text, QVL_JSON_DESCRIPTION, "%s", kind);
}

bool qvl_json_integer(const cJSON *item, int64_t min, int64_t max, int64_t *value) {
    if (!cJSON_IsNumber(item)) return false;
    double number = item->valuedouble;
    if (!(fabs(number) <= 0x1.fffffffffffffp52) || number != floor(number)) return false;
    int64_t integer = (int64_t)number;
    if (integer < min || integer > max) return false;
    *value = integer;
    return true;
}

/* The value of a key that is there and not null, else NULL. */
static const cJSON *find(const cJSON *object, const char *key, bool *found) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (cJSON_IsNull(item)) item = NULL;
    if (found) *found = item != NULL;
    return item;
}

static qvl_status wrong(const cJSON *item, const char *key, const char *file, const char *allowed,
                        qvl_error *error) {
    char found[QVL_JSON_DESCRIPTION];
    qvl_json_describe(item, found);
    return qvl_fail(error, QVL_ERROR_FORMAT, "%s: %s is %s; it must be %s", file, key, found, allowed);
}

qvl_status qvl_json_int(const cJSON *object, const char *key, int64_t min, int64_t max, const char *file,
                        int64_t *value, bool *found, qvl_error *error) {
    const cJSON *item = find(object, key, found);
    if (!item || qvl_json_integer(item, min, max, value)) return QVL_OK;
    char allowed[96];
    snprintf(allowed, sizeof allowed, "an integer in %lld..%lld", (long long)min, (long long)max);
    return wrong(item, key, file, allowed, error);
}

qvl_status qvl_json_number(const cJSON *object, const char *key, double min, double max, const char *file,
                           double *value, bool *found, qvl_error *error) {
    const cJSON *item = find(object, key, found);
    if (!item) return QVL_OK;
    if (cJSON_IsNumber(item) && item->valuedouble >= min && item->valuedouble <= max) {
        *value = item->valuedouble;
        return QVL_OK;
    }
    char allowed[96];
    snprintf(allowed, sizeof allowed, "a number in %g..%g", min, max);
    return wrong(item, key, file, allowed, error);
}

qvl_status qvl_json_bool(const cJSON *object, const char *key, const char *file, bool *value, bool *found,
                         qvl_error *error) {
    const cJSON *item = find(object, key, found);
    if (!item) return QVL_OK;
    if (!cJSON_IsBool(item)) return wrong(item, key, file, "true or false", error);
    *value = cJSON_IsTrue(item);
    return QVL_OK;
}

qvl_status qvl_json_string(const cJSON *object, const char *key, const char *file, const char **value, bool *found,
                           qvl_error *error) {
    const cJSON *item = find(object, key, found);
    if (!item) return QVL_OK;
    if (!cJSON_IsString(item)) return wrong(item, key, file, "a string", error);
    *value = item->valuestring;
    return QVL_OK;
}

qvl_status qvl_json_object(const cJSON *object, const char *key, const char *file, const cJSON **value,
                           qvl_error *error) {
    *value = NULL;
    const cJSON *item = find(object, key, NULL);
    if (!item) return QVL_OK;
    if (!cJSON_IsObject(item)) return wrong(item, key, file, "an object", error);
    *value = item;
    return QVL_OK;
}
