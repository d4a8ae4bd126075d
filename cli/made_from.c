/* Nothing that changes a result may be left out here, or an old result would pass for a new one. So no setting is
 * named: of the flags all count but those that the table marks, and of the folder every file that could hold settings
 * counts, byte by byte. */
#define _GNU_SOURCE
#include "made_from.h"

#include "cache.h"
#include "open.h"
#include "output.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* config.json, preprocessor_config.json, video_preprocessor_config.json, ... */
static int holds_settings(const struct dirent *entry) {
    static const char ending[] = "config.json";
    size_t length = strlen(entry->d_name), tail = sizeof ending - 1;
    return length >= tail && strcmp(entry->d_name + length - tail, ending) == 0;
}

/* FNV-1a. It is to notice changes, not to withstand anyone. */
static uint64_t hash(uint64_t value, const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) value = (value ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return value;
}

/* A sum over the files, so their order does not matter. What is no regular file holds no settings. */
static qvl_status hash_file(const char *folder, const char *name, uint64_t *sum, qvl_error *error) {
    char *path = NULL, *text = NULL;
    size_t count = 0;
    struct stat st;
    if (asprintf(&path, "%s/%s", folder, name) < 0) return cli_no_memory(error);
    bool regular = stat(path, &st) == 0 && S_ISREG(st.st_mode);
    qvl_status status = regular ? cli_read(path, &text, &count, error) : QVL_OK;
    if (text) *sum += hash(hash(UINT64_C(0xcbf29ce484222325), name, strlen(name) + 1), text, count);
    free(text);
    free(path);
    return status;
}

static qvl_status hash_folder(const char *folder, uint64_t *sum, qvl_error *error) {
    struct dirent **entries;
    int count = scandir(folder, &entries, holds_settings, NULL);
    qvl_status status = QVL_OK;
    *sum = 0;
    if (count < 0)
        return cli_fail(error, QVL_ERROR_IO, "cannot read the folder %.800s: %s", folder, strerror(errno));
    for (int i = 0; i < count; i++) {
        if (!status) status = hash_file(folder, entries[i]->d_name, sum, error);
        free(entries[i]);
    }
    free(entries);
    return status;
}

qvl_status cli_describe_settings(const cli_options *options, const qvl_model *model, char **settings,
                                 qvl_error *error) {
    const qvl_model_info *info = qvl_model_get_info(model);
    char memory[4096], weights[QVL_FINGERPRINT_HEX];
    uint64_t folder = 0;
    size_t size;
    *settings = NULL;
    bool remembered = cli_cache_folder(memory, sizeof memory);
    qvl_status status = qvl_model_fingerprint(model, remembered ? memory : NULL, weights, error);
    if (!status) status = hash_folder(info->folder, &folder, error);
    if (status) return status;
    FILE *text = open_memstream(settings, &size);
    if (!text) return cli_no_memory(error);
    fprintf(text, "qvl %s; weights %s; settings of the folder %016" PRIx64 "; %s by %s; flags", qvl_version(),
            weights, folder, cli_dtype_name(info->compute_dtype), info->kernels);
    cli_write_settings(options, text);
    if (fclose(text) == 0) return QVL_OK;
    free(*settings);
    *settings = NULL;
    return cli_no_memory(error);
}

char *cli_made_from(const char *settings, const char *source) {
    struct stat st;
    char *text = NULL;
    if (stat(source, &st) != 0) return NULL;
    int written = asprintf(&text, "%lld bytes of %lld.%09ld; %s", (long long)st.st_size,
                           (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, settings);
    return written < 0 ? NULL : text;
}

/* The header of a safetensors file. */
static cJSON *read_header(const char *path) {
    enum { MOST = 1 << 24 };
    uint8_t length[8];
    FILE *file = fopen(path, "rb");
    cJSON *json = NULL;
    if (file && fread(length, 1, 8, file) == 8) {
        uint64_t count = 0;
        for (int i = 7; i >= 0; i--) count = count << 8 | length[i];
        char *text = count && count <= MOST ? malloc(count) : NULL;
        if (text && fread(text, 1, count, file) == count) json = cJSON_ParseWithLength(text, count);
        free(text);
    }
    if (file) fclose(file);
    return json;
}

bool cli_is_made(const char *path, const char *made_from) {
    qvl_tensor_file *file;
    if (qvl_tensor_file_open(path, &file, NULL)) return false;
    qvl_tensor_file_close(&file);
    cJSON *header = read_header(path);
    const cJSON *text =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(header, "__metadata__"), "made_from");
    bool same = cJSON_IsString(text) && strcmp(text->valuestring, made_from) == 0;
    cJSON_Delete(header);
    return same;
}
