/* A text cut into pieces without gaps: added tokens, and what lies between them. */
#ifndef QVL_TEXT_PIECES_H
#define QVL_TEXT_PIECES_H

#include "base/error.h"

#define QVL_PIECE_TEXT (-1) /* still to be cut into words */
#define QVL_PIECE_WORD (-2) /* one word */

typedef struct qvl_pieces {
    size_t count, capacity;
    size_t *bounds; /* [count + 1]: piece i is the bytes bounds[i]..bounds[i + 1] */
    int32_t *ids;   /* [count] an added token's id, or QVL_PIECE_* */
} qvl_pieces;

/* No pieces, of no text. */
qvl_status qvl_pieces_open(qvl_pieces *pieces, qvl_error *error);
/* The next piece, from the end of the last one; an empty one is left out. */
qvl_status qvl_pieces_add(qvl_pieces *pieces, size_t end, int32_t id, qvl_error *error);
/* Accepts a zeroed struct. */
void qvl_pieces_free(qvl_pieces *pieces);

#endif
