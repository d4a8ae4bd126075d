#include "text/jinja/node.h"

static bool visit_all(const jinja_nodes *nodes, jinja_visit_fn visit, void *user) {
    for (size_t i = 0; i < nodes->count; i++)
        if (!visit(user, nodes->at[i])) return false;
    return true;
}

static bool visit_one(jinja_node *node, jinja_visit_fn visit, void *user) {
    return !node || visit(user, node);
}

static bool visit_call(const jinja_call *call, jinja_visit_fn visit, void *user) {
    return !call || (visit_all(&call->args, visit, user) && visit_all(&call->values, visit, user) &&
                     visit_one(call->star, visit, user) && visit_one(call->double_star, visit, user));
}

/* Most nodes have their children in the order of their fields. */
bool jinja_each_child(const jinja_node *node, jinja_visit_fn visit, void *user) {
    switch (node->kind) {
    case NODE_CONDITION: /* the test first */
        return visit(user, node->b) && visit(user, node->a) && visit_one(node->c, visit, user);
    case NODE_FOR: /* target, iterable, body, else, test */
        return visit(user, node->a) && visit(user, node->b) && visit_all(&node->items, visit, user) &&
               visit_all(&node->more, visit, user) && visit_one(node->c, visit, user);
    case NODE_FILTER_BLOCK: /* body, filter */
        return visit_all(&node->items, visit, user) && visit(user, node->a);
    default:
        return visit_one(node->a, visit, user) && visit_one(node->b, visit, user) &&
               visit_one(node->c, visit, user) && visit_call(node->call, visit, user) &&
               visit_all(&node->items, visit, user) && visit_all(&node->more, visit, user) &&
               visit_all(&node->last, visit, user);
    }
}
