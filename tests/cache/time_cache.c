/* time_cache FOLDER [SIDE]: for a square picture of raw pixels, the time of qvl_encode without a cache, with one that
 * does not have it yet, and with its features on disk and in memory. One thread, and the processor's time of the whole
 * process: what other programs do counts little. */
#define _GNU_SOURCE
#include "qvl.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS = 9 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check(qvl_status status, const qvl_error *error) {
    if (!status) return;
    fprintf(stderr, "time_cache: %s\n", error->message);
    exit(1);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)st, (void)kind, (void)at;
    return remove(path);
}

/* One timed encode that must come from where it should. */
static double encode(qvl_session *session, const qvl_input *picture, qvl_origin expected) {
    qvl_features features;
    qvl_error error = {0};
    double start = now();
    check(qvl_encode(session, picture, 1, NULL, NULL, &features, &error), &error);
    double seconds = now() - start;
    if (memcmp(&features.items[0].origin, &expected, sizeof expected) != 0) {
        fprintf(stderr, "time_cache: the features came from elsewhere\n");
        exit(1);
    }
    qvl_features_free(&features);
    return seconds;
}

static void print_row(const char *name, double *seconds, size_t count) {
    qsort(seconds, count, sizeof *seconds, by_value);
    printf("%-34s%10.2f ms%10.2f ms  (%zu runs)\n", name, 1e3 * seconds[0], 1e3 * seconds[count / 2], count);
}

static qvl_cache *open_cache(const char *folder, int64_t memory_bytes) {
    qvl_cache_options options;
    qvl_cache_options_init(&options);
    options.folder = folder;
    options.memory_bytes = memory_bytes;
    qvl_cache *cache;
    qvl_error error = {0};
    check(qvl_cache_open(&options, &cache, &error), &error);
    return cache;
}

static void time_all(qvl_model *model, qvl_session *session, const qvl_input *picture, const char *folder) {
    double plain, first, disk[RUNS], memory[RUNS];
    qvl_error error = {0};
    plain = encode(session, picture, (qvl_origin){.encoded = 1});
    qvl_cache *cache = open_cache(folder, 0);
    double start = now();
    check(qvl_session_use_cache(session, cache, &error), &error);
    printf("fingerprint of the tower, once ever: %.2f s\n", now() - start);
    first = encode(session, picture, (qvl_origin){.encoded = 1});
    for (size_t i = 0; i < RUNS; i++) disk[i] = encode(session, picture, (qvl_origin){.disk = 1});
    check(qvl_session_use_cache(session, NULL, &error), &error);
    qvl_cache_close(&cache);
    cache = open_cache(folder, (int64_t)1 << 30);
    check(qvl_session_use_cache(session, cache, &error), &error);
    encode(session, picture, (qvl_origin){.disk = 1});
    for (size_t i = 0; i < RUNS; i++) memory[i] = encode(session, picture, (qvl_origin){.memory = 1});
    qvl_cache_stats stats;
    check(qvl_cache_get_stats(cache, &stats, &error), &error);
    printf("%s, %lld bytes of features\n%-34s%13s%13s\n", qvl_model_get_info(model)->kernels,
           (long long)stats.disk_bytes, "", "least", "median");
    print_row("encode, no cache", &plain, 1);
    print_row("encode and keep on disk", &first, 1);
    print_row("hit on disk", disk, RUNS);
    print_row("hit in memory", memory, RUNS);
    qvl_session_close(&session);
    qvl_cache_close(&cache);
}

int main(int argc, char **argv) {
    if (argc < 2) return fprintf(stderr, "usage: time_cache FOLDER [SIDE]\n"), 2;
    int64_t side = argc > 2 ? atoi(argv[2]) : 1024;
    size_t count = 3 * (size_t)side * (size_t)side;
    uint8_t *pixels = malloc(count);
    char folder[] = "/tmp/qvl-time-cache-XXXXXX";
    if (!pixels || !mkdtemp(folder)) return 1;
    for (size_t i = 0; i < count; i++) pixels[i] = (uint8_t)(i * 2654435761u >> 13);
    const qvl_input picture = {.kind = QVL_INPUT_RGB8, .bytes = pixels, .width = side, .height = side};
    qvl_model *model;
    qvl_session *session;
    qvl_error error = {0};
    qvl_model_options options;
    qvl_model_options_init(&options);
    options.threads = 1;
    check(qvl_model_open(argv[1], &options, &model, &error), &error);
    check(qvl_session_open(model, &session, &error), &error);
    time_all(model, session, &picture, folder);
    qvl_model_close(&model);
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(pixels);
    return 0;
}
