#include "configs.h"
#include "tokenizer.h"

static const struct family_names {
    const char *model_type, *architecture, *vision_type, *text_type;
} families[] = {
    /* The Qwen3-VL files repeat the top-level name inside vision_config; later ones have a name of its own. */
    [DEMO_QWEN3_VL] = {"qwen3_vl", "Qwen3VLForConditionalGeneration", "qwen3_vl", "qwen3_vl_text"},
    [DEMO_QWEN3_VL_MOE] = {"qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe",
                           "qwen3_vl_moe_text"},
    [DEMO_QWEN3_5] = {"qwen3_5", "Qwen3_5ForConditionalGeneration", "qwen3_5_vision", "qwen3_5_text"},
    [DEMO_QWEN3_5_MOE] = {"qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe_vision",
                          "qwen3_5_moe_text"},
    [DEMO_QWEN4_EXP] = {"qwen4_exp", "Qwen4ExpForConditionalGeneration", "qwen4_exp_vision", "qwen4_exp_text"},
};

static void put_number(cJSON *object, const char *key, double value) {
    cJSON_AddNumberToObject(object, key, value);
}

static void put_string(cJSON *object, const char *key, const char *value) {
    cJSON_AddStringToObject(object, key, value);
}

static void put_ints(cJSON *object, const char *key, const int *values, int count) {
    cJSON_AddItemToObject(object, key, cJSON_CreateIntArray(values, count));
}

static cJSON *vision_config(const demo_shape *shape) {
    const demo_vision *vision = &shape->vision;
    cJSON *json = cJSON_CreateObject();
    put_ints(json, "deepstack_visual_indexes", vision->deepstack, vision->deepstack_count);
    put_number(json, "depth", vision->depth);
    put_string(json, "hidden_act", "gelu_pytorch_tanh");
    put_number(json, "hidden_size", vision->hidden);
    put_number(json, "in_channels", 3);
    put_number(json, "intermediate_size", vision->intermediate);
    put_string(json, "model_type", families[shape->family].vision_type);
    put_number(json, "num_heads", vision->heads);
    put_number(json, "num_position_embeddings", vision->positions);
    put_number(json, "out_hidden_size", vision->out_hidden);
    put_number(json, "patch_size", vision->patch);
    put_number(json, "spatial_merge_size", 2);
    put_number(json, "temporal_patch_size", 2);
    return json;
}

static void put_rope(cJSON *json, const demo_text *text) {
    cJSON *rope = cJSON_AddObjectToObject(json, "rope_parameters");
    cJSON_AddTrueToObject(rope, "mrope_interleaved");
    put_ints(rope, "mrope_section", text->mrope_section, 3);
    if (text->partial_rotary > 0) put_number(rope, "partial_rotary_factor", text->partial_rotary);
    put_number(rope, "rope_theta", text->rope_theta);
    put_string(rope, "rope_type", "default");
}

static void put_experts(cJSON *json, const demo_shape *shape) {
    const demo_text *text = &shape->text;
    put_number(json, "moe_intermediate_size", text->expert_intermediate);
    put_number(json, "num_experts", text->experts);
    put_number(json, "num_experts_per_tok", text->experts_per_token);
    if (text->shared_intermediate) {
        put_number(json, "shared_expert_intermediate_size", text->shared_intermediate);
        return;
    }
    put_number(json, "decoder_sparse_step", 1);
    cJSON_AddArrayToObject(json, "mlp_only_layers");
    cJSON_AddTrueToObject(json, "norm_topk_prob");
}

static void put_hybrid(cJSON *json, const demo_shape *shape) {
    const demo_text *text = &shape->text;
    cJSON *types = cJSON_AddArrayToObject(json, "layer_types");
    for (int layer = 0; layer < text->layers; layer++)
        cJSON_AddItemToArray(
            types, cJSON_CreateString(demo_layer_is_linear(shape, layer) ? "linear_attention" : "full_attention"));
    put_number(json, "linear_conv_kernel_dim", 4);
    put_number(json, "linear_key_head_dim", text->linear_head_dim);
    put_number(json, "linear_num_key_heads", text->linear_key_heads);
    put_number(json, "linear_num_value_heads", text->linear_value_heads);
    put_number(json, "linear_value_head_dim", text->linear_head_dim);
}

static void put_flash_next(cJSON *json) {
    put_number(json, "hc_count", 4);
    put_number(json, "hc_lowrank", 320);
    put_number(json, "heads_per_ngram", 8);
    put_number(json, "indexer_budget", 2048);
    put_number(json, "indexer_compress_ratio", 4);
    put_number(json, "indexer_head_dim", 128);
    put_number(json, "indexer_kv_heads", 1);
    put_number(json, "indexer_n_heads", 4);
    put_number(json, "ngram_size", 3);
    put_number(json, "ngram_vocab_size_base", 20000000);
    put_string(json, "output_gate_type", "sigmoid");
    put_number(json, "ple_conv_kernel_size", 4);
    put_ints(json, "ple_layer_ids", (int[1]){2}, 1);
    put_number(json, "split_ngram_parts", 128);
}

static cJSON *text_config(const demo_shape *shape) {
    const demo_text *text = &shape->text;
    cJSON *json = cJSON_CreateObject();
    put_number(json, "eos_token_id", shape->tokens.end);
    put_number(json, "head_dim", text->head_dim);
    put_string(json, "hidden_act", "silu");
    put_number(json, "hidden_size", shape->vision.out_hidden);
    if (text->intermediate) put_number(json, "intermediate_size", text->intermediate);
    put_number(json, "max_position_embeddings", text->max_positions);
    put_string(json, "model_type", families[shape->family].text_type);
    put_number(json, "num_attention_heads", text->heads);
    put_number(json, "num_hidden_layers", text->layers);
    put_number(json, "num_key_value_heads", text->kv_heads);
    put_number(json, "rms_norm_eps", 1e-6);
    put_rope(json, text);
    cJSON_AddBoolToObject(json, "tie_word_embeddings", text->tied);
    put_number(json, "vocab_size", text->vocab);
    if (text->experts) put_experts(json, shape);
    if (demo_family_hybrid(shape->family)) put_hybrid(json, shape);
    if (shape->family == DEMO_QWEN4_EXP) put_flash_next(json);
    return json;
}

cJSON *demo_config(const demo_shape *shape, const char *dtype) {
    const struct family_names *family = &families[shape->family];
    cJSON *json = cJSON_CreateObject();
    cJSON *architectures = cJSON_AddArrayToObject(json, "architectures");
    cJSON_AddItemToArray(architectures, cJSON_CreateString(family->architecture));
    cJSON *demo = cJSON_AddObjectToObject(json, "random_model"); /* an unknown key to every reader: what this is */
    put_string(demo, "shape", shape->name);
    put_string(demo, "weights", shape->init == DEMO_SCALED ? "random, scaled" : "random, quarter");
    put_string(demo, "text_tensors", shape->text_tensors ? "written" : "none: only the vision tower is written");
    put_string(json, "dtype", dtype);
    put_number(json, "image_token_id", shape->tokens.image);
    put_string(json, "model_type", family->model_type);
    cJSON_AddItemToObject(json, "text_config", text_config(shape));
    cJSON_AddBoolToObject(json, "tie_word_embeddings", shape->text.tied);
    put_number(json, "video_token_id", shape->tokens.video);
    cJSON_AddItemToObject(json, "vision_config", vision_config(shape));
    put_number(json, "vision_end_token_id", shape->tokens.vision_end);
    put_number(json, "vision_start_token_id", shape->tokens.vision_start);
    return json;
}

cJSON *demo_generation_config(const demo_shape *shape) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddFalseToObject(json, "do_sample");
    /* Random weights do not know when to stop talking. */
    if (demo_has_tokenizer(shape)) put_number(json, "max_new_tokens", 64);
    put_ints(json, "eos_token_id", (int[2]){shape->tokens.end, shape->tokens.pad}, 2);
    put_number(json, "pad_token_id", shape->tokens.pad);
    return json;
}

static cJSON *processor(const demo_shape *shape, double shortest, double longest) {
    cJSON *json = cJSON_CreateObject();
    cJSON *size = cJSON_AddObjectToObject(json, "size");
    put_number(size, "longest_edge", longest);
    put_number(size, "shortest_edge", shortest);
    put_number(json, "patch_size", shape->vision.patch);
    put_number(json, "temporal_patch_size", 2);
    put_number(json, "merge_size", 2);
    const double half[3] = {0.5, 0.5, 0.5};
    cJSON_AddItemToObject(json, "image_mean", cJSON_CreateDoubleArray(half, 3));
    cJSON_AddItemToObject(json, "image_std", cJSON_CreateDoubleArray(half, 3));
    put_string(json, "processor_class", "Qwen3VLProcessor");
    return json;
}

cJSON *demo_image_processor(const demo_shape *shape) {
    cJSON *json = processor(shape, 65536, 16777216);
    put_string(json, "image_processor_type", "Qwen2VLImageProcessorFast");
    return json;
}

cJSON *demo_video_processor(const demo_shape *shape) {
    cJSON *json = processor(shape, 4096, 25165824);
    put_string(json, "video_processor_type", "Qwen3VLVideoProcessor");
    return json;
}
