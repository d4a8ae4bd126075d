#include "prompt/identity.h"

#include "base/memory.h"
#include "model/model.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

_Static_assert(QVL_KEY_HEX == QVL_SHA256_HEX, "a key is a SHA-256");

/* The text that is hashed, line by line. */
typedef struct listing {
    char *text;
    size_t used, size;
    qvl_status status;
    qvl_error *error;
} listing;

#define LINE 320 /* the longest line: three long numbers, a name, a digest */

static listing open_listing(size_t lines, qvl_error *error) {
    listing l = {.text = qvl_alloc(lines, LINE), .size = lines * LINE, .error = error};
    if (!l.text) l.status = qvl_fail_memory(error, "text of a key", lines, LINE);
    return l;
}

__attribute__((format(printf, 2, 3))) static void put(listing *l, const char *format, ...) {
    if (l->status) return;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(l->text + l->used, l->size - l->used, format, args);
    va_end(args);
    l->used += (size_t)n;
}

/* "what SHA-256" of bytes. */
static void put_digest(listing *l, const char *what, const void *bytes, size_t count) {
    uint8_t digest[QVL_SHA256_BYTES];
    char hex[QVL_SHA256_HEX];
    if (!l->status) l->status = qvl_sha256(bytes, count, digest, l->error);
    if (l->status) return;
    qvl_sha256_print(digest, hex);
    put(l, "%s %s\n", what, hex);
}

static qvl_status close_listing(listing *l, char key[QVL_SHA256_HEX]) {
    uint8_t digest[QVL_SHA256_BYTES];
    if (!l->status) l->status = qvl_sha256(l->text, l->used, digest, l->error);
    if (!l->status) qvl_sha256_print(digest, key);
    qvl_free(l->text);
    return l->status;
}

/* ---- items */

qvl_status qvl_frames_key(const qvl_frames *frames, const qvl_config *config, qvl_preset preset, qvl_grid grid,
                          char key[QVL_SHA256_HEX], qvl_error *error) {
    const qvl_vision_config *v = &config->vision;
    const qvl_processor_config *p = &config->processor;
    listing l = open_listing(frames->count + 4, error);
    key[0] = 0;
    put(&l, "qvl item 1\npreset %s, patches %d x %d x %d, merged %d\n", qvl_preset_name(preset),
        v->temporal_patch_size, v->patch_size, v->patch_size, v->spatial_merge_size);
    put(&l, "rescaled %a, mean %a %a %a, std %a %a %a\n", p->rescale_factor, (double)p->mean[0],
        (double)p->mean[1], (double)p->mean[2], (double)p->std[0], (double)p->std[1], (double)p->std[2]);
    put(&l, "grid %" PRId64 " %" PRId64 " %" PRId64 ", %zu of RGB8 %" PRId64 " x %" PRId64 "\n", grid.t, grid.h,
        grid.w, frames->count, frames->width, frames->height);
    for (size_t i = 0; i < frames->count; i++)
        put_digest(&l, "frame", frames->pixels[i], 3 * (size_t)frames->width * (size_t)frames->height);
    return close_listing(&l, key);
}

qvl_status qvl_patches_key(const qvl_patches *patches, char key[QVL_SHA256_HEX], qvl_error *error) {
    qvl_grid grid = patches->items[0].grid;
    listing l = open_listing(3, error);
    key[0] = 0;
    put(&l, "qvl patch rows 1\ngrid %" PRId64 " %" PRId64 " %" PRId64 ", rows of %" PRId64 "\n", grid.t, grid.h,
        grid.w, patches->cols);
    put_digest(&l, "values", patches->values, (size_t)patches->rows * (size_t)patches->cols * sizeof(float));
    return close_listing(&l, key);
}

qvl_status qvl_features_key(const qvl_features *features, char key[QVL_SHA256_HEX], qvl_error *error) {
    qvl_grid grid = features->items[0].grid;
    size_t bytes = (size_t)features->tokens * (size_t)features->width * qvl_dtype_bits(features->dtype) / 8;
    listing l = open_listing(4 + QVL_MAX_DEEPSTACK, error);
    key[0] = 0;
    put(&l, "qvl features 1\ngrid %" PRId64 " %" PRId64 " %" PRId64 ", %s, rows of %" PRId64 "\n", grid.t, grid.h,
        grid.w, qvl_dtype_name(features->dtype), features->width);
    put_digest(&l, "embeds", features->embeds, bytes);
    for (int32_t i = 0; i < features->deepstack_count; i++)
        put_digest(&l, "deepstack", features->deepstack[i], bytes);
    return close_listing(&l, key);
}

/* ---- prompts */

static bool is_hex(const char *text) {
    return strlen(text) == QVL_SHA256_HEX - 1 && strspn(text, "0123456789abcdef") == QVL_SHA256_HEX - 1;
}

/* The first entries of each of the three axes, one after the other. */
static void put_positions(listing *l, const qvl_prompt *prompt) {
    size_t count = (size_t)prompt->media_length;
    static const char *const axes[] = {"positions t", "positions h", "positions w"};
    for (int axis = 0; axis < 3; axis++)
        put_digest(l, axes[axis], prompt->position_ids + axis * prompt->length, count * sizeof(int64_t));
}

qvl_status qvl_prompt_identity(const qvl_model *model, const qvl_prompt *prompt, const char *fingerprint,
                               char hex[QVL_KEY_HEX], qvl_error *error) {
    hex[0] = 0;
    if (prompt->media_length == 0) return QVL_OK;
    if (!fingerprint || !is_hex(fingerprint))
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "the fingerprint \"%.80s\" is not that of a tower: 64 digits and letters a to f",
                        fingerprint ? fingerprint : "");
    const qvl_model_info *info = &model->info;
    listing l = open_listing(prompt->item_count + 8, error);
    put(&l, "qvl media prefix 1\ntower %s\ncomputed in %s by %s\n", fingerprint,
        qvl_dtype_name(info->compute_dtype), info->kernels);
    for (size_t i = 0; i < prompt->item_count && !l.status; i++) {
        const qvl_prompt_item *item = &prompt->items[i];
        if (!is_hex(item->key))
            l.status = qvl_fail(error, QVL_ERROR_ARGUMENT,
                                "item %zu has no key: an identity needs a built prompt, not a plan", i);
        put(&l, "%s %s at %" PRId64 "\n", item->kind == QVL_MEDIUM_VIDEO ? "video" : "image", item->key,
            item->first.index);
    }
    put_digest(&l, "ids", prompt->input_ids, (size_t)prompt->media_length * sizeof(int64_t));
    put_positions(&l, prompt);
    put(&l, "delta %" PRId64 "\n", prompt->rope_delta);
    return close_listing(&l, hex);
}
