/* Expressions to values. */
#include "text/jinja/print.h"
#include "text/jinja/state.h"

#include <stdio.h>
#include <string.h>

static bool evaluate_all(jinja_run *run, jinja_frame *frame, const jinja_nodes *nodes, jinja_value *values) {
    for (size_t i = 0; i < nodes->count; i++)
        if (!jinja_evaluate(run, frame, nodes->at[i], &values[i])) return false;
    return true;
}

static bool evaluate_name(jinja_run *run, jinja_frame *frame, const jinja_node *node, jinja_value *result) {
    for (uint32_t i = 0; i < node->hops; i++) frame = frame->parent;
    *result = frame->values[node->slot];
    return result->kind != JINJA_MISSING || jinja_undefined_name(run, node->name, result);
}

static bool evaluate_sequence(jinja_run *run, jinja_frame *frame, const jinja_node *node, jinja_value *result) {
    jinja_list *list;
    if (!jinja_new_list(run, node->items.count, &list) || !evaluate_all(run, frame, &node->items, list->items))
        return false;
    list->count = node->items.count;
    *result = jinja_from_list(node->kind == NODE_LIST ? JINJA_LIST : JINJA_TUPLE, list);
    return true;
}

static bool evaluate_dict(jinja_run *run, jinja_frame *frame, const jinja_node *node, jinja_value *result) {
    jinja_dict *dict;
    if (!jinja_new_dict(run, node->items.count / 2, &dict)) return false;
    for (size_t i = 0; i < node->items.count; i += 2) {
        jinja_value key, value;
        if (!jinja_evaluate(run, frame, node->items.at[i], &key) ||
            !jinja_evaluate(run, frame, node->items.at[i + 1], &value) || !jinja_dict_set(run, dict, key, value))
            return false;
    }
    *result = jinja_from_dict(JINJA_DICT, dict);
    return true;
}

static bool evaluate_unary(jinja_run *run, jinja_frame *frame, const jinja_node *node, jinja_value *result) {
    jinja_value operand;
    if (!jinja_evaluate(run, frame, node->a, &operand)) return false;
    if (node->op != '!') return jinja_unary(run, node->op, operand, result);
    *result = jinja_bool(!jinja_truth(operand));
    return true;
}

static bool evaluate_binary(jinja_run *run, jinja_frame *frame, const jinja_node *node, jinja_value *result) {
    jinja_value a, b;
    return jinja_evaluate(run, frame, node->a, &a) && jinja_evaluate(run, frame, node->b, &b) &&
           jinja_binary(run, node->op, a, b, result);
}

static bool evaluate_logic(jinja_run *run, jinja_frame *frame, const jinja_node *node, jinja_value *result) {
    if (!jinja_evaluate(run, frame, node->a, result)) return false;
    if (jinja_truth(*result) == (node->kind == NODE_OR)) return true;
    return jinja_evaluate(run, frame, node->b, result);
}

static bool compare(jinja_run *run, uint8_t op, jinja_value a, jinja_value b, bool *holds) {
    static const char *const symbols[] = {[OP_LT] = "<", [OP_LE] = "<=", [OP_GT] = ">", [OP_GE] = ">="};
    int order;
    switch (op) {
    case OP_EQ:
    case OP_NE:
        if (!jinja_equal(run, a, b, holds)) return false;
        *holds = *holds == (op == OP_EQ);
        return true;
    case OP_IN:
    case OP_NOT_IN:
        if (!jinja_contains(run, b, a, holds)) return false;
        *holds = *holds == (op == OP_IN);
        return true;
    default:
        if (!jinja_order(run, a, b, symbols[op], &order)) return false;
        *holds = op == OP_LT   ? order == -1
                 : op == OP_GT ? order == 1
                 : op == OP_LE ? order <= 0
                               : order == 0 || order == 1;
        return true;
    }
}

/* a < b < c, each operand evaluated once, as far as it holds. */
static bool evaluate_compare(jinja_run *run, jinja_frame *frame, const jinja_node *node, jinja_value *result) {
    jinja_value left, right;
    bool holds = true;
    if (!jinja_evaluate(run, frame, node->a, &left)) return false;
    for (size_t i = 0; i < node->items.count && holds; i++, left = right)
        if (!jinja_evaluate(run, frame, node->items.at[i], &right) ||
            !compare(run, node->ops[i], left, right, &holds))
            return false;
    *result = jinja_bool(holds);
    return true;
}

static bool evaluate_concat(jinja_run *run, jinja_frame *frame, const jinja_node *node, jinja_value *result) {
    jinja_value joined, part;
    if (!jinja_evaluate(run, frame, node->items.at[0], &joined) || !jinja_to_string(run, joined, &joined))
        return false;
    for (size_t i = 1; i < node->items.count; i++)
        if (!jinja_evaluate(run, frame, node->items.at[i], &part) || !jinja_to_string(run, part, &part) ||
            !jinja_join_strings(run, joined.as.string, part.as.string, &joined))
            return false;
    *result = jinja_from_string(joined.as.string);
    return true;
}

static bool evaluate_condition(jinja_run *run, jinja_frame *frame, const jinja_node *node, jinja_value *result) {
    jinja_value test;
    if (!jinja_evaluate(run, frame, node->b, &test)) return false;
    if (jinja_truth(test)) return jinja_evaluate(run, frame, node->a, result);
    if (node->c) return jinja_evaluate(run, frame, node->c, result);
    return jinja_undefined_hint(
        run, "the inline if-expression evaluated to false and no else section was defined.", result);
}

/* ------------------------------------------------------------------------------------------------------- calling */

/* Adds the items of *more. */
static bool add_star(jinja_run *run, jinja_frame *frame, const jinja_node *more, jinja_list *values) {
    jinja_value value, item;
    jinja_iterator *iterator;
    if (!jinja_evaluate(run, frame, more, &value) || !jinja_iterate(run, value, &iterator)) return false;
    for (;;) {
        bool done;
        if (!jinja_next(run, iterator, &item, &done)) return false;
        if (done) return true;
        if (!jinja_list_append(run, values, item)) return false;
    }
}

static bool add_keyword(jinja_run *run, jinja_dict *keywords, jinja_value key, jinja_value value) {
    const jinja_value *there;
    if (key.kind != JINJA_STRING) return jinja_raise(run, "keywords must be strings");
    if (!jinja_dict_find(run, keywords, key, &there)) return false;
    if (there)
        return jinja_raise(run, "got multiple values for keyword argument '%.*s'", (int)key.as.string->length,
                           key.as.string->data);
    return jinja_dict_set(run, keywords, key, value);
}

static bool add_double_star(jinja_run *run, jinja_frame *frame, const jinja_node *more, jinja_dict *keywords) {
    jinja_value value;
    if (!jinja_evaluate(run, frame, more, &value)) return false;
    if (value.kind != JINJA_DICT)
        return jinja_raise(run, "argument after ** must be a mapping, not %s", jinja_type(value));
    for (size_t i = 0; i < value.as.dict->count; i++)
        if (!add_keyword(run, keywords, value.as.dict->pairs[i].key, value.as.dict->pairs[i].value)) return false;
    return true;
}

bool jinja_evaluate_arguments(jinja_run *run, jinja_frame *frame, const jinja_call *call, jinja_value caller,
                              jinja_arguments *arguments) {
    jinja_list *values;
    jinja_dict *keywords;
    *arguments = (jinja_arguments){0};
    if (!jinja_new_list(run, call->args.count, &values) || !evaluate_all(run, frame, &call->args, values->items))
        return false;
    values->count = call->args.count;
    bool some = call->values.count || call->double_star || caller.kind != JINJA_MISSING;
    if (some) {
        if (!jinja_new_dict(run, call->values.count + 1, &keywords)) return false;
        for (size_t i = 0; i < call->values.count; i++) {
            jinja_value value;
            if (!jinja_evaluate(run, frame, call->values.at[i], &value) ||
                !add_keyword(run, keywords, call->names.at[i]->value, value))
                return false;
        }
        if (caller.kind != JINJA_MISSING) {
            jinja_value name;
            if (!jinja_static_string(run, "caller", &name) || !add_keyword(run, keywords, name, caller))
                return false;
        }
    }
    if (call->star && !add_star(run, frame, call->star, values)) return false;
    if (call->double_star && !add_double_star(run, frame, call->double_star, keywords)) return false;
    arguments->values = values->items;
    arguments->count = values->count;
    if (some) {
        arguments->keywords = keywords->pairs;
        arguments->keyword_count = keywords->count;
    }
    return true;
}

static bool evaluate_call(jinja_run *run, jinja_frame *frame, const jinja_node *node, jinja_value *result) {
    jinja_value callee;
    jinja_arguments arguments;
    return jinja_evaluate(run, frame, node->a, &callee) &&
           jinja_evaluate_arguments(run, frame, node->call, jinja_missing(), &arguments) &&
           jinja_call_value(run, callee, &arguments, result);
}

static bool evaluate_filter(jinja_run *run, jinja_frame *frame, const jinja_node *node, jinja_value *result) {
    jinja_value value;
    jinja_arguments arguments;
    return jinja_evaluate(run, frame, node->a, &value) &&
           jinja_evaluate_arguments(run, frame, node->call, jinja_missing(), &arguments) &&
           jinja_apply_filter(run, node->filter, node->name, value, &arguments, result);
}

static bool evaluate_test(jinja_run *run, jinja_frame *frame, const jinja_node *node, jinja_value *result) {
    jinja_value value;
    jinja_arguments arguments;
    bool holds;
    if (!jinja_evaluate(run, frame, node->a, &value) ||
        !jinja_evaluate_arguments(run, frame, node->call, jinja_missing(), &arguments) ||
        !jinja_apply_test(run, node->test, node->name, value, &arguments, &holds))
        return false;
    *result = jinja_bool(holds);
    return true;
}

static bool evaluate_attribute(jinja_run *run, jinja_frame *frame, const jinja_node *node, jinja_value *result) {
    jinja_value object;
    return jinja_evaluate(run, frame, node->a, &object) && jinja_get_attribute(run, object, node->name, result);
}

static bool evaluate_item(jinja_run *run, jinja_frame *frame, const jinja_node *node, jinja_value *result) {
    jinja_value object, index, parts[3];
    if (!jinja_evaluate(run, frame, node->a, &object)) return false;
    if (node->b->kind != NODE_SLICE)
        return jinja_evaluate(run, frame, node->b, &index) && jinja_get_item(run, object, index, result);
    jinja_node *const nodes[3] = {node->b->a, node->b->b, node->b->c};
    for (int i = 0; i < 3; i++) {
        parts[i] = jinja_none();
        if (nodes[i] && !jinja_evaluate(run, frame, nodes[i], &parts[i])) return false;
    }
    return jinja_get_slice(run, object, parts, result);
}

/* --------------------------------------------------------------------------------------------------------- any */

static bool evaluate(jinja_run *run, jinja_frame *frame, const jinja_node *node, jinja_value *result) {
    switch (node->kind) {
    case NODE_TUPLE:
    case NODE_LIST:
        return evaluate_sequence(run, frame, node, result);
    case NODE_DICT:
        return evaluate_dict(run, frame, node, result);
    case NODE_UNARY:
        return evaluate_unary(run, frame, node, result);
    case NODE_BINARY:
        return evaluate_binary(run, frame, node, result);
    case NODE_AND:
    case NODE_OR:
        return evaluate_logic(run, frame, node, result);
    case NODE_COMPARE:
        return evaluate_compare(run, frame, node, result);
    case NODE_CONCAT:
        return evaluate_concat(run, frame, node, result);
    case NODE_CONDITION:
        return evaluate_condition(run, frame, node, result);
    case NODE_FILTER:
        return evaluate_filter(run, frame, node, result);
    case NODE_TEST:
        return evaluate_test(run, frame, node, result);
    case NODE_CALL:
        return evaluate_call(run, frame, node, result);
    case NODE_ATTRIBUTE:
        return evaluate_attribute(run, frame, node, result);
    default:
        return evaluate_item(run, frame, node, result);
    }
}

bool jinja_evaluate(jinja_run *run, jinja_frame *frame, const jinja_node *node, jinja_value *result) {
    bool done;
    if (node->kind == NODE_CONST) {
        *result = node->value;
        return true;
    }
    if (!jinja_step(run, 1)) {
        done = false;
    } else if (node->kind == NODE_NAME) {
        done = evaluate_name(run, frame, node, result);
    } else {
        done = jinja_enter(run);
        if (done) {
            done = evaluate(run, frame, node, result);
            jinja_leave(run);
        }
    }
    if (!done && !run->located) { /* the innermost expression is where the error is */
        run->located = true;
        run->offset = node->offset;
    }
    return done;
}
