/* What a client of transformers' language model needs: embeddings, positions and deepstack rows against what
 * transformers itself hands to its language model, for both generations (tools/oracle/prompt_client_oracle.py
 * made them, and shows that the logits agree too). */
#define _GNU_SOURCE
#include "prompt/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *chat;
    int pictures;
    int64_t sizes[3][2]; /* height, width */
} conversations[] = {
    {"text", "[{\"role\":\"user\",\"content\":\"Tell me about numbers 1 and 23.\"}]", 0, {{0, 0}}},
    {"one",
     "[{\"role\":\"user\",\"content\":[{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"What is it?\"}]}]",
     1,
     {{260, 300}}},
    {"many",
     "[{\"role\":\"system\",\"content\":\"Be "
     "brief.\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"First\"},"
     "{\"type\":\"image\"},{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"compare.\"}]},{\"role\":"
     "\"assistant\",\"content\":"
     "\"They differ.\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"And "
     "\"},{\"type\":\"image\"},"
     "{\"type\":\"text\",\"text\":\"?\"}]}]",
     3,
     {{64, 700}, {300, 200}, {256, 256}}},
};

/* The top byte of splitmix64 of (seed << 32) + byte index, as preprocess_cases.noise. */
static void make_noise(picture *p, int64_t height, int64_t width, uint64_t seed) {
    size_t count = 3 * (size_t)(height * width);
    uint8_t *pixels = malloc(count);
    assert_non_null(pixels);
    for (size_t i = 0; i < count; i++) {
        uint64_t z = ((seed << 32) + i + 1) * 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        pixels[i] = (uint8_t)((z ^ z >> 31) >> 56);
    }
    p->input = (qvl_input){.kind = QVL_INPUT_RGB8, .bytes = pixels, .width = width, .height = height};
    p->medium = (qvl_medium){.kind = QVL_MEDIUM_IMAGE, .input = &p->input};
}

static qvl_tensor tensor_of(const qvl_tensor_file *file, const char *shape, const char *name, const char *part) {
    char key[128];
    qvl_tensor tensor;
    snprintf(key, sizeof key, "%s/%s/%s", shape, name, part);
    if (!qvl_tensor_file_find(file, key, &tensor)) fail_msg("no %s in the fixture", key);
    return tensor;
}

/* sum (x - ref)^2 / sum ref^2 within what the tower's stages keep to. */
static void assert_near(const qvl_tensor *reference, const void *found, int64_t rows, const char *what) {
    assert_int_equal(reference->dtype, QVL_F32);
    assert_int_equal(reference->shape[0], rows);
    const float *x = found;
    double error = 0, size = 0;
    for (int64_t i = 0; i < rows * reference->shape[1]; i++) {
        float r;
        memcpy(&r, (const char *)reference->data + 4 * i, 4);
        error += ((double)x[i] - (double)r) * ((double)x[i] - (double)r);
        size += (double)r * (double)r;
    }
    if (!(error <= 1e-11 * size)) fail_msg("%s: NMSE %g", what, error / size);
}

static void check(const bench *b, const qvl_tensor_file *file, const char *shape) {
    for (size_t i = 0; i < sizeof conversations / sizeof conversations[0]; i++) {
        picture pictures[3];
        qvl_medium media[3];
        size_t count = (size_t)conversations[i].pictures;
        for (size_t k = 0; k < count; k++) {
            make_noise(&pictures[k], conversations[i].sizes[k][0], conversations[i].sizes[k][1], k);
            media[k] = pictures[k].medium;
        }
        qvl_prompt_options options;
        qvl_prompt_options_init(&options);
        options.preprocess.preset = QVL_PRESET_TRANSFORMERS_PIL;
        qvl_prompt p = build_media(b, conversations[i].chat, media, count, &options);
        qvl_tensor positions = tensor_of(file, shape, conversations[i].name, "position_ids");
        qvl_tensor embeds = tensor_of(file, shape, conversations[i].name, "inputs_embeds");
        assert_int_equal(positions.dtype, QVL_I64);
        assert_int_equal(positions.shape[1], p.length);
        assert_memory_equal(positions.data, p.position_ids, 3 * (size_t)p.length * sizeof *p.position_ids);
        assert_near(&embeds, p.inputs_embeds, p.length, conversations[i].name);
        for (int32_t k = 0; k < p.deepstack_count; k++) {
            char part[32];
            snprintf(part, sizeof part, "deepstack.%d", k);
            qvl_tensor rows = tensor_of(file, shape, conversations[i].name, part);
            assert_near(&rows, p.deepstack[k], p.vision_tokens, part);
        }
        qvl_prompt_free(&p);
        for (size_t k = 0; k < count; k++) free_picture(&pictures[k]);
    }
}

static void test_client(void **state) {
    (void)state;
    static const char *const shapes[] = {"demo", "demo-35"};
    char folder[] = "/tmp/qvl-prompt-XXXXXX", path[128], command[512];
    qvl_tensor_file *file;
    qvl_error error = {0};
    if (qvl_tensor_file_open(QVL_FIXTURES "/prompt/client.safetensors", &file, &error))
        fail_msg("%s", error.message);
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, shapes[i]);
        snprintf(command, sizeof command, "'%s' --shape %s --dtype f32 '%s'", QVL_RANDOM_MODEL_TOOL, shapes[i],
                 path);
        assert_int_equal(system(command), 0);
        bench b = open_bench(path, QVL_OPEN_WEIGHTS, QVL_F32, NULL);
        assert_int_equal(qvl_model_get_info(b.model)->deepstack_count, i == 0 ? 2 : 0);
        check(&b, file, shapes[i]);
        close_bench(&b);
    }
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
    qvl_tensor_file_close(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_client)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
