/* qvl info: what a folder is. */
#include "cache.h"
#include "commands.h"
#include "open.h"
#include "output.h"

#include <stdio.h>

/* Pixels of one token. */
static int64_t token_area(const qvl_model_info *info) {
    int64_t side = (int64_t)info->patch_size * info->spatial_merge_size;
    return side * side;
}

static void print_tower(const qvl_model_info *info) {
    printf("tower         %d blocks of %d, %d heads of %d, MLP %d; out %d\n", info->depth, info->hidden_size,
           info->num_heads, info->head_dim, info->intermediate_size, info->out_hidden_size);
    printf("patches       %dx%d pixels, %d frames, %d channels; %dx%d patches make a token\n", info->patch_size,
           info->patch_size, info->temporal_patch_size, info->in_channels, info->spatial_merge_size,
           info->spatial_merge_size);
    printf("positions     %d\n", info->num_position_embeddings);
    fputs("deepstack     ", stdout);
    if (info->deepstack_count == 0) fputs("none", stdout);
    for (int32_t i = 0; i < info->deepstack_count; i++)
        printf("%s%d", i ? ", " : "after block ", info->deepstack_indexes[i]);
    putchar('\n');
}

static void print_tensors(const qvl_model_info *info, const char *fingerprint) {
    printf("tensors       %d %s%s, %s, %s layout; %lld parameters\n", info->tensor_count,
           *info->tensor_prefix ? "under " : "without a prefix", info->tensor_prefix, info->tensor_dtype,
           info->tensor_layout, (long long)info->parameter_count);
    printf("weights       %d file%s, found through %s\n", info->file_count, info->file_count == 1 ? "" : "s",
           info->tensor_source);
    if (*fingerprint) printf("fingerprint   %s\n", fingerprint);
}

/* headers: the tower's tensors are known. fingerprint: "" for none. */
static void print_info(const qvl_model_info *info, bool headers, const char *fingerprint) {
    int64_t area = token_area(info);
    printf("folder        %s\n", info->folder);
    printf("model type    %s\n", info->model_type);
    print_tower(info);
    if (headers) print_tensors(info, fingerprint);
    printf("image limits  %lld..%lld pixels (about %lld..%lld tokens), from %s\n",
           (long long)info->image_limits.min_pixels, (long long)info->image_limits.max_pixels,
           (long long)(info->image_limits.min_pixels / area), (long long)(info->image_limits.max_pixels / area),
           info->image_limits_source);
    printf("video limits  %lld..%lld pixels of all frames together, from %s\n",
           (long long)info->video_limits.min_pixels, (long long)info->video_limits.max_pixels,
           info->video_limits_source);
    if (info->video_fps > 0)
        printf("video frames  %g a second, at least %lld and at most %lld\n", info->video_fps,
               (long long)info->video_min_frames, (long long)info->video_max_frames);
    printf("normalising   mean %g %g %g, std %g %g %g, rescale %.15g\n", (double)info->image_mean[0],
           (double)info->image_mean[1], (double)info->image_mean[2], (double)info->image_std[0],
           (double)info->image_std[1], (double)info->image_std[2], info->rescale_factor);
    printf("computes in   %s with %s kernels, %d thread%s\n", cli_dtype_name(info->compute_dtype), info->kernels,
           info->threads, info->threads == 1 ? "" : "s");
}

static void json_floats(cJSON *json, const char *key, const float values[3]) {
    cJSON_AddItemToObject(json, key, cJSON_CreateFloatArray(values, 3));
}

static void json_vision(cJSON *json, const qvl_model_info *info) {
    cJSON *vision = cJSON_AddObjectToObject(json, "vision");
    cJSON_AddNumberToObject(vision, "depth", info->depth);
    cJSON_AddNumberToObject(vision, "hidden_size", info->hidden_size);
    cJSON_AddNumberToObject(vision, "num_heads", info->num_heads);
    cJSON_AddNumberToObject(vision, "head_dim", info->head_dim);
    cJSON_AddNumberToObject(vision, "intermediate_size", info->intermediate_size);
    cJSON_AddNumberToObject(vision, "out_hidden_size", info->out_hidden_size);
    cJSON_AddNumberToObject(vision, "in_channels", info->in_channels);
    cJSON_AddNumberToObject(vision, "patch_size", info->patch_size);
    cJSON_AddNumberToObject(vision, "temporal_patch_size", info->temporal_patch_size);
    cJSON_AddNumberToObject(vision, "spatial_merge_size", info->spatial_merge_size);
    cJSON_AddNumberToObject(vision, "num_position_embeddings", info->num_position_embeddings);
    cJSON_AddNumberToObject(vision, "rope_theta", (double)info->rope_theta);
    cJSON_AddItemToObject(vision, "deepstack_visual_indexes",
                          cJSON_CreateIntArray(info->deepstack_indexes, info->deepstack_count));
}

static void json_tensors(cJSON *json, const qvl_model_info *info, const char *fingerprint) {
    cJSON *tensors = cJSON_AddObjectToObject(json, "tensors");
    cJSON_AddStringToObject(tensors, "source", info->tensor_source);
    cJSON_AddStringToObject(tensors, "prefix", info->tensor_prefix);
    cJSON_AddStringToObject(tensors, "layout", info->tensor_layout);
    cJSON_AddStringToObject(tensors, "dtype", info->tensor_dtype);
    cJSON_AddNumberToObject(tensors, "count", info->tensor_count);
    cJSON_AddNumberToObject(tensors, "files", info->file_count);
    cJSON_AddNumberToObject(tensors, "parameters", (double)info->parameter_count);
    if (*fingerprint) cJSON_AddStringToObject(tensors, "fingerprint", fingerprint);
}

static int print_json_info(const qvl_model_info *info, bool headers, const char *fingerprint) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "folder", info->folder);
    cJSON_AddStringToObject(json, "model_type", info->model_type);
    json_vision(json, info);
    if (headers) json_tensors(json, info, fingerprint);
    cJSON *images = cJSON_AddObjectToObject(json, "images");
    cJSON_AddNumberToObject(images, "min_pixels", (double)info->image_limits.min_pixels);
    cJSON_AddNumberToObject(images, "max_pixels", (double)info->image_limits.max_pixels);
    cJSON_AddStringToObject(images, "limits_source", info->image_limits_source);
    json_floats(images, "mean", info->image_mean);
    json_floats(images, "std", info->image_std);
    cJSON_AddNumberToObject(images, "rescale_factor", info->rescale_factor);
    cJSON *videos = cJSON_AddObjectToObject(json, "videos");
    cJSON_AddNumberToObject(videos, "min_pixels", (double)info->video_limits.min_pixels);
    cJSON_AddNumberToObject(videos, "max_pixels", (double)info->video_limits.max_pixels);
    cJSON_AddStringToObject(videos, "limits_source", info->video_limits_source);
    cJSON_AddItemToObject(videos, "fps",
                          info->video_fps > 0 ? cJSON_CreateNumber(info->video_fps) : cJSON_CreateNull());
    cJSON_AddNumberToObject(videos, "min_frames", (double)info->video_min_frames);
    cJSON_AddNumberToObject(videos, "max_frames", (double)info->video_max_frames);
    cJSON *compute = cJSON_AddObjectToObject(json, "compute");
    cJSON_AddStringToObject(compute, "dtype", cli_dtype_name(info->compute_dtype));
    cJSON_AddStringToObject(compute, "kernels", info->kernels);
    cJSON_AddNumberToObject(compute, "threads", info->threads);
    return cli_print_json(json);
}

static qvl_status find_fingerprint(const qvl_model *model, char hex[QVL_FINGERPRINT_HEX], qvl_error *error) {
    char folder[4096];
    bool remember = cli_cache_folder(folder, sizeof folder);
    return qvl_model_fingerprint(model, remember ? folder : NULL, hex, error);
}

/* A folder without a usable tower is still described, after which the reason is given and the exit code is 1. */
int cmd_info(const cli_options *options) {
    qvl_model *model;
    qvl_error error = {0}, tower_error = {0};
    qvl_status tower = cli_open_model(options, QVL_OPEN_HEADERS, &model, &tower_error);
    if (tower) {
        cli_options quiet = *options; /* its notes were heard a moment ago */
        quiet.quiet = true;
        if (cli_open_model(&quiet, QVL_OPEN_CONFIG, &model, &error)) return cli_refuse(&error);
    }
    const qvl_model_info *info = qvl_model_get_info(model);
    char fingerprint[QVL_FINGERPRINT_HEX] = "";
    qvl_status wanted = QVL_OK;
    if (options->fingerprint && !tower) wanted = find_fingerprint(model, fingerprint, &tower_error);
    int code = CLI_DONE;
    if (options->json)
        code = print_json_info(info, !tower, fingerprint);
    else
        print_info(info, !tower, fingerprint);
    qvl_model_close(&model);
    return tower || wanted ? cli_refuse(&tower_error) : code;
}
