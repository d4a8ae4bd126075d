/* A short queue from one thread to another. The one that fills it waits while it is full, the one that empties it
 * while there is nothing. What the elements own is theirs to settle. */
#ifndef QVL_BASE_QUEUE_H
#define QVL_BASE_QUEUE_H

#include "base/wait.h"

#include <stddef.h>

#define QVL_QUEUE_MOST 8

typedef struct qvl_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void *elements[QVL_QUEUE_MOST];
    size_t capacity, first, count;
    bool closed;
} qvl_queue;

/* capacity in 1..QVL_QUEUE_MOST. Owner: the caller, qvl_queue_free. */
void qvl_queue_init(qvl_queue *queue, size_t capacity);
void qvl_queue_free(qvl_queue *queue);

/* false: the queue is closed; the element stays the caller's. */
bool qvl_queue_push(qvl_queue *queue, void *element);
/* The oldest element. NULL: patience came to its end, or the queue is closed and empty. */
void *qvl_queue_pop(qvl_queue *queue, const qvl_patience *patience);
/* By either side: nothing more is to be pushed. What is in it can still be taken out. */
void qvl_queue_close(qvl_queue *queue);
bool qvl_queue_closed(qvl_queue *queue);

#endif
