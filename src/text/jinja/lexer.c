#define _GNU_SOURCE
#include "text/jinja/lexer.h"

#include "text/jinja/number.h"
#include "text/jinja/text.h"

#include <stdio.h>
#include <string.h>

/* Deeper than the parser goes. */
#define JINJA_MAX_BRACKETS 256

typedef struct lexer {
    jinja_run *run;
    const char *source;
    size_t length, at;
    bool line_starts; /* what was read last ended in a newline; so does the beginning */
    jinja_token *tokens;
    size_t count, capacity;
    char open[JINJA_MAX_BRACKETS]; /* the closing brackets that are awaited */
    size_t open_count;
} lexer;

static const struct sign {
    const char *text;
    uint8_t kind;
} signs[] = {
    {"//", TOKEN_FLOORDIV}, {"**", TOKEN_POW},   {"==", TOKEN_EQ},      {"!=", TOKEN_NE},      {">=", TOKEN_GE},
    {"<=", TOKEN_LE},       {"+", TOKEN_ADD},    {"-", TOKEN_SUB},      {"/", TOKEN_DIV},      {"*", TOKEN_MUL},
    {"%", TOKEN_MOD},       {"~", TOKEN_TILDE},  {"[", TOKEN_LBRACKET}, {"]", TOKEN_RBRACKET}, {"(", TOKEN_LPAREN},
    {")", TOKEN_RPAREN},    {"{", TOKEN_LBRACE}, {"}", TOKEN_RBRACE},   {">", TOKEN_GT},       {"<", TOKEN_LT},
    {"=", TOKEN_ASSIGN},    {".", TOKEN_DOT},    {":", TOKEN_COLON},    {"|", TOKEN_PIPE},     {",", TOKEN_COMMA},
    {";", TOKEN_SEMICOLON},
};
#define SIGN_COUNT (sizeof signs / sizeof signs[0])

const char *jinja_describe(jinja_token_kind kind) {
    static const char *const names[] = {
        [TOKEN_END] = "end of template",
        [TOKEN_DATA] = "template data / text",
        [TOKEN_VARIABLE_BEGIN] = "begin of print statement",
        [TOKEN_VARIABLE_END] = "end of print statement",
        [TOKEN_BLOCK_BEGIN] = "begin of statement block",
        [TOKEN_BLOCK_END] = "end of statement block",
        [TOKEN_NAME] = "name",
        [TOKEN_STRING] = "string",
        [TOKEN_INTEGER] = "integer",
        [TOKEN_FLOAT] = "float",
    };
    for (size_t i = 0; i < SIGN_COUNT; i++)
        if (signs[i].kind == kind) return signs[i].text;
    return names[kind];
}

/* -------------------------------------------------------------------------------------------------- small steps */

static bool fault(lexer *l, size_t at, const char *text) {
    jinja_run *run = l->run;
    if (!run->status) {
        run->located = true;
        run->offset = (uint32_t)at;
        jinja_raise(run, "%s", text);
    }
    return false;
}

static bool looking_at(const lexer *l, size_t at, const char *text) {
    size_t length = strlen(text);
    return l->length - at >= length && memcmp(l->source + at, text, length) == 0;
}

static size_t skip_space(const lexer *l, size_t at) {
    while (at < l->length) {
        uint32_t character;
        size_t count = jinja_decode(l->source, at, &character);
        if (!jinja_is_space(character)) break;
        at += count;
    }
    return at;
}

static bool add(lexer *l, uint8_t kind, size_t offset, jinja_value value) {
    if (l->count == l->capacity) {
        size_t capacity = l->capacity ? l->capacity * 2 : 256;
        jinja_token *tokens = jinja_take(l->run, capacity, sizeof *tokens);
        if (!tokens) return false;
        if (l->count) memcpy(tokens, l->tokens, l->count * sizeof *tokens);
        l->tokens = tokens;
        l->capacity = capacity;
    }
    l->tokens[l->count++] = (jinja_token){.kind = kind, .offset = (uint32_t)offset, .value = value};
    return true;
}

static bool add_data(lexer *l, size_t start, size_t end) {
    jinja_value data;
    if (start >= end) return true;
    return jinja_view_string(l->run, l->source + start, end - start, &data) && add(l, TOKEN_DATA, start, data);
}

/* -------------------------------------------------------------------------------------------- words and numbers */

static bool lex_name(lexer *l) {
    size_t start = l->at, at = start;
    jinja_value name;
    while (at < l->length) {
        uint32_t character;
        size_t count = jinja_decode(l->source, at, &character);
        if (!jinja_goes_on_identifier(character)) break;
        at += count;
    }
    l->at = at;
    return jinja_view_string(l->run, l->source + start, at - start, &name) && add(l, TOKEN_NAME, start, name);
}

static bool is_digit(const lexer *l, size_t at) {
    return at < l->length && l->source[at] >= '0' && l->source[at] <= '9';
}

/* Digits with single underscores between them; returns where they end. */
static size_t digits_end(const lexer *l, size_t at) {
    while (is_digit(l, at) || (at < l->length && l->source[at] == '_' && is_digit(l, at + 1))) at++;
    return at;
}

/* Where a floating point number that starts here ends, or at. */
static size_t float_end(const lexer *l, size_t at) {
    if (!is_digit(l, at) || (at > 0 && l->source[at - 1] == '.')) return at;
    size_t end = digits_end(l, at);
    bool fraction = end < l->length && l->source[end] == '.' && is_digit(l, end + 1);
    if (fraction) end = digits_end(l, end + 1);
    size_t exponent = end;
    if (exponent < l->length && (l->source[exponent] | 0x20) == 'e') {
        exponent++;
        if (exponent < l->length && (l->source[exponent] == '+' || l->source[exponent] == '-')) exponent++;
        if (is_digit(l, exponent)) return digits_end(l, exponent);
    }
    return fraction ? end : at;
}

static bool lex_float(lexer *l, size_t end) {
    double real;
    bool ok;
    size_t start = l->at;
    if (!jinja_parse_float(l->run, l->source + start, end - start, &real, &ok)) return false;
    if (!ok) return fault(l, start, "a number is too long");
    l->at = end;
    return add(l, TOKEN_FLOAT, start, jinja_float(real));
}

static bool is_base_digit(const lexer *l, size_t at, int base) {
    if (at >= l->length) return false;
    char c = l->source[at];
    int digit = c >= '0' && c <= '9'                     ? c - '0'
                : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                         : 99;
    return digit < base;
}

static size_t integer_end(const lexer *l, size_t at) {
    static const struct {
        const char *prefixes[2];
        int base;
    } bases[] = {{{"0b", "0B"}, 2}, {{"0o", "0O"}, 8}, {{"0x", "0X"}, 16}};
    for (size_t i = 0; i < 3; i++) {
        if (!looking_at(l, at, bases[i].prefixes[0]) && !looking_at(l, at, bases[i].prefixes[1])) continue;
        size_t end = at + 2;
        while (is_base_digit(l, end, bases[i].base) ||
               (end < l->length && l->source[end] == '_' && is_base_digit(l, end + 1, bases[i].base)))
            end++;
        if (end > at + 2) return end;
    }
    if (l->source[at] != '0') return digits_end(l, at);
    size_t end = at + 1;
    while (end < l->length && (l->source[end] == '0' || (l->source[end] == '_' && looking_at(l, end + 1, "0"))))
        end++;
    return end;
}

static bool lex_integer(lexer *l) {
    size_t start = l->at, end = integer_end(l, start);
    jinja_value value;
    bool ok;
    if (!jinja_parse_int(l->run, l->source + start, end - start, 0, &value, &ok)) return false;
    if (!ok) return fault(l, start, "a number is too long");
    l->at = end;
    return add(l, TOKEN_INTEGER, start, value);
}

/* ------------------------------------------------------------------------------------------------------ strings */

/* So many hexadecimal digits of an escape. */
static bool escape_hex(lexer *l, jinja_text *text, size_t *at, size_t end, int digits) {
    uint32_t code = 0;
    for (int i = 0; i < digits; i++, ++*at) {
        if (*at >= end || !is_base_digit(l, *at, 16))
            return fault(l, *at,
                         digits == 2   ? "truncated \\xXX escape"
                         : digits == 4 ? "truncated \\uXXXX escape"
                                       : "truncated \\UXXXXXXXX escape");
        char c = l->source[*at];
        code = code * 16 + (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        if (code > 0x10ffff) return fault(l, *at, "illegal Unicode character");
    }
    if (code >= 0xd800 && code <= 0xdfff) return fault(l, *at, "half a surrogate pair in an escape");
    return jinja_text_put(text, code);
}

static bool escape_octal(lexer *l, jinja_text *text, size_t *at, size_t end) {
    uint32_t code = 0;
    for (int i = 0; i < 3 && *at < end && l->source[*at] >= '0' && l->source[*at] <= '7'; i++, ++*at)
        code = code * 8 + (uint32_t)(l->source[*at] - '0');
    return jinja_text_put(text, code);
}

/* *at: behind the backslash. */
static bool unescape(lexer *l, jinja_text *text, size_t *at, size_t end) {
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    char c = l->source[*at];
    const char *found = c ? strchr(from, c) : NULL;
    if (c >= '0' && c <= '7') return escape_octal(l, text, at, end);
    if (c == 'N') return fault(l, *at, "\\N escapes are not supported");
    if (found || c == '\n' || c == 'x' || c == 'u' || c == 'U') ++*at;
    if (found) return jinja_text_put(text, (uint8_t)to[found - from]);
    if (c == '\n') return true;
    if (c == 'x' || c == 'u' || c == 'U') return escape_hex(l, text, at, end, c == 'x' ? 2 : c == 'u' ? 4 : 8);
    return jinja_text_put(text, '\\');
}

static bool lex_string(lexer *l) {
    size_t start = l->at, at = start + 1;
    char quote = l->source[start];
    while (at < l->length && l->source[at] != quote) at += l->source[at] == '\\' ? 2 : 1;
    if (at >= l->length) {
        char message[64];
        snprintf(message, sizeof message, "unexpected char %s", quote == '"' ? "'\"'" : "\"'\"");
        return fault(l, start, message);
    }
    size_t end = at;
    jinja_text text = {.run = l->run};
    jinja_value string;
    for (at = start + 1; at < end;) {
        const char *backslash = memchr(l->source + at, '\\', end - at);
        size_t plain = backslash ? (size_t)(backslash - l->source) : end;
        if (!jinja_text_add(&text, l->source + at, plain - at)) return false;
        at = plain;
        if (!backslash) break;
        at++;
        if (!unescape(l, &text, &at, end)) return false;
    }
    l->at = end + 1;
    if (!jinja_text_finish(&text, &string)) return false;
    /* A view of its own: threads share it, so nothing may be joined to it in place. */
    if (!jinja_view_string(l->run, string.as.string->data, string.as.string->length, &string)) return false;
    return add(l, TOKEN_STRING, start, string);
}

/* -------------------------------------------------------------------------------------------------- expressions */

static bool unexpected(lexer *l, size_t at) {
    char message[64];
    uint32_t character;
    int count = (int)jinja_decode(l->source, at, &character);
    snprintf(message, sizeof message, "unexpected char '%.*s'", count, l->source + at);
    return fault(l, at, message);
}

static bool lex_sign(lexer *l) {
    for (size_t i = 0; i < SIGN_COUNT; i++) {
        if (!looking_at(l, l->at, signs[i].text)) continue;
        char message[64], sign = signs[i].text[0];
        if (sign == '(' || sign == '[' || sign == '{') {
            if (l->open_count == sizeof l->open) return fault(l, l->at, "brackets are nested too deep");
            l->open[l->open_count++] = sign == '(' ? ')' : sign == '[' ? ']' : '}';
        } else if (sign == ')' || sign == ']' || sign == '}') {
            char expected = l->open_count ? l->open[l->open_count - 1] : 0;
            snprintf(message, sizeof message, expected ? "unexpected '%c', expected '%c'" : "unexpected '%c'",
                     sign, expected);
            if (expected != sign) return fault(l, l->at, message);
            l->open_count--;
        }
        if (!add(l, signs[i].kind, l->at, jinja_none())) return false;
        l->at += strlen(signs[i].text);
        return true;
    }
    return unexpected(l, l->at);
}

static bool lex_word(lexer *l) {
    uint32_t character;
    jinja_decode(l->source, l->at, &character);
    if (is_digit(l, l->at)) {
        size_t end = float_end(l, l->at);
        return end > l->at ? lex_float(l, end) : lex_integer(l);
    }
    if (jinja_starts_identifier(character)) return lex_name(l);
    if (character == '"' || character == '\'') return lex_string(l);
    return lex_sign(l);
}

/* Where the end of a tag that starts here ends, or at: "%}" and the newline behind it, "-%}" and all white space
 * behind it, "+%}". A variable has no newline rule and no "+". */
static size_t tag_end(const lexer *l, size_t at, const char *end, bool variable) {
    char first = l->source[at];
    if (first == '-' && looking_at(l, at + 1, end)) return skip_space(l, at + 3);
    if (first == '+' && !variable && looking_at(l, at + 1, end)) return at + 3;
    if (!looking_at(l, at, end)) return at;
    return at + 2 + (!variable && looking_at(l, at + 2, "\n"));
}

/* From behind "{{" or "{%" and its sign to the end of the tag. */
static bool lex_tag(lexer *l, bool variable) {
    const char *end_sign = variable ? "}}" : "%}";
    while (l->at < l->length) {
        size_t end = l->open_count ? l->at : tag_end(l, l->at, end_sign, variable);
        if (end > l->at) {
            if (!add(l, variable ? TOKEN_VARIABLE_END : TOKEN_BLOCK_END, l->at, jinja_none())) return false;
            l->line_starts = l->source[end - 1] == '\n';
            l->at = end;
            return true;
        }
        size_t next = skip_space(l, l->at);
        if (next > l->at)
            l->at = next;
        else if (!lex_word(l))
            return false;
    }
    return true; /* the parser finds the end of the template */
}

/* ---------------------------------------------------------------------------------------------- between the tags */

/* Data up to a tag at end, whose sign is given: what white space stays. */
static bool lex_data(lexer *l, size_t start, size_t end, char sign, bool variable) {
    size_t stop = end;
    if (sign == '-') {
        while (stop > start) {
            uint32_t character;
            size_t count = jinja_decode_before(l->source, stop, &character);
            if (!jinja_is_space(character)) break;
            stop -= count;
        }
    } else if (sign != '+' && !variable) {
        const char *newline = memrchr(l->source + start, '\n', end - start);
        size_t line = newline ? (size_t)(newline + 1 - l->source) : start;
        if ((newline || l->line_starts) && skip_space(l, line) >= end) stop = line;
    }
    return add_data(l, start, stop);
}

static bool lex_comment(lexer *l, size_t start) {
    for (size_t at = l->at; at < l->length; at++) {
        size_t end = tag_end(l, at, "#}", false);
        if (end == at) continue;
        l->line_starts = l->source[end - 1] == '\n';
        l->at = end;
        return true;
    }
    return fault(l, start, "Missing end of comment tag");
}

/* Behind "{%" and its sign: the end of "raw %}" or "endraw %}", or at. */
static size_t word_tag_end(const lexer *l, size_t at, const char *word, bool trims) {
    size_t next = skip_space(l, at);
    if (!looking_at(l, next, word)) return at;
    next = skip_space(l, next + strlen(word));
    if (trims)
        return next < l->length && tag_end(l, next, "%}", false) > next ? tag_end(l, next, "%}", false) : at;
    if (looking_at(l, next, "-%}")) return skip_space(l, next + 3);
    return looking_at(l, next, "%}") ? next + 2 : at;
}

static bool is_sign(const lexer *l, size_t at) {
    return at < l->length && (l->source[at] == '-' || l->source[at] == '+');
}

static bool lex_raw(lexer *l, size_t start) {
    for (size_t at = l->at; at < l->length; at++) {
        if (!looking_at(l, at, "{%")) continue;
        size_t behind = at + 2 + is_sign(l, at + 2), end = word_tag_end(l, behind, "endraw", true);
        if (end == behind) continue;
        if (!lex_data(l, l->at, at, is_sign(l, at + 2) ? l->source[at + 2] : 0, false)) return false;
        l->line_starts = l->source[end - 1] == '\n';
        l->at = end;
        return true;
    }
    return fault(l, start, "Missing end of raw directive");
}

/* The next "{{", "{%" or "{#", or the end. */
static size_t find_tag(const lexer *l) {
    for (size_t at = l->at; at < l->length;) {
        const char *brace = memchr(l->source + at, '{', l->length - at);
        if (!brace) break;
        at = (size_t)(brace - l->source);
        if (at + 1 < l->length && strchr("{%#", l->source[at + 1]) && l->source[at + 1]) return at;
        at++;
    }
    return l->length;
}

static bool lex_next(lexer *l) {
    size_t start = l->at, tag = find_tag(l);
    if (tag == l->length) {
        l->at = tag;
        return add_data(l, start, tag);
    }
    char kind = l->source[tag + 1];
    size_t behind = tag + 2 + is_sign(l, tag + 2);
    char sign = behind > tag + 2 ? l->source[tag + 2] : 0;
    if (!lex_data(l, start, tag, sign, kind == '{')) return false;
    l->at = behind;
    l->line_starts = false;
    if (kind == '#') return lex_comment(l, tag);
    if (kind == '%') {
        size_t raw = word_tag_end(l, behind, "raw", false);
        if (raw > behind) {
            l->line_starts = l->source[raw - 1] == '\n';
            l->at = raw;
            return lex_raw(l, tag);
        }
    }
    if (!add(l, kind == '{' ? TOKEN_VARIABLE_BEGIN : TOKEN_BLOCK_BEGIN, tag, jinja_none())) return false;
    return lex_tag(l, kind == '{');
}

bool jinja_lex(jinja_run *run, const char *source, size_t length, jinja_token **tokens, size_t *count) {
    lexer l = {.run = run, .source = source, .length = length, .line_starts = true};
    while (l.at < length)
        if (!lex_next(&l)) return false;
    if (!add(&l, TOKEN_END, length, jinja_none())) return false;
    *tokens = l.tokens;
    *count = l.count;
    return true;
}
