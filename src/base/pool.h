/* A fork-join pool: the caller and threads-1 helpers work through numbered tasks.
 * Which worker takes which task is not fixed; results must not depend on it. */
#ifndef QVL_BASE_POOL_H
#define QVL_BASE_POOL_H

#include "base/error.h"

typedef struct qvl_pool qvl_pool;

/* task in 0..tasks-1; worker in 0..threads-1, the same for all tasks a thread takes in one run. */
typedef void (*qvl_task_fn)(void *user, int64_t task, int worker);

/* Processors this process may run on, at least 1. */
int qvl_online_processors(void);

/* threads in 1..256, 0 for qvl_online_processors. Owner: the caller, qvl_pool_close. */
qvl_status qvl_pool_open(int threads, qvl_pool **pool, qvl_error *error);
void qvl_pool_close(qvl_pool **pool);
int qvl_pool_threads(const qvl_pool *pool);

/* Runs all tasks and returns when the last is done. Runs from several threads take turns; fn must not call it.
 * pool may be NULL: the caller does the work. */
void qvl_pool_run(qvl_pool *pool, int64_t tasks, qvl_task_fn fn, void *user);

/* 2 MiB of 64-byte aligned scratch of one worker, valid inside fn. */
#define QVL_WORKER_SCRATCH ((size_t)2 << 20)
void *qvl_pool_scratch(qvl_pool *pool, int worker);

#endif
