/* Expressions, in Jinja's precedence: condition, or, and, not, comparison, + -, ~, * / // %, **, sign, postfix,
 * filters and tests. */
#include "text/jinja/calls.h"
#include "text/jinja/parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --------------------------------------------------------------------------------------------------- the tokens */

bool jinja_parse_fault(jinja_parser *p, const char *format, ...) {
    jinja_run *run = p->run;
    if (run->status) return false;
    char message[400];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    run->located = true;
    run->offset = jinja_current(p)->offset;
    return jinja_raise(run, "%s", message);
}

const jinja_token *jinja_advance(jinja_parser *p) {
    const jinja_token *token = jinja_current(p);
    if (token->kind != TOKEN_END) p->at++;
    return token;
}

static bool is_word(const jinja_token *token, const char *word) {
    const jinja_string *name = token->value.as.string;
    return token->kind == TOKEN_NAME && name->length == strlen(word) &&
           memcmp(name->data, word, name->length) == 0;
}

bool jinja_at_word(const jinja_parser *p, const char *word) {
    return is_word(jinja_current(p), word);
}

bool jinja_skip_word(jinja_parser *p, const char *word) {
    bool there = jinja_at_word(p, word);
    if (there) p->at++;
    return there;
}

bool jinja_skip(jinja_parser *p, jinja_token_kind kind) {
    bool there = jinja_current(p)->kind == kind;
    if (there) jinja_advance(p);
    return there;
}

/* What a token is called in a message. */
static const char *token_text(const jinja_token *token, char text[64]) {
    if (token->kind != TOKEN_NAME) return jinja_describe(token->kind);
    const jinja_string *name = token->value.as.string;
    snprintf(text, 64, "%.*s", (int)(name->length < 60 ? name->length : 60), name->data);
    return text;
}

static bool fail_expected(jinja_parser *p, const char *wanted) {
    char text[64];
    if (jinja_current(p)->kind == TOKEN_END)
        return jinja_parse_fault(p, "unexpected end of template, expected '%s'.", wanted);
    return jinja_parse_fault(p, "expected token '%s', got '%s'", wanted, token_text(jinja_current(p), text));
}

bool jinja_expect(jinja_parser *p, jinja_token_kind kind) {
    return jinja_skip(p, kind) || fail_expected(p, jinja_describe(kind));
}

bool jinja_expect_word(jinja_parser *p, const char *word) {
    return jinja_skip_word(p, word) || fail_expected(p, word);
}

/* ---------------------------------------------------------------------------------------------------- the nodes */

jinja_node *jinja_new_node(jinja_parser *p, jinja_node_kind kind, uint32_t offset) {
    jinja_node *node = jinja_take(p->run, 1, sizeof *node);
    if (!node) return NULL;
    memset(node, 0, sizeof *node);
    node->kind = (uint8_t)kind;
    node->offset = offset;
    return node;
}

bool jinja_add_node(jinja_parser *p, jinja_nodes *nodes, jinja_node *node) {
    if (nodes->count == nodes->capacity) {
        size_t capacity = nodes->capacity ? nodes->capacity * 2 : 4;
        jinja_node **at = jinja_take(p->run, capacity, sizeof *at);
        if (!at) return false;
        if (nodes->count) memcpy(at, nodes->at, nodes->count * sizeof(jinja_node *));
        nodes->at = at;
        nodes->capacity = capacity;
    }
    nodes->at[nodes->count++] = node;
    return true;
}

static bool measure(void *user, jinja_node *child) {
    uint16_t *height = user;
    if (child->height >= *height) *height = (uint16_t)(child->height + 1);
    return true;
}

jinja_node *jinja_seal(jinja_parser *p, jinja_node *node) {
    jinja_each_child(node, measure, &node->height);
    if (node->height <= JINJA_MAX_HEIGHT) return node;
    jinja_over_limit(p->run, "nested deeper than %d levels", JINJA_MAX_HEIGHT);
    return NULL;
}

static jinja_node *new_two(jinja_parser *p, jinja_node_kind kind, uint8_t op, jinja_node *a, jinja_node *b) {
    jinja_node *node = jinja_new_node(p, kind, a->offset);
    if (!node) return NULL;
    node->op = op;
    node->a = a;
    node->b = b;
    return jinja_seal(p, node);
}

static jinja_node *new_const(jinja_parser *p, uint32_t offset, jinja_value value) {
    jinja_node *node = jinja_new_node(p, NODE_CONST, offset);
    if (node) node->value = value;
    return node;
}

/* ---------------------------------------------------------------------------------------------------- primaries */

/* Adjacent strings are one. */
static jinja_node *parse_strings(jinja_parser *p) {
    const jinja_token *token = jinja_advance(p);
    jinja_value value = token->value;
    while (jinja_current(p)->kind == TOKEN_STRING) {
        const jinja_string *next = jinja_advance(p)->value.as.string;
        if (!jinja_join_strings(p->run, value.as.string, next, &value) ||
            !jinja_view_string(p->run, value.as.string->data, value.as.string->length, &value))
            return NULL;
    }
    return new_const(p, token->offset, value);
}

static jinja_node *parse_name(jinja_parser *p, bool with_namespace) {
    const jinja_token *token = jinja_advance(p);
    if (is_word(token, "true") || is_word(token, "True")) return new_const(p, token->offset, jinja_bool(true));
    if (is_word(token, "false") || is_word(token, "False")) return new_const(p, token->offset, jinja_bool(false));
    if (is_word(token, "none") || is_word(token, "None")) return new_const(p, token->offset, jinja_none());
    bool reference = with_namespace && jinja_skip(p, TOKEN_DOT);
    jinja_node *node = jinja_new_node(p, reference ? NODE_NSREF : NODE_NAME, token->offset);
    if (!node) return NULL;
    node->name = token->value.as.string;
    if (!reference) return node;
    node->value = jinja_current(p)->value;
    return jinja_expect(p, TOKEN_NAME) ? node : NULL;
}

static jinja_node *parse_list(jinja_parser *p) {
    jinja_node *node = jinja_new_node(p, NODE_LIST, jinja_advance(p)->offset);
    if (!node) return NULL;
    while (jinja_current(p)->kind != TOKEN_RBRACKET) {
        if (node->items.count && !jinja_expect(p, TOKEN_COMMA)) return NULL;
        if (jinja_current(p)->kind == TOKEN_RBRACKET) break;
        jinja_node *item = jinja_parse_expression(p, true);
        if (!item || !jinja_add_node(p, &node->items, item)) return NULL;
    }
    jinja_advance(p);
    return jinja_seal(p, node);
}

static jinja_node *parse_dict(jinja_parser *p) {
    jinja_node *node = jinja_new_node(p, NODE_DICT, jinja_advance(p)->offset);
    if (!node) return NULL;
    while (jinja_current(p)->kind != TOKEN_RBRACE) {
        if (node->items.count && !jinja_expect(p, TOKEN_COMMA)) return NULL;
        if (jinja_current(p)->kind == TOKEN_RBRACE) break;
        jinja_node *key = jinja_parse_expression(p, true);
        if (!key || !jinja_add_node(p, &node->items, key) || !jinja_expect(p, TOKEN_COLON)) return NULL;
        jinja_node *value = jinja_parse_expression(p, true);
        if (!value || !jinja_add_node(p, &node->items, value)) return NULL;
    }
    jinja_advance(p);
    return jinja_seal(p, node);
}

static jinja_node *parse_some_tuple(jinja_parser *p, jinja_node *(*parse)(jinja_parser *, bool), bool mode,
                                    bool may_be_empty);

static jinja_node *parse_primary(jinja_parser *p, bool with_namespace) {
    const jinja_token *token = jinja_current(p);
    jinja_node *node;
    char text[64];
    switch (token->kind) {
    case TOKEN_NAME:
        return parse_name(p, with_namespace);
    case TOKEN_STRING:
        return parse_strings(p);
    case TOKEN_INTEGER:
    case TOKEN_FLOAT:
        jinja_advance(p);
        return new_const(p, token->offset, token->value);
    case TOKEN_LPAREN:
        jinja_advance(p);
        node = parse_some_tuple(p, jinja_parse_expression, true, true);
        return node && jinja_expect(p, TOKEN_RPAREN) ? node : NULL;
    case TOKEN_LBRACKET:
        return parse_list(p);
    case TOKEN_LBRACE:
        return parse_dict(p);
    default:
        jinja_parse_fault(p, "unexpected '%s'", token_text(token, text));
        return NULL;
    }
}

/* ----------------------------------------------------------------------------------------------- calls, postfix */

static bool parse_keyword(jinja_parser *p, jinja_call *call) {
    const jinja_token *name = jinja_advance(p);
    jinja_advance(p);
    jinja_node *key = new_const(p, name->offset, name->value), *value = jinja_parse_expression(p, true);
    if (!key || !value || !jinja_step(p->run, call->names.count)) return false;
    for (size_t i = 0; i < call->names.count; i++)
        if (jinja_same(call->names.at[i]->value, name->value))
            return jinja_parse_fault(p, "keyword argument repeated: %.*s", (int)name->value.as.string->length,
                                     name->value.as.string->data);
    return jinja_add_node(p, &call->names, key) && jinja_add_node(p, &call->values, value);
}

static bool parse_argument(jinja_parser *p, jinja_call *call) {
    static const char fault[] = "invalid syntax for function call expression";
    if (jinja_current(p)->kind == TOKEN_MUL) {
        if (call->star || call->double_star) return jinja_parse_fault(p, fault);
        jinja_advance(p);
        return (call->star = jinja_parse_expression(p, true)) != NULL;
    }
    if (jinja_current(p)->kind == TOKEN_POW) {
        if (call->double_star) return jinja_parse_fault(p, fault);
        jinja_advance(p);
        return (call->double_star = jinja_parse_expression(p, true)) != NULL;
    }
    if (jinja_current(p)->kind == TOKEN_NAME && p->tokens[p->at + 1].kind == TOKEN_ASSIGN) {
        if (call->double_star) return jinja_parse_fault(p, fault);
        return parse_keyword(p, call);
    }
    if (call->star || call->double_star || call->names.count) return jinja_parse_fault(p, fault);
    jinja_node *argument = jinja_parse_expression(p, true);
    return argument && jinja_add_node(p, &call->args, argument);
}

static jinja_call *new_call(jinja_parser *p) {
    jinja_call *call = jinja_take(p->run, 1, sizeof *call);
    if (call) *call = (jinja_call){0};
    return call;
}

/* From the opening parenthesis to the closing one. */
static jinja_call *parse_arguments(jinja_parser *p) {
    jinja_call *call = new_call(p);
    if (!call || !jinja_expect(p, TOKEN_LPAREN)) return NULL;
    for (bool first = true; jinja_current(p)->kind != TOKEN_RPAREN; first = false) {
        if (!first && !jinja_expect(p, TOKEN_COMMA)) return NULL;
        if (!first && jinja_current(p)->kind == TOKEN_RPAREN) break;
        if (!parse_argument(p, call)) return NULL;
    }
    jinja_advance(p);
    return call;
}

static jinja_node *parse_call(jinja_parser *p, jinja_node *callee) {
    jinja_node *node = jinja_new_node(p, NODE_CALL, callee->offset);
    if (!node) return NULL;
    node->a = callee;
    node->call = parse_arguments(p);
    return node->call ? jinja_seal(p, node) : NULL;
}

/* One of start, stop, step; *part stays NULL where it is left out. */
static bool parse_slice_part(jinja_parser *p, jinja_node **part) {
    jinja_token_kind kind = jinja_current(p)->kind;
    if (kind == TOKEN_COLON || kind == TOKEN_RBRACKET || kind == TOKEN_COMMA) return true;
    return (*part = jinja_parse_expression(p, true)) != NULL;
}

static jinja_node *parse_subscript(jinja_parser *p) {
    jinja_node *slice = jinja_new_node(p, NODE_SLICE, jinja_current(p)->offset);
    if (!slice) return NULL;
    if (jinja_current(p)->kind != TOKEN_COLON) {
        slice->a = jinja_parse_expression(p, true);
        if (!slice->a) return NULL;
        if (jinja_current(p)->kind != TOKEN_COLON) return slice->a;
    }
    jinja_advance(p);
    if (!parse_slice_part(p, &slice->b)) return NULL;
    if (jinja_skip(p, TOKEN_COLON) && !parse_slice_part(p, &slice->c)) return NULL;
    return jinja_seal(p, slice);
}

/* a[...]: one subscript, or several, which are a tuple. */
static jinja_node *parse_item(jinja_parser *p, jinja_node *object) {
    jinja_node *tuple = jinja_new_node(p, NODE_TUPLE, jinja_advance(p)->offset);
    if (!tuple) return NULL;
    while (jinja_current(p)->kind != TOKEN_RBRACKET) {
        if (tuple->items.count && !jinja_expect(p, TOKEN_COMMA)) return NULL;
        jinja_node *part = parse_subscript(p);
        if (!part || !jinja_add_node(p, &tuple->items, part)) return NULL;
    }
    jinja_advance(p);
    if (tuple->items.count == 1) return new_two(p, NODE_ITEM, 0, object, tuple->items.at[0]);
    for (size_t i = 0; i < tuple->items.count; i++)
        if (tuple->items.at[i]->kind == NODE_SLICE) {
            jinja_parse_fault(p, "a slice among several subscripts");
            return NULL;
        }
    return jinja_seal(p, tuple) ? new_two(p, NODE_ITEM, 0, object, tuple) : NULL;
}

static jinja_node *parse_attribute(jinja_parser *p, jinja_node *object) {
    jinja_advance(p);
    const jinja_token *token = jinja_current(p);
    if (token->kind == TOKEN_INTEGER) {
        jinja_advance(p);
        jinja_node *index = new_const(p, token->offset, token->value);
        return index ? new_two(p, NODE_ITEM, 0, object, index) : NULL;
    }
    if (token->kind != TOKEN_NAME) {
        jinja_parse_fault(p, "expected name or number");
        return NULL;
    }
    jinja_advance(p);
    jinja_node *node = jinja_new_node(p, NODE_ATTRIBUTE, token->offset);
    if (!node) return NULL;
    node->a = object;
    node->name = token->value.as.string;
    return jinja_seal(p, node);
}

static jinja_node *parse_postfix(jinja_parser *p, jinja_node *node) {
    while (node) {
        jinja_token_kind kind = jinja_current(p)->kind;
        if (kind == TOKEN_DOT)
            node = parse_attribute(p, node);
        else if (kind == TOKEN_LBRACKET)
            node = parse_item(p, node);
        else if (kind == TOKEN_LPAREN)
            node = parse_call(p, node);
        else
            return node;
    }
    return NULL;
}

/* --------------------------------------------------------------------------------------------- filters and tests */

/* name or name.name, which nothing is called: NULL, with an error, without memory or a name. */
static const jinja_string *parse_dotted(jinja_parser *p) {
    static const jinja_string dot = {".", 1, 1, NULL};
    jinja_value name = jinja_current(p)->value;
    if (!jinja_expect(p, TOKEN_NAME)) return NULL;
    while (jinja_skip(p, TOKEN_DOT)) {
        const jinja_value part = jinja_current(p)->value;
        if (!jinja_expect(p, TOKEN_NAME) || !jinja_join_strings(p->run, name.as.string, &dot, &name) ||
            !jinja_join_strings(p->run, name.as.string, part.as.string, &name))
            return NULL;
    }
    return name.as.string;
}

bool jinja_parse_filters(jinja_parser *p, bool inline_start, jinja_node **node) {
    while (inline_start || jinja_skip(p, TOKEN_PIPE)) {
        inline_start = false;
        jinja_node *filter = jinja_new_node(p, NODE_FILTER, jinja_current(p)->offset);
        if (!filter || !(filter->name = parse_dotted(p))) return false;
        filter->a = *node;
        filter->filter = jinja_find_filter(filter->name);
        filter->call = jinja_current(p)->kind == TOKEN_LPAREN ? parse_arguments(p) : new_call(p);
        if (!filter->call || !jinja_seal(p, filter)) return false;
        *node = filter;
    }
    return true;
}

/* "x is divisibleby 3": an argument without parentheses. */
static bool parse_bare_argument(jinja_parser *p, jinja_call *call) {
    jinja_token_kind kind = jinja_current(p)->kind;
    bool starts = kind == TOKEN_NAME || kind == TOKEN_STRING || kind == TOKEN_INTEGER || kind == TOKEN_FLOAT ||
                  kind == TOKEN_LBRACKET || kind == TOKEN_LBRACE;
    if (!starts || jinja_at_word(p, "else") || jinja_at_word(p, "or") || jinja_at_word(p, "and")) return true;
    if (jinja_at_word(p, "is")) return jinja_parse_fault(p, "You cannot chain multiple tests with is");
    jinja_node *argument = parse_primary(p, false);
    argument = argument ? parse_postfix(p, argument) : NULL;
    return argument && jinja_add_node(p, &call->args, argument);
}

static jinja_node *parse_test(jinja_parser *p, jinja_node *subject) {
    jinja_advance(p);
    bool negated = jinja_skip_word(p, "not");
    jinja_node *test = jinja_new_node(p, NODE_TEST, jinja_current(p)->offset);
    if (!test || !(test->name = parse_dotted(p))) return NULL;
    test->a = subject;
    test->test = jinja_find_test(test->name);
    if (jinja_current(p)->kind == TOKEN_LPAREN) {
        test->call = parse_arguments(p);
        if (!test->call) return NULL;
    } else {
        test->call = new_call(p);
        if (!test->call || !parse_bare_argument(p, test->call)) return NULL;
    }
    if (!jinja_seal(p, test)) return NULL;
    return negated ? new_two(p, NODE_UNARY, '!', test, NULL) : test;
}

static jinja_node *parse_filters_and_tests(jinja_parser *p, jinja_node *node) {
    while (node) {
        if (jinja_current(p)->kind == TOKEN_PIPE) {
            if (!jinja_parse_filters(p, false, &node)) return NULL;
        } else if (jinja_at_word(p, "is")) {
            node = parse_test(p, node);
        } else if (jinja_current(p)->kind == TOKEN_LPAREN) {
            node = parse_call(p, node);
        } else {
            return node;
        }
    }
    return NULL;
}

/* ---------------------------------------------------------------------------------------------------- operators */

static jinja_node *parse_unary(jinja_parser *p, bool with_filters) {
    const jinja_token *token = jinja_current(p);
    jinja_node *node;
    if (!jinja_enter(p->run)) return NULL;
    if (token->kind == TOKEN_SUB || token->kind == TOKEN_ADD) {
        jinja_advance(p);
        jinja_node *operand = parse_unary(p, false);
        node = operand ? new_two(p, NODE_UNARY, token->kind == TOKEN_SUB ? '-' : '+', operand, NULL) : NULL;
    } else {
        node = parse_primary(p, false);
    }
    node = node ? parse_postfix(p, node) : NULL;
    if (with_filters && node) node = parse_filters_and_tests(p, node);
    jinja_leave(p->run);
    return node;
}

static jinja_node *parse_pow(jinja_parser *p) {
    jinja_node *left = parse_unary(p, true);
    while (left && jinja_skip(p, TOKEN_POW)) {
        jinja_node *right = parse_unary(p, true);
        left = right ? new_two(p, NODE_BINARY, OP_POW, left, right) : NULL;
    }
    return left;
}

static jinja_node *parse_product(jinja_parser *p) {
    jinja_node *left = parse_pow(p);
    while (left) {
        jinja_token_kind kind = jinja_current(p)->kind;
        if (kind != TOKEN_MUL && kind != TOKEN_DIV && kind != TOKEN_FLOORDIV && kind != TOKEN_MOD) break;
        uint8_t op = kind == TOKEN_MUL   ? OP_MUL
                     : kind == TOKEN_DIV ? OP_DIV
                     : kind == TOKEN_MOD ? OP_MOD
                                         : OP_FLOORDIV;
        jinja_advance(p);
        jinja_node *right = parse_pow(p);
        left = right ? new_two(p, NODE_BINARY, op, left, right) : NULL;
    }
    return left;
}

static jinja_node *parse_concat(jinja_parser *p) {
    jinja_node *first = parse_product(p);
    if (!first || jinja_current(p)->kind != TOKEN_TILDE) return first;
    jinja_node *node = jinja_new_node(p, NODE_CONCAT, first->offset);
    if (!node || !jinja_add_node(p, &node->items, first)) return NULL;
    while (jinja_skip(p, TOKEN_TILDE)) {
        jinja_node *next = parse_product(p);
        if (!next || !jinja_add_node(p, &node->items, next)) return NULL;
    }
    return jinja_seal(p, node);
}

static jinja_node *parse_sum(jinja_parser *p) {
    jinja_node *left = parse_concat(p);
    while (left && (jinja_current(p)->kind == TOKEN_ADD || jinja_current(p)->kind == TOKEN_SUB)) {
        uint8_t op = jinja_advance(p)->kind == TOKEN_ADD ? OP_ADD : OP_SUB;
        jinja_node *right = parse_concat(p);
        left = right ? new_two(p, NODE_BINARY, op, left, right) : NULL;
    }
    return left;
}

/* The comparison operator here, stepped over; false where there is none. */
static bool take_comparison(jinja_parser *p, uint8_t *op) {
    static const uint8_t kinds[][2] = {{TOKEN_EQ, OP_EQ}, {TOKEN_NE, OP_NE}, {TOKEN_LT, OP_LT},
                                       {TOKEN_LE, OP_LE}, {TOKEN_GT, OP_GT}, {TOKEN_GE, OP_GE}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        *op = kinds[i][1];
        if (jinja_skip(p, kinds[i][0])) return true;
    }
    *op = OP_IN;
    if (jinja_skip_word(p, "in")) return true;
    *op = OP_NOT_IN;
    if (!jinja_at_word(p, "not") || !is_word(&p->tokens[p->at + 1], "in")) return false;
    p->at += 2;
    return true;
}

static jinja_node *parse_comparison(jinja_parser *p) {
    jinja_node *first = parse_sum(p), *node = NULL;
    uint8_t op;
    while (first && take_comparison(p, &op)) {
        if (!node) {
            node = jinja_new_node(p, NODE_COMPARE, first->offset);
            if (!node) return NULL;
            node->a = first;
        }
        jinja_node *next = parse_sum(p);
        uint8_t *ops = next ? jinja_take(p->run, node->items.count + 1, 1) : NULL;
        if (!ops || !jinja_add_node(p, &node->items, next)) return NULL;
        if (node->ops) memcpy(ops, node->ops, node->items.count - 1);
        ops[node->items.count - 1] = op;
        node->ops = ops;
    }
    return node ? jinja_seal(p, node) : first;
}

static jinja_node *parse_not(jinja_parser *p) {
    if (!jinja_at_word(p, "not")) return parse_comparison(p);
    jinja_advance(p);
    if (!jinja_enter(p->run)) return NULL;
    jinja_node *operand = parse_not(p);
    jinja_leave(p->run);
    return operand ? new_two(p, NODE_UNARY, '!', operand, NULL) : NULL;
}

static jinja_node *parse_and(jinja_parser *p) {
    jinja_node *left = parse_not(p);
    while (left && jinja_skip_word(p, "and")) {
        jinja_node *right = parse_not(p);
        left = right ? new_two(p, NODE_AND, 0, left, right) : NULL;
    }
    return left;
}

static jinja_node *parse_or(jinja_parser *p) {
    jinja_node *left = parse_and(p);
    while (left && jinja_skip_word(p, "or")) {
        jinja_node *right = parse_and(p);
        left = right ? new_two(p, NODE_OR, 0, left, right) : NULL;
    }
    return left;
}

static jinja_node *parse_condition(jinja_parser *p) {
    jinja_node *node = parse_or(p);
    while (node && jinja_skip_word(p, "if")) {
        jinja_node *condition = jinja_new_node(p, NODE_CONDITION, node->offset);
        if (!condition) return NULL;
        condition->a = node;
        condition->b = parse_or(p);
        if (!condition->b) return NULL;
        if (jinja_skip_word(p, "else")) {
            if (!jinja_enter(p->run)) return NULL;
            condition->c = parse_condition(p);
            jinja_leave(p->run);
            if (!condition->c) return NULL;
        }
        node = jinja_seal(p, condition);
    }
    return node;
}

jinja_node *jinja_parse_expression(jinja_parser *p, bool with_condition) {
    return with_condition ? parse_condition(p) : parse_or(p);
}

/* -------------------------------------------------------------------------------------------- tuples and targets */

static bool at_tuple_end(const jinja_parser *p) {
    jinja_token_kind kind = jinja_current(p)->kind;
    return kind == TOKEN_VARIABLE_END || kind == TOKEN_BLOCK_END || kind == TOKEN_RPAREN;
}

/* Expressions with commas between them; a single one without a comma is just itself. */
static jinja_node *parse_some_tuple(jinja_parser *p, jinja_node *(*parse)(jinja_parser *, bool), bool mode,
                                    bool may_be_empty) {
    char text[64];
    bool is_tuple = false;
    jinja_node *tuple = jinja_new_node(p, NODE_TUPLE, jinja_current(p)->offset);
    if (!tuple) return NULL;
    for (;;) {
        if (tuple->items.count && !jinja_expect(p, TOKEN_COMMA)) return NULL;
        if (at_tuple_end(p)) break;
        jinja_node *item = parse(p, mode);
        if (!item || !jinja_add_node(p, &tuple->items, item)) return NULL;
        if (jinja_current(p)->kind != TOKEN_COMMA) break;
        is_tuple = true;
    }
    if (!is_tuple && tuple->items.count) return tuple->items.at[0];
    if (!is_tuple && !may_be_empty) {
        jinja_parse_fault(p, "Expected an expression, got '%s'", token_text(jinja_current(p), text));
        return NULL;
    }
    return jinja_seal(p, tuple);
}

jinja_node *jinja_parse_tuple(jinja_parser *p, bool with_condition) {
    return parse_some_tuple(p, jinja_parse_expression, with_condition, false);
}

/* Turns what was parsed as an expression into something to assign to. */
static bool make_target(jinja_parser *p, jinja_node *node) {
    static const char *const names[] = {[NODE_CONST] = "const", [NODE_LIST] = "list", [NODE_DICT] = "dict"};
    node->flag = true;
    if (node->kind == NODE_NAME || node->kind == NODE_NSREF) return true;
    if (node->kind == NODE_TUPLE) {
        for (size_t i = 0; i < node->items.count; i++)
            if (!make_target(p, node->items.at[i])) return false;
        return true;
    }
    bool named = node->kind < sizeof names / sizeof names[0] && names[node->kind];
    return jinja_parse_fault(p, "can't assign to '%s'", named ? names[node->kind] : "expression");
}

jinja_node *jinja_parse_target(jinja_parser *p, bool with_namespace) {
    jinja_node *target = parse_some_tuple(p, parse_primary, with_namespace, false);
    return target && make_target(p, target) ? target : NULL;
}

jinja_node *jinja_parse_name_target(jinja_parser *p) {
    if (jinja_current(p)->kind != TOKEN_NAME) {
        jinja_expect(p, TOKEN_NAME);
        return NULL;
    }
    jinja_node *name = parse_name(p, false);
    return name && make_target(p, name) ? name : NULL;
}
