/* The dry run of qvl_encode: the same sizes by the same functions, what they cost, and nothing done. */
#include "base/file.h"
#include "base/memory.h"
#include "base/options.h"
#include "preprocess/clip.h"
#include "preprocess/geometry.h"
#include "preprocess/resample.h"
#include "vision/position.h"
#include "vision/tower.h"

#include <string.h>

/* ---- work */

static qvl_work add_work(qvl_work a, qvl_work b) {
    return (qvl_work){a.patch_embed + b.patch_embed, a.linear + b.linear, a.attention + b.attention,
                      a.mergers + b.mergers, a.total + b.total};
}

/* Of a grid that is possible. As double: attention grows with the square of the patches. */
static qvl_work grid_work(const qvl_vision_config *c, qvl_grid grid) {
    double d = c->hidden_size, group = (double)grid.h * (double)grid.w, rows = (double)grid.t * group;
    double merge = (double)c->spatial_merge_size * c->spatial_merge_size, merged = merge * d;
    double patch = (double)c->in_channels * c->temporal_patch_size * c->patch_size * c->patch_size;
    qvl_work work = {
        .patch_embed = 2 * rows * patch * d,
        .linear = c->depth * 2 * rows * (4 * d * d + 2 * d * c->intermediate_size),
        .attention = c->depth * 4 * rows * group * d,
        .mergers = (1 + c->deepstack_count) * 2 * (rows / merge) * merged * (merged + c->out_hidden_size),
    };
    work.total = work.patch_embed + work.linear + work.attention + work.mergers;
    return work;
}

qvl_status qvl_vision_work(const qvl_model *model, const qvl_grid *grids, size_t grid_count, qvl_work *work,
                           qvl_error *error) {
    *work = (qvl_work){0};
    qvl_positions positions = {0};
    qvl_status status = qvl_positions_count(&model->config.vision, grids, grid_count, &positions, error);
    for (size_t i = 0; i < grid_count && !status; i++)
        *work = add_work(*work, grid_work(&model->config.vision, grids[i]));
    return status;
}

/* ---- memory */

/* Bytes stay far below SIZE_MAX where sides and rows are checked; the sums are safe all the same. */
static size_t sum(size_t a, size_t b) {
    size_t result;
    return qvl_add_size(a, b, &result) ? result : SIZE_MAX;
}

static size_t product(size_t a, size_t b) {
    size_t result;
    return qvl_mul_size(a, b, &result) ? result : SIZE_MAX;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static int64_t to_int(size_t bytes) {
    return bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
}

/* The file is held whole while it is decoded. 0 for what is not a file of a known size. */
static size_t file_bytes(const qvl_input *input) {
    qvl_file_id id;
    if (input->kind != QVL_INPUT_FILE || qvl_file_identify(input->name, &id, NULL) || id.size < 0) return 0;
    return (size_t)id.size;
}

/* What decoding takes beside RGB pixels. A video's file is read as it goes. */
static size_t decoder_bytes(const qvl_input *input, const qvl_item *item) {
    return sum(item->clip ? 0 : file_bytes(input), (size_t)item->stored.decode_bytes);
}

/* Most of one picture at a time, patch rows aside: while it is decoded, or while it is resized. */
static size_t picture_bytes(const qvl_input *input, const qvl_item *item, qvl_preset preset) {
    size_t pixels = product(product((size_t)item->source_width, (size_t)item->source_height), 3);
    size_t decoding = decoder_bytes(input, item), resizing = 0;
    if (item->width != item->source_width || item->height != item->source_height)
        resizing = qvl_resample_bytes(item->source_width, item->source_height, item->width, item->height,
                                      preset == QVL_PRESET_TRANSFORMERS ? QVL_FILTER_TORCH : QVL_FILTER_PILLOW);
    return sum(pixels, larger(decoding, resizing));
}

/* The most of anything there is at a time. */
typedef struct most {
    size_t picture;  /* being read */
    size_t resized;  /* of one group */
    size_t rows;     /* patch rows of one group */
    size_t scratch;  /* of the tower for one group */
    size_t features; /* of one group */
    int64_t groups;  /* of all inputs */
} most;

static size_t features_bytes(const qvl_model *model, int64_t tokens, size_t arrays) {
    size_t element = qvl_dtype_bits(qvl_compute_dtype(model->compute)) / 8;
    return product(product((size_t)tokens, (size_t)model->config.vision.out_hidden_size), element * arrays);
}

static qvl_status add_to_most(const qvl_model *model, const qvl_input *input, const qvl_item *item,
                              qvl_preset preset, most *m, qvl_error *error) {
    const qvl_vision_config *c = &model->config.vision;
    const qvl_grid group = {1, item->grid.h, item->grid.w};
    size_t scratch;
    qvl_status status = qvl_vision_scratch(model, &group, 1, &scratch, error);
    if (status) return status;
    size_t frames = item->clip ? (size_t)c->temporal_patch_size : 1;
    size_t row = (size_t)qvl_patch_columns(c) * sizeof(float);
    size_t arrays = 1 + (size_t)c->deepstack_count;
    m->picture = larger(m->picture, picture_bytes(input, item, preset));
    m->resized = larger(m->resized, product(product((size_t)item->width, (size_t)item->height), 3 * frames));
    m->rows = larger(m->rows, product((size_t)(group.h * group.w), row));
    m->scratch = larger(m->scratch, scratch);
    m->features = larger(m->features, features_bytes(model, item->tokens / item->grid.t, arrays));
    m->groups += item->grid.t;
    return QVL_OK;
}

/* One group by itself is read, cut into rows and encoded, one after the other. Of several, one is read and up to two
 * lie ready while the tower runs; and its features are put behind those that are there, which may move to a larger
 * place for that, array by array. */
static void plan_memory(const qvl_model *model, const most *m, qvl_plan *plan) {
    size_t arrays = 1 + (size_t)model->config.vision.deepstack_count;
    size_t weights = qvl_tower_bytes(model->compute, &model->config.vision);
    size_t features = features_bytes(model, plan->tokens, arrays);
    size_t tower = sum(m->rows, sum(m->scratch, features));
    size_t peak = larger(m->picture, larger(sum(m->resized, m->rows), tower));
    if (m->groups > 1) {
        size_t moved = plan->item_count > 1 ? features_bytes(model, plan->tokens, 1) : 0;
        peak = sum(sum(tower, m->features), sum(moved, sum(m->picture, product(2, m->resized))));
    }
    plan->memory = (qvl_memory){
        .weights = to_int(weights),
        .pictures = to_int(m->picture),
        .patches = to_int(m->rows),
        .scratch = to_int(m->scratch),
        .features = to_int(features),
        .peak = to_int(sum(weights, peak)),
    };
}

/* ---- the dry run */

static qvl_status plan_item(const qvl_model *model, const qvl_input *input, const qvl_preprocess_options *options,
                            qvl_plan_item *planned, qvl_error *error) {
    qvl_reader *reader;
    qvl_status status = qvl_reader_open(model, NULL, input, QVL_READ_ANY, options, NULL, &reader, error);
    if (status) return status;
    status = qvl_item_copy(qvl_reader_item(reader), &planned->item, error);
    qvl_reader_close(&reader);
    if (status) return status;
    const qvl_item *item = &planned->item;
    qvl_preprocess_options own = qvl_picture_options(options, input);
    if (item->clip)
        planned->limits = item->clip->limits;
    else if (!own.width)
        status = qvl_effective_limits(&model->config, &own, &planned->limits, error);
    if (status) return status;
    if (__builtin_mul_overflow(item->grid.t * item->grid.h, item->grid.w, &planned->rows))
        return qvl_fail(error, QVL_ERROR_LIMIT, "a clip makes more than %d patch rows", INT32_MAX);
    planned->work = grid_work(&model->config.vision, item->grid);
    return QVL_OK;
}

static qvl_status plan_inputs(const qvl_model *model, const qvl_input *inputs, size_t count,
                              const qvl_preprocess_options *options, qvl_plan *plan, qvl_error *error) {
    most m = {0};
    for (size_t i = 0; i < count; i++) {
        qvl_plan_item *planned = &plan->items[i];
        qvl_status status = plan_item(model, &inputs[i], options, planned, error);
        plan->item_count = i + 1; /* a half-planned one is freed too */
        if (status) return status;
        if (planned->rows > INT32_MAX - plan->rows)
            return qvl_fail(error, QVL_ERROR_LIMIT, "the pictures make more than %d patch rows", INT32_MAX);
        status = add_to_most(model, &inputs[i], &planned->item, options->preset, &m, error);
        if (status) return status;
        plan->rows += planned->rows;
        plan->tokens += planned->item.tokens;
        plan->work = add_work(plan->work, planned->work);
    }
    plan_memory(model, &m, plan);
    return QVL_OK;
}

qvl_status qvl_plan_inputs(const qvl_model *model, const qvl_input *inputs, size_t count,
                           const qvl_preprocess_options *given, qvl_plan *plan, qvl_error *error) {
    *plan = (qvl_plan){0};
    qvl_preprocess_options options;
    qvl_preprocess_options_init(&options);
    qvl_status status = qvl_options_take(&options, sizeof options, given, error);
    if (!status) status = qvl_check_preset(options.preset, error);
    if (!status && count == 0) status = qvl_fail(error, QVL_ERROR_ARGUMENT, "no pictures given");
    if (status) return status;
    plan->items = qvl_calloc(count, sizeof *plan->items);
    if (!plan->items) return qvl_fail_memory(error, "plan", count, sizeof *plan->items);
    status = plan_inputs(model, inputs, count, &options, plan, error);
    if (status) qvl_plan_free(plan);
    return status;
}

void qvl_plan_free(qvl_plan *plan) {
    if (!plan) return;
    for (size_t i = 0; i < plan->item_count; i++) qvl_item_clear(&plan->items[i].item);
    qvl_free(plan->items);
    *plan = (qvl_plan){0};
}
