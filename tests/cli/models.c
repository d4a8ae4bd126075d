#include "cli/models.h"

#include "cli/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *in_folder(const char *folder, const char *name) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void change_weights(const char *folder, const model_change *change) {
    char path[1024];
    snprintf(path, sizeof path, "%s", in_folder(folder, "model.safetensors"));
    qvl_tensor_file *file = open_tensors(path);
    size_t all = qvl_tensor_file_count(file), count = 0;
    qvl_tensor *tensors = calloc(all, sizeof *tensors);
    char **copies = calloc(all, sizeof *copies);
    assert_true(tensors && copies);
    for (size_t i = 0; i < all; i++) {
        qvl_tensor t = qvl_tensor_file_get(file, i);
        if (change->without && strcmp(t.name, change->without) == 0) continue;
        size_t bytes = tensor_bytes(&t), row = bytes / (size_t)t.shape[0];
        copies[count] = malloc(bytes);
        assert_non_null(copies[count]);
        memcpy(copies[count], t.data, bytes);
        if (change->zeroed && strcmp(t.name, change->zeroed) == 0)
            memset(copies[count] + (size_t)change->first * row, 0,
                   (size_t)(change->last - change->first + 1) * row);
        if (change->broken && strcmp(t.name, change->broken) == 0) memset(copies[count], 0xff, 2);
        t.data = copies[count];
        tensors[count++] = t;
    }
    assert_int_equal(all - count, change->without != NULL);
    char changed[1024];
    snprintf(changed, sizeof changed, "%s", in_folder(folder, "changed.safetensors"));
    qvl_error error;
    if (qvl_tensors_save(changed, tensors, count, NULL, 0, &error)) fail_msg("%s", error.message);
    qvl_tensor_file_close(&file);
    assert_int_equal(rename(changed, path), 0);
    for (size_t i = 0; i < count; i++) free(copies[i]);
    free(copies);
    free(tensors);
}

const char *make_model(const char *name, const model_change *change) {
    const char *folder = scratch(name);
    run(ARGUMENTS("/bin/cp", "-r", QVL_RANDOM_MODEL, folder));
    change_weights(folder, change);
    return folder;
}

/* Their logits are 0; the best of 512 random ones is above. */
const char *make_endless_model(const char *name) {
    return make_model(name, &(model_change){.zeroed = "lm_head.weight", .first = 505, .last = 511});
}
