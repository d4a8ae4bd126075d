/* qvl preprocess: pictures to patch rows. */
#include "commands.h"
#include "open.h"
#include "output.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>

static qvl_status save_patches(const cli_options *options, const qvl_model_info *info, const qvl_patches *patches,
                               qvl_error *error) {
    int64_t *grids = cli_grids(patches->items, patches->item_count);
    if (!grids) return cli_no_memory(error);
    const qvl_tensor tensors[] = {
        cli_tensor("pixel_values", QVL_F32, patches->rows, patches->cols, patches->values),
        cli_tensor("image_grid_thw", QVL_I64, (int64_t)patches->item_count, 3, grids),
    };
    qvl_status status = cli_save(options->output, tensors, 2, info, &options->preprocess, error);
    free(grids);
    return status;
}

static int report(const cli_options *options, const qvl_model_info *info, const qvl_plan *plan,
                  const qvl_patches *patches, double seconds) {
    if (options->json) {
        cJSON *json = cJSON_CreateObject();
        cli_json_plan(json, options, info, plan, patches->items);
        cli_json_ints(json, "pixel_values_shape", (int64_t[]){patches->rows, patches->cols}, 2);
        cJSON_AddNumberToObject(json, "seconds", seconds);
        cJSON_AddItemToObject(json, "output",
                              options->output ? cJSON_CreateString(options->output) : cJSON_CreateNull());
        return cli_print_json(json);
    }
    cli_print_plan(options, plan, patches->items);
    printf("pixel_values [%lld, %lld] f32, %.1f ms\n", (long long)patches->rows, (long long)patches->cols,
           1e3 * seconds);
    printf("%s%s\n", options->output ? "written to " : "not written (no -o)",
           options->output ? options->output : "");
    return CLI_DONE;
}

int cmd_preprocess(const cli_options *options) {
    qvl_error error = {0};
    qvl_model *model = NULL;
    qvl_plan plan = {0};
    qvl_patches patches = {0};
    cli_inputs inputs = {0};
    int code = CLI_REFUSED;
    cli_progress progress;
    cli_progress_init(&progress, options->quiet);
    if (cli_check_writable(options->output, &error)) goto done;
    if (cli_inputs_open(options, options->input_count, &inputs, &error)) goto done;
    if (cli_open_model(options, QVL_OPEN_CONFIG, &model, &error)) goto done;
    if (qvl_plan_inputs(model, inputs.list, inputs.count, &options->preprocess, &plan, &error)) goto done;
    cli_progress_say(&progress, "preprocessing");
    double start = cli_seconds();
    if (qvl_preprocess_inputs(model, inputs.list, inputs.count, &options->preprocess, &patches, &error)) goto done;
    double seconds = cli_seconds() - start;
    if (options->output && save_patches(options, qvl_model_get_info(model), &patches, &error)) goto done;
    cli_progress_clear(&progress);
    code = report(options, qvl_model_get_info(model), &plan, &patches, seconds);
done:
    cli_progress_clear(&progress);
    if (error.status) cli_refuse(&error);
    qvl_patches_free(&patches);
    qvl_plan_free(&plan);
    qvl_model_close(&model);
    cli_inputs_free(&inputs);
    return code;
}
