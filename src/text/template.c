#define _GNU_SOURCE
#include "text/template.h"

#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "text/jinja/jinja.h"
#include "text/jinja/text.h"
#include "text/utf8.h"

#include <locale.h>
#include <string.h>

#define MAX_TEMPLATE ((size_t)1 << 20)
#define MAX_DEPTH 1000

struct qvl_template {
    jinja_program program;
};

void qvl_template_options_init(qvl_template_options *options) {
    *options = (qvl_template_options){
        .size = sizeof *options,
        .name = "template",
        .time = INT64_MIN,
        .max_steps = 50000000,
        .max_depth = MAX_DEPTH,
        .max_output = (int64_t)128 << 20,
        .max_memory = (int64_t)1 << 30,
    };
}

/* ------------------------------------------------------------------------------------------------------ the run */

static qvl_status take_options(const qvl_template_options *given, qvl_template_options *own, qvl_error *error) {
    qvl_template_options_init(own);
    qvl_status status = qvl_options_take(own, sizeof *own, given, error);
    if (status) return status;
    if (own->max_steps < 1 || own->max_depth < 1 || own->max_depth > MAX_DEPTH || own->max_output < 0 ||
        own->max_memory < 1)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "template options: max_steps %lld, max_depth %lld, max_output %lld, max_memory %lld; they "
                        "must be at least 1, 1..%d, 0 and 1",
                        (long long)own->max_steps, (long long)own->max_depth, (long long)own->max_output,
                        (long long)own->max_memory, MAX_DEPTH);
    if (!own->name) own->name = "template";
    return QVL_OK;
}

static void start_run(jinja_run *run, const qvl_template_options *options) {
    *run = (jinja_run){
        .steps = options->max_steps,
        .max_depth = options->max_depth,
        .max_output = options->max_output,
        .max_memory = options->max_memory,
        .time = options->time,
    };
    jinja_arena_init(&run->arena, (size_t)options->max_memory);
}

/* Numbers and dates are read and written the same whatever locale the program has set. */
typedef struct c_locale {
    locale_t c, before;
} c_locale;

static qvl_status enter_c_locale(c_locale *locale, qvl_error *error) {
    *locale = (c_locale){.c = newlocale(LC_ALL_MASK, "C", NULL)};
    if (!locale->c) return qvl_fail_memory(error, "a locale", 1, 1);
    locale->before = uselocale(locale->c);
    return QVL_OK;
}

static void leave_c_locale(const c_locale *locale) {
    uselocale(locale->before);
    freelocale(locale->c);
}

/* The run's error with the place in the template, counted from 1. */
static qvl_status report(const jinja_run *run, const jinja_program *program, const char *name, qvl_error *error) {
    size_t line = 1, start = 0;
    if (!run->located) return qvl_fail(error, run->status, "%.100s: %s", name, run->message);
    for (size_t i = 0; i < run->offset && i < program->length; i++)
        if (program->source[i] == '\n') {
            line++;
            start = i + 1;
        }
    size_t column = jinja_characters(program->source + start, run->offset - start) + 1;
    return qvl_fail(error, run->status, "%.100s: line %zu, column %zu: %s", name, line, column, run->message);
}

/* ---------------------------------------------------------------------------------------------------- templates */

static qvl_status compile(const char *text, size_t count, const qvl_template_options *options,
                          qvl_template *template, qvl_error *error) {
    c_locale locale;
    jinja_run run;
    qvl_status status = enter_c_locale(&locale, error);
    if (status) return status;
    start_run(&run, options);
    if (run.max_depth > JINJA_MAX_HEIGHT) run.max_depth = JINJA_MAX_HEIGHT;
    if (!jinja_compile(&run, text, count, &template->program)) {
        if (run.status == QVL_ERROR_ARGUMENT) run.status = QVL_ERROR_FORMAT;
        status = report(&run, &template->program, options->name, error);
    }
    jinja_arena_free(&run.arena);
    leave_c_locale(&locale);
    return status;
}

qvl_status qvl_template_open(const char *text, size_t count, const qvl_template_options *options,
                             qvl_template **template, qvl_error *error) {
    qvl_template_options own;
    *template = NULL;
    qvl_status status = take_options(options, &own, error);
    if (status) return status;
    if (count > MAX_TEMPLATE)
        return qvl_fail(error, QVL_ERROR_LIMIT, "%.100s: a template of %zu bytes; at most %zu are read", own.name,
                        count, MAX_TEMPLATE);
    if (qvl_utf8_valid((const uint8_t *)text, count) != count)
        return qvl_fail(error, QVL_ERROR_FORMAT, "%.100s: the template is not UTF-8", own.name);
    qvl_template *opened = qvl_calloc(1, sizeof *opened);
    if (!opened) return qvl_fail_memory(error, "a template", 1, sizeof *opened);
    status = compile(text, count, &own, opened, error);
    if (status) {
        qvl_template_close(&opened);
        return status;
    }
    *template = opened;
    return QVL_OK;
}

void qvl_template_close(qvl_template **template) {
    if (!template || !*template) return;
    jinja_arena_free(&(*template)->program.arena);
    qvl_free(*template);
    *template = NULL;
}

/* ---------------------------------------------------------------------------------------------------- rendering */

static qvl_status take_result(const jinja_run *run, const jinja_text *root, qvl_rendered *rendered,
                              qvl_error *error) {
    size_t span_bytes = run->span_count * sizeof(qvl_span);
    rendered->text = qvl_alloc(root->length + 1, 1);
    if (!rendered->text) return qvl_fail_memory(error, "a rendered template", root->length + 1, 1);
    if (root->length) memcpy(rendered->text, root->data, root->length);
    rendered->text[root->length] = 0;
    rendered->length = root->length;
    if (run->span_count == 0) return QVL_OK;
    rendered->generation = qvl_alloc(run->span_count, sizeof(qvl_span));
    if (!rendered->generation) {
        qvl_rendered_free(rendered);
        return qvl_fail_memory(error, "spans of a rendered template", run->span_count, sizeof(qvl_span));
    }
    memcpy(rendered->generation, run->spans, span_bytes);
    rendered->generation_count = run->span_count;
    return QVL_OK;
}

qvl_status qvl_template_run(const qvl_template *template, const cJSON *variables,
                            const qvl_template_options *options, qvl_rendered *rendered, qvl_error *error) {
    qvl_template_options own;
    c_locale locale = {0};
    jinja_run run;
    *rendered = (qvl_rendered){0};
    qvl_status status = take_options(options, &own, error);
    if (!status && !cJSON_IsObject(variables))
        status = qvl_fail(error, QVL_ERROR_ARGUMENT, "%.100s: the variables are not an object", own.name);
    if (!status) status = enter_c_locale(&locale, error);
    if (status) return status;
    start_run(&run, &own);
    jinja_text root = {.run = &run};
    run.root = run.out = &root;
    jinja_render(&run, &template->program, variables);
    status =
        run.status ? report(&run, &template->program, own.name, error) : take_result(&run, &root, rendered, error);
    jinja_arena_free(&run.arena);
    leave_c_locale(&locale);
    return status;
}

void qvl_rendered_free(qvl_rendered *rendered) {
    if (!rendered) return;
    qvl_free(rendered->text);
    qvl_free(rendered->generation);
    *rendered = (qvl_rendered){0};
}

qvl_status qvl_template_render(const char *template_text, const char *variables_json,
                               const qvl_template_options *options, qvl_rendered *rendered, qvl_error *error) {
    qvl_template *template = NULL;
    cJSON *variables = NULL;
    *rendered = (qvl_rendered){0};
    qvl_status status = qvl_template_open(template_text, strlen(template_text), options, &template, error);
    if (!status)
        status = qvl_template_json(variables_json, strlen(variables_json), "variables", &variables, error);
    if (!status) status = qvl_template_run(template, variables, options, rendered, error);
    cJSON_Delete(variables);
    qvl_template_close(&template);
    return status;
}

/* -------------------------------------------------------------------------------------- what a template reads */

typedef struct reading {
    const char *name;
    size_t length;
    bool found;
} reading;

static void look_in(reading *r, const jinja_scope *scope) {
    for (size_t i = 0; scope && i < scope->count; i++) {
        const jinja_symbol *symbol = &scope->symbols[i];
        r->found = r->found || (symbol->load == LOAD_RESOLVE &&
                                jinja_is_text(jinja_from_string(symbol->name), r->name, r->length));
    }
}

static bool look_at(void *user, jinja_node *node) {
    reading *r = user;
    look_in(r, node->scope);
    look_in(r, node->else_scope);
    look_in(r, node->test_scope);
    return !r->found && jinja_each_child(node, look_at, r);
}

bool qvl_template_reads(const qvl_template *template, const char *variable) {
    reading r = {.name = variable, .length = strlen(variable)};
    look_in(&r, template->program.scope);
    for (size_t i = 0; i < template->program.body.count && !r.found; i++)
        look_at(&r, template->program.body.at[i]);
    return r.found;
}
