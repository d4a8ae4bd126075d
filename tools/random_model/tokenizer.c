#include "tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- added tokens */

/* As in the published vocabularies: the same names, of which the same are special, in about the same order. The
 * ones whose ids stand in config.json close the vocabulary. */
static const struct {
    const char *text;
    bool special;
} added[DEMO_ADDED_TOKENS] = {
    {"<|object_ref_start|>", true},
    {"<|object_ref_end|>", true},
    {"<|box_start|>", true},
    {"<|box_end|>", true},
    {"<|quad_start|>", true},
    {"<|quad_end|>", true},
    {"<|vision_pad|>", true},
    {"<tool_call>", false},
    {"</tool_call>", false},
    {"<|fim_prefix|>", false},
    {"<|fim_middle|>", false},
    {"<|fim_suffix|>", false},
    {"<|fim_pad|>", false},
    {"<|repo_name|>", false},
    {"<|file_sep|>", false},
    {"<tool_response>", false},
    {"</tool_response>", false},
    {"<think>", false},
    {"</think>", false},
    {"<|endoftext|>", true},
    {"<|im_start|>", true},
    {"<|im_end|>", true},
    {"<|vision_start|>", true},
    {"<|vision_end|>", true},
    {"<|image_pad|>", true},
    {"<|video_pad|>", true},
};

enum { FIRST_ADDED = 256 + DEMO_MERGES };

static bool stands_at(int id, const char *text) {
    int index = id - FIRST_ADDED;
    return index >= 0 && index < DEMO_ADDED_TOKENS && strcmp(added[index].text, text) == 0;
}

bool demo_has_tokenizer(const demo_shape *shape) {
    const demo_tokens *t = &shape->tokens;
    return shape->text.vocab == DEMO_VOCABULARY && stands_at(t->pad, "<|endoftext|>") &&
           stands_at(t->end, "<|im_end|>") && stands_at(t->vision_start, "<|vision_start|>") &&
           stands_at(t->vision_end, "<|vision_end|>") && stands_at(t->image, "<|image_pad|>") &&
           stands_at(t->video, "<|video_pad|>");
}

static cJSON *added_token(int index, bool with_id) {
    cJSON *token = cJSON_CreateObject();
    if (with_id) cJSON_AddNumberToObject(token, "id", FIRST_ADDED + index);
    cJSON_AddStringToObject(token, "content", added[index].text);
    cJSON_AddFalseToObject(token, "single_word");
    cJSON_AddFalseToObject(token, "lstrip");
    cJSON_AddFalseToObject(token, "rstrip");
    cJSON_AddFalseToObject(token, "normalized");
    cJSON_AddBoolToObject(token, "special", added[index].special);
    return token;
}

/* ---- tokenizer.json */

/* How a byte is written: itself where it can be printed, else one of the letters from U+0100 on. UTF-8. */
static void byte_letter(int byte, char text[3]) {
    bool direct = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    int before = 0; /* bytes below that need a letter */
    for (int b = 0; b < byte; b++) before += !((b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174);
    int code = direct ? byte : 256 + before;
    if (code < 128) {
        text[0] = (char)code;
        text[1] = 0;
        return;
    }
    text[0] = (char)(0xc0 | code >> 6);
    text[1] = (char)(0x80 | (code & 0x3f));
    text[2] = 0;
}

/* Bytes that are written as themselves come first. */
static void add_bytes(cJSON *vocabulary) {
    int id = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int byte = 0; byte < 256; byte++) {
            char text[3];
            byte_letter(byte, text);
            bool direct = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
            if (direct == (pass == 0)) cJSON_AddNumberToObject(vocabulary, text, id++);
        }
    }
}

static cJSON *bpe_model(void) {
    cJSON *model = cJSON_CreateObject();
    cJSON_AddStringToObject(model, "type", "BPE");
    cJSON_AddNullToObject(model, "dropout");
    cJSON_AddNullToObject(model, "unk_token");
    cJSON_AddStringToObject(model, "continuing_subword_prefix", "");
    cJSON_AddStringToObject(model, "end_of_word_suffix", "");
    cJSON_AddFalseToObject(model, "fuse_unk");
    cJSON_AddFalseToObject(model, "byte_fallback");
    cJSON_AddFalseToObject(model, "ignore_merges");
    cJSON *vocabulary = cJSON_AddObjectToObject(model, "vocab");
    add_bytes(vocabulary);
    for (int i = 0; i < DEMO_MERGES; i++) {
        char token[64];
        snprintf(token, sizeof token, "%s%s", demo_merges[i][0], demo_merges[i][1]);
        cJSON_AddNumberToObject(vocabulary, token, 256 + i);
    }
    cJSON *merges = cJSON_AddArrayToObject(model, "merges");
    for (int i = 0; i < DEMO_MERGES; i++) cJSON_AddItemToArray(merges, cJSON_CreateStringArray(demo_merges[i], 2));
    return model;
}

static cJSON *byte_level(void) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "type", "ByteLevel");
    cJSON_AddFalseToObject(object, "add_prefix_space");
    cJSON_AddFalseToObject(object, "trim_offsets");
    cJSON_AddFalseToObject(object, "use_regex");
    return object;
}

static cJSON *pre_tokenizer(const demo_shape *shape) {
    static const char *const patterns[] = {
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
        "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
        "\\s+(?!\\S)|\\s+",
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| "
        "?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|"
        "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    };
    cJSON *sequence = cJSON_CreateObject();
    cJSON_AddStringToObject(sequence, "type", "Sequence");
    cJSON *list = cJSON_AddArrayToObject(sequence, "pretokenizers");
    cJSON *split = cJSON_CreateObject();
    cJSON_AddStringToObject(split, "type", "Split");
    cJSON *pattern = cJSON_AddObjectToObject(split, "pattern");
    cJSON_AddStringToObject(pattern, "Regex", patterns[demo_family_hybrid(shape->family)]);
    cJSON_AddStringToObject(split, "behavior", "Isolated");
    cJSON_AddFalseToObject(split, "invert");
    cJSON_AddItemToArray(list, split);
    cJSON_AddItemToArray(list, byte_level());
    return sequence;
}

cJSON *demo_tokenizer(const demo_shape *shape) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "version", "1.0");
    cJSON_AddNullToObject(json, "truncation");
    cJSON_AddNullToObject(json, "padding");
    cJSON *tokens = cJSON_AddArrayToObject(json, "added_tokens");
    for (int i = 0; i < DEMO_ADDED_TOKENS; i++) cJSON_AddItemToArray(tokens, added_token(i, true));
    cJSON *normalizer = cJSON_AddObjectToObject(json, "normalizer");
    cJSON_AddStringToObject(normalizer, "type", "NFC");
    cJSON_AddItemToObject(json, "pre_tokenizer", pre_tokenizer(shape));
    cJSON_AddItemToObject(json, "post_processor", byte_level());
    cJSON_AddItemToObject(json, "decoder", byte_level());
    cJSON_AddItemToObject(json, "model", bpe_model());
    return json;
}

/* ---- tokenizer_config.json */

/* Says what the published templates say, in its own words: turns between im_start and im_end, pictures and
 * videos as placeholders, tools, calls and their answers, reasoning. */
static const char chat_template[] =
    "{%- set count = namespace(images=0, videos=0) %}\n"
    "{%- macro show(content) %}\n"
    "    {%- if content is string %}\n"
    "        {{- content }}\n"
    "    {%- elif content is iterable and content is not mapping %}\n"
    "        {%- for part in content %}\n"
    "            {%- if part.type == 'image' or 'image' in part or 'image_url' in part %}\n"
    "                {%- set count.images = count.images + 1 %}\n"
    "                {{- 'Picture ' ~ count.images ~ ': ' if add_vision_id }}\n"
    "                {{- '<|vision_start|><|image_pad|><|vision_end|>' }}\n"
    "            {%- elif part.type == 'video' or 'video' in part %}\n"
    "                {%- set count.videos = count.videos + 1 %}\n"
    "                {{- 'Video ' ~ count.videos ~ ': ' if add_vision_id }}\n"
    "                {{- '<|vision_start|><|video_pad|><|vision_end|>' }}\n"
    "            {%- elif 'text' in part %}\n"
    "                {{- part.text }}\n"
    "            {%- else %}\n"
    "                {{- raise_exception('A part is neither text nor image nor video.') }}\n"
    "            {%- endif %}\n"
    "        {%- endfor %}\n"
    "    {%- endif %}\n"
    "{%- endmacro %}\n"
    "{%- if not messages %}\n"
    "    {{- raise_exception('There are no messages.') }}\n"
    "{%- endif %}\n"
    "{%- if tools %}\n"
    "    {{- '<|im_start|>system\\nFunctions you may call:' }}\n"
    "    {%- for tool in tools %}\n"
    "        {{- '\\n' ~ (tool | tojson) }}\n"
    "    {%- endfor %}\n"
    "    {{- '\\nTo call one: <tool_call>\\n{\"name\": NAME, \"arguments\": OBJECT}\\n</tool_call><|im_end|>\\n' "
    "}}\n"
    "{%- endif %}\n"
    "{%- for message in messages %}\n"
    "    {%- if message.role == 'tool' %}\n"
    "        {%- if loop.first or loop.previtem.role != 'tool' %}\n"
    "            {{- '<|im_start|>user' }}\n"
    "        {%- endif %}\n"
    "        {{- '\\n<tool_response>\\n' + show(message.content) + '\\n</tool_response>' }}\n"
    "        {%- if loop.last or loop.nextitem.role != 'tool' %}\n"
    "            {{- '<|im_end|>\\n' }}\n"
    "        {%- endif %}\n"
    "    {%- elif message.role in ('system', 'user', 'assistant') %}\n"
    "        {{- '<|im_start|>' + message.role + '\\n' }}\n"
    "        {%- if message.role == 'assistant' and message.reasoning_content is string %}\n"
    "            {{- '<think>\\n' + message.reasoning_content.strip('\\n') + '\\n</think>\\n\\n' }}\n"
    "        {%- endif %}\n"
    "        {{- show(message.content) }}\n"
    "        {%- for call in message.tool_calls or [] %}\n"
    "            {%- set call = call.function or call %}\n"
    "            {{- '\\n' if message.content or not loop.first }}\n"
    "            {{- '<tool_call>\\n{\"name\": \"' + call.name + '\", \"arguments\": ' }}\n"
    "            {{- call.arguments if call.arguments is string else call.arguments | tojson }}\n"
    "            {{- '}\\n</tool_call>' }}\n"
    "        {%- endfor %}\n"
    "        {{- '<|im_end|>\\n' }}\n"
    "    {%- else %}\n"
    "        {{- raise_exception('A role is system, user, assistant or tool, not ' + message.role) }}\n"
    "    {%- endif %}\n"
    "{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n"
    "    {{- '<|im_start|>assistant\\n' }}\n"
    "    {{- '<think>\\n' if enable_thinking }}\n"
    "{%- endif %}\n";

cJSON *demo_tokenizer_config(const demo_shape *shape) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddFalseToObject(json, "add_bos_token");
    cJSON_AddFalseToObject(json, "add_prefix_space");
    cJSON *tokens = cJSON_AddObjectToObject(json, "added_tokens_decoder");
    for (int i = 0; i < DEMO_ADDED_TOKENS; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", FIRST_ADDED + i);
        cJSON_AddItemToObject(tokens, id, added_token(i, false));
    }
    cJSON_AddNullToObject(json, "bos_token");
    cJSON_AddStringToObject(json, "chat_template", chat_template);
    cJSON_AddFalseToObject(json, "clean_up_tokenization_spaces");
    cJSON_AddStringToObject(json, "eos_token", "<|im_end|>");
    cJSON_AddStringToObject(json, "errors", "replace");
    cJSON_AddNumberToObject(json, "model_max_length", shape->text.max_positions);
    cJSON_AddStringToObject(json, "pad_token", "<|endoftext|>");
    cJSON_AddFalseToObject(json, "split_special_tokens");
    cJSON_AddStringToObject(json, "tokenizer_class", "Qwen2Tokenizer");
    cJSON_AddNullToObject(json, "unk_token");
    return json;
}
