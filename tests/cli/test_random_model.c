/* The tool that writes random models: its generator, its names and shapes, its files. */
#include "cli/program.h"

#include "../tools/random_model/shapes.h"
#include "base/hash.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void make(const char *folder, const char *const *flags) {
    const char *arguments[12] = {QVL_RANDOM_MODEL_TOOL};
    int count = 1;
    while (*flags) arguments[count++] = *flags++;
    arguments[count] = folder;
    result r = expect(0, NULL, arguments);
    assert_string_equal(r.out, "");
    assert_string_equal(r.err, "");
    free_result(&r);
}

static const char *in_folder(const char *folder, const char *name) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* The anchors of the published vectors. */
static void test_generator(void **state) {
    (void)state;
    static const double first[] = {-0.5544803143, 0.6172096729, -0.1424305439, -0.0732139349};
    assert_int_equal(demo_seed("pixel_values"), 1887384366u);
    float u[4], later[3];
    demo_fill("pixel_values", 0, 4, u);
    for (int i = 0; i < 4; i++) assert_true((double)u[i] > first[i] - 1e-10 && (double)u[i] < first[i] + 1e-10);
    demo_fill("pixel_values", 1, 3, later);
    assert_memory_equal(later, u + 1, sizeof later);
}

static void assert_rule(demo_init init, bool zero_centred, const char *name, int64_t rows, int64_t cols,
                        double scale, double offset) {
    int64_t shape[2] = {rows, cols};
    demo_rule rule = demo_value_rule(init, zero_centred, name, shape, cols ? 2 : 1);
    if (rule.scale != scale || rule.offset != offset) fail_msg("%s: %g, %g", name, rule.scale, rule.offset);
}

static void test_rules(void **state) {
    (void)state;
    const char *tower_norm = "model.visual.blocks.0.norm1.weight",
               *tower_fc = "model.visual.merger.linear_fc1.weight";
    const char *text_norm = "model.language_model.layers.0.input_layernorm.weight";
    const char *gated_norm = "model.language_model.layers.0.linear_attn.norm.weight";
    assert_rule(DEMO_QUARTER, false, tower_norm, 8, 0, 0.25, 1);
    assert_rule(DEMO_QUARTER, true, tower_norm, 8, 0, 0.25, 1);
    assert_rule(DEMO_QUARTER, false, text_norm, 8, 0, 0.25, 1);
    assert_rule(DEMO_QUARTER, true, text_norm, 8, 0, 0.25, 0);
    assert_rule(DEMO_QUARTER, true, gated_norm, 8, 0, 0.25, 1);
    assert_rule(DEMO_QUARTER, false, tower_fc, 8, 48, 0.25, 0);
    assert_rule(DEMO_QUARTER, false, "model.visual.blocks.0.norm1.bias", 8, 0, 0.25, 0);
    assert_rule(DEMO_SCALED, false, tower_norm, 8, 0, 0.25, 1);
    assert_rule(DEMO_SCALED, false, tower_fc, 8, 48, 0.25, 0); /* sqrt(3/48) */
    assert_rule(DEMO_SCALED, false, tower_fc, 8, 3, 1, 0);
    assert_rule(DEMO_SCALED, false, "model.visual.blocks.0.norm1.bias", 8, 0, 0.1, 0);
    assert_rule(DEMO_SCALED, false, "model.visual.pos_embed.weight", 8, 3, 0.25, 0);
    assert_rule(DEMO_SCALED, false, "model.language_model.embed_tokens.weight", 8, 3, 0.25, 0);
    assert_rule(DEMO_SCALED, false, "model.visual.patch_embed.proj.weight", 8, 3, 1, 0);
}

/* The SHA-256 of a file is the recorded one. */
static void assert_sha256(const char *path, const char *recorded) {
    size_t count;
    char *bytes = read_file(path, &count), found[QVL_SHA256_HEX];
    uint8_t digest[QVL_SHA256_BYTES];
    qvl_error error;
    assert_int_equal(qvl_sha256(bytes, count, digest, &error), QVL_OK);
    qvl_sha256_print(digest, found);
    if (strcmp(found, recorded) != 0) fail_msg("%s: SHA-256 %s, recorded %s", path, found, recorded);
    free(bytes);
}

/* The default folder is the same on every machine, byte for byte. */
static void test_default_folder(void **state) {
    (void)state;
    static const struct {
        const char *file, *sha256;
    } files[] = {
        {"config.json", "1597449f823e536079064b815232543baa6dff02a92b543cf41daaa5e82e9b3c"},
        {"generation_config.json", "943489b166a698e788a37fb8e6752328412b2ac30353c40db089db415e238e08"},
        {"preprocessor_config.json", "4863cd57e26a1cc8a3003d1518447da608172a18bfb47af6fee398134a9a03e5"},
        {"video_preprocessor_config.json", "a5671927ae9183ba5cbdd215e0dab83d806647c7572f0db6737bc29675161a1d"},
        {"model.safetensors", "954d32569b03630d4882e7e7488d0c33f6433ddb7015f518cdeac366d1bbb82f"},
        {"tokenizer.json", "f9a1c215e939ba3d72f056e584eb62d7e578ffea46555e88f4b8f65a3a592d5b"},
        {"tokenizer_config.json", "3c0ecd6112025a6d1b47c4fe29570641a3e5bbb96f97057b59ef32f4560c07ac"},
    };
    char folder[512];
    snprintf(folder, sizeof folder, "%s", scratch("default"));
    make(folder, ARGUMENTS("--shape", "demo"));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_sha256(in_folder(folder, files[i].file), files[i].sha256);
    assert_int_equal(count_files(folder), 7);
}

static void assert_shape_is(const qvl_tensor *tensor, const cJSON *shape) {
    assert_int_equal(tensor->ndim, cJSON_GetArraySize(shape));
    for (int32_t i = 0; i < tensor->ndim; i++)
        assert_int_equal(tensor->shape[i], cJSON_GetArrayItem(shape, i)->valueint);
}

/* The values of a tensor written with the quarter rule as f32. */
static void assert_quarter_values(const qvl_tensor *tensor, bool zero_centred) {
    demo_rule rule = demo_value_rule(DEMO_QUARTER, zero_centred, tensor->name, tensor->shape, tensor->ndim);
    size_t count = tensor_bytes(tensor) / 4;
    float *u = malloc(count * sizeof *u);
    demo_fill(tensor->name, 0, (int64_t)count, u);
    for (size_t i = 0; i < count; i++) u[i] = (float)(rule.offset + rule.scale * (double)u[i]);
    assert_memory_equal(u, tensor->data, count * sizeof *u);
    free(u);
}

/* The four tiny models have exactly the tensors of the published vectors. */
static void test_tiny_models(void **state) {
    (void)state;
    char *text = read_file(QVL_FIXTURES "/tiny_names.json", NULL);
    cJSON *all = cJSON_Parse(text);
    assert_int_equal(cJSON_GetArraySize(all), 4);
    const cJSON *model;
    cJSON_ArrayForEach(model, all) {
        char folder[512];
        snprintf(folder, sizeof folder, "%s", scratch(model->string));
        make(folder, ARGUMENTS("--shape", model->string, "--dtype", "f32"));
        qvl_tensor_file *file = open_tensors(in_folder(folder, "model.safetensors"));
        assert_int_equal(qvl_tensor_file_count(file), cJSON_GetArraySize(model));
        const cJSON *shape;
        cJSON_ArrayForEach(shape, model) {
            qvl_tensor tensor = tensor_of(file, shape->string);
            assert_int_equal(tensor.dtype, QVL_F32);
            assert_shape_is(&tensor, shape);
            assert_quarter_values(&tensor, strstr(model->string, "35") != NULL);
        }
        qvl_tensor_file_close(&file);
    }
    cJSON_Delete(all);
    free(text);
}

/* What the models' documents say: class, output width, deepstack. */
static void test_published_sizes(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int depth, hidden, heads, intermediate, out, deepstack;
    } published[] = {
        {"qwen3-vl-2b", 24, 1024, 16, 4096, 2048, 3},       {"qwen3-vl-4b", 24, 1024, 16, 4096, 2560, 3},
        {"qwen3-vl-8b", 27, 1152, 16, 4304, 4096, 3},       {"qwen3-vl-32b", 27, 1152, 16, 4304, 5120, 3},
        {"qwen3-vl-30b-a3b", 27, 1152, 16, 4304, 2048, 3},  {"qwen3-vl-235b-a22b", 27, 1152, 16, 4304, 4096, 3},
        {"qwen3.5-0.8b", 12, 768, 12, 3072, 1024, 0},       {"qwen3.5-2b", 24, 1024, 16, 4096, 2048, 0},
        {"qwen3.5-4b", 24, 1024, 16, 4096, 2560, 0},        {"qwen3.5-9b", 27, 1152, 16, 4304, 4096, 0},
        {"qwen3.5-27b", 27, 1152, 16, 4304, 5120, 0},       {"qwen3.6-27b", 27, 1152, 16, 4304, 5120, 0},
        {"qwen3.8-27b", 27, 1152, 16, 4304, 5120, 0},       {"qwen3.5-35b-a3b", 27, 1152, 16, 4304, 2048, 0},
        {"qwen3.6-35b-a3b", 27, 1152, 16, 4304, 2048, 0},   {"qwen3.5-122b-a10b", 27, 1152, 16, 4304, 3072, 0},
        {"qwen3.5-397b-a17b", 27, 1152, 16, 4304, 4096, 0}, {"qwen3.8-flash-next", 27, 1152, 16, 4304, 2560, 0},
    };
    size_t known = 0, count = sizeof published / sizeof *published;
    while (demo_shape_name(known)) known++;
    assert_int_equal(known, count + 10); /* demos, models of tests, tiny ones */
    for (size_t i = 0; i < count; i++) {
        demo_shape shape;
        if (!demo_shape_find(published[i].name, &shape)) fail_msg("no shape %s", published[i].name);
        const demo_vision *vision = &shape.vision;
        assert_int_equal(vision->depth, published[i].depth);
        assert_int_equal(vision->hidden, published[i].hidden);
        assert_int_equal(vision->heads, published[i].heads);
        assert_int_equal(vision->intermediate, published[i].intermediate);
        assert_int_equal(vision->out_hidden, published[i].out);
        assert_int_equal(vision->deepstack_count, published[i].deepstack);
        demo_tensor *tensors;
        size_t tensor_count;
        assert_true(demo_list_tensors(&shape, &tensors, &tensor_count));
        assert_int_equal(tensor_count, 3 + 12 * published[i].depth + 6 + 6 * published[i].deepstack);
        free(tensors);
    }
}

/* One shortened model of each family opens, and says the family's name. */
static void test_published_folders_open(void **state) {
    (void)state;
    static const struct {
        const char *shape, *model_type;
    } cases[] = {
        {"qwen3-vl-2b", "qwen3_vl"},        {"qwen3-vl-30b-a3b", "qwen3_vl_moe"}, {"qwen3.5-0.8b", "qwen3_5"},
        {"qwen3.6-35b-a3b", "qwen3_5_moe"}, {"qwen3.8-flash-next", "qwen4_exp"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *folder = scratch(cases[i].shape);
        make(folder, ARGUMENTS("--shape", cases[i].shape, "--depth", "1"));
        qvl_model_options options;
        qvl_model_options_init(&options);
        options.level = QVL_OPEN_HEADERS;
        qvl_model *model;
        qvl_error error;
        if (qvl_model_open(folder, &options, &model, &error)) fail_msg("%s", error.message);
        const qvl_model_info *info = qvl_model_get_info(model);
        assert_string_equal(info->model_type, cases[i].model_type);
        assert_int_equal(info->depth, 1);
        assert_int_equal(info->tensor_count, 3 + 12 + 6);
        assert_int_equal(info->image_limits.min_pixels, 65536);
        assert_int_equal(info->image_limits.max_pixels, 16777216);
        qvl_model_close(&model);
    }
}

/* Shards hold the same tensors as the single file, and every one of them is listed in the index. */
static void test_shards(void **state) {
    (void)state;
    char folder[512];
    snprintf(folder, sizeof folder, "%s", scratch("sharded"));
    make(folder, ARGUMENTS("--shards", "3"));
    assert_int_equal(count_files(folder), 6 + 1 + 3);
    char *text = read_file(in_folder(folder, "model.safetensors.index.json"), NULL);
    cJSON *index = cJSON_Parse(text);
    const cJSON *map = cJSON_GetObjectItem(index, "weight_map"), *entry;
    qvl_tensor_file *whole = open_tensors(QVL_RANDOM_MODEL "/model.safetensors");
    assert_int_equal(cJSON_GetArraySize(map), qvl_tensor_file_count(whole));
    size_t bytes = 0;
    cJSON_ArrayForEach(entry, map) {
        qvl_tensor_file *shard = open_tensors(in_folder(folder, entry->valuestring));
        qvl_tensor a = tensor_of(shard, entry->string), b = tensor_of(whole, entry->string);
        assert_same_tensor(&a, &b);
        bytes += tensor_bytes(&a);
        qvl_tensor_file_close(&shard);
    }
    const cJSON *total = cJSON_GetObjectItem(cJSON_GetObjectItem(index, "metadata"), "total_size");
    assert_int_equal(total->valueint, bytes);
    qvl_tensor_file_close(&whole);
    cJSON_Delete(index);
    free(text);
}

/* The same values under other names: of the tower, in any layout, and of the language model. */
static void test_namings(void **state) {
    (void)state;
    static const struct {
        const char *naming, *tower, *norm, *file;
    } namings[] = {
        {"hf", "model.visual.", "model.language_model.norm.weight", "model.safetensors"},
        {"visual", "visual.", "model.norm.weight", "model.safetensors"},
        {"mlx", "vision_tower.", "language_model.model.norm.weight", "model.safetensors"},
        {"stray", "model.language_model.visual.", "model.language_model.norm.weight", "model.safetensors"},
        {"flat", "", "norm.weight", "model.safetensors"},
        {"sidecar", "vision_tower.", "language_model.model.norm.weight", "optiq/optiq_vision.safetensors"},
    };
    qvl_tensor_file *demo = open_tensors(QVL_RANDOM_MODEL "/model.safetensors");
    qvl_tensor patch = tensor_of(demo, "model.visual.patch_embed.proj.weight");
    for (size_t i = 0; i < sizeof namings / sizeof *namings; i++) {
        char folder[512], name[128];
        snprintf(folder, sizeof folder, "%s", scratch(namings[i].naming));
        make(folder, ARGUMENTS("--naming", namings[i].naming, "--layout", "mlx"));
        qvl_tensor_file *file = open_tensors(in_folder(folder, namings[i].file));
        qvl_tensor_file *main_file = open_tensors(in_folder(folder, "model.safetensors"));
        qvl_tensor a = tensor_of(main_file, namings[i].norm), b = tensor_of(demo, namings[0].norm);
        assert_memory_equal(a.data, b.data, tensor_bytes(&b));
        snprintf(name, sizeof name, "%smerger.linear_fc1.weight", namings[i].tower);
        a = tensor_of(file, name);
        b = tensor_of(demo, "model.visual.merger.linear_fc1.weight");
        assert_memory_equal(a.data, b.data, tensor_bytes(&b));
        snprintf(name, sizeof name, "%spatch_embed.proj.weight", namings[i].tower);
        a = tensor_of(file, name);
        assert_memory_equal(a.shape, ((const int64_t[]){64, 2, 16, 16, 3}), 5 * sizeof(int64_t));
        const uint16_t *mlx = a.data, *hf = patch.data;
        for (size_t d = 0; d < 64; d++)
            for (size_t pixel = 0; pixel < 512; pixel += 37)
                for (size_t channel = 0; channel < 3; channel++)
                    assert_int_equal(mlx[(d * 512 + pixel) * 3 + channel], hf[(d * 3 + channel) * 512 + pixel]);
        qvl_tensor_file_close(&main_file);
        qvl_tensor_file_close(&file);
    }
    qvl_tensor_file_close(&demo);
}

static void test_refusals(void **state) {
    (void)state;
    char folder[512], full[512];
    snprintf(folder, sizeof folder, "%s", scratch("refused"));
    snprintf(full, sizeof full, "%s", scratch("full"));
    assert_int_equal(mkdir(full, 0777), 0);
    write_file(in_folder(full, "precious"), "kept", 4);
    const struct {
        const char *arguments[6];
        int code;
        const char *says;
    } cases[] = {
        {{folder, "--shape", "qwen3-vl-7b"}, 2, "qwen3-vl-7b"},
        {{folder, "--shape", "tiny-vl", "--depth", "4"}, 2, "fewer blocks"},
        {{folder, "--depth", "0"}, 2, "--depth 0"},
        {{folder, "--dtype", "f16"}, 2, "--dtype f16"},
        {{folder, "--init", "zero"}, 2, "--init zero"},
        {{folder, "--shards"}, 2, "--shards"},
        {{folder, "--naming", "torch"}, 2, "--naming torch"},
        {{folder, "--layout", "nhwc"}, 2, "--layout nhwc"},
        {{folder, "--naming", "sidecar", "--shards", "500"}, 1, "more shards than tensors"},
        {{folder, "--frob", "1"}, 2, "--frob"},
        {{folder, folder}, 2, "usage"},
        {{"--shape", "demo"}, 2, "usage"},
        {{folder, "--shards", "500"}, 1, "more shards than tensors"},
        {{full}, 1, "not an empty folder"},
        {{"/nowhere/at/all"}, 1, "/nowhere/at/all"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *arguments[8] = {QVL_RANDOM_MODEL_TOOL};
        memcpy(arguments + 1, cases[i].arguments, sizeof cases[i].arguments);
        result r = expect(cases[i].code, NULL, arguments);
        assert_says(r.err, cases[i].says);
        free_result(&r);
        struct stat status;
        assert_int_equal(stat(folder, &status), -1);
    }
    assert_int_equal(count_files(full), 1);
    result help = expect(0, NULL, ARGUMENTS(QVL_RANDOM_MODEL_TOOL, "--help"));
    assert_says(help.out, "qwen3.5-27b");
    free_result(&help);
}

/* Nothing temporary is left beside the folders that the tests above made. */
static void test_nothing_temporary_left(void **state) {
    (void)state;
    result r = run_program(ARGUMENTS("/bin/ls", scratch("")), NULL);
    assert_null(strstr(r.out, ".tmp"));
    free_result(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_generator),       cmocka_unit_test(test_rules),
        cmocka_unit_test(test_default_folder),  cmocka_unit_test(test_tiny_models),
        cmocka_unit_test(test_published_sizes), cmocka_unit_test(test_published_folders_open),
        cmocka_unit_test(test_shards),          cmocka_unit_test(test_namings),
        cmocka_unit_test(test_refusals),        cmocka_unit_test(test_nothing_temporary_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
