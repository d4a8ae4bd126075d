/* The ids of a tokenizer and the bytes that they stand for. */
#ifndef QVL_TEXT_VOCABULARY_H
#define QVL_TEXT_VOCABULARY_H

#include "base/error.h"

/* Ids are below this: bounds what a hostile file may make of one number. */
#define QVL_ID_LIMIT ((int32_t)1 << 21)

#define QVL_TOKEN_USED 1
#define QVL_TOKEN_ADDED 2
#define QVL_TOKEN_SPECIAL 4
#define QVL_TOKEN_WORD 8 /* of the base vocabulary, and its name is in ByteLevel's alphabet: BPE may give it */

/* Immutable once filled. */
typedef struct qvl_vocabulary {
    int32_t base_count, id_limit;
    uint8_t *flags;  /* [id_limit] QVL_TOKEN_*; 0: no such id */
    size_t *offsets; /* [id_limit + 1] into bytes: an id's are offsets[id]..offsets[id + 1] - 1, then a NUL */
    char *bytes;
    int32_t *words; /* hash table of words by their bytes, -1: empty; NULL where nobody asks for them */
    size_t word_mask;
} qvl_vocabulary;

/* What a token of tokenizer.json stands for: names are written in ByteLevel's alphabet, in which every byte is a
 * printable character; false: a name with any other character, which stands for its own UTF-8. bytes has room for
 * strlen(name). */
bool qvl_token_bytes(const char *name, char *bytes, size_t *count);
/* The character that stands for a byte in that alphabet, as UTF-8 with a NUL. */
void qvl_byte_name(uint8_t byte, char name[5]);

/* names[0..id_limit): of base or added tokens, NULL: no such id; flags as above, copied; QVL_TOKEN_WORD may be set of
 * any base token and is taken from those with other names. */
qvl_status qvl_vocabulary_open(qvl_vocabulary *vocabulary, const char *const *names, const uint8_t *flags,
                               int32_t id_limit, qvl_error *error);
/* Makes words. */
qvl_status qvl_vocabulary_index(qvl_vocabulary *vocabulary, qvl_error *error);
/* The word of these bytes, -1: none. */
int32_t qvl_vocabulary_word(const qvl_vocabulary *vocabulary, const uint8_t *bytes, size_t count);
/* Accepts a zeroed struct. */
void qvl_vocabulary_close(qvl_vocabulary *vocabulary);

/* Of an id in use. */
static inline const char *qvl_vocabulary_bytes(const qvl_vocabulary *v, int32_t id, size_t *count) {
    *count = v->offsets[id + 1] - v->offsets[id] - 1;
    return v->bytes + v->offsets[id];
}

static inline bool qvl_vocabulary_has(const qvl_vocabulary *v, int32_t id) {
    return id >= 0 && id < v->id_limit && v->flags[id];
}

/* A hash of bytes, the same on every machine. */
uint64_t qvl_hash_bytes(const void *bytes, size_t count);

#endif
