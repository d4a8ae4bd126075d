/* qvl box: a model's boxes and points in other frames. */
#include "commands.h"
#include "open.h"
#include "output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A box, or a point as a box whose corners are one. */
typedef struct mapping {
    int count; /* 2 or 4 numbers */
    qvl_box given, mapped;
    bool clamped;
} mapping;

/* x,y or x1,y1,x2,y2. */
static bool parse_box(const char *text, mapping *m) {
    double numbers[4];
    int count = 0;
    for (;; text++) {
        char *end;
        if (count == 4) return false;
        errno = 0;
        numbers[count++] = strtod(text, &end);
        if (end == text || errno || (*end && *end != ',')) return false;
        text = end;
        if (!*text) break;
    }
    if (count != 2 && count != 4) return false;
    *m = (mapping){.count = count, .given = {numbers[0], numbers[1], numbers[count - 2], numbers[count - 1]}};
    return true;
}

static bool parse_boxes(const cli_options *options, mapping *mappings) {
    for (size_t i = 1; i < options->input_count; i++) {
        if (parse_box(options->inputs[i], &mappings[i - 1])) continue;
        fprintf(stderr, "qvl box: '%s' is no box; allowed is x1,y1,x2,y2, or x,y for a point\n",
                options->inputs[i]);
        return false;
    }
    return true;
}

/* The picture's item. A model is needed only for the size that it makes of it. */
static qvl_status find_item(const cli_options *options, qvl_item *item, qvl_error *error) {
    qvl_model *model = NULL;
    cli_inputs inputs = {0};
    qvl_plan plan = {0};
    qvl_status status = cli_inputs_open(options, 1, &inputs, error);
    if (!status && (options->model || options->from == QVL_FRAME_MODEL || options->to == QVL_FRAME_MODEL)) {
        status = cli_open_model(options, QVL_OPEN_CONFIG, &model, error);
        if (!status) status = qvl_plan_inputs(model, inputs.list, 1, &options->preprocess, &plan, error);
        if (!status) *item = plan.items[0].item;
    } else if (!status) {
        qvl_image image;
        status = qvl_image_probe(inputs.list, &options->preprocess.media, &image, error);
        *item = (qvl_item){.source_width = image.width, .source_height = image.height, .stored = image.stored};
    }
    qvl_plan_free(&plan);
    qvl_model_close(&model);
    cli_inputs_free(&inputs);
    return status;
}

static qvl_status map(const cli_options *options, const qvl_item *item, mapping *m, qvl_error *error) {
    double width, height;
    qvl_status status = qvl_map_box(item, options->from, options->to, m->given, &m->mapped, error);
    if (!status) status = qvl_frame_size(item, options->to, &width, &height, error);
    if (status) return status;
    qvl_box inside = qvl_clamp_box(m->mapped, width, height);
    m->clamped = inside.x1 != m->mapped.x1 || inside.y1 != m->mapped.y1 || inside.x2 != m->mapped.x2 ||
                 inside.y2 != m->mapped.y2;
    m->mapped = inside;
    return QVL_OK;
}

static cJSON *json_numbers(const qvl_box *box, int count) {
    return cJSON_CreateDoubleArray((const double[]){box->x1, box->y1, box->x2, box->y2}, count);
}

static void json_size(cJSON *json, const qvl_item *item, const char *key, qvl_frame frame) {
    double width, height;
    if (!qvl_frame_size(item, frame, &width, &height, NULL))
        cli_json_ints(json, key, (int64_t[]){(int64_t)width, (int64_t)height}, 2);
}

static int report_json(const cli_options *options, const qvl_item *item, const mapping *mappings, size_t count) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "input", options->inputs[0]);
    json_size(json, item, "stored_size", QVL_FRAME_FILE);
    cJSON_AddNumberToObject(json, "orientation", item->stored.orientation);
    cJSON_AddBoolToObject(json, "turned_upright", item->stored.oriented);
    json_size(json, item, "source_size", QVL_FRAME_SOURCE);
    json_size(json, item, "size", QVL_FRAME_MODEL);
    cJSON_AddStringToObject(json, "from", qvl_frame_name(options->from));
    cJSON_AddStringToObject(json, "to", qvl_frame_name(options->to));
    cJSON *boxes = cJSON_AddArrayToObject(json, "boxes");
    for (size_t i = 0; i < count; i++) {
        const mapping *m = &mappings[i];
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddItemToObject(entry, "given", json_numbers(&m->given, m->count));
        cJSON_AddItemToObject(entry, "mapped", json_numbers(&m->mapped, m->count));
        cJSON_AddBoolToObject(entry, "clamped", m->clamped);
        cJSON_AddItemToArray(boxes, entry);
    }
    return cli_print_json(json);
}

/* One line a box, as it would be given. Here, and only here, positions are rounded: to hundredths. */
static int report(const cli_options *options, const qvl_item *item, const mapping *mappings, size_t count) {
    for (size_t i = 0; i < count && !options->quiet; i++)
        if (mappings[i].clamped)
            fprintf(stderr, "note: %s reaches beyond the picture and is clamped\n", options->inputs[i + 1]);
    if (options->json) return report_json(options, item, mappings, count);
    for (size_t i = 0; i < count; i++) {
        const qvl_box *box = &mappings[i].mapped;
        const double numbers[4] = {box->x1, box->y1, box->x2, box->y2};
        for (int k = 0; k < mappings[i].count; k++) printf("%s%.2f", k ? "," : "", numbers[k]);
        putchar('\n');
    }
    return CLI_DONE;
}

int cmd_box(const cli_options *options) {
    qvl_error error = {0};
    qvl_item item = {0};
    size_t count = options->input_count - 1;
    mapping *mappings = calloc(count, sizeof *mappings);
    int code = CLI_USAGE;
    if (!mappings) {
        cli_no_memory(&error);
        return cli_refuse(&error);
    }
    if (parse_boxes(options, mappings)) {
        qvl_status status = find_item(options, &item, &error);
        for (size_t i = 0; i < count && !status; i++) status = map(options, &item, &mappings[i], &error);
        code = status ? cli_refuse(&error) : report(options, &item, mappings, count);
    }
    free(mappings);
    return code;
}
