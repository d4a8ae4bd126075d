/* Weights that any language can make again from a tensor's name: a hash of the name, a mix of the element's index.
 * Free-standing (libc only): the tests compile it too. tools/oracle/generator.py is the same in Python. */
#ifndef DEMO_GENERATOR_H
#define DEMO_GENERATOR_H

#include <stdbool.h>
#include <stdint.h>

/* FNV-1a, 32 bits, of the name's bytes. */
uint32_t demo_seed(const char *name);

/* Elements first .. first+count-1 (flat, row-major) of u for the tensor called name: uniform in [-1, 1), exact
 * multiples of 2^-23. Written to u[0 .. count-1]. */
void demo_fill(const char *name, int64_t first, int64_t count, float *u);

/* How u becomes a weight. */
typedef enum demo_init {
    DEMO_SCALED = 0, /* matrices u*sqrt(3/fan_in): activations of a wide tower stay of order one */
    DEMO_QUARTER = 1 /* everything 0.25 u, norm weights 1 + 0.25 u: the published test vectors' rule */
} demo_init;

/* value = offset + scale*u, evaluated in double and rounded once to f32. */
typedef struct demo_rule {
    double scale, offset;
} demo_rule;

/* The rule of one tensor. zero_centred: text norms of the family hold weight - 1 (qwen3_5 and later), so they get
 * no offset, except linear_attn.norm and the vision tower's. */
demo_rule demo_value_rule(demo_init init, bool zero_centred, const char *name, const int64_t *shape, int ndim);

/* demo_fill through a rule, as f32 and as bf16 (nearest, ties to even, from the f32 value). */
void demo_fill_f32(const char *name, demo_rule rule, int64_t first, int64_t count, float *values);
void demo_fill_bf16(const char *name, demo_rule rule, int64_t first, int64_t count, uint16_t *values);

#endif
