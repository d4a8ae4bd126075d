#define _GNU_SOURCE
#include "small_tokenizer.h"

#include "text/split.h"
#include "text/vocabulary.h"

/* 256 he, 257 ll, 258 hell, 259 hello, 260 Ġw, 261 or, 262 Ġwor, 263 ld, 264 Ġworld, 265 ab, 266 ĠĠ, 267 Ã©, 268 Ċ Ċ,
 * 269 en */
const small_tokenizer small_words = {
    .merges = {"h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "l d", "Ġwor ld", "a b", "Ġ Ġ", "Ã ©",
               "Ċ Ċ", "e n"},
    .added = "[{\"id\": 270, \"content\": \"<|a|>\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false,"
             "\"normalized\": false, \"special\": true},"
             "{\"id\": 271, \"content\": \"<b>\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false,"
             "\"normalized\": false, \"special\": false}]",
};

int32_t small_byte(uint8_t byte) {
    char name[5], other[5];
    int32_t before = 0;
    qvl_byte_name(byte, name);
    bool direct = strlen(name) == 1 || (uint8_t)name[0] < 0xc4;
    for (unsigned b = 0; b < 256; b++) {
        qvl_byte_name((uint8_t)b, other);
        bool other_direct = strlen(other) == 1 || (uint8_t)other[0] < 0xc4;
        if (direct == other_direct ? b < byte : other_direct) before++;
    }
    return before;
}

static void write_string(FILE *f, const char *text, size_t count) {
    fputc('"', f);
    for (size_t i = 0; i < count; i++) {
        if (text[i] == '"' || text[i] == '\\') fputc('\\', f);
        fputc(text[i], f);
    }
    fputc('"', f);
}

static void write_vocab(FILE *f, const small_tokenizer *small) {
    fputs("\"vocab\": {", f);
    for (unsigned b = 0; b < 256; b++) {
        char name[5];
        qvl_byte_name((uint8_t)b, name);
        write_string(f, name, strlen(name));
        fprintf(f, ": %d%s", small_byte((uint8_t)b), b < 255 ? ", " : "");
    }
    for (int i = 0; i < 24 && small->merges[i]; i++) {
        char joined[64];
        size_t left = strcspn(small->merges[i], " ");
        snprintf(joined, sizeof joined, "%.*s%s", (int)left, small->merges[i], small->merges[i] + left + 1);
        fputs(", ", f);
        write_string(f, joined, strlen(joined));
        fprintf(f, ": %d", 256 + i);
    }
    fprintf(f, "%s}, ", small->vocab ? small->vocab : "");
}

static void write_merges(FILE *f, const small_tokenizer *small) {
    fputs("\"merges\": [", f);
    for (int i = 0; i < 24 && small->merges[i]; i++) {
        const char *merge = small->merges[i];
        size_t left = strcspn(merge, " ");
        if (i) fputs(", ", f);
        if (small->merge_lists) {
            fputc('[', f);
            write_string(f, merge, left);
            fputs(", ", f);
            write_string(f, merge + left + 1, strlen(merge + left + 1));
            fputc(']', f);
        } else {
            write_string(f, merge, strlen(merge));
        }
    }
    fputc(']', f);
}

static void write_member(FILE *f, const char *key, const char *value, const char *otherwise) {
    const char *text = value ? value : otherwise;
    if (*text) fprintf(f, "\"%s\": %s, ", key, text);
}

void small_write(test_folder *folder, const small_tokenizer *small) {
    const char *byte_level = "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": false,"
                             "\"use_regex\": false}";
    char *text = NULL, *split = NULL;
    size_t count = 0, split_count = 0;
    FILE *s = open_memstream(&split, &split_count), *f = open_memstream(&text, &count);
    assert_non_null(s);
    assert_non_null(f);
    const char *pattern = qvl_splitter_pattern(QVL_SPLIT_QWEN2);
    fputs("{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": ", s);
    write_string(s, pattern, strlen(pattern));
    fprintf(s, "}, \"behavior\": \"Isolated\", \"invert\": false}, %s]}", byte_level);
    fclose(s);
    fputs("{\"version\": \"1.0\", ", f);
    write_member(f, "added_tokens", small->added, "[]");
    write_member(f, "normalizer", small->normalizer, "{\"type\": \"NFC\"}");
    write_member(f, "pre_tokenizer", small->pre_tokenizer, split);
    write_member(f, "post_processor", small->post_processor, byte_level);
    write_member(f, "decoder", small->decoder, byte_level);
    fprintf(f, "\"model\": {%s", small->model ? small->model : "\"type\": \"BPE\", ");
    write_vocab(f, small);
    write_merges(f, small);
    fprintf(f, "}%s}", small->members ? small->members : "");
    fclose(f);
    folder_write(folder, "tokenizer.json", text, count);
    if (small->config) folder_write_text(folder, "tokenizer_config.json", small->config);
    free(text);
    free(split);
}

qvl_tokenizer *small_open(test_folder *folder, const small_tokenizer *small) {
    qvl_tokenizer *tokenizer;
    qvl_error error = {0};
    folder_open(folder);
    small_write(folder, small);
    assert_ok(qvl_tokenizer_open(folder->path, NULL, NULL, &tokenizer, &error), &error);
    return tokenizer;
}
