/* A tokenizer.json made for one test: the 256 bytes in the order that published files have (ids 0 to 255), then one
 * token for each merge. */
#ifndef QVL_TEST_SMALL_TOKENIZER_H
#define QVL_TEST_SMALL_TOKENIZER_H

#include "model/test_folder.h"

/* What differs from Qwen3's form. NULL: as there; "" leaves the member out. JSON values. */
typedef struct small_tokenizer {
    const char *merges[24]; /* "a b", of ByteLevel's names */
    bool merge_lists;       /* ["a", "b"] instead */
    const char *added;      /* default: none */
    const char *normalizer, *pre_tokenizer, *post_processor, *decoder;
    const char *model;   /* members of the model, each with a comma behind */
    const char *vocab;   /* more members of the vocabulary, each with a comma before */
    const char *members; /* more members of the file, each with a comma before */
    const char *config;  /* tokenizer_config.json; default: none */
} small_tokenizer;

/* "Ġ t" and so on: a few words, <|a|> 270 special, <b> 271 ordinary. */
extern const small_tokenizer small_words;

/* An id of ByteLevel's alphabet. */
int32_t small_byte(uint8_t byte);

void small_write(test_folder *folder, const small_tokenizer *small);
/* Writes and opens; the test fails where that fails. */
qvl_tokenizer *small_open(test_folder *folder, const small_tokenizer *small);

#endif
