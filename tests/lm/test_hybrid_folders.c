/* Folders of hybrid models: every form of names and layouts gives the same logits bit for bit; what is missing, of
 * another shape or not computed is refused by name and value. */
#define _GNU_SOURCE
#include "lm/hybrid.h"
#include "lm/text_config.h"
#include "model/test_folder.h"

/* ---- a folder rewritten tensor by tensor */

typedef struct rewriting {
    qvl_tensor tensors[512];
    char names[512][160];
    void *owned[512];
    size_t count;
} rewriting;

/* A tensor more; data: of this many floats, which the rewriting then owns. */
static void put_tensor(rewriting *w, const char *name, int32_t ndim, const int64_t *shape, float *data) {
    assert_true(w->count < 512);
    size_t i = w->count++;
    snprintf(w->names[i], sizeof w->names[i], "%s", name);
    w->owned[i] = data;
    w->tensors[i] = (qvl_tensor){.name = w->names[i], .dtype = QVL_F32, .ndim = ndim, .data = data};
    memcpy(w->tensors[i].shape, shape, (size_t)ndim * sizeof *shape);
}

static float *copy_floats(const qvl_tensor *t) {
    size_t bytes = (size_t)tensor_count(t) * sizeof(float);
    float *copy = malloc(bytes);
    memcpy(copy, t->data, bytes);
    return copy;
}

/* Writes a tensor of the folder, or what takes its place, or nothing. */
typedef void (*rewrite_fn)(rewriting *w, const qvl_tensor *t, const char *argument);

static void copy_configs(const char *from, const test_folder *to) {
    char command[512];
    snprintf(command, sizeof command, "cp '%s'/*.json '%s'/", from, to->path);
    assert_int_equal(system(command), 0);
}

static void rewrite(const char *from, test_folder *to, rewrite_fn fn, const char *argument) {
    static rewriting w;
    char path[512];
    w.count = 0;
    folder_open(to);
    copy_configs(from, to);
    snprintf(path, sizeof path, "%s/model.safetensors", from);
    qvl_tensor_file *file = NULL;
    qvl_error error;
    if (qvl_tensor_file_open(path, &file, &error)) fail_msg("%s", error.message);
    for (size_t i = 0; i < qvl_tensor_file_count(file); i++) {
        qvl_tensor t = qvl_tensor_file_get(file, i);
        assert_int_equal(t.dtype, QVL_F32);
        fn(&w, &t, argument);
    }
    assert_ok(qvl_tensors_save(folder_file(to, "model.safetensors"), w.tensors, w.count, NULL, 0, &error), &error);
    qvl_tensor_file_close(&file);
    for (size_t i = 0; i < w.count; i++) free(w.owned[i]);
}

/* ---- forms */

static bool ends_with(const char *text, const char *end) {
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

static void keep(rewriting *w, const qvl_tensor *t, const char *argument) {
    (void)argument;
    put_tensor(w, t->name, t->ndim, t->shape, copy_floats(t));
}

/* As mlx-vlm writes it: its names, convolutions [C, 4, 1], 1 added to zero-centred norms, experts in three stacks. */
static void as_mlx(rewriting *w, const qvl_tensor *t, const char *argument) {
    (void)argument;
    const char *text = "model.language_model.", *vision = "model.visual.";
    char name[160];
    float *x = copy_floats(t);
    int64_t shape[5];
    memcpy(shape, t->shape, sizeof shape);
    if (strncmp(t->name, vision, strlen(vision)) == 0)
        snprintf(name, sizeof name, "vision_tower.%s", t->name + strlen(vision));
    else if (strncmp(t->name, text, strlen(text)) == 0)
        snprintf(name, sizeof name, "language_model.model.%s", t->name + strlen(text));
    else
        snprintf(name, sizeof name, "language_model.%s", t->name);
    bool norm = ends_with(name, "norm.weight") && !strstr(name, "linear_attn") && !strstr(name, "vision_tower");
    for (int64_t i = 0; norm && i < tensor_count(t); i++) x[i] += 1.0f;
    if (ends_with(name, "conv1d.weight")) shape[1] = 4, shape[2] = 1;
    if (!ends_with(name, "experts.gate_up_proj") && !ends_with(name, "experts.down_proj")) {
        put_tensor(w, name, t->ndim, shape, x);
        return;
    }
    char *at = strstr(name, "experts."), base[160];
    snprintf(base, sizeof base, "%.*s", (int)(at - name), name);
    if (ends_with(name, "down_proj")) {
        snprintf(name, sizeof name, "%.120sswitch_mlp.down_proj.weight", base);
        put_tensor(w, name, 3, shape, x);
        return;
    }
    int64_t half = shape[1] / 2 * shape[2];
    for (int part = 0; part < 2; part++) {
        float *y = malloc((size_t)(shape[0] * half) * sizeof *y);
        for (int64_t e = 0; e < shape[0]; e++)
            memcpy(y + e * half, x + (2 * e + part) * half, (size_t)half * sizeof *y);
        snprintf(name, sizeof name, "%.120sswitch_mlp.%s_proj.weight", base, part ? "up" : "gate");
        put_tensor(w, name, 3, (int64_t[]){shape[0], shape[1] / 2, shape[2]}, y);
    }
    free(x);
}

/* A text export's names, and each expert on its own; an MTP head beside it all is not looked at. */
static void as_export(rewriting *w, const qvl_tensor *t, const char *argument) {
    (void)argument;
    const char *text = "model.language_model.";
    char name[160];
    if (strncmp(t->name, text, strlen(text)) != 0) {
        keep(w, t, NULL);
        return;
    }
    snprintf(name, sizeof name, "model.%s", t->name + strlen(text));
    if (ends_with(name, "embed_tokens.weight")) put_tensor(w, "mtp.fc.weight", 2, (int64_t[]){2, 2}, calloc(4, 4));
    char *at = strstr(name, ".experts.");
    if (!at) {
        put_tensor(w, name, t->ndim, t->shape, copy_floats(t));
        return;
    }
    int64_t rows = t->shape[1], cols = t->shape[2], parts = ends_with(name, "gate_up_proj") ? 2 : 1;
    for (int64_t e = 0; e < t->shape[0]; e++)
        for (int64_t part = 0; part < parts; part++) {
            char one[160];
            const char *kind = parts == 1 ? "down" : part ? "up" : "gate";
            snprintf(one, sizeof one, "%.*s.experts.%d.%s_proj.weight", (int)(at - name), name, (int)e, kind);
            float *x = malloc((size_t)(rows / parts * cols) * sizeof *x);
            memcpy(x, (const float *)t->data + (e * parts + part) * rows / parts * cols,
                   (size_t)(rows / parts * cols) * sizeof *x);
            put_tensor(w, one, 2, (int64_t[]){rows / parts, cols}, x);
        }
}

static void logits_of(const lm_case *c, const char *folder, float logits[64]) {
    speaker s = open_speaker(folder, QVL_F32, 1, QVL_CPU_ALL);
    qvl_prompt prompt = hybrid_prompt(c, "vectors", &s);
    qvl_sequence *q = open_sequence(s.lm, 0);
    float *all = prefill(q, &prompt, NULL);
    memcpy(logits, all, 64 * sizeof *all);
    free(all);
    qvl_sequence_close(&q);
    qvl_prompt_free(&prompt);
    close_speaker(&s);
}

static void test_forms(void **state) {
    (void)state;
    static const rewrite_fn forms[] = {keep, as_mlx, as_export};
    static const char *const shapes[] = {"tiny-35", "tiny-35moe"};
    for (int s = 0; s < 2; s++) {
        lm_case c = open_hybrid(shapes[s]);
        float want[64], got[64];
        logits_of(&c, c.folder, want);
        for (int i = 0; i < 3; i++) {
            test_folder folder;
            rewrite(c.folder, &folder, forms[i], NULL);
            logits_of(&c, folder.path, got);
            if (memcmp(want, got, sizeof want) != 0) fail_msg("%s: form %d has other logits", shapes[s], i);
            folder_close(&folder);
        }
        close_case(&c);
    }
}

/* ---- what is refused */

static void without(rewriting *w, const qvl_tensor *t, const char *name) {
    if (!ends_with(t->name, name)) keep(w, t, NULL);
}

/* One row less. */
static void shortened(rewriting *w, const qvl_tensor *t, const char *name) {
    int64_t shape[5];
    memcpy(shape, t->shape, sizeof shape);
    if (ends_with(t->name, name)) shape[0]--;
    put_tensor(w, t->name, t->ndim, shape, copy_floats(t));
}

static void with_more(rewriting *w, const qvl_tensor *t, const char *name) {
    keep(w, t, NULL);
    if (ends_with(t->name, "embed_tokens.weight")) put_tensor(w, name, 1, (int64_t[]){1}, calloc(1, 4));
}

/* One convolution in MLX's layout among others. */
static void with_mlx_taps(rewriting *w, const qvl_tensor *t, const char *name) {
    int64_t shape[5];
    memcpy(shape, t->shape, sizeof shape);
    if (ends_with(t->name, name)) shape[1] = shape[2], shape[2] = 1;
    put_tensor(w, t->name, t->ndim, shape, copy_floats(t));
}

static void refuse_folder(const char *folder, qvl_status wanted, const char *says) {
    qvl_model *model = open_model(folder, QVL_F32, 1, QVL_CPU_ALL);
    qvl_lm *lm = NULL;
    qvl_error error = {0};
    assert_failure(qvl_lm_open(model, NULL, &lm, &error), &error, wanted, says);
    assert_null(lm);
    qvl_model_close(&model);
}

static void test_refused_tensors(void **state) {
    (void)state;
    static const char *const needed[] = {"layers.0.linear_attn.in_proj_qkv.weight",
                                         "layers.1.linear_attn.in_proj_z.weight",
                                         "layers.2.linear_attn.in_proj_b.weight",
                                         "layers.0.linear_attn.in_proj_a.weight",
                                         "layers.1.linear_attn.conv1d.weight",
                                         "layers.2.linear_attn.A_log",
                                         "layers.0.linear_attn.dt_bias",
                                         "layers.1.linear_attn.norm.weight",
                                         "layers.2.linear_attn.out_proj.weight",
                                         "layers.3.self_attn.q_proj.weight",
                                         "layers.3.self_attn.k_norm.weight",
                                         "layers.0.input_layernorm.weight",
                                         "layers.0.mlp.shared_expert.up_proj.weight",
                                         "layers.1.mlp.shared_expert_gate.weight",
                                         "layers.2.mlp.experts.down_proj",
                                         "layers.3.mlp.gate.weight"};
    lm_case c = open_hybrid("tiny-35moe");
    test_folder folder;
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        rewrite(c.folder, &folder, without, needed[i]);
        refuse_folder(folder.path, QVL_ERROR_MODEL, needed[i]);
        folder_close(&folder);
        rewrite(c.folder, &folder, shortened, needed[i]);
        refuse_folder(folder.path, QVL_ERROR_MODEL, needed[i]);
        folder_close(&folder);
    }
    rewrite(c.folder, &folder, with_more, "model.language_model.layers.0.linear_attn.in_proj_ba.weight");
    refuse_folder(folder.path, QVL_ERROR_UNSUPPORTED, "in_proj_ba");
    folder_close(&folder);
    close_case(&c);
}

/* Where layers disagree about the form of norms, none is guessed. */
static void test_mixed_forms(void **state) {
    (void)state;
    static const struct {
        const char *mlx, *says;
    } cases[] = {
        {"layers.0.linear_attn.conv1d.weight",
         "layers.1.linear_attn.conv1d.weight is in Hugging Face's layout and layers before it are in MLX's"},
        {"layers.1.linear_attn.conv1d.weight",
         "layers.1.linear_attn.conv1d.weight is in MLX's layout and layers before it are in Hugging Face's"},
        {"layers.2.linear_attn.conv1d.weight",
         "layers.2.linear_attn.conv1d.weight is in MLX's layout and layers before it are in Hugging Face's"}};
    lm_case c = open_hybrid("tiny-35");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_folder folder;
        rewrite(c.folder, &folder, with_mlx_taps, cases[i].mlx);
        refuse_folder(folder.path, QVL_ERROR_MODEL, cases[i].says);
        folder_close(&folder);
    }
    close_case(&c);
}

static void test_configs(void **state) {
    (void)state;
    static const char good[] =
        "{\"model_type\":\"qwen3_5_moe\",\"text_config\":{\"vocab_size\":64,\"hidden_size\":24,\"num_hidden_"
        "layers\":5,"
        "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":16,\"max_position_embeddings\":512,"
        "\"num_experts\":6,\"num_experts_per_tok\":2,\"moe_intermediate_size\":16,"
        "\"shared_expert_intermediate_size\":12,\"linear_num_key_heads\":2,\"linear_num_value_heads\":4,"
        "\"linear_key_head_dim\":8,\"linear_value_head_dim\":8,\"linear_conv_kernel_dim\":4,"
        "\"layer_types\":[\"full_attention\",\"linear_attention\",\"linear_attention\",\"linear_attention\","
        "\"full_attention\"],\"rope_parameters\":{\"rope_theta\":1e7,\"partial_rotary_factor\":0.5,"
        "\"mrope_section\":[2,1,1],\"mrope_interleaved\":true,\"rope_type\":\"default\"}}}";
    static const struct {
        const char *find, *replace, *says;
        qvl_status status;
    } cases[] = {
        {"\"linear_num_key_heads\":2,", "", "has no linear_num_key_heads", QVL_ERROR_MODEL},
        {"\"linear_num_value_heads\":4", "\"linear_num_value_heads\":3", "is 3, which is no multiple",
         QVL_ERROR_MODEL},
        {"\"linear_key_head_dim\":8", "\"linear_key_head_dim\":1000", "linear_key_head_dim", QVL_ERROR_FORMAT},
        {"\"linear_value_head_dim\":8", "\"linear_value_head_dim\":0", "linear_value_head_dim", QVL_ERROR_FORMAT},
        {"\"linear_conv_kernel_dim\":4", "\"linear_conv_kernel_dim\":64", "linear_conv_kernel_dim",
         QVL_ERROR_FORMAT},
        {"[\"full_attention\",", "[", "layer_types has 4 entries for 5 layers", QVL_ERROR_MODEL},
        {"[\"full_attention\",", "[\"sliding_attention\",", "layer_types[0] is \"sliding_attention\"",
         QVL_ERROR_UNSUPPORTED},
        {"[\"full_attention\",", "[7,", "layer_types[0] is", QVL_ERROR_UNSUPPORTED},
        {"\"linear_conv", "\"attn_output_gate\":false,\"linear_conv", "attn_output_gate is false",
         QVL_ERROR_UNSUPPORTED},
        {"\"linear_conv", "\"output_gate_type\":\"sigmoid\",\"linear_conv", "output_gate_type is \"sigmoid\"",
         QVL_ERROR_UNSUPPORTED},
        {"\"shared_expert_intermediate_size\":12,", "", "has no shared_expert_intermediate_size", QVL_ERROR_MODEL},
    };
    qvl_text_config config;
    qvl_error error = {0};
    assert_ok(qvl_text_config_parse(good, strlen(good), "config.json", &config, &error), &error);
    assert_int_equal(config.hybrid.linear_layers, 3);
    assert_true(!config.hybrid.linear[0] && config.hybrid.linear[1] && !config.hybrid.linear[4]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2048];
        const char *at = strstr(good, cases[i].find);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, cases[i].replace,
                 at + strlen(cases[i].find));
        error = (qvl_error){0};
        qvl_status status = qvl_text_config_parse(text, strlen(text), "config.json", &config, &error);
        assert_failure(status, &error, cases[i].status, cases[i].says);
    }
    /* Without the list, every fourth layer, or as often as the file says. */
    char text[2048];
    const char *list = strstr(good, "\"layer_types\""), *end = strchr(list, ']') + 2;
    for (int interval = 0; interval <= 2; interval += 2) {
        snprintf(text, sizeof text, "%.*s%s%s", (int)(list - good), good,
                 interval ? "\"full_attention_interval\":2," : "", end);
        assert_ok(qvl_text_config_parse(text, strlen(text), "config.json", &config, &error), &error);
        for (int i = 0; i < 5; i++) assert_int_equal(config.hybrid.linear[i], (i + 1) % (interval ? 2 : 4) != 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_refused_tensors),
        cmocka_unit_test(test_mixed_forms),
        cmocka_unit_test(test_configs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
