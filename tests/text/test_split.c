/* The scanner against the patterns that it stands for, run by PCRE2 on text of every kind. PCRE2 10.42 knows Unicode 14,
 * the scanner 16: code points that PCRE2 does not know are left out. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/split.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pcre2.h>

#include <cmocka.h>

static qvl_unicode unicode;
static pcre2_code *assigned;    /* one code point that PCRE2 knows */
static pcre2_match_data *match; /* of any pattern */

static pcre2_code *compile_plain(const char *pattern) {
    int number;
    PCRE2_SIZE at;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP, &number, &at, NULL);
    assert_non_null(code);
    return code;
}

static int open_all(void **state) {
    (void)state;
    assigned = compile_plain("\\P{Cn}");
    match = pcre2_match_data_create(1, NULL);
    return !match || qvl_unicode_open(&unicode, NULL);
}

static int close_all(void **state) {
    (void)state;
    pcre2_code_free(assigned);
    pcre2_match_data_free(match);
    qvl_unicode_close(&unicode);
    return 0;
}

/* PCRE2's \s has U+180E, which is no white space since Unicode 6.3, and to the reference neither. In the patterns \s
 * stands by itself or in a class that is negated as a whole. */
static pcre2_code *compile(const char *pattern) {
    char changed[1024] = "";
    size_t used = 0;
    bool in_class = false;
    for (const char *p = pattern; *p; p++) {
        if (*p == '[' || *p == ']') in_class = *p == '[';
        if (p[0] == '\\' && (p[1] == 's' || p[1] == 'S')) {
            const char *with = in_class      ? "\\p{Z}\\t-\\r\\x{85}"
                               : p[1] == 's' ? "[\\p{Z}\\t-\\r\\x{85}]"
                                             : "[^\\p{Z}\\t-\\r\\x{85}]";
            assert_true(!in_class || p[1] == 's');
            used += (size_t)snprintf(changed + used, sizeof changed - used, "%s", with);
            p++;
        } else {
            changed[used++] = *p;
        }
    }
    return compile_plain(changed);
}

static void compare(qvl_splitter splitter, const pcre2_code *code, const uint8_t *text, size_t count) {
    for (size_t at = 0; at < count;) {
        int found = pcre2_match(code, text, count, at, PCRE2_ANCHORED | PCRE2_NO_UTF_CHECK, match, NULL);
        assert_true(found > 0);
        size_t end = qvl_split_next(splitter, &unicode, text, at, count),
               wanted = pcre2_get_ovector_pointer(match)[1];
        if (end != wanted) {
            for (size_t i = 0; i < count; i++) print_error("%02x%s", text[i], i + 1 == at ? "|" : " ");
            fail_msg("%s: the word at %zu ends at %zu; by the pattern at %zu", qvl_splitter_name(splitter), at,
                     end, wanted);
        }
        at = end;
    }
}

/* PCRE2 knows the code point, or the scanner does not either. */
static bool is_known(uint32_t code) {
    uint8_t bytes[4];
    size_t size = qvl_utf8_put(code, bytes);
    return qvl_unicode_value(&unicode, code) == 0 ||
           pcre2_match(assigned, bytes, size, 0, PCRE2_ANCHORED | PCRE2_NO_UTF_CHECK, match, NULL) > 0;
}

static uint32_t next_random(uint32_t *state, uint32_t below) {
    *state = *state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(*state >> 4) * below >> 28);
}

static uint32_t any_code_point(uint32_t *state) {
    static const uint32_t likely[] = {
        ' ',    ' ',    '\n',   '\r',   '\t',    'a',   'B',    'e',    '\'',   '\'',  's',    'S',
        't',    'l',    'L',    'v',    'E',     'd',   'm',    '1',    '9',    '.',   '_',    '<',
        0x85,   0xa0,   0xe9,   0x17f,  0x301,   0x327, 0x660,  0x93c,  0x915,  0xe34, 0x180e, 0x2028,
        0x200b, 0x3000, 0x4e2d, 0xac00, 0x1f600, 0xb2,  0x2163, 0xfe0f, 0x212a, 0x1c,  0xfffd};
    if (next_random(state, 4) > 0) return likely[next_random(state, sizeof likely / sizeof likely[0])];
    for (;;) {
        uint32_t code = next_random(state, next_random(state, 3) ? 0x3000 : QVL_UNICODE_LIMIT);
        if ((code < 0xd800 || code > 0xdfff) && is_known(code)) return code;
    }
}

static void test_random_text(void **state) {
    (void)state;
    for (int k = QVL_SPLIT_GPT2; k < QVL_SPLITTERS; k++) {
        pcre2_code *code = compile(qvl_splitter_pattern((qvl_splitter)k));
        uint32_t seed = (uint32_t)k;
        for (int round = 0; round < 40000; round++) {
            uint8_t *text = malloc(128);
            size_t count = 0;
            assert_non_null(text);
            for (uint32_t n = 1 + next_random(&seed, 24); n > 0; n--)
                count += qvl_utf8_put(any_code_point(&seed), text + count);
            /* A block of exactly this size, so that AddressSanitizer sees a byte read behind it. */
            text = realloc(text, count);
            assert_non_null(text);
            compare((qvl_splitter)k, code, text, count);
            free(text);
        }
        pcre2_code_free(code);
    }
}

/* Every assigned code point in every place of a word. */
static void test_all_code_points(void **state) {
    (void)state;
    for (int k = QVL_SPLIT_GPT2; k < QVL_SPLITTERS; k++) {
        pcre2_code *code = compile(qvl_splitter_pattern((qvl_splitter)k));
        for (uint32_t c = 0; c < QVL_UNICODE_LIMIT; c++) {
            if ((c >= 0xd800 && c <= 0xdfff) || !is_known(c)) continue;
            uint8_t one[4], text[64];
            size_t size = qvl_utf8_put(c, one), count = 0;
            for (const char *p = "@a@1@ @.@'@\n@\xcc\x81@"; *p; p++) {
                memcpy(text + count, *p == '@' ? (const char *)one : p, *p == '@' ? size : 1);
                count += *p == '@' ? size : 1;
            }
            compare((qvl_splitter)k, code, text, count);
        }
        pcre2_code_free(code);
    }
}

static void test_classes(void **state) {
    (void)state;
    const struct {
        uint32_t code;
        uint8_t kind, nfc;
    } cases[] = {
        {'a', QVL_KIND_LETTER, QVL_NFC_STARTS},     {0x301, QVL_KIND_MARK, QVL_NFC_CHANGES},
        {0x334, QVL_KIND_MARK, QVL_NFC_MOVES},      {0x212b, QVL_KIND_LETTER, QVL_NFC_CHANGES},
        {0x1161, QVL_KIND_LETTER, QVL_NFC_CHANGES}, {0xac00, QVL_KIND_LETTER, QVL_NFC_STARTS},
        {0x10d40, QVL_KIND_NUMBER, QVL_NFC_STARTS}, /* Unicode 16 */
        {0x105c9, QVL_KIND_LETTER, QVL_NFC_INERT},  /* Unicode 16, has a decomposition that the reference lacks */
        {0x1ac1, QVL_KIND_MARK, QVL_NFC_INERT}, /* Unicode 14, has a combining class that the reference lacks */
        {0x180e, QVL_KIND_OTHER, QVL_NFC_STARTS},   {0x85, QVL_KIND_SPACE, QVL_NFC_STARTS},
        {0x1c, QVL_KIND_OTHER, QVL_NFC_STARTS},     {0x10ffff, QVL_KIND_OTHER, QVL_NFC_STARTS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t value = qvl_unicode_value(&unicode, cases[i].code);
        assert_int_equal(value & QVL_KIND, cases[i].kind);
        assert_int_equal(value & QVL_NFC, cases[i].nfc);
    }
    for (size_t i = 1; i < qvl_unicode_range_count; i++)
        assert_true(qvl_unicode_ranges[3 * i - 2] < qvl_unicode_ranges[3 * i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_all_code_points),
        cmocka_unit_test(test_random_text),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
