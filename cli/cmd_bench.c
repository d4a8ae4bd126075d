/* qvl bench: how long the tower takes beside the floor that its multiply-adds set, preprocessing of a 12-megapixel
 * picture to the same size, and single kernels beside the rate of multiply-adds on registers, which no kernel exceeds. */
#include "commands.h"
#include "open.h"
#include "output.h"
#include "progress.h"
#include "rates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bench_size {
    int64_t width, height;
    qvl_item item;
    double tower_seconds, preprocess_seconds, teraflops; /* medians; work of one encode */
    double floor_seconds, share;                         /* medians; of the floor, run by run */
} bench_size;

typedef struct bench {
    qvl_model *model;
    qvl_session *session;
    qvl_image photo;
    bench_size *sizes;
    size_t count;
    double *times, *floors, *shares; /* [runs] */
    qvl_kernel_time kernels[QVL_MAX_KERNELS];
    size_t kernel_count;
    double copy_rate;   /* bytes per second */
    bool speaks;        /* the folder has a language model, which was timed too */
    char silence[1020]; /* why it has none */
    qvl_lm_times lm;
    cli_progress progress;
} bench;

/* A picture of smooth and sharp parts; what it shows does not matter for time. */
static qvl_status make_photo(qvl_image *photo, qvl_error *error) {
    enum { WIDTH = 4000, HEIGHT = 3000 };
    uint8_t *pixels = malloc((size_t)3 * WIDTH * HEIGHT);
    if (!pixels) return cli_no_memory(error);
    for (size_t i = 0; i < (size_t)3 * WIDTH * HEIGHT; i++)
        pixels[i] = (uint8_t)((i / 77) ^ (i / (3 * WIDTH)) ^ (i % 3 * 40));
    *photo = (qvl_image){.width = WIDTH, .height = HEIGHT, .pixels = pixels};
    return QVL_OK;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *times, int64_t count) {
    qsort(times, (size_t)count, sizeof *times, compare_doubles);
    return count % 2 ? times[count / 2] : 0.5 * (times[count / 2 - 1] + times[count / 2]);
}

/* Machines change their pace within a run: the floor is timed between its blocks, and that time is taken out. */
typedef struct tower_watch {
    bench *b;
    const qvl_grid *grid;
    double floors, paused; /* seconds, both summed */
    int64_t count;
} tower_watch;

static bool time_floor(int64_t done, int64_t total, void *user) {
    tower_watch *watch = user;
    double start = cli_seconds(), seconds;
    bool go_on = cli_progress_step(done, total, &watch->b->progress);
    if (!qvl_bench_floor(watch->b->model, watch->grid, 1, &seconds, NULL)) {
        watch->floors += seconds;
        watch->count++;
    }
    watch->paused += cli_seconds() - start;
    return go_on;
}

/* One untimed run that warms caches and scratch, then the timed ones. */
static qvl_status time_tower(const cli_options *options, bench *b, const qvl_patches *patches, bench_size *size,
                             qvl_error *error) {
    qvl_encode_options encoding;
    qvl_encode_options_init(&encoding);
    encoding.progress = time_floor;
    for (int64_t run = -1; run < options->runs; run++) {
        tower_watch watch = {.b = b, .grid = &size->item.grid};
        qvl_features features;
        encoding.progress_user = &watch;
        double start = cli_seconds();
        qvl_status status = qvl_vision_encode(b->session, patches, &encoding, &features, error);
        if (status) return status;
        double seconds = cli_seconds() - start - watch.paused;
        qvl_features_free(&features);
        if (run < 0) continue;
        b->times[run] = seconds;
        b->floors[run] = watch.floors / (double)watch.count;
        b->shares[run] = b->floors[run] / seconds;
    }
    size->tower_seconds = median(b->times, options->runs);
    size->floor_seconds = median(b->floors, options->runs);
    size->share = median(b->shares, options->runs);
    return QVL_OK;
}

static qvl_status measure(const cli_options *options, bench *b, bench_size *size, qvl_error *error) {
    qvl_preprocess_options preprocess = options->preprocess;
    preprocess.width = size->width;
    preprocess.height = size->height;
    qvl_patches patches = {0};
    cli_progress_say(&b->progress, "preprocessing");
    for (int64_t run = 0; run < options->runs; run++) {
        qvl_patches_free(&patches);
        double start = cli_seconds();
        qvl_status status = qvl_preprocess(b->model, &b->photo, 1, &preprocess, &patches, error);
        if (status) return status;
        b->times[run] = cli_seconds() - start;
    }
    size->preprocess_seconds = median(b->times, options->runs);
    size->item = patches.items[0];
    qvl_work work;
    qvl_status status = qvl_vision_work(b->model, &size->item.grid, 1, &work, error);
    size->teraflops = 1e-12 * work.total;
    if (!status) status = time_tower(options, b, &patches, size, error);
    qvl_patches_free(&patches);
    return status;
}

/* Single kernels at the patches of the first size. */
static qvl_status time_kernels(const cli_options *options, bench *b, qvl_error *error) {
    int64_t merge = qvl_model_get_info(b->model)->spatial_merge_size, rows = b->sizes[0].item.grid.h;
    rows *= b->sizes[0].item.grid.w;
    cli_progress_say(&b->progress, "timing kernels");
    return qvl_bench_kernels(b->model, rows - rows % (merge * merge), (int32_t)options->runs, b->kernels,
                             &b->kernel_count, &b->copy_rate, error);
}

/* The language model, where the folder has one that qvl computes. */
static qvl_status time_language(const cli_options *options, bench *b, qvl_error *error) {
    enum { ROWS = 1024 };
    qvl_lm *lm = NULL;
    cli_progress_say(&b->progress, "timing the language model");
    if (qvl_lm_open(b->model, NULL, &lm, error)) {
        snprintf(b->silence, sizeof b->silence, "%s", error->message);
        return QVL_OK;
    }
    b->speaks = true;
    int64_t most = qvl_lm_get_info(lm)->max_positions - options->runs - 1;
    qvl_status status = qvl_bench_lm(lm, most < ROWS ? most : ROWS, (int32_t)options->runs, &b->lm, error);
    qvl_lm_close(&lm);
    return status;
}

static void add_language(cJSON *json, const bench *b) {
    const qvl_lm_times *t = &b->lm;
    if (!b->speaks) return;
    cJSON *entry = cJSON_AddObjectToObject(json, "language_model");
    cJSON_AddNumberToObject(entry, "prefill_tokens", (double)t->rows);
    cJSON_AddNumberToObject(entry, "prefill_seconds", t->prefill_seconds);
    cJSON_AddNumberToObject(entry, "step_seconds", t->step_seconds);
    cJSON_AddNumberToObject(entry, "step_bytes", (double)t->step_bytes);
    cJSON_AddNumberToObject(entry, "read_bytes_per_second", t->read_rate);
    cJSON_AddNumberToObject(entry, "product_tflop_per_second", 1e-12 * t->product_flops / t->product_seconds);
    cJSON_AddNumberToObject(entry, "packed_tflop_per_second", 1e-12 * t->product_flops / t->packed_seconds);
}

static void print_language(const bench *b) {
    const qvl_lm_times *t = &b->lm;
    if (!b->speaks) {
        printf("\nno language model was timed: %s\n", b->silence);
        return;
    }
    double rate = (double)t->step_bytes / t->step_seconds;
    printf("\nlanguage model: %lld tokens in %.3f s (%.1f tokens/s), then one in %.1f ms (%.2f tokens/s)\n",
           (long long)t->rows, t->prefill_seconds, (double)t->rows / t->prefill_seconds, 1e3 * t->step_seconds,
           1.0 / t->step_seconds);
    printf("%-38s%10.1f GB/s, %.1f%% of %.1f GB/s, which reading the weights alone takes\n", "  a step reads",
           1e-9 * rate, 100.0 * rate / t->read_rate, 1e-9 * t->read_rate);
    printf("%-38s%10.4f TFLOP/s, %.1f%% of %.4f with packed weights\n", "  products of a layer",
           1e-12 * t->product_flops / t->product_seconds, 100.0 * t->packed_seconds / t->product_seconds,
           1e-12 * t->product_flops / t->packed_seconds);
}

static void add_kernels(cJSON *json, const bench *b) {
    cJSON *kernels = cJSON_AddArrayToObject(json, "kernel_times");
    for (size_t i = 0; i < b->kernel_count; i++) {
        const qvl_kernel_time *k = &b->kernels[i];
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddStringToObject(entry, "name", k->name);
        cJSON_AddNumberToObject(entry, "seconds", k->seconds);
        cJSON_AddNumberToObject(entry, "tflop_per_second", 1e-12 * k->flops / k->seconds);
        cJSON_AddNumberToObject(entry, "peak_tflop_per_second", 1e-12 * k->peak);
        cJSON_AddNumberToObject(entry, "share", k->share);
        cJSON_AddNumberToObject(entry, "steady_runs", k->steady_runs);
        cJSON_AddItemToArray(kernels, entry);
    }
    cJSON_AddNumberToObject(json, "copy_bytes_per_second", b->copy_rate);
}

static void print_kernels(const bench *b) {
    printf("\n%-38s%10s%10s%12s%8s\n", "kernel", "ms", "TFLOP/s", "registers", "share");
    for (size_t i = 0; i < b->kernel_count; i++) {
        const qvl_kernel_time *k = &b->kernels[i];
        double rate = k->flops / k->seconds;
        printf("%-38s%10.2f%10.4f%12.4f%7.1f%%\n", k->name, 1e3 * k->seconds, 1e-12 * rate, 1e-12 * k->peak,
               100.0 * k->share);
    }
    printf("%-38s%10.1f GB/s read and written\n", "copying memory", 1e-9 * b->copy_rate);
}

static int report_json(const cli_options *options, const bench *b) {
    const qvl_model_info *info = qvl_model_get_info(b->model);
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "model", info->folder);
    cJSON_AddStringToObject(json, "dtype", cli_dtype_name(info->compute_dtype));
    cJSON_AddStringToObject(json, "kernels", info->kernels);
    cJSON_AddNumberToObject(json, "threads", info->threads);
    cJSON_AddStringToObject(json, "preset", qvl_preset_name(options->preprocess.preset));
    cJSON_AddNumberToObject(json, "runs", (double)options->runs);
    cJSON *sizes = cJSON_AddArrayToObject(json, "sizes");
    for (size_t i = 0; i < b->count; i++) {
        const bench_size *size = &b->sizes[i];
        cJSON *entry = cJSON_CreateObject();
        cli_json_ints(entry, "size", (int64_t[]){size->width, size->height}, 2);
        cJSON_AddNumberToObject(entry, "patches", (double)(size->item.grid.h * size->item.grid.w));
        cJSON_AddNumberToObject(entry, "tokens", (double)size->item.tokens);
        cJSON_AddNumberToObject(entry, "preprocess_seconds", size->preprocess_seconds);
        cJSON_AddNumberToObject(entry, "tower_seconds", size->tower_seconds);
        cJSON_AddNumberToObject(entry, "floor_seconds", size->floor_seconds);
        cJSON_AddNumberToObject(entry, "floor_share", size->share);
        cJSON_AddNumberToObject(entry, "tflop", size->teraflops);
        cJSON_AddNumberToObject(entry, "tflop_per_second", size->teraflops / size->tower_seconds);
        cJSON_AddItemToArray(sizes, entry);
    }
    add_kernels(json, b);
    add_language(json, b);
    return cli_print_json(json);
}

static int report(const cli_options *options, const bench *b) {
    if (options->json) return report_json(options, b);
    const qvl_model_info *info = qvl_model_get_info(b->model);
    printf("%s: %d blocks of %d, %s, %s kernels, %d thread%s; median of %lld\n", info->folder, info->depth,
           info->hidden_size, cli_dtype_name(info->compute_dtype), info->kernels, info->threads,
           info->threads == 1 ? "" : "s", (long long)options->runs);
    printf("%-12s%9s%9s%15s%10s%10s%10s%10s%8s\n", "size", "patches", "tokens", "12 MP to it/s", "tower/s",
           "TFLOP", "TFLOP/s", "floor/s", "share");
    for (size_t i = 0; i < b->count; i++) {
        const bench_size *size = &b->sizes[i];
        char name[32];
        snprintf(name, sizeof name, "%lldx%lld", (long long)size->width, (long long)size->height);
        printf("%-12s%9lld%9lld%15.4f%10.4f%10.4f%10.4f%10.4f%7.1f%%\n", name,
               (long long)(size->item.grid.h * size->item.grid.w), (long long)size->item.tokens,
               size->preprocess_seconds, size->tower_seconds, size->teraflops,
               size->teraflops / size->tower_seconds, size->floor_seconds, 100.0 * size->share);
    }
    print_kernels(b);
    print_language(b);
    return CLI_DONE;
}

static bool parse_sizes(const cli_options *options, bench *b) {
    b->count = options->input_count ? options->input_count : 1;
    b->sizes = calloc(b->count, sizeof *b->sizes);
    b->times = calloc((size_t)options->runs, sizeof *b->times);
    b->floors = calloc((size_t)options->runs, sizeof *b->floors);
    b->shares = calloc((size_t)options->runs, sizeof *b->shares);
    if (!b->sizes || !b->times || !b->floors || !b->shares) return false;
    b->sizes[0] = (bench_size){.width = 512, .height = 512};
    for (size_t i = 0; i < options->input_count; i++) {
        if (cli_parse_size(options->inputs[i], &b->sizes[i].width, &b->sizes[i].height)) continue;
        fprintf(stderr, "qvl bench: '%s' is no size; allowed is WIDTHxHEIGHT, such as 512x384\n",
                options->inputs[i]);
        return false;
    }
    return true;
}

static qvl_status run_bench(const cli_options *options, bench *b, qvl_error *error) {
    cli_progress_say(&b->progress, "opening the model");
    qvl_status status = cli_open_model(options, QVL_OPEN_WEIGHTS, &b->model, error);
    if (!status) status = qvl_session_open(b->model, &b->session, error);
    if (!status) status = make_photo(&b->photo, error);
    for (size_t i = 0; i < b->count && !status; i++) status = measure(options, b, &b->sizes[i], error);
    if (!status) status = time_kernels(options, b, error);
    return status ? status : time_language(options, b, error);
}

/* For the estimates of `qvl plan`. What cannot be written is no failure of the measurement. */
static void remember(const cli_options *options, const bench *b) {
    cli_rate *rates = calloc(b->count, sizeof *rates);
    for (size_t i = 0; rates && i < b->count; i++) {
        const bench_size *size = &b->sizes[i];
        rates[i] = (cli_rate){size->width, size->height, size->item.grid.h * size->item.grid.w,
                              size->teraflops / size->tower_seconds};
    }
    bool saved = rates && cli_rates_save(qvl_model_get_info(b->model), rates, b->count);
    if (!saved && !options->quiet)
        fputs("note: the rates were not remembered for qvl plan: no cache folder that can be written to\n",
              stderr);
    free(rates);
}

int cmd_bench(const cli_options *options) {
    qvl_error error = {0};
    bench b = {0};
    int code = CLI_USAGE;
    cli_progress_init(&b.progress, options->quiet);
    if (parse_sizes(options, &b)) {
        qvl_status status = run_bench(options, &b, &error);
        cli_progress_clear(&b.progress);
        if (!status) remember(options, &b);
        code = status ? cli_refuse(&error) : report(options, &b);
    }
    free(b.photo.pixels);
    free(b.sizes);
    free(b.times);
    free(b.floors);
    free(b.shares);
    qvl_session_close(&b.session);
    qvl_model_close(&b.model);
    return code;
}
