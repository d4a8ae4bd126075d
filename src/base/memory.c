#define _GNU_SOURCE
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* From this size on a block is aligned for, and asks for, huge pages: the rows of a stream lie a page apart, and
 * products walk over 32 of them at a time. */
#define HUGE_BLOCK ((size_t)8 << 20)
#define HUGE_PAGE ((size_t)2 << 20)

void *qvl_alloc(size_t count, size_t size) {
    size_t bytes;
    if (!qvl_mul_size(count, size, &bytes) || bytes == 0 || bytes > SIZE_MAX - HUGE_PAGE) return NULL;
    size_t align = bytes < HUGE_BLOCK ? QVL_ALIGN : HUGE_PAGE;
    bytes = (bytes + QVL_ALIGN - 1) / QVL_ALIGN * QVL_ALIGN;
    void *p = aligned_alloc(align, (bytes + align - 1) / align * align);
    if (p && align == HUGE_PAGE) madvise(p, bytes, MADV_HUGEPAGE); /* advice: without it only speed is lost */
    return p;
}

void *qvl_calloc(size_t count, size_t size) {
    void *p = qvl_alloc(count, size);
    if (p) memset(p, 0, count * size);
    return p;
}

void *qvl_grow(void *old, size_t used, size_t count, size_t size) {
    void *p = qvl_alloc(count, size);
    if (!p) return NULL;
    if (used) memcpy(p, old, used * size);
    qvl_free(old);
    return p;
}

char *qvl_strdup(const char *text) {
    size_t n = strlen(text) + 1;
    char *p = qvl_alloc(n, 1);
    if (p) memcpy(p, text, n);
    return p;
}

void qvl_free(void *pointer) {
    free(pointer);
}

void *qvl_arena_take(qvl_arena *arena, size_t count, size_t size) {
    size_t bytes, end;
    if (!qvl_mul_size(count, size, &bytes) || bytes > SIZE_MAX - QVL_ALIGN) goto overflow;
    bytes = (bytes + QVL_ALIGN - 1) / QVL_ALIGN * QVL_ALIGN;
    if (!qvl_add_size(arena->used, bytes, &end)) goto overflow;
    if (arena->base && end > arena->capacity) goto overflow;
    {
        void *p = arena->base ? arena->base + arena->used : NULL;
        arena->used = end;
        return p;
    }
overflow:
    arena->overflow = true;
    return NULL;
}
