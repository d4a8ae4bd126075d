/* qvl plan: what pictures become, and what encoding them costs. */
#include "commands.h"
#include "open.h"
#include "output.h"
#include "prompts.h"
#include "rates.h"

#include <math.h>
#include <stdio.h>

/* From the last bench. Pictures of different sizes may have been measured separately: rate is that of the picture
 * with the most work. */
typedef struct estimate {
    double seconds; /* of the tower; NaN: none */
    cli_rate rate;
} estimate;

static estimate estimate_time(const qvl_model_info *info, const qvl_plan *plan) {
    estimate result = {0};
    double most = -1;
    for (size_t i = 0; i < plan->item_count; i++) {
        const qvl_plan_item *planned = &plan->items[i];
        cli_rate rate;
        if (!cli_rates_find(info, planned->rows, &rate)) return (estimate){.seconds = NAN};
        result.seconds += 1e-12 * planned->work.total / rate.teraflops_per_second;
        if (planned->work.total <= most) continue;
        most = planned->work.total;
        result.rate = rate;
    }
    return result;
}

static void json_estimate(cJSON *json, const estimate *e) {
    if (isnan(e->seconds)) {
        cJSON_AddNullToObject(json, "estimate");
        return;
    }
    cJSON *object = cJSON_AddObjectToObject(json, "estimate");
    cJSON_AddNumberToObject(object, "tower_seconds", e->seconds);
    cJSON_AddNumberToObject(object, "tflop_per_second", e->rate.teraflops_per_second);
    cli_json_ints(object, "measured_size", (int64_t[]){e->rate.width, e->rate.height}, 2);
}

static void print_limits(const cli_options *options, const qvl_model_info *info, const qvl_plan *plan) {
    const qvl_limits *limits = cli_picture_limits(plan);
    if (!limits) {
        if (!plan->items[0].item.clip) puts("limits       none, --size gives the size");
        return;
    }
    int64_t side = (int64_t)info->patch_size * info->spatial_merge_size, area = side * side;
    printf("limits       %lld (%s) to %lld (%s) pixels, about %lld to %lld tokens\n",
           (long long)limits->min_pixels, cli_min_source(options, info), (long long)limits->max_pixels,
           cli_max_source(options, info), (long long)(limits->min_pixels / area),
           (long long)(limits->max_pixels / area));
}

static void print_cost(const qvl_model_info *info, const qvl_plan *plan, const estimate *e) {
    const qvl_work *work = &plan->work;
    const qvl_memory *memory = &plan->memory;
    char text[5][32];
    printf("work         linear layers %s, attention %s, patch embedding %s, mergers %s\n",
           cli_flop(work->linear, text[0]), cli_flop(work->attention, text[1]),
           cli_flop(work->patch_embed, text[2]), cli_flop(work->mergers, text[3]));
    printf("memory       weights %s, patch rows %s, tower %s, features %s; reading a picture %s\n",
           cli_bytes(memory->weights, text[0]), cli_bytes(memory->patches, text[1]),
           cli_bytes(memory->scratch, text[2]), cli_bytes(memory->features, text[3]),
           cli_bytes(memory->pictures, text[4]));
    printf("computes in  %s with %s kernels, %d thread%s\n", cli_dtype_name(info->compute_dtype), info->kernels,
           info->threads, info->threads == 1 ? "" : "s");
    if (isnan(e->seconds))
        puts("time         no estimate: run qvl bench");
    else
        printf("time         about %.2g s in the tower, at the %.3g TFLOP/s of the last bench with %lldx%lld\n",
               e->seconds, e->rate.teraflops_per_second, (long long)e->rate.width, (long long)e->rate.height);
}

static int report(const cli_options *options, const qvl_model_info *info, const qvl_plan *plan) {
    estimate e = estimate_time(info, plan);
    if (options->json) {
        cJSON *json = cJSON_CreateObject();
        cli_json_plan(json, options, info, plan, NULL);
        json_estimate(json, &e);
        return cli_print_json(json);
    }
    cli_print_plan(options, plan, NULL);
    print_limits(options, info, plan);
    print_cost(info, plan, &e);
    return CLI_DONE;
}

int cmd_plan(const cli_options *options) {
    qvl_error error = {0};
    qvl_model *model = NULL;
    cli_inputs inputs = {0};
    qvl_plan plan = {0};
    bool good = !cli_inputs_open(options, options->input_count, &inputs, &error);
    if (good && inputs.count == 1 && cli_is_chat(&inputs.list[0])) {
        int chat_code = cli_plan_chat(options, &inputs.list[0]);
        cli_inputs_free(&inputs);
        return chat_code;
    }
    for (size_t i = 0; i < inputs.count && good; i++) {
        if (!cli_is_chat(&inputs.list[i])) continue;
        cli_fail(&error, QVL_ERROR_ARGUMENT, "%s is a chat, which is planned alone", inputs.list[i].name);
        good = false;
    }
    good = good && !cli_open_model(options, QVL_OPEN_CONFIG, &model, &error) &&
           !qvl_plan_inputs(model, inputs.list, inputs.count, &options->preprocess, &plan, &error);
    int code = good ? report(options, qvl_model_get_info(model), &plan) : cli_refuse(&error);
    qvl_plan_free(&plan);
    qvl_model_close(&model);
    cli_inputs_free(&inputs);
    return code;
}
