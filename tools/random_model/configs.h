/* The JSON files of a folder. */
#ifndef DEMO_CONFIGS_H
#define DEMO_CONFIGS_H

#include "shapes.h"

#include <cjson/cJSON.h>

/* Each returns a tree that the caller deletes, or NULL if there is no memory. dtype: "bfloat16" or "float32". */
cJSON *demo_config(const demo_shape *shape, const char *dtype);
cJSON *demo_generation_config(const demo_shape *shape);
cJSON *demo_image_processor(const demo_shape *shape);
cJSON *demo_video_processor(const demo_shape *shape);

#endif
