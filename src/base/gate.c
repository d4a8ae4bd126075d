#include "base/gate.h"

#include <stddef.h>

void qvl_gate_open(qvl_gate *gate, int places) {
    *gate = (qvl_gate){.places = places};
    pthread_mutex_init(&gate->lock, NULL);
}

void qvl_gate_close(qvl_gate *gate) {
    pthread_mutex_destroy(&gate->lock);
}

static void remove_waiter(qvl_gate *gate, const qvl_gate_waiter *gone) {
    qvl_gate_waiter *before = NULL;
    for (qvl_gate_waiter *w = gate->first; w != gone; w = w->next) before = w;
    if (before)
        before->next = gone->next;
    else
        gate->first = gone->next;
    if (gate->last == gone) gate->last = before;
}

bool qvl_gate_enter(qvl_gate *gate, const qvl_patience *patience) {
    pthread_mutex_lock(&gate->lock);
    if (gate->places) {
        gate->places--;
        pthread_mutex_unlock(&gate->lock);
        return true;
    }
    qvl_gate_waiter waiter = {.admitted = false};
    qvl_condition_init(&waiter.woken);
    if (gate->last)
        gate->last->next = &waiter;
    else
        gate->first = &waiter;
    gate->last = &waiter;
    bool on = true;
    while (!waiter.admitted && on) on = qvl_wait(&waiter.woken, &gate->lock, patience);
    bool admitted = waiter.admitted;
    if (!admitted) remove_waiter(gate, &waiter);
    pthread_mutex_unlock(&gate->lock);
    pthread_cond_destroy(&waiter.woken);
    return admitted;
}

void qvl_gate_leave(qvl_gate *gate) {
    pthread_mutex_lock(&gate->lock);
    qvl_gate_waiter *next = gate->first;
    if (next) {
        gate->first = next->next;
        if (!gate->first) gate->last = NULL;
        next->admitted = true;
        pthread_cond_signal(&next->woken);
    } else {
        gate->places++;
    }
    pthread_mutex_unlock(&gate->lock);
}
