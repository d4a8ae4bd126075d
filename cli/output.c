#define _GNU_SOURCE
#include "output.h"

#include "cache.h"
#include "clips.h"
#include "open.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

double cli_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int cli_print_json(cJSON *object) {
    char *text = cJSON_Print(object);
    cJSON_Delete(object);
    if (!text) {
        fputs("qvl: not enough memory\n", stderr);
        return CLI_REFUSED;
    }
    puts(text);
    cJSON_free(text);
    return CLI_DONE;
}

void cli_json_ints(cJSON *object, const char *key, const int64_t *values, int count) {
    cJSON *array = cJSON_AddArrayToObject(object, key);
    for (int i = 0; i < count; i++) cJSON_AddItemToArray(array, cJSON_CreateNumber((double)values[i]));
}

void cli_json_cached(cJSON *object, const cli_options *options, const qvl_item *item) {
    const char *cached = cli_cache_word(options, item);
    cJSON_AddItemToObject(object, "cache", cached ? cJSON_CreateString(cached) : cJSON_CreateNull());
}

const char *cli_dtype_name(qvl_dtype dtype) {
    return dtype == QVL_F32 ? "f32" : "bf16";
}

/* ---- plans */

/* Three digits and a unit of thousands. */
static const char *scaled(double value, const char *unit, const char *one, char text[32]) {
    static const char prefixes[] = " kMGTPE";
    size_t step = 0;
    for (; value >= 999.5 && step < sizeof prefixes - 2; step++) value /= 1000;
    int decimals = !step || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    if (step)
        snprintf(text, 32, "%.*f %c%s", decimals, value, prefixes[step], unit);
    else
        snprintf(text, 32, "%.0f %s", value, one);
    return text;
}

const char *cli_bytes(int64_t bytes, char text[32]) {
    return scaled((double)bytes, "B", "bytes", text);
}

const char *cli_flop(double operations, char text[32]) {
    return scaled(operations, "FLOP", "FLOP", text);
}

const char *cli_min_source(const cli_options *options, const qvl_model_info *info) {
    const qvl_preprocess_options *p = &options->preprocess;
    return p->min_pixels || p->min_tokens ? "option" : info->image_limits_source;
}

const char *cli_max_source(const cli_options *options, const qvl_model_info *info) {
    const qvl_preprocess_options *p = &options->preprocess;
    return p->max_pixels || p->max_tokens ? "option" : info->image_limits_source;
}

static const char *orientation_name(qvl_orientation orientation) {
    return orientation == QVL_ORIENTATION_APPLY ? "apply" : "ignore";
}

static const char *alpha_name(const qvl_media_options *media, char text[8]) {
    const uint8_t *c = media->alpha_colour;
    if (media->alpha == QVL_ALPHA_DROP) return "drop";
    if (c[0] == 255 && c[1] == 255 && c[2] == 255) return "white";
    snprintf(text, 8, "#%02x%02x%02x", c[0], c[1], c[2]);
    return text;
}

static const char *gray16_name(qvl_gray16 gray16) {
    return gray16 == QVL_GRAY16_SCALE ? "scale" : "saturate";
}

static void print_item(const cli_options *options, const char *name, const qvl_item *item) {
    const qvl_stored *stored = &item->stored;
    printf("%s: ", name);
    if (stored->format) printf("%s ", stored->format);
    if (stored->oriented)
        printf("%lldx%lld turned upright (orientation %d) to ", (long long)stored->width,
               (long long)stored->height, stored->orientation);
    printf("%lldx%lld -> %lldx%lld, grid %lldx%lldx%lld, %lld tokens", (long long)item->source_width,
           (long long)item->source_height, (long long)item->width, (long long)item->height,
           (long long)item->grid.t, (long long)item->grid.h, (long long)item->grid.w, (long long)item->tokens);
    const char *cached = cli_cache_word(options, item);
    if (cached) printf(", cache %s", cached);
    putchar('\n');
    cli_print_clip(item);
}

void cli_print_policies(const cli_options *options) {
    const qvl_media_options *media = &options->preprocess.media;
    char alpha[8];
    printf("preset %s; policies: orientation %s, alpha %s, gray16 %s\n",
           qvl_preset_name(options->preprocess.preset), orientation_name(media->orientation),
           alpha_name(media, alpha), gray16_name(media->gray16));
}

void cli_print_plan(const cli_options *options, const qvl_plan *plan, const qvl_item *items) {
    char flop[32], bytes[32];
    for (size_t i = 0; i < plan->item_count; i++)
        print_item(options, options->inputs[i], items ? &items[i] : &plan->items[i].item);
    cli_print_policies(options);
    printf("%lld tokens, %lld patch rows, %s, %s at the peak\n", (long long)plan->tokens, (long long)plan->rows,
           cli_flop(plan->work.total, flop), cli_bytes(plan->memory.peak, bytes));
}

void cli_note_cost(const cli_options *options, const qvl_plan *plan) {
    enum { MANY_TOKENS = 4096 };
    char flop[32], bytes[32];
    if (options->quiet || plan->tokens <= MANY_TOKENS) return;
    fprintf(stderr, "note: %lld tokens, %s, %s at the peak; --image-max-tokens makes pictures smaller\n",
            (long long)plan->tokens, cli_flop(plan->work.total, flop), cli_bytes(plan->memory.peak, bytes));
}

static void json_work(cJSON *object, const qvl_work *work) {
    cJSON *flop = cJSON_AddObjectToObject(object, "flop");
    cJSON_AddNumberToObject(flop, "patch_embed", work->patch_embed);
    cJSON_AddNumberToObject(flop, "linear", work->linear);
    cJSON_AddNumberToObject(flop, "attention", work->attention);
    cJSON_AddNumberToObject(flop, "mergers", work->mergers);
    cJSON_AddNumberToObject(flop, "total", work->total);
}

const qvl_limits *cli_picture_limits(const qvl_plan *plan) {
    for (size_t i = 0; i < plan->item_count; i++)
        if (!plan->items[i].item.clip && plan->items[i].limits.max_pixels) return &plan->items[i].limits;
    return NULL;
}

/* Absent where the options give the size. */
static void json_limits(cJSON *object, const cli_options *options, const qvl_model_info *info,
                        const qvl_plan *plan) {
    const qvl_limits *limits = cli_picture_limits(plan);
    if (!limits) return;
    cJSON *entry = cJSON_AddObjectToObject(object, "limits");
    cJSON_AddNumberToObject(entry, "min_pixels", (double)limits->min_pixels);
    cJSON_AddStringToObject(entry, "min_source", cli_min_source(options, info));
    cJSON_AddNumberToObject(entry, "max_pixels", (double)limits->max_pixels);
    cJSON_AddStringToObject(entry, "max_source", cli_max_source(options, info));
}

static cJSON *json_item(const cli_options *options, const char *name, const qvl_plan_item *planned,
                        const qvl_item *item) {
    const qvl_stored *stored = &item->stored;
    cJSON *entry = cJSON_CreateObject();
    cJSON_AddStringToObject(entry, "input", name);
    cJSON_AddStringToObject(entry, "format", stored->format ? stored->format : "unknown");
    cli_json_ints(entry, "stored_size", (int64_t[]){stored->width, stored->height}, 2);
    cJSON_AddNumberToObject(entry, "orientation", stored->orientation);
    cJSON_AddBoolToObject(entry, "turned_upright", stored->oriented);
    cli_json_ints(entry, "source_size", (int64_t[]){item->source_width, item->source_height}, 2);
    cli_json_ints(entry, "size", (int64_t[]){item->width, item->height}, 2);
    cli_json_ints(entry, "grid_thw", (int64_t[]){item->grid.t, item->grid.h, item->grid.w}, 3);
    cJSON_AddNumberToObject(entry, "tokens", (double)item->tokens);
    cJSON_AddNumberToObject(entry, "patch_rows", (double)planned->rows);
    cli_json_clip(entry, item);
    cli_json_cached(entry, options, item);
    json_work(entry, &planned->work);
    return entry;
}

void cli_json_policies(cJSON *object, const cli_options *options) {
    const qvl_media_options *media = &options->preprocess.media;
    char alpha[8];
    cJSON *policies = cJSON_AddObjectToObject(object, "policies");
    cJSON_AddStringToObject(policies, "orientation", orientation_name(media->orientation));
    cJSON_AddStringToObject(policies, "alpha", alpha_name(media, alpha));
    cJSON_AddStringToObject(policies, "gray16", gray16_name(media->gray16));
}

static void json_memory(cJSON *object, const qvl_memory *memory) {
    cJSON *bytes = cJSON_AddObjectToObject(object, "memory");
    cJSON_AddNumberToObject(bytes, "weights", (double)memory->weights);
    cJSON_AddNumberToObject(bytes, "pictures", (double)memory->pictures);
    cJSON_AddNumberToObject(bytes, "patches", (double)memory->patches);
    cJSON_AddNumberToObject(bytes, "scratch", (double)memory->scratch);
    cJSON_AddNumberToObject(bytes, "features", (double)memory->features);
    cJSON_AddNumberToObject(bytes, "peak", (double)memory->peak);
}

void cli_json_plan(cJSON *object, const cli_options *options, const qvl_model_info *info, const qvl_plan *plan,
                   const qvl_item *items) {
    cJSON_AddStringToObject(object, "model", info->folder);
    cJSON_AddStringToObject(object, "model_type", info->model_type);
    cJSON_AddStringToObject(object, "preset", qvl_preset_name(options->preprocess.preset));
    cli_json_policies(object, options);
    cJSON_AddStringToObject(object, "dtype", cli_dtype_name(info->compute_dtype));
    cJSON_AddStringToObject(object, "kernels", info->kernels);
    cJSON_AddNumberToObject(object, "threads", info->threads);
    json_limits(object, options, info, plan);
    cJSON *array = cJSON_AddArrayToObject(object, "items");
    for (size_t i = 0; i < plan->item_count; i++) {
        const qvl_plan_item *planned = &plan->items[i];
        cJSON_AddItemToArray(array,
                             json_item(options, options->inputs[i], planned, items ? &items[i] : &planned->item));
    }
    cJSON_AddNumberToObject(object, "tokens", (double)plan->tokens);
    cJSON_AddNumberToObject(object, "patch_rows", (double)plan->rows);
    json_work(object, &plan->work);
    json_memory(object, &plan->memory);
}

/* ---- tensors */

int64_t *cli_grids(const qvl_item *items, size_t count) {
    int64_t *grids = calloc(count, 3 * sizeof *grids);
    for (size_t i = 0; grids && i < count; i++) {
        grids[3 * i] = items[i].grid.t;
        grids[3 * i + 1] = items[i].grid.h;
        grids[3 * i + 2] = items[i].grid.w;
    }
    return grids;
}

qvl_tensor cli_tensor(const char *name, qvl_dtype dtype, int64_t rows, int64_t cols, const void *data) {
    qvl_tensor tensor = {.name = name, .dtype = dtype, .ndim = cols ? 2 : 1, .shape = {rows, cols}, .data = data};
    return tensor;
}

qvl_status cli_save_with(const char *path, const qvl_tensor *tensors, size_t count, const qvl_model_info *info,
                         const qvl_preprocess_options *preprocess, const char *const *more, size_t pairs,
                         qvl_error *error) {
    enum { MOST_PAIRS = 16 };
    const qvl_media_options *media = &preprocess->media;
    char alpha[8];
    const char *metadata[2 * MOST_PAIRS] = {
        "alpha",       alpha_name(media, alpha),
        "format",      "pt",
        "gray16",      gray16_name(media->gray16),
        "kernels",     info->kernels,
        "model_type",  info->model_type,
        "orientation", orientation_name(media->orientation),
        "preset",      qvl_preset_name(preprocess->preset),
        "qvl_version", qvl_version(),
    };
    size_t used = 8;
    for (size_t i = 0; i < pairs && used < MOST_PAIRS; i++, used++) {
        metadata[2 * used] = more[2 * i];
        metadata[2 * used + 1] = more[2 * i + 1];
    }
    return qvl_tensors_save(path, tensors, count, metadata, used, error);
}

qvl_status cli_save(const char *path, const qvl_tensor *tensors, size_t count, const qvl_model_info *info,
                    const qvl_preprocess_options *preprocess, qvl_error *error) {
    return cli_save_with(path, tensors, count, info, preprocess, NULL, 0, error);
}

/* ---- inputs and outputs */

static qvl_status read_stream(FILE *file, const char *name, void **bytes, size_t *count, qvl_error *error) {
    const size_t most = (size_t)1 << 30;
    size_t capacity = 1 << 16, used = 0;
    char *data = NULL;
    for (;;) {
        char *grown = realloc(data, capacity);
        if (!grown) {
            free(data);
            return cli_no_memory(error);
        }
        data = grown;
        used += fread(data + used, 1, capacity - used, file);
        if (used < capacity) break;
        capacity *= 2;
        if (used < most) continue;
        free(data);
        return cli_fail(error, QVL_ERROR_LIMIT, "%s has more than %zu bytes, the limit", name, most);
    }
    if (ferror(file)) {
        free(data);
        return cli_fail(error, QVL_ERROR_IO, "cannot read %s: %s", name, strerror(errno));
    }
    data[used] = 0; /* there is room: the loop ended before the end of data */
    *bytes = data;
    *count = used;
    return QVL_OK;
}

qvl_status cli_read(const char *path, char **text, size_t *count, qvl_error *error) {
    bool standard = strcmp(path, "-") == 0;
    void *bytes = NULL;
    *text = NULL;
    FILE *file = standard ? stdin : fopen(path, "rb");
    if (!file) return cli_fail(error, QVL_ERROR_IO, "cannot open %s: %s", path, strerror(errno));
    qvl_status status = read_stream(file, standard ? "standard input" : path, &bytes, count, error);
    if (!standard) fclose(file);
    *text = bytes;
    return status;
}

qvl_status cli_inputs_open(const cli_options *options, size_t count, cli_inputs *inputs, qvl_error *error) {
    *inputs = (cli_inputs){.list = calloc(count, sizeof *inputs->list), .count = count};
    if (!inputs->list) return cli_no_memory(error);
    for (size_t i = 0; i < count; i++) {
        qvl_input *input = &inputs->list[i];
        *input = (qvl_input){.kind = QVL_INPUT_FILE, .name = options->inputs[i]};
        if (strcmp(options->inputs[i], "-") != 0) continue;
        qvl_status status =
            read_stream(stdin, "standard input", &inputs->standard_input, &input->byte_count, error);
        if (status) {
            cli_inputs_free(inputs);
            return status;
        }
        input->kind = QVL_INPUT_BYTES;
        input->name = "standard input";
        input->bytes = inputs->standard_input;
    }
    return QVL_OK;
}

void cli_inputs_free(cli_inputs *inputs) {
    free(inputs->standard_input);
    free(inputs->list);
    *inputs = (cli_inputs){0};
}

/* mkstemp makes a file for this user only. */
static void open_to_others(int fd) {
    mode_t mask = umask(0);
    umask(mask);
    fchmod(fd, 0666 & ~mask);
}

static qvl_status check_target(const char *path, qvl_error *error) {
    struct stat there;
    if (stat(path, &there) != 0 || S_ISREG(there.st_mode)) return QVL_OK;
    return cli_fail(error, QVL_ERROR_IO, "cannot write %s: it exists and is not a regular file", path);
}

static qvl_status write_whole(const char *path, const void *bytes, size_t count, bool private, qvl_error *error) {
    char temporary[4368];
    int n = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    if (n < 0 || (size_t)n >= sizeof temporary)
        return cli_fail(error, QVL_ERROR_IO, "cannot write %.200s: the name is too long", path);
    if (check_target(path, error)) return error->status;
    int fd = mkstemp(temporary);
    if (fd >= 0 && !private) open_to_others(fd);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    bool good = file && fwrite(bytes, 1, count, file) == count;
    if (file ? fclose(file) != 0 : fd >= 0 && close(fd) != 0) good = false;
    good = good && rename(temporary, path) == 0;
    if (good) return QVL_OK;
    int reason = errno;
    if (fd >= 0) unlink(temporary);
    return cli_fail(error, QVL_ERROR_IO, "cannot write %s: %s", path, strerror(reason));
}

qvl_status cli_write(const char *path, const void *bytes, size_t count, qvl_error *error) {
    return write_whole(path, bytes, count, false, error);
}

qvl_status cli_write_text(const char *path, const char *text, qvl_error *error) {
    char *line;
    int count = asprintf(&line, "%s\n", text);
    if (count < 0) return cli_no_memory(error);
    qvl_status status = write_whole(path, line, (size_t)count, true, error);
    free(line);
    return status;
}

qvl_status cli_check_writable(const char *path, qvl_error *error) {
    if (!path) return QVL_OK;
    if (check_target(path, error)) return error->status;
    char folder[4096];
    const char *slash = strrchr(path, '/');
    int n = !slash          ? snprintf(folder, sizeof folder, ".")
            : slash == path ? snprintf(folder, sizeof folder, "/")
                            : snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    if (n >= 0 && (size_t)n < sizeof folder && access(folder, W_OK) == 0) return QVL_OK;
    return cli_fail(error, QVL_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
}
