#include "text/jinja/arena.h"

#include "base/memory.h"

#define ALIGN ((size_t)16)
#define FIRST_CHUNK ((size_t)16 << 10)
#define LAST_CHUNK ((size_t)1 << 20)

struct jinja_chunk {
    jinja_chunk *previous;
    size_t size;
};
_Static_assert(sizeof(jinja_chunk) % ALIGN == 0, "data behind a chunk's head is aligned");

void jinja_arena_init(jinja_arena *arena, size_t limit) {
    *arena = (jinja_arena){.limit = limit, .next_chunk = FIRST_CHUNK};
}

static jinja_chunk *new_chunk(jinja_arena *arena, size_t bytes) {
    size_t size;
    if (!qvl_add_size(bytes, sizeof(jinja_chunk), &size)) return NULL;
    if (size > arena->limit - arena->used) {
        arena->over_limit = true;
        return NULL;
    }
    jinja_chunk *chunk = qvl_alloc(size, 1);
    if (!chunk) return NULL;
    arena->used += size;
    chunk->size = size;
    return chunk;
}

/* A block of its own, kept behind the newest chunk so that what is free there can still be used. */
static void *take_large(jinja_arena *arena, size_t bytes) {
    jinja_chunk *chunk = new_chunk(arena, bytes);
    if (!chunk) return NULL;
    if (arena->chunks) {
        chunk->previous = arena->chunks->previous;
        arena->chunks->previous = chunk;
    } else {
        chunk->previous = NULL;
        arena->chunks = chunk;
    }
    return chunk + 1;
}

void *jinja_arena_take(jinja_arena *arena, size_t count, size_t size) {
    size_t bytes;
    if (!qvl_mul_size(count, size, &bytes) || bytes > SIZE_MAX / 2) return NULL;
    bytes = (bytes + (bytes == 0) + ALIGN - 1) / ALIGN * ALIGN;
    if (bytes > arena->left) {
        if (bytes > arena->next_chunk / 4) return take_large(arena, bytes);
        jinja_chunk *chunk = new_chunk(arena, arena->next_chunk - sizeof(jinja_chunk));
        if (!chunk) return NULL;
        chunk->previous = arena->chunks;
        arena->chunks = chunk;
        arena->at = (uint8_t *)(chunk + 1);
        arena->left = arena->next_chunk - sizeof(jinja_chunk);
        if (arena->next_chunk < LAST_CHUNK) arena->next_chunk *= 2;
    }
    void *block = arena->at;
    arena->at += bytes;
    arena->left -= bytes;
    return block;
}

bool jinja_arena_extend(jinja_arena *arena, const void *block, size_t old_size, size_t new_size) {
    size_t old_bytes = (old_size + (old_size == 0) + ALIGN - 1) / ALIGN * ALIGN;
    if (new_size > SIZE_MAX / 2 || (const uint8_t *)block + old_bytes != arena->at) return false;
    size_t new_bytes = (new_size + ALIGN - 1) / ALIGN * ALIGN;
    if (new_bytes <= old_bytes) return true;
    if (new_bytes - old_bytes > arena->left) return false;
    arena->at += new_bytes - old_bytes;
    arena->left -= new_bytes - old_bytes;
    return true;
}

void jinja_arena_free(jinja_arena *arena) {
    while (arena->chunks) {
        jinja_chunk *chunk = arena->chunks;
        arena->chunks = chunk->previous;
        qvl_free(chunk);
    }
    *arena = (jinja_arena){0};
}
