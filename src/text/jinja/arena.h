/* Memory that is only given back as a whole: what one template, or one rendering of it, needs. */
#ifndef QVL_TEXT_JINJA_ARENA_H
#define QVL_TEXT_JINJA_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct jinja_chunk jinja_chunk;

typedef struct jinja_arena {
    jinja_chunk *chunks;
    uint8_t *at; /* free part of the newest chunk */
    size_t left;
    size_t next_chunk;
    size_t used, limit; /* bytes of all chunks */
    bool over_limit;    /* a request failed because of the limit, not for want of memory */
} jinja_arena;

void jinja_arena_init(jinja_arena *arena, size_t limit);
/* count * size bytes, aligned for anything, not cleared; at least one byte. NULL: no memory, or over the limit. */
void *jinja_arena_take(jinja_arena *arena, size_t count, size_t size);
/* Makes the newest block longer where it lies; false if it is not the newest or its chunk is full. */
bool jinja_arena_extend(jinja_arena *arena, const void *block, size_t old_size, size_t new_size);
/* Accepts a zeroed arena; empties it. */
void jinja_arena_free(jinja_arena *arena);

#endif
