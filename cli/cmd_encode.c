/* qvl encode: pictures to features. */
#include "commands.h"
#include "open.h"
#include "output.h"
#include "progress.h"
#include "taps.h"

#include <stdio.h>
#include <stdlib.h>

/* What one run holds and measured. */
typedef struct encode_run {
    qvl_model *model;
    qvl_session *session;
    cli_inputs inputs;
    qvl_plan plan;
    qvl_patches patches;
    qvl_features features;
    cli_taps taps;
    cli_progress progress;
    double open_seconds, preprocess_seconds, tower_seconds;
    qvl_profile profile;
} encode_run;

static qvl_status encode(const cli_options *options, encode_run *run, qvl_error *error) {
    double start = cli_seconds();
    cli_progress_say(&run->progress, "opening the model");
    qvl_status status = cli_open_model(options, QVL_OPEN_WEIGHTS, &run->model, error);
    if (status) return status;
    if ((status = qvl_session_open(run->model, &run->session, error))) return status;
    double opened = cli_seconds();
    status =
        qvl_plan_inputs(run->model, run->inputs.list, run->inputs.count, &options->preprocess, &run->plan, error);
    if (status) return status;
    cli_progress_clear(&run->progress);
    cli_note_cost(options, &run->plan);
    cli_progress_say(&run->progress, "preprocessing");
    qvl_preprocess_options preprocess = options->preprocess;
    preprocess.profile = &run->profile;
    status =
        qvl_preprocess_inputs(run->model, run->inputs.list, run->inputs.count, &preprocess, &run->patches, error);
    if (status) return status;
    double preprocessed = cli_seconds();
    qvl_encode_options encoding;
    qvl_encode_options_init(&encoding);
    encoding.progress = cli_progress_step;
    encoding.progress_user = &run->progress;
    encoding.tap = options->taps ? cli_taps_add : NULL;
    encoding.tap_user = &run->taps;
    encoding.profile = &run->profile;
    status = qvl_vision_encode(run->session, &run->patches, &encoding, &run->features, error);
    run->open_seconds = opened - start;
    run->preprocess_seconds = preprocessed - opened;
    run->tower_seconds = cli_seconds() - preprocessed;
    return status;
}

static qvl_status save_features(const char *path, const encode_run *run, const qvl_preprocess_options *preprocess,
                                qvl_error *error) {
    const qvl_features *features = &run->features;
    int64_t *grids = cli_grids(run->patches.items, run->patches.item_count);
    if (!grids) return cli_no_memory(error);
    qvl_tensor tensors[2 + QVL_MAX_DEEPSTACK];
    char names[QVL_MAX_DEEPSTACK][40];
    size_t count = 0;
    tensors[count++] =
        cli_tensor("image_embeds", features->dtype, features->tokens, features->width, features->embeds);
    for (int32_t i = 0; i < features->deepstack_count; i++) {
        snprintf(names[i], sizeof names[i], "deepstack_image_embeds.%d", i);
        tensors[count++] =
            cli_tensor(names[i], features->dtype, features->tokens, features->width, features->deepstack[i]);
    }
    tensors[count++] = cli_tensor("image_grid_thw", QVL_I64, (int64_t)run->patches.item_count, 3, grids);
    qvl_status status = cli_save(path, tensors, count, qvl_model_get_info(run->model), preprocess, error);
    free(grids);
    return status;
}

static qvl_status save(const cli_options *options, encode_run *run, qvl_error *error) {
    if (run->taps.failed) return cli_no_memory(error);
    if (options->taps) {
        qvl_status status = cli_save(options->taps, run->taps.tensors, run->taps.count,
                                     qvl_model_get_info(run->model), &options->preprocess, error);
        if (status) return status;
    }
    return options->output ? save_features(options->output, run, &options->preprocess, error) : QVL_OK;
}

static void add_path(cJSON *json, const char *key, const char *path) {
    cJSON_AddItemToObject(json, key, path ? cJSON_CreateString(path) : cJSON_CreateNull());
}

static int report_json(const cli_options *options, const encode_run *run) {
    const qvl_model_info *info = qvl_model_get_info(run->model);
    cJSON *json = cJSON_CreateObject();
    cli_json_plan(json, options, info, &run->plan, run->features.items);
    cJSON_AddNumberToObject(json, "width", (double)run->features.width);
    cJSON_AddNumberToObject(json, "deepstack", run->features.deepstack_count);
    cJSON *seconds = cJSON_AddObjectToObject(json, "seconds");
    cJSON_AddNumberToObject(seconds, "open", run->open_seconds);
    cJSON_AddNumberToObject(seconds, "preprocess", run->preprocess_seconds);
    cJSON_AddNumberToObject(seconds, "tower", run->tower_seconds);
    if (options->profile)
        for (int i = 0; i < QVL_STAGE_COUNT; i++)
            cJSON_AddNumberToObject(seconds, qvl_stage_name((qvl_stage)i), run->profile.seconds[i]);
    add_path(json, "output", options->output);
    add_path(json, "taps", options->taps);
    return cli_print_json(json);
}

static void print_profile(const qvl_profile *profile) {
    double total = 0.0;
    for (int i = 0; i < QVL_STAGE_COUNT; i++) total += profile->seconds[i];
    for (int i = 0; i < QVL_STAGE_COUNT; i++)
        printf("  %-11s%10.1f ms%7.1f %%\n", qvl_stage_name((qvl_stage)i), 1e3 * profile->seconds[i],
               100.0 * profile->seconds[i] / total);
}

static int report(const cli_options *options, const encode_run *run) {
    if (options->json) return report_json(options, run);
    const qvl_model_info *info = qvl_model_get_info(run->model);
    const qvl_features *features = &run->features;
    cli_print_plan(options, &run->plan, features->items);
    printf("features [%lld, %lld] %s", (long long)features->tokens, (long long)features->width,
           cli_dtype_name(features->dtype));
    if (features->deepstack_count) printf(" and %d deepstack arrays of that shape", features->deepstack_count);
    putchar('\n');
    printf("read and preprocess %.1f ms, tower %.1f ms (%s, %d thread%s), model opened in %.1f ms\n",
           1e3 * run->preprocess_seconds, 1e3 * run->tower_seconds, info->kernels, info->threads,
           info->threads == 1 ? "" : "s", 1e3 * run->open_seconds);
    if (options->profile) print_profile(&run->profile);
    if (options->output)
        printf("features written to %s\n", options->output);
    else
        puts("features not written (no -o)");
    if (options->taps) printf("%zu stages written to %s\n", run->taps.count, options->taps);
    return CLI_DONE;
}

static void release(encode_run *run) {
    cli_taps_free(&run->taps);
    qvl_features_free(&run->features);
    qvl_patches_free(&run->patches);
    qvl_session_close(&run->session);
    qvl_model_close(&run->model);
    qvl_plan_free(&run->plan);
    cli_inputs_free(&run->inputs);
}

int cmd_encode(const cli_options *options) {
    qvl_error error = {0};
    encode_run run = {0};
    cli_progress_init(&run.progress, options->quiet);
    bool good = !cli_check_writable(options->output, &error) && !cli_check_writable(options->taps, &error) &&
                !cli_inputs_open(options, options->input_count, &run.inputs, &error) &&
                !encode(options, &run, &error) && !save(options, &run, &error);
    cli_progress_clear(&run.progress);
    int code = good ? report(options, &run) : cli_refuse(&error);
    release(&run);
    return code;
}
