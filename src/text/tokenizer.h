/* The tokenizer: text to ids and back, the same as Hugging Face tokenizers for byte-level BPE vocabularies.
 * The public calls are in qvl.h ("text and token ids"); this header says how the stages hang together.
 *
 *     text --repair--> UTF-8 --added tokens cut out--> stretches --NFC--> --marks out--> words --BPE--> ids
 *
 * repair     (utf8.c)        bytes that are not UTF-8 become U+FFFD
 * added      (added.c)       added tokens are cut out of the text, leftmost and longest first, marks in place
 * normalise  (normalize.c)   NFC of each stretch between added tokens
 * marks      (marks.c)       U+FDD0 is dropped, hidden characters come back; then NFC again where some went
 * split      (split.c)       the pre-tokenizer's pattern, as a scanner over Unicode classes (unicode.c)
 * BPE        (bpe.c)         merges by rank inside a word; words seen in the same call are copied
 *
 * Marked text. U+FDD0 (EF B7 90) is a mark: it stands for nothing and breaks up what would be an added token. U+FDD1
 * followed by six of U+FDE0..U+FDEF, the digits 0..F, is the hidden character with that hexadecimal number. Any other
 * U+FDD1 to U+FDEF in marked text stands for itself. qvl_text_mark makes marked text; whoever makes it by other means
 * must hide U+FDD0..U+FDEF in what is not his own.
 */
#ifndef QVL_TEXT_TOKENIZER_H
#define QVL_TEXT_TOKENIZER_H

#include "qvl.h"

#endif
