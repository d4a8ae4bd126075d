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

/* A member "cache": "hit", "miss", "part" or null. */
void cli_json_cached(cJSON *object, const cli_options *options, const qvl_item *item);

/* "bf16" or "f32". */
const char *cli_dtype_name(qvl_dtype dtype);

/* What a plan says about how pictures are read, what they become and what that costs: the same text, and the same
 * members of an object, for plan, preprocess and encode. items: what became of them, NULL while that is not known.
 */
void cli_print_plan(const cli_options *options, const qvl_plan *plan, const qvl_item *items);
void cli_json_plan(cJSON *object, const cli_options *options, const qvl_model_info *info, const qvl_plan *plan,
                   const qvl_item *items);

/* The line of it about preset and policies, and the member. */
void cli_print_policies(const cli_options *options);
void cli_json_policies(cJSON *object, const cli_options *options);

/* Before long work, a note on stderr that says how much it is, unless --quiet. */
void cli_note_cost(const cli_options *options, const qvl_plan *plan);

/* The limits in force for pictures: one line of flags, so the same for all. NULL: there are none, of pictures or of
 * limits. */
const qvl_limits *cli_picture_limits(const qvl_plan *plan);

/* Where the effective limits come from: "option", or a file of the folder. */
const char *cli_min_source(const cli_options *options, const qvl_model_info *info);
const char *cli_max_source(const cli_options *options, const qvl_model_info *info);

/* "12.3 MB". */
const char *cli_bytes(int64_t bytes, char text[32]);
/* "12.3 GFLOP". */
const char *cli_flop(double operations, char text[32]);

/* The grids as [count, 3] of int64, transformers' image_grid_thw. Owner: the caller, free(). NULL: no memory. */
int64_t *cli_grids(const qvl_item *items, size_t count);

/* A tensor view of up to two dimensions; cols 0 makes it one. */
qvl_tensor cli_tensor(const char *name, qvl_dtype dtype, int64_t rows, int64_t cols, const void *data);

/* Writes a safetensors file whose metadata says what made it. */
qvl_status cli_save(const char *path, const qvl_tensor *tensors, size_t count, const qvl_model_info *info,
                    const qvl_preprocess_options *preprocess, qvl_error *error);

/* The same with further metadata: pairs of strings. */
qvl_status cli_save_with(const char *path, const qvl_tensor *tensors, size_t count, const qvl_model_info *info,
                         const qvl_preprocess_options *preprocess, const char *const *more, size_t pairs,
                         qvl_error *error);

/* A whole file, or standard input (-), with a NUL behind it. Owner: the caller, free(). */
qvl_status cli_read(const char *path, char **text, size_t *count, qvl_error *error);

/* Writes a file whole or not at all: to a temporary name beside path, then renamed. What is there and is no file is
 * left alone. */
qvl_status cli_write(const char *path, const void *bytes, size_t count, qvl_error *error);
/* A text and a newline in the same way, for this user only. */
qvl_status cli_write_text(const char *path, const char *text, qvl_error *error);

/* Pictures named on the command line as inputs. Standard input is read here, so that it can be looked at twice. */
typedef struct cli_inputs {
    qvl_input *list;
    size_t count;
    void *standard_input;
} cli_inputs;

/* The first count names. On failure there is nothing to free. */
qvl_status cli_inputs_open(const cli_options *options, size_t count, cli_inputs *inputs, qvl_error *error);
/* Accepts a zeroed struct. */
void cli_inputs_free(cli_inputs *inputs);

/* Whether a file can be made at path, or replaced there, asked before long work. NULL path: yes. */
qvl_status cli_check_writable(const char *path, qvl_error *error);

#endif
