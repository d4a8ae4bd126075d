/* Added tokens: cut out of a text before anything else is done with it. */
#ifndef QVL_TEXT_ADDED_H
#define QVL_TEXT_ADDED_H

#include "qvl.h"

#include "text/pieces.h"
#include "text/unicode.h"

/* Longest content of an added token: bounds what matching may cost for one byte of text. */
#define QVL_ADDED_BYTES 1024

typedef struct qvl_added_token {
    int32_t id;
    char *content; /* owned; in NFC itself if it is looked for in NFC */
    bool single_word, lstrip, rstrip, normalized, special;
} qvl_added_token;

/* A tree of the bytes of the contents to look for; node 0 is the root. */
typedef struct qvl_added_tree {
    struct qvl_added_node *nodes;
    int32_t node_count, node_capacity;
    int32_t first[256]; /* the root's children by byte; -1: none */
} qvl_added_tree;

typedef struct qvl_added_tokens {
    qvl_added_token *items; /* in order of id */
    int32_t count;
    qvl_added_tree plain, normalized; /* the latter for tokens with normalized, which are looked for after NFC */
} qvl_added_tokens;

/* Builds the trees of items[0..count), whose contents must differ. */
qvl_status qvl_added_index(qvl_added_tokens *tokens, qvl_error *error);
/* Accepts a zeroed struct. */
void qvl_added_free(qvl_added_tokens *tokens);

/* What begins at the front of text[0..count), count >= 1. Sizes are in bytes, 0: nothing. */
typedef struct qvl_added_look {
    size_t any, special;       /* of the longest token there, and of the longest special one */
    bool any_cut, special_cut; /* text could be the beginning of a token that is longer than it */
} qvl_added_look;

qvl_added_look qvl_added_look_at(const qvl_added_tokens *tokens, const qvl_added_tree *tree, const uint8_t *text,
                                 size_t count);

/* Cuts the TEXT pieces of text: leftmost tokens first, of those the longest. Where recognise leaves a token out, its
 * bytes stay TEXT and matching goes on behind them. *out belongs to the caller, also after a failure. */
qvl_status qvl_added_cut(const qvl_added_tokens *tokens, const qvl_added_tree *tree, const qvl_unicode *unicode,
                         qvl_added recognise, const uint8_t *text, const qvl_pieces *pieces, qvl_pieces *out,
                         qvl_error *error);

#endif
