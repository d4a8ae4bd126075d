/* Statements and the template around them. */
#include "text/jinja/parser.h"

#include <stdio.h>

/* The words that may end the body being parsed, and the statement it belongs to: for messages. */
typedef struct ends {
    const char *statement;
    const char *words[3];
} ends;

static bool parse_body(jinja_parser *p, const ends *until, jinja_nodes *body);

/* ------------------------------------------------------------------------------------------- ends of statements */

static bool at_end_word(const jinja_parser *p, const ends *until) {
    for (size_t i = 0; until && i < 3 && until->words[i]; i++)
        if (jinja_at_word(p, until->words[i])) return true;
    return false;
}

static bool fail_unknown(jinja_parser *p, const ends *until) {
    char wanted[80] = "", tag[64];
    size_t used = 0;
    bool ended = jinja_current(p)->kind == TOKEN_END;
    for (size_t i = 0; until && i < 3 && until->words[i]; i++)
        used += (size_t)snprintf(wanted + used, sizeof wanted - used, "%s'%s'", i ? " or " : "", until->words[i]);
    if (!ended) {
        const jinja_string *name = jinja_current(p)->value.as.string;
        snprintf(tag, sizeof tag, "%.*s", (int)(name->length < 60 ? name->length : 60), name->data);
    }
    return jinja_parse_fault(p, "%s%s%s%s%s%s%s%s%s",
                             ended ? "Unexpected end of template." : "Encountered unknown tag '", ended ? "" : tag,
                             ended ? "" : "'.", used ? " Jinja was looking for the following tags: " : "", wanted,
                             used ? "." : "", until ? " The innermost block that needs to be closed is '" : "",
                             until ? until->statement : "", until ? "'." : "");
}

/* "%}" of the opening tag, the body, and the word that ends it, which is left as the current token. */
static bool parse_block(jinja_parser *p, const ends *until, jinja_nodes *body) {
    jinja_skip(p, TOKEN_COLON);
    if (!jinja_expect(p, TOKEN_BLOCK_END) || !parse_body(p, until, body)) return false;
    return jinja_current(p)->kind != TOKEN_END || fail_unknown(p, until);
}

/* The same for a body that only one word ends, which is stepped over. */
static bool parse_whole_block(jinja_parser *p, const char *statement, const char *end, jinja_nodes *body) {
    const ends until = {statement, {end}};
    if (!parse_block(p, &until, body)) return false;
    jinja_advance(p);
    return true;
}

/* --------------------------------------------------------------------------------------------------- statements */

static jinja_node *parse_set(jinja_parser *p) {
    jinja_node *node = jinja_new_node(p, NODE_SET, jinja_advance(p)->offset);
    if (!node) return NULL;
    node->a = jinja_parse_target(p, true);
    if (!node->a) return NULL;
    if (jinja_skip(p, TOKEN_ASSIGN)) {
        node->b = jinja_parse_tuple(p, true);
        return node->b ? node : NULL;
    }
    node->kind = NODE_SET_BLOCK;
    if (!jinja_parse_filters(p, false, &node->b)) return NULL;
    return parse_whole_block(p, "set", "endset", &node->items) ? node : NULL;
}

static jinja_node *parse_for(jinja_parser *p) {
    static const ends until = {"for", {"endfor", "else"}};
    jinja_node *node = jinja_new_node(p, NODE_FOR, jinja_advance(p)->offset);
    if (!node) return NULL;
    node->a = jinja_parse_target(p, false);
    if (!node->a) return NULL;
    if (!jinja_expect_word(p, "in")) return NULL;
    node->b = jinja_parse_tuple(p, false);
    if (!node->b) return NULL;
    if (jinja_skip_word(p, "if") && !(node->c = jinja_parse_expression(p, true))) return NULL;
    node->flag = jinja_skip_word(p, "recursive");
    if (!parse_block(p, &until, &node->items)) return NULL;
    if (jinja_skip_word(p, "endfor")) return node;
    jinja_advance(p);
    return parse_whole_block(p, "for", "endfor", &node->more) ? node : NULL;
}

/* After "if" or "elif": condition and body. */
static bool parse_branch(jinja_parser *p, jinja_node *node) {
    static const ends until = {"if", {"elif", "else", "endif"}};
    node->a = jinja_parse_tuple(p, false);
    return node->a && parse_block(p, &until, &node->items);
}

static jinja_node *parse_if(jinja_parser *p) {
    jinja_node *node = jinja_new_node(p, NODE_IF, jinja_advance(p)->offset);
    if (!node || !parse_branch(p, node)) return NULL;
    while (jinja_at_word(p, "elif")) {
        jinja_node *branch = jinja_new_node(p, NODE_IF, jinja_advance(p)->offset);
        if (!branch || !parse_branch(p, branch) || !jinja_seal(p, branch) ||
            !jinja_add_node(p, &node->more, branch))
            return NULL;
    }
    if (jinja_skip_word(p, "else")) return parse_whole_block(p, "if", "endif", &node->last) ? node : NULL;
    jinja_advance(p);
    return node;
}

/* The parameters of a macro or a call block. */
static bool parse_signature(jinja_parser *p, jinja_node *node) {
    if (!jinja_expect(p, TOKEN_LPAREN)) return false;
    while (jinja_current(p)->kind != TOKEN_RPAREN) {
        if (node->items.count && !jinja_expect(p, TOKEN_COMMA)) return false;
        jinja_node *parameter = jinja_parse_name_target(p);
        if (!parameter) return false;
        if (!jinja_step(p->run, node->items.count)) return false;
        for (size_t i = 0; i < node->items.count; i++)
            if (jinja_same(jinja_from_string(node->items.at[i]->name), jinja_from_string(parameter->name)))
                return jinja_parse_fault(p, "duplicate argument '%.*s' in function definition",
                                         (int)parameter->name->length, parameter->name->data);
        if (jinja_skip(p, TOKEN_ASSIGN)) {
            jinja_node *value = jinja_parse_expression(p, true);
            if (!value || !jinja_add_node(p, &node->more, value)) return false;
        } else if (node->more.count) {
            return jinja_parse_fault(p, "non-default argument follows default argument");
        }
        if (!jinja_add_node(p, &node->items, parameter)) return false;
    }
    jinja_advance(p);
    return true;
}

static jinja_node *parse_macro(jinja_parser *p) {
    jinja_node *node = jinja_new_node(p, NODE_MACRO, jinja_advance(p)->offset);
    jinja_node *name = node ? jinja_parse_name_target(p) : NULL;
    if (!name || !parse_signature(p, node)) return NULL;
    node->name = name->name;
    return parse_whole_block(p, "macro", "endmacro", &node->last) ? node : NULL;
}

static jinja_node *parse_call_block(jinja_parser *p) {
    jinja_node *node = jinja_new_node(p, NODE_CALL_BLOCK, jinja_advance(p)->offset);
    if (!node) return NULL;
    if (jinja_current(p)->kind == TOKEN_LPAREN && !parse_signature(p, node)) return NULL;
    node->a = jinja_parse_expression(p, true);
    if (!node->a) return NULL;
    if (node->a->kind != NODE_CALL) {
        jinja_parse_fault(p, "expected call");
        return NULL;
    }
    return parse_whole_block(p, "call", "endcall", &node->last) ? node : NULL;
}

static jinja_node *parse_filter_block(jinja_parser *p) {
    jinja_node *node = jinja_new_node(p, NODE_FILTER_BLOCK, jinja_advance(p)->offset);
    if (!node || !jinja_parse_filters(p, true, &node->a)) return NULL;
    return parse_whole_block(p, "filter", "endfilter", &node->items) ? node : NULL;
}

static jinja_node *parse_with(jinja_parser *p) {
    jinja_node *node = jinja_new_node(p, NODE_WITH, jinja_advance(p)->offset);
    if (!node) return NULL;
    while (jinja_current(p)->kind != TOKEN_BLOCK_END) {
        if (node->items.count && !jinja_expect(p, TOKEN_COMMA)) return NULL;
        jinja_node *target = jinja_parse_target(p, false);
        if (!target || !jinja_expect(p, TOKEN_ASSIGN)) return NULL;
        jinja_node *value = jinja_parse_expression(p, true);
        if (!value || !jinja_add_node(p, &node->items, target) || !jinja_add_node(p, &node->more, value))
            return NULL;
    }
    return parse_whole_block(p, "with", "endwith", &node->last) ? node : NULL;
}

static jinja_node *parse_print(jinja_parser *p) {
    jinja_node *node = jinja_new_node(p, NODE_OUTPUT, jinja_advance(p)->offset);
    if (!node) return NULL;
    while (jinja_current(p)->kind != TOKEN_BLOCK_END) {
        if (node->items.count && !jinja_expect(p, TOKEN_COMMA)) return NULL;
        jinja_node *value = jinja_parse_expression(p, true);
        if (!value || !jinja_add_node(p, &node->items, value)) return NULL;
    }
    return node;
}

static jinja_node *parse_generation(jinja_parser *p) {
    jinja_node *node = jinja_new_node(p, NODE_GENERATION, jinja_advance(p)->offset);
    if (!node) return NULL;
    return parse_whole_block(p, "generation", "endgeneration", &node->last) ? node : NULL;
}

static jinja_node *parse_break(jinja_parser *p) {
    return jinja_new_node(p, NODE_BREAK, jinja_advance(p)->offset);
}

static jinja_node *parse_continue(jinja_parser *p) {
    return jinja_new_node(p, NODE_CONTINUE, jinja_advance(p)->offset);
}

static const struct {
    const char *word;
    jinja_node *(*parse)(jinja_parser *p); /* NULL: Jinja has it, qvl has not */
} statements[] = {
    {"if", parse_if},
    {"for", parse_for},
    {"set", parse_set},
    {"macro", parse_macro},
    {"call", parse_call_block},
    {"filter", parse_filter_block},
    {"with", parse_with},
    {"print", parse_print},
    {"generation", parse_generation},
    {"break", parse_break},
    {"continue", parse_continue},
    {"block", NULL},
    {"extends", NULL},
    {"include", NULL},
    {"import", NULL},
    {"from", NULL},
    {"autoescape", NULL},
};

static jinja_node *parse_statement(jinja_parser *p, const ends *until) {
    if (jinja_current(p)->kind != TOKEN_NAME) {
        jinja_parse_fault(p, "tag name expected");
        return NULL;
    }
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
        if (!jinja_at_word(p, statements[i].word)) continue;
        if (!statements[i].parse) {
            p->run->located = true;
            p->run->offset = jinja_current(p)->offset;
            jinja_unsupported(p->run, "the tag '%s' is not supported", statements[i].word);
            return NULL;
        }
        if (!jinja_enter(p->run)) return NULL;
        jinja_node *node = statements[i].parse(p);
        jinja_leave(p->run);
        return node ? jinja_seal(p, node) : NULL;
    }
    fail_unknown(p, until);
    return NULL;
}

/* ----------------------------------------------------------------------------------------------------- template */

/* What is printed one after the other is one node. */
static bool add_output(jinja_parser *p, jinja_nodes *body, jinja_node *output) {
    jinja_node *last = body->count ? body->at[body->count - 1] : NULL;
    if (!last || last->kind != NODE_OUTPUT) {
        last = jinja_new_node(p, NODE_OUTPUT, output->offset);
        if (!last || !jinja_add_node(p, body, last)) return false;
    }
    if (!jinja_add_node(p, &last->items, output)) return false;
    if (output->height >= last->height) last->height = (uint16_t)(output->height + 1);
    return true;
}

static bool parse_data(jinja_parser *p, jinja_nodes *body) {
    const jinja_token *token = jinja_advance(p);
    jinja_node *data = jinja_new_node(p, NODE_CONST, token->offset);
    if (!data) return false;
    data->value = token->value;
    data->flag = true;
    return add_output(p, body, data);
}

static bool parse_variable(jinja_parser *p, jinja_nodes *body) {
    jinja_advance(p);
    jinja_node *value = jinja_parse_tuple(p, true);
    return value && jinja_expect(p, TOKEN_VARIABLE_END) && add_output(p, body, value);
}

static bool parse_body(jinja_parser *p, const ends *until, jinja_nodes *body) {
    for (;;) {
        jinja_token_kind kind = jinja_current(p)->kind;
        if (kind == TOKEN_END) return true;
        if (kind == TOKEN_DATA) {
            if (!parse_data(p, body)) return false;
        } else if (kind == TOKEN_VARIABLE_BEGIN) {
            if (!parse_variable(p, body)) return false;
        } else {
            jinja_advance(p);
            if (at_end_word(p, until)) return true;
            jinja_node *statement = parse_statement(p, until);
            if (!statement || !jinja_add_node(p, body, statement) || !jinja_expect(p, TOKEN_BLOCK_END))
                return false;
        }
    }
}

bool jinja_parse(jinja_run *run, const jinja_token *tokens, jinja_nodes *body) {
    jinja_parser p = {.run = run, .tokens = tokens};
    return parse_body(&p, NULL, body);
}
