#include "text/added.h"

#include "base/memory.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------------- the trees */

typedef struct qvl_added_node {
    int32_t child, sibling; /* -1: none */
    int32_t token;          /* index of the token that ends here; -1: none */
    uint8_t byte;
    bool special_below; /* a special token goes on from here */
} node;

static qvl_status new_node(qvl_added_tree *tree, uint8_t byte, int32_t sibling, int32_t *index, qvl_error *error) {
    if (tree->node_count == tree->node_capacity) {
        int32_t grown = tree->node_capacity ? 2 * tree->node_capacity : 256;
        node *nodes = qvl_alloc((size_t)grown, sizeof *nodes);
        if (!nodes) return qvl_fail_memory(error, "added tokens", (size_t)grown, sizeof *nodes);
        if (tree->node_count) memcpy(nodes, tree->nodes, (size_t)tree->node_count * sizeof *nodes);
        qvl_free(tree->nodes);
        tree->nodes = nodes;
        tree->node_capacity = grown;
    }
    *index = tree->node_count++;
    tree->nodes[*index] = (node){.child = -1, .sibling = sibling, .token = -1, .byte = byte};
    return QVL_OK;
}

static int32_t find_child(const qvl_added_tree *tree, int32_t parent, uint8_t byte) {
    int32_t child = tree->nodes[parent].child;
    while (child >= 0 && tree->nodes[child].byte != byte) child = tree->nodes[child].sibling;
    return child;
}

static qvl_status insert(qvl_added_tree *tree, const char *content, int32_t token, bool special,
                         qvl_error *error) {
    int32_t at = tree->first[(uint8_t)content[0]];
    if (at < 0) {
        qvl_status status = new_node(tree, (uint8_t)content[0], -1, &at, error);
        if (status) return status;
        tree->first[(uint8_t)content[0]] = at;
    }
    for (const char *c = content + 1; *c; c++) {
        if (special) tree->nodes[at].special_below = true;
        int32_t child = find_child(tree, at, (uint8_t)*c);
        if (child < 0) {
            qvl_status status = new_node(tree, (uint8_t)*c, tree->nodes[at].child, &child, error);
            if (status) return status;
            tree->nodes[at].child = child;
        }
        at = child;
    }
    tree->nodes[at].token = token;
    return QVL_OK;
}

qvl_status qvl_added_index(qvl_added_tokens *tokens, qvl_error *error) {
    memset(tokens->plain.first, 0xff, sizeof tokens->plain.first);
    memset(tokens->normalized.first, 0xff, sizeof tokens->normalized.first);
    for (int32_t i = 0; i < tokens->count; i++) {
        const qvl_added_token *t = &tokens->items[i];
        qvl_added_tree *tree = t->normalized ? &tokens->normalized : &tokens->plain;
        qvl_status status = insert(tree, t->content, i, t->special, error);
        if (status) return status;
    }
    return QVL_OK;
}

void qvl_added_free(qvl_added_tokens *tokens) {
    for (int32_t i = 0; i < tokens->count; i++) qvl_free(tokens->items[i].content);
    qvl_free(tokens->items);
    qvl_free(tokens->plain.nodes);
    qvl_free(tokens->normalized.nodes);
    *tokens = (qvl_added_tokens){0};
}

/* The longest token at the front of text[0..count), -1: none. *size is its length. */
static int32_t match_here(const qvl_added_tree *tree, const uint8_t *text, size_t count, size_t *size) {
    int32_t found = -1;
    int32_t at = tree->first[text[0]];
    for (size_t i = 1; at >= 0; i++) {
        if (tree->nodes[at].token >= 0) {
            found = tree->nodes[at].token;
            *size = i;
        }
        at = i < count ? find_child(tree, at, text[i]) : -1;
    }
    return found;
}

qvl_added_look qvl_added_look_at(const qvl_added_tokens *tokens, const qvl_added_tree *tree, const uint8_t *text,
                                 size_t count) {
    qvl_added_look look = {0};
    int32_t at = tree->first[text[0]];
    for (size_t i = 1; at >= 0; i++) {
        const node *n = &tree->nodes[at];
        if (n->token >= 0) look.any = i;
        if (n->token >= 0 && tokens->items[n->token].special) look.special = i;
        if (i == count) {
            look.any_cut = n->child >= 0;
            look.special_cut = n->special_below;
            break;
        }
        at = find_child(tree, at, text[i]);
    }
    return look;
}

/* ------------------------------------------------------------------------------------------------ the cutting */

/* One piece of text while it is cut. */
typedef struct cut {
    const qvl_added_tokens *tokens;
    const qvl_unicode *unicode;
    const uint8_t *text;
    size_t start, end; /* the piece */
    qvl_added recognise;
    qvl_pieces *out;
} cut;

static uint8_t value_at(const cut *c, size_t at) {
    size_t size;
    return qvl_unicode_value(c->unicode, qvl_utf8_get(c->text + at, &size));
}

static bool is_space(const cut *c, size_t at) {
    return (value_at(c, at) & QVL_KIND) == QVL_KIND_SPACE;
}

/* No word character touches the token. What is beyond the piece does not count. */
static bool stands_alone(const cut *c, size_t from, size_t to) {
    if (from > c->start && value_at(c, qvl_utf8_back(c->text, from)) & QVL_WORD) return false;
    return to == c->end || !(value_at(c, to) & QVL_WORD);
}

/* The token was found at from..to: adds the text before it, and it, with the space that it takes along. */
static qvl_status take(const cut *c, const qvl_added_token *token, size_t from, size_t to, qvl_error *error) {
    if (c->recognise == QVL_ADDED_ORDINARY && token->special) return QVL_OK;
    if (token->single_word && !stands_alone(c, from, to)) return QVL_OK;
    size_t last = c->out->bounds[c->out->count];
    if (token->lstrip)
        while (from > last && is_space(c, qvl_utf8_back(c->text, from))) from = qvl_utf8_back(c->text, from);
    if (token->rstrip)
        while (to < c->end && is_space(c, to)) to += qvl_utf8_size(c->text[to]);
    /* A token before this one may have taken space that this one begins with. */
    if (from > last) {
        qvl_status status = qvl_pieces_add(c->out, from, QVL_PIECE_TEXT, error);
        if (status) return status;
    }
    return to > last ? qvl_pieces_add(c->out, to, token->id, error) : QVL_OK;
}

static qvl_status cut_piece(const cut *c, const qvl_added_tree *tree, qvl_error *error) {
    for (size_t at = c->start; at < c->end;) {
        size_t size = 0;
        int32_t found = tree->first[c->text[at]] < 0 ? -1 : match_here(tree, c->text + at, c->end - at, &size);
        if (found < 0) {
            at++;
            continue;
        }
        qvl_status status = take(c, &c->tokens->items[found], at, at + size, error);
        if (status) return status;
        at += size;
    }
    return qvl_pieces_add(c->out, c->end, QVL_PIECE_TEXT, error);
}

qvl_status qvl_added_cut(const qvl_added_tokens *tokens, const qvl_added_tree *tree, const qvl_unicode *unicode,
                         qvl_added recognise, const uint8_t *text, const qvl_pieces *pieces, qvl_pieces *out,
                         qvl_error *error) {
    qvl_status status = qvl_pieces_open(out, error);
    for (size_t i = 0; i < pieces->count && !status; i++) {
        cut c = {.tokens = tokens, .unicode = unicode, .text = text, .recognise = recognise, .out = out};
        c.start = pieces->bounds[i];
        c.end = pieces->bounds[i + 1];
        if (pieces->ids[i] == QVL_PIECE_TEXT && recognise != QVL_ADDED_NONE)
            status = cut_piece(&c, tree, error);
        else
            status = qvl_pieces_add(out, c.end, pieces->ids[i], error);
    }
    return status;
}
