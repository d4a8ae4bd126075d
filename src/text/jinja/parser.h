/* From tokens to the tree. Used by the two halves of the parser only. */
#ifndef QVL_TEXT_JINJA_PARSER_H
#define QVL_TEXT_JINJA_PARSER_H

#include "text/jinja/lexer.h"
#include "text/jinja/node.h"

typedef struct jinja_parser {
    jinja_run *run;
    const jinja_token *tokens;
    size_t at; /* of the current token; the last one, TOKEN_END, is never passed */
} jinja_parser;

static inline const jinja_token *jinja_current(const jinja_parser *p) {
    return &p->tokens[p->at];
}

/* Fails at the current token. */
bool jinja_parse_fault(jinja_parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Steps over the current token and returns it. */
const jinja_token *jinja_advance(jinja_parser *p);
bool jinja_at_word(const jinja_parser *p, const char *word);
bool jinja_skip_word(jinja_parser *p, const char *word);
bool jinja_skip(jinja_parser *p, jinja_token_kind kind);
bool jinja_expect(jinja_parser *p, jinja_token_kind kind);
bool jinja_expect_word(jinja_parser *p, const char *word);

/* NULL, with an error, without memory. */
jinja_node *jinja_new_node(jinja_parser *p, jinja_node_kind kind, uint32_t offset);
bool jinja_add_node(jinja_parser *p, jinja_nodes *nodes, jinja_node *node);
/* Every node passes here when its children are complete: bounds the height of the tree. Returns the node. */
jinja_node *jinja_seal(jinja_parser *p, jinja_node *node);

/* All return NULL with an error. */
jinja_node *jinja_parse_expression(jinja_parser *p, bool with_condition);
jinja_node *jinja_parse_tuple(jinja_parser *p, bool with_condition);
/* A name, a tuple of targets, or with_namespace also ns.name. */
jinja_node *jinja_parse_target(jinja_parser *p, bool with_namespace);
jinja_node *jinja_parse_name_target(jinja_parser *p);
/* Filters behind a node, which may be NULL; inline_start: the first has no '|'. */
bool jinja_parse_filters(jinja_parser *p, bool inline_start, jinja_node **node);

/* The whole template. */
bool jinja_parse(jinja_run *run, const jinja_token *tokens, jinja_nodes *body);

/* Names to places, and what Jinja finds out when it compiles: unknown filters, break outside a loop, ... */
bool jinja_resolve(jinja_run *run, jinja_program *program);

#endif
