#include "text/split.h"

static const struct {
    const char *name, *pattern;
} splitters[QVL_SPLITTERS] = {
    {"none", NULL},
    {"gpt2", "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"},
    {"qwen2", "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
              "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
    {"qwen3_5", "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}"
                "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
};

const char *qvl_splitter_name(qvl_splitter splitter) {
    return splitters[splitter].name;
}

const char *qvl_splitter_pattern(qvl_splitter splitter) {
    return splitters[splitter].pattern;
}

/* A text being scanned. Sets of kinds are bits, 1 << QVL_KIND_*. */
typedef struct scan {
    const qvl_unicode *unicode;
    const uint8_t *text;
    size_t end;
} scan;

#define LETTERS (1u << QVL_KIND_LETTER)
#define MARKS (1u << QVL_KIND_MARK)
#define NUMBERS (1u << QVL_KIND_NUMBER)
#define SPACES (1u << QVL_KIND_SPACE)
#define OTHERS (1u << QVL_KIND_OTHER)

/* The kind, as a set of one, of the character at `at` < end. */
static unsigned kind_at(const scan *s, size_t at, size_t *size) {
    return 1u << (qvl_unicode_value(s->unicode, qvl_utf8_get(s->text + at, size)) & QVL_KIND);
}

/* The end of the run of characters of these kinds. */
static size_t run(const scan *s, size_t at, unsigned kinds) {
    size_t size;
    while (at < s->end && kind_at(s, at, &size) & kinds) at += size;
    return at;
}

static bool is_newline(uint8_t byte) {
    return byte == '\r' || byte == '\n';
}

/* 's 't 're 've 'm 'll 'd behind an apostrophe at `at`; its end, or `at` where there is none. any_case: letters of
 * both cases, and U+017F, which is an s to the reference. */
static size_t contraction(const scan *s, size_t at, bool any_case) {
    const uint8_t *p = s->text + at;
    size_t left = s->end - at;
    if (left < 2) return at;
    uint8_t fold = any_case ? 0x20 : 0, a = (uint8_t)(p[1] | fold), b = left > 2 ? (uint8_t)(p[2] | fold) : 0;
    if (p[1] < 0x80) {
        if (a == 's' || a == 't' || a == 'm' || a == 'd') return at + 2;
        if (left > 2 && p[2] < 0x80 && ((b == 'e' && (a == 'r' || a == 'v')) || (b == 'l' && a == 'l')))
            return at + 3;
        return at;
    }
    return any_case && left > 2 && p[1] == 0xc5 && p[2] == 0xbf ? at + 3 : at;
}

/* \s+(?!\S)|\s+ of a run of white space at..run_end. */
static size_t spaces(const scan *s, size_t at, size_t run_end) {
    if (run_end == s->end) return run_end;
    size_t last = qvl_utf8_back(s->text, run_end);
    return last > at ? last : run_end;
}

/* word_kinds: letters, or letters and marks. */
static size_t next_qwen(const scan *s, size_t at, unsigned word_kinds) {
    size_t size, next_size = 0;
    uint8_t first = s->text[at];
    unsigned kind = kind_at(s, at, &size);
    if (first == '\'') {
        size_t end = contraction(s, at, true);
        if (end > at) return end;
    }
    size_t next = at + size;
    if (kind & word_kinds) return run(s, next, word_kinds);
    if (kind & NUMBERS) return next;
    unsigned next_kind = next < s->end ? kind_at(s, next, &next_size) : 0;
    if (next_kind & word_kinds && !is_newline(first)) return run(s, next + next_size, word_kinds);
    unsigned rest = (OTHERS | MARKS) & ~word_kinds;
    if (kind & rest || (first == ' ' && next_kind & rest)) {
        next = run(s, next, rest);
        while (next < s->end && is_newline(s->text[next])) next++;
        return next;
    }
    size_t run_end = run(s, next, SPACES);
    for (size_t i = run_end; i > at; i--)
        if (is_newline(s->text[i - 1])) return i;
    return spaces(s, at, run_end);
}

static size_t next_gpt2(const scan *s, size_t at) {
    size_t size, next_size = 0, start = at;
    if (s->text[at] == '\'') {
        size_t end = contraction(s, at, false);
        if (end > at) return end;
    }
    unsigned kind = kind_at(s, at, &size);
    if (s->text[at] == ' ' && at + 1 < s->end) {
        unsigned next_kind = kind_at(s, at + 1, &next_size);
        if (!(next_kind & SPACES)) {
            kind = next_kind;
            start = at + 1;
        }
    }
    if (kind & SPACES) return spaces(s, at, run(s, at, SPACES));
    if (kind & (LETTERS | NUMBERS)) return run(s, start, kind);
    return run(s, start, OTHERS | MARKS);
}

size_t qvl_split_next(qvl_splitter splitter, const qvl_unicode *unicode, const uint8_t *text, size_t at,
                      size_t end) {
    scan s = {.unicode = unicode, .text = text, .end = end};
    switch (splitter) {
    case QVL_SPLIT_GPT2:
        return next_gpt2(&s, at);
    case QVL_SPLIT_QWEN2:
        return next_qwen(&s, at, LETTERS);
    case QVL_SPLIT_QWEN35:
        return next_qwen(&s, at, LETTERS | MARKS);
    default:
        return end;
    }
}
