/* What evaluation makes beside plain values: frames, loops, macros. */
#ifndef QVL_TEXT_JINJA_STATE_H
#define QVL_TEXT_JINJA_STATE_H

#include "text/jinja/calls.h"
#include "text/jinja/node.h"

/* The values of a scope's names. */
typedef struct jinja_frame {
    struct jinja_frame *parent;
    const jinja_scope *scope;
    jinja_value values[];
} jinja_frame;

struct jinja_loop {
    jinja_iterator *iterator;
    jinja_value iterable;
    int64_t index0, length, depth0;     /* length: -1 as long as nobody asked */
    jinja_value current, before, after; /* MISSING where there is none */
    jinja_value changed;                /* what loop.changed() was last called with */
    const jinja_node *node;             /* of a recursive loop, else NULL */
    jinja_frame *frame;                 /* around it */
};

struct jinja_macro {
    const jinja_string *name; /* NULL: a call block's caller */
    const jinja_node *node;
    jinja_frame *frame; /* where it was defined */
};

typedef enum jinja_flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE, FLOW_FAIL } jinja_flow;

bool jinja_evaluate(jinja_run *run, jinja_frame *frame, const jinja_node *node, jinja_value *result);
jinja_flow jinja_execute(jinja_run *run, jinja_frame *frame, const jinja_nodes *body);

jinja_flow jinja_execute_for(jinja_run *run, jinja_frame *frame, const jinja_node *node);

/* A new frame with what its names mean at first. */
bool jinja_new_frame(jinja_run *run, jinja_frame *parent, const jinja_scope *scope, jinja_frame **frame);
bool jinja_reset_frame(jinja_run *run, jinja_frame *frame);

/* Assigns to a name, ns.name or a tuple of them. */
bool jinja_assign(jinja_run *run, jinja_frame *frame, const jinja_node *target, jinja_value value);

/* transformers allows no name with an underscore in front. */
bool jinja_check_namespace_name(jinja_run *run, jinja_value name);

bool jinja_call_macro(jinja_run *run, const jinja_macro *macro, const jinja_arguments *arguments,
                      jinja_value *result);
/* The arguments of a call node; caller (MISSING: none) is one more keyword. */
bool jinja_evaluate_arguments(jinja_run *run, jinja_frame *frame, const jinja_call *call, jinja_value caller,
                              jinja_arguments *arguments);

/* loop(iterable), and loop's attributes. *found false: it has no such attribute. */
bool jinja_call_loop(jinja_run *run, jinja_loop *loop, jinja_value iterable, jinja_value *result);
bool jinja_loop_property(jinja_run *run, jinja_value loop, const jinja_string *name, jinja_value *result,
                         bool *found);
bool jinja_iterate_loop(jinja_run *run, jinja_value loop, jinja_iterator **iterator);
bool jinja_loop_length(jinja_run *run, jinja_loop *loop, int64_t *length);

#endif
