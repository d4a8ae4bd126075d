#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

void *qvl_alloc(size_t count, size_t size) {
    size_t bytes;
    if (!qvl_mul_size(count, size, &bytes) || bytes == 0 || bytes > SIZE_MAX - QVL_ALIGN) return NULL;
    bytes = (bytes + QVL_ALIGN - 1) / QVL_ALIGN * QVL_ALIGN;
    return aligned_alloc(QVL_ALIGN, bytes);
}

void *qvl_calloc(size_t count, size_t size) {
    void *p = qvl_alloc(count, size);
    if (p) memset(p, 0, count * size);
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
