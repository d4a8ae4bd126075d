/* The pre-tokenizer: text to words, by the patterns of published tokenizers. The patterns are scanned by hand: in
 * linear time, on the reference's own Unicode classes; tests compare the scanner with the patterns themselves. */
#ifndef QVL_TEXT_SPLIT_H
#define QVL_TEXT_SPLIT_H

#include "text/unicode.h"

typedef enum qvl_splitter {
    QVL_SPLIT_NONE = 0,   /* a stretch of text is one word */
    QVL_SPLIT_GPT2 = 1,   /* the one that ByteLevel has built in */
    QVL_SPLIT_QWEN2 = 2,  /* Qwen2 to Qwen3-VL */
    QVL_SPLIT_QWEN35 = 3, /* Qwen3.5: marks count as letters */
    QVL_SPLITTERS = 4
} qvl_splitter;

/* "none", "gpt2", "qwen2", "qwen3_5". */
const char *qvl_splitter_name(qvl_splitter splitter);
/* As a tokenizer.json writes it; NULL for QVL_SPLIT_NONE. */
const char *qvl_splitter_pattern(qvl_splitter splitter);

/* The end of the word that starts at text[at], at < end; text[at..end) is valid UTF-8. */
size_t qvl_split_next(qvl_splitter splitter, const qvl_unicode *unicode, const uint8_t *text, size_t at,
                      size_t end);

#endif
