/* qvl prompt: a conversation to ids, positions and embeddings. */
#include "cache.h"
#include "commands.h"
#include "open.h"
#include "output.h"
#include "progress.h"
#include "prompts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What one run holds. */
typedef struct prompt_run {
    cli_chat chat;
    qvl_model *model;
    qvl_session *session;
    qvl_cache *cache;
    qvl_prompter *prompter;
    qvl_prompt prompt;
    char identity[QVL_KEY_HEX];
    cli_progress progress;
} prompt_run;

static qvl_status identify(prompt_run *run, qvl_error *error) {
    char folder[4096], fingerprint[QVL_FINGERPRINT_HEX];
    if (run->prompt.media_length == 0) return QVL_OK;
    bool remembered = cli_cache_folder(folder, sizeof folder);
    qvl_status status = qvl_model_fingerprint(run->model, remembered ? folder : NULL, fingerprint, error);
    return status ? status : qvl_prompt_identity(run->model, &run->prompt, fingerprint, run->identity, error);
}

static qvl_status build(const cli_options *options, prompt_run *run, qvl_error *error) {
    qvl_status status = cli_check_writable(options->output, error);
    if (!status) status = cli_chat_open(options, options->inputs[0], NULL, 0, &run->chat, error);
    cli_progress_say(&run->progress, "opening the model");
    if (!status) status = cli_open_model(options, QVL_OPEN_WEIGHTS, &run->model, error);
    if (!status) status = qvl_prompter_open(run->model, &run->chat.prompter, &run->prompter, error);
    if (!status) status = qvl_session_open(run->model, &run->session, error);
    if (!status) status = cli_use_cache(options, run->session, &run->cache, error);
    if (status) return status;
    cli_progress_clear(&run->progress);
    run->chat.options.progress = cli_progress_step;
    run->chat.options.progress_user = &run->progress;
    if (!options->quiet) run->chat.options.log = cli_print_note;
    status =
        qvl_prompt_build(run->session, run->prompter, &run->chat.chat, &run->chat.options, &run->prompt, error);
    return status ? status : identify(run, error);
}

/* ---- the file */

static qvl_tensor tensor(const char *name, qvl_dtype dtype, int32_t ndim, const int64_t *shape, const void *data) {
    qvl_tensor t = {.name = name, .dtype = dtype, .ndim = ndim, .data = data};
    memcpy(t.shape, shape, (size_t)ndim * sizeof *shape);
    return t;
}
#define SHAPE(...)                                                                                                \
    (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) {                                  \
        __VA_ARGS__                                                                                               \
    }

/* The grids of one kind, [count, 3]. */
static int64_t *grids_of(const qvl_prompt *prompt, qvl_medium_kind kind, int64_t *count) {
    int64_t *grids = malloc((prompt->item_count + 1) * 3 * sizeof *grids);
    *count = 0;
    for (size_t i = 0; grids && i < prompt->item_count; i++) {
        if (prompt->items[i].kind != kind) continue;
        qvl_grid g = prompt->items[i].item.grid;
        memcpy(grids + 3 * *count, (int64_t[]){g.t, g.h, g.w}, 3 * sizeof *grids);
        ++*count;
    }
    return grids;
}

static uint8_t *mask_of(const qvl_prompt *prompt) {
    uint8_t *mask = malloc((size_t)prompt->length);
    for (int64_t i = 0; mask && i < prompt->length; i++) mask[i] = prompt->token_types[i] != 0;
    return mask;
}

static qvl_status save(const cli_options *options, const prompt_run *run, qvl_error *error) {
    const qvl_prompt *p = &run->prompt;
    int64_t images, videos, length = p->length, delta = p->rope_delta;
    int64_t *image_grids = grids_of(p, QVL_MEDIUM_IMAGE, &images),
            *video_grids = grids_of(p, QVL_MEDIUM_VIDEO, &videos);
    uint8_t *mask = mask_of(p);
    qvl_tensor tensors[8 + QVL_MAX_DEEPSTACK];
    char names[QVL_MAX_DEEPSTACK][40];
    size_t count = 0;
    qvl_status status = image_grids && video_grids && mask ? QVL_OK : cli_no_memory(error);
    if (!status) {
        tensors[count++] = tensor("input_ids", QVL_I64, SHAPE(1, length), p->input_ids);
        tensors[count++] = tensor("mm_token_type_ids", QVL_I64, SHAPE(1, length), p->token_types);
        tensors[count++] = tensor("position_ids", QVL_I64, SHAPE(3, 1, length), p->position_ids);
        tensors[count++] = tensor("rope_deltas", QVL_I64, SHAPE(1, 1), &delta);
        tensors[count++] = tensor("inputs_embeds", p->dtype, SHAPE(1, length, p->width), p->inputs_embeds);
        if (images) tensors[count++] = tensor("image_grid_thw", QVL_I64, SHAPE(images, 3), image_grids);
        if (videos) tensors[count++] = tensor("video_grid_thw", QVL_I64, SHAPE(videos, 3), video_grids);
        if (p->deepstack_count) tensors[count++] = tensor("visual_pos_masks", QVL_BOOL, SHAPE(1, length), mask);
        for (int32_t i = 0; i < p->deepstack_count; i++) {
            snprintf(names[i], sizeof names[i], "deepstack_visual_embeds.%d", i);
            tensors[count++] = tensor(names[i], p->dtype, SHAPE(p->vision_tokens, p->width), p->deepstack[i]);
        }
        const char *const more[] = {"media_prefix", run->identity, "video_layout",
                                    options->prompt.video_layout == QVL_VIDEO_BARE ? "bare" : "wrapped"};
        status = cli_save_with(options->output, tensors, count, qvl_model_get_info(run->model),
                               &options->preprocess, more, 2, error);
    }
    free(image_grids);
    free(video_grids);
    free(mask);
    return status;
}

/* ---- the report */

static int report(const cli_options *options, const prompt_run *run) {
    const qvl_prompt *p = &run->prompt;
    if (options->json) {
        cJSON *object = cJSON_CreateObject();
        cli_json_prompt(object, options, qvl_model_get_info(run->model), p);
        cJSON_AddStringToObject(object, "dtype", cli_dtype_name(p->dtype));
        cJSON_AddNumberToObject(object, "width", (double)p->width);
        cJSON_AddNumberToObject(object, "deepstack", p->deepstack_count);
        cJSON_AddItemToObject(object, "media_prefix",
                              *run->identity ? cJSON_CreateString(run->identity) : cJSON_CreateNull());
        cJSON_AddItemToObject(object, "output",
                              options->output ? cJSON_CreateString(options->output) : cJSON_CreateNull());
        return cli_print_json(object);
    }
    cli_print_prompt(options, p);
    if (*run->identity) printf("media prefix %s, %lld entries\n", run->identity, (long long)p->media_length);
    printf("inputs_embeds [1, %lld, %lld] %s, %d deepstack arrays\n", (long long)p->length, (long long)p->width,
           cli_dtype_name(p->dtype), p->deepstack_count);
    printf("%s%s\n", options->output ? "written to " : "not written (no -o)",
           options->output ? options->output : "");
    return CLI_DONE;
}

int cmd_prompt(const cli_options *options) {
    qvl_error error = {0};
    prompt_run run = {0};
    cli_progress_init(&run.progress, options->quiet);
    bool good = !build(options, &run, &error) && (!options->output || !save(options, &run, &error));
    cli_progress_clear(&run.progress);
    int code = good ? report(options, &run) : cli_refuse(&error);
    qvl_prompt_free(&run.prompt);
    qvl_prompter_close(&run.prompter);
    qvl_session_close(&run.session);
    qvl_cache_close(&run.cache);
    qvl_model_close(&run.model);
    cli_chat_free(&run.chat);
    return code;
}
