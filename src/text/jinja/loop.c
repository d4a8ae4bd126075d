/* for: plain, with the loop object, with a test, recursive. */
#include "text/jinja/print.h"
#include "text/jinja/state.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------------ the loop's test */

typedef struct filtered {
    const jinja_node *node;
    jinja_frame *frame; /* of the test */
} filtered;

/* What was assigned to a target, as Jinja hands it on: a tuple if the target is one. */
static bool gather(jinja_run *run, const jinja_frame *frame, const jinja_node *target, jinja_value *value) {
    if (target->kind == NODE_NAME) {
        *value = frame->values[target->slot];
        return true;
    }
    if (!jinja_new_tuple(run, NULL, 0, value)) return false;
    for (size_t i = 0; i < target->items.count; i++) {
        jinja_value item;
        if (!gather(run, frame, target->items.at[i], &item) || !jinja_list_append(run, value->as.list, item))
            return false;
    }
    return true;
}

/* The next item for which the test holds. */
static bool next_filtered(jinja_run *run, jinja_iterator *iterator, jinja_value *item, bool *done) {
    const filtered *f = iterator->state;
    for (;;) {
        jinja_value test;
        if (!jinja_next(run, iterator->inner, item, done)) return false;
        if (*done) return true;
        if (!jinja_step(run, 1) || !jinja_reset_frame(run, f->frame) ||
            !jinja_assign(run, f->frame, f->node->a, *item) || !jinja_evaluate(run, f->frame, f->node->c, &test))
            return false;
        if (jinja_truth(test)) return gather(run, f->frame, f->node->a, item);
    }
}

static bool filter_items(jinja_run *run, jinja_frame *frame, const jinja_node *node, jinja_value *iterable) {
    jinja_iterator *iterator = jinja_take(run, 1, sizeof *iterator);
    filtered *state = jinja_take(run, 1, sizeof *state);
    if (!iterator || !state) return false;
    *iterator = (jinja_iterator){.next = next_filtered, .name = "generator", .state = state};
    state->node = node;
    if (!jinja_new_frame(run, frame, node->test_scope, &state->frame) ||
        !jinja_iterate(run, *iterable, &iterator->inner))
        return false;
    *iterable = jinja_from_iterator(iterator);
    return true;
}

/* -------------------------------------------------------------------------------------------------- the loop object */

/* Goes to the next item, which may have been looked at already. */
static bool loop_next(jinja_run *run, jinja_loop *loop, jinja_value *item, bool *done) {
    *done = false;
    if (loop->after.kind != JINJA_MISSING) {
        *item = loop->after;
        loop->after = jinja_missing();
    } else if (!jinja_next(run, loop->iterator, item, done)) {
        return false;
    }
    if (*done) return true;
    loop->index0++;
    loop->before = loop->current;
    loop->current = *item;
    return true;
}

/* A loop object that is gone through gives pairs of an item and itself, and moves on. */
static bool next_of_loop(jinja_run *run, jinja_iterator *iterator, jinja_value *item, bool *done) {
    jinja_value both[2] = {{0}, iterator->source};
    if (!loop_next(run, iterator->source.as.loop, &both[0], done)) return false;
    return *done || jinja_new_tuple(run, both, 2, item);
}

bool jinja_iterate_loop(jinja_run *run, jinja_value loop, jinja_iterator **iterator) {
    *iterator = jinja_take(run, 1, sizeof **iterator);
    if (!*iterator) return false;
    **iterator = (jinja_iterator){.next = next_of_loop, .name = "LoopContext", .source = loop};
    return true;
}

/* *after stays MISSING at the end. */
static bool loop_peek(jinja_run *run, jinja_loop *loop, jinja_value *after) {
    bool done = false;
    if (loop->after.kind == JINJA_MISSING) {
        if (!jinja_next(run, loop->iterator, &loop->after, &done)) return false;
        if (done) loop->after = jinja_missing();
    }
    *after = loop->after;
    return true;
}

bool jinja_loop_length(jinja_run *run, jinja_loop *loop, int64_t *length) {
    jinja_list *rest;
    if (loop->length < 0 && jinja_has_length(loop->iterable)) {
        if (!jinja_length(run, loop->iterable, &loop->length)) return false;
    } else if (loop->length < 0) { /* an iterator: what is left of it is gone through now */
        jinja_value items;
        if (!jinja_to_list(run, jinja_from_iterator(loop->iterator), &rest)) return false;
        items = jinja_from_list(JINJA_LIST, rest);
        if (!jinja_iterate(run, items, &loop->iterator)) return false;
        loop->length = (int64_t)rest->count + loop->index0 + 1 + (loop->after.kind != JINJA_MISSING);
    }
    *length = loop->length;
    return true;
}

static bool loop_neighbour(jinja_run *run, jinja_loop *loop, bool next, jinja_value *result) {
    if (next) {
        if (!loop_peek(run, loop, result)) return false;
        return result->kind != JINJA_MISSING || jinja_undefined_hint(run, "there is no next item", result);
    }
    *result = loop->before;
    return loop->index0 > 0 || jinja_undefined_hint(run, "there is no previous item", result);
}

static bool cycle(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    const jinja_arguments *arguments = in->arguments;
    if (arguments->keyword_count) return jinja_raise(run, "cycle() got an unexpected keyword argument");
    if (arguments->count == 0) return jinja_raise(run, "no items for cycling given");
    *result = arguments->values[(size_t)in->self.as.loop->index0 % arguments->count];
    return true;
}

static bool changed(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    const jinja_arguments *arguments = in->arguments;
    jinja_loop *loop = in->self.as.loop;
    jinja_value now;
    bool same = false;
    if (arguments->keyword_count) return jinja_raise(run, "changed() got an unexpected keyword argument");
    if (!jinja_new_tuple(run, arguments->values, arguments->count, &now)) return false;
    if (loop->changed.kind != JINJA_MISSING && !jinja_equal(run, loop->changed, now, &same)) return false;
    if (!same) loop->changed = now;
    *result = jinja_bool(!same);
    return true;
}

static bool loop_method(jinja_run *run, jinja_value loop, bool is_cycle, jinja_value *result) {
    static const jinja_function functions[] = {{"changed", NULL, changed}, {"cycle", NULL, cycle}};
    jinja_method *method = jinja_take(run, 1, sizeof *method);
    if (!method) return false;
    *method = (jinja_method){loop, &functions[is_cycle]};
    *result = (jinja_value){.kind = JINJA_METHOD, .as.method = method};
    return true;
}

bool jinja_loop_property(jinja_run *run, jinja_value value, const jinja_string *name, jinja_value *result,
                         bool *found) {
    static const char *const names[] = {"index0", "index", "revindex0", "revindex", "length", "first",   "last",
                                        "depth0", "depth", "previtem",  "nextitem", "cycle",  "changed", NULL};
    jinja_loop *loop = value.as.loop;
    int64_t length = 0;
    size_t which = 0;
    while (names[which] && !jinja_is_text(jinja_from_string(name), names[which], strlen(names[which]))) which++;
    *found = names[which] != NULL;
    if (!*found) return true;
    if (which >= 2 && which <= 4 && !jinja_loop_length(run, loop, &length)) return false;
    const int64_t numbers[] = {loop->index0, loop->index0 + 1, length - loop->index0 - 1, length - loop->index0,
                               length};
    if (which < 5) {
        *result = jinja_int(numbers[which]);
        return true;
    }
    switch (which) {
    case 5:
        *result = jinja_bool(loop->index0 == 0);
        return true;
    case 6:
        if (!loop_peek(run, loop, result)) return false;
        *result = jinja_bool(result->kind == JINJA_MISSING);
        return true;
    case 7:
    case 8:
        *result = jinja_int(loop->depth0 + (which == 8));
        return true;
    case 9:
    case 10:
        return loop_neighbour(run, loop, which == 10, result);
    default:
        return loop_method(run, value, which == 11, result);
    }
}

/* ---------------------------------------------------------------------------------------------------- going round */

/* One round: the body in its frame. */
static jinja_flow go_round(jinja_run *run, jinja_frame *inner, const jinja_node *node, jinja_value item,
                           jinja_value loop) {
    if (!jinja_reset_frame(run, inner)) return FLOW_FAIL;
    if (node->extended) inner->values[node->slot] = loop;
    if (!jinja_assign(run, inner, node->a, item)) return FLOW_FAIL;
    return jinja_execute(run, inner, &node->items);
}

/* *complete: some round came to its end, which is what Jinja takes for "not empty". */
static jinja_flow go_through(jinja_run *run, jinja_frame *inner, const jinja_node *node, jinja_loop *loop,
                             bool *complete) {
    const jinja_value object = {.kind = JINJA_LOOP, .as.loop = loop};
    for (;;) {
        jinja_value item;
        bool done;
        if (!jinja_step(run, 1) || !loop_next(run, loop, &item, &done)) return FLOW_FAIL;
        if (done) return FLOW_ON;
        jinja_flow flow = go_round(run, inner, node, item, object);
        if (flow == FLOW_FAIL) return flow;
        if (flow == FLOW_BREAK) return FLOW_ON;
        if (flow == FLOW_ON) *complete = true;
    }
}

static jinja_flow run_loop(jinja_run *run, jinja_frame *frame, const jinja_node *node, jinja_value iterable,
                           int64_t depth0) {
    jinja_frame *inner;
    bool complete = false;
    if (node->c && !filter_items(run, frame, node, &iterable)) return FLOW_FAIL;
    jinja_loop *loop = jinja_take(run, 1, sizeof *loop);
    if (!loop) return FLOW_FAIL;
    *loop = (jinja_loop){.iterable = iterable,
                         .index0 = -1,
                         .length = -1,
                         .depth0 = depth0,
                         .node = node->flag ? node : NULL,
                         .frame = frame};
    if (!jinja_iterate(run, iterable, &loop->iterator)) return FLOW_FAIL;
    if (!jinja_new_frame(run, frame, node->scope, &inner)) return FLOW_FAIL;
    jinja_flow flow = go_through(run, inner, node, loop, &complete);
    if (flow != FLOW_ON || complete || node->more.count == 0) return flow;
    if (!jinja_new_frame(run, frame, node->else_scope, &inner)) return FLOW_FAIL;
    return jinja_execute(run, inner, &node->more);
}

jinja_flow jinja_execute_for(jinja_run *run, jinja_frame *frame, const jinja_node *node) {
    jinja_value iterable;
    if (!jinja_evaluate(run, frame, node->b, &iterable)) return FLOW_FAIL;
    return run_loop(run, frame, node, iterable, 0);
}

bool jinja_call_loop(jinja_run *run, jinja_loop *loop, jinja_value iterable, jinja_value *result) {
    if (!loop->node)
        return jinja_raise(run, "The loop must have the 'recursive' marker to be called recursively.");
    jinja_text captured = {.run = run}, *outer = run->out;
    run->out = &captured;
    jinja_flow flow = run_loop(run, loop->frame, loop->node, iterable, loop->depth0 + 1);
    run->out = outer;
    return flow == FLOW_ON && jinja_text_finish(&captured, result);
}
