/* What the tests of operations share: a dtype on an instruction set, and a context for it. */
#ifndef QVL_TEST_CONTEXTS_H
#define QVL_TEST_CONTEXTS_H

#include "compute/compute.h"

/* Masks that this processor cannot serve fall back, and are tested twice. */
typedef struct mode {
    qvl_dtype dtype;
    uint32_t cpu_mask;
} mode;

typedef struct context {
    qvl_pool *pool;
    qvl_compute *compute;
    qvl_dtype dtype;
} context;

static inline context open_context(int threads, mode m) {
    context c = {.dtype = m.dtype};
    assert_int_equal(qvl_pool_open(threads, &c.pool, NULL), QVL_OK);
    assert_int_equal(qvl_compute_open(c.pool, m.dtype, m.cpu_mask, &c.compute, NULL), QVL_OK);
    return c;
}

static inline void close_context(context *c) {
    qvl_compute_close(&c->compute);
    qvl_pool_close(&c->pool);
}

#endif
