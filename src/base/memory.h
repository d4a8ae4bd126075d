/* Checked sizes, aligned memory, and an arena for scratch that is planned before work starts. */
#ifndef QVL_BASE_MEMORY_H
#define QVL_BASE_MEMORY_H

#include "base/error.h"

/* *out = a * b or a + b; false on overflow (then *out is untouched). */
static inline bool qvl_mul_size(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool qvl_add_size(size_t a, size_t b, size_t *out) {
    return !__builtin_add_overflow(a, b, out);
}
/* *out = a * b for non-negative a, b; false on overflow or a negative factor. */
static inline bool qvl_mul_i64(int64_t a, int64_t b, int64_t *out) {
    return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, out);
}

#define QVL_ALIGN ((size_t)64)

/* count * size bytes, 64-byte aligned, not cleared; NULL on overflow, zero bytes or no memory. Free: qvl_free. */
void *qvl_alloc(size_t count, size_t size);
/* The same, cleared. */
void *qvl_calloc(size_t count, size_t size);
/* A block of count elements that begins with the used ones of old, which is freed; old may be NULL if used is 0.
 * NULL as for qvl_alloc: then old is as it was. */
void *qvl_grow(void *old, size_t used, size_t count, size_t size);
/* A copy of a string; NULL if there is no memory. Free: qvl_free. */
char *qvl_strdup(const char *text);
void qvl_free(void *pointer);

/* Scratch of one owner: a block that is carved from the front. The same code plans and carves: with base == NULL
 * qvl_arena_take returns NULL and only counts, so `used` is the size to ask for. */
typedef struct qvl_arena {
    uint8_t *base;
    size_t capacity, used;
    bool overflow; /* a size did not fit size_t or, when carving, the block */
} qvl_arena;

void *qvl_arena_take(qvl_arena *arena, size_t count, size_t size);

#endif
