/* The tree of a template. Immutable once compiled: renderings in several threads may walk it. */
#ifndef QVL_TEXT_JINJA_NODE_H
#define QVL_TEXT_JINJA_NODE_H

#include "text/jinja/value.h"

/* Jinja itself fails at about 200 levels. */
#define JINJA_MAX_HEIGHT 250

typedef enum jinja_node_kind {
    /* expressions */
    NODE_CONST,     /* value */
    NODE_NAME,      /* name; flag: assigned, not read */
    NODE_NSREF,     /* name . attribute (value), assigned */
    NODE_TUPLE,     /* items */
    NODE_LIST,      /* items */
    NODE_DICT,      /* items: key, value, key, value, ... */
    NODE_UNARY,     /* op: '-', '+' or '!' (not); a */
    NODE_BINARY,    /* op: see jinja_operator; a, b */
    NODE_AND,       /* a, b */
    NODE_OR,        /* a, b */
    NODE_COMPARE,   /* a, items with their ops in ops */
    NODE_CONCAT,    /* items */
    NODE_CONDITION, /* a if b else c (may be NULL) */
    NODE_FILTER,    /* name, a (NULL: the text of a block), call */
    NODE_TEST,      /* name, a, call */
    NODE_CALL,      /* a, call */
    NODE_ATTRIBUTE, /* a . name */
    NODE_ITEM,      /* a [b] */
    NODE_SLICE,     /* [a:b:c], each may be NULL; only as b of an item */
    /* statements */
    NODE_OUTPUT,       /* items; a NODE_CONST with flag is text of the template */
    NODE_IF,           /* a, items, elifs in more, last: else */
    NODE_FOR,          /* a: target, b: iterable, c: test or NULL; items, more: else; flag: recursive */
    NODE_MACRO,        /* name, parameters (items), defaults (more), last: body */
    NODE_CALL_BLOCK,   /* a: the call; else as a macro */
    NODE_GENERATION,   /* last: body */
    NODE_FILTER_BLOCK, /* items, a: filter */
    NODE_SET,          /* a: target, b */
    NODE_SET_BLOCK,    /* a: target, b: filter or NULL, items */
    NODE_WITH,         /* items: targets, more: values, last: body */
    NODE_BREAK,
    NODE_CONTINUE
} jinja_node_kind;

typedef enum jinja_operator {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_FLOORDIV,
    OP_MOD,
    OP_POW,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_IN,
    OP_NOT_IN
} jinja_operator;

typedef struct jinja_nodes {
    jinja_node **at;
    size_t count, capacity;
} jinja_nodes;

/* What is between the parentheses of a call, a filter or a test. */
typedef struct jinja_call {
    jinja_nodes args;
    jinja_nodes names, values; /* keywords: names are NODE_CONST strings */
    jinja_node *star, *double_star;
} jinja_call;

typedef enum jinja_load {
    LOAD_PARAMETER, /* whoever makes the frame sets it */
    LOAD_RESOLVE,   /* a variable or a global */
    LOAD_ALIAS,     /* what the name means in the frame around */
    LOAD_UNDEFINED  /* nothing, until it is assigned */
} jinja_load;

typedef struct jinja_symbol {
    const jinja_string *name;
    uint8_t load;
    bool stored;
    uint32_t hops, slot; /* LOAD_ALIAS: where the other one is, as in a NODE_NAME */
} jinja_symbol;

/* The names of one frame: a template, a loop's body, a macro, ... */
typedef struct jinja_scope {
    struct jinja_scope *parent;
    jinja_symbol *symbols;
    size_t count, capacity;
} jinja_scope;

struct jinja_node {
    uint8_t kind, op;
    bool flag;
    bool caller, kwargs, varargs; /* of macros: which of these names the body uses */
    bool extended;                /* of a for: its body uses loop */
    uint16_t height;              /* of the tree below */
    uint32_t offset;              /* in the source */
    uint32_t hops, slot;          /* of a name: so many frames up, its place there */
    const jinja_string *name;
    jinja_value value;
    jinja_node *a, *b, *c;
    jinja_nodes items, more, last;
    uint8_t *ops;
    jinja_call *call;
    const jinja_function *filter; /* NULL: unknown, an error when it is used */
    const struct jinja_test *test;
    jinja_scope *scope, *else_scope, *test_scope;
};

typedef struct jinja_program {
    jinja_arena arena;
    const char *source; /* newlines made one */
    size_t length;
    jinja_nodes body;
    jinja_scope *scope;
} jinja_program;

/* Calls visit for each child in Jinja's own order, which rules on names depend on. */
typedef bool (*jinja_visit_fn)(void *user, jinja_node *child);
bool jinja_each_child(const jinja_node *node, jinja_visit_fn visit, void *user);

#endif
