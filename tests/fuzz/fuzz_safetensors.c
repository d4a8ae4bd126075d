/* Any bytes as a safetensors file: refused with a message, or every tensor lies inside the bytes, in order of
 * name. */
#include "model/safetensors.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check(bool holds) {
    if (!holds) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    qvl_safetensors file;
    qvl_error error = {0};
    qvl_status status = qvl_safetensors_parse(bytes, count, "input", &file, &error);
    if (status) {
        check(error.status == status && error.message[0] && !file.tensors && !file.storage);
        return 0;
    }
    size_t total = 0;
    for (size_t i = 0; i < file.count; i++) {
        const qvl_tensor *t = &file.tensors[i];
        size_t bits = qvl_dtype_bits(t->dtype);
        for (int32_t k = 0; k < t->ndim; k++) bits = t->shape[k] == 0 ? 0 : bits * (size_t)t->shape[k];
        const uint8_t *data = t->data;
        check(data >= bytes + 8 && bits / 8 <= (size_t)(bytes + count - data));
        check(i == 0 || strcmp(file.tensors[i - 1].name, t->name) < 0);
        check(qvl_safetensors_find(&file, t->name) == t);
        total += bits / 8;
    }
    check(total < count);
    qvl_safetensors_close(&file);
    return 0;
}
