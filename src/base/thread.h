/* Threads of the library. */
#ifndef QVL_BASE_THREAD_H
#define QVL_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread that takes no signals: they are for the program's own threads. false: there is none to be had. Owner:
 * the caller, pthread_join. */
bool qvl_thread_start(pthread_t *thread, void *(*run)(void *user), void *user);

#endif
