/* Every allocation of opening a tokenizer, encoding text that goes through all stages, marking, decoding and streaming
 * is made to fail once: each failure is a reported error, nothing leaks, and the next try works. */
#define _GNU_SOURCE
#include "small_tokenizer.h"

#include "base/failing_allocation.h"

static test_folder folder;

/* Bytes that are none, characters that change in NFC, marks, added tokens of both kinds, a long word. */
#define TEXT                                                                                                      \
    "\xff hello<|a|> e\xcc\x81\xcc\xa7 <\xef\xb7\x90|a|><b>e\xcc\x81! "                                           \
    "abababababababababababababababababababababababababababababababababababab"

static qvl_status encode_and_decode(const qvl_tokenizer *t, const char *text, size_t count, qvl_error *error) {
    qvl_tokenize_options options;
    qvl_tokens tokens;
    qvl_text decoded;
    qvl_tokenize_options_init(&options);
    options.marked = true;
    qvl_status status = qvl_tokenize(t, text, count, &options, &tokens, error);
    if (status) {
        assert_true(!tokens.ids && !tokens.starts && tokens.count == 0);
        return status;
    }
    assert_true(tokens.count > 30);
    status = qvl_detokenize(t, tokens.ids, tokens.count, true, &decoded, error);
    if (status) assert_null(decoded.bytes);
    qvl_text_free(&decoded);
    qvl_tokens_free(&tokens);
    return status;
}

static qvl_status stream(const qvl_tokenizer *t, qvl_error *error) {
    qvl_detokenizer *s;
    const char *piece;
    size_t size;
    qvl_status status = qvl_detokenizer_open(t, false, &s, error);
    if (status) return status;
    for (int32_t id = 0; id < 272 && !status; id++) status = qvl_detokenizer_push(s, id, &piece, &size, error);
    qvl_detokenizer_finish(s, &piece, &size);
    qvl_detokenizer_close(&s);
    return status;
}

static qvl_status attempt(qvl_error *error) {
    qvl_tokenizer *t;
    qvl_text marked = {0}, plain = {0};
    qvl_status status = qvl_tokenizer_open(folder.path, NULL, NULL, &t, error);
    if (status) {
        assert_null(t);
        return status;
    }
    status = encode_and_decode(t, TEXT, strlen(TEXT), error);
    if (!status) status = qvl_text_mark(t, TEXT, strlen(TEXT), QVL_ADDED_NONE, &marked, error);
    if (!status) status = qvl_text_unmark(marked.bytes, marked.byte_count, &plain, error);
    if (!status) status = stream(t, error);
    qvl_text_free(&marked);
    qvl_text_free(&plain);
    qvl_tokenizer_close(&t);
    return status;
}

static void fail_every_allocation(const small_tokenizer *small) {
    qvl_error error = {0};
    folder_open(&folder);
    small_write(&folder, small);
    assert_ok(attempt(&error), &error);
    long before = live_allocations(), failures = 0;
    for (bool more = true; more; failures++) {
        allocation_fails_after(failures);
        qvl_status status = attempt(&error);
        more = !allocation_failure_is_due();
        if (more && status) assert_failure(status, &error, QVL_ERROR_MEMORY, "out of memory");
        /* What utf8proc or the C library could do without is no failure; everything else is. */
        if (!more) assert_ok(status, &error);
        assert_int_equal(live_allocations(), before);
    }
    print_message("%ld allocations\n", failures - 1);
    assert_true(failures > 100);
    folder_close(&folder);
}

static void test_failures(void **state) {
    (void)state;
    small_tokenizer small = small_words;
    small.added = "[{\"id\": 270, \"content\": \"<|a|>\", \"special\": true},"
                  "{\"id\": 271, \"content\": \"\xc3\xa9!\", \"normalized\": true}]";
    small.config = "{\"added_tokens_decoder\": {\"272\": {\"content\": \"<b>\", \"special\": false}}}";
    fail_every_allocation(&small);
}

static void test_failures_with_prefix_spaces(void **state) {
    (void)state;
    small_tokenizer small = small_words;
    small.pre_tokenizer = "{\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"use_regex\": true}";
    small.model = "\"type\": \"BPE\", \"ignore_merges\": true, ";
    fail_every_allocation(&small);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_failures_with_prefix_spaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
