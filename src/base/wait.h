/* Waiting that can be called off. */
#ifndef QVL_BASE_WAIT_H
#define QVL_BASE_WAIT_H

#include <pthread.h>
#include <stdbool.h>

/* Asked now and then while a call waits or reads a long file, with no lock held; false: the call gives up. It must not
 * call the library with the same model. */
typedef struct qvl_patience {
    bool (*go_on)(void *user);
    void *user;
} qvl_patience;

/* A condition for qvl_wait. Owner: the caller, pthread_cond_destroy. */
void qvl_condition_init(pthread_cond_t *condition);

/* Waits for a signal, for a moment at most; lock is held by the caller, and let go of meanwhile. What was waited for
 * may have happened or not: look again. false: patience (NULL: there is no end of it) came to its end. */
bool qvl_wait(pthread_cond_t *condition, pthread_mutex_t *lock, const qvl_patience *patience);

#endif
