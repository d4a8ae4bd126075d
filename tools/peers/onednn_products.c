/* Times oneDNN's bf16 products (Debian's libdnnl, weights packed beforehand, bias and GELU fused) beside qvl's, taking turns.
 *
 *   gcc -O2 -Iinclude tools/peers/onednn_products.c -o onednn_products -Lbuild -lqvl -ldnnl -lm   (Debian: libdnnl-dev)
 *   OMP_NUM_THREADS=2 LD_LIBRARY_PATH=build ./onednn_products tests/fixtures/configs/qwen3.5-27b 7 1024 4096
 *
 * Arguments: a folder whose config.json has the tower's sizes, rounds, rows. No weights are read, both sides multiply random
 * numbers. qvl's times are those of qvl_bench_kernels, with what the tower does beside a product: adding to the
 * stream, rotating and laying out heads, GELU. Prints medians, and the median of each round's ratio. */
#include "qvl.h"

#include <dnnl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_ROUNDS 99
#define CHECK(call)                                                                                               \
    do {                                                                                                          \
        dnnl_status_t status = call;                                                                              \
        if (status) {                                                                                             \
            fprintf(stderr, "%s: status %d\n", #call, (int)status);                                               \
            exit(1);                                                                                              \
        }                                                                                                         \
    } while (0)

typedef struct product {
    const char *name;  /* qvl's, up to its sizes */
    long n, k, merged; /* columns, depth, rows of the tower for one row */
    dnnl_alg_kind_t gelu;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[4];
    double theirs[MAX_ROUNDS], ours[MAX_ROUNDS], ratios[MAX_ROUNDS];
} product;

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

static dnnl_memory_t random_memory(const dnnl_memory_desc_t *shape) {
    dnnl_memory_t memory;
    void *data;
    static unsigned state = 1;
    CHECK(dnnl_memory_create(&memory, shape, engine, DNNL_MEMORY_ALLOCATE));
    CHECK(dnnl_memory_get_data_handle(memory, &data));
    size_t size = shape->data_type == dnnl_f32 ? 4 : 2, count = dnnl_memory_desc_get_size(shape) / size;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        float value = ((float)(state >> 8) - 8388608.0f) / 8388608.0f / 32.0f;
        memcpy((char *)data + i * size, (char *)&value + 4 - size, size); /* bf16: the upper half */
    }
    return memory;
}

static dnnl_memory_t packed(const dnnl_memory_desc_t *plain, const dnnl_memory_desc_t *wanted) {
    dnnl_memory_t from = random_memory(plain), to;
    dnnl_primitive_desc_t description;
    dnnl_primitive_t reorder;
    CHECK(dnnl_memory_create(&to, wanted, engine, DNNL_MEMORY_ALLOCATE));
    CHECK(dnnl_reorder_primitive_desc_create(&description, plain, engine, wanted, engine, NULL));
    CHECK(dnnl_primitive_create(&reorder, description));
    dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    CHECK(dnnl_primitive_execute(reorder, stream, 2, arguments));
    CHECK(dnnl_stream_wait(stream));
    dnnl_primitive_destroy(reorder);
    dnnl_primitive_desc_destroy(description);
    dnnl_memory_destroy(from);
    return to;
}

static void open_product(product *p, long rows) {
    dnnl_dims_t a = {rows / p->merged, p->k}, w = {p->k, p->n}, b = {1, p->n}, c = {rows / p->merged, p->n};
    dnnl_memory_desc_t left, right, right_plain, bias, out;
    CHECK(dnnl_memory_desc_init_by_tag(&left, 2, a, dnnl_bf16, dnnl_ab));
    CHECK(dnnl_memory_desc_init_by_tag(&right, 2, w, dnnl_bf16, dnnl_format_tag_any));
    CHECK(dnnl_memory_desc_init_by_tag(&right_plain, 2, w, dnnl_bf16, dnnl_ba));
    CHECK(dnnl_memory_desc_init_by_tag(&bias, 2, b, dnnl_f32, dnnl_ab));
    CHECK(dnnl_memory_desc_init_by_tag(&out, 2, c, dnnl_bf16, dnnl_ab));
    dnnl_primitive_attr_t attributes;
    dnnl_post_ops_t after;
    CHECK(dnnl_primitive_attr_create(&attributes));
    CHECK(dnnl_post_ops_create(&after));
    if (p->gelu) CHECK(dnnl_post_ops_append_eltwise(after, 1.0f, p->gelu, 0, 0));
    CHECK(dnnl_primitive_attr_set_post_ops(attributes, after));
    dnnl_matmul_desc_t description;
    dnnl_primitive_desc_t made;
    CHECK(dnnl_matmul_desc_init(&description, &left, &right, &bias, &out));
    CHECK(dnnl_primitive_desc_create(&made, &description, attributes, engine, NULL));
    CHECK(dnnl_primitive_create(&p->primitive, made));
    const dnnl_memory_desc_t *wanted = dnnl_primitive_desc_query_md(made, dnnl_query_weights_md, 0);
    p->arguments[0] = (dnnl_exec_arg_t){DNNL_ARG_SRC, random_memory(&left)};
    p->arguments[1] = (dnnl_exec_arg_t){DNNL_ARG_WEIGHTS, packed(&right_plain, wanted)};
    p->arguments[2] = (dnnl_exec_arg_t){DNNL_ARG_BIAS, random_memory(&bias)};
    p->arguments[3] = (dnnl_exec_arg_t){DNNL_ARG_DST, random_memory(&out)};
    dnnl_primitive_desc_destroy(made);
    dnnl_post_ops_destroy(after);
    dnnl_primitive_attr_destroy(attributes);
}

static void close_product(product *p) {
    for (int i = 0; i < 4; i++) dnnl_memory_destroy(p->arguments[i].memory);
    dnnl_primitive_destroy(p->primitive);
}

static double run_product(const product *p) {
    double start = seconds();
    CHECK(dnnl_primitive_execute(p->primitive, stream, 4, p->arguments));
    CHECK(dnnl_stream_wait(stream));
    return seconds() - start;
}

static void time_round(const qvl_model *model, product *products, size_t count, long rows, int round) {
    qvl_kernel_time times[QVL_MAX_KERNELS];
    size_t timed;
    double copy_rate;
    qvl_error error;
    if (qvl_bench_kernels(model, rows, 1, times, &timed, &copy_rate, &error)) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    for (size_t i = 0; i < count; i++) {
        product *p = &products[i];
        p->theirs[round] = run_product(p);
        p->ours[round] = NAN;
        for (size_t j = 0; j < timed; j++)
            if (!strncmp(times[j].name, p->name, strlen(p->name))) p->ours[round] = times[j].seconds;
        if (isnan(p->ours[round])) {
            fprintf(stderr, "qvl times no kernel named %s; was this program built with the library's header?\n",
                    p->name);
            exit(1);
        }
        p->ratios[round] = p->theirs[round] / p->ours[round];
    }
}

static void measure(const qvl_model *model, product *products, size_t count, long rows, int rounds) {
    for (size_t i = 0; i < count; i++) {
        open_product(&products[i], rows);
        run_product(&products[i]);
    }
    for (int round = 0; round < rounds; round++) time_round(model, products, count, rows, round);
    double logarithms = 0.0, least = INFINITY;
    for (size_t i = 0; i < count; i++) {
        product *p = &products[i];
        double ratio = median(p->ratios, rounds);
        printf("%-18s %ld -> %ld, %5ld rows: oneDNN %8.3f ms, qvl %8.3f ms, ratio %.2f\n", p->name, p->k, p->n,
               rows / p->merged, 1e3 * median(p->theirs, rounds), 1e3 * median(p->ours, rounds), ratio);
        logarithms += log(ratio);
        least = ratio < least ? ratio : least;
        close_product(p);
    }
    printf("%ld rows: geometric mean %.2f, smallest %.2f\n", rows, exp(logarithms / (double)count), least);
}

int main(int argc, char **argv) {
    int rounds = argc > 2 ? atoi(argv[2]) : 0;
    if (argc < 4 || rounds < 1 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: %s FOLDER ROUNDS ROWS...; 1 to %d rounds\n", argv[0], MAX_ROUNDS);
        return 2;
    }
    qvl_model_options options;
    qvl_model *model;
    qvl_error error;
    qvl_model_options_init(&options);
    options.level = QVL_OPEN_CONFIG;
    options.threads = getenv("OMP_NUM_THREADS") ? atoi(getenv("OMP_NUM_THREADS")) : 1;
    if (qvl_model_open(argv[1], &options, &model, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    const qvl_model_info *info = qvl_model_get_info(model);
    long d = info->hidden_size, inner = info->intermediate_size,
         merge = (long)info->spatial_merge_size * info->spatial_merge_size;
    product products[] = {
        {.name = "qkv, rotated", .n = 3 * d, .k = d, .merged = 1},
        {.name = "projection", .n = d, .k = d, .merged = 1},
        {.name = "fc1, GELU", .n = inner, .k = d, .merged = 1, .gelu = dnnl_eltwise_gelu_tanh},
        {.name = "fc2", .n = d, .k = inner, .merged = 1},
        {.name = "merger fc1, GELU",
         .n = merge * d,
         .k = merge * d,
         .merged = merge,
         .gelu = dnnl_eltwise_gelu_erf},
        {.name = "merger fc2", .n = info->out_hidden_size, .k = merge * d, .merged = merge},
    };
    CHECK(dnnl_engine_create(&engine, dnnl_cpu, 0));
    CHECK(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
    const dnnl_version_t *version = dnnl_version();
    printf("oneDNN %d.%d.%d, %d threads, qvl on %s\n", version->major, version->minor, version->patch,
           info->threads, info->kernels);
    for (int i = 3; i < argc; i++)
        measure(model, products, sizeof products / sizeof products[0], atol(argv[i]), rounds);
    dnnl_stream_destroy(stream);
    dnnl_engine_destroy(engine);
    qvl_model_close(&model);
    return 0;
}
