/* The gate lets in by the order of asking, the queue waits at both ends, and whoever waits can give up. */
#define _GNU_SOURCE
#include "base/gate.h"
#include "base/queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

enum { VISITORS = 20 };

typedef struct place {
    qvl_gate gate;
    int order[VISITORS], count;
} place;

typedef struct visitor {
    place *place;
    int number;
    pthread_t thread;
} visitor;

static void sleep_ms(long ms) {
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void *visit(void *user) {
    visitor *v = user;
    if (!qvl_gate_enter(&v->place->gate, NULL)) return NULL;
    v->place->order[v->place->count++] = v->number; /* one at a time: no lock needed */
    qvl_gate_leave(&v->place->gate);
    return NULL;
}

static bool never(void *user) {
    ++*(int *)user;
    return false;
}

static int waiting(qvl_gate *gate) {
    int count = 0;
    pthread_mutex_lock(&gate->lock);
    for (const qvl_gate_waiter *w = gate->first; w; w = w->next) count++;
    pthread_mutex_unlock(&gate->lock);
    return count;
}

static void test_gate(void **state) {
    (void)state;
    static place p;
    visitor visitors[VISITORS];
    int asked = 0;
    const qvl_patience none = {never, &asked};
    qvl_gate_open(&p.gate, 1);
    assert_true(qvl_gate_enter(&p.gate, &none)); /* nothing to wait for: not asked */
    assert_int_equal(asked, 0);
    for (int i = 0; i < VISITORS; i++) {
        visitors[i] = (visitor){.place = &p, .number = i};
        assert_int_equal(pthread_create(&visitors[i].thread, NULL, visit, &visitors[i]), 0);
        while (waiting(&p.gate) <= i) sleep_ms(1);
    }
    assert_false(qvl_gate_enter(&p.gate, &none)); /* gives up, and nobody is passed over */
    assert_int_equal(asked, 1);
    assert_int_equal(p.count, 0);
    qvl_gate_leave(&p.gate);
    for (int i = 0; i < VISITORS; i++) pthread_join(visitors[i].thread, NULL);
    for (int i = 0; i < VISITORS; i++) assert_int_equal(p.order[i], i);
    assert_true(qvl_gate_enter(&p.gate, &none));
    qvl_gate_leave(&p.gate);
    qvl_gate_close(&p.gate);
}

enum { ELEMENTS = 2000 };

static void *fill(void *user) {
    static char elements[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        if (!qvl_queue_push(user, &elements[i])) return NULL;
    qvl_queue_close(user);
    return elements;
}

static void test_queue(void **state) {
    (void)state;
    qvl_queue queue;
    pthread_t thread;
    void *first;
    int asked = 0;
    const qvl_patience none = {never, &asked};
    qvl_queue_init(&queue, 2);
    assert_null(qvl_queue_pop(&queue, &none)); /* empty, and patience ends */
    assert_int_equal(asked, 1);
    assert_int_equal(pthread_create(&thread, NULL, fill, &queue), 0);
    char *last = NULL, *element;
    int count = 0;
    while ((element = qvl_queue_pop(&queue, NULL)) != NULL) {
        assert_true(!last || element == last + 1);
        last = element;
        count++;
    }
    pthread_join(thread, &first);
    assert_int_equal(count, ELEMENTS);
    assert_true(qvl_queue_closed(&queue));
    assert_false(qvl_queue_push(&queue, first));
    qvl_queue_free(&queue);
    /* Closed by who empties it: who fills it is set free. */
    qvl_queue_init(&queue, 2);
    assert_int_equal(pthread_create(&thread, NULL, fill, &queue), 0);
    assert_non_null(qvl_queue_pop(&queue, NULL));
    qvl_queue_close(&queue);
    pthread_join(thread, &first);
    assert_null(first);
    qvl_queue_free(&queue);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate),
        cmocka_unit_test(test_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
