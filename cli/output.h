/* What the commands print and write. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "options.h"

#include <cjson/cJSON.h>

/* Seconds of a clock that only runs forward. */
double cli_seconds(void);

/* Prints the object with a newline on stdout and deletes it. CLI_DONE, or CLI_REFUSED if there was no memory. */
int cli_print_json(cJSON *object);

/* An array of integers under key. */
void cli_json_ints(cJSON *object, const char *key, const int64_t *values, int count);

/* "bf16" or "f32". */
const char *cli_dtype_name(qvl_dtype dtype);

/* One line, or one element of an array "items", for each picture: name, sizes, grid, tokens. names[count]. */
void cli_print_items(char *const *names, const qvl_item *items, size_t count);
void cli_json_items(cJSON *object, char *const *names, const qvl_item *items, size_t count);

int64_t cli_total_tokens(const qvl_item *items, size_t count);

/* The grids as [count, 3] of int64, transformers' image_grid_thw. Owner: the caller, free(). NULL: no memory. */
int64_t *cli_grids(const qvl_item *items, size_t count);

/* A tensor view of up to two dimensions; cols 0 makes it one. */
qvl_tensor cli_tensor(const char *name, qvl_dtype dtype, int64_t rows, int64_t cols, const void *data);

/* Writes a safetensors file whose metadata says what made it. */
qvl_status cli_save(const char *path, const qvl_tensor *tensors, size_t count, const qvl_model_info *info,
                    qvl_preset preset, qvl_error *error);

/* Pictures named on the command line as inputs. Owner: the caller, free(). NULL: no memory. */
qvl_input *cli_inputs(const cli_options *options);

/* Whether a file can be made at path, asked before long work. NULL path: yes. */
qvl_status cli_check_writable(const char *path, qvl_error *error);

#endif
