/* Classes and case of characters as Python's str has them, from utf8proc; full case mappings, which utf8proc lacks,
 * from a table. */
#include "text/jinja/text.h"

#include <utf8proc.h>

/* Characters that become two or three: SpecialCasing.txt's unconditional mappings. */
static const struct special_case {
    uint16_t character, upper[3], title[3];
} special_cases[] = {{0xdf, {0x53, 0x53}, {0x53, 0x73}},
                     {0x149, {0x2bc, 0x4e}, {0x2bc, 0x4e}},
                     {0x1f0, {0x4a, 0x30c}, {0x4a, 0x30c}},
                     {0x390, {0x399, 0x308, 0x301}, {0x399, 0x308, 0x301}},
                     {0x3b0, {0x3a5, 0x308, 0x301}, {0x3a5, 0x308, 0x301}},
                     {0x587, {0x535, 0x552}, {0x535, 0x582}},
                     {0x1e96, {0x48, 0x331}, {0x48, 0x331}},
                     {0x1e97, {0x54, 0x308}, {0x54, 0x308}},
                     {0x1e98, {0x57, 0x30a}, {0x57, 0x30a}},
                     {0x1e99, {0x59, 0x30a}, {0x59, 0x30a}},
                     {0x1e9a, {0x41, 0x2be}, {0x41, 0x2be}},
                     {0x1f50, {0x3a5, 0x313}, {0x3a5, 0x313}},
                     {0x1f52, {0x3a5, 0x313, 0x300}, {0x3a5, 0x313, 0x300}},
                     {0x1f54, {0x3a5, 0x313, 0x301}, {0x3a5, 0x313, 0x301}},
                     {0x1f56, {0x3a5, 0x313, 0x342}, {0x3a5, 0x313, 0x342}},
                     {0x1f80, {0x1f08, 0x399}, {0x1f88}},
                     {0x1f81, {0x1f09, 0x399}, {0x1f89}},
                     {0x1f82, {0x1f0a, 0x399}, {0x1f8a}},
                     {0x1f83, {0x1f0b, 0x399}, {0x1f8b}},
                     {0x1f84, {0x1f0c, 0x399}, {0x1f8c}},
                     {0x1f85, {0x1f0d, 0x399}, {0x1f8d}},
                     {0x1f86, {0x1f0e, 0x399}, {0x1f8e}},
                     {0x1f87, {0x1f0f, 0x399}, {0x1f8f}},
                     {0x1f88, {0x1f08, 0x399}, {0x1f88}},
                     {0x1f89, {0x1f09, 0x399}, {0x1f89}},
                     {0x1f8a, {0x1f0a, 0x399}, {0x1f8a}},
                     {0x1f8b, {0x1f0b, 0x399}, {0x1f8b}},
                     {0x1f8c, {0x1f0c, 0x399}, {0x1f8c}},
                     {0x1f8d, {0x1f0d, 0x399}, {0x1f8d}},
                     {0x1f8e, {0x1f0e, 0x399}, {0x1f8e}},
                     {0x1f8f, {0x1f0f, 0x399}, {0x1f8f}},
                     {0x1f90, {0x1f28, 0x399}, {0x1f98}},
                     {0x1f91, {0x1f29, 0x399}, {0x1f99}},
                     {0x1f92, {0x1f2a, 0x399}, {0x1f9a}},
                     {0x1f93, {0x1f2b, 0x399}, {0x1f9b}},
                     {0x1f94, {0x1f2c, 0x399}, {0x1f9c}},
                     {0x1f95, {0x1f2d, 0x399}, {0x1f9d}},
                     {0x1f96, {0x1f2e, 0x399}, {0x1f9e}},
                     {0x1f97, {0x1f2f, 0x399}, {0x1f9f}},
                     {0x1f98, {0x1f28, 0x399}, {0x1f98}},
                     {0x1f99, {0x1f29, 0x399}, {0x1f99}},
                     {0x1f9a, {0x1f2a, 0x399}, {0x1f9a}},
                     {0x1f9b, {0x1f2b, 0x399}, {0x1f9b}},
                     {0x1f9c, {0x1f2c, 0x399}, {0x1f9c}},
                     {0x1f9d, {0x1f2d, 0x399}, {0x1f9d}},
                     {0x1f9e, {0x1f2e, 0x399}, {0x1f9e}},
                     {0x1f9f, {0x1f2f, 0x399}, {0x1f9f}},
                     {0x1fa0, {0x1f68, 0x399}, {0x1fa8}},
                     {0x1fa1, {0x1f69, 0x399}, {0x1fa9}},
                     {0x1fa2, {0x1f6a, 0x399}, {0x1faa}},
                     {0x1fa3, {0x1f6b, 0x399}, {0x1fab}},
                     {0x1fa4, {0x1f6c, 0x399}, {0x1fac}},
                     {0x1fa5, {0x1f6d, 0x399}, {0x1fad}},
                     {0x1fa6, {0x1f6e, 0x399}, {0x1fae}},
                     {0x1fa7, {0x1f6f, 0x399}, {0x1faf}},
                     {0x1fa8, {0x1f68, 0x399}, {0x1fa8}},
                     {0x1fa9, {0x1f69, 0x399}, {0x1fa9}},
                     {0x1faa, {0x1f6a, 0x399}, {0x1faa}},
                     {0x1fab, {0x1f6b, 0x399}, {0x1fab}},
                     {0x1fac, {0x1f6c, 0x399}, {0x1fac}},
                     {0x1fad, {0x1f6d, 0x399}, {0x1fad}},
                     {0x1fae, {0x1f6e, 0x399}, {0x1fae}},
                     {0x1faf, {0x1f6f, 0x399}, {0x1faf}},
                     {0x1fb2, {0x1fba, 0x399}, {0x1fba, 0x345}},
                     {0x1fb3, {0x391, 0x399}, {0x1fbc}},
                     {0x1fb4, {0x386, 0x399}, {0x386, 0x345}},
                     {0x1fb6, {0x391, 0x342}, {0x391, 0x342}},
                     {0x1fb7, {0x391, 0x342, 0x399}, {0x391, 0x342, 0x345}},
                     {0x1fbc, {0x391, 0x399}, {0x1fbc}},
                     {0x1fc2, {0x1fca, 0x399}, {0x1fca, 0x345}},
                     {0x1fc3, {0x397, 0x399}, {0x1fcc}},
                     {0x1fc4, {0x389, 0x399}, {0x389, 0x345}},
                     {0x1fc6, {0x397, 0x342}, {0x397, 0x342}},
                     {0x1fc7, {0x397, 0x342, 0x399}, {0x397, 0x342, 0x345}},
                     {0x1fcc, {0x397, 0x399}, {0x1fcc}},
                     {0x1fd2, {0x399, 0x308, 0x300}, {0x399, 0x308, 0x300}},
                     {0x1fd3, {0x399, 0x308, 0x301}, {0x399, 0x308, 0x301}},
                     {0x1fd6, {0x399, 0x342}, {0x399, 0x342}},
                     {0x1fd7, {0x399, 0x308, 0x342}, {0x399, 0x308, 0x342}},
                     {0x1fe2, {0x3a5, 0x308, 0x300}, {0x3a5, 0x308, 0x300}},
                     {0x1fe3, {0x3a5, 0x308, 0x301}, {0x3a5, 0x308, 0x301}},
                     {0x1fe4, {0x3a1, 0x313}, {0x3a1, 0x313}},
                     {0x1fe6, {0x3a5, 0x342}, {0x3a5, 0x342}},
                     {0x1fe7, {0x3a5, 0x308, 0x342}, {0x3a5, 0x308, 0x342}},
                     {0x1ff2, {0x1ffa, 0x399}, {0x1ffa, 0x345}},
                     {0x1ff3, {0x3a9, 0x399}, {0x1ffc}},
                     {0x1ff4, {0x38f, 0x399}, {0x38f, 0x345}},
                     {0x1ff6, {0x3a9, 0x342}, {0x3a9, 0x342}},
                     {0x1ff7, {0x3a9, 0x342, 0x399}, {0x3a9, 0x342, 0x345}},
                     {0x1ffc, {0x3a9, 0x399}, {0x1ffc}},
                     {0xfb00, {0x46, 0x46}, {0x46, 0x66}},
                     {0xfb01, {0x46, 0x49}, {0x46, 0x69}},
                     {0xfb02, {0x46, 0x4c}, {0x46, 0x6c}},
                     {0xfb03, {0x46, 0x46, 0x49}, {0x46, 0x66, 0x69}},
                     {0xfb04, {0x46, 0x46, 0x4c}, {0x46, 0x66, 0x6c}},
                     {0xfb05, {0x53, 0x54}, {0x53, 0x74}},
                     {0xfb06, {0x53, 0x54}, {0x53, 0x74}},
                     {0xfb13, {0x544, 0x546}, {0x544, 0x576}},
                     {0xfb14, {0x544, 0x535}, {0x544, 0x565}},
                     {0xfb15, {0x544, 0x53b}, {0x544, 0x56b}},
                     {0xfb16, {0x54e, 0x546}, {0x54e, 0x576}},
                     {0xfb17, {0x544, 0x53d}, {0x544, 0x56d}}};

static const struct special_case *find_special(uint32_t character) {
    size_t low = 0, high = sizeof special_cases / sizeof special_cases[0];
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (special_cases[middle].character == character) return &special_cases[middle];
        if (special_cases[middle].character < character)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static utf8proc_category_t category(uint32_t character) {
    return utf8proc_category((utf8proc_int32_t)character);
}

bool jinja_is_space(uint32_t c) {
    if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x1f);
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

bool jinja_is_line_end(uint32_t c) {
    return (c >= 10 && c <= 13) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool jinja_is_alpha(uint32_t c) {
    if (c < 0x80) return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
    utf8proc_category_t k = category(c);
    return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool jinja_is_decimal(uint32_t c) {
    return c < 0x80 ? c >= '0' && c <= '9' : category(c) == UTF8PROC_CATEGORY_ND;
}

bool jinja_is_numeric(uint32_t c) {
    if (c < 0x80) return c >= '0' && c <= '9';
    utf8proc_category_t k = category(c);
    return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}

bool jinja_is_word(uint32_t c) {
    return c == '_' || jinja_is_alpha(c) || jinja_is_numeric(c);
}

bool jinja_is_printable(uint32_t c) {
    if (c < 0x80) return c >= 0x20 && c != 0x7f;
    utf8proc_category_t k = category(c);
    return k != UTF8PROC_CATEGORY_CN && (k < UTF8PROC_CATEGORY_ZS || k > UTF8PROC_CATEGORY_CO);
}

bool jinja_is_lower(uint32_t c) {
    return category(c) == UTF8PROC_CATEGORY_LL;
}

bool jinja_is_upper(uint32_t c) {
    return category(c) == UTF8PROC_CATEGORY_LU;
}

bool jinja_is_title(uint32_t c) {
    return category(c) == UTF8PROC_CATEGORY_LT;
}

bool jinja_starts_identifier(uint32_t c) {
    return c == '_' || jinja_is_alpha(c) || (c >= 0x80 && category(c) == UTF8PROC_CATEGORY_NL);
}

bool jinja_goes_on_identifier(uint32_t c) {
    if (jinja_starts_identifier(c) || jinja_is_decimal(c)) return true;
    utf8proc_category_t k = category(c);
    return c >= 0x80 && (k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_PC);
}

static bool is_cased(uint32_t c) {
    utf8proc_category_t k = category(c);
    return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT;
}

/* Marks, modifiers and the like, which a look for a neighbouring letter passes over. */
static bool is_case_ignorable(uint32_t c) {
    utf8proc_category_t k = category(c);
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_ME || k == UTF8PROC_CATEGORY_CF ||
           k == UTF8PROC_CATEGORY_LM || k == UTF8PROC_CATEGORY_SK || c == '\'' || c == '.' || c == ':' ||
           c == 0xb7;
}

/* A capital sigma at a byte becomes the final form if a letter is before it and none behind. */
static bool is_final_sigma(const jinja_string *source, size_t at) {
    uint32_t c = 0;
    size_t before = at, after = at;
    do {
        if (before == 0) return false;
        before -= jinja_decode_before(source->data, before, &c);
    } while (is_case_ignorable(c));
    if (!is_cased(c)) return false;
    after += jinja_decode(source->data, after, &c);
    do {
        if (after == source->length) return true;
        after += jinja_decode(source->data, after, &c);
    } while (is_case_ignorable(c));
    return !is_cased(c);
}

static bool put_lower(jinja_text *text, const jinja_string *source, size_t at, uint32_t c) {
    if (c == 0x130) return jinja_text_put(text, 'i') && jinja_text_put(text, 0x307);
    if (c == 0x3a3 && is_final_sigma(source, at)) return jinja_text_put(text, 0x3c2);
    return jinja_text_put(text, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c));
}

static bool put_folded(jinja_text *text, uint32_t c) {
    utf8proc_int32_t folded[8];
    int boundary = 0;
    utf8proc_ssize_t count = utf8proc_decompose_char((utf8proc_int32_t)c, folded, 8, UTF8PROC_CASEFOLD, &boundary);
    for (utf8proc_ssize_t i = 0; i < count && i < 8; i++)
        if (!jinja_text_put(text, (uint32_t)folded[i])) return false;
    return true;
}

bool jinja_text_case(jinja_text *text, const jinja_string *source, size_t at, uint32_t c, jinja_case mode) {
    if (c < 0x80) {
        bool lower = mode == JINJA_LOWER || mode == JINJA_FOLD;
        if (lower ? c >= 'A' && c <= 'Z' : c >= 'a' && c <= 'z') c ^= 0x20;
        return jinja_text_put(text, c);
    }
    if (mode == JINJA_FOLD) return put_folded(text, c);
    if (mode == JINJA_LOWER) return put_lower(text, source, at, c);
    const struct special_case *special = find_special(c);
    if (!special)
        return jinja_text_put(text, (uint32_t)(mode == JINJA_UPPER ? utf8proc_toupper((utf8proc_int32_t)c)
                                                                   : utf8proc_totitle((utf8proc_int32_t)c)));
    const uint16_t *to = mode == JINJA_UPPER ? special->upper : special->title;
    for (int i = 0; i < 3 && to[i]; i++)
        if (!jinja_text_put(text, to[i])) return false;
    return true;
}

bool jinja_text_convert(jinja_text *text, const jinja_string *source, size_t from, size_t to, jinja_case mode) {
    while (from < to) {
        uint32_t character;
        size_t count = jinja_decode(source->data, from, &character);
        if (!jinja_text_case(text, source, from, character, mode)) return false;
        from += count;
    }
    return true;
}
