/* One tower under every name, in every layout, in every kind of file; and what is refused, by the tensor's name.
 */
#define _GNU_SOURCE
#include "model/checkpoint.h"

#include "model/weights.h"

#include <sys/stat.h>

static const char *const prefixes[] = {"model.visual.", "visual.", "vision_tower.", "model.language_model.visual.",
                                       ""};
#define PREFIXES (sizeof prefixes / sizeof prefixes[0])
static const char *const layouts[] = {"hugging-face", "mlx", "flat"};
#define LAYOUTS (sizeof layouts / sizeof layouts[0])

static void assert_refused(test_folder *folder, qvl_status wanted, const char *says) {
    qvl_raw_tower tower;
    qvl_error error = {0};
    qvl_status status = qvl_raw_tower_open(folder->path, &checkpoint_config, &tower, &error);
    assert_failure(status, &error, wanted, says);
    assert_true(!tower.files.files && !tower.blocks && !tower.tensors && !tower.reordered);
}

static void open_tower(test_folder *folder, qvl_raw_tower *tower) {
    qvl_error error;
    assert_ok(qvl_raw_tower_open(folder->path, &checkpoint_config, tower, &error), &error);
}

/* The tower is the one that checkpoint_build makes under no prefix, to the last bit. */
static void assert_same_tower(const qvl_raw_tower *tower) {
    checkpoint c;
    checkpoint_build(&c, "");
    assert_int_equal(tower->tensor_count, TOWER_TENSORS);
    for (int32_t i = 0; i < TOWER_TENSORS; i++) {
        const qvl_tensor *found = &tower->tensors[i], *wanted = &c.tensors[checkpoint_find(&c, found->name)];
        size_t bytes = 4;
        for (int32_t k = 0; k < wanted->ndim; k++) bytes *= (size_t)wanted->shape[k];
        assert_int_equal(found->dtype, QVL_F32);
        assert_int_equal(found->ndim, wanted->ndim);
        assert_memory_equal(found->shape, wanted->shape, sizeof found->shape);
        assert_memory_equal(found->data, wanted->data, bytes);
        assert_true(i == 0 || strcmp(tower->tensors[i - 1].name, found->name) < 0);
    }
    assert_memory_equal(tower->patch_embed.weight.data, c.data[0], 8 * 96 * sizeof(float));
    checkpoint_free(&c);
}

/* ------------------------------------------------------------------------------------------------ what is read */

static void save_shards(test_folder *folder, const checkpoint *c) {
    char text[8192];
    size_t used = (size_t)sprintf(text, "{\"weight_map\":{\"x\":\"missing.safetensors\"");
    checkpoint_save(folder, "a.safetensors", c->tensors, 20);
    checkpoint_save(folder, "b.safetensors", c->tensors + 20, c->count - 20);
    for (size_t i = 0; i < c->count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, ",\"%s\":\"%s.safetensors\"", c->tensors[i].name,
                                 i < 20 ? "a" : "b");
    assert_true(used < sizeof text - 4);
    strcpy(text + used, "}}");
    folder_write_text(folder, "model.safetensors.index.json", text);
}

static void test_every_form(void **state) {
    (void)state;
    for (size_t p = 0; p < PREFIXES; p++)
        for (size_t l = 0; l < LAYOUTS; l++)
            for (int form = 0; form < 3; form++) {
                static const char *const sources[] = {"model.safetensors", "model.safetensors.index.json",
                                                      "optiq/optiq_vision.safetensors"};
                checkpoint c;
                test_folder folder;
                qvl_raw_tower tower;
                checkpoint_build(&c, prefixes[p]);
                checkpoint_lay_out(&c, layouts[l]);
                folder_open(&folder);
                if (form == 0) checkpoint_save_single(&folder, &c);
                if (form == 1) save_shards(&folder, &c);
                if (form == 2) checkpoint_save_sidecar(&folder, &c);
                open_tower(&folder, &tower);
                assert_string_equal(tower.prefix, prefixes[p]);
                assert_string_equal(tower.layout, layouts[l]);
                assert_string_equal(tower.files.source, sources[form]);
                assert_int_equal(tower.files.count, form == 1 ? 2 : 1);
                assert_same_tower(&tower);
                qvl_raw_tower_close(&tower);
                folder_close(&folder);
                checkpoint_free(&c);
            }
}

/* Both 16-bit types, element by element: values are bit patterns here. */
static void test_layout_of_halves(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        checkpoint c;
        test_folder folder;
        qvl_raw_tower tower;
        uint16_t mlx[8 * 96];
        checkpoint_build(&c, "vision_tower.");
        for (size_t d = 0; d < 8; d++)
            for (size_t pixel = 0; pixel < 32; pixel++)
                for (size_t channel = 0; channel < 3; channel++)
                    mlx[d * 96 + pixel * 3 + channel] = (uint16_t)(d * 96 + channel * 32 + pixel);
        c.tensors[0] = (qvl_tensor){c.names[0], i ? QVL_F16 : QVL_BF16, 5, {8, 2, 4, 4, 3}, mlx};
        folder_open(&folder);
        checkpoint_save_single(&folder, &c);
        open_tower(&folder, &tower);
        const uint16_t *hf = tower.patch_embed.weight.data;
        for (size_t k = 0; k < 8 * 96; k++) assert_int_equal(hf[k], k);
        assert_string_equal(tower.dtype, "mixed");
        qvl_raw_tower_close(&tower);
        folder_close(&folder);
        checkpoint_free(&c);
    }
}

/* Patches of 3 x 3 pixels: the shapes still differ while there are two frames. With three they do not. */
static void test_patches_of_three(void **state) {
    (void)state;
    for (int frames = 2; frames <= 3; frames++)
        for (size_t l = 0; l < LAYOUTS; l++) {
            checkpoint c;
            test_folder folder;
            qvl_raw_tower tower;
            qvl_error error = {0};
            qvl_vision_config config = checkpoint_config;
            config.patch_size = 3;
            config.temporal_patch_size = frames;
            const int64_t shapes[LAYOUTS][5] = {
                {8, 3, frames, 3, 3}, {8, frames, 3, 3, 3}, {8, 27 * (int64_t)frames}};
            checkpoint_build(&c, "vision_tower.");
            qvl_tensor *t = &c.tensors[0];
            t->ndim = l == 2 ? 2 : 5;
            memcpy(t->shape, shapes[l], sizeof shapes[l]);
            folder_open(&folder);
            checkpoint_save_single(&folder, &c);
            qvl_status status = qvl_raw_tower_open(folder.path, &config, &tower, &error);
            if (frames == 3 && l != 2) {
                assert_failure(
                    status, &error, QVL_ERROR_UNSUPPORTED,
                    "vision_tower.patch_embed.proj.weight: with patches of 3 x 3 pixels and 3 frames the "
                    "layouts of Hugging Face and MLX have the same shape");
            } else {
                assert_ok(status, &error);
                assert_string_equal(tower.layout, layouts[l]);
            }
            qvl_raw_tower_close(&tower);
            folder_close(&folder);
            checkpoint_free(&c);
        }
}

/* The cache of the hub: a snapshot folder of links into a folder of blobs. */
static void test_links(void **state) {
    (void)state;
    checkpoint c;
    test_folder blobs, snapshot;
    qvl_raw_tower tower;
    char blob[384];
    checkpoint_build(&c, "model.visual.");
    folder_open(&blobs);
    folder_open(&snapshot);
    save_shards(&blobs, &c);
    static const char *const files[] = {"a.safetensors", "b.safetensors", "model.safetensors.index.json"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(blob, sizeof blob, "%s", folder_file(&blobs, files[i]));
        assert_int_equal(symlink(blob, folder_file(&snapshot, files[i])), 0);
    }
    open_tower(&snapshot, &tower);
    assert_same_tower(&tower);
    qvl_raw_tower_close(&tower);
    unlink(folder_file(&blobs, "b.safetensors"));
    assert_refused(&snapshot, QVL_ERROR_MODEL, "should be in b.safetensors, which is not in the folder");
    folder_close(&snapshot);
    folder_close(&blobs);
    checkpoint_free(&c);
}

/* The sidecar is read although the other file has a tower too, and instead of it where it is wrong. */
static void test_sidecar_first(void **state) {
    (void)state;
    checkpoint c, other;
    test_folder folder;
    qvl_raw_tower tower;
    checkpoint_build(&c, "vision_tower.");
    checkpoint_lay_out(&c, "mlx");
    checkpoint_build(&other, "model.visual.");
    other.data[3][0] = 77;
    folder_open(&folder);
    checkpoint_save_single(&folder, &other);
    open_tower(&folder, &tower);
    assert_string_equal(tower.prefix, "model.visual.");
    qvl_raw_tower_close(&tower);

    checkpoint_save_sidecar(&folder, &c);
    open_tower(&folder, &tower);
    assert_string_equal(tower.files.source, "optiq/optiq_vision.safetensors");
    assert_same_tower(&tower);
    qvl_raw_tower_close(&tower);

    folder_write_text(&folder, "model.safetensors", "not opened");
    open_tower(&folder, &tower);
    qvl_raw_tower_close(&tower);

    checkpoint_save_single(&folder, &other);
    checkpoint_drop(&c, "vision_tower.merger.norm.bias");
    checkpoint_save_sidecar(&folder, &c);
    assert_refused(&folder, QVL_ERROR_MODEL,
                   "1 of 39 tower tensors are missing, first vision_tower.merger.norm.bias");
    checkpoint_save(&folder, "optiq/optiq_vision.safetensors", c.tensors + c.count - 1, 0);
    assert_refused(&folder, QVL_ERROR_MODEL, "no vision tower tensors in ");
    assert_refused(&folder, QVL_ERROR_MODEL, "/optiq/optiq_vision.safetensors (looked for ");
    folder_write_text(&folder, "optiq/optiq_vision.safetensors", "damaged");
    assert_refused(&folder, QVL_ERROR_FORMAT, "optiq_vision.safetensors has 7 bytes");
    folder_close(&folder);
    checkpoint_free(&other);
    checkpoint_free(&c);
}

/* Without a prefix only what starts like a part of the tower is the tower's; that is all accounted for. */
static void test_flat_beside_text(void **state) {
    (void)state;
    static const char *const text[] = {"layers.0.self_attn.q_proj.weight",
                                       "layers.0.mlp.up_proj.weight",
                                       "embed_tokens.weight",
                                       "norm.weight",
                                       "lm_head.weight",
                                       "mtp.blocks.0.norm1.weight",
                                       "block.0.norm1.weight",
                                       "mergers.norm.weight"};
    checkpoint c;
    test_folder folder;
    qvl_raw_tower tower;
    checkpoint_build(&c, "");
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
        checkpoint_add(&c, "", text[i], 1, (const int64_t[]){4});
        c.tensors[c.count - 1].dtype = QVL_U32; /* a quantised text model is no concern of the tower */
    }
    checkpoint_add(&c, "", "rotary_pos_emb.inv_freq", 1, (const int64_t[]){2});
    folder_open(&folder);
    checkpoint_save_single(&folder, &c);
    open_tower(&folder, &tower);
    assert_same_tower(&tower);
    qvl_raw_tower_close(&tower);

    checkpoint_add(&c, "", "blocks.2.norm1.weight", 1, (const int64_t[]){8});
    checkpoint_save_single(&folder, &c);
    assert_refused(&folder, QVL_ERROR_MODEL,
                   ": 1 tensors without a prefix are not of the tower that config.json describes, first "
                   "blocks.2.norm1.weight");
    folder_close(&folder);
    checkpoint_free(&c);
}

/* ---------------------------------------------------------------------------------------------- what is refused
 */

typedef enum harm { DROPPED, RENAMED, RESHAPED, RETYPED, HARMS } harm;

static void damage(checkpoint *c, size_t tensor, harm kind) {
    qvl_tensor *t = &c->tensors[tensor];
    if (kind == DROPPED) *t = c->tensors[--c->count];
    if (kind == RENAMED) c->names[tensor][strlen(c->names[tensor]) - 1] = 'z';
    if (kind == RESHAPED) t->shape[t->ndim - 1] *= 2; /* the memory is twice that of F32 */
    if (kind == RETYPED) t->dtype = QVL_F8_E4M3;
}

/* Report 83: renamed tensors, and then a tower of random numbers. Each tensor of each generation in turn. */
static void report_83_dropped_renamed_reshaped(void **state) {
    (void)state;
    test_folder folder;
    folder_open(&folder);
    for (size_t p = 0; p < PREFIXES; p++)
        for (size_t i = 0; i < TOWER_TENSORS; i++)
            for (harm kind = DROPPED; kind < HARMS; kind++) {
                checkpoint c;
                char name[96], says[320];
                checkpoint_build(&c, prefixes[p]);
                strcpy(name, c.names[i]);
                damage(&c, i, kind);
                if (kind == DROPPED)
                    snprintf(says, sizeof says, ": 1 of 39 tower tensors are missing, first %s", name);
                if (kind == RENAMED)
                    snprintf(says, sizeof says,
                             ": 1 of 39 tower tensors are missing, first %s; 1 are not of this tower, first %s",
                             name, c.names[i]);
                if (kind == RESHAPED)
                    snprintf(says, sizeof says, "model.safetensors: tensor %s has shape [", name);
                if (kind == RETYPED) snprintf(says, sizeof says, "tensor %s has dtype F8_E4M3; qvl reads", name);
                checkpoint_save_single(&folder, &c);
                assert_refused(&folder, kind == RETYPED ? QVL_ERROR_UNSUPPORTED : QVL_ERROR_MODEL, says);
                checkpoint_free(&c);
            }
    folder_close(&folder);
}

static void test_two_towers(void **state) {
    (void)state;
    static const char *const places[] = {"under model.visual.", "under visual.", "under vision_tower.",
                                         "under model.language_model.visual.", "without a prefix"};
    test_folder folder;
    folder_open(&folder);
    for (size_t a = 0; a < PREFIXES; a++)
        for (size_t b = 0; b < PREFIXES; b++) {
            checkpoint c;
            qvl_raw_tower tower;
            qvl_error error = {0};
            if (a == b) continue;
            checkpoint_build(&c, prefixes[a]);
            checkpoint_add(&c, prefixes[b], "merger.norm.weight", 1, (const int64_t[]){8});
            checkpoint_save_single(&folder, &c);
            assert_failure(qvl_raw_tower_open(folder.path, &checkpoint_config, &tower, &error), &error,
                           QVL_ERROR_MODEL, " has two towers: tensors ");
            assert_non_null(strstr(error.message, places[a]));
            assert_non_null(strstr(error.message, places[b]));
            checkpoint_free(&c);
        }
    folder_close(&folder);
}

/* Names that hold a known prefix, or a part, but do not start with it. */
static void test_names_that_are_not_towers(void **state) {
    (void)state;
    static const char *const names[] = {"model.model.visual.blocks.0.norm1.weight",
                                        "audio.visual.merger.norm.weight",
                                        "xvisual.blocks.0.norm1.weight",
                                        "model.visuals.blocks.0.norm1.weight",
                                        "vision_tower_2.blocks.0.norm1.weight",
                                        "vision_tower",
                                        "model.language_model.blocks.0.norm1.weight",
                                        "blocks",
                                        "language_model.model.layers.0.mlp.up_proj.weight",
                                        "model.vision_towers.merger.norm.weight"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (qvl_naming_of(names[i]) != QVL_NAMING_NONE) fail_msg("%s is taken for the tower's", names[i]);
    for (int i = 0; i <= QVL_NAMING_FLAT; i++) {
        char name[96];
        snprintf(name, sizeof name, "%smerger.norm.weight", qvl_naming_prefix((qvl_naming)i));
        assert_int_equal(qvl_naming_of(name), i);
    }
}

static void test_text_only(void **state) {
    (void)state;
    static const char *const names[] = {"model.language_model.layers.0.mlp.up_proj.weight", "lm_head.weight",
                                        "language_model.model.norm.weight", "layers.0.mlp.up_proj.weight",
                                        "norm.weight"};
    checkpoint c = {0};
    test_folder folder;
    char says[128];
    for (size_t i = 0; i < 5; i++) checkpoint_add(&c, "", names[i], 1, (const int64_t[]){4});
    folder_open(&folder);
    snprintf(says, sizeof says, "no vision tower tensors in %s (looked for model.visual.*", folder.path);
    checkpoint_save_single(&folder, &c);
    assert_refused(&folder, QVL_ERROR_MODEL, says);
    unlink(folder_file(&folder, "model.safetensors"));
    folder_write_text(&folder, "model.safetensors.index.json",
                      "{\"weight_map\":{\"layers.0.mlp.up_proj.weight\":\"a.safetensors\"}}");
    assert_refused(&folder, QVL_ERROR_MODEL, says);
    folder_close(&folder);
    checkpoint_free(&c);
}

/* Report 85: quantised towers, by what each scheme leaves in a file. Refused by the tensor's name and type. */
static void report_85_quantised_towers(void **state) {
    (void)state;
    static const struct {
        const char *tensor; /* of blocks.0.attn.qkv; "weight": that one is retyped */
        qvl_dtype dtype;
        const char *beside; /* another of them, or NULL */
        qvl_dtype beside_dtype;
        const char *says;
    } cases[] = {
        {"weight", QVL_U32, "scales", QVL_BF16,
         "qkv.weight has dtype U32: it is quantised (MLX, GPTQ or AWQ, to which"},
        {"weight", QVL_U32, "biases", QVL_BF16, "qkv.weight has dtype U32: it is quantised (MLX, to which"},
        {"biases", QVL_F16, NULL, QVL_F32, "qkv.biases (F16) belongs to quantised weights (MLX)"},
        {"weight", QVL_F8_E4M3, "weight_scale_inv", QVL_F32,
         "qkv.weight has dtype F8_E4M3: it is quantised (fp8 with block scales, to which"},
        {"weight", QVL_F8_E4M3, "weight_scale", QVL_F32, "qkv.weight has dtype F8_E4M3: it is quantised (fp8 or"},
        {"weight", QVL_F8_E5M2, NULL, QVL_F32, "qkv.weight has dtype F8_E5M2; qvl reads towers in F32, BF16"},
        {"weight_scale_inv", QVL_F32, NULL, QVL_F32,
         "qkv.weight_scale_inv (F32) belongs to quantised weights (fp8"},
        {"qweight", QVL_I32, "g_idx", QVL_I32, "has dtype I32: it is quantised (GPTQ"},
        {"qweight", QVL_I32, "qzeros", QVL_I32, "has dtype I32: it is quantised (GPTQ or AWQ"},
        {"weight_packed", QVL_I32, "weight_shape", QVL_I64, "has dtype I32: it is quantised (compressed-tensors"},
        {"weight", QVL_U8, "weight.absmax", QVL_U8, "qkv.weight has dtype U8: it is quantised (bitsandbytes"},
        {"weight", QVL_U8, "weight.quant_state.bitsandbytes__nf4", QVL_U8,
         "has dtype U8: it is quantised (bitsandb"},
        {"weight", QVL_I8, "SCB", QVL_F32, "qkv.weight has dtype I8: it is quantised (bitsandbytes, to which"},
        {"weight", QVL_U8, "weight_scale_2", QVL_F32, "qkv.weight has dtype U8: it is quantised (NVFP4"},
        {"weight", QVL_F4, NULL, QVL_F32, "qkv.weight has dtype F4; qvl reads"},
        {"weight", QVL_F64, NULL, QVL_F32, "qkv.weight has dtype F64; qvl reads"},
    };
    const char *weight = "blocks.0.attn.qkv.weight";
    test_folder folder;
    folder_open(&folder);
    for (size_t p = 0; p < PREFIXES; p++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            checkpoint c;
            char name[96];
            checkpoint_build(&c, prefixes[p]);
            snprintf(name, sizeof name, "%s%s", prefixes[p], weight);
            if (strcmp(cases[i].tensor, "weight") == 0) {
                c.tensors[checkpoint_find(&c, name)].dtype = cases[i].dtype;
            } else {
                snprintf(name, sizeof name, "blocks.0.attn.qkv.%s", cases[i].tensor);
                checkpoint_add(&c, prefixes[p], name, 1, (const int64_t[]){4});
                c.tensors[c.count - 1].dtype = cases[i].dtype;
            }
            if (cases[i].beside) {
                snprintf(name, sizeof name, "blocks.0.attn.qkv.%s", cases[i].beside);
                checkpoint_add(&c, prefixes[p], name, 1, (const int64_t[]){4});
                c.tensors[c.count - 1].dtype = cases[i].beside_dtype;
            }
            checkpoint_save_single(&folder, &c);
            assert_refused(&folder, QVL_ERROR_UNSUPPORTED, cases[i].says);
            assert_refused(&folder, QVL_ERROR_UNSUPPORTED, prefixes[p]);
            checkpoint_free(&c);
        }
    folder_close(&folder);
}

/* Report 85, the other half: only the tower's types matter, a quantised language model is no obstacle; the three
 * types that are read may be mixed. A type that no one knows is refused wherever it is. */
static void report_85_mixed_types(void **state) {
    (void)state;
    checkpoint c;
    test_folder folder;
    qvl_raw_tower tower;
    checkpoint_build(&c, "vision_tower.");
    static const qvl_dtype types[] = {QVL_F32, QVL_BF16, QVL_F16};
    for (size_t i = 0; i < TOWER_TENSORS; i++) c.tensors[i].dtype = types[i % 3];
    checkpoint_add(&c, "language_model.model.", "layers.0.mlp.up_proj.weight", 2, (const int64_t[]){4, 2});
    c.tensors[c.count - 1].dtype = QVL_U32;
    checkpoint_add(&c, "language_model.model.", "layers.0.mlp.up_proj.scales", 1, (const int64_t[]){4});
    checkpoint_add(&c, "language_model.model.", "layers.0.mlp.up_proj.biases", 1, (const int64_t[]){4});
    folder_open(&folder);
    checkpoint_save_single(&folder, &c);
    open_tower(&folder, &tower);
    assert_string_equal(tower.dtype, "mixed");
    for (int32_t i = 0; i < tower.tensor_count; i++) {
        char name[96];
        snprintf(name, sizeof name, "vision_tower.%s", tower.tensors[i].name);
        assert_int_equal(tower.tensors[i].dtype, types[checkpoint_find(&c, name) % 3]);
    }
    qvl_raw_tower_close(&tower);
    const char unknown[] = "\x41\0\0\0\0\0\0\0"
                           "{\"visual.x\":{\"dtype\":\"F8_E3M4\",\"shape\":[4],\"data_offsets\":[0,4]}}1234";
    folder_write(&folder, "model.safetensors", unknown, sizeof unknown - 1);
    assert_refused(&folder, QVL_ERROR_UNSUPPORTED, "tensor visual.x has the unknown dtype \"F8_E3M4\"");
    folder_close(&folder);
    checkpoint_free(&c);
}

/* --------------------------------------------------------------------------------------------------- sick shards
 */

/* A download that stopped: every kind of cut is refused with the file's name. */
static void test_short_shard(void **state) {
    (void)state;
    checkpoint c;
    test_folder folder;
    uint8_t *bytes;
    size_t count;
    qvl_error error;
    checkpoint_build(&c, "model.visual.");
    folder_open(&folder);
    save_shards(&folder, &c);
    assert_ok(qvl_file_read(folder_file(&folder, "b.safetensors"), 1 << 20, &bytes, &count, &error), &error);
    for (size_t cut = 0; cut < 20; cut++) {
        folder_write(&folder, "b.safetensors", bytes, count * cut / 20);
        assert_refused(&folder, QVL_ERROR_FORMAT, "/b.safetensors");
    }
    folder_write(&folder, "b.safetensors", bytes, count - 1);
    assert_refused(&folder, QVL_ERROR_FORMAT, " bytes: the file is cut short");
    folder_write_text(&folder, "b.safetensors",
                      "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1077302120\n");
    assert_refused(&folder, QVL_ERROR_FORMAT,
                   "b.safetensors is a Git LFS pointer, not the file that it points to");
    free(bytes);
    folder_close(&folder);
    checkpoint_free(&c);
}

/* Each with a message of its own, under MLX's names too: stale index, missing shard, a tensor in two. */
static void test_sick_shards(void **state) {
    (void)state;
    for (size_t p = 0; p < PREFIXES; p++) {
        checkpoint c;
        test_folder folder;
        char says[256];
        checkpoint_build(&c, prefixes[p]);
        folder_open(&folder);
        save_shards(&folder, &c);
        checkpoint_save(&folder, "b.safetensors", c.tensors + 21, c.count - 21);
        snprintf(says, sizeof says, "index.json: %s should be in b.safetensors, which has no such tensor",
                 c.tensors[20].name);
        assert_refused(&folder, QVL_ERROR_MODEL, says);
        checkpoint_save(&folder, "b.safetensors", c.tensors + 19, c.count - 19);
        snprintf(says, sizeof says, "tensor %s is in two files, ", c.tensors[19].name);
        assert_refused(&folder, QVL_ERROR_MODEL, says);
        unlink(folder_file(&folder, "b.safetensors"));
        snprintf(says, sizeof says, "index.json: %s should be in b.safetensors, which is not in the folder",
                 c.tensors[20].name);
        assert_refused(&folder, QVL_ERROR_MODEL, says);
        folder_close(&folder);
        checkpoint_free(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_form),
        cmocka_unit_test(test_layout_of_halves),
        cmocka_unit_test(test_patches_of_three),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_sidecar_first),
        cmocka_unit_test(test_flat_beside_text),
        cmocka_unit_test(report_83_dropped_renamed_reshaped),
        cmocka_unit_test(test_two_towers),
        cmocka_unit_test(test_names_that_are_not_towers),
        cmocka_unit_test(test_text_only),
        cmocka_unit_test(report_85_quantised_towers),
        cmocka_unit_test(report_85_mixed_types),
        cmocka_unit_test(test_short_shard),
        cmocka_unit_test(test_sick_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
