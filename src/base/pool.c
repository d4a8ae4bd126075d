/* Helpers sleep on a condition variable between runs, after spinning for a while: the products of one block follow
 * each other within microseconds. A run is a generation number; tasks are handed out by an atomic counter. A helper
 * enters a run while it is open; one that comes late, because its processor had something else to do, is not waited
 * for. */
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
#define CLOSED ((uint_fast64_t)1 << 31)
#define INSIDE (CLOSED - 1)
#define GENERATION ((uint_fast64_t)1 << 32)

struct qvl_pool {
    int threads;
    pthread_t ids[MAX_THREADS];
    int started; /* helpers that run */
    uint8_t *scratch;
    qvl_gate turn;        /* held for a whole run; in order, so that no caller of many runs keeps out another */
    pthread_mutex_t lock; /* guards sleeping */
    pthread_cond_t wake, done;
    atomic_uint_fast64_t run; /* GENERATION * its number, CLOSED once no helper may enter, and helpers inside */
    atomic_bool quit;
    atomic_int_fast64_t next;
    /* Of the current run; written while nobody is inside. */
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

static bool has_begun(qvl_pool *pool, uint_fast64_t seen, uint_fast64_t *generation) {
    *generation = atomic_load_explicit(&pool->run, memory_order_acquire) / GENERATION;
    return *generation != seen;
}

/* Waits for a generation other than seen; returns it. */
static uint_fast64_t next_generation(qvl_pool *pool, uint_fast64_t seen) {
    uint_fast64_t generation;
    for (int i = 0; i < SPINS; i++) {
        if (has_begun(pool, seen, &generation)) return generation;
        __builtin_ia32_pause();
    }
    pthread_mutex_lock(&pool->lock);
    while (!has_begun(pool, seen, &generation)) pthread_cond_wait(&pool->wake, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    return generation;
}

/* false: the run is over, or all its tasks are handed out. */
static bool enter(qvl_pool *pool) {
    uint_fast64_t run = atomic_load_explicit(&pool->run, memory_order_relaxed);
    while (!(run & CLOSED))
        if (atomic_compare_exchange_weak_explicit(&pool->run, &run, run + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    return false;
}

static void leave(qvl_pool *pool) {
    uint_fast64_t run = atomic_fetch_sub_explicit(&pool->run, 1, memory_order_acq_rel);
    if (!(run & CLOSED) || (run & INSIDE) != 1) return;
    pthread_mutex_lock(&pool->lock);
    pthread_cond_signal(&pool->done);
    pthread_mutex_unlock(&pool->lock);
}

static void *helper(void *argument) {
    helper_start start = *(helper_start *)argument;
    qvl_free(argument);
    qvl_pool *pool = start.pool;
    uint_fast64_t seen = 0;
    for (;;) {
        seen = next_generation(pool, seen);
        if (atomic_load_explicit(&pool->quit, memory_order_acquire)) return NULL;
        if (!enter(pool)) continue;
        work(pool, start.worker);
        leave(pool);
    }
}

/* The next run, while nobody is inside. closed: 0, or CLOSED for one that is there to wake the helpers. */
static void begin(qvl_pool *pool, uint_fast64_t closed) {
    pthread_mutex_lock(&pool->lock);
    uint_fast64_t last = atomic_load_explicit(&pool->run, memory_order_relaxed) / GENERATION;
    atomic_store_explicit(&pool->run, (last + 1) * GENERATION | closed, memory_order_release);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

static bool is_empty(qvl_pool *pool) {
    return (atomic_load_explicit(&pool->run, memory_order_acquire) & INSIDE) == 0;
}

/* All tasks are handed out: closes the run and waits for those who still have one. */
static void end(qvl_pool *pool) {
    atomic_fetch_or_explicit(&pool->run, CLOSED, memory_order_acq_rel);
    for (int i = 0; i < SPINS && !is_empty(pool); i++) __builtin_ia32_pause();
    if (is_empty(pool)) return;
    pthread_mutex_lock(&pool->lock);
    while (!is_empty(pool)) pthread_cond_wait(&pool->done, &pool->lock);
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
    begin(pool, CLOSED);
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
        begin(pool, 0);
        work(pool, 0);
        end(pool);
    } else {
        work(pool, 0);
    }
    qvl_gate_leave(&pool->turn);
}
