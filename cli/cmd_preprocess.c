/* qvl preprocess: pictures and videos to patch rows. */
#include "clips.h"
#include "commands.h"
#include "open.h"
#include "output.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>

static qvl_status save_patches(const cli_options *options, const qvl_model_info *info, const qvl_patches *patches,
                               qvl_error *error) {
    cli_kinds kinds = cli_count_kinds(patches->items, patches->item_count);
    int64_t *grids = cli_grids(patches->items, patches->item_count), pictures = (int64_t)kinds.pictures;
    double *seconds = cli_timestamps(patches->items, patches->item_count);
    qvl_tensor tensors[5];
    size_t count = 0;
    qvl_status status = grids && (seconds || !kinds.clips) ? QVL_OK : cli_no_memory(error);
    if (!status && pictures) {
        tensors[count++] = cli_tensor("pixel_values", QVL_F32, kinds.rows, patches->cols, patches->values);
        tensors[count++] = cli_tensor("image_grid_thw", QVL_I64, pictures, 3, grids);
    }
    if (!status && kinds.clips) {
        tensors[count++] = cli_tensor("pixel_values_videos", QVL_F32, patches->rows - kinds.rows, patches->cols,
                                      patches->values + kinds.rows * patches->cols);
        tensors[count++] = cli_tensor("video_grid_thw", QVL_I64, (int64_t)kinds.clips, 3, grids + 3 * pictures);
        tensors[count++] = cli_tensor("video_timestamps", QVL_F64, kinds.groups, 0, seconds);
    }
    if (!status) status = cli_save(options->output, tensors, count, info, &options->preprocess, error);
    free(grids);
    free(seconds);
    return status;
}

static int report(const cli_options *options, const qvl_model_info *info, const qvl_plan *plan,
                  const qvl_patches *patches, double seconds) {
    cli_kinds kinds = cli_count_kinds(patches->items, patches->item_count);
    if (options->json) {
        cJSON *json = cJSON_CreateObject();
        cli_json_plan(json, options, info, plan, patches->items);
        if (kinds.pictures) cli_json_ints(json, "pixel_values_shape", (int64_t[]){kinds.rows, patches->cols}, 2);
        if (kinds.clips)
            cli_json_ints(json, "pixel_values_videos_shape",
                          (int64_t[]){patches->rows - kinds.rows, patches->cols}, 2);
        cJSON_AddNumberToObject(json, "seconds", seconds);
        cJSON_AddItemToObject(json, "output",
                              options->output ? cJSON_CreateString(options->output) : cJSON_CreateNull());
        return cli_print_json(json);
    }
    cli_print_plan(options, plan, patches->items);
    if (kinds.pictures) printf("pixel_values [%lld, %lld] f32, ", (long long)kinds.rows, (long long)patches->cols);
    if (kinds.clips)
        printf("pixel_values_videos [%lld, %lld] f32, ", (long long)(patches->rows - kinds.rows),
               (long long)patches->cols);
    printf("%.1f ms\n", 1e3 * seconds);
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
    cli_order_kinds(&inputs, options->inputs, &plan);
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
