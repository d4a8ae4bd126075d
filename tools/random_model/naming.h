/* The ways in which folders name and lay out the same tensors, so that one model can be written in all of them. */
#ifndef DEMO_NAMING_H
#define DEMO_NAMING_H

#include "shapes.h"

/* Of patch_embed.proj.weight. */
typedef enum demo_layout {
    DEMO_LAYOUT_HF,  /* [d, 3, t, p, p] */
    DEMO_LAYOUT_MLX, /* [d, t, p, p, 3] */
    DEMO_LAYOUT_FLAT /* [d, 3 * t * p * p] */
} demo_layout;

typedef struct demo_naming {
    const char *name;        /* of the option */
    const char *tower;       /* in the place of "model.visual." */
    const char *text, *head; /* of "model.language_model." and "lm_head." */
    demo_layout layout;      /* that this generation comes with */
    const char *format;      /* in the files' metadata */
    bool sidecar;            /* the tower is in a file of its own */
} demo_naming;

/* NULL where no generation or layout has that name. */
const demo_naming *demo_naming_find(const char *name);
bool demo_layout_find(const char *name, demo_layout *layout);

/* A tensor as it is written. Values are made from its Hugging Face name, before. */
demo_tensor demo_rename(const demo_tensor *tensor, const demo_naming *naming);
/* Gives tensor and its values (elements of size bytes) the layout. false: no memory. Other tensors stay as they
 * are. */
bool demo_lay_out(demo_tensor *tensor, demo_layout layout, void *values, size_t size);

#endif
