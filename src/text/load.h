/* The parts of reading tokenizer.json that tokenizer_load.c puts together. */
#ifndef QVL_TEXT_LOAD_H
#define QVL_TEXT_LOAD_H

#include "base/json.h"
#include "text/tokenizer.h"

/* The names of the base vocabulary: by id, and ids by name. */
typedef struct qvl_names {
    const char **by_id; /* [id_limit] of the parsed JSON; NULL: no such id */
    int32_t count, id_limit;
    int32_t *ids; /* hash table, -1: empty */
    size_t mask;
    size_t longest; /* bytes of the longest name */
} qvl_names;

/* model.vocab of the file: names to ids, no id twice. */
qvl_status qvl_names_read(qvl_names *names, const cJSON *vocab, const char *file, qvl_error *error);
/* -1: none. */
int32_t qvl_names_find(const qvl_names *names, const char *name, size_t count);
/* Accepts a zeroed struct. */
void qvl_names_free(qvl_names *names);

/* model.merges, "a b" or ["a", "b"]; a, b and ab are names. */
qvl_status qvl_merges_read(qvl_bpe *bpe, const qvl_names *names, const cJSON *merges, const char *file,
                           qvl_error *error);

/* normalizer, pre_tokenizer, post_processor, decoder: what they ask for into the tokenizer, or a refusal. */
qvl_status qvl_stages_read(qvl_tokenizer *tokenizer, const cJSON *root, const char *file, qvl_error *error);

/* Added tokens while they are read, in the order in which the reference gives them ids. Zeroed but for the first
 * four. */
typedef struct qvl_added_reader {
    qvl_added_tokens *tokens;
    const qvl_names *names;
    qvl_log_fn log;
    void *log_user;
    int32_t capacity; /* of tokens->items */
    int32_t next_id;  /* of the next token that the base vocabulary does not have */
    int32_t *places;  /* hash table of indexes by content, -1: empty */
    size_t mask;
} qvl_added_reader;

/* added_tokens of tokenizer.json, a list; may be NULL. */
qvl_status qvl_added_read(qvl_added_reader *reader, const cJSON *list, const char *file, qvl_error *error);
/* added_tokens_decoder of tokenizer_config.json, an object by id; may be NULL. Its word is the last one on a token. */
qvl_status qvl_added_read_config(qvl_added_reader *reader, const cJSON *object, const char *file,
                                 qvl_error *error);
/* Not the tokens. */
void qvl_added_reader_free(qvl_added_reader *reader);

#endif
