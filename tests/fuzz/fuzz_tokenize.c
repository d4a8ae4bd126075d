/* Any bytes through small tokenizers of each kind: spans cover the text, decoding gives its NFC, streams and marks lose
 * nothing, and marked text that is joined has no added tokens. The first byte chooses the tokenizer and the place where
 * the text is cut in two. */
#include "text/normalize.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define KINDS 3
static qvl_tokenizer *tokenizers[KINDS];

static void check(bool holds) {
    if (!holds) abort();
}

/* ---------------------------------------------------------------------------------------------- three tokenizers */

static const char *const merges[] = {"a b", "ab a",   "Ġ Ġ", "Ġ t", "Ã ©",  "e n", "h e",   "he l",
                                     "l l", "hel lo", "l o", "æ ±", "æ± ī", "= =", "== ==", "Ċ Ċ"};
#define MERGES (sizeof merges / sizeof merges[0])

static size_t add(char *json, size_t used, const char *text) {
    size_t size = strlen(text);
    check(used + size < 16384);
    memcpy(json + used, text, size + 1);
    return used + size;
}

static void open_tokenizer(int kind) {
    static char json[16384];
    static const char *const splits[KINDS] = {
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+"
        "[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+",
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{L}\\\\p{M}]+|\\\\p{N}| "
        "?[^\\\\s\\\\p{L}\\\\p{M}"
        "\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+",
        NULL};
    size_t used = add(json, 0, "{\"normalizer\": {\"type\": \"NFC\"}, \"decoder\": {\"type\": \"ByteLevel\"},");
    used = add(json, used, "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [");
    if (splits[kind]) {
        used = add(json, used, "{\"type\": \"Split\", \"behavior\": \"Isolated\", \"pattern\": {\"Regex\": \"");
        used = add(json, used, splits[kind]);
        used = add(json, used, "\"}},");
    }
    used = add(json, used, "{\"type\": \"ByteLevel\", \"use_regex\": ");
    used = add(json, used, splits[kind] ? "false}]}," : "true}]},");
    used = add(json, used,
               "\"added_tokens\": [{\"id\": 272, \"content\": \"<|a|>\", \"special\": true},"
               "{\"id\": 273, \"content\": \"<b>\", \"special\": false, \"normalized\": false},"
               "{\"id\": 274, \"content\": \"\xc3\xa9>\", \"special\": false, \"normalized\": true},"
               "{\"id\": 275, \"content\": \"\xe6\xb1\x89\", \"special\": true}],");
    used = add(json, used, "\"model\": {\"type\": \"BPE\", \"vocab\": {");
    for (int b = 0; b < 256; b++) {
        char name[5], entry[32];
        qvl_byte_name((uint8_t)b, name);
        snprintf(entry, sizeof entry, "\"%s%s\": %d,", b == '"' || b == '\\' ? "\\" : "", name, b);
        used = add(json, used, entry);
    }
    for (size_t i = 0; i < MERGES; i++) {
        char entry[64];
        size_t left = strcspn(merges[i], " ");
        snprintf(entry, sizeof entry, "\"%.*s%s\": %zu%s", (int)left, merges[i], merges[i] + left + 1, 256 + i,
                 i + 1 < MERGES ? "," : "}, \"merges\": [");
        used = add(json, used, entry);
    }
    for (size_t i = 0; i < MERGES; i++) {
        used = add(json, used, i ? ",\"" : "\"");
        used = add(json, used, merges[i]);
        used = add(json, used, "\"");
    }
    used = add(json, used, "]}}");
    qvl_tokenizer_files files = {.json = json, .json_count = used};
    qvl_error error = {0};
    if (qvl_tokenizer_parse("small", &files, NULL, NULL, &tokenizers[kind], &error)) {
        fprintf(stderr, "%s\n", error.message);
        abort();
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    for (int kind = 0; kind < KINDS; kind++) open_tokenizer(kind);
    return 0;
}

/* ------------------------------------------------------------------------------------------------------ the checks */

static qvl_tokens encode(const qvl_tokenizer *t, const char *text, size_t count, qvl_added added, bool marked) {
    qvl_tokenize_options options;
    qvl_tokens tokens;
    qvl_tokenize_options_init(&options);
    options.added = added;
    options.marked = marked;
    check(qvl_tokenize(t, text, count, &options, &tokens, NULL) == QVL_OK);
    check(tokens.starts[0] == 0 && (tokens.count == 0 || tokens.starts[tokens.count] == count));
    for (size_t i = 0; i < tokens.count; i++) {
        check(tokens.starts[i] <= tokens.starts[i + 1] && tokens.ids[i] >= 0 && tokens.ids[i] < 276);
        check(added == QVL_ADDED_ALL || tokens.ids[i] < 272 ||
              (added == QVL_ADDED_ORDINARY && tokens.ids[i] < 275));
    }
    return tokens;
}

static void check_same(const qvl_tokens *a, const qvl_tokens *b) {
    check(a->count == b->count && (a->count == 0 || memcmp(a->ids, b->ids, a->count * sizeof *a->ids) == 0));
}

static void check_stream(const qvl_tokenizer *t, const qvl_tokens *tokens, const qvl_text *whole) {
    qvl_detokenizer *stream;
    const char *piece;
    size_t size, at = 0;
    check(qvl_detokenizer_open(t, false, &stream, NULL) == QVL_OK);
    for (size_t i = 0; i <= tokens->count; i++) {
        if (i < tokens->count)
            check(qvl_detokenizer_push(stream, tokens->ids[i], &piece, &size, NULL) == QVL_OK);
        else
            qvl_detokenizer_finish(stream, &piece, &size);
        check(at + size <= whole->byte_count && memcmp(whole->bytes + at, piece, size) == 0);
        check(qvl_utf8_valid((const uint8_t *)piece, size) == size);
        at += size;
    }
    check(at == whole->byte_count);
    qvl_detokenizer_close(&stream);
}

/* decode(encode(text)) is the NFC of the repaired text. */
static void check_round_trip(const qvl_tokenizer *t, const qvl_text *repaired) {
    qvl_normalizer normalizer = {0};
    qvl_rewrite rewrite;
    const uint8_t *nfc;
    size_t nfc_count;
    qvl_text decoded;
    qvl_tokens tokens = encode(t, repaired->bytes, repaired->byte_count, QVL_ADDED_NONE, false);
    qvl_rewrite_start(&rewrite, (const uint8_t *)repaired->bytes, repaired->byte_count);
    check(qvl_normalize(&normalizer, &t->unicode, &rewrite, 0, repaired->byte_count, NULL) == QVL_OK);
    check(qvl_rewrite_end(&rewrite, &nfc, &nfc_count, NULL) == QVL_OK);
    check(qvl_detokenize(t, tokens.ids, tokens.count, false, &decoded, NULL) == QVL_OK);
    check(decoded.byte_count == nfc_count && memcmp(decoded.bytes, nfc, nfc_count) == 0);
    check_stream(t, &tokens, &decoded);
    qvl_text_free(&decoded);
    qvl_tokens_free(&tokens);
    qvl_rewrite_free(&rewrite);
    qvl_normalizer_free(&normalizer);
}

static void check_marks(const qvl_tokenizer *t, const char *text, size_t count, size_t cut) {
    qvl_text parts[2], whole;
    check(qvl_text_mark(t, text, cut, QVL_ADDED_NONE, &parts[0], NULL) == QVL_OK);
    check(qvl_text_mark(t, text + cut, count - cut, QVL_ADDED_NONE, &parts[1], NULL) == QVL_OK);
    char *joined = malloc(parts[0].byte_count + parts[1].byte_count + 1);
    size_t size = parts[0].byte_count + parts[1].byte_count;
    check(joined != NULL);
    memcpy(joined, parts[0].bytes, parts[0].byte_count);
    memcpy(joined + parts[0].byte_count, parts[1].bytes, parts[1].byte_count);
    qvl_tokens a = encode(t, joined, size, QVL_ADDED_ALL, true);
    check(qvl_text_unmark(joined, size, &whole, NULL) == QVL_OK);
    qvl_tokens b = encode(t, whole.bytes, whole.byte_count, QVL_ADDED_NONE, false);
    check_same(&a, &b);
    qvl_tokens_free(&a);
    qvl_tokens_free(&b);
    free(joined);
    qvl_text_free(&parts[0]);
    qvl_text_free(&parts[1]);
    qvl_text_free(&whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    if (count == 0) return 0;
    const qvl_tokenizer *t = tokenizers[bytes[0] % KINDS];
    const char *text = (const char *)bytes + 1;
    size_t cut = bytes[0] / KINDS;
    if (cut > --count) cut = count;
    qvl_text marked, plain;
    check(qvl_text_mark(t, text, count, QVL_ADDED_ALL, &marked, NULL) == QVL_OK);
    check(qvl_text_unmark(marked.bytes, marked.byte_count, &plain, NULL) == QVL_OK);
    qvl_tokens a = encode(t, text, count, QVL_ADDED_ALL, false);
    qvl_tokens b = encode(t, marked.bytes, marked.byte_count, QVL_ADDED_ALL, true);
    check_same(&a, &b);
    qvl_tokens c = encode(t, text, count, QVL_ADDED_ORDINARY, true);
    check_round_trip(t, &plain);
    check_marks(t, text, count, cut);
    qvl_tokens_free(&a);
    qvl_tokens_free(&b);
    qvl_tokens_free(&c);
    qvl_text_free(&marked);
    qvl_text_free(&plain);
    return 0;
}
