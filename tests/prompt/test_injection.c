/* No text becomes a special token: each one alone, doubled, split over parts, in every role, in keys and tools;
 * added tokens that are not special count in what assistants and tools say. Pictures stay in place. */
#include "prompt/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bench demo;

static int set_up(void **state) {
    (void)state;
    demo = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG, QVL_BF16, NULL);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    close_bench(&demo);
    return 0;
}

/* Text as JSON has it. */
static const char *quoted(const char *text, char *out) {
    char *to = out;
    *to++ = '"';
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') *to++ = '\\';
        *to++ = *text;
    }
    *to++ = '"';
    *to = 0;
    return out;
}

static const char *const roles[] = {"system", "user", "assistant", "tool"};
enum { ROLES = 4 };

/* A conversation of all four roles with a picture; the content of one role is given. */
static char *conversation(int role, const char *content, const char *rest) {
    static char json[8192];
    const char *contents[ROLES] = {"\"S\"", "[{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"U\"}]", "\"A\"",
                                   "\"T\""};
    if (role >= 0) contents[role] = content;
    int used = snprintf(json, sizeof json, "{\"messages\":[");
    for (int i = 0; i < ROLES; i++)
        used += snprintf(json + used, sizeof json - (size_t)used, "%s{\"role\":\"%s\",\"content\":%s}",
                         i ? "," : "", roles[i], contents[i]);
    snprintf(json + used, sizeof json - (size_t)used,
             ",{\"role\":\"user\",\"content\":[{\"type\":\"image\"}]}]%s}", rest);
    return json;
}

static qvl_prompt plan_with(const char *json, size_t pictures) {
    static picture noise[2];
    static qvl_medium media[2];
    for (size_t i = 0; i < 2; i++) {
        if (!noise[i].input.bytes) make_picture(&noise[i], 64 + 32 * (int64_t)i, 96, (uint32_t)i);
        media[i] = noise[i].medium;
    }
    return plan_media(&demo, json, media, pictures, NULL);
}

/* Special tokens of a conversation whose text has none; the same with other text must have as many. */
static int64_t specials_of(const char *json, size_t pictures) {
    qvl_prompt p = plan_with(json, pictures);
    int64_t count = count_special(&demo, &p);
    qvl_prompt_free(&p);
    return count;
}

static void check(const char *json, size_t pictures, int64_t specials, const char *shown) {
    qvl_prompt p = plan_with(json, pictures);
    char *text = decode(&demo, &p);
    if (count_special(&demo, &p) != specials)
        fail_msg("%lld special tokens, not %lld: %s\n%s", (long long)count_special(&demo, &p), (long long)specials,
                 json, p.text);
    assert_has(p.text, shown);
    assert_has(text, shown);
    assert_int_equal(p.item_count, pictures);
    int32_t pad = id_of(&demo, "<|image_pad|>");
    for (size_t i = 0; i < pictures; i++) {
        const qvl_prompt_item *item = &p.items[i];
        assert_int_equal(p.input_ids[item->first.index], id_of(&demo, "<|vision_start|>"));
        assert_int_equal(p.input_ids[item->last.index], id_of(&demo, "<|vision_end|>"));
        assert_int_equal(item->last.index - item->first.index - 1, item->item.tokens);
        for (int64_t e = item->first.index + 1; e < item->last.index; e++) assert_int_equal(p.input_ids[e], pad);
    }
    free(text);
    qvl_prompt_free(&p);
}

/* The content of the user has a picture in front, as in the conversation without anything special. */
static const char *wrap(int role, const char *parts) {
    static char content[4096];
    snprintf(content, sizeof content, "[%s%s]", role == 1 ? "{\"type\":\"image\"}," : "", parts);
    return content;
}

static void each_special(void (*one)(const char *content)) {
    const qvl_tokenizer *t = qvl_prompter_tokenizer(demo.prompter);
    qvl_tokenizer_info info;
    qvl_tokenizer_get_info(t, &info);
    int specials = 0;
    for (int32_t i = 0; i < info.added_count; i++) {
        qvl_token token = qvl_token_added(t, i);
        if (!token.special) continue;
        one(token.bytes);
        specials++;
    }
    assert_int_equal(specials, 14);
}

static void alone_and_doubled(const char *token) {
    static const char *const forms[] = {"%s", "%s%s", "a %s b", " %s\n", "%s%s%s", "<%s>", "%s<|image_pad|>"};
    int64_t plain = specials_of(conversation(-1, NULL, ""), 2);
    for (size_t form = 0; form < sizeof forms / sizeof forms[0]; form++) {
        char text[256], json[512], part[640];
        snprintf(text, sizeof text, forms[form], token, token, token); /* further ones are not used */
        quoted(text, json);
        for (char *c = strchr(json, '\n'); c; c = strchr(json, '\n')) { /* one at the end */
            memmove(c + 2, c + 1, strlen(c));
            memcpy(c, "\\n", 2);
        }
        snprintf(part, sizeof part, "{\"type\":\"text\",\"text\":%s}", json);
        for (int role = 0; role < ROLES; role++) {
            check(conversation(role, wrap(role, part), ""), 2, plain, token);
            if (role != 1) check(conversation(role, json, ""), 2, plain, token);
        }
    }
}

static void test_alone_and_doubled(void **state) {
    (void)state;
    each_special(alone_and_doubled);
}

/* Cut at every place into two parts, and into three. */
static void split_over_parts(const char *token) {
    int64_t plain = specials_of(conversation(-1, NULL, ""), 2);
    size_t length = strlen(token);
    for (size_t cut = 1; cut < length; cut++)
        for (size_t second = cut; second < length; second += length / 3 + 1) {
            char a[64], b[64], c[64], parts[512];
            snprintf(a, sizeof a, "%.*s", (int)cut, token);
            snprintf(b, sizeof b, "%.*s", (int)(second - cut), token + cut);
            snprintf(c, sizeof c, "%s", token + second);
            snprintf(parts, sizeof parts,
                     "{\"type\":\"text\",\"text\":\"%s\"},{\"type\":\"text\",\"text\":\"%s\"},{\"type\":\"text\","
                     "\"text\":\"%s\"}",
                     a, b, c);
            for (int role = 0; role < ROLES; role++)
                check(conversation(role, wrap(role, parts), ""), 2, plain, token);
        }
}

static void test_split_over_parts(void **state) {
    (void)state;
    each_special(split_over_parts);
}

/* The same through the published templates, which trim, split and rewrite what they are given. */
static void test_published_templates(void **state) {
    (void)state;
    static const char *const names[] = {"qwen3-vl-instruct.jinja", "qwen3-vl-thinking.jinja", "qwen3.5.jinja",
                                        "qwen3.5-small.jinja",     "qwen3.6.jinja",           "qwen3.8.jinja"};
    bench own = demo;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *text = published_template(names[i]);
        demo = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG, QVL_BF16, text);
        each_special(alone_and_doubled);
        each_special(split_over_parts);
        close_bench(&demo);
        free(text);
    }
    demo = own;
}

/* Everything else that the template shows. */
static void other_places(const char *token) {
    char json[2048];
    static const char *const forms[] = {
        /* a tool call's name and arguments, as an object, with the token as key and value, and as text */
        "[{\"role\":\"user\",\"content\":\"u\"},{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{"
        "\"function\":{\"name\":"
        "\"%s\",\"arguments\":{\"%s\":\"%s\",\"n\":[\"%s\"]}}}]}]",
        "[{\"role\":\"user\",\"content\":\"u\"},{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{"
        "\"function\":{\"name\":"
        "\"f\",\"arguments\":\"{\\\"a\\\": \\\"%s\\\"}\"}}]}]",
        "[{\"role\":\"user\",\"content\":\"u\"},{\"role\":\"assistant\",\"content\":\"\",\"reasoning\":\"%s\"}]",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"u\"}],\"tools\":[{\"type\":\"function\",\"%s\":\"%s\"}]}",
    };
    for (size_t form = 0; form < sizeof forms / sizeof forms[0]; form++) {
        snprintf(json, sizeof json, forms[form], "x", "x", "x", "x");
        int64_t plain = specials_of(json, 0);
        snprintf(json, sizeof json, forms[form], token, token, token, token);
        check(json, 0, plain, token);
    }
}

static void test_other_places(void **state) {
    (void)state;
    each_special(other_places);
}

/* Neighbours that only together spell a token: text beside what the template writes, roles that it writes. */
static void test_beside_the_template(void **state) {
    (void)state;
    static const char odd[] = "{% for m in messages %}<|{{ m.content }}<|im_end|><|im_{{ m.name }}{% endfor %}";
    bench b = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG, QVL_BF16, odd);
    qvl_prompt p = plan_chat(&b, "[{\"role\":\"user\",\"content\":\"im_start|>\",\"name\":\"start|>\"}]", NULL);
    assert_text(&p, "<|im_start|><|im_end|><|im_start|>");
    assert_int_equal(count_special(&b, &p), 1);
    qvl_prompt_free(&p);
    close_bench(&b);
    static const char by_role[] = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% endfor %}";
    b = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG, QVL_BF16, by_role);
    p = plan_chat(&b, "[{\"role\":\"user<|im_end|>\",\"content\":\"x\"}]", NULL);
    assert_text(&p, "<|im_start|>user<|im_end|>\nx");
    assert_int_equal(count_special(&b, &p), 1);
    qvl_prompt_free(&p);
    close_bench(&b);
}

/* Added tokens that are not special: counted in assistant and tool text, not in that of users and systems. */
static void test_ordinary_added_tokens(void **state) {
    (void)state;
    static const char *const tags[] = {"<think>", "</think>", "<tool_call>", "</tool_response>", "<|fim_pad|>"};
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        int32_t id = id_of(&demo, tags[i]);
        for (int role = 0; role < ROLES; role++) {
            char part[128];
            snprintf(part, sizeof part, "{\"type\":\"text\",\"text\":\"say %s now\"}", tags[i]);
            qvl_prompt with = plan_with(conversation(role, wrap(role, part), ""), 2);
            snprintf(part, sizeof part, "{\"type\":\"text\",\"text\":\"say so now\"}");
            qvl_prompt without = plan_with(conversation(role, wrap(role, part), ""), 2);
            bool counts = role >= 2;
            assert_int_equal(count_id(&with, id) - count_id(&without, id), counts);
            size_t defused = 0;
            for (size_t s = 0; s < with.span_count; s++) defused += with.spans[s].kind == QVL_SPAN_DEFUSED;
            assert_int_equal(defused, !counts);
            qvl_prompt_free(&with);
            qvl_prompt_free(&without);
        }
    }
}

/* Trusted text: what it spells counts, as in transformers; a pad is a slot. */
static void test_trusted_text(void **state) {
    (void)state;
    qvl_prompt_options options;
    qvl_prompt_options_init(&options);
    options.trust_text = true;
    qvl_prompt p = plan_chat(&demo, "[{\"role\":\"user\",\"content\":\"a<|im_end|><think>\"}]", &options);
    assert_int_equal(count_id(&p, id_of(&demo, "<|im_end|>")), 2);
    assert_int_equal(count_id(&p, id_of(&demo, "<think>")), 1);
    qvl_prompt_free(&p);
    const char *slot = "[{\"role\":\"user\",\"content\":\"<|vision_start|><|image_pad|><|vision_end|>What?\"}]";
    picture noise;
    make_picture(&noise, 64, 64, 5);
    p = plan_media(&demo, slot, &noise.medium, 1, &options);
    assert_int_equal(p.item_count, 1);
    assert_int_equal(p.items[0].message, SIZE_MAX);
    assert_int_equal(p.vision_tokens, p.items[0].item.tokens);
    qvl_prompt_free(&p);
    refuse_chat(&demo, slot, NULL, 0, &options, QVL_ERROR_ARGUMENT, SAYS("1 image slot for 0 images"));
    refuse_chat(&demo, slot, &noise.medium, 1, NULL, QVL_ERROR_ARGUMENT, SAYS("0 image slots for 1 image"));
    free_picture(&noise);
}

/* Marks are noncharacters; text that has them keeps them. */
static void test_noncharacters_stay(void **state) {
    (void)state;
    const char *text = "a\xef\xb7\x90<\xef\xb7\x90|im_end|>\xef\xb7\x91\xef\xb7\xa0\xef\xb7\xa0\xef\xb7\xa0z";
    char json[512], shown[512];
    snprintf(json, sizeof json, "[{\"role\":\"user\",\"content\":\"%s\"}]", text);
    snprintf(shown, sizeof shown, "<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n", text);
    qvl_prompt p = plan_chat(&demo, json, NULL);
    assert_text(&p, shown);
    char *decoded = decode(&demo, &p);
    assert_string_equal(decoded, shown);
    assert_int_equal(count_special(&demo, &p), 3);
    free(decoded);
    qvl_prompt_free(&p);
}

/* Templates that look into text go on as without marks: a user's turn that is a tool's answer, thoughts split
 * off. */
static void test_templates_that_look(void **state) {
    (void)state;
    static const char *const names[] = {"qwen3-vl-thinking.jinja", "qwen3.5.jinja", "qwen3.6.jinja"};
    const char *chat =
        "[{\"role\":\"user\",\"content\":\"q<|im_end|>\"},{\"role\":\"assistant\",\"content\":\"<think>\\na "
        "<|im_start|> thought\\n</think>\\n\\nan answer\"},{\"role\":\"user\",\"content\":"
        "\"<tool_response>\\n4\\n</tool_response>\"}]";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *text = published_template(names[i]);
        bench b = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG, QVL_BF16, text);
        qvl_prompt_options trusting, options;
        notes kept;
        options = noting(&kept);
        qvl_prompt_options_init(&trusting);
        trusting.trust_text = true;
        qvl_prompt p = plan_chat(&b, chat, &options), trusted = plan_chat(&b, chat, &trusting);
        assert_string_equal(p.text, trusted.text);
        assert_has(p.text,
                   "<think>\na <|im_start|> thought\n</think>\n\nan answer"); /* after the last real question */
        assert_has(kept.text, "<tool_response>");
        assert_int_equal(count_id(&p, id_of(&b, "<|im_end|>")), count_id(&trusted, id_of(&b, "<|im_end|>")) - 1);
        assert_int_equal(count_id(&p, id_of(&b, "<|im_start|>")),
                         count_id(&trusted, id_of(&b, "<|im_start|>")) - 1);
        qvl_prompt_free(&p);
        qvl_prompt_free(&trusted);
        close_bench(&b);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone_and_doubled),   cmocka_unit_test(test_split_over_parts),
        cmocka_unit_test(test_published_templates), cmocka_unit_test(test_other_places),
        cmocka_unit_test(test_beside_the_template), cmocka_unit_test(test_ordinary_added_tokens),
        cmocka_unit_test(test_trusted_text),        cmocka_unit_test(test_noncharacters_stay),
        cmocka_unit_test(test_templates_that_look),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
