/* qvl encode: pictures and videos to features. */
#include "cache.h"
#include "clips.h"
#include "commands.h"
#include "feature_file.h"
#include "map.h"
#include "open.h"
#include "output.h"
#include "progress.h"
#include "taps.h"

#include <stdio.h>
#include <sys/stat.h>

/* What one run holds and measured. */
typedef struct encode_run {
    qvl_model *model;
    qvl_session *session;
    qvl_cache *cache;
    cli_inputs inputs;
    qvl_plan plan;
    qvl_features features;
    cli_taps taps;
    cli_progress progress;
    double open_seconds, encode_seconds;
    qvl_profile profile;
} encode_run;

static qvl_status encode(const cli_options *options, encode_run *run, qvl_error *error) {
    double start = cli_seconds();
    cli_progress_say(&run->progress, "opening the model");
    qvl_status status = cli_open_model(options, QVL_OPEN_WEIGHTS, &run->model, error);
    if (!status) status = qvl_session_open(run->model, &run->session, error);
    if (!status) status = cli_use_cache(options, run->session, &run->cache, error);
    if (status) return status;
    double opened = cli_seconds();
    status =
        qvl_plan_inputs(run->model, run->inputs.list, run->inputs.count, &options->preprocess, &run->plan, error);
    if (!status && options->map)
        status = cli_check_map(options->map, &run->plan.items[0].item, qvl_model_get_info(run->model), error);
    if (status) return status;
    cli_order_kinds(&run->inputs, options->inputs, &run->plan);
    cli_progress_clear(&run->progress);
    cli_note_cost(options, &run->plan);
    qvl_preprocess_options preprocess = options->preprocess;
    qvl_encode_options encoding;
    qvl_encode_options_init(&encoding);
    encoding.progress = cli_progress_step;
    encoding.progress_user = &run->progress;
    encoding.tap = options->taps ? cli_taps_add : NULL;
    encoding.tap_user = &run->taps;
    preprocess.profile = encoding.profile = options->profile ? &run->profile : NULL;
    status = qvl_encode(run->session, run->inputs.list, run->inputs.count, &preprocess, &encoding, &run->features,
                        error);
    run->open_seconds = opened - start;
    run->encode_seconds = cli_seconds() - opened;
    return status;
}

/* The features first: what fails later does not cost them. */
static qvl_status save(const cli_options *options, encode_run *run, qvl_error *error) {
    const qvl_model_info *info = qvl_model_get_info(run->model);
    qvl_status status = QVL_OK;
    if (options->output)
        status = cli_save_features(options->output, &run->features, info, &options->preprocess, NULL, error);
    if (!status && run->taps.failed) status = cli_no_memory(error);
    if (!status && options->taps)
        status = cli_save(options->taps, run->taps.tensors, run->taps.count, info, &options->preprocess, error);
    if (!status && options->map) status = cli_save_map(options->map, &run->features, info, error);
    return status;
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
    cJSON_AddNumberToObject(seconds, "encode", run->encode_seconds);
    if (options->profile)
        for (int i = 0; i < QVL_STAGE_COUNT; i++)
            cJSON_AddNumberToObject(seconds, qvl_stage_name((qvl_stage)i), run->profile.seconds[i]);
    add_path(json, "output", options->output);
    add_path(json, "taps", options->taps);
    add_path(json, "map", options->map);
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
    printf("encoded in %.1f ms (%s, %d thread%s), model opened in %.1f ms\n", 1e3 * run->encode_seconds,
           info->kernels, info->threads, info->threads == 1 ? "" : "s", 1e3 * run->open_seconds);
    if (options->profile) print_profile(&run->profile);
    if (options->output)
        printf("features written to %s\n", options->output);
    else
        puts("features not written (no -o)");
    if (options->taps) printf("%zu stages written to %s\n", run->taps.count, options->taps);
    if (options->map) printf("map of the features written to %s\n", options->map);
    return CLI_DONE;
}

static void release(encode_run *run) {
    cli_taps_free(&run->taps);
    qvl_features_free(&run->features);
    qvl_session_close(&run->session);
    qvl_cache_close(&run->cache);
    qvl_model_close(&run->model);
    qvl_plan_free(&run->plan);
    cli_inputs_free(&run->inputs);
}

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

int cmd_encode(const cli_options *options) {
    qvl_error error = {0};
    if (options->input_count == 1 && is_folder(options->inputs[0])) {
        if (!options->map) return cli_encode_folder(options);
        cli_fail(&error, QVL_ERROR_ARGUMENT, "%.800s is a folder: --map draws one picture or clip",
                 options->inputs[0]);
        return cli_refuse(&error);
    }
    encode_run run = {0};
    cli_progress_init(&run.progress, options->quiet);
    bool good = !cli_check_writable(options->output, &error) && !cli_check_writable(options->taps, &error) &&
                !cli_check_writable(options->map, &error) &&
                !cli_inputs_open(options, options->input_count, &run.inputs, &error) &&
                !encode(options, &run, &error) && !save(options, &run, &error);
    cli_progress_clear(&run.progress);
    int code = good ? report(options, &run) : cli_refuse(&error);
    release(&run);
    return code;
}
