#define _GNU_SOURCE
#include "base/wait.h"

#include <errno.h>
#include <time.h>

#define MOMENT_NS 20000000L

void qvl_condition_init(pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

bool qvl_wait(pthread_cond_t *condition, pthread_mutex_t *lock, const qvl_patience *patience) {
    if (!patience) {
        pthread_cond_wait(condition, lock);
        return true;
    }
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += MOMENT_NS;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    if (pthread_cond_timedwait(condition, lock, &end) != ETIMEDOUT) return true;
    pthread_mutex_unlock(lock);
    bool on = patience->go_on(patience->user);
    pthread_mutex_lock(lock);
    return on;
}
