/* Reading tokenizer.json and tokenizer_config.json: what is not supported is refused by name and value. */
#define _GNU_SOURCE
#include "small_tokenizer.h"

#include "text/split.h"
#include "text/vocabulary.h"

#define TOKEN(id, content) "{\"id\": " #id ", \"content\": \"" content "\", \"special\": true}"

static const struct {
    small_tokenizer small;
    qvl_status status;
    const char *says;
} refusals[] = {
    /* The stages. */
    {{.normalizer = "{\"type\": \"NFKC\"}"},
     QVL_ERROR_UNSUPPORTED,
     "normalizer is \"NFKC\"; qvl reads null or \"NFC\""},
    {{.normalizer = "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}, {\"type\": \"Lowercase\"}]}"},
     QVL_ERROR_UNSUPPORTED,
     "normalizer is \"Lowercase\""},
    {{.pre_tokenizer = "{\"type\": \"Whitespace\"}"},
     QVL_ERROR_UNSUPPORTED,
     "the last pre_tokenizer is \"Whitespace\""},
    {{.pre_tokenizer = "null"}, QVL_ERROR_UNSUPPORTED, "pre_tokenizer is null"},
    {{.pre_tokenizer = ""}, QVL_ERROR_UNSUPPORTED, "pre_tokenizer is nothing"},
    {{.pre_tokenizer =
          "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Digits\"}, {\"type\": \"ByteLevel\"}]}"},
     QVL_ERROR_UNSUPPORTED,
     "the first pre_tokenizer is \"Digits\""},
    {{.pre_tokenizer =
          "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": "
          "\"\\\\p{N}{1,3}\"}, \"behavior\": \"Isolated\", \"invert\": false}, {\"type\": \"ByteLevel\"}]}"},
     QVL_ERROR_UNSUPPORTED,
     "the pattern of Split is \\p{N}{1,3}; qvl reads those of Qwen2, Qwen3.5 and GPT-2"},
    {{.pre_tokenizer =
          "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"String\": "
          "\" \"}, \"behavior\": \"Isolated\", \"invert\": false}, {\"type\": \"ByteLevel\"}]}"},
     QVL_ERROR_UNSUPPORTED,
     "pattern of Split is an object; qvl reads an object with Regex"},
    {{.pre_tokenizer =
          "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": "
          "\"x\"}, \"behavior\": \"Removed\", \"invert\": false}, {\"type\": \"ByteLevel\"}]}"},
     QVL_ERROR_UNSUPPORTED,
     "behavior of Split is \"Removed\""},
    {{.pre_tokenizer = "{\"type\": \"ByteLevel\", \"add_prefix_space\": 1}"},
     QVL_ERROR_FORMAT,
     "add_prefix_space is 1; it must be true or false"},
    {{.post_processor = "{\"type\": \"TemplateProcessing\", \"single\": [{\"Sequence\": {\"id\": \"A\"}},"
                        "{\"SpecialToken\": {\"id\": \"<|a|>\"}}]}"},
     QVL_ERROR_UNSUPPORTED,
     "post_processor is \"TemplateProcessing\"; qvl reads null, \"ByteLevel\", or a template that adds"},
    {{.post_processor = "{\"type\": \"BertProcessing\"}"},
     QVL_ERROR_UNSUPPORTED,
     "post_processor is \"BertProcessing\""},
    {{.decoder = "{\"type\": \"WordPiece\"}"},
     QVL_ERROR_UNSUPPORTED,
     "decoder is \"WordPiece\"; qvl reads \"ByteLevel\""},
    {{.decoder = "null"}, QVL_ERROR_UNSUPPORTED, "decoder is null"},
    /* The model. */
    {{.model = "\"type\": \"WordPiece\", "},
     QVL_ERROR_UNSUPPORTED,
     "model.type is \"WordPiece\"; qvl reads \"BPE\""},
    {{.model = " "}, QVL_ERROR_UNSUPPORTED, "model.type is nothing"},
    {{.model = "\"type\": \"BPE\", \"dropout\": 0.1, "}, QVL_ERROR_UNSUPPORTED, "model.dropout is 0.1"},
    {{.model = "\"type\": \"BPE\", \"byte_fallback\": true, "},
     QVL_ERROR_UNSUPPORTED,
     "model.byte_fallback is true"},
    {{.model = "\"type\": \"BPE\", \"continuing_subword_prefix\": \"##\", "},
     QVL_ERROR_UNSUPPORTED,
     "continuing_subword_prefix is \"##\"; qvl reads null or \"\""},
    {{.model = "\"type\": \"BPE\", \"end_of_word_suffix\": \"</w>\", "},
     QVL_ERROR_UNSUPPORTED,
     "end_of_word_suffix is \"</w>\""},
    {{.model = "\"type\": \"BPE\", \"ignore_merges\": 0, "},
     QVL_ERROR_FORMAT,
     "ignore_merges is 0; it must be true or false"},
    {{.vocab = ", \"xx\": 5"}, QVL_ERROR_MODEL, "model.vocab gives the id 5 to"},
    {{.vocab = ", \"xx\": -1"}, QVL_ERROR_FORMAT, "the id of \"xx\" is -1; it must be an integer in 0..2097151"},
    {{.vocab = ", \"xx\": 2097152"}, QVL_ERROR_FORMAT, "the id of \"xx\" is 2097152"},
    {{.vocab = ", \"xx\": \"256\""}, QVL_ERROR_FORMAT, "the id of \"xx\" is \"256\""},
    {{.vocab = ", \"a\": 300"}, QVL_ERROR_FORMAT, "the key \"a\" is there twice"},
    {{.members = ", \"model\": {}"}, QVL_ERROR_FORMAT, "the key \"model\" is there twice"},
    {{.merges = {"a b", "ab c "}},
     QVL_ERROR_FORMAT,
     "model.merges[1] is \"ab c \"; it must be \"a b\" or a list of two strings"},
    {{.merges = {"a b", "x yz"}, .vocab = ", \"yz\": 300"}, QVL_OK, NULL},
    {{.merges = {"a b", "x yz"}}, QVL_ERROR_MODEL, "model.merges[1] needs \"yz\", which is not in model.vocab"},
    /* Added tokens. */
    {{.added = "{}"}, QVL_ERROR_FORMAT, "added_tokens must be a list"},
    {{.added = "[5]"}, QVL_ERROR_FORMAT, "added_tokens must be a list of objects"},
    {{.added = "[{\"id\": 256}]"}, QVL_ERROR_FORMAT, "an added token has no content"},
    {{.added = "[{\"id\": 256, \"content\": \"\"}]"}, QVL_ERROR_FORMAT, "an added token has no content"},
    {{.added = "[{\"content\": \"<x>\"}]"}, QVL_ERROR_FORMAT, "the added token \"<x>\" has no id"},
    {{.added = "[" TOKEN(300, "<x>") "]"},
     QVL_ERROR_MODEL,
     "\"<x>\" has the id 300; Hugging Face tokenizers would give it 256"},
    {{.added = "[" TOKEN(256, "<x>") "," TOKEN(256, "<y>") "]"},
     QVL_ERROR_MODEL,
     "\"<y>\" has the id 256; Hugging Face"},
    {{.added = "[" TOKEN(256, "<x>") "," TOKEN(257, "<x>") "]"}, QVL_ERROR_MODEL, "\"<x>\" is there twice"},
    {{.vocab = ", \"xx\": 257", .added = "[" TOKEN(257, "<x>") "]"},
     QVL_ERROR_MODEL,
     "the added token \"<x>\" has the id 257, which is that of \"xx\""},
    {{.vocab = ", \"<x>\": 256", .added = "[" TOKEN(256, "<x>") "," TOKEN(257, "<y>") "]"}, QVL_OK, NULL},
    {{.added = "[{\"id\": 256, \"content\": \"<x>\", \"special\": \"yes\"}]"},
     QVL_ERROR_FORMAT,
     "special is \"yes\""},
    {{.added = "[" TOKEN(256, "<\xef\xb7\x90>") "]"},
     QVL_ERROR_UNSUPPORTED,
     "has a noncharacter of U+FDD0..U+FDEF"},
    {{.added = "[{\"id\": 256, \"content\": \"e\xcc\x81\", \"normalized\": true}]"},
     QVL_ERROR_UNSUPPORTED,
     "has normalized true and is not in NFC itself"},
    /* Without the flag a token is normalized unless it is special. */
    {{.added = "[{\"id\": 256, \"content\": \"e\xcc\x81\"}]"}, QVL_ERROR_UNSUPPORTED, "has normalized true"},
    {{.added = "[{\"id\": 256, \"content\": \"e\xcc\x81\", \"special\": true}]"}, QVL_OK, NULL},
    {{.normalizer = "null", .added = "[{\"id\": 256, \"content\": \"e\xcc\x81\", \"normalized\": true}]"},
     QVL_OK,
     NULL},
    /* tokenizer_config.json. */
    {{.config = "[]"}, QVL_ERROR_FORMAT, "tokenizer_config.json: the file is a list"},
    {{.config = "{\"added_tokens_decoder\": []}"},
     QVL_ERROR_FORMAT,
     "added_tokens_decoder is a list; it must be an object"},
    {{.config = "{\"added_tokens_decoder\": {\"x\": {\"content\": \"<x>\"}}}"},
     QVL_ERROR_FORMAT,
     "added_tokens_decoder has the key \"x\"; it must be an id in 0..2097151"},
    {{.config = "{\"added_tokens_decoder\": {\"99999999999999999999\": {\"content\": \"<x>\"}}}"},
     QVL_ERROR_FORMAT,
     "it must be an id in 0..2097151"},
    {{.config = "{\"added_tokens_decoder\": {\"256\": \"<x>\"}}"},
     QVL_ERROR_FORMAT,
     "added_tokens_decoder[\"256\"] must be an object"},
    {{.added = "[" TOKEN(256, "<x>") "]",
      .config = "{\"added_tokens_decoder\": {\"257\": {\"content\": \"<x>\"}}}"},
     QVL_ERROR_MODEL,
     "\"<x>\" has the id 257; tokenizer.json says 256"},
    {{.config = "{\"add_bos_token\": true, \"bos_token\": \"<x>\"}"},
     QVL_ERROR_UNSUPPORTED,
     "add_bos_token is true; qvl reads false"},
    {{.config = "{\"add_bos_token\": true, \"bos_token\": null}"}, QVL_OK, NULL},
    {{.config = "{\"split_special_tokens\": true}"}, QVL_ERROR_UNSUPPORTED, "split_special_tokens is true"},
    {{.config = "{\"add_prefix_space\": true}"},
     QVL_ERROR_UNSUPPORTED,
     "add_prefix_space is true; tokenizer.json says false"},
};

static void test_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        test_folder folder;
        qvl_tokenizer *tokenizer = (qvl_tokenizer *)(uintptr_t)1;
        qvl_error error = {0};
        folder_open(&folder);
        small_write(&folder, &refusals[i].small);
        qvl_status status = qvl_tokenizer_open(folder.path, NULL, NULL, &tokenizer, &error);
        if (refusals[i].status) {
            assert_failure(status, &error, refusals[i].status, refusals[i].says);
            assert_memory_equal(error.message, folder.path, strlen(folder.path));
            assert_null(tokenizer);
        } else {
            assert_ok(status, &error);
        }
        qvl_tokenizer_close(&tokenizer);
        folder_close(&folder);
    }
}

static void test_broken_files(void **state) {
    (void)state;
    test_folder folder;
    qvl_tokenizer *tokenizer;
    qvl_error error = {0};
    folder_open(&folder);
    assert_failure(qvl_tokenizer_open(folder.path, NULL, NULL, &tokenizer, &error), &error, QVL_ERROR_IO,
                   "tokenizer.json");
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"{", "not JSON"},
        {"{}", "pre_tokenizer is nothing"},
        {"{\"pre_tokenizer\": {\"type\": \"ByteLevel\"}, \"decoder\": {\"type\": \"ByteLevel\"}}",
         "there is no model"},
        {"{\"pre_tokenizer\": {\"type\": \"ByteLevel\"}, \"decoder\": {\"type\": \"ByteLevel\"}, \"model\": "
         "{\"type\": "
         "\"BPE\"}}",
         "model.vocab must be an object and model.merges a list"},
        {"{\"pre_tokenizer\": {\"type\": \"ByteLevel\"}, \"decoder\": {\"type\": \"ByteLevel\"}, \"model\": "
         "{\"type\": "
         "\"BPE\", \"vocab\": {}, \"merges\": []}}",
         "model.vocab has no \"\xc4\x80\", which stands for the byte 0x00; it must have all 256"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        folder_write_text(&folder, "tokenizer.json", cases[i].text);
        qvl_status status = qvl_tokenizer_open(folder.path, NULL, NULL, &tokenizer, &error);
        assert_true(status == QVL_ERROR_FORMAT || status == QVL_ERROR_UNSUPPORTED || status == QVL_ERROR_MODEL);
        assert_failure(status, &error, status, cases[i].says);
    }
    folder_close(&folder);
}

/* ------------------------------------------------------------------------------------------------------ what is read */

static void note(const char *message, void *user) {
    strncat(user, message, 900);
}

/* Tokens that only tokenizer_config.json has, in any order of the file; its flags beat tokenizer.json's. */
static void test_config(void **state) {
    (void)state;
    test_folder folder;
    char notes[1024] = "";
    qvl_tokenizer *tokenizer;
    qvl_token token;
    qvl_error error = {0};
    small_tokenizer small = {.added = "[" TOKEN(256, "<x>") "]",
                             .config =
                                 "{\"added_tokens_decoder\": {\"258\": {\"content\": \"<z>\", \"special\": true},"
                                 "\"257\": {\"content\": \"<y>\", \"special\": false, \"normalized\": false},"
                                 "\"256\": {\"content\": \"<x>\", \"special\": false}}, \"eos_token\": \"<x>\","
                                 "\"pad_token\": {\"content\": \"<pad>\"}}"};
    folder_open(&folder);
    small_write(&folder, &small);
    assert_ok(qvl_tokenizer_open(folder.path, note, notes, &tokenizer, &error), &error);
    assert_non_null(strstr(notes, "the flags of the added token \"<x>\" differ from tokenizer.json's, and count"));
    assert_non_null(strstr(notes, "pad_token is \"<pad>\", which is no added token"));
    assert_null(strstr(notes, "eos_token"));
    assert_true(qvl_token_find(tokenizer, "<x>", &token) && token.id == 256 && !token.special);
    assert_true(qvl_token_find(tokenizer, "<y>", &token) && token.id == 257 && !token.special);
    assert_true(qvl_token_find(tokenizer, "<z>", &token) && token.id == 258 && token.special);
    for (int32_t i = 0; i < 3; i++) assert_int_equal(qvl_token_added(tokenizer, i).id, 256 + i);
    qvl_tokenizer_close(&tokenizer);
    folder_close(&folder);
}

static void test_alphabet(void **state) {
    (void)state;
    char name[5], bytes[16];
    size_t count;
    for (unsigned b = 0; b < 256; b++) {
        qvl_byte_name((uint8_t)b, name);
        assert_true(qvl_token_bytes(name, bytes, &count));
        assert_int_equal(count, 1);
        assert_int_equal((uint8_t)bytes[0], b);
    }
    qvl_byte_name(' ', name);
    assert_string_equal(name, "\xc4\xa0");
    qvl_byte_name(0xad, name);
    assert_string_equal(name, "\xc5\x83");
    /* Outside of the alphabet: a space, U+0144, U+00AD, U+00A0, NUL's neighbours. */
    const char *others[] = {" ", "a b", "\xc5\x84", "\xc2\xad", "\xc2\xa0", "\xe6\xb1\x89", "\x7f", "\n"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_false(qvl_token_bytes(others[i], bytes, &count));
        assert_int_equal(count, strlen(others[i]));
        assert_memory_equal(bytes, others[i], count);
    }
    assert_int_equal(small_byte('!'), 0);
    assert_int_equal(small_byte('\n'), 198);
    assert_int_equal(small_byte(' '), 220);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_broken_files),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_alphabet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
