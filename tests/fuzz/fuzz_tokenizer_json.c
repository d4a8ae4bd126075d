/* Any bytes as tokenizer.json, and behind a NUL as tokenizer_config.json: refused with a message, or a tokenizer whose
 * ids are all in its vocabulary and stand for the bytes that were encoded. */
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check(bool holds) {
    if (!holds) abort();
}

static void check_text(const qvl_tokenizer *tokenizer, const char *text, qvl_added added) {
    qvl_tokenize_options options;
    qvl_tokens tokens;
    qvl_text decoded;
    size_t count = strlen(text);
    qvl_tokenize_options_init(&options);
    options.added = added;
    check(qvl_tokenize(tokenizer, text, count, &options, &tokens, NULL) == QVL_OK);
    check(tokens.count > 0 && tokens.starts[0] == 0 && tokens.starts[tokens.count] == count);
    for (size_t i = 0; i < tokens.count; i++) {
        qvl_token token;
        check(tokens.starts[i] <= tokens.starts[i + 1] && qvl_token_get(tokenizer, tokens.ids[i], &token));
    }
    check(qvl_detokenize(tokenizer, tokens.ids, tokens.count, false, &decoded, NULL) == QVL_OK);
    /* The text is ASCII, so that nothing normalises it. An added token may stand for other bytes than its own, and
     * takes space along. */
    bool exact = added == QVL_ADDED_NONE && tokenizer->added.count == 0 && !tokenizer->prefix_space;
    check(!exact || (decoded.byte_count == count && memcmp(decoded.bytes, text, count) == 0));
    qvl_text_free(&decoded);
    qvl_tokens_free(&tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    const uint8_t *end = count ? memchr(bytes, 0, count) : NULL;
    qvl_tokenizer_files files = {.json = bytes, .json_count = end ? (size_t)(end - bytes) : count};
    qvl_tokenizer *tokenizer;
    qvl_error error = {0};
    if (end) {
        files.config = end + 1;
        files.config_count = count - files.json_count - 1;
    }
    qvl_status status = qvl_tokenizer_parse("folder", &files, NULL, NULL, &tokenizer, &error);
    if (status) {
        check(error.status == status && error.message[0] && !tokenizer);
        return 0;
    }
    qvl_tokenizer_info info;
    qvl_tokenizer_get_info(tokenizer, &info);
    check(info.base_count >= 256 && info.id_limit >= info.base_count && info.added_count >= 0);
    for (int32_t i = 0; i < info.added_count; i++) {
        qvl_token token = qvl_token_added(tokenizer, i);
        check(token.added && qvl_token_get(tokenizer, token.id, &token));
        if (token.byte_count) check_text(tokenizer, token.bytes, QVL_ADDED_ALL);
    }
    const char *text = "hello  wor ld<|a|>'s 12\n\n <b> helloab";
    for (int added = 0; added < 3; added++) check_text(tokenizer, text, (qvl_added)added);
    qvl_tokenizer_close(&tokenizer);
    return 0;
}
