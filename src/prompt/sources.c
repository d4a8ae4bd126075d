#include "prompt/sources.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "model/config.h"
#include "prompt/base64.h"

#include <stdio.h>
#include <string.h>

/* What is being read. */
typedef struct part_reader {
    const qvl_chat *chat;
    const cJSON *part;
    const char *where;
    qvl_source *source;
    qvl_error *error;
} part_reader;

static qvl_status no_memory(const part_reader *r) {
    return qvl_fail_memory(r->error, "conversation", r->chat->byte_count, 1);
}

/* ---- files and data */

/* Is it an address elsewhere: SCHEME:// other than file? */
static bool is_remote(const char *text) {
    size_t scheme = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
    return scheme > 0 && strncmp(text + scheme, "://", 3) == 0 && strncmp(text, "file://", 7) != 0;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* file:///a%20b is /a b; a % that no two digits follow stays, and so does %00. In place. */
static void decode_percent(char *text) {
    char *to = text;
    for (const char *from = text; *from; from++) {
        int high = from[0] == '%' ? hex_digit(from[1]) : -1, low = high < 0 ? -1 : hex_digit(from[2]);
        if (low >= 0 && (high || low)) {
            *to++ = (char)(16 * high + low);
            from += 2;
        } else {
            *to++ = *from;
        }
    }
    *to = 0;
}

static qvl_status find_file(const part_reader *r, const char *text, qvl_place *place) {
    if (r->chat->no_files)
        return qvl_fail(r->error, QVL_ERROR_ARGUMENT, "%s names the file %.200s, and files are not allowed here",
                        r->where, text);
    bool url = strncmp(text, "file://", 7) == 0;
    const char *file = url ? text + 7 : text;
    bool relative = file[0] != '/' && r->chat->folder;
    char *name = qvl_strdup(file);
    if (!name) return no_memory(r);
    if (url) decode_percent(name);
    place->path = relative ? qvl_path_join(r->chat->folder, name) : name;
    if (relative) qvl_free(name);
    return place->path ? QVL_OK : no_memory(r);
}

static qvl_status find_place(const part_reader *r, const char *key, const char *text, qvl_place *place) {
    bool data = qvl_is_data_url(text);
    if (!*text) return qvl_fail(r->error, QVL_ERROR_ARGUMENT, "%s has an empty %s", r->where, key);
    if (data) return qvl_data_url_decode(text, r->where, &place->bytes, &place->byte_count, r->error);
    if (strcmp(key, "base64") == 0)
        return qvl_base64_decode(text, r->where, &place->bytes, &place->byte_count, r->error);
    if (is_remote(text))
        return qvl_fail(r->error, QVL_ERROR_UNSUPPORTED,
                        "%s is at %.300s: qvl reads files and data URLs, and fetches nothing", r->where, text);
    return find_file(r, text, place);
}

/* name: of data; a file has its own. */
static void make_input(const qvl_place *place, const char *name, qvl_input *input) {
    input->kind = place->path ? QVL_INPUT_FILE : QVL_INPUT_BYTES;
    input->name = place->path ? place->path : name;
    input->bytes = place->bytes;
    input->byte_count = place->byte_count;
}

static qvl_status take_one(const part_reader *r, const char *key, const char *text) {
    qvl_source *source = r->source;
    qvl_status status = find_place(r, key, text, &source->place);
    if (status) return status;
    source->name = qvl_strdup(source->place.path ? source->place.path : r->where);
    if (!source->name) return no_memory(r);
    make_input(&source->place, source->name, &source->input);
    return QVL_OK;
}

/* ---- lists of frames */

static qvl_status check_numbers(const part_reader *r, const cJSON *list, const char *key, bool whole) {
    size_t count = cJSON_IsArray(list) ? (size_t)cJSON_GetArraySize(list) : 0;
    if (!cJSON_IsArray(list) || count != r->source->frame_count)
        return qvl_fail(r->error, QVL_ERROR_FORMAT, "%s: %s must be a list of %zu numbers, one for each frame",
                        r->where, key, r->source->frame_count);
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        int64_t value;
        if (whole ? qvl_json_integer(item, 0, (int64_t)1 << 53, &value) : cJSON_IsNumber(item)) continue;
        char found[QVL_JSON_DESCRIPTION];
        qvl_json_describe(item, found);
        return qvl_fail(r->error, QVL_ERROR_FORMAT, "%s: one of %s is %s", r->where, key, found);
    }
    return QVL_OK;
}

static qvl_status read_seconds(const part_reader *r) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(r->part, "seconds"), *item;
    if (!list || cJSON_IsNull(list)) return QVL_OK;
    qvl_status status = check_numbers(r, list, "seconds", false);
    if (status) return status;
    double *seconds = r->source->seconds = qvl_alloc(r->source->frame_count, sizeof *seconds);
    if (!seconds) return no_memory(r);
    cJSON_ArrayForEach(item, list) *seconds++ = item->valuedouble;
    return QVL_OK;
}

static qvl_status read_indices(const part_reader *r) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(r->part, "indices"), *item;
    if (!list || cJSON_IsNull(list)) return QVL_OK;
    qvl_status status = check_numbers(r, list, "indices", true);
    if (status) return status;
    int64_t *indices = r->source->indices = qvl_alloc(r->source->frame_count, sizeof *indices);
    if (!indices) return no_memory(r);
    cJSON_ArrayForEach(item, list) *indices++ = (int64_t)item->valuedouble;
    return QVL_OK;
}

static qvl_status read_frames(const part_reader *r, const char *key, const cJSON *list) {
    qvl_source *source = r->source;
    size_t count = (size_t)cJSON_GetArraySize(list);
    if (count == 0)
        return qvl_fail(r->error, QVL_ERROR_ARGUMENT, "%s: %s is an empty list; a video has at least one frame",
                        r->where, key);
    source->frame_places = qvl_calloc(count, sizeof *source->frame_places);
    source->frames = qvl_calloc(count, sizeof *source->frames);
    if (!source->frame_places || !source->frames) return no_memory(r);
    source->frame_count = count;
    const cJSON *item;
    size_t i = 0;
    cJSON_ArrayForEach(item, list) {
        const cJSON *value = cJSON_IsObject(item) ? cJSON_GetObjectItemCaseSensitive(item, "url") : item;
        if (!cJSON_IsString(value))
            return qvl_fail(r->error, QVL_ERROR_FORMAT,
                            "%s: frame %zu of %s is not a string, or an object with url", r->where, i, key);
        qvl_status status = find_place(r, key, value->valuestring, &source->frame_places[i]);
        if (status) return status;
        make_input(&source->frame_places[i], "data URL", &source->frames[i]);
        i++;
    }
    return QVL_OK;
}

/* A list of frames has times of its own, in the part: seconds, or a rate and perhaps indices. */
static qvl_status take_list(const part_reader *r, const char *key, const cJSON *list) {
    qvl_source *source = r->source;
    qvl_status status = read_frames(r, key, list);
    if (!status) status = read_seconds(r);
    if (!status) status = read_indices(r);
    if (!status)
        status = qvl_json_number(r->part, "rate", 1e-6, 1e6, r->where, &source->input.rate, NULL, r->error);
    if (status) return status;
    source->name = qvl_strdup(r->where);
    if (!source->name) return no_memory(r);
    source->input.kind = QVL_INPUT_FRAMES;
    source->input.name = source->name;
    source->input.frames = source->frames;
    source->input.frame_count = source->frame_count;
    source->input.seconds = source->seconds;
    source->input.indices = source->indices;
    return QVL_OK;
}

/* ---- parts */

/* Of a part; nframes is the name that the models' own utilities have. */
static qvl_status read_settings(const part_reader *r) {
    const int64_t pixels = (int64_t)1 << 48;
    qvl_input *input = &r->source->input;
    const struct {
        const char *key;
        int64_t most, *value;
        bool video;
    } settings[] = {
        {"min_pixels", pixels, &input->limits.min_pixels, false},
        {"max_pixels", pixels, &input->limits.max_pixels, false},
        {"nframes", QVL_MAX_FRAMES, &input->num_frames, true},
        {"num_frames", QVL_MAX_FRAMES, &input->num_frames, true},
        {"min_frames", QVL_MAX_FRAMES, &input->min_frames, true},
        {"max_frames", QVL_MAX_FRAMES, &input->max_frames, true},
    };
    bool video = r->source->kind == QVL_MEDIUM_VIDEO;
    qvl_status status = QVL_OK;
    for (size_t i = 0; i < sizeof settings / sizeof *settings && !status; i++)
        if (video || !settings[i].video)
            status = qvl_json_int(r->part, settings[i].key, 1, settings[i].most, r->where, settings[i].value, NULL,
                                  r->error);
    if (!status && video)
        status = qvl_json_number(r->part, "fps", 1e-6, 1e6, r->where, &input->fps, NULL, r->error);
    return status;
}

/* The keys that may hold a source, in transformers' order, then those of OpenAI. */
static const char *const image_keys[] = {"image", "url", "path", "base64", "image_url", NULL};
static const char *const video_keys[] = {"video", "url", "path", "base64", "video_url", NULL};

qvl_status qvl_source_read(const qvl_chat *chat, const cJSON *part, const char *where, qvl_source *source,
                           qvl_error *error) {
    const part_reader r = {.chat = chat, .part = part, .where = where, .source = source, .error = error};
    bool video = source->kind == QVL_MEDIUM_VIDEO;
    qvl_status status = read_settings(&r);
    for (const char *const *key = video ? video_keys : image_keys; *key && !status; key++) {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(part, *key);
        if (cJSON_IsObject(value)) value = cJSON_GetObjectItemCaseSensitive(value, "url");
        if (!value || cJSON_IsNull(value)) continue;
        if (cJSON_IsString(value)) return take_one(&r, *key, value->valuestring);
        if (video && cJSON_IsArray(value)) return take_list(&r, *key, value);
        char found[QVL_JSON_DESCRIPTION];
        qvl_json_describe(value, found);
        return qvl_fail(error, QVL_ERROR_FORMAT, "%s: %s is %s; it must be a string, or an object with url%s",
                        where, *key, found, video ? ", or a list of frames" : "");
    }
    return status;
}

static void clear_place(qvl_place *place) {
    qvl_free(place->path);
    qvl_free(place->bytes);
}

void qvl_source_clear(qvl_source *source) {
    for (size_t i = 0; i < source->frame_count; i++) clear_place(&source->frame_places[i]);
    qvl_free(source->frame_places);
    qvl_free(source->frames);
    qvl_free(source->indices);
    qvl_free(source->seconds);
    clear_place(&source->place);
    qvl_free(source->name);
    *source = (qvl_source){0};
}
