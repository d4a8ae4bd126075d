/* Encoding, spans, marked text and decoding, with a vocabulary made for the purpose. */
#define _GNU_SOURCE
#include "small_tokenizer.h"

static qvl_tokens encode_bytes(const qvl_tokenizer *tokenizer, const char *text, size_t count, qvl_added added,
                               bool marked) {
    qvl_tokens tokens;
    qvl_tokenize_options options;
    qvl_error error = {0};
    qvl_tokenize_options_init(&options);
    options.added = added;
    options.marked = marked;
    assert_ok(qvl_tokenize(tokenizer, text, count, &options, &tokens, &error), &error);
    assert_int_equal(tokens.starts[0], 0);
    if (tokens.count) assert_int_equal(tokens.starts[tokens.count], count);
    for (size_t i = 0; i < tokens.count; i++) assert_true(tokens.starts[i] <= tokens.starts[i + 1]);
    return tokens;
}

static void assert_tokens(qvl_tokens *tokens, const int32_t *ids, size_t count) {
    assert_int_equal(tokens->count, count);
    for (size_t i = 0; i < count; i++) assert_int_equal(tokens->ids[i], ids[i]);
    qvl_tokens_free(tokens);
    assert_null(tokens->ids);
}

/* The ids of a text, added tokens recognised. */
#define assert_ids(tokenizer, text, ...)                                                                          \
    do {                                                                                                          \
        const int32_t wanted_[] = {__VA_ARGS__};                                                                  \
        qvl_tokens tokens_ = encode_bytes(tokenizer, text, strlen(text), QVL_ADDED_ALL, false);                   \
        assert_tokens(&tokens_, wanted_, sizeof wanted_ / sizeof wanted_[0]);                                     \
    } while (0)

static void test_words(void **state) {
    (void)state;
    test_folder folder;
    qvl_tokenizer *t = small_open(&folder, &small_words);
    assert_ids(t, "hello world", 259, 264);
    assert_ids(t, "hello<|a|> world<b>", 259, 270, 264, 271);
    assert_ids(t, "<|a|><|a|", 270, small_byte('<'), small_byte('|'), small_byte('a'), small_byte('|'));
    assert_ids(t, "hell held", 258, small_byte(' '), 256, 263);
    assert_ids(t, "   ab", 266, small_byte(' '), 265);
    assert_ids(t, "\n\nab", 268, 265);
    assert_ids(t, "e\xcc\x81", 267);
    assert_ids(t, "\xff", small_byte(0xef), small_byte(0xbf), small_byte(0xbd));
    qvl_tokens none = encode_bytes(t, NULL, 0, QVL_ADDED_ALL, false);
    assert_int_equal(none.count, 0);
    qvl_tokens_free(&none);
    qvl_tokenizer_info info;
    qvl_tokenizer_get_info(t, &info);
    assert_int_equal(info.base_count, 270);
    assert_int_equal(info.added_count, 2);
    assert_int_equal(info.id_limit, 272);
    assert_string_equal(info.splitter, "qwen2");
    assert_string_equal(info.folder, folder.path);
    qvl_tokenizer_close(&t);
    assert_null(t);
    folder_close(&folder);
}

/* Report 37: the same token has another id in another family. */
static void test_report_37_ids_of_families(void **state) {
    (void)state;
    test_folder a, b;
    const char *pad = "[{\"id\": %d, \"content\": \"<|image_pad|>\", \"special\": true}]";
    small_tokenizer one = {.merges = {"a b"}}, two = {.merges = {"a b", "b c", "c d"}};
    char first[128], second[128];
    snprintf(first, sizeof first, pad, 257);
    snprintf(second, sizeof second, pad, 259);
    one.added = first;
    two.added = second;
    qvl_tokenizer *x = small_open(&a, &one), *y = small_open(&b, &two);
    qvl_token token;
    assert_true(qvl_token_find(x, "<|image_pad|>", &token));
    assert_int_equal(token.id, 257);
    assert_true(token.added && token.special && token.byte_count == 13);
    assert_true(qvl_token_find(y, "<|image_pad|>", &token));
    assert_int_equal(token.id, 259);
    assert_int_equal(qvl_token_added(y, 0).id, 259);
    assert_ids(x, "<|image_pad|>", 257);
    assert_ids(y, "<|image_pad|>", 259);
    assert_false(qvl_token_find(y, "<|image_pad|", &token));
    assert_false(qvl_token_get(x, 258, &token));
    assert_false(qvl_token_get(x, -1, &token));
    assert_true(qvl_token_get(x, 256, &token));
    assert_string_equal(token.bytes, "ab");
    assert_false(token.added);
    qvl_tokenizer_close(&x);
    qvl_tokenizer_close(&y);
    folder_close(&a);
    folder_close(&b);
}

static void test_merge_forms(void **state) {
    (void)state;
    test_folder folder;
    small_tokenizer lists = small_words;
    lists.merge_lists = true;
    qvl_tokenizer *t = small_open(&folder, &lists);
    assert_ids(t, "hello world", 259, 264);
    qvl_tokenizer_close(&t);
    folder_close(&folder);
}

/* What the flags of added tokens do, as the reference does it. */
static void test_flags(void **state) {
    (void)state;
    test_folder folder;
    small_tokenizer small = {
        .merges = {"a b"},
        .added =
            "[{\"id\": 257, \"content\": \"<l>\", \"lstrip\": true, \"special\": true, \"normalized\": false},"
            "{\"id\": 258, \"content\": \"<r>\", \"rstrip\": true, \"special\": true, \"normalized\": false},"
            "{\"id\": 259, \"content\": \"xy\", \"single_word\": true, \"normalized\": false},"
            "{\"id\": 260, \"content\": \"\xc3\xa9!\", \"normalized\": true},"
            "{\"id\": 261, \"content\": \"xyz\", \"normalized\": false}]"};
    qvl_tokenizer *t = small_open(&folder, &small);
    int32_t a = small_byte('a'), space = small_byte(' '), x = small_byte('x'), y = small_byte('y');
    assert_ids(t, "a \n<l> a", a, 257, space, a);
    assert_ids(t, "a <r> \xe3\x80\x80 a", a, space, 258, a);
    assert_ids(t, "<r>  <l>", 258, 257);
    assert_ids(t, "xy axy xy!", 259, space, a, x, y, space, 259, small_byte('!'));
    assert_ids(t, "xyz", 261);
    assert_ids(t, "e\xcc\x81!", 260);
    qvl_tokens tokens = encode_bytes(t, "a <l> ab", 8, QVL_ADDED_ALL, false);
    assert_int_equal(tokens.count, 4);
    const size_t starts[] = {0, 1, 5, 6, 8};
    assert_memory_equal(tokens.starts, starts, sizeof starts);
    qvl_tokens_free(&tokens);
    qvl_tokenizer_close(&t);
    folder_close(&folder);
}

static void test_byte_level_options(void **state) {
    (void)state;
    test_folder folder;
    small_tokenizer small = small_words;
    small.pre_tokenizer = "{\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"use_regex\": true}";
    qvl_tokenizer *t = small_open(&folder, &small);
    assert_ids(t, "world<b>world", 264, 271, 264);
    assert_ids(t, " world", 264);
    qvl_tokens tokens = encode_bytes(t, "world<b>world", 13, QVL_ADDED_ALL, false);
    const size_t starts[] = {0, 5, 8, 13};
    assert_memory_equal(tokens.starts, starts, sizeof starts);
    qvl_tokens_free(&tokens);
    qvl_tokenizer_close(&t);
    small.pre_tokenizer = "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": false}";
    small.model = "\"type\": \"BPE\", \"ignore_merges\": true, ";
    small.vocab = ", \"wor wor\": 270, \"worldhe\": 271";
    small.added = "[]";
    small_write(&folder, &small);
    qvl_error error = {0};
    assert_ok(qvl_tokenizer_open(folder.path, NULL, NULL, &t, &error), &error);
    assert_ids(t, "worldhe", 271);
    assert_ids(t, "worldhel", small_byte('w'), 261, 263, 256, small_byte('l'));
    /* A name with a space is none of ByteLevel's: no word is called that. */
    assert_ids(t, "wor wor", small_byte('w'), 261, 262);
    qvl_tokenizer_close(&t);
    folder_close(&folder);
}

/* Every byte of a text belongs to one token, also where normalisation, repair or marks change it. */
static void test_spans(void **state) {
    (void)state;
    test_folder folder;
    qvl_tokenizer *t = small_open(&folder, &small_words);
    const struct {
        const char *text;
        size_t starts[12]; /* up to the size of the text */
        bool marked;
    } cases[] = {
        {"hello world", {0, 5, 11}, false},
        {"e\xcc\x81"
         "ab",
         {0, 3, 5},
         false},
        {"\xe6\xb1\x89", {0, 1, 2, 3}, false},                /* one character, three tokens */
        {"\xff<b>\xe2\x82", {0, 1, 1, 1, 4, 6, 6, 6}, false}, /* U+FFFD is three tokens of one byte, or of two */
        {"<\xef\xb7\x90|a|>", {0, 1, 5, 6, 7, 8}, true},      /* the mark goes with what follows it */
        {"<|a|>\xef\xb7\x90"
         "ab",
         {0, 5, 10},
         true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t count = strlen(cases[i].text);
        qvl_tokens tokens = encode_bytes(t, cases[i].text, count, QVL_ADDED_ALL, cases[i].marked);
        for (size_t k = 0; k <= tokens.count; k++) assert_int_equal(tokens.starts[k], cases[i].starts[k]);
        qvl_tokens_free(&tokens);
    }
    qvl_tokenizer_close(&t);
    folder_close(&folder);
}

/* ------------------------------------------------------------------------------------------------- marked text */

static void assert_same_ids(qvl_tokens *a, qvl_tokens *b) {
    assert_int_equal(a->count, b->count);
    if (a->count) assert_memory_equal(a->ids, b->ids, a->count * sizeof *a->ids);
    qvl_tokens_free(a);
    qvl_tokens_free(b);
}

static void check_marked(const qvl_tokenizer *t, const char *text, qvl_added added) {
    qvl_text marked, plain;
    qvl_error error = {0};
    assert_ok(qvl_text_mark(t, text, strlen(text), added, &marked, &error), &error);
    assert_ok(qvl_text_unmark(marked.bytes, marked.byte_count, &plain, &error), &error);
    assert_string_equal(plain.bytes, text);
    assert_int_equal(plain.byte_count, strlen(text));
    qvl_tokens a = encode_bytes(t, marked.bytes, marked.byte_count, QVL_ADDED_ALL, true);
    qvl_tokens b = encode_bytes(t, text, strlen(text), added, false);
    assert_same_ids(&a, &b);
    qvl_text_free(&marked);
    qvl_text_free(&plain);
}

static void test_marks(void **state) {
    (void)state;
    test_folder folder;
    qvl_tokenizer *t = small_open(&folder, &small_words);
    const char *texts[] = {"", "hello", "<|a|>", "<|a|><|a|>", "x<|a|>e\xcc\x81<b>", "<", ">", "|", "<|", "a",
                           " <|a", "<b>", "<b", "b>",
                           /* U+FDD0, U+FDD1 and what looks like a hidden character are text like any other. */
                           "\xef\xb7\x90", "<\xef\xb7\x90|a|>",
                           "\xef\xb7\x91\xef\xb7\xa0\xef\xb7\xa0\xef\xb7\xa0\xef\xb7\xa0\xef\xb7\xa4"
                           "\xef\xb7\xa1",
                           "\xef\xb7\x91\xef\xb7\x91\xef\xb7\xaf", "\xef\xb7\x92\xef\xbf\xbf"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (int added = 0; added < 3; added++) check_marked(t, texts[i], (qvl_added)added);
    qvl_tokenizer_close(&t);
    folder_close(&folder);
}

typedef struct generator {
    uint32_t state;
} generator;

static uint32_t next_random(generator *g, uint32_t below) {
    g->state = g->state * 1664525u + 1013904223u;
    return (g->state >> 8) % below;
}

static void append_trimmed(char *joined, const char *text, bool trim) {
    const char *end = text + strlen(text);
    while (trim && (*text == ' ' || *text == '\n')) text++;
    while (trim && end > text && (end[-1] == ' ' || end[-1] == '\n')) end--;
    size_t used = strlen(joined), size = (size_t)(end - text);
    memcpy(joined + used, text, size);
    joined[used + size] = 0;
}

#define JOINED_ADDED                                                                                              \
    "[{\"id\": 258, \"content\": \"<|a|>\", \"special\": true}, {\"id\": 259, \"content\": \"<b>\"},"             \
    "{\"id\": 260, \"content\": \"<|a|><b>\", \"special\": true}, {\"id\": 261, \"content\": \"\xe6\xb1\x89\", "  \
    "\"special\": true},"                                                                                         \
    "{\"id\": 262, \"content\": \"\xc3\xa9>\", \"special\": true, \"normalized\": true}"

/* Whatever marked texts are put beside one another, trimmed or not, no added token comes about, and the ids are those
 * of the texts without marks. (A token with a space inside is kept apart at the price of a space that is not trimmed.) */
static void check_joined(const char *added, bool same_ids) {
    test_folder folder;
    small_tokenizer small = {.merges = {"a b", "< |"}, .added = added};
    qvl_tokenizer *t = small_open(&folder, &small);
    const char *units[] = {"<",     "|",   "a", "b",        ">",        " ",           "\n", "\xe6\xb1\x89",
                           "<|a|>", "<b>", "e", "\xcc\x81", "\xc3\xa9", "\xef\xb7\x90"};
    generator g = {7};
    for (int round = 0; round < 30000; round++) {
        char plain[512] = "", joined[4096] = "";
        bool trim = next_random(&g, 2);
        for (uint32_t parts = next_random(&g, 5); parts > 0; parts--) {
            char part[128] = "";
            qvl_text marked;
            qvl_error error = {0};
            for (uint32_t n = next_random(&g, 5); n > 0; n--) strcat(part, units[next_random(&g, 14)]);
            assert_ok(qvl_text_mark(t, part, strlen(part), QVL_ADDED_NONE, &marked, &error), &error);
            append_trimmed(plain, part, trim);
            append_trimmed(joined, marked.bytes, trim);
            qvl_text_free(&marked);
        }
        qvl_tokens a = encode_bytes(t, joined, strlen(joined), QVL_ADDED_ALL, true);
        qvl_tokens b = encode_bytes(t, plain, strlen(plain), QVL_ADDED_NONE, false);
        for (size_t i = 0; i < a.count; i++) assert_true(a.ids[i] < 258);
        if (same_ids) {
            assert_same_ids(&a, &b);
        } else {
            qvl_tokens_free(&a);
            qvl_tokens_free(&b);
        }
    }
    qvl_tokenizer_close(&t);
    folder_close(&folder);
}

static void test_marks_hold_in_joined_text(void **state) {
    (void)state;
    check_joined(JOINED_ADDED "]", true);
    check_joined(JOINED_ADDED ", {\"id\": 263, \"content\": \"<|a b|>\", \"special\": true, \"lstrip\": true},"
                              "{\"id\": 264, \"content\": \" >\", \"special\": true}]",
                 false);
}

/* Text around that is trusted, as a template's is, may have the ends of a token. */
static void check_between(const qvl_tokenizer *t, const char *token, size_t from, size_t to, const char *space,
                          const char *before, const char *after) {
    char part[64], joined[512];
    qvl_text marked;
    qvl_error error = {0};
    snprintf(part, sizeof part, "%s%s%.*s%s%s", space, before, (int)(to - from), token + from, after, space);
    assert_ok(qvl_text_mark(t, part, strlen(part), QVL_ADDED_ORDINARY, &marked, &error), &error);
    snprintf(joined, sizeof joined, "%.*s", (int)from, token);
    append_trimmed(joined, marked.bytes, *space != 0);
    strcat(joined, token + to);
    qvl_tokens tokens = encode_bytes(t, joined, strlen(joined), QVL_ADDED_ALL, true);
    for (size_t i = 0; i < tokens.count; i++) assert_true(tokens.ids[i] < 270);
    qvl_tokens_free(&tokens);
    qvl_text_free(&marked);
}

static void test_marks_hold_between_trusted_text(void **state) {
    (void)state;
    test_folder folder;
    small_tokenizer small = small_words;
    small.added = "[{\"id\": 270, \"content\": \"<|a|>\", \"special\": true},"
                  "{\"id\": 271, \"content\": \"<c d>\", \"special\": true},"
                  "{\"id\": 272, \"content\": \"<ef>\\n\", \"special\": true}]";
    qvl_tokenizer *t = small_open(&folder, &small);
    const char *tokens[] = {"<|a|>", "<c d>", "<ef>\n"};
    for (int k = 0; k < 3; k++)
        for (size_t from = 0; from < 5; from++)
            for (size_t to = from + 1; to <= 5; to++) {
                for (int spaced = 0; spaced < 2; spaced++) {
                    const char *space = spaced ? " \n" : "";
                    check_between(t, tokens[k], from, to, space, "", "");
                    if (to == 5) check_between(t, tokens[k], from, to, space, "", "x");
                    if (from == 0) check_between(t, tokens[k], from, to, space, "x", "");
                }
            }
    qvl_tokenizer_close(&t);
    folder_close(&folder);
}

/* Tokens that stay recognised do so although special ones begin like them. */
static void test_marks_spare_other_tokens(void **state) {
    (void)state;
    test_folder folder;
    small_tokenizer small = {
        .merges = {"a b"},
        .added = "[{\"id\": 257, \"content\": \"<|a\", \"special\": true}, {\"id\": 258, \"content\": \"<|ab|>\","
                 "\"normalized\": false}, {\"id\": 259, \"content\": \"<|b|>\", \"special\": true}]"};
    qvl_tokenizer *t = small_open(&folder, &small);
    const char *texts[] = {"<|ab|>", "<|ab|><|a|>", "<|a<|ab|>", "x<|b|><|ab|><|ab", "<|ab|><|b|>"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) check_marked(t, texts[i], QVL_ADDED_ORDINARY);
    qvl_tokenizer_close(&t);
    folder_close(&folder);
}

/* -------------------------------------------------------------------------------------------------------- decoding */

static void test_decode(void **state) {
    (void)state;
    test_folder folder;
    qvl_tokenizer *t = small_open(&folder, &small_words);
    const int32_t ids[] = {259, 270, 264, 271, small_byte(0xc3)};
    qvl_text text;
    qvl_error error = {0};
    assert_ok(qvl_detokenize(t, ids, 5, false, &text, &error), &error);
    assert_string_equal(text.bytes, "hello<|a|> world<b>\xef\xbf\xbd");
    assert_int_equal(text.byte_count, strlen(text.bytes));
    qvl_text_free(&text);
    assert_ok(qvl_detokenize(t, ids, 4, true, &text, &error), &error);
    assert_string_equal(text.bytes, "hello world<b>");
    qvl_text_free(&text);
    assert_ok(qvl_detokenize(t, NULL, 0, true, &text, &error), &error);
    assert_string_equal(text.bytes, "");
    qvl_text_free(&text);
    const int32_t wrong[] = {259, 272}, negative[] = {-1};
    assert_failure(qvl_detokenize(t, wrong, 2, false, &text, &error), &error, QVL_ERROR_ARGUMENT,
                   "the id 272 at position 1 is not in the vocabulary, whose ids are below 272");
    assert_null(text.bytes);
    assert_failure(qvl_detokenize(t, negative, 1, false, &text, &error), &error, QVL_ERROR_ARGUMENT, "the id -1");
    qvl_tokenizer_close(&t);
    folder_close(&folder);
}

static bool is_whole(const char *text, size_t count) {
    return count == 0 || !((uint8_t)text[0] >= 0x80 && (uint8_t)text[0] < 0xc0);
}

/* Random bytes one by one: the pieces joined are the whole, and none begins or ends inside a character. */
static void test_stream(void **state) {
    (void)state;
    test_folder folder;
    qvl_tokenizer *t = small_open(&folder, &small_words);
    qvl_detokenizer *stream;
    qvl_error error = {0};
    generator g = {3};
    const uint8_t bytes[] = {'a', 0xc3, 0xa9, 0xe6, 0xb1, 0x89, 0xf0, 0x9f, 0x98, 0x80, 0xed, 0xa0, 0xff};
    assert_ok(qvl_detokenizer_open(t, true, &stream, &error), &error);
    for (int round = 0; round < 2000; round++) {
        int32_t ids[24];
        char joined[256] = "";
        const char *piece;
        size_t size, count = next_random(&g, 24);
        for (size_t i = 0; i < count; i++) {
            uint32_t run = next_random(&g, 8);
            ids[i] = run == 0   ? 264
                     : run == 1 ? 270
                                : small_byte(bytes[i && run > 3 ? i % 13 : next_random(&g, 13)]);
            assert_ok(qvl_detokenizer_push(stream, ids[i], &piece, &size, &error), &error);
            assert_int_equal(strlen(piece), size);
            assert_true(is_whole(piece, size));
            strcat(joined, piece);
        }
        qvl_detokenizer_finish(stream, &piece, &size);
        strcat(joined, piece);
        qvl_text text;
        assert_ok(qvl_detokenize(t, ids, count, true, &text, &error), &error);
        assert_string_equal(joined, text.bytes);
        qvl_text_free(&text);
    }
    const char *piece;
    size_t size;
    assert_ok(qvl_detokenizer_push(stream, small_byte(0xe6), &piece, &size, &error), &error);
    assert_int_equal(size, 0);
    assert_failure(qvl_detokenizer_push(stream, 5000, &piece, &size, &error), &error, QVL_ERROR_ARGUMENT,
                   "the id 5000 is not in the vocabulary");
    qvl_detokenizer_finish(stream, &piece, &size);
    assert_string_equal(piece, "\xef\xbf\xbd");
    qvl_detokenizer_close(&stream);
    qvl_detokenizer_close(&stream);
    qvl_tokenizer_close(&t);
    folder_close(&folder);
}

/* Words and runs that would take minutes if work grew with the square of their size. */
static void test_long_words(void **state) {
    (void)state;
    test_folder folder;
    qvl_tokenizer *t = small_open(&folder, &small_words);
    static const char *const units[] = {"ab",           "a",   " ", "\n ", "\xcc\x81\xcc\xa7", "<|a", "<",
                                        "\xe6\xb1\x89", "\xff"};
    size_t size = (size_t)1 << 20;
    char *text = malloc(size);
    assert_non_null(text);
    for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
        size_t unit = strlen(units[u]), count = 0;
        qvl_text marked;
        qvl_error error = {0};
        for (; count + unit <= size; count += unit) memcpy(text + count, units[u], unit);
        qvl_tokens tokens = encode_bytes(t, text, count, QVL_ADDED_ALL, true);
        assert_true(tokens.count >= count / 3 / unit);
        qvl_tokens_free(&tokens);
        assert_ok(qvl_text_mark(t, text, count, QVL_ADDED_NONE, &marked, &error), &error);
        qvl_text_free(&marked);
    }
    free(text);
    qvl_tokenizer_close(&t);
    folder_close(&folder);
}

static void test_options(void **state) {
    (void)state;
    test_folder folder;
    qvl_tokenizer *t = small_open(&folder, &small_words);
    qvl_tokenize_options options;
    qvl_tokens tokens;
    qvl_text text;
    qvl_error error = {0};
    qvl_tokenize_options_init(&options);
    options.added = (qvl_added)3;
    assert_failure(qvl_tokenize(t, "a", 1, &options, &tokens, &error), &error, QVL_ERROR_ARGUMENT, "added is 3");
    assert_failure(qvl_text_mark(t, "a", 1, (qvl_added)-1, &text, &error), &error, QVL_ERROR_ARGUMENT,
                   "added is -1");
    memset(&options, 0, sizeof options);
    assert_failure(qvl_tokenize(t, "a", 1, &options, &tokens, &error), &error, QVL_ERROR_ARGUMENT,
                   "init function");
    assert_null(tokens.ids);
    assert_ok(qvl_tokenize(t, "<|a|>", 5, NULL, &tokens, &error), &error);
    assert_int_equal(tokens.ids[0], 270);
    qvl_tokens_free(&tokens);
    const int32_t off[] = {small_byte('<'), small_byte('|'), small_byte('a'),
                           small_byte('|'), small_byte('>'), 271};
    tokens = encode_bytes(t, "<|a|><b>", 8, QVL_ADDED_ORDINARY, false);
    assert_tokens(&tokens, off, 6);
    tokens = encode_bytes(t, "<|a|><b>", 8, QVL_ADDED_NONE, false);
    assert_int_equal(tokens.count, 8);
    qvl_tokens_free(&tokens);
    qvl_tokenizer_close(&t);
    folder_close(&folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_report_37_ids_of_families),
        cmocka_unit_test(test_merge_forms),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_byte_level_options),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_marks_hold_in_joined_text),
        cmocka_unit_test(test_marks_hold_between_trusted_text),
        cmocka_unit_test(test_marks_spare_other_tokens),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
