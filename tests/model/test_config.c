/* config.json and the preprocessor files: every published model, every refusal, and which file wins. */
#define _GNU_SOURCE
#include "test_folder.h"

#include "model/config.h"

static const struct published {
    const char *folder, *model_type;
    int32_t depth, hidden, heads, head_dim, intermediate, out;
    int32_t deepstack[3]; /* {0} is none */
} published[] = {
    {"qwen3-vl-2b", "qwen3_vl", 24, 1024, 16, 64, 4096, 2048, {5, 11, 17}},
    {"qwen3-vl-4b", "qwen3_vl", 24, 1024, 16, 64, 4096, 2560, {5, 11, 17}},
    {"qwen3-vl-8b", "qwen3_vl", 27, 1152, 16, 72, 4304, 4096, {8, 16, 24}},
    {"qwen3-vl-32b", "qwen3_vl", 27, 1152, 16, 72, 4304, 5120, {8, 16, 24}},
    {"qwen3-vl-30b-a3b", "qwen3_vl_moe", 27, 1152, 16, 72, 4304, 2048, {8, 16, 24}},
    {"qwen3-vl-235b-a22b", "qwen3_vl_moe", 27, 1152, 16, 72, 4304, 4096, {8, 16, 24}},
    {"qwen3.5-0.8b", "qwen3_5", 12, 768, 12, 64, 3072, 1024, {0}},
    {"qwen3.5-2b", "qwen3_5", 24, 1024, 16, 64, 4096, 2048, {0}},
    {"qwen3.5-4b", "qwen3_5", 24, 1024, 16, 64, 4096, 2560, {0}},
    {"qwen3.5-9b", "qwen3_5", 27, 1152, 16, 72, 4304, 4096, {0}},
    {"qwen3.5-27b", "qwen3_5", 27, 1152, 16, 72, 4304, 5120, {0}},
    {"qwen3.6-27b", "qwen3_5", 27, 1152, 16, 72, 4304, 5120, {0}},
    {"qwen3.8-27b", "qwen3_5", 27, 1152, 16, 72, 4304, 5120, {0}},
    {"qwen3.5-35b-a3b", "qwen3_5_moe", 27, 1152, 16, 72, 4304, 2048, {0}},
    {"qwen3.6-35b-a3b", "qwen3_5_moe", 27, 1152, 16, 72, 4304, 2048, {0}},
    {"qwen3.5-122b-a10b", "qwen3_5_moe", 27, 1152, 16, 72, 4304, 3072, {0}},
    {"qwen3.5-397b-a17b", "qwen3_5_moe", 27, 1152, 16, 72, 4304, 4096, {0}},
    {"qwen3.8-flash-next", "qwen4_exp", 27, 1152, 16, 72, 4304, 2560, {0}},
};

typedef struct notes {
    int count;
    char last[1024];
} notes;

static void take_note(const char *message, void *user) {
    notes *n = user;
    n->count++;
    snprintf(n->last, sizeof n->last, "%s", message);
}

static void test_published(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
        const struct published *p = &published[i];
        char folder[512];
        qvl_config c;
        qvl_error error;
        notes n = {0};
        snprintf(folder, sizeof folder, "%s/configs/%s", QVL_FIXTURES, p->folder);
        assert_ok(qvl_config_read(folder, take_note, &n, &c, &error), &error);
        assert_int_equal(n.count, 0);
        assert_string_equal(c.model_type, p->model_type);
        assert_int_equal(c.vision.depth, p->depth);
        assert_int_equal(c.vision.hidden_size, p->hidden);
        assert_int_equal(c.vision.num_heads, p->heads);
        assert_int_equal(c.vision.head_dim, p->head_dim);
        assert_int_equal(c.vision.intermediate_size, p->intermediate);
        assert_int_equal(c.vision.out_hidden_size, p->out);
        assert_int_equal(c.vision.in_channels, 3);
        assert_int_equal(c.vision.patch_size, 16);
        assert_int_equal(c.vision.temporal_patch_size, 2);
        assert_int_equal(c.vision.spatial_merge_size, 2);
        assert_int_equal(c.vision.num_position_embeddings, 2304);
        assert_int_equal(c.vision.position_side, 48);
        assert_int_equal(c.vision.deepstack_count, p->deepstack[0] ? 3 : 0);
        if (p->deepstack[0]) assert_memory_equal(c.vision.deepstack_indexes, p->deepstack, sizeof p->deepstack);
        assert_true(c.vision.rope_theta == 10000.0f);
        assert_true(c.processor.limits.min_pixels == 65536 && c.processor.limits.max_pixels == 16777216);
        assert_string_equal(c.processor.source, "preprocessor_config.json");
        for (int k = 0; k < 3; k++) assert_true(c.processor.mean[k] == 0.5f && c.processor.std[k] == 0.5f);
        assert_true(c.processor.rescale_factor == 1.0 / 255.0);
    }
}

/* ---------------------------------------------------------------------------------------------- vision_config */

#define SIZES "\"depth\":4,\"hidden_size\":32,\"num_heads\":2,\"intermediate_size\":64"
#define VISION(fields) "{\"model_type\":\"qwen3_vl\",\"vision_config\":{" fields "}}"

static qvl_status parse(const char *text, qvl_config *config, qvl_error *error) {
    return qvl_config_parse(text, strlen(text), "some/folder/config.json", config, error);
}

static const struct refusal {
    const char *text;
    qvl_status status;
    const char *says;
} refusals[] = {
    {"{", QVL_ERROR_FORMAT, "some/folder/config.json: not JSON: "},
    {"{\"model_type\":\"qwen3\"}", QVL_ERROR_MODEL,
     "no vision tower in some/folder: config.json has no vision_config"},
    {"{\"vision_config\":null}", QVL_ERROR_MODEL, "no vision tower in some/folder"},
    {"{\"vision_config\":3}", QVL_ERROR_FORMAT, "vision_config is 3; it must be an object"},
    {"{\"model_type\":1,\"vision_config\":{" SIZES "}}", QVL_ERROR_FORMAT, "model_type is 1; it must be a string"},
    {"{\"model_type\":\"qwen2_vl\",\"vision_config\":{" SIZES "}}", QVL_ERROR_UNSUPPORTED,
     "model_type is qwen2_vl,"},
    {"{\"model_type\":\"qwen2_5_vl\",\"vision_config\":{" SIZES "}}", QVL_ERROR_UNSUPPORTED,
     "model_type is qwen2_5_vl,"},
    {"{\"vision_config\":{\"model_type\":\"qwen2_5_vl_vision\"," SIZES "}}", QVL_ERROR_UNSUPPORTED,
     "vision_config: model_type is qwen2_5_vl_vision,"},
    {"{\"model_type\":\"0123456789012345678901234567890123456789012345678901234567890123\",\"vision_config\":"
     "{" SIZES "}}",
     QVL_ERROR_LIMIT, "model_type has 64 characters; at most 63"},
    {VISION("\"embed_dim\":1280," SIZES), QVL_ERROR_UNSUPPORTED,
     "vision_config has embed_dim: it is another tower"},
    {VISION("\"fullatt_block_indexes\":[7]," SIZES), QVL_ERROR_UNSUPPORTED, "has fullatt_block_indexes"},
    {VISION(""), QVL_ERROR_MODEL, "vision_config has no depth: not a tower"},
    {VISION("\"num_hidden_layers\":27,\"hidden_size\":32,\"num_heads\":2,\"intermediate_size\":64"),
     QVL_ERROR_MODEL, "has no depth"},
    {VISION("\"depth\":4,\"num_heads\":2,\"intermediate_size\":64"), QVL_ERROR_MODEL, "has no hidden_size"},
    {VISION("\"depth\":4,\"hidden_size\":32,\"intermediate_size\":64"), QVL_ERROR_MODEL, "has no num_heads"},
    {VISION("\"depth\":4,\"hidden_size\":32,\"num_heads\":2"), QVL_ERROR_MODEL, "has no intermediate_size"},
    {VISION("\"depth\":0,\"hidden_size\":32,\"num_heads\":2,\"intermediate_size\":64"), QVL_ERROR_FORMAT,
     "vision_config: depth is 0; it must be an integer in 1..1024"},
    {VISION("\"depth\":1025,\"hidden_size\":32,\"num_heads\":2,\"intermediate_size\":64"), QVL_ERROR_FORMAT,
     "depth is 1025; it must be an integer in 1..1024"},
    {VISION("\"depth\":\"27\",\"hidden_size\":32,\"num_heads\":2,\"intermediate_size\":64"), QVL_ERROR_FORMAT,
     "depth is \"27\"; it must be an integer"},
    {VISION("\"depth\":4,\"hidden_size\":65537,\"num_heads\":2,\"intermediate_size\":64"), QVL_ERROR_FORMAT,
     "hidden_size is 65537"},
    {VISION("\"depth\":4,\"hidden_size\":32,\"num_heads\":3,\"intermediate_size\":64"), QVL_ERROR_MODEL,
     "hidden_size 32 is not a multiple of the 3 heads"},
    {VISION("\"depth\":4,\"hidden_size\":36,\"num_heads\":6,\"intermediate_size\":64"), QVL_ERROR_MODEL,
     "a head has width 6 (hidden_size 36, 6 heads); it must be a multiple of 4"},
    {VISION("\"num_attention_heads\":4," SIZES), QVL_ERROR_MODEL, "num_heads is 2 but num_attention_heads is 4"},
    {VISION("\"head_dim\":8," SIZES), QVL_ERROR_FORMAT, "head_dim is 8; it must be an integer in 16..16"},
    {VISION("\"in_channels\":1," SIZES), QVL_ERROR_FORMAT, "in_channels is 1; it must be an integer in 3..3"},
    {VISION("\"spatial_merge_size\":9," SIZES), QVL_ERROR_FORMAT, "spatial_merge_size is 9"},
    {VISION("\"num_position_embeddings\":0," SIZES), QVL_ERROR_FORMAT, "num_position_embeddings is 0"},
    {VISION("\"patch_size\":0," SIZES), QVL_ERROR_FORMAT, "patch_size is 0; it must be an integer in 1..256"},
    {VISION("\"patch_size\":[16,14]," SIZES), QVL_ERROR_UNSUPPORTED, "patch_size is a list; it must be"},
    {VISION("\"patch_size\":[16]," SIZES), QVL_ERROR_UNSUPPORTED, "or a list of 2 equal ones"},
    {VISION("\"patch_size\":[]," SIZES), QVL_ERROR_UNSUPPORTED, "patch_size is a list"},
    {VISION("\"temporal_patch_size\":17," SIZES), QVL_ERROR_FORMAT, "temporal_patch_size is 17"},
    {VISION("\"hidden_act\":\"silu\"," SIZES), QVL_ERROR_UNSUPPORTED,
     "hidden_act is \"silu\"; it must be \"gelu_pytorch_tanh\""},
    {VISION("\"deepstack_visual_indexes\":3," SIZES), QVL_ERROR_FORMAT, "must be a list of block numbers"},
    {VISION("\"deepstack_visual_indexes\":[4]," SIZES), QVL_ERROR_MODEL,
     "deepstack_visual_indexes has the entry 4; entries must be increasing integers in 0..3"},
    {VISION("\"deepstack_visual_indexes\":[1,1]," SIZES), QVL_ERROR_MODEL, "has the entry 1"},
    {VISION("\"deepstack_visual_indexes\":[2,0]," SIZES), QVL_ERROR_MODEL, "has the entry 0"},
    {VISION("\"deepstack_visual_indexes\":[0.5]," SIZES), QVL_ERROR_MODEL, "has the entry 0.5"},
    {VISION("\"deepstack_visual_indexes\":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16],\"depth\":20,"
            "\"hidden_size\":32,\"num_heads\":2,\"intermediate_size\":64"),
     QVL_ERROR_LIMIT, "has more than 16 entries"},
    {VISION("\"rope_parameters\":{\"rope_type\":\"yarn\"}," SIZES), QVL_ERROR_UNSUPPORTED,
     "rope_type is \"yarn\"; it must be \"axial\""},
    {VISION("\"rope_scaling\":{\"type\":\"linear\"}," SIZES), QVL_ERROR_UNSUPPORTED, "rope_type is \"linear\""},
    {VISION("\"rope_parameters\":{\"rope_theta\":0}," SIZES), QVL_ERROR_FORMAT, "rope_theta is 0"},
    {VISION("\"depth\":1,\"hidden_size\":65536,\"num_heads\":16,\"intermediate_size\":64"), QVL_ERROR_LIMIT,
     "the qkv matrix has 196608 x 65536 elements; fewer than 2^31 are allowed"},
    {VISION("\"depth\":1,\"hidden_size\":16384,\"num_heads\":16,\"intermediate_size\":64"), QVL_ERROR_LIMIT,
     "the merger matrix has 65536 x 65536 elements"},
    {VISION(
         "\"depth\":1,\"hidden_size\":1024,\"num_heads\":16,\"intermediate_size\":64,\"out_hidden_size\":1048576"),
     QVL_ERROR_LIMIT, "the merger output matrix has 1048576 x 4096 elements"},
    {VISION("\"depth\":1,\"hidden_size\":1024,\"num_heads\":16,\"intermediate_size\":64,\"patch_size\":256,"
            "\"temporal_patch_size\":16"),
     QVL_ERROR_LIMIT, "the patch embedding has 3145728 x 1024 elements"},
    {VISION("\"depth\":1,\"hidden_size\":1024,\"num_heads\":16,\"intermediate_size\":64,"
            "\"num_position_embeddings\":16777216"),
     QVL_ERROR_LIMIT, "the position table has 16777216 x 1024 elements"},
    {VISION("\"depth\":1,\"hidden_size\":4096,\"num_heads\":16,\"intermediate_size\":1048576"), QVL_ERROR_LIMIT,
     "the MLP matrix has 1048576 x 4096 elements"},
};

static void test_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        qvl_config c;
        qvl_error error = {0};
        qvl_status status = parse(refusals[i].text, &c, &error);
        assert_failure(status, &error, refusals[i].status, refusals[i].says);
        assert_true(c.vision.depth == 0 && c.model_type[0] == 0);
    }
}

/* What is not in the file is what transformers takes. */
static void test_defaults_and_spellings(void **state) {
    (void)state;
    qvl_config c;
    qvl_error error;
    assert_ok(parse(VISION(SIZES), &c, &error), &error);
    assert_int_equal(c.vision.out_hidden_size, 3584);
    assert_int_equal(c.vision.patch_size, 16);
    assert_int_equal(c.vision.position_side, 48);
    assert_int_equal(c.vision.deepstack_count, 0);
    assert_true(c.vision.rope_theta == 10000.0f);

    const char *other = "{\"vision_config\":{\"model_type\":\"some_new_vision\",\"depth\":4,\"hidden_size\":32,"
                        "\"num_attention_heads\":4,\"intermediate_size\":64,\"patch_size\":[8,8],"
                        "\"temporal_patch_size\":[2],\"num_position_embeddings\":99,\"rope_theta\":500,"
                        "\"deepstack_visual_indexes\":[0,3],\"hidden_act\":null,\"unknown\":{}}}";
    assert_ok(parse(other, &c, &error), &error);
    assert_string_equal(c.model_type, "some_new_vision");
    assert_int_equal(c.vision.num_heads, 4);
    assert_int_equal(c.vision.head_dim, 8);
    assert_int_equal(c.vision.patch_size, 8);
    assert_int_equal(c.vision.temporal_patch_size, 2);
    assert_int_equal(c.vision.position_side, 9); /* floor of the root: 81 of 99 entries are used */
    assert_int_equal(c.vision.deepstack_count, 2);
    assert_int_equal(c.vision.deepstack_indexes[1], 3);
    assert_true(c.vision.rope_theta == 500.0f);

    assert_ok(
        parse(
            VISION(
                "\"rope_theta\":500,\"rope_parameters\":{\"rope_theta\":700.5,\"rope_type\":\"default\"}," SIZES),
            &c, &error),
        &error);
    assert_true(c.vision.rope_theta == 700.5f);
}

/* ------------------------------------------------------------------------------------------ preprocessor files */

static const qvl_vision_config tower = {.patch_size = 16, .temporal_patch_size = 2, .spatial_merge_size = 2};

static qvl_status parse_processor(const char *text, qvl_processor_config *p, qvl_error *error) {
    return qvl_processor_parse(text, strlen(text), "some/folder/preprocessor_config.json", &tower, p, error);
}

#define EDGES(a, b) "\"size\":{\"shortest_edge\":" a ",\"longest_edge\":" b "}"

static void test_limits(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t min, max;
        const char *source;
    } cases[] = {
        {"{" EDGES("65536", "16777216") "}", 65536, 16777216, "preprocessor_config.json"},
        {"{\"min_pixels\":1024,\"max_pixels\":4096}", 1024, 4096, "preprocessor_config.json"},
        {"{\"image_processor\":{" EDGES("1000", "2000") "}}", 1000, 2000, "preprocessor_config.json"},
        {"{\"image_processor\":{\"max_pixels\":2000}," EDGES("7", "8") "}", 3136, 2000,
         "preprocessor_config.json"},
        {"{" EDGES("65536", "16777216") ",\"min_pixels\":1024}", 1024, 16777216, "preprocessor_config.json"},
        {"{" EDGES("65536", "16777216") ",\"max_pixels\":99999}", 65536, 99999, "preprocessor_config.json"},
        {"{" EDGES("65536", "16777216") ",\"max_pixels\":null}", 65536, 16777216, "preprocessor_config.json"},
        {"{\"min_pixels\":1024}", 1024, 1003520, "preprocessor_config.json"},
        {"{\"max_pixels\":5000}", 3136, 5000, "preprocessor_config.json"},
        {"{\"size\":{\"shortest_edge\":10},\"max_pixels\":500}", 10, 500, "preprocessor_config.json"},
        {"{\"size\":{},\"min_pixels\":100,\"max_pixels\":500}", 100, 500, "preprocessor_config.json"},
        {"{\"max_pixels\":1e6}", 3136, 1000000, "preprocessor_config.json"},
        {"{}", 3136, 1003520, "class default"},
        {"{\"size\":null}", 3136, 1003520, "class default"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        qvl_processor_config p;
        qvl_error error;
        assert_ok(parse_processor(cases[i].text, &p, &error), &error);
        assert_int_equal(p.limits.min_pixels, cases[i].min);
        assert_int_equal(p.limits.max_pixels, cases[i].max);
        assert_string_equal(p.source, cases[i].source);
    }
}

static const struct refusal processor_refusals[] = {
    {"[]", QVL_ERROR_FORMAT, "preprocessor_config.json: the file is a list"},
    {"{\"image_processor\":1}", QVL_ERROR_FORMAT, "image_processor is 1; it must be an object"},
    {"{\"size\":{\"shortest_edge\":10}}", QVL_ERROR_FORMAT, "size must contain shortest_edge and longest_edge"},
    {"{\"size\":{\"longest_edge\":10}}", QVL_ERROR_FORMAT, "size must contain shortest_edge and longest_edge"},
    {"{\"size\":{\"height\":10,\"width\":10}}", QVL_ERROR_FORMAT, "size must contain shortest_edge"},
    {"{\"image_processor\":{\"size\":{}}}", QVL_ERROR_FORMAT,
     "preprocessor_config.json: image_processor: size must contain"},
    {"{\"size\":336}", QVL_ERROR_FORMAT, "size is 336; it must be an object"},
    {"{" EDGES("0", "10") "}", QVL_ERROR_FORMAT, "shortest_edge is 0; it must be an integer in 1.."},
    {"{" EDGES("10", "0") "}", QVL_ERROR_FORMAT, "longest_edge is 0"},
    {"{" EDGES("10", "1e300") "}", QVL_ERROR_FORMAT, "e+300; it must be an integer"},
    {"{\"min_pixels\":-1}", QVL_ERROR_FORMAT, "min_pixels is -1"},
    {"{\"max_pixels\":1.5}", QVL_ERROR_FORMAT, "max_pixels is 1.5"},
    {"{\"patch_size\":14}", QVL_ERROR_MODEL,
     "patch_size is 14, but config.json's vision_config has patch_size 16"},
    {"{\"temporal_patch_size\":1}", QVL_ERROR_MODEL, "temporal_patch_size is 1, but config.json's"},
    {"{\"merge_size\":4}", QVL_ERROR_MODEL,
     "merge_size is 4, but config.json's vision_config has spatial_merge_size 2"},
    {"{\"patch_size\":\"16\"}", QVL_ERROR_FORMAT, "patch_size is \"16\""},
    {"{\"resample\":2}", QVL_ERROR_UNSUPPORTED, "resample is 2; it must be 3 (bicubic)"},
    {"{\"resample\":\"bicubic\"}", QVL_ERROR_FORMAT, "resample is \"bicubic\""},
    {"{\"do_resize\":false}", QVL_ERROR_UNSUPPORTED, "do_resize is false"},
    {"{\"do_rescale\":false}", QVL_ERROR_UNSUPPORTED, "do_rescale is false"},
    {"{\"do_normalize\":false}", QVL_ERROR_UNSUPPORTED, "do_normalize is false"},
    {"{\"do_normalize\":0}", QVL_ERROR_FORMAT, "do_normalize is 0; it must be true or false"},
    {"{\"image_mean\":0.5}", QVL_ERROR_FORMAT, "image_mean must be a list of three numbers"},
    {"{\"image_mean\":[0.5,0.5]}", QVL_ERROR_FORMAT, "image_mean must be a list of three numbers"},
    {"{\"image_mean\":[0.5,0.5,\"0.5\"]}", QVL_ERROR_FORMAT, "image_mean must be a list of three numbers in -1e6"},
    {"{\"image_std\":[0.5,0,0.5]}", QVL_ERROR_FORMAT, "image_std must be a list of three numbers in 1e-6..1e6"},
    {"{\"image_std\":[0.5,0.5,0.5,0.5]}", QVL_ERROR_FORMAT, "image_std must be a list of three"},
    {"{\"rescale_factor\":0}", QVL_ERROR_FORMAT, "rescale_factor is 0"},
    {"{\"rescale_factor\":1e999}", QVL_ERROR_FORMAT, "rescale_factor is inf"},
};

static void test_processor_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof processor_refusals / sizeof processor_refusals[0]; i++) {
        qvl_processor_config p;
        qvl_error error = {0};
        qvl_status status = parse_processor(processor_refusals[i].text, &p, &error);
        assert_failure(status, &error, processor_refusals[i].status, processor_refusals[i].says);
        assert_int_equal(p.limits.max_pixels, 0);
    }
}

static void test_colour(void **state) {
    (void)state;
    qvl_processor_config p;
    qvl_error error;
    assert_ok(parse_processor("{\"image_mean\":[0.1,0.2,0.3],\"image_std\":[1,2,3e-1],\"rescale_factor\":0.5,"
                              "\"resample\":3,\"do_resize\":true,\"patch_size\":16,\"merge_size\":2}",
                              &p, &error),
              &error);
    assert_true(p.mean[0] == 0.1f && p.mean[1] == 0.2f && p.mean[2] == 0.3f);
    assert_true(p.std[0] == 1.0f && p.std[1] == 2.0f && p.std[2] == 0.3f);
    assert_true(p.rescale_factor == 0.5);
    assert_ok(parse_processor("{}", &p, &error), &error);
    assert_true(p.mean[0] == 0.48145466f && p.std[2] == 0.27577711f); /* CLIP's, as transformers */
}

/* -------------------------------------------------------------------------------------------------- the folder */

static void read_folder(test_folder *folder, qvl_config *c, notes *n) {
    qvl_error error;
    *n = (notes){0};
    assert_ok(qvl_config_read(folder->path, take_note, n, c, &error), &error);
}

#define HALVES "\"image_mean\":[0.5,0.5,0.5],\"image_std\":[0.5,0.5,0.5]"

static void test_which_file(void **state) {
    (void)state;
    test_folder folder;
    qvl_config c;
    notes n;
    folder_open(&folder);
    folder_write_text(&folder, "config.json", VISION(SIZES));

    read_folder(&folder, &c, &n);
    assert_int_equal(n.count, 1);
    assert_non_null(strstr(n.last, "no preprocessor file in /tmp/qvl-test-"));
    assert_string_equal(c.processor.source, "class default");
    assert_true(c.processor.limits.min_pixels == 3136 && c.processor.limits.max_pixels == 1003520);
    assert_true(c.processor.mean[0] == 0.5f && c.processor.std[2] == 0.5f);

    /* A processor_config.json of the old kind says nothing about pictures. */
    folder_write_text(&folder, "processor_config.json", "{\"processor_class\":\"Qwen3VLProcessor\"}");
    read_folder(&folder, &c, &n);
    assert_string_equal(c.processor.source, "class default");
    folder_write_text(&folder, "preprocessor_config.json", "{" EDGES("100", "200") "," HALVES "}");
    read_folder(&folder, &c, &n);
    assert_int_equal(n.count, 0);
    assert_string_equal(c.processor.source, "preprocessor_config.json");
    assert_true(c.processor.limits.min_pixels == 100 && c.processor.limits.max_pixels == 200);

    /* One of the new kind wins; agreement is silent. */
    folder_write_text(&folder, "processor_config.json",
                      "{\"image_processor\":{" EDGES("100", "200") "," HALVES "}}");
    read_folder(&folder, &c, &n);
    assert_int_equal(n.count, 0);
    assert_string_equal(c.processor.source, "processor_config.json");
    folder_write_text(&folder, "processor_config.json",
                      "{\"image_processor\":{" EDGES("100", "300") "," HALVES "}}");
    read_folder(&folder, &c, &n);
    assert_int_equal(n.count, 1);
    assert_non_null(strstr(n.last, "says otherwise (limits 100..200, not 100..300)"));
    assert_int_equal(c.processor.limits.max_pixels, 300);
    folder_write_text(&folder, "preprocessor_config.json", "{");
    read_folder(&folder, &c, &n);
    assert_int_equal(n.count, 1);
    assert_non_null(strstr(n.last, "the other file is not readable"));
    folder_close(&folder);
}

/* ------------------------------------------------------------------------------------------------------- videos */

static qvl_status parse_video(const char *text, qvl_video_config *v, qvl_error *error) {
    return qvl_video_config_parse(text, strlen(text), "some/folder/video_preprocessor_config.json", &tower, v,
                                  error);
}

static void test_video_settings(void **state) {
    (void)state;
    qvl_video_config v;
    qvl_error error;
    assert_ok(parse_video("{}", &v, &error), &error);
    assert_true(v.sample && v.fps == 2 && v.num_frames == 0 && v.min_frames == 4 && v.max_frames == 768);
    assert_true(!v.frame_cap && v.max_frame_tokens == 768);
    assert_true(v.processor.limits.min_pixels == 131072 && v.processor.limits.max_pixels == 786432);
    assert_true(v.processor.mean[0] == 0.5f && v.processor.std[2] == 0.5f);
    assert_string_equal(v.processor.source, "class default");
    assert_ok(
        parse_video(
            "{" EDGES(
                "4096",
                "25165824") ",\"fps\":1.5,\"min_frames\":1,\"max_frames\":9,"
                            "\"cap_pixels_per_frame\":true,\"max_video_tokens\":100,\"do_sample_frames\":false,"
                            "\"num_frames\":null}",
            &v, &error),
        &error);
    assert_true(!v.sample && v.fps == 1.5 && v.min_frames == 1 && v.max_frames == 9 && v.frame_cap);
    assert_true(v.max_frame_tokens == 100 && v.processor.limits.max_pixels == 25165824);
    /* null is not the same as absent; a count instead of a rate; a combined file. */
    assert_ok(parse_video("{\"fps\":null}", &v, &error), &error);
    assert_true(v.fps == 0 && v.num_frames == 0);
    assert_ok(parse_video("{\"num_frames\":8}", &v, &error), &error);
    assert_true(v.fps == 0 && v.num_frames == 8);
    assert_ok(parse_video("{\"video_processor\":{\"fps\":3},\"fps\":4}", &v, &error), &error);
    assert_true(v.fps == 3);
    /* Flat limits are those of pictures only (5.23.0). */
    assert_ok(parse_video("{\"min_pixels\":7,\"max_pixels\":9}", &v, &error), &error);
    assert_true(v.processor.limits.min_pixels == 131072);
    assert_failure(parse_video("{\"fps\":2,\"num_frames\":8}", &v, &error), &error, QVL_ERROR_MODEL,
                   "fps is 2 and num_frames is 8; only one");
    assert_failure(parse_video("{\"fps\":0}", &v, &error), &error, QVL_ERROR_FORMAT, "fps is 0");
    assert_failure(parse_video("{\"min_frames\":0}", &v, &error), &error, QVL_ERROR_FORMAT, "min_frames is 0");
    assert_failure(parse_video("{\"max_frames\":1e9}", &v, &error), &error, QVL_ERROR_FORMAT, "max_frames is");
    assert_failure(parse_video("{\"size\":{\"shortest_edge\":5}}", &v, &error), &error, QVL_ERROR_FORMAT,
                   "size must contain shortest_edge and longest_edge");
    assert_failure(parse_video("{\"temporal_patch_size\":3}", &v, &error), &error, QVL_ERROR_MODEL,
                   "video_preprocessor_config.json: temporal_patch_size is 3");
}

/* processor_config.json's member, else video_preprocessor_config.json, else what there is about pictures. */
static void test_which_video_file(void **state) {
    (void)state;
    test_folder folder;
    qvl_config c;
    notes n;
    folder_open(&folder);
    folder_write_text(&folder, "config.json", VISION(SIZES));
    read_folder(&folder, &c, &n);
    assert_string_equal(c.video.processor.source, "class default");
    assert_true(c.video.processor.limits.max_pixels == 786432 && c.video.fps == 2);
    folder_write_text(&folder, "preprocessor_config.json", "{" EDGES("100", "200") "," HALVES "}");
    read_folder(&folder, &c, &n);
    assert_string_equal(c.video.processor.source, "preprocessor_config.json");
    assert_true(c.video.processor.limits.max_pixels == 200);
    folder_write_text(&folder, "video_preprocessor_config.json", "{" EDGES("300", "400") ",\"fps\":5}");
    read_folder(&folder, &c, &n);
    assert_string_equal(c.video.processor.source, "video_preprocessor_config.json");
    assert_true(c.video.processor.limits.max_pixels == 400 && c.video.fps == 5);
    assert_true(c.processor.limits.max_pixels == 200);
    folder_write_text(&folder, "processor_config.json",
                      "{\"video_processor\":{" EDGES("500", "600") ",\"min_pixels\":1}}");
    read_folder(&folder, &c, &n);
    assert_string_equal(c.video.processor.source, "processor_config.json");
    assert_true(c.video.processor.limits.max_pixels == 600 && c.video.fps == 2);
    assert_int_equal(n.count, 1);
    assert_non_null(strstr(n.last, "are not limits of videos"));
    folder_close(&folder);
}

static void test_folder_notes_and_failures(void **state) {
    (void)state;
    test_folder folder;
    qvl_config c;
    qvl_error error;
    notes n;
    folder_open(&folder);
    assert_failure(qvl_config_read(folder.path, NULL, NULL, &c, &error), &error, QVL_ERROR_IO, "config.json");
    folder_write_text(&folder, "config.json", "{\"model_type\":\"qwen3\"}");
    assert_failure(qvl_config_read(folder.path, NULL, NULL, &c, &error), &error, QVL_ERROR_MODEL,
                   "no vision tower in /tmp/qvl-test-");
    folder_write_text(&folder, "config.json", VISION(SIZES));
    assert_ok(qvl_config_read(folder.path, NULL, NULL, &c, &error), &error);
    folder_write_text(&folder, "preprocessor_config.json", "{" EDGES("100", "200") "}");
    read_folder(&folder, &c, &n);
    assert_int_equal(n.count, 1);
    assert_non_null(strstr(n.last, "has no image_mean or image_std"));
    folder_write_text(&folder, "preprocessor_config.json", "{" HALVES "}");
    read_folder(&folder, &c, &n);
    assert_int_equal(n.count, 1);
    assert_non_null(strstr(n.last, "has no size: transformers' class default of 3136..1003520"));
    folder_write_text(&folder, "preprocessor_config.json", "{\"patch_size\":14}");
    assert_failure(qvl_config_read(folder.path, NULL, NULL, &c, &error), &error, QVL_ERROR_MODEL,
                   "preprocessor_config.json: patch_size is 14");
    folder_write_text(&folder, "processor_config.json", "{]");
    assert_failure(qvl_config_read(folder.path, NULL, NULL, &c, &error), &error, QVL_ERROR_FORMAT,
                   "/processor_config.json: not JSON: byte 1");
    assert_int_equal(c.vision.depth, 0);
    folder_close(&folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_defaults_and_spellings),
        cmocka_unit_test(test_video_settings),
        cmocka_unit_test(test_which_video_file),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_processor_refusals),
        cmocka_unit_test(test_colour),
        cmocka_unit_test(test_which_file),
        cmocka_unit_test(test_folder_notes_and_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
