/* Statements: output, assignments, branches, loops, macros. */
#include "text/jinja/print.h"
#include "text/jinja/state.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------- frames */

static bool look_up(jinja_run *run, const jinja_string *name, jinja_value *value) {
    const jinja_value *found;
    *value = jinja_missing();
    if (!jinja_dict_find(run, run->variables, jinja_from_string(name), &found)) return false;
    if (!found && !jinja_dict_find(run, run->globals, jinja_from_string(name), &found)) return false;
    if (found) *value = *found;
    return true;
}

bool jinja_reset_frame(jinja_run *run, jinja_frame *frame) {
    const jinja_scope *scope = frame->scope;
    for (size_t i = 0; i < scope->count; i++) {
        const jinja_symbol *symbol = &scope->symbols[i];
        const jinja_frame *other = frame;
        if (symbol->load == LOAD_RESOLVE) {
            if (!look_up(run, symbol->name, &frame->values[i])) return false;
        } else if (symbol->load == LOAD_ALIAS) {
            for (uint32_t k = 0; k < symbol->hops; k++) other = other->parent;
            frame->values[i] = other->values[symbol->slot];
        } else {
            frame->values[i] = jinja_missing();
        }
    }
    return jinja_step(run, scope->count);
}

bool jinja_new_frame(jinja_run *run, jinja_frame *parent, const jinja_scope *scope, jinja_frame **frame) {
    *frame = jinja_take(run, 1, sizeof **frame + scope->count * sizeof(jinja_value));
    if (!*frame) return false;
    (*frame)->parent = parent;
    (*frame)->scope = scope;
    return jinja_reset_frame(run, *frame);
}

/* -------------------------------------------------------------------------------------------------- assignments */

static jinja_value *place_of(jinja_frame *frame, const jinja_node *name) {
    for (uint32_t i = 0; i < name->hops; i++) frame = frame->parent;
    return &frame->values[name->slot];
}

bool jinja_check_namespace_name(jinja_run *run, jinja_value name) {
    if (name.kind != JINJA_STRING || name.as.string->length == 0 || name.as.string->data[0] != '_') return true;
    return jinja_raise(
        run,
        "Chat templates cannot store underscore-prefixed attributes on a namespace, but got '%.*s'. "
        "Please rename the attribute.",
        (int)name.as.string->length, name.as.string->data);
}

static bool assign_tuple(jinja_run *run, jinja_frame *frame, const jinja_node *target, jinja_value value) {
    jinja_iterator *iterator;
    jinja_value items[16], *all = items;
    size_t count = target->items.count;
    bool done = false;
    if (!jinja_is_iterable(value))
        return jinja_raise(run, "cannot unpack non-iterable %s object", jinja_type(value));
    if (!jinja_iterate(run, value, &iterator)) return false;
    if (count > 16 && !(all = jinja_take(run, count, sizeof *all))) return false;
    for (size_t i = 0; i < count; i++) {
        if (!jinja_next(run, iterator, &all[i], &done)) return false;
        if (done) return jinja_raise(run, "not enough values to unpack (expected %zu, got %zu)", count, i);
    }
    jinja_value more;
    if (!jinja_next(run, iterator, &more, &done)) return false;
    if (!done) return jinja_raise(run, "too many values to unpack (expected %zu)", count);
    for (size_t i = 0; i < count; i++)
        if (!jinja_assign(run, frame, target->items.at[i], all[i])) return false;
    return true;
}

bool jinja_assign(jinja_run *run, jinja_frame *frame, const jinja_node *target, jinja_value value) {
    if (target->kind == NODE_NAME) {
        *place_of(frame, target) = value;
        return true;
    }
    if (target->kind == NODE_TUPLE) return assign_tuple(run, frame, target, value);
    const jinja_value *space = place_of(frame, target);
    if (space->kind != JINJA_NAMESPACE) return jinja_raise(run, "cannot assign attribute on non-namespace object");
    return jinja_check_namespace_name(run, target->value) &&
           jinja_dict_set(run, space->as.dict, target->value, value);
}

/* Before the value is evaluated: every ns of ns.name is a namespace. */
static bool check_references(jinja_run *run, jinja_frame *frame, const jinja_node *target) {
    if (target->kind == NODE_NSREF && place_of(frame, target)->kind != JINJA_NAMESPACE)
        return jinja_raise(run, "cannot assign attribute on non-namespace object");
    for (size_t i = 0; target->kind == NODE_TUPLE && i < target->items.count; i++)
        if (!check_references(run, frame, target->items.at[i])) return false;
    return true;
}

static bool execute_set(jinja_run *run, jinja_frame *frame, const jinja_node *node) {
    jinja_value value;
    return check_references(run, frame, node->a) && jinja_evaluate(run, frame, node->b, &value) &&
           jinja_assign(run, frame, node->a, value);
}

/* ------------------------------------------------------------------------------------------------------ captures */

/* Runs a body with its output going into a string. What the body breaks out of is the caller's business. */
static jinja_flow capture(jinja_run *run, jinja_frame *frame, const jinja_nodes *body, jinja_value *text) {
    jinja_text captured = {.run = run}, *outer = run->out;
    run->out = &captured;
    jinja_flow flow = jinja_execute(run, frame, body);
    run->out = outer;
    if (flow == FLOW_ON && !jinja_text_finish(&captured, text)) return FLOW_FAIL;
    return flow;
}

/* Filters of a block: the innermost one has no operand, the captured text takes its place. */
static bool apply_filters(jinja_run *run, jinja_frame *frame, const jinja_node *filter, jinja_value *value) {
    jinja_arguments arguments;
    if (filter->a && !apply_filters(run, frame, filter->a, value)) return false;
    return jinja_evaluate_arguments(run, frame, filter->call, jinja_missing(), &arguments) &&
           jinja_apply_filter(run, filter->filter, filter->name, *value, &arguments, value);
}

/* What a block gives goes out as it is: it must be a string. */
static bool put_string(jinja_run *run, jinja_value value) {
    if (value.kind != JINJA_STRING)
        return jinja_raise(run, "sequence item: expected str instance, %s found", jinja_type(value));
    return jinja_text_string(run->out, value.as.string);
}

static jinja_flow execute_capture(jinja_run *run, jinja_frame *frame, const jinja_node *node) {
    const jinja_node *filter = node->kind == NODE_SET_BLOCK ? node->b : node->a;
    jinja_frame *inner;
    jinja_value text;
    if (!jinja_new_frame(run, frame, node->scope, &inner)) return FLOW_FAIL;
    jinja_flow flow = capture(run, inner, &node->items, &text);
    if (flow != FLOW_ON) return flow;
    if (filter && !apply_filters(run, inner, filter, &text)) return FLOW_FAIL;
    bool done = node->kind == NODE_SET_BLOCK ? jinja_assign(run, frame, node->a, text) : put_string(run, text);
    return done ? FLOW_ON : FLOW_FAIL;
}

/* -------------------------------------------------------------------------------------------------------- macros */

static bool define_macro(jinja_run *run, jinja_frame *frame, const jinja_node *node, jinja_value *value) {
    jinja_macro *macro = jinja_take(run, 1, sizeof *macro);
    if (!macro) return false;
    *macro = (jinja_macro){node->kind == NODE_MACRO ? node->name : NULL, node, frame};
    *value = (jinja_value){.kind = JINJA_MACRO, .as.macro = macro};
    return true;
}

static bool execute_call_block(jinja_run *run, jinja_frame *frame, const jinja_node *node) {
    jinja_value caller, callee, result;
    jinja_arguments arguments;
    return define_macro(run, frame, node, &caller) && jinja_evaluate(run, frame, node->a->a, &callee) &&
           jinja_evaluate_arguments(run, frame, node->a->call, caller, &arguments) &&
           jinja_call_value(run, callee, &arguments, &result) && put_string(run, result);
}

/* Where the text of a generation block will be. One whose output is captured first (in a macro, a set or filter
 * block) may end up anywhere, and has no span. */
static bool note_span(jinja_run *run, size_t length) {
    if (run->out != run->root) return true;
    if (run->span_count == run->span_capacity) {
        size_t capacity = run->span_capacity ? run->span_capacity * 2 : 8;
        qvl_span *spans = jinja_take(run, capacity, sizeof *spans);
        if (!spans) return false;
        if (run->span_count) memcpy(spans, run->spans, run->span_count * sizeof *spans);
        run->spans = spans;
        run->span_capacity = capacity;
    }
    run->spans[run->span_count++] = (qvl_span){run->root->length, run->root->length + length};
    return true;
}

static bool execute_generation(jinja_run *run, jinja_frame *frame, const jinja_node *node) {
    jinja_value body, text;
    const jinja_arguments none = {0};
    return define_macro(run, frame, node, &body) && jinja_call_macro(run, body.as.macro, &none, &text) &&
           note_span(run, text.as.string->length) && jinja_str(run->out, text);
}

/* A parameter that was not given: its default, or an undefined value that says so. */
static bool set_default(jinja_run *run, jinja_frame *frame, const jinja_node *node, size_t at) {
    size_t without = node->items.count - node->more.count;
    const jinja_string *name = node->items.at[at]->name;
    if (at >= without) return jinja_evaluate(run, frame, node->more.at[at - without], &frame->values[at]);
    char hint[160];
    snprintf(hint, sizeof hint, "parameter '%.*s' was not provided",
             (int)(name->length < 100 ? name->length : 100), name->data);
    return jinja_undefined_hint(run, hint, &frame->values[at]);
}

/* The rest of the arguments: *kwargs has what no parameter took. */
static bool check_rest(jinja_run *run, const jinja_macro *macro, const jinja_arguments *arguments,
                       const jinja_dict *kwargs) {
    const jinja_node *node = macro->node;
    jinja_text name = {.run = run};
    if (macro->name ? !jinja_repr(&name, jinja_from_string(macro->name)) : !jinja_text_puts(&name, "None"))
        return false;
    int length = (int)(name.length < 200 ? name.length : 200);
    if (!node->kwargs && kwargs->count) {
        if (jinja_dict_text(run, kwargs, "caller", 6))
            return jinja_raise(
                run,
                "macro %.*s was invoked with two values for the special caller argument. This is most "
                "likely a bug.",
                length, name.data);
        const jinja_string *first = kwargs->pairs[0].key.as.string;
        return jinja_raise(run, "macro %.*s takes no keyword argument '%.*s'", length, name.data,
                           (int)first->length, first->data);
    }
    if (!node->varargs && arguments->count > node->items.count)
        return jinja_raise(run, "macro %.*s takes not more than %zu argument(s)", length, name.data,
                           node->items.count);
    return true;
}

/* Parameters are the first names of a macro's frame; behind them caller, kwargs and varargs, if used. */
static bool bind_macro(jinja_run *run, const jinja_macro *macro, const jinja_arguments *arguments,
                       jinja_frame *frame) {
    const jinja_node *node = macro->node;
    size_t count = node->items.count, next = count;
    bool explicit_caller = false;
    jinja_dict *kwargs;
    if (!jinja_new_dict(run, arguments->keyword_count, &kwargs)) return false;
    for (size_t i = 0; i < count && i < arguments->count; i++) frame->values[i] = arguments->values[i];
    jinja_value caller = jinja_missing();
    for (size_t i = 0; i < count; i++)
        explicit_caller =
            explicit_caller || jinja_is_text(jinja_from_string(node->items.at[i]->name), "caller", 6);
    for (size_t k = 0; k < arguments->keyword_count; k++) {
        const jinja_pair *keyword = &arguments->keywords[k];
        size_t at = arguments->count < count ? arguments->count : count;
        while (at < count && !jinja_same(keyword->key, jinja_from_string(node->items.at[at]->name))) at++;
        if (at < count)
            frame->values[at] = keyword->value;
        else if (node->caller && !explicit_caller && jinja_is_text(keyword->key, "caller", 6))
            caller = keyword->value;
        else if (!jinja_dict_set(run, kwargs, keyword->key, keyword->value))
            return false;
    }
    if (!check_rest(run, macro, arguments, kwargs)) return false;
    if (node->caller && !explicit_caller) {
        bool none = caller.kind == JINJA_MISSING || caller.kind == JINJA_NONE;
        if (none && !jinja_undefined_hint(run, "No caller defined", &caller)) return false;
        frame->values[next++] = caller;
    }
    if (node->kwargs) frame->values[next++] = jinja_from_dict(JINJA_DICT, kwargs);
    size_t extra = arguments->count > count ? arguments->count - count : 0;
    return !node->varargs ||
           jinja_new_tuple(run, extra ? arguments->values + count : NULL, extra, &frame->values[next]);
}

bool jinja_call_macro(jinja_run *run, const jinja_macro *macro, const jinja_arguments *arguments,
                      jinja_value *result) {
    jinja_frame *frame;
    if (!jinja_new_frame(run, macro->frame, macro->node->scope, &frame) ||
        !bind_macro(run, macro, arguments, frame))
        return false;
    for (size_t i = 0; i < macro->node->items.count; i++)
        if (frame->values[i].kind == JINJA_MISSING && !set_default(run, frame, macro->node, i)) return false;
    return capture(run, frame, &macro->node->last, result) == FLOW_ON;
}

/* --------------------------------------------------------------------------------------------------------- other */

static bool execute_output(jinja_run *run, jinja_frame *frame, const jinja_node *node) {
    for (size_t i = 0; i < node->items.count; i++) {
        const jinja_node *item = node->items.at[i];
        jinja_value value;
        if (jinja_evaluate(run, frame, item, &value) && jinja_str(run->out, value)) continue;
        if (!run->located) {
            run->located = true;
            run->offset = item->offset;
        }
        return false;
    }
    return true;
}

static jinja_flow execute_if(jinja_run *run, jinja_frame *frame, const jinja_node *node) {
    jinja_value test;
    if (!jinja_evaluate(run, frame, node->a, &test)) return FLOW_FAIL;
    if (jinja_truth(test)) return jinja_execute(run, frame, &node->items);
    for (size_t i = 0; i < node->more.count; i++) {
        if (!jinja_evaluate(run, frame, node->more.at[i]->a, &test)) return FLOW_FAIL;
        if (jinja_truth(test)) return jinja_execute(run, frame, &node->more.at[i]->items);
    }
    return jinja_execute(run, frame, &node->last);
}

static jinja_flow execute_with(jinja_run *run, jinja_frame *frame, const jinja_node *node) {
    jinja_frame *inner;
    if (!jinja_new_frame(run, frame, node->scope, &inner)) return FLOW_FAIL;
    for (size_t i = 0; i < node->items.count; i++) {
        jinja_value value;
        if (!jinja_evaluate(run, frame, node->more.at[i], &value) ||
            !jinja_assign(run, inner, node->items.at[i], value))
            return FLOW_FAIL;
    }
    return jinja_execute(run, inner, &node->last);
}

static bool execute_macro(jinja_run *run, jinja_frame *frame, const jinja_node *node) {
    return define_macro(run, frame, node, &frame->values[node->slot]);
}

static jinja_flow execute_one(jinja_run *run, jinja_frame *frame, const jinja_node *node) {
    bool done;
    switch (node->kind) {
    case NODE_OUTPUT:
        done = execute_output(run, frame, node);
        break;
    case NODE_SET:
        done = execute_set(run, frame, node);
        break;
    case NODE_MACRO:
        done = execute_macro(run, frame, node);
        break;
    case NODE_CALL_BLOCK:
        done = execute_call_block(run, frame, node);
        break;
    case NODE_GENERATION:
        done = execute_generation(run, frame, node);
        break;
    case NODE_IF:
        return execute_if(run, frame, node);
    case NODE_FOR:
        return jinja_execute_for(run, frame, node);
    case NODE_WITH:
        return execute_with(run, frame, node);
    case NODE_FILTER_BLOCK:
    case NODE_SET_BLOCK:
        return execute_capture(run, frame, node);
    case NODE_BREAK:
        return FLOW_BREAK;
    default:
        return FLOW_CONTINUE;
    }
    return done ? FLOW_ON : FLOW_FAIL;
}

jinja_flow jinja_execute(jinja_run *run, jinja_frame *frame, const jinja_nodes *body) {
    jinja_flow flow = FLOW_ON;
    for (size_t i = 0; i < body->count && flow == FLOW_ON; i++) {
        const jinja_node *node = body->at[i];
        if (!jinja_step(run, 1) || !jinja_enter(run)) {
            flow = FLOW_FAIL;
        } else {
            flow = execute_one(run, frame, node);
            jinja_leave(run);
        }
        if (flow == FLOW_FAIL && !run->located) {
            run->located = true;
            run->offset = node->offset;
        }
    }
    return flow;
}
