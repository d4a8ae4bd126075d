/* Admission: a number of places, given out in the order of asking. */
#ifndef QVL_BASE_GATE_H
#define QVL_BASE_GATE_H

#include "base/wait.h"

/* On the stack of who waits. */
typedef struct qvl_gate_waiter {
    pthread_cond_t woken;
    bool admitted;
    struct qvl_gate_waiter *next;
} qvl_gate_waiter;

typedef struct qvl_gate {
    pthread_mutex_t lock;
    int places; /* free ones; 0 while anybody waits */
    qvl_gate_waiter *first, *last;
} qvl_gate;

/* places >= 1. Owner: the caller, qvl_gate_close. */
void qvl_gate_open(qvl_gate *gate, int places);
/* Nobody may be inside or waiting. */
void qvl_gate_close(qvl_gate *gate);

/* Takes a place, after waiting for it if need be. false: patience (NULL: there is no end of it) came to its end,
 * there is none. */
bool qvl_gate_enter(qvl_gate *gate, const qvl_patience *patience);
/* Gives the place to who has waited longest. */
void qvl_gate_leave(qvl_gate *gate);

#endif
