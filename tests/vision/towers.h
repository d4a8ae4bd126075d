/* What the tower tests share: model folders made by random_model, fixtures made by transformers, distances. */
#ifndef TESTS_VISION_TOWERS_H
#define TESTS_VISION_TOWERS_H

#include "qvl.h"

/* Writes a model folder below a temporary folder of this process; the path is static and removed at exit. */
const char *make_model_folder(const char *shape, const char *init, const char *dtype);

qvl_model *open_model(const char *folder, qvl_dtype dtype, int threads, uint32_t cpu_mask);

/* The inputs of a fixture case (rules in tools/oracle/tower_fixtures.py): grids from CASE/grid_thw, rows by
 * formula. */
qvl_patches case_patches(const qvl_tensor_file *fixture, const char *name, const qvl_model *model);

/* Every stage of one run, by name. */
typedef struct stages {
    qvl_tensor tensors[2048];
    size_t count;
} stages;
void keep_stage(const qvl_tensor *tensor, void *user); /* a qvl_tap_fn; user is a stages */
const qvl_tensor *find_stage(const stages *s, const char *name);
void free_stages(stages *s);

/* Element i as double, whatever the dtype. */
double tensor_value(const qvl_tensor *t, int64_t i);
int64_t tensor_count(const qvl_tensor *t);

/* sum (x - ref)^2 / sum ref^2, over all elements and of the worst row (first dimension). */
typedef struct distance {
    double nmse, worst;
    int64_t worst_row;
} distance;
distance tensor_distance(const qvl_tensor *x, const qvl_tensor *reference);

qvl_tensor features_tensor(const qvl_features *features, int level); /* level -1: embeds */

#endif
