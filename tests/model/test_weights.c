/* The tower's tensors in a folder: found, whole and in shards; and each way in which they can be wrong. */
#define _GNU_SOURCE
#include "model/checkpoint.h"

#include "model/weights.h"

static void assert_refused(test_folder *folder, qvl_status wanted, const char *says) {
    qvl_raw_tower tower;
    qvl_error error = {0};
    assert_failure(qvl_raw_tower_open(folder->path, &checkpoint_config, &tower, &error), &error, wanted, says);
    assert_true(!tower.files.files && !tower.blocks && tower.files.count == 0);
}

/* Saves the checkpoint as the only file of a folder and expects a refusal. */
static void assert_checkpoint_refused(checkpoint *c, qvl_status wanted, const char *says) {
    test_folder folder;
    folder_open(&folder);
    checkpoint_save(&folder, "model.safetensors", c->tensors, c->count);
    assert_refused(&folder, wanted, says);
    folder_close(&folder);
    checkpoint_free(c);
}

/* ------------------------------------------------------------------------------------------------ what is read */

static void assert_is(const checkpoint *c, const char *name, const qvl_tensor *tensor) {
    size_t i = checkpoint_find(c, name);
    float first;
    assert_string_equal(tensor->name, name);
    assert_int_equal(tensor->dtype, c->tensors[i].dtype);
    assert_int_equal(tensor->ndim, c->tensors[i].ndim);
    assert_memory_equal(tensor->shape, c->tensors[i].shape, sizeof tensor->shape);
    memcpy(&first, tensor->data, sizeof first);
    assert_true(first == c->data[i][0]);
}

static void assert_whole(const checkpoint *c, const qvl_raw_tower *t) {
    assert_is(c, "model.visual.patch_embed.proj.weight", &t->patch_embed.weight);
    assert_is(c, "model.visual.patch_embed.proj.bias", &t->patch_embed.bias);
    assert_is(c, "model.visual.pos_embed.weight", &t->pos_embed);
    assert_is(c, "model.visual.blocks.0.norm1.weight", &t->blocks[0].norm1.weight);
    assert_is(c, "model.visual.blocks.0.norm1.bias", &t->blocks[0].norm1.bias);
    assert_is(c, "model.visual.blocks.1.norm2.weight", &t->blocks[1].norm2.weight);
    assert_is(c, "model.visual.blocks.1.attn.qkv.weight", &t->blocks[1].qkv.weight);
    assert_is(c, "model.visual.blocks.1.attn.qkv.bias", &t->blocks[1].qkv.bias);
    assert_is(c, "model.visual.blocks.0.attn.proj.weight", &t->blocks[0].proj.weight);
    assert_is(c, "model.visual.blocks.1.mlp.linear_fc1.weight", &t->blocks[1].fc1.weight);
    assert_is(c, "model.visual.blocks.1.mlp.linear_fc2.bias", &t->blocks[1].fc2.bias);
    assert_is(c, "model.visual.merger.norm.weight", &t->merger.norm.weight);
    assert_is(c, "model.visual.merger.linear_fc1.weight", &t->merger.fc1.weight);
    assert_is(c, "model.visual.merger.linear_fc2.bias", &t->merger.fc2.bias);
    assert_is(c, "model.visual.deepstack_merger_list.0.norm.weight", &t->deepstack[0].norm.weight);
    assert_is(c, "model.visual.deepstack_merger_list.0.linear_fc1.bias", &t->deepstack[0].fc1.bias);
    assert_is(c, "model.visual.deepstack_merger_list.0.linear_fc2.weight", &t->deepstack[0].fc2.weight);
}

static void test_single_file(void **state) {
    (void)state;
    checkpoint c;
    test_folder folder;
    qvl_raw_tower tower;
    qvl_error error;
    checkpoint_build(&c, "model.visual.");
    folder_open(&folder);
    checkpoint_save(&folder, "model.safetensors", c.tensors, c.count);
    assert_ok(qvl_raw_tower_open(folder.path, &checkpoint_config, &tower, &error), &error);
    assert_whole(&c, &tower);
    assert_string_equal(tower.prefix, "model.visual.");
    assert_string_equal(tower.dtype, "F32");
    assert_int_equal(tower.tensor_count, TOWER_TENSORS);
    assert_int_equal(tower.files.count, 1);
    int64_t parameters = 0;
    for (size_t i = 0; i < TOWER_TENSORS; i++) {
        int64_t elements = 1;
        for (int32_t k = 0; k < c.tensors[i].ndim; k++) elements *= c.tensors[i].shape[k];
        parameters += elements;
    }
    assert_int_equal(tower.parameter_count, parameters);
    qvl_raw_tower_close(&tower);
    qvl_raw_tower_close(&tower);
    folder_close(&folder);
    checkpoint_free(&c);
}

static void test_other_prefix_dtypes_and_frequencies(void **state) {
    (void)state;
    checkpoint c;
    test_folder folder;
    qvl_raw_tower tower;
    qvl_error error;
    checkpoint_build(&c, "visual.");
    checkpoint_add(&c, "visual.", "rotary_pos_emb.inv_freq", 1, (const int64_t[]){2});
    c.tensors[c.count - 1].dtype = QVL_F64; /* ignored whatever it is */
    c.tensors[5].dtype = QVL_BF16;
    c.tensors[6].dtype = QVL_F16;
    folder_open(&folder);
    checkpoint_save(&folder, "model.safetensors", c.tensors, c.count);
    assert_ok(qvl_raw_tower_open(folder.path, &checkpoint_config, &tower, &error), &error);
    assert_string_equal(tower.prefix, "visual.");
    assert_string_equal(tower.dtype, "mixed");
    assert_int_equal(tower.tensor_count, TOWER_TENSORS);
    qvl_raw_tower_close(&tower);
    for (size_t i = 0; i < c.count; i++) c.tensors[i].dtype = QVL_BF16;
    checkpoint_save(&folder, "model.safetensors", c.tensors, c.count);
    assert_ok(qvl_raw_tower_open(folder.path, &checkpoint_config, &tower, &error), &error);
    assert_string_equal(tower.dtype, "BF16");
    qvl_raw_tower_close(&tower);
    folder_close(&folder);
    checkpoint_free(&c);
}

/* The first byte of data at an odd address: a header of 1 mod 8 bytes, as old writers made. */
static void test_unaligned(void **state) {
    (void)state;
    checkpoint c;
    test_folder folder;
    qvl_raw_tower tower;
    qvl_error error;
    uint8_t *bytes;
    size_t count;
    checkpoint_build(&c, "model.visual.");
    folder_open(&folder);
    checkpoint_save(&folder, "aligned", c.tensors, c.count);
    assert_ok(qvl_file_read(folder_file(&folder, "aligned"), 1 << 20, &bytes, &count, &error), &error);
    size_t header = (size_t)bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16;
    uint8_t *shifted = malloc(count + 1);
    assert_non_null(shifted);
    memcpy(shifted, bytes, 8 + header);
    shifted[8 + header] = ' ';
    memcpy(shifted + 8 + header + 1, bytes + 8 + header, count - 8 - header);
    shifted[0]++; /* was a multiple of 8 */
    folder_write(&folder, "model.safetensors", shifted, count + 1);
    assert_ok(qvl_raw_tower_open(folder.path, &checkpoint_config, &tower, &error), &error);
    assert_int_equal((uintptr_t)tower.pos_embed.data % 2, 1);
    assert_whole(&c, &tower);
    qvl_raw_tower_close(&tower);
    free(shifted);
    free(bytes);
    folder_close(&folder);
    checkpoint_free(&c);
}

/* --------------------------------------------------------------------------------------------- wrong checkpoints
 */

static void test_missing_and_unused(void **state) {
    (void)state;
    checkpoint c;
    checkpoint_build(&c, "model.visual.");
    checkpoint_drop(&c, "model.visual.blocks.1.attn.qkv.bias");
    assert_checkpoint_refused(&c, QVL_ERROR_MODEL,
                              ": 1 of 39 tower tensors are missing, first model.visual.blocks.1.attn.qkv.bias");

    checkpoint_build(&c, "model.visual.");
    checkpoint_drop(&c, "model.visual.merger.norm.weight");
    checkpoint_drop(&c, "model.visual.deepstack_merger_list.0.norm.bias");
    checkpoint_drop(&c, "model.visual.pos_embed.weight");
    assert_checkpoint_refused(&c, QVL_ERROR_MODEL,
                              ": 3 of 39 tower tensors are missing, first "
                              "model.visual.pos_embed.weight");

    checkpoint_build(&c, "model.visual.");
    checkpoint_add(&c, "model.visual.", "blocks.2.norm1.weight", 1, (const int64_t[]){8});
    checkpoint_add(&c, "model.visual.", "extra", 1, (const int64_t[]){8});
    assert_checkpoint_refused(
        &c, QVL_ERROR_MODEL,
        ": 2 tensors under model.visual. are not of the tower that config.json describes, first "
        "model.visual.blocks.2.norm1.weight");

    checkpoint_build(&c, "model.visual.");
    strcpy(c.names[checkpoint_find(&c, "model.visual.merger.norm.weight")], "model.visual.merger.ln_q.weight");
    assert_checkpoint_refused(
        &c, QVL_ERROR_MODEL,
        ": 1 of 39 tower tensors are missing, first model.visual.merger.norm.weight; 1 are not "
        "of this tower, first model.visual.merger.ln_q.weight");
}

static void test_no_tower(void **state) {
    (void)state;
    checkpoint c;
    checkpoint_build(&c, "model.sight.");
    assert_checkpoint_refused(&c, QVL_ERROR_MODEL, "no vision tower tensors in /tmp/qvl-test-");
    checkpoint_build(&c, "");
    c.tensors[0] = c.tensors[TOWER_TENSORS];
    c.count = 1;
    assert_checkpoint_refused(&c, QVL_ERROR_MODEL, "no vision tower tensors in /tmp/qvl-test-");

    test_folder folder;
    folder_open(&folder);
    folder_write_text(&folder, "model.safetensors.index.json",
                      "{\"weight_map\":{\"model.norm.weight\":\"not-there.safetensors\"}}");
    assert_refused(&folder, QVL_ERROR_MODEL, "no vision tower tensors in /tmp/qvl-test-");
    unlink(folder_file(&folder, "model.safetensors.index.json"));
    assert_refused(&folder, QVL_ERROR_MODEL, "no weights in /tmp/qvl-test-");
    folder_close(&folder);
}

static void test_shapes(void **state) {
    (void)state;
    checkpoint c;
    checkpoint_build(&c, "model.visual.");
    qvl_tensor *t = &c.tensors[checkpoint_find(&c, "model.visual.blocks.0.mlp.linear_fc1.weight")];
    t->shape[0] = 8;
    t->shape[1] = 12;
    assert_checkpoint_refused(&c, QVL_ERROR_MODEL,
                              "model.safetensors: tensor "
                              "model.visual.blocks.0.mlp.linear_fc1.weight has shape [8, 12]; "
                              "config.json asks for [12, 8]");
    checkpoint_build(&c, "model.visual.");
    t = &c.tensors[checkpoint_find(&c, "model.visual.merger.norm.weight")];
    t->ndim = 2;
    t->shape[1] = 1;
    assert_checkpoint_refused(&c, QVL_ERROR_MODEL, "has shape [8, 1]; config.json asks for [8]");

    static const struct {
        int32_t ndim;
        int64_t shape[QVL_MAX_DIMS];
        const char *says;
    } patches[] = {
        {5, {8, 2, 4, 3, 4}, "has shape [8, 2, 4, 3, 4]; "},
        {5, {8, 4, 4, 2, 3}, "has shape [8, 4, 4, 2, 3]; "},
        {5, {3, 8, 2, 4, 4}, "has shape [3, 8, 2, 4, 4]; "},
        {2, {96, 8}, "has shape [96, 8]; "},
        {2, {8, 95}, "has shape [8, 95]; "},
        {3, {8, 3, 32}, "has shape [8, 3, 32]; "},
        {4, {8, 3, 8, 4}, "has shape [8, 3, 8, 4]; "},
        {1, {768}, "has shape [768]; "},
    };
    for (size_t i = 0; i < sizeof patches / sizeof patches[0]; i++) {
        char says[256];
        checkpoint_build(&c, "model.visual.");
        t = &c.tensors[0];
        t->ndim = patches[i].ndim;
        memcpy(t->shape, patches[i].shape, sizeof t->shape);
        snprintf(says, sizeof says,
                 "tensor model.visual.patch_embed.proj.weight %sconfig.json asks for [8, 3, 2, 4, 4] (as Hugging "
                 "Face), [8, 2, 4, 4, 3] (as MLX) or [8, 96] (flat)",
                 patches[i].says);
        assert_checkpoint_refused(&c, QVL_ERROR_MODEL, says);
    }
}

static void test_dtypes(void **state) {
    (void)state;
    static const struct {
        const char *extra; /* a tensor added, or NULL */
        qvl_dtype dtype;   /* of that tensor, or of a weight */
        const char *says;
    } cases[] = {
        {NULL, QVL_F64,
         "model.visual.blocks.1.attn.qkv.weight has dtype F64; qvl reads towers in F32, BF16 and F16"},
        {NULL, QVL_U32, "model.visual.blocks.1.attn.qkv.weight has dtype U32"},
        {NULL, QVL_F8_E4M3, "model.visual.blocks.1.attn.qkv.weight has dtype F8_E4M3"},
        {NULL, QVL_I8, "model.visual.blocks.1.attn.qkv.weight has dtype I8"},
        {"blocks.0.attn.qkv.scales", QVL_BF16, "blocks.0.attn.qkv.scales (BF16) belongs to quantised weights"},
        {"blocks.0.attn.qkv.biases", QVL_F16, "blocks.0.attn.qkv.biases (F16) belongs to quantised weights"},
        {"blocks.0.attn.qkv.weight_scale_inv", QVL_F32, "weight_scale_inv (F32) belongs to quantised weights"},
        {"blocks.0.attn.qkv.weight_scale", QVL_F32, "weight_scale (F32) belongs to quantised weights"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        checkpoint c;
        checkpoint_build(&c, "model.visual.");
        if (cases[i].extra) checkpoint_add(&c, "model.visual.", cases[i].extra, 1, (const int64_t[]){1});
        size_t changed =
            cases[i].extra ? c.count - 1 : checkpoint_find(&c, "model.visual.blocks.1.attn.qkv.weight");
        c.tensors[changed].dtype = cases[i].dtype;
        assert_checkpoint_refused(&c, QVL_ERROR_UNSUPPORTED, cases[i].says);
    }
}

static void test_two_prefixes(void **state) {
    (void)state;
    checkpoint c;
    checkpoint_build(&c, "model.visual.");
    checkpoint_add(&c, "visual.", "blocks.0.norm1.weight", 1, (const int64_t[]){8});
    assert_checkpoint_refused(&c, QVL_ERROR_MODEL,
                              "has two towers: tensors under model.visual. and under visual. "
                              "(visual.blocks.0.norm1.weight)");
}

/* -------------------------------------------------------------------------------------------------------- shards
 */

/* An index: tensor i of the checkpoint is in shard i % 2, the language model's in a third. */
static void write_index(test_folder *folder, const checkpoint *c) {
    char *text = malloc(c->count * 160 + 64);
    assert_non_null(text);
    size_t used =
        (size_t)sprintf(text, "{\"metadata\":{},\"weight_map\":{\"lm_head.weight\":\"text.safetensors\"");
    for (size_t i = 0; i < TOWER_TENSORS; i++)
        used +=
            (size_t)sprintf(text + used, ",\"%s\":\"%s.safetensors\"", c->tensors[i].name, i % 2 ? "odd" : "even");
    sprintf(text + used, "}}");
    folder_write_text(folder, "model.safetensors.index.json", text);
    free(text);
}

/* The folder of write_index; the third shard is not even a safetensors file, since nothing should open it. */
static void write_shards(test_folder *folder, const checkpoint *c) {
    qvl_tensor shard[2][MAX_TENSORS];
    size_t counts[2] = {0, 0};
    for (size_t i = 0; i < TOWER_TENSORS; i++) shard[i % 2][counts[i % 2]++] = c->tensors[i];
    checkpoint_save(folder, "even.safetensors", shard[0], counts[0]);
    checkpoint_save(folder, "odd.safetensors", shard[1], counts[1]);
    folder_write_text(folder, "text.safetensors", "not opened");
    write_index(folder, c);
}

static void test_shards(void **state) {
    (void)state;
    checkpoint c;
    test_folder folder;
    qvl_raw_tower tower;
    qvl_error error;
    checkpoint_build(&c, "model.visual.");
    folder_open(&folder);
    write_shards(&folder, &c);
    assert_ok(qvl_raw_tower_open(folder.path, &checkpoint_config, &tower, &error), &error);
    assert_whole(&c, &tower);
    assert_int_equal(tower.files.count, 2);
    assert_int_equal(tower.tensor_count, TOWER_TENSORS);
    qvl_raw_tower_close(&tower);

    /* A single file beside an index goes first, as in transformers. */
    checkpoint_save(&folder, "model.safetensors", c.tensors, c.count);
    assert_ok(qvl_raw_tower_open(folder.path, &checkpoint_config, &tower, &error), &error);
    assert_int_equal(tower.files.count, 1);
    qvl_raw_tower_close(&tower);
    folder_close(&folder);
    checkpoint_free(&c);
}

static void test_wrong_shards(void **state) {
    (void)state;
    checkpoint c;
    test_folder folder;
    checkpoint_build(&c, "model.visual.");
    folder_open(&folder);

    write_shards(&folder, &c);
    unlink(folder_file(&folder, "odd.safetensors"));
    assert_refused(&folder, QVL_ERROR_MODEL,
                   "model.visual.patch_embed.proj.bias should be in odd.safetensors, which "
                   "is not in the folder");

    write_shards(&folder, &c);
    checkpoint_save(&folder, "odd.safetensors", c.tensors + 3, 1);
    assert_refused(&folder, QVL_ERROR_MODEL,
                   "model.safetensors.index.json: model.visual.patch_embed.proj.bias should "
                   "be in odd.safetensors, which has no such tensor");

    write_shards(&folder, &c);
    checkpoint_save(&folder, "odd.safetensors", c.tensors, TOWER_TENSORS);
    assert_refused(&folder, QVL_ERROR_MODEL, "is in two files, ");

    write_shards(&folder, &c);
    folder_write_text(&folder, "odd.safetensors", "damaged");
    assert_refused(&folder, QVL_ERROR_FORMAT, "odd.safetensors has 7 bytes; a safetensors file starts with");
    folder_close(&folder);
    checkpoint_free(&c);
}

static void test_wrong_index(void **state) {
    (void)state;
    static const struct {
        const char *text;
        qvl_status status;
        const char *says;
    } cases[] = {
        {"{", QVL_ERROR_FORMAT, "model.safetensors.index.json: not JSON: "},
        {"{}", QVL_ERROR_FORMAT, "index.json has no weight_map"},
        {"{\"weight_map\":[]}", QVL_ERROR_FORMAT, "weight_map is a list; it must be an object"},
        {"{\"weight_map\":{}}", QVL_ERROR_MODEL, "no vision tower tensors in"},
        {"{\"weight_map\":{\"model.visual.x\":1}}", QVL_ERROR_FORMAT,
         "the file of model.visual.x is 1; it must be"},
        {"{\"weight_map\":{\"model.visual.x\":\"\"}}", QVL_ERROR_FORMAT, "the file of model.visual.x is \"\""},
        {"{\"weight_map\":{\"visual.x\":\"../y\"}}", QVL_ERROR_FORMAT, "is \"../y\", outside the folder"},
        {"{\"weight_map\":{\"visual.x\":\"/etc/passwd\"}}", QVL_ERROR_FORMAT,
         "is \"/etc/passwd\", outside the folder"},
        {"{\"weight_map\":{\"visual.x\":\"..\"}}", QVL_ERROR_FORMAT, "is \"..\", outside the folder"},
    };
    test_folder folder;
    folder_open(&folder);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        folder_write_text(&folder, "model.safetensors.index.json", cases[i].text);
        assert_refused(&folder, cases[i].status, cases[i].says);
    }
    folder_close(&folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_file), cmocka_unit_test(test_other_prefix_dtypes_and_frequencies),
        cmocka_unit_test(test_unaligned),   cmocka_unit_test(test_missing_and_unused),
        cmocka_unit_test(test_no_tower),    cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_dtypes),      cmocka_unit_test(test_two_prefixes),
        cmocka_unit_test(test_shards),      cmocka_unit_test(test_wrong_shards),
        cmocka_unit_test(test_wrong_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
