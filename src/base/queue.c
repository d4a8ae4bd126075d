#include "base/queue.h"

void qvl_queue_init(qvl_queue *queue, size_t capacity) {
    *queue = (qvl_queue){.capacity = capacity};
    pthread_mutex_init(&queue->lock, NULL);
    qvl_condition_init(&queue->changed);
}

void qvl_queue_free(qvl_queue *queue) {
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
}

bool qvl_queue_push(qvl_queue *queue, void *element) {
    pthread_mutex_lock(&queue->lock);
    while (queue->count == queue->capacity && !queue->closed) pthread_cond_wait(&queue->changed, &queue->lock);
    bool open = !queue->closed;
    if (open) {
        queue->elements[(queue->first + queue->count) % queue->capacity] = element;
        queue->count++;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    return open;
}

void *qvl_queue_pop(qvl_queue *queue, const qvl_patience *patience) {
    void *element = NULL;
    bool on = true;
    pthread_mutex_lock(&queue->lock);
    while (!queue->count && !queue->closed && on) on = qvl_wait(&queue->changed, &queue->lock, patience);
    if (queue->count) {
        element = queue->elements[queue->first];
        queue->first = (queue->first + 1) % queue->capacity;
        queue->count--;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    return element;
}

void qvl_queue_close(qvl_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

bool qvl_queue_closed(qvl_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    bool closed = queue->closed;
    pthread_mutex_unlock(&queue->lock);
    return closed;
}
