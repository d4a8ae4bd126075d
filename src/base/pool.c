/* Helpers sleep on a condition variable between runs, after spinning for a while: the products of one block follow
 * each other within microseconds. A run is a generation number; tasks are handed out by an atomic counter. */
#define _GNU_SOURCE
#include "base/pool.h"

#include "base/gate.h"
#include "base/memory.h"
#include "base/thread.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define MAX_THREADS 256
#define SPINS 20000

struct qvl_pool {
    int threads;
    pthread_t ids[MAX_THREADS];
    int started; /* helpers that run */
    uint8_t *scratch;
    qvl_gate turn;        /* held for a whole run; in order, so that no caller of many runs keeps out another */
    pthread_mutex_t lock; /* guards sleeping */
    pthread_cond_t wake, done;
    atomic_uint generation;
    atomic_int busy; /* helpers still in the current run */
    atomic_bool quit;
    atomic_int_fast64_t next;
    /* Of the current run; written before generation moves. */
    int64_t tasks;
    qvl_task_fn fn;
    void *user;
};

typedef struct helper_start {
    qvl_pool *pool;
    int worker;
} helper_start;

int qvl_online_processors(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    int n = CPU_COUNT(&set);
    return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : n;
}

static void work(qvl_pool *pool, int worker) {
    for (;;) {
        int64_t task = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (task >= pool->tasks) return;
        pool->fn(pool->user, task, worker);
    }
}

/* Waits for a generation other than seen; returns it. */
static unsigned next_generation(qvl_pool *pool, unsigned seen) {
    for (int i = 0; i < SPINS; i++) {
        unsigned g = atomic_load_explicit(&pool->generation, memory_order_acquire);
        if (g != seen) return g;
        __builtin_ia32_pause();
    }
    pthread_mutex_lock(&pool->lock);
    unsigned g;
    while ((g = atomic_load_explicit(&pool->generation, memory_order_acquire)) == seen)
        pthread_cond_wait(&pool->wake, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    return g;
}

static void *helper(void *argument) {
    helper_start start = *(helper_start *)argument;
    qvl_free(argument);
    qvl_pool *pool = start.pool;
    unsigned seen = 0;
    for (;;) {
        seen = next_generation(pool, seen);
        if (atomic_load_explicit(&pool->quit, memory_order_acquire)) return NULL;
        work(pool, start.worker);
        if (atomic_fetch_sub_explicit(&pool->busy, 1, memory_order_acq_rel) == 1) {
            pthread_mutex_lock(&pool->lock);
            pthread_cond_signal(&pool->done);
            pthread_mutex_unlock(&pool->lock);
        }
    }
}

static void new_generation(qvl_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add_explicit(&pool->generation, 1, memory_order_release);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

qvl_status qvl_pool_open(int threads, qvl_pool **out, qvl_error *error) {
    *out = NULL;
    if (threads < 0 || threads > MAX_THREADS)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "threads is %d; allowed are 1 to %d, or 0 for all processors",
                        threads, MAX_THREADS);
    if (threads == 0) threads = qvl_online_processors();
    qvl_pool *pool = qvl_calloc(1, sizeof *pool);
    if (!pool) return qvl_fail_memory(error, "thread pool", 1, sizeof *pool);
    pool->threads = threads;
    qvl_gate_open(&pool->turn, 1);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    pool->scratch = qvl_alloc((size_t)threads, QVL_WORKER_SCRATCH);
    if (!pool->scratch) {
        qvl_pool_close(&pool);
        return qvl_fail_memory(error, "thread scratch", (size_t)threads, QVL_WORKER_SCRATCH);
    }
    for (int i = 1; i < threads; i++) {
        helper_start *start = qvl_alloc(1, sizeof *start);
        if (start) *start = (helper_start){pool, i};
        if (!start || !qvl_thread_start(&pool->ids[i], helper, start)) {
            qvl_free(start);
            qvl_pool_close(&pool);
            return qvl_fail(error, QVL_ERROR_MEMORY, "could not start thread %d of %d", i + 1, threads);
        }
        pool->started = i;
    }
    *out = pool;
    return QVL_OK;
}

void qvl_pool_close(qvl_pool **pointer) {
    if (!pointer || !*pointer) return;
    qvl_pool *pool = *pointer;
    *pointer = NULL;
    atomic_store_explicit(&pool->quit, true, memory_order_release);
    new_generation(pool);
    for (int i = 1; i <= pool->started; i++) pthread_join(pool->ids[i], NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    qvl_gate_close(&pool->turn);
    qvl_free(pool->scratch);
    qvl_free(pool);
}

int qvl_pool_threads(const qvl_pool *pool) {
    return pool ? pool->threads : 1;
}

void *qvl_pool_scratch(qvl_pool *pool, int worker) {
    return pool->scratch + (size_t)worker * QVL_WORKER_SCRATCH;
}

void qvl_pool_run(qvl_pool *pool, int64_t tasks, qvl_task_fn fn, void *user) {
    if (!pool) {
        for (int64_t task = 0; task < tasks; task++) fn(user, task, 0);
        return;
    }
    qvl_gate_enter(&pool->turn, NULL);
    pool->tasks = tasks;
    pool->fn = fn;
    pool->user = user;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    if (pool->started && tasks > 1) {
        atomic_store_explicit(&pool->busy, pool->started, memory_order_relaxed);
        new_generation(pool);
        work(pool, 0);
        for (int i = 0; i < SPINS && atomic_load_explicit(&pool->busy, memory_order_acquire); i++)
            __builtin_ia32_pause();
        pthread_mutex_lock(&pool->lock);
        while (atomic_load_explicit(&pool->busy, memory_order_acquire))
            pthread_cond_wait(&pool->done, &pool->lock);
        pthread_mutex_unlock(&pool->lock);
    } else {
        work(pool, 0);
    }
    qvl_gate_leave(&pool->turn);
}
