/* Writes the safetensors files of a folder. */
#ifndef DEMO_WEIGHTS_H
#define DEMO_WEIGHTS_H

#include "configs.h"
#include "naming.h"

#include "qvl.h"

typedef struct demo_output {
    const demo_shape *shape;
    qvl_dtype dtype; /* QVL_F32 or QVL_BF16 */
    size_t shards;   /* files, and an index above 1; the sidecar is not counted */
    const demo_naming *naming;
    demo_layout layout;
} demo_output;

/* Of the sidecar, below the folder. */
#define DEMO_SIDECAR_FOLDER "optiq"
#define DEMO_SIDECAR_FILE "optiq_vision.safetensors"

/* 0, or 1 after a message on stderr. */
int demo_write_weights(const char *folder, const demo_output *output);
int demo_write_json(const char *folder, const char *name, cJSON *json);
/* "random_model: WHAT: VALUE" on stderr; 1. */
int demo_complain(const char *what, const char *value);

#endif
