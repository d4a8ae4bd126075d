/* qvl check: runs the bundled reference results on this machine and says which reference each group holds to.
 *
 * The folder `check` beside the demo model has check.json, made by tools/oracle/make_check.py:
 *   {"groups": [{"kind": KIND, "reference": TEXT, "cases": [...], and what the kind needs}, ...]}
 * KIND, and what a case says (sizes are [width, height]):
 *   picture       file, size, sha256 of the RGB bytes
 *   smart_resize  size, limits [min, max], result [width, height] or null for a refusal; the group has factor
 *   resize        size of a formula picture, to, sha256 of the RGB bytes; the group has preset
 *   pixel_values  size of a formula picture, grid [h, w], sha256 of the f32 rows; the group has preset and limits
 *   tower         stage: a tensor of the group's file, bound of its NMSE; the group has file and dtype. The file
 *                 also has pixel_values and image_grid_thw, which the demo model encodes. */
#include "commands.h"
#include "open.h"
#include "output.h"
#include "taps.h"
#include "values.h"

#include <math.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct check {
    const cli_options *options;
    char folder[4096]; /* of check.json */
    qvl_model *config; /* the demo model without weights: sizes and normalisation */
    cJSON *root;
} check;

/* One group as it runs: the tower's stages are made once, for all its cases. */
typedef struct group {
    const cJSON *json;
    const char *kind, *reference;
    qvl_preset preset;
    qvl_tensor_file *file;
    cli_taps taps;
    int cases, failed;
    double worst_nmse; /* of the tower */
} group;

/* ---- what a case says. A missing or odd value reads as 0 or "", which no case passes with. */

static int64_t get_int(const cJSON *array, int index) {
    const cJSON *item = cJSON_GetArrayItem(array, index);
    return cJSON_IsNumber(item) ? (int64_t)item->valuedouble : 0;
}

static const cJSON *get(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static const char *get_text(const cJSON *object, const char *key) {
    const char *text = cJSON_GetStringValue(get(object, key));
    return text ? text : "";
}

static bool sha256_is(const void *bytes, size_t count, const char *expected) {
    unsigned char digest[SHA256_DIGEST_LENGTH];
    char text[2 * SHA256_DIGEST_LENGTH + 1];
    SHA256(bytes, count, digest);
    for (size_t i = 0; i < sizeof digest; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return strcmp(text, expected) == 0;
}

/* The picture every implementation can make: see tools/oracle. */
static qvl_status formula_picture(int64_t width, int64_t height, qvl_image *image, qvl_error *error) {
    uint8_t *pixels = malloc((size_t)width * (size_t)height * 3);
    if (!pixels) return cli_no_memory(error);
    uint8_t *p = pixels;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            for (int64_t c = 0; c < 3; c++)
                *p++ = (uint8_t)(7 * x + 13 * y + 29 * c + x * y % 251 + 11 * ((x / 5) ^ (y / 3)) % 256);
    *image = (qvl_image){.width = width, .height = height, .pixels = pixels};
    return QVL_OK;
}

static qvl_status case_picture(const cJSON *json, qvl_image *image, qvl_error *error) {
    const cJSON *size = get(json, "size");
    return formula_picture(get_int(size, 0), get_int(size, 1), image, error);
}

/* ---- one function for each kind: whether this machine gives the case's result */

static bool check_picture(const check *c, const cJSON *json, qvl_error *error) {
    char path[4400];
    snprintf(path, sizeof path, "%s/%s", c->folder, get_text(json, "file"));
    qvl_input input = {.kind = QVL_INPUT_FILE, .name = path};
    qvl_image image;
    if (qvl_image_read(&input, NULL, &image, error)) return false;
    const cJSON *size = get(json, "size");
    bool good = image.width == get_int(size, 0) && image.height == get_int(size, 1) &&
                sha256_is(image.pixels, (size_t)(3 * image.width * image.height), get_text(json, "sha256"));
    qvl_image_free(&image);
    return good;
}

static bool check_smart_resize(const group *g, const cJSON *json, qvl_error *error) {
    const cJSON *size = get(json, "size"), *limits = get(json, "limits"), *result = get(json, "result");
    const cJSON *factor = get(g->json, "factor");
    qvl_limits range = {get_int(limits, 0), get_int(limits, 1)};
    int64_t height, width;
    qvl_status status =
        qvl_smart_resize(get_int(size, 1), get_int(size, 0), cJSON_IsNumber(factor) ? factor->valueint : 0, range,
                         &height, &width, error);
    if (cJSON_IsNull(result)) return status != QVL_OK;
    return !status && width == get_int(result, 0) && height == get_int(result, 1);
}

static bool check_resize(const check *c, const group *g, const cJSON *json, qvl_error *error) {
    qvl_image picture, resized;
    if (case_picture(json, &picture, error)) return false;
    const cJSON *to = get(json, "to");
    qvl_status status =
        qvl_resize(&picture, get_int(to, 0), get_int(to, 1), g->preset, c->options->open.threads, &resized, error);
    free(picture.pixels);
    if (status) return false;
    bool good = sha256_is(resized.pixels, (size_t)(3 * resized.width * resized.height), get_text(json, "sha256"));
    qvl_image_free(&resized);
    return good;
}

static bool check_pixel_values(const check *c, const group *g, const cJSON *json, qvl_error *error) {
    qvl_preprocess_options options;
    qvl_preprocess_options_init(&options);
    options.preset = g->preset;
    options.min_pixels = get_int(get(g->json, "limits"), 0);
    options.max_pixels = get_int(get(g->json, "limits"), 1);
    qvl_image picture;
    qvl_patches patches;
    if (case_picture(json, &picture, error)) return false;
    qvl_status status = qvl_preprocess(c->config, &picture, 1, &options, &patches, error);
    free(picture.pixels);
    if (status) return false;
    const cJSON *grid = get(json, "grid");
    bool good =
        patches.items[0].grid.h == get_int(grid, 0) && patches.items[0].grid.w == get_int(grid, 1) &&
        sha256_is(patches.values, (size_t)(patches.rows * patches.cols) * sizeof(float), get_text(json, "sha256"));
    qvl_patches_free(&patches);
    return good;
}

/* sum (x - expected)^2 / sum expected^2; infinite where shapes differ. */
static double nmse(const qvl_tensor *x, const qvl_tensor *expected) {
    int64_t count = 1;
    bool same = x->ndim == expected->ndim && (x->dtype == QVL_F32 || x->dtype == QVL_BF16);
    for (int32_t i = 0; same && i < x->ndim; i++) {
        same = x->shape[i] == expected->shape[i];
        count *= x->shape[i];
    }
    if (!same || expected->dtype != QVL_F32) return (double)INFINITY;
    double error = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        double e = cli_value(expected->dtype, expected->data, (size_t)i);
        double d = cli_value(x->dtype, x->data, (size_t)i) - e;
        error += d * d;
        norm += e * e;
    }
    return error / norm;
}

static bool check_stage(group *g, const cJSON *json, qvl_error *error) {
    const char *name = get_text(json, "stage");
    qvl_tensor expected;
    if (!qvl_tensor_file_find(g->file, name, &expected)) return false;
    for (size_t i = 0; i < g->taps.count; i++) {
        if (strcmp(g->taps.tensors[i].name, name) != 0) continue;
        double found = nmse(&g->taps.tensors[i], &expected), bound = cJSON_GetNumberValue(get(json, "bound"));
        if (!(found <= g->worst_nmse)) g->worst_nmse = found;
        cli_fail(error, QVL_ERROR_NUMERIC, "NMSE %.3g; allowed is %.3g", found, bound);
        return found <= bound;
    }
    cli_fail(error, QVL_ERROR_FORMAT, "the tower has no such stage");
    return false;
}

/* ---- groups */

/* Opens the group's file. *patches, with *item as its only one, views the rows in it. */
static qvl_status open_stages(const check *c, group *g, qvl_patches *patches, qvl_item *item, qvl_error *error) {
    char path[4400];
    snprintf(path, sizeof path, "%s/%s", c->folder, get_text(g->json, "file"));
    qvl_status status = qvl_tensor_file_open(path, &g->file, error);
    if (status) return status;
    qvl_tensor rows, grid;
    if (!qvl_tensor_file_find(g->file, "pixel_values", &rows) || rows.dtype != QVL_F32 || rows.ndim != 2 ||
        !qvl_tensor_file_find(g->file, "image_grid_thw", &grid) || grid.dtype != QVL_I64 || grid.ndim != 2 ||
        grid.shape[0] != 1 || grid.shape[1] != 3)
        return cli_fail(error, QVL_ERROR_FORMAT, "%s: no pixel_values or no image_grid_thw of one item", path);
    int64_t thw[3];
    memcpy(thw, grid.data, sizeof thw);
    *item = (qvl_item){.grid = {thw[0], thw[1], thw[2]}};
    /* The tower only reads the rows; the struct is the one that preprocessing fills. */
    *patches = (qvl_patches){rows.shape[0], rows.shape[1], (float *)(uintptr_t)rows.data, 1, item};
    return QVL_OK;
}

/* Encodes the rows of the group's file with the demo model, keeping every stage. */
static qvl_status run_tower(const check *c, group *g, qvl_error *error) {
    cli_options options = *c->options;
    options.open.dtype = strcmp(get_text(g->json, "dtype"), "f32") == 0 ? QVL_F32 : QVL_BF16;
    options.quiet = true;
    qvl_encode_options encoding;
    qvl_encode_options_init(&encoding);
    encoding.tap = cli_taps_add;
    encoding.tap_user = &g->taps;
    qvl_model *model = NULL;
    qvl_session *session = NULL;
    qvl_patches patches;
    qvl_item item;
    qvl_features features = {0};
    qvl_status status = open_stages(c, g, &patches, &item, error);
    if (!status) status = cli_open_model(&options, QVL_OPEN_WEIGHTS, &model, error);
    if (!status) status = qvl_session_open(model, &session, error);
    if (!status) status = qvl_vision_encode(session, &patches, &encoding, &features, error);
    if (!status && g->taps.failed) status = cli_no_memory(error);
    qvl_features_free(&features);
    qvl_session_close(&session);
    qvl_model_close(&model);
    return status;
}

static bool run_case(const check *c, group *g, const cJSON *json, qvl_error *error) {
    if (strcmp(g->kind, "picture") == 0) return check_picture(c, json, error);
    if (strcmp(g->kind, "smart_resize") == 0) return check_smart_resize(g, json, error);
    if (strcmp(g->kind, "resize") == 0) return check_resize(c, g, json, error);
    if (strcmp(g->kind, "pixel_values") == 0) return check_pixel_values(c, g, json, error);
    if (strcmp(g->kind, "tower") == 0) return check_stage(g, json, error);
    cli_fail(error, QVL_ERROR_FORMAT, "unknown kind");
    return false;
}

/* Failing cases are named on stderr, so that stdout stays one line a group, or JSON. */
static void run_group(const check *c, group *g) {
    qvl_error error = {0};
    bool ready = strcmp(g->kind, "tower") != 0 || run_tower(c, g, &error) == QVL_OK;
    if (!ready) fprintf(stderr, "failed: %s: %s\n", g->kind, error.message);
    const cJSON *json;
    cJSON_ArrayForEach(json, get(g->json, "cases")) {
        error = (qvl_error){.message = "other bytes or sizes than the reference"};
        g->cases++;
        if (ready && run_case(c, g, json, &error)) continue;
        g->failed++;
        char *text = cJSON_PrintUnformatted(json);
        if (ready) fprintf(stderr, "failed: %s %s: %s\n", g->kind, text ? text : "", error.message);
        cJSON_free(text);
    }
    /* A group without cases shows nothing, and so does not pass. */
    if (g->cases == 0) g->failed = 1;
    cli_taps_free(&g->taps);
    qvl_tensor_file_close(&g->file);
}

static group read_group(const cJSON *json) {
    group g = {.json = json, .kind = get_text(json, "kind"), .reference = get_text(json, "reference")};
    const char *preset = get_text(json, "preset");
    for (int value = 0; qvl_preset_name((qvl_preset)value); value++)
        if (strcmp(preset, qvl_preset_name((qvl_preset)value)) == 0) g.preset = (qvl_preset)value;
    return g;
}

/* "tower f32", "resize transformers-pil", ... */
static void group_title(const group *g, char *title, size_t size) {
    const char *dtype = get_text(g->json, "dtype"), *preset = get_text(g->json, "preset");
    snprintf(title, size, "%s %s%s", g->kind, dtype, preset);
}

static void print_group(const group *g) {
    char title[96], worst[48] = "";
    group_title(g, title, sizeof title);
    if (strcmp(g->kind, "tower") == 0) snprintf(worst, sizeof worst, " (worst NMSE %.2g)", g->worst_nmse);
    printf("%-7s%-30s%3d of %3d hold to %s%s\n", g->failed ? "FAILED" : "ok", title,
           g->cases ? g->cases - g->failed : 0, g->cases, g->reference, worst);
}

static void json_group(cJSON *groups, const group *g) {
    cJSON *entry = cJSON_CreateObject();
    char title[96];
    group_title(g, title, sizeof title);
    cJSON_AddStringToObject(entry, "name", title);
    cJSON_AddStringToObject(entry, "reference", g->reference);
    cJSON_AddNumberToObject(entry, "cases", g->cases);
    cJSON_AddNumberToObject(entry, "failed", g->failed);
    if (strcmp(g->kind, "tower") == 0) cJSON_AddNumberToObject(entry, "worst_nmse", g->worst_nmse);
    cJSON_AddItemToArray(groups, entry);
}

/* ---- the command */

static qvl_status read_check_file(check *c, qvl_error *error) {
    char path[4400];
    snprintf(path, sizeof path, "%s/check.json", c->folder);
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    size_t count = file && text ? fread(text, 1, (1 << 20) - 1, file) : 0;
    if (file) fclose(file);
    c->root = count ? cJSON_Parse(text) : NULL;
    free(text);
    if (cJSON_GetArraySize(get(c->root, "groups")) > 0) return QVL_OK;
    return cli_fail(error, QVL_ERROR_FORMAT, "%s: missing, or not a list of checks", path);
}

static qvl_status open_check(check *c, qvl_error *error) {
    char demo[sizeof c->folder - sizeof "/check"];
    if (cli_find_demo(demo, sizeof demo)) snprintf(c->folder, sizeof c->folder, "%s/check", demo);
    cli_options quiet = *c->options;
    quiet.quiet = true;
    qvl_status status = cli_open_model(&quiet, QVL_OPEN_CONFIG, &c->config, error);
    return status ? status : read_check_file(c, error);
}

static int run_groups(const check *c) {
    const qvl_model_info *info = qvl_model_get_info(c->config);
    int failed = 0;
    cJSON *groups = cJSON_CreateArray();
    const cJSON *json;
    if (!c->options->json) printf("%s kernels, %d threads, %s\n", info->kernels, info->threads, c->folder);
    cJSON_ArrayForEach(json, get(c->root, "groups")) {
        group g = read_group(json);
        run_group(c, &g);
        failed += g.failed;
        if (c->options->json)
            json_group(groups, &g);
        else
            print_group(&g);
    }
    if (!c->options->json) {
        cJSON_Delete(groups);
        return failed ? CLI_REFUSED : CLI_DONE;
    }
    cJSON *report = cJSON_CreateObject();
    cJSON_AddStringToObject(report, "kernels", info->kernels);
    cJSON_AddNumberToObject(report, "threads", info->threads);
    cJSON_AddItemToObject(report, "groups", groups);
    cJSON_AddBoolToObject(report, "ok", failed == 0);
    int code = cli_print_json(report);
    return failed ? CLI_REFUSED : code;
}

int cmd_check(const cli_options *options) {
    qvl_error error = {0};
    check c = {.options = options};
    qvl_status status = open_check(&c, &error);
    int code = status ? cli_refuse(&error) : run_groups(&c);
    cJSON_Delete(c.root);
    qvl_model_close(&c.config);
    return code;
}
