/* Load: many threads, one model, one cache that is too small, requests called off at random; and many distinct
 * pictures in flat memory. The number of seconds is the program's argument. */
#define _GNU_SOURCE
#include "cache/support.h"
#include "pipeline/pipeline.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 50, PICTURES = 20 };

static double run_seconds = 3;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What all threads share. */
typedef struct load {
    qvl_model *model;
    qvl_cache *cache;
    qvl_preprocess_options options;
    qvl_input pictures[PICTURES];
    qvl_features plain[PICTURES];
    double end;
    atomic_long answers, cancelled, wrong;
} load;

typedef struct client {
    load *load;
    pthread_t thread;
    uint32_t seed;
    int64_t patience; /* progress calls until it gives up; negative: it does not */
} client;

static uint32_t draw(client *c, uint32_t below) {
    c->seed = c->seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(c->seed >> 8) * below >> 24);
}

static bool perhaps_stop(int64_t done, int64_t total, void *user) {
    client *c = user;
    if (done < 0 || done > total) atomic_fetch_add(&c->load->wrong, 1);
    return c->patience < 0 || c->patience-- > 0;
}

/* Item i of found is that of plain, all arrays. */
static bool same_item(const qvl_features *found, int64_t first, const qvl_features *plain) {
    size_t row = (size_t)plain->width * qvl_dtype_bits(plain->dtype) / 8, bytes = (size_t)plain->tokens * row;
    if (memcmp((const char *)found->embeds + (size_t)first * row, plain->embeds, bytes) != 0) return false;
    for (int32_t k = 0; k < plain->deepstack_count; k++)
        if (memcmp((const char *)found->deepstack[k] + (size_t)first * row, plain->deepstack[k], bytes) != 0)
            return false;
    return true;
}

/* One request: up to three pictures, now and then called off at once, between two steps, or while it waits. */
static void ask(client *c, qvl_session *session) {
    load *l = c->load;
    qvl_input inputs[3];
    size_t picks[3], count = 1 + draw(c, 3);
    for (size_t i = 0; i < count; i++) {
        picks[i] = draw(c, PICTURES);
        inputs[i] = l->pictures[picks[i]];
    }
    c->patience = draw(c, 4) == 0 ? (int64_t)draw(c, 8) : -1;
    qvl_encode_options options;
    qvl_encode_options_init(&options);
    options.progress = perhaps_stop;
    options.progress_user = c;
    qvl_features f;
    qvl_error error = {0};
    qvl_status status = qvl_encode(session, inputs, count, &l->options, &options, &f, &error);
    if (status == QVL_ERROR_CANCELLED) {
        atomic_fetch_add(&l->cancelled, 1);
        return;
    }
    bool right = !status && f.item_count == count;
    int64_t first = 0;
    for (size_t i = 0; i < count && right; i++) {
        right = same_item(&f, first, &l->plain[picks[i]]);
        first += l->plain[picks[i]].tokens;
    }
    atomic_fetch_add(right ? &l->answers : &l->wrong, 1);
    qvl_features_free(&f);
}

static void *serve(void *user) {
    client *c = user;
    qvl_session *session;
    if (qvl_session_open(c->load->model, &session, NULL)) return NULL;
    if (qvl_session_use_cache(session, c->load->cache, NULL)) atomic_fetch_add(&c->load->wrong, 1);
    while (now() < c->load->end) ask(c, session);
    qvl_session_close(&session);
    return NULL;
}

static void open_load(load *l, const char *folder) {
    *l = (load){.model = open_folder(QVL_RANDOM_MODEL, QVL_OPEN_WEIGHTS)};
    qvl_preprocess_options_init(&l->options);
    l->options.min_pixels = 1;
    qvl_session *session = open_session(l->model);
    int64_t largest = 0;
    for (int64_t i = 0; i < PICTURES; i++) {
        l->pictures[i] = make_rgb(32 + 8 * i, 96 - 3 * i);
        l->plain[i] = encode(session, &l->pictures[i], 1, &l->options);
        int64_t bytes = (int64_t)qvl_features_bytes(&l->plain[i]);
        if (bytes > largest) largest = bytes;
    }
    qvl_session_close(&session);
    l->cache = open_cache(2 * (largest + 512), folder, NULL); /* of two entries */
}

static void close_load(load *l) {
    for (size_t i = 0; i < PICTURES; i++) {
        qvl_features_free(&l->plain[i]);
        free_picture(&l->pictures[i]);
    }
    qvl_cache_close(&l->cache);
    qvl_model_close(&l->model);
}

static void run_load(const char *folder, double seconds) {
    static load l;
    static client clients[THREADS];
    open_load(&l, folder);
    l.end = now() + seconds;
    for (uint32_t i = 0; i < THREADS; i++) {
        clients[i] = (client){.load = &l, .seed = 77 + i};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, serve, &clients[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) pthread_join(clients[i].thread, NULL);
    qvl_cache_stats s = stats_of(l.cache);
    printf(
        "%ld answers, %ld cancelled; %lld encoded, %lld from memory, %lld shared, %lld from disk, %lld evicted\n",
        atomic_load(&l.answers), atomic_load(&l.cancelled), (long long)s.encoded, (long long)s.memory_hits,
        (long long)s.shared, (long long)s.disk_hits, (long long)s.evicted);
    assert_int_equal(atomic_load(&l.wrong), 0);
    assert_true(atomic_load(&l.answers) > THREADS / 2);
    assert_true(atomic_load(&l.cancelled) > 0);
    assert_true(s.memory_bytes <= s.memory_budget);
    close_load(&l);
}

/* A cache of two entries disagrees with everybody about what is there, and nobody may notice. */
static void report_70_fifty_threads(void **state) {
    (void)state;
    run_load(NULL, run_seconds);
}

static void fifty_threads_and_a_disk(void **state) {
    (void)state;
    run_load(scratch("load"), run_seconds / 3);
}

/* Ten thousand distinct pictures through a small cache, in memory and on disk: after the first thousand nothing
 * grows. */
static void memory_stays_flat(void **state) {
    (void)state;
    enum { MANY = 10000, FIRST = 1000 };
    qvl_model *model = open_folder(QVL_RANDOM_MODEL, QVL_OPEN_WEIGHTS);
    qvl_session *session = open_session(model);
    qvl_cache_options limits;
    qvl_cache_options_init(&limits);
    limits.memory_bytes = 200000;
    qvl_cache *cache;
    assert_int_equal(qvl_cache_open(&limits, &cache, NULL), QVL_OK);
    assert_int_equal(qvl_session_use_cache(session, cache, NULL), QVL_OK);
    qvl_preprocess_options options;
    qvl_preprocess_options_init(&options);
    options.min_pixels = 1;
    qvl_input picture = make_rgb(32, 32);
    int64_t early = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        memcpy((uint8_t *)(uintptr_t)picture.bytes + 96, &i, sizeof i);
        qvl_features f = encode(session, &picture, 1, &options);
        assert_int_equal(f.items[0].origin.encoded, 1);
        qvl_features_free(&f);
        if (i == FIRST) early = held_bytes();
    }
    int64_t late = held_bytes();
    printf("%.1f MB after %d pictures, %.1f MB after %d\n", 1e-6 * (double)early, FIRST, 1e-6 * (double)late,
           MANY);
    assert_int_equal(stats_of(cache).encoded, MANY);
    assert_true(stats_of(cache).memory_bytes <= limits.memory_bytes);
    assert_true(late - early < 2000000 + early / 50);
    free_picture(&picture);
    qvl_session_close(&session);
    qvl_cache_close(&cache);
    qvl_model_close(&model);
}

int main(int argc, char **argv) {
    if (argc > 1) run_seconds = atof(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_70_fifty_threads),
        cmocka_unit_test(fifty_threads_and_a_disk),
        cmocka_unit_test(memory_stays_flat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
