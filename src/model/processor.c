/* What a folder's preprocessor files say about pictures and about videos. */
#include "model/processor.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_FILE ((size_t)16 << 20)
/* No limit in a file can reach it; far below where areas stop being exact doubles. */
#define MAX_PIXELS ((int64_t)1 << 48)

__attribute__((format(printf, 3, 4))) static void note(qvl_log_fn log, void *user, const char *format, ...) {
    if (!log) return;
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    log(line, user);
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ------------------------------------------------------------------------------------- what both kinds of files say */

/* Class defaults of transformers' Qwen2VLImageProcessor. A file that has no image_mean or image_std means CLIP's;
 * every published file has them, at 0.5. */
static const qvl_processor_config processor_defaults = {
    .limits = {3136, 1003520},
    .source = "class default",
    .mean = {0.48145466f, 0.4578275f, 0.40821073f},
    .std = {0.26862954f, 0.26130258f, 0.27577711f},
    .rescale_factor = 0.00392156862745098,
};

static const qvl_video_config video_defaults = {
    .processor = {.limits = {131072, 786432},
                  .source = "class default",
                  .mean = {0.5f, 0.5f, 0.5f},
                  .std = {0.5f, 0.5f, 0.5f},
                  .rescale_factor = 0.00392156862745098},
    .sample = true,
    .fps = 2,
    .min_frames = 4,
    .max_frames = 768,
    .max_frame_tokens = 768,
};

/* The two classes whose settings are read. */
typedef struct processor_class {
    const char *member; /* of processor_config.json */
    const qvl_processor_config *defaults;
    bool flat_limits; /* min_pixels and max_pixels count; videos have size only (5.23.0) */
} processor_class;

static const processor_class pictures = {"image_processor", &processor_defaults, true};
static const processor_class videos = {"video_processor", &video_defaults.processor, false};

/* Steps that cannot be switched off: every picture goes through them. */
static const char *const fixed_steps[] = {"do_resize", "do_rescale", "do_normalize"};

/* transformers does not load a file with another key in it either. */
static qvl_status check_size_keys(const cJSON *size, const char *where, qvl_error *error) {
    const cJSON *item;
    cJSON_ArrayForEach(item, size) {
        if (strcmp(item->string, "shortest_edge") == 0 || strcmp(item->string, "longest_edge") == 0) continue;
        if (!cJSON_IsNull(item))
            return qvl_fail(error, QVL_ERROR_FORMAT,
                            "%s: size has the key %.100s; it must contain shortest_edge and longest_edge only",
                            where, item->string);
    }
    return QVL_OK;
}

static qvl_status read_limits(const cJSON *object, const processor_class *class, const char *where,
                              const char *file, qvl_processor_config *processor, qvl_error *error) {
    const cJSON *size;
    int64_t shortest = processor->limits.min_pixels, longest = processor->limits.max_pixels;
    bool has_shortest = true, has_longest = true, has_min = false, has_max = false;
    qvl_status status = qvl_json_object(object, "size", where, &size, error);
    if (!status && size)
        status = qvl_json_int(size, "shortest_edge", 1, MAX_PIXELS, where, &shortest, &has_shortest, error);
    if (!status && size)
        status = qvl_json_int(size, "longest_edge", 1, MAX_PIXELS, where, &longest, &has_longest, error);
    if (!status && class->flat_limits)
        status = qvl_json_int(object, "min_pixels", 1, MAX_PIXELS, where, &shortest, &has_min, error);
    if (!status && class->flat_limits)
        status = qvl_json_int(object, "max_pixels", 1, MAX_PIXELS, where, &longest, &has_max, error);
    if (status) return status;
    /* An object is taken whole, not merged with the class default; the old names complete it. */
    if ((!has_shortest && !has_min) || (!has_longest && !has_max))
        return qvl_fail(error, QVL_ERROR_FORMAT, "%s: size must contain shortest_edge and longest_edge", where);
    status = check_size_keys(size, where, error);
    if (status) return status;
    processor->limits = (qvl_limits){shortest, longest};
    if (size || has_min || has_max) snprintf(processor->source, sizeof processor->source, "%s", base_name(file));
    return QVL_OK;
}

static qvl_status read_channels(const cJSON *object, const char *key, bool divisor, const char *where,
                                float values[3], qvl_error *error) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, key), *item;
    if (!list || cJSON_IsNull(list)) return QVL_OK;
    int i = 0;
    bool good = cJSON_IsArray(list) && cJSON_GetArraySize(list) == 3;
    cJSON_ArrayForEach(item, list) {
        if (!good) break;
        good = cJSON_IsNumber(item) && fabs(item->valuedouble) <= 1e6 && (!divisor || item->valuedouble >= 1e-6);
        values[i++] = good ? (float)item->valuedouble : 0.0f;
    }
    if (!good)
        return qvl_fail(error, QVL_ERROR_FORMAT, "%s: %s must be a list of three numbers in %s..1e6", where, key,
                        divisor ? "1e-6" : "-1e6");
    return QVL_OK;
}

/* The tower fixes these sizes; a file that contradicts it would give rows that the tower cannot read. */
static qvl_status check_sizes(const cJSON *object, const char *where, const qvl_vision_config *vision,
                              qvl_error *error) {
    const struct {
        const char *key, *vision_key;
        int32_t wanted;
    } sizes[] = {
        {"patch_size", "patch_size", vision->patch_size},
        {"temporal_patch_size", "temporal_patch_size", vision->temporal_patch_size},
        {"merge_size", "spatial_merge_size", vision->spatial_merge_size},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int64_t value = sizes[i].wanted;
        qvl_status status = qvl_json_int(object, sizes[i].key, 1, INT32_MAX, where, &value, NULL, error);
        if (status) return status;
        if (value != sizes[i].wanted)
            return qvl_fail(error, QVL_ERROR_MODEL, "%s: %s is %d, but config.json's vision_config has %s %d",
                            where, sizes[i].key, (int)value, sizes[i].vision_key, sizes[i].wanted);
    }
    return QVL_OK;
}

static qvl_status check_steps(const cJSON *object, const char *where, qvl_error *error) {
    for (size_t i = 0; i < sizeof fixed_steps / sizeof fixed_steps[0]; i++) {
        bool on = true;
        qvl_status status = qvl_json_bool(object, fixed_steps[i], where, &on, NULL, error);
        if (status) return status;
        if (!on)
            return qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%s: %s is false; qvl always does it", where,
                            fixed_steps[i]);
    }
    int64_t resample = 3;
    qvl_status status = qvl_json_int(object, "resample", 0, 100, where, &resample, NULL, error);
    if (status) return status;
    if (resample != 3)
        return qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%s: resample is %d; it must be 3 (bicubic)", where,
                        (int)resample);
    return QVL_OK;
}

/* Where in a file: "FILE", or "FILE: image_processor". */
#define WHERE 512
static void name_place(const processor_class *class, bool nested, const char *file, char where[WHERE]) {
    snprintf(where, WHERE, "%.400s%s%s", file, nested ? ": " : "", nested ? class->member : "");
}

/* object: a processor's settings, of the file or of its member. */
static qvl_status read_processor(const cJSON *object, const processor_class *class, bool nested, const char *file,
                                 const qvl_vision_config *vision, qvl_processor_config *processor,
                                 qvl_error *error) {
    char where[WHERE];
    name_place(class, nested, file, where);
    *processor = *class->defaults;
    qvl_status status = read_limits(object, class, where, file, processor, error);
    if (!status) status = read_channels(object, "image_mean", false, where, processor->mean, error);
    if (!status) status = read_channels(object, "image_std", true, where, processor->std, error);
    if (!status)
        status =
            qvl_json_number(object, "rescale_factor", 1e-6, 1e6, where, &processor->rescale_factor, NULL, error);
    if (!status) status = check_steps(object, where, error);
    if (!status) status = check_sizes(object, where, vision, error);
    return status;
}

qvl_status qvl_processor_parse(const void *bytes, size_t count, const char *file, const qvl_vision_config *vision,
                               qvl_processor_config *processor, qvl_error *error) {
    cJSON *root;
    const cJSON *nested = NULL;
    *processor = (qvl_processor_config){0};
    qvl_status status = qvl_json_parse(bytes, count, file, &root, error);
    if (!status) status = qvl_json_object(root, "image_processor", file, &nested, error);
    if (!status)
        status = read_processor(nested ? nested : root, &pictures, nested != NULL, file, vision, processor, error);
    cJSON_Delete(root);
    if (status) *processor = (qvl_processor_config){0};
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- videos */

static bool has_key(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key) != NULL;
}

/* fps may be null, which is not the same as absent: then every frame counts. */
static qvl_status read_sampling(const cJSON *object, const char *where, qvl_video_config *video,
                                qvl_error *error) {
    const int64_t most = QVL_MAX_FRAMES;
    if (has_key(object, "fps") || has_key(object, "num_frames")) video->fps = 0;
    qvl_status status = qvl_json_number(object, "fps", 1e-6, 1e6, where, &video->fps, NULL, error);
    if (!status) status = qvl_json_int(object, "num_frames", 1, most, where, &video->num_frames, NULL, error);
    if (!status) status = qvl_json_int(object, "min_frames", 1, most, where, &video->min_frames, NULL, error);
    if (!status) status = qvl_json_int(object, "max_frames", 1, most, where, &video->max_frames, NULL, error);
    if (!status) status = qvl_json_bool(object, "do_sample_frames", where, &video->sample, NULL, error);
    if (!status) status = qvl_json_bool(object, "cap_pixels_per_frame", where, &video->frame_cap, NULL, error);
    if (!status)
        status =
            qvl_json_int(object, "max_video_tokens", 1, 1 << 24, where, &video->max_frame_tokens, NULL, error);
    if (!status && video->fps > 0 && video->num_frames)
        return qvl_fail(error, QVL_ERROR_MODEL, "%s: fps is %g and num_frames is %lld; only one of them can hold",
                        where, video->fps, (long long)video->num_frames);
    return status;
}

static qvl_status read_video(const cJSON *object, bool nested, const char *file, const qvl_vision_config *vision,
                             qvl_video_config *video, qvl_error *error) {
    char where[WHERE];
    name_place(&videos, nested, file, where);
    *video = video_defaults;
    qvl_status status = read_processor(object, &videos, nested, file, vision, &video->processor, error);
    if (!status) status = read_sampling(object, where, video, error);
    return status;
}

qvl_status qvl_video_config_parse(const void *bytes, size_t count, const char *file,
                                  const qvl_vision_config *vision, qvl_video_config *video, qvl_error *error) {
    cJSON *root;
    const cJSON *nested = NULL;
    *video = (qvl_video_config){0};
    qvl_status status = qvl_json_parse(bytes, count, file, &root, error);
    if (!status) status = qvl_json_object(root, videos.member, file, &nested, error);
    if (!status) status = read_video(nested ? nested : root, nested != NULL, file, vision, video, error);
    cJSON_Delete(root);
    if (status) *video = (qvl_video_config){0};
    return status;
}

/* -------------------------------------------------------------------------------------------------- the folder */

typedef struct reader {
    qvl_log_fn log;
    void *user;
    char *combined, *plain, *video; /* paths of processor_config.json, preprocessor_config.json and
                                       video_preprocessor_config.json */
} reader;

/* What differs, both values of each: "limits 1..2, not 1..3; rescale_factor 1, not 0.5". "" where nothing does. */
static void describe_differences(const qvl_processor_config *other, const qvl_processor_config *used,
                                 char text[512]) {
    const struct {
        const char *key;
        const float *other, *used;
    } channels[] = {{"image_mean", other->mean, used->mean}, {"image_std", other->std, used->std}};
    const qvl_limits *a = &other->limits, *b = &used->limits;
    size_t n = 0;
    text[0] = 0;
    if (a->min_pixels != b->min_pixels || a->max_pixels != b->max_pixels)
        n = (size_t)snprintf(text, 512, "limits %lld..%lld, not %lld..%lld", (long long)a->min_pixels,
                             (long long)a->max_pixels, (long long)b->min_pixels, (long long)b->max_pixels);
    for (size_t i = 0; i < 2; i++) {
        const float *x = channels[i].other, *y = channels[i].used;
        if (memcmp(x, y, 3 * sizeof *x) == 0) continue;
        n += (size_t)snprintf(text + n, 512 - n, "%s%s %g %g %g, not %g %g %g", n ? "; " : "", channels[i].key,
                              (double)x[0], (double)x[1], (double)x[2], (double)y[0], (double)y[1], (double)y[2]);
    }
    if (memcmp(&other->rescale_factor, &used->rescale_factor, sizeof used->rescale_factor) != 0)
        snprintf(text + n, 512 - n, "%srescale_factor %.9g, not %.9g", n ? "; " : "", other->rescale_factor,
                 used->rescale_factor);
}

/* Both files are there and the combined one was read. Nothing about the other can be an error. */
static void note_contradiction(const reader *r, const qvl_vision_config *vision,
                               const qvl_processor_config *used) {
    cJSON *root;
    qvl_processor_config other;
    qvl_error error = {0};
    char differences[512] = "";
    qvl_status status = qvl_json_read(r->plain, MAX_FILE, &root, &error);
    if (!status) status = read_processor(root, &pictures, false, r->plain, vision, &other, &error);
    cJSON_Delete(root);
    if (status)
        note(r->log, r->user, "%s is used; the other file is not readable: %s", r->combined, error.message);
    else
        describe_differences(&other, used, differences);
    if (*differences)
        note(r->log, r->user, "%s is used, as transformers 5.23 does; %s says otherwise (%s)", r->combined,
             r->plain, differences);
}

/* Inside one file. An area goes by two names; transformers takes the flat one. A misspelt one is no limit at all.
 */
static void note_limits(const reader *r, const cJSON *object, const char *file) {
    static const struct {
        const char *flat, *edge;
    } names[] = {{"min_pixels", "shortest_edge"}, {"max_pixels", "longest_edge"}};
    const cJSON *size = cJSON_GetObjectItemCaseSensitive(object, "size"), *item;
    for (size_t i = 0; i < 2; i++) {
        int64_t flat, edge;
        if (qvl_json_integer(cJSON_GetObjectItemCaseSensitive(object, names[i].flat), 1, MAX_PIXELS, &flat) &&
            qvl_json_integer(cJSON_GetObjectItemCaseSensitive(size, names[i].edge), 1, MAX_PIXELS, &edge) &&
            flat != edge)
            note(r->log, r->user, "%s: %s is %lld but size.%s is %lld; the former is used, as transformers does",
                 file, names[i].flat, (long long)flat, names[i].edge, (long long)edge);
    }
    cJSON_ArrayForEach(item, object) {
        const char *key = item->string;
        if (!strstr(key, "pixel") && !strstr(key, "edge")) continue;
        if (strcmp(key, names[0].flat) == 0 || strcmp(key, names[1].flat) == 0 || cJSON_IsNull(item)) continue;
        note(r->log, r->user,
             "%s: %.100s is not a limit that is read, here or in transformers: those are size.shortest_edge and "
             "size.longest_edge, or min_pixels and max_pixels",
             file, key);
    }
}

static void note_defaults(const reader *r, const cJSON *object, const char *file,
                          const qvl_processor_config *processor) {
    if (strcmp(processor->source, processor_defaults.source) == 0)
        note(r->log, r->user, "%s has no size: transformers' class default of %lld..%lld pixels is used", file,
             (long long)processor->limits.min_pixels, (long long)processor->limits.max_pixels);
    if (!cJSON_GetObjectItemCaseSensitive(object, "image_mean") ||
        !cJSON_GetObjectItemCaseSensitive(object, "image_std"))
        note(r->log, r->user, "%s has no image_mean or image_std: transformers' class default, CLIP's, is used",
             file);
}

/* transformers cannot load such a folder at all; the original system takes these values. */
static void use_class_defaults(const reader *r, const char *folder, qvl_processor_config *processor) {
    *processor = processor_defaults;
    for (int i = 0; i < 3; i++) processor->mean[i] = processor->std[i] = 0.5f;
    note(r->log, r->user,
         "no preprocessor file in %s: class defaults are used, %lld..%lld pixels, mean and std 0.5; published "
         "folders say 65536..16777216",
         folder, (long long)processor->limits.min_pixels, (long long)processor->limits.max_pixels);
}

/* transformers (5.23.0, get_image_processor_dict) takes the image_processor of processor_config.json whole if it
 * is there, and preprocessor_config.json only otherwise. */
static qvl_status read_folder_processor(const reader *r, const char *folder, const qvl_vision_config *vision,
                                        qvl_processor_config *processor, qvl_error *error) {
    cJSON *root = NULL;
    const cJSON *nested = NULL;
    qvl_status status = QVL_OK;
    if (qvl_file_exists(r->combined)) {
        status = qvl_json_read(r->combined, MAX_FILE, &root, error);
        if (!status) status = qvl_json_object(root, "image_processor", r->combined, &nested, error);
        if (status) goto done;
    }
    if (nested) {
        status = read_processor(nested, &pictures, true, r->combined, vision, processor, error);
        if (status) goto done;
        note_limits(r, nested, r->combined);
        note_defaults(r, nested, r->combined, processor);
        if (qvl_file_exists(r->plain)) note_contradiction(r, vision, processor);
    } else if (qvl_file_exists(r->plain)) {
        cJSON_Delete(root);
        status = qvl_json_read(r->plain, MAX_FILE, &root, error);
        if (!status) status = read_processor(root, &pictures, false, r->plain, vision, processor, error);
        if (!status) note_limits(r, root, r->plain);
        if (!status) note_defaults(r, root, r->plain, processor);
    } else {
        use_class_defaults(r, folder, processor);
    }
done:
    cJSON_Delete(root);
    return status;
}

/* Flat limits are read for pictures; in a file about videos they are a mistake worth a word. */
static void note_flat_limits(const reader *r, const cJSON *object, const char *file) {
    if (has_key(object, "min_pixels") || has_key(object, "max_pixels"))
        note(r->log, r->user,
             "%s: min_pixels and max_pixels are not limits of videos, here or in transformers 5.23: those are "
             "size.shortest_edge and size.longest_edge",
             file);
}

/* transformers (5.23.0, get_video_processor_dict) takes the video_processor of processor_config.json, else
 * video_preprocessor_config.json, else what preprocessor_config.json says about pictures. With none of them it does not
 * load; the class defaults are the original system's. */
static qvl_status read_folder_video(const reader *r, const qvl_vision_config *vision, qvl_video_config *video,
                                    qvl_error *error) {
    cJSON *root = NULL;
    const cJSON *nested = NULL;
    qvl_status status = QVL_OK;
    *video = video_defaults;
    if (qvl_file_exists(r->combined)) {
        status = qvl_json_read(r->combined, MAX_FILE, &root, error);
        if (!status) status = qvl_json_object(root, videos.member, r->combined, &nested, error);
        if (!status && nested) {
            status = read_video(nested, true, r->combined, vision, video, error);
            if (!status) note_flat_limits(r, nested, r->combined);
        }
        if (status || nested) goto done;
        cJSON_Delete(root);
        root = NULL;
    }
    if (qvl_file_exists(r->video)) {
        status = qvl_json_read(r->video, MAX_FILE, &root, error);
        if (!status) status = read_video(root, false, r->video, vision, video, error);
        if (!status) note_flat_limits(r, root, r->video);
    } else if (qvl_file_exists(r->plain)) {
        /* Pictures may have their settings elsewhere, so that it is no error if this file is not readable. */
        if (qvl_json_read(r->plain, MAX_FILE, &root, NULL) ||
            read_video(root, false, r->plain, vision, video, NULL))
            *video = video_defaults;
    }
done:
    cJSON_Delete(root);
    return status;
}

qvl_status qvl_processors_read(const char *folder, qvl_log_fn log, void *log_user, qvl_config *config,
                               qvl_error *error) {
    reader r = {.log = log, .user = log_user};
    r.combined = qvl_path_join(folder, "processor_config.json");
    r.plain = qvl_path_join(folder, "preprocessor_config.json");
    r.video = qvl_path_join(folder, "video_preprocessor_config.json");
    qvl_status status = QVL_OK;
    if (!r.combined || !r.plain || !r.video) status = qvl_fail_memory(error, "file names", 3, strlen(folder));
    if (!status) status = read_folder_processor(&r, folder, &config->vision, &config->processor, error);
    if (!status) status = read_folder_video(&r, &config->vision, &config->video, error);
    qvl_free(r.video);
    qvl_free(r.plain);
    qvl_free(r.combined);
    return status;
}
