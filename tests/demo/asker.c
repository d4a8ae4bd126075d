#define _GNU_SOURCE
#include "demo/asker.h"

#include "cli/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the fixture */

static char *text_of(const cJSON *object, const char *key) {
    const cJSON *value = field(object, key);
    if (!cJSON_IsString(value)) fail_msg("%s is no text", key);
    char *copy = strdup(value->valuestring);
    assert_non_null(copy);
    return copy;
}

static question read_question(const cJSON *wanted) {
    question q = {
        .name = text_of(wanted, "chat"), .kind = text_of(wanted, "kind"), .answer = text_of(wanted, "answer")};
    char path[512];
    snprintf(path, sizeof path, DEMO_FIXTURES "/%s", q.name);
    q.chat = read_file(path, NULL);
    *strrchr(q.name, '.') = 0;
    return q;
}

static void read_versions(fixture *f, const cJSON *entry) {
    char *chat = text_of(entry, "chat"), *picture = text_of(entry, "picture");
    const cJSON *file;
    *strrchr(chat, '.') = 0;
    cJSON_ArrayForEach(file, field(entry, "files")) {
        version v = {find_question(f, chat), strdup(picture), strdup(file->valuestring)};
        f->versions = realloc(f->versions, (f->version_count + 1) * sizeof v);
        assert_true(f->versions && v.picture && v.file);
        f->versions[f->version_count++] = v;
    }
    free(picture);
    free(chat);
}

fixture read_fixture(void) {
    char *text = read_file(DEMO_FIXTURES "/wanted.json", NULL);
    cJSON *tree = cJSON_Parse(text);
    const cJSON *entry, *cases = field(tree, "cases");
    fixture f = {.questions = calloc((size_t)cJSON_GetArraySize(cases), sizeof *f.questions)};
    assert_non_null(f.questions);
    cJSON_ArrayForEach(entry, cases) f.questions[f.count++] = read_question(entry);
    cJSON_ArrayForEach(entry, field(tree, "versions")) read_versions(&f, entry);
    cJSON_Delete(tree);
    free(text);
    return f;
}

void free_fixture(fixture *f) {
    for (size_t i = 0; i < f->count; i++) {
        question *q = &f->questions[i];
        free(q->name);
        free(q->chat);
        free(q->kind);
        free(q->answer);
    }
    for (size_t i = 0; i < f->version_count; i++) {
        free(f->versions[i].picture);
        free(f->versions[i].file);
    }
    free(f->questions);
    free(f->versions);
    *f = (fixture){0};
}

size_t find_question(const fixture *f, const char *name) {
    size_t i = 0;
    while (i < f->count && strcmp(f->questions[i].name, name) != 0) i++;
    if (i == f->count) fail_msg("the fixture has no question %s", name);
    return i;
}

char *with_picture(const question *q, const char *picture, const char *other) {
    char quoted[256], *changed;
    snprintf(quoted, sizeof quoted, "\"%s\"", picture);
    const char *found = strstr(q->chat, quoted);
    if (!found) fail_msg("%s does not show %s", q->name, picture);
    int before = (int)(found - q->chat);
    assert_true(asprintf(&changed, "%.*s\"%s\"%s", before, q->chat, other, found + strlen(quoted)) > 0);
    return changed;
}

/* ---- asking */

static qvl_generator *open_generator(const asker *a) {
    qvl_generator *generator;
    qvl_error error;
    if (qvl_generator_open(a->lm, a->prompter, NULL, &generator, &error)) fail_msg("%s", error.message);
    return generator;
}

asker open_asker(const way *w, qvl_cache *cache, bool keep) {
    asker a = {0};
    qvl_error error = {0};
    qvl_model_options options;
    qvl_model_options_init(&options);
    options.dtype = w->dtype;
    options.cpu_mask = w->cpu_mask;
    options.threads = w->threads;
    qvl_status status = qvl_model_open(QVL_DEMO_MODEL, &options, &a.model, &error);
    if (!status) status = qvl_prompter_open(a.model, NULL, &a.prompter, &error);
    if (!status) status = qvl_session_open(a.model, &a.session, &error);
    if (!status) status = qvl_lm_open(a.model, NULL, &a.lm, &error);
    if (!status && cache) status = qvl_session_use_cache(a.session, cache, &error);
    if (status) fail_msg("%s", error.message);
    if (keep) a.kept = open_generator(&a);
    return a;
}

void close_asker(asker *a) {
    qvl_generator_close(&a->kept);
    qvl_lm_close(&a->lm);
    qvl_session_close(&a->session);
    qvl_prompter_close(&a->prompter);
    qvl_model_close(&a->model);
}

qvl_answer ask(asker *a, const char *chat, const qvl_media_options *media) {
    qvl_error error = {0};
    qvl_prompt prompt;
    qvl_answer answer;
    qvl_prompt_options options;
    qvl_generate_options generate;
    qvl_prompt_options_init(&options);
    qvl_generate_options_init(&generate);
    if (media) options.preprocess.media = *media;
    qvl_chat given = {.json = chat, .byte_count = strlen(chat), .folder = DEMO_FIXTURES};
    if (qvl_prompt_build(a->session, a->prompter, &given, &options, &prompt, &error) ||
        qvl_generate_options_read(a->prompter, &generate, &error))
        fail_msg("%s\n%s", chat, error.message);
    assert_false(generate.sampling.do_sample);
    generate.logprobs = true;
    qvl_generator *generator = a->kept ? a->kept : open_generator(a);
    if (qvl_generate(generator, &prompt, &generate, &answer, &error)) fail_msg("%s\n%s", chat, error.message);
    if (!a->kept) qvl_generator_close(&generator);
    qvl_prompt_free(&prompt);
    return answer;
}

char *ask_text(asker *a, const char *chat, const qvl_media_options *media) {
    qvl_answer answer = ask(a, chat, media);
    char *text = answer.text;
    answer.text = NULL;
    qvl_answer_free(&answer);
    return text;
}
