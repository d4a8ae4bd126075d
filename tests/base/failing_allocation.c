#define _GNU_SOURCE
#include "failing_allocation.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *pointer);
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *aligned_alloc(size_t alignment, size_t size);
void *realloc(void *pointer, size_t size);
void free(void *pointer);

static atomic_long countdown = -1; /* allocations until one fails; negative: none does */
static atomic_long live;

#define EXPORTED __attribute__((visibility("default")))

static int fails(void) {
    if (atomic_load(&countdown) < 0 || atomic_fetch_sub(&countdown, 1) != 0) return 0;
    errno = ENOMEM;
    return 1;
}

static void *counted(void *pointer) {
    if (pointer) atomic_fetch_add(&live, 1);
    return pointer;
}

EXPORTED void *malloc(size_t size) {
    return fails() ? NULL : counted(__libc_malloc(size));
}
EXPORTED void *calloc(size_t count, size_t size) {
    return fails() ? NULL : counted(__libc_calloc(count, size));
}
EXPORTED void *aligned_alloc(size_t alignment, size_t size) {
    return fails() ? NULL : counted(__libc_memalign(alignment, size));
}
EXPORTED void *realloc(void *pointer, size_t size) {
    if (fails()) return NULL;
    void *grown = __libc_realloc(pointer, size);
    if (!pointer && grown) atomic_fetch_add(&live, 1);
    return grown;
}
EXPORTED void free(void *pointer) {
    if (pointer) atomic_fetch_sub(&live, 1);
    __libc_free(pointer);
}

void allocation_fails_after(long count) {
    atomic_store(&countdown, count);
}

int allocation_failure_is_due(void) {
    return atomic_exchange(&countdown, -1) >= 0;
}

long live_allocations(void) {
    return atomic_load(&live);
}
