/* Names to places. Jinja decides when it compiles where a name lives, frame by frame: first it lists the names a
 * frame reads and assigns, in the order of the text, then it looks at the frames inside. What a name means before
 * it is assigned follows from that list, and is the same here. On the way: what Jinja refuses when it compiles. */
#include "text/jinja/calls.h"
#include "text/jinja/parser.h"

#include <string.h>

typedef struct resolver {
    jinja_run *run;
    jinja_scope *scope;
} resolver;

static bool fault(jinja_run *run, const jinja_node *node, const char *text, const jinja_string *name) {
    if (run->status) return false;
    run->located = true;
    run->offset = node->offset;
    if (!name) return jinja_raise(run, "%s", text);
    return jinja_raise(run, "%s '%.*s'.", text, (int)name->length, name->data);
}

/* -------------------------------------------------------------------------------------------------- the symbols */

static bool same_name(const jinja_string *a, const jinja_string *b) {
    return a == b || (a->length == b->length && memcmp(a->data, b->data, a->length) == 0);
}

static bool find_own(resolver *r, const jinja_scope *scope, const jinja_string *name, jinja_symbol **found) {
    *found = NULL;
    for (size_t i = 0; i < scope->count && !*found; i++)
        if (same_name(scope->symbols[i].name, name)) *found = &scope->symbols[i];
    return jinja_step(r->run, 1 + scope->count / 4);
}

/* The nearest frame that lists the name: so many frames up, its place there. */
static bool find_outward(resolver *r, const jinja_scope *scope, const jinja_string *name, uint32_t *hops,
                         uint32_t *slot, bool *found) {
    *hops = 0;
    *found = false;
    for (; scope; scope = scope->parent, ++*hops) {
        jinja_symbol *symbol;
        if (!find_own(r, scope, name, &symbol)) return false;
        if (!symbol) continue;
        *slot = (uint32_t)(symbol - scope->symbols);
        *found = true;
        return true;
    }
    return true;
}

static bool define(resolver *r, const jinja_string *name, jinja_load load, bool stored, jinja_symbol **symbol) {
    jinja_scope *scope = r->scope;
    if (scope->count == scope->capacity) {
        size_t capacity = scope->capacity ? scope->capacity * 2 : 8;
        jinja_symbol *symbols = jinja_take(r->run, capacity, sizeof *symbols);
        if (!symbols) return false;
        if (scope->count) memcpy(symbols, scope->symbols, scope->count * sizeof *symbols);
        scope->symbols = symbols;
        scope->capacity = capacity;
    }
    *symbol = &scope->symbols[scope->count++];
    **symbol = (jinja_symbol){.name = name, .load = (uint8_t)load, .stored = stored};
    return true;
}

static bool declare_parameter(resolver *r, const jinja_string *name) {
    jinja_symbol *symbol;
    if (!find_own(r, r->scope, name, &symbol)) return false;
    if (!symbol) return define(r, name, LOAD_PARAMETER, true, &symbol);
    symbol->load = LOAD_PARAMETER;
    symbol->stored = true;
    return true;
}

/* The start value of a name that is assigned: what it means in the frame around, or otherwise. */
static bool alias_or(resolver *r, jinja_symbol *symbol, jinja_load otherwise) {
    bool found;
    if (!find_outward(r, r->scope->parent, symbol->name, &symbol->hops, &symbol->slot, &found)) return false;
    symbol->hops++;
    symbol->load = (uint8_t)(found ? LOAD_ALIAS : otherwise);
    return true;
}

static bool note_store(resolver *r, const jinja_string *name) {
    jinja_symbol *symbol;
    if (!find_own(r, r->scope, name, &symbol)) return false;
    if (!symbol) return define(r, name, LOAD_UNDEFINED, true, &symbol) && alias_or(r, symbol, LOAD_UNDEFINED);
    symbol->stored = true;
    return true;
}

static bool note_load(resolver *r, const jinja_string *name) {
    uint32_t hops, slot;
    bool found;
    jinja_symbol *symbol;
    if (!find_outward(r, r->scope, name, &hops, &slot, &found)) return false;
    return found || define(r, name, LOAD_RESOLVE, false, &symbol);
}

/* ------------------------------------------------------------------------------------- listing a frame's names */

static bool list_names(void *user, jinja_node *node);

static bool list_all(resolver *r, const jinja_nodes *nodes) {
    for (size_t i = 0; i < nodes->count; i++)
        if (!list_names(r, nodes->at[i])) return false;
    return true;
}

/* A name first assigned in a branch starts with its meaning outside, for the other branches and behind them. */
static bool list_if(resolver *r, const jinja_node *node) {
    if (!list_names(r, node->a)) return false;
    size_t before = r->scope->count;
    bool *stored = jinja_take(r->run, before, sizeof *stored);
    if (!stored) return false;
    for (size_t i = 0; i < before; i++) stored[i] = r->scope->symbols[i].stored;
    if (!list_all(r, &node->items) || !list_all(r, &node->more) || !list_all(r, &node->last)) return false;
    for (size_t i = 0; i < r->scope->count; i++) {
        jinja_symbol *symbol = &r->scope->symbols[i];
        bool anew = symbol->stored && !(i < before && stored[i]);
        if (anew && !alias_or(r, symbol, LOAD_RESOLVE)) return false;
    }
    return true;
}

static bool list_target(resolver *r, const jinja_node *target, bool as_parameter) {
    if (target->kind == NODE_NSREF) return note_load(r, target->name);
    if (target->kind == NODE_NAME)
        return as_parameter ? declare_parameter(r, target->name) : note_store(r, target->name);
    for (size_t i = 0; i < target->items.count; i++)
        if (!list_target(r, target->items.at[i], as_parameter)) return false;
    return true;
}

/* Frames inside are left alone, except for what belongs to this one. */
static bool list_names(void *user, jinja_node *node) {
    resolver *r = user;
    switch (node->kind) {
    case NODE_NAME:
        return node->flag ? note_store(r, node->name) : note_load(r, node->name);
    case NODE_IF:
        return list_if(r, node);
    case NODE_FOR:
        return list_names(r, node->b);
    case NODE_MACRO:
        return note_store(r, node->name);
    case NODE_CALL_BLOCK:
    case NODE_FILTER_BLOCK:
        return list_names(r, node->a);
    case NODE_GENERATION:
        return true;
    case NODE_SET:
        return list_names(r, node->b) && list_target(r, node->a, false);
    case NODE_SET_BLOCK:
        return list_target(r, node->a, false);
    case NODE_WITH:
        return list_all(r, &node->more);
    default:
        return jinja_each_child(node, list_names, r);
    }
}

/* ------------------------------------------------------------------------------------ which special names are used */

typedef struct special {
    const char *names[3];
    bool given[3], used[3]; /* given: assigned before any use */
} special;

/* As Jinja's find_undeclared: in the order of the text, at any depth. */
static bool find_used(void *user, jinja_node *node) {
    special *s = user;
    if (node->kind == NODE_NAME)
        for (int i = 0; i < 3; i++) {
            if (!s->names[i] || !jinja_is_text(jinja_from_string(node->name), s->names[i], strlen(s->names[i])))
                continue;
            if (node->flag)
                s->given[i] = true;
            else if (!s->given[i])
                s->used[i] = true;
        }
    return jinja_each_child(node, find_used, s);
}

static void find_specials(special *s, const jinja_nodes *body) {
    for (size_t i = 0; i < body->count; i++) find_used(s, body->at[i]);
}

/* ------------------------------------------------------------------------------------------------ placing names */

/* Where a node is: its frame, whether unknown filters are allowed until they are used (inside if and conditions),
 * and whether break and continue have a loop. */
typedef struct place {
    resolver *r;
    bool soft, in_loop;
} place;

static bool resolve_node(void *user, jinja_node *node);

static bool resolve_all(place at, const jinja_nodes *nodes) {
    for (size_t i = 0; i < nodes->count; i++)
        if (!resolve_node(&at, nodes->at[i])) return false;
    return true;
}

static bool place_name(resolver *r, jinja_node *node) {
    bool found;
    if (!find_outward(r, r->scope, node->name, &node->hops, &node->slot, &found)) return false;
    /* A name in a place that Jinja does not list: it means what it means outside. */
    if (found) return true;
    jinja_symbol *symbol;
    if (!define(r, node->name, LOAD_RESOLVE, false, &symbol)) return false;
    node->hops = 0;
    node->slot = (uint32_t)(r->scope->count - 1);
    return true;
}

/* A frame inside r's; the caller goes back with leave_scope. */
static jinja_scope *enter_scope(resolver *r) {
    jinja_scope *scope = jinja_take(r->run, 1, sizeof *scope);
    if (!scope) return NULL;
    *scope = (jinja_scope){.parent = r->scope};
    r->scope = scope;
    return scope;
}

static void leave_scope(resolver *r) {
    r->scope = r->scope->parent;
}

static bool declare_text(resolver *r, const char *name) {
    jinja_value string;
    return jinja_static_string(r->run, name, &string) && declare_parameter(r, string.as.string);
}

/* The target's names come first, so that they have the same places in the frame of the loop's test. */
static bool resolve_loop_body(place at, jinja_node *node) {
    resolver *r = at.r;
    special loop = {.names = {"loop"}};
    find_specials(&loop, &node->items);
    node->extended = node->flag || loop.used[0];
    if (!(node->scope = enter_scope(r)) || !list_target(r, node->a, true)) return false;
    node->slot = (uint32_t)r->scope->count; /* of loop, if it is used */
    if (node->extended && !declare_text(r, "loop")) return false;
    if (!list_all(r, &node->items)) return false;
    const place inside = {r, false, true};
    if (!resolve_node(&(place){r, false, false}, node->a) || !resolve_all(inside, &node->items)) return false;
    leave_scope(r);
    return true;
}

static bool assigns_loop(void *user, jinja_node *node) {
    bool *found = user;
    if (node->kind == NODE_NAME && node->flag && jinja_is_text(jinja_from_string(node->name), "loop", 4))
        *found = true;
    return jinja_each_child(node, assigns_loop, found);
}

static bool resolve_for(place at, jinja_node *node) {
    resolver *r = at.r;
    bool assigned = false;
    assigns_loop(&assigned, node);
    if (assigned) return fault(r->run, node, "Can't assign to special loop variable in for-loop target", NULL);
    if (node->c) {
        if (!(node->test_scope = enter_scope(r))) return false;
        if (!list_target(r, node->a, true) || !list_names(r, node->c)) return false;
        if (!resolve_node(&(place){r, false, false}, node->c)) return false;
        leave_scope(r);
    }
    if (!resolve_node(&at, node->b) || !resolve_loop_body(at, node)) return false;
    if (node->more.count == 0) return true;
    if (!(node->else_scope = enter_scope(r)) || !list_all(r, &node->more)) return false;
    if (!resolve_all((place){r, false, at.in_loop && !node->flag}, &node->more)) return false;
    leave_scope(r);
    return true;
}

/* The body of a macro, a call block or a generation block: parameters, then caller, kwargs, varargs if used. */
static bool resolve_macro(place at, jinja_node *node) {
    resolver *r = at.r;
    special used = {.names = {"caller", "kwargs", "varargs"}};
    find_specials(&used, &node->last);
    if (!(node->scope = enter_scope(r))) return false;
    bool caller_given = false;
    for (size_t i = 0; i < node->items.count; i++) {
        const jinja_string *name = node->items.at[i]->name;
        bool is_caller = jinja_is_text(jinja_from_string(name), "caller", 6);
        if (is_caller && used.used[0] && i < node->items.count - node->more.count)
            return fault(
                r->run, node,
                "When defining macros or call blocks the special \"caller\" argument must be omitted or be "
                "given a default.",
                NULL);
        caller_given = caller_given || is_caller;
        for (int k = 1; k < 3; k++)
            if (jinja_is_text(jinja_from_string(name), used.names[k], strlen(used.names[k]))) used.used[k] = false;
        if (!declare_parameter(r, name)) return false;
    }
    node->caller = used.used[0];
    node->kwargs = used.used[1];
    node->varargs = used.used[2];
    if (node->caller && !caller_given && !declare_text(r, "caller")) return false;
    if (node->kwargs && !declare_text(r, "kwargs")) return false;
    if (node->varargs && !declare_text(r, "varargs")) return false;
    if (!list_all(r, &node->more) || !list_all(r, &node->last)) return false;
    const place inside = {r, false, false};
    if (!resolve_all(inside, &node->more) || !resolve_all(inside, &node->last)) return false;
    leave_scope(r);
    return true;
}

static bool resolve_with(place at, jinja_node *node) {
    resolver *r = at.r;
    if (!resolve_all(at, &node->more) || !(node->scope = enter_scope(r))) return false;
    const place inside = {r, false, at.in_loop};
    for (size_t i = 0; i < node->items.count; i++)
        if (!list_target(r, node->items.at[i], true)) return false;
    if (!list_all(r, &node->last)) return false;
    if (!resolve_all(inside, &node->items) || !resolve_all(inside, &node->last)) return false;
    leave_scope(r);
    return true;
}

/* A filter block or a set block: filters are applied inside the frame, the target is outside. */
static bool resolve_capture(place at, jinja_node *node) {
    resolver *r = at.r;
    jinja_node *filter = node->kind == NODE_SET_BLOCK ? node->b : node->a;
    if (!(node->scope = enter_scope(r)) || !list_all(r, &node->items)) return false;
    if (filter && !list_names(r, filter)) return false;
    const place inside = {r, false, at.in_loop};
    if (!resolve_all(inside, &node->items) || (filter && !resolve_node(&(place){r, false, false}, filter)))
        return false;
    leave_scope(r);
    return node->kind != NODE_SET_BLOCK || resolve_node(&at, node->a);
}

/* Children in the same frame. */
static bool resolve_inside(place at, jinja_node *node) {
    if (node->kind == NODE_IF || node->kind == NODE_CONDITION) at.soft = true;
    if (!at.soft && node->kind == NODE_FILTER && !node->filter)
        return fault(at.r->run, node, "No filter named", node->name);
    if (!at.soft && node->kind == NODE_TEST && !node->test)
        return fault(at.r->run, node, "No test named", node->name);
    return jinja_each_child(node, resolve_node, &at);
}

static bool resolve_node(void *user, jinja_node *node) {
    const place at = *(place *)user;
    switch (node->kind) {
    case NODE_NAME:
    case NODE_NSREF:
        return place_name(at.r, node);
    case NODE_FOR:
        return resolve_for(at, node);
    case NODE_MACRO:
        return place_name(at.r, node) && resolve_macro(at, node);
    case NODE_CALL_BLOCK:
        return resolve_node(user, node->a) && resolve_macro(at, node);
    case NODE_GENERATION:
        return resolve_macro(at, node);
    case NODE_WITH:
        return resolve_with(at, node);
    case NODE_FILTER_BLOCK:
    case NODE_SET_BLOCK:
        return resolve_capture(at, node);
    case NODE_BREAK:
        return at.in_loop || fault(at.r->run, node, "'break' outside loop", NULL);
    case NODE_CONTINUE:
        return at.in_loop || fault(at.r->run, node, "'continue' not properly in loop", NULL);
    default:
        return resolve_inside(at, node);
    }
}

bool jinja_resolve(jinja_run *run, jinja_program *program) {
    resolver r = {.run = run};
    if (!(program->scope = enter_scope(&r)) || !list_all(&r, &program->body)) return false;
    return resolve_all((place){&r, false, false}, &program->body);
}
