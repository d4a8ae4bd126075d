/* The tokenizer: text to ids and back, the same as Hugging Face tokenizers for byte-level BPE vocabularies.
 * The public calls are in qvl.h ("text and token ids"); this header says how the stages hang together.
 *
 *     text --repair--> UTF-8 --added tokens cut out--> stretches --NFC--> --marks out--> words --BPE--> ids
 *
 * repair     (rewrite.c)     bytes that are not UTF-8 become U+FFFD
 * cut        (added.c)       added tokens are cut out of the text, leftmost and longest first, marks in place
 * normalise  (normalize.c)   NFC of each stretch between added tokens
 * marks      (marks.c)       U+FDD0 is dropped, hidden characters come back; then NFC again where some went
 * split      (split.c)       the pre-tokenizer's pattern, as a scanner over Unicode classes (unicode.c)
 * BPE        (bpe.c)         merges by rank inside a word; words seen in the same call are copied (encode.c)
 *
 * Marked text. U+FDD0 (EF B7 90) is a mark: it stands for nothing and breaks up what would be an added token. U+FDD1
 * followed by six of U+FDE0..U+FDEF, the digits 0..F, is the hidden character with that hexadecimal number. Any other
 * U+FDD1 to U+FDEF in marked text stands for itself. qvl_text_mark makes marked text; whoever makes it by other means
 * must hide U+FDD0..U+FDEF in what is not his own. No added token may contain one of them.
 */
#ifndef QVL_TEXT_TOKENIZER_H
#define QVL_TEXT_TOKENIZER_H

#include "text/added.h"
#include "text/bpe.h"
#include "text/split.h"
#include "text/vocabulary.h"

struct qvl_tokenizer {
    char *folder;
    qvl_vocabulary vocabulary;
    qvl_bpe bpe;
    qvl_added_tokens added;
    qvl_unicode unicode;
    qvl_splitter splitter;
    bool nfc;
    bool prefix_space;     /* a stretch that does not begin with a space gets one in front... */
    bool prefix_each_word; /* ...or each of its words does: what comes to ByteLevel was split already */
    bool ignore_merges;    /* a word that is in the vocabulary as a whole is that token, whatever the merges */
};

/* The bytes of tokenizer.json and of tokenizer_config.json; config NULL: there is none. */
typedef struct qvl_tokenizer_files {
    const void *json, *config;
    size_t json_count, config_count;
} qvl_tokenizer_files;

/* What qvl_tokenizer_open does, with files that were read already; folder is for messages. */
qvl_status qvl_tokenizer_parse(const char *folder, const qvl_tokenizer_files *files, qvl_log_fn log,
                               void *log_user, qvl_tokenizer **tokenizer, qvl_error *error);
/* tokenizer_load.c: fills *tokenizer, zeroed but for folder; half filled after a failure. */
qvl_status qvl_tokenizer_load(qvl_tokenizer *tokenizer, const qvl_tokenizer_files *files, qvl_log_fn log,
                              void *log_user, qvl_error *error);

#endif
