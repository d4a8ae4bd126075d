/* The cache as a whole: what is the same and what is not, who encodes, what is kept; features from it are the encoded
 * ones bit for bit. */
#define _GNU_SOURCE
#include "cache/support.h"
#include "pipeline/pipeline.h"
#include "vision/towers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MB ((int64_t)1 << 20)
#define MEDIA QVL_SOURCE_DIR "/tests/fixtures/media/"

/* ---- look-ups without a tower */

typedef struct encoder {
    uint64_t number;
    qvl_status fails; /* QVL_OK: it succeeds */
    atomic_int runs;
    atomic_bool *hold; /* NULL, or until it is false the encoder is at work */
} encoder;

static qvl_status encode_number(void *user, qvl_features *features, qvl_error *error) {
    encoder *e = user;
    atomic_fetch_add(&e->runs, 1);
    while (e->hold && atomic_load(e->hold)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (e->fails) {
        if (error) *error = (qvl_error){e->fails, "it does not work"};
        return e->fails;
    }
    *features = make_features(&small_shape, e->number);
    return QVL_OK;
}

static qvl_status look(qvl_cache *cache, encoder *e, const qvl_patience *patience,
                       struct qvl_shared_features **shared, qvl_found *found) {
    qvl_cache_call call = {.shape = small_shape, .encode = encode_number, .user = e, .patience = patience};
    make_key(e->number, call.key);
    qvl_error error = {0};
    return qvl_cache_get(cache, &call, shared, found, &error);
}

static qvl_found look_at(qvl_cache *cache, uint64_t number) {
    encoder e = {.number = number};
    struct qvl_shared_features *shared;
    qvl_found found;
    assert_int_equal(look(cache, &e, NULL, &shared, &found), QVL_OK);
    assert_true(are_features(&shared->features, &small_shape, number));
    assert_int_equal(atomic_load(&e.runs), found == QVL_FOUND_NOWHERE);
    qvl_shared_release(shared);
    return found;
}

/* Bytes that n entries take. */
static int64_t room_for(int64_t n) {
    qvl_cache *cache = open_cache(MB, NULL, NULL);
    look_at(cache, 1);
    int64_t one = stats_of(cache).memory_bytes;
    qvl_cache_close(&cache);
    return n * one;
}

static void test_least_recently_used_goes(void **state) {
    (void)state;
    qvl_cache *cache = open_cache(room_for(3), NULL, NULL);
    for (uint64_t i = 0; i < 3; i++) assert_int_equal(look_at(cache, i), QVL_FOUND_NOWHERE);
    assert_int_equal(look_at(cache, 0), QVL_FOUND_MEMORY);
    assert_int_equal(look_at(cache, 3), QVL_FOUND_NOWHERE); /* 1 goes */
    assert_int_equal(look_at(cache, 0), QVL_FOUND_MEMORY);
    assert_int_equal(look_at(cache, 2), QVL_FOUND_MEMORY);
    assert_int_equal(look_at(cache, 1), QVL_FOUND_NOWHERE); /* 3 goes */
    assert_int_equal(look_at(cache, 3), QVL_FOUND_NOWHERE);
    qvl_cache_stats stats = stats_of(cache);
    assert_int_equal(stats.memory_entries, 3);
    assert_int_equal(stats.memory_bytes, stats.memory_budget);
    assert_int_equal(stats.evicted, 3);
    assert_int_equal(stats.encoded, 6);
    assert_int_equal(stats.memory_hits, 3);
    qvl_cache_close(&cache);
}

/* Entries in use stay, and the budget holds: then what is new is not kept. Views outlive entry and cache. */
static void test_entries_in_use_are_pinned(void **state) {
    (void)state;
    qvl_cache *cache = open_cache(room_for(2), NULL, NULL);
    struct qvl_shared_features *held[2];
    for (uint64_t i = 0; i < 2; i++) {
        encoder e = {.number = i};
        qvl_found found;
        assert_int_equal(look(cache, &e, NULL, &held[i], &found), QVL_OK);
    }
    assert_int_equal(look_at(cache, 2), QVL_FOUND_NOWHERE);
    assert_int_equal(look_at(cache, 2), QVL_FOUND_NOWHERE);
    assert_int_equal(look_at(cache, 0), QVL_FOUND_MEMORY);
    assert_int_equal(look_at(cache, 1), QVL_FOUND_MEMORY);
    qvl_shared_release(held[1]);
    assert_int_equal(look_at(cache, 2), QVL_FOUND_NOWHERE); /* 1 goes */
    assert_int_equal(look_at(cache, 2), QVL_FOUND_MEMORY);
    assert_int_equal(look_at(cache, 0), QVL_FOUND_MEMORY);
    qvl_features view = qvl_shared_view(held[0]);
    qvl_shared_release(held[0]);
    assert_int_equal(qvl_cache_clear(cache, NULL), QVL_OK);
    assert_int_equal(look_at(cache, 0), QVL_FOUND_NOWHERE);
    qvl_cache_close(&cache);
    assert_true(are_features(&view, &small_shape, 0));
    qvl_features_free(&view);
}

static void test_no_memory_tier(void **state) {
    (void)state;
    qvl_cache *cache = open_cache(0, scratch("disk-only"), NULL);
    assert_int_equal(look_at(cache, 1), QVL_FOUND_NOWHERE);
    assert_int_equal(look_at(cache, 1), QVL_FOUND_DISK);
    qvl_cache_close(&cache);
    cache = open_cache(MB, scratch("disk-only"), NULL);
    assert_int_equal(look_at(cache, 1), QVL_FOUND_DISK);
    assert_int_equal(look_at(cache, 1), QVL_FOUND_MEMORY);
    assert_int_equal(stats_of(cache).disk_entries, 1);
    qvl_cache_close(&cache);
}

static void test_unusable_folder_is_a_note(void **state) {
    (void)state;
    notes heard = {.count = 0};
    qvl_cache *cache = open_cache(MB, "/proc/nowhere", &heard);
    assert_int_equal(heard.count, 1);
    assert_says(heard.text, "nothing is cached on disk: ");
    assert_int_equal(look_at(cache, 1), QVL_FOUND_NOWHERE);
    assert_int_equal(look_at(cache, 1), QVL_FOUND_MEMORY);
    assert_false(stats_of(cache).disk);
    assert_int_equal(heard.count, 1);
    qvl_cache_close(&cache);
}

static void test_impossible_options(void **state) {
    (void)state;
    static const struct {
        int64_t memory, disk;
        const char *folder, *word;
    } cases[] = {{-1, 2 * MB, NULL, "memory_bytes is -1"},
                 {MB, 5, "/tmp", "disk_bytes is 5"},
                 {MB, 2 * MB, "", "folder is empty"}};
    for (size_t i = 0; i < 3; i++) {
        qvl_cache_options options;
        qvl_cache_options_init(&options);
        options.memory_bytes = cases[i].memory;
        options.disk_bytes = cases[i].disk;
        options.folder = cases[i].folder;
        qvl_cache *cache;
        qvl_error error = {0};
        assert_int_equal(qvl_cache_open(&options, &cache, &error), QVL_ERROR_ARGUMENT);
        assert_null(cache);
        assert_says(error.message, cases[i].word);
    }
}

/* ---- single flight */

typedef struct request {
    qvl_cache *cache;
    encoder *encoder;
    const qvl_patience *patience;
    qvl_status status;
    qvl_found found;
    bool right;
    pthread_t thread;
} request;

static void *ask(void *user) {
    request *r = user;
    struct qvl_shared_features *shared;
    r->status = look(r->cache, r->encoder, r->patience, &shared, &r->found);
    r->right = !r->status && are_features(&shared->features, &small_shape, r->encoder->number);
    if (!r->status) qvl_shared_release(shared);
    return NULL;
}

static void wait_for_runs(encoder *e, int runs) {
    while (atomic_load(&e->runs) < runs) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

enum { ASKING = 12 };

static void start(request *requests, size_t count, qvl_cache *cache, encoder *e) {
    for (size_t i = 0; i < count; i++) {
        requests[i] = (request){.cache = cache, .encoder = e};
        assert_int_equal(pthread_create(&requests[i].thread, NULL, ask, &requests[i]), 0);
    }
}

/* However small the cache: those who wait share what the one makes. */
static void test_concurrent_requests_encode_once(void **state) {
    (void)state;
    for (int64_t budget = 0; budget <= MB; budget += MB) {
        qvl_cache *cache = open_cache(budget, NULL, NULL);
        atomic_bool hold = true;
        encoder e = {.number = 5, .hold = &hold};
        request requests[ASKING];
        start(requests, ASKING, cache, &e);
        wait_for_runs(&e, 1);
        nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
        atomic_store(&hold, false);
        int encoded = 0;
        for (size_t i = 0; i < ASKING; i++) {
            pthread_join(requests[i].thread, NULL);
            assert_true(requests[i].right);
            encoded += requests[i].found == QVL_FOUND_NOWHERE;
        }
        assert_int_equal(encoded, atomic_load(&e.runs));
        if (budget) assert_int_equal(encoded, 1);
        qvl_cache_stats stats = stats_of(cache);
        assert_int_equal(stats.encoded + stats.shared + stats.memory_hits, ASKING);
        qvl_cache_close(&cache);
    }
}

/* The leader fails, the next one tries and fails, ... each reports its own failure; then one succeeds for the rest. */
static void test_failed_leader_hands_over(void **state) {
    (void)state;
    qvl_cache *cache = open_cache(MB, NULL, NULL);
    atomic_bool hold = true;
    encoder bad = {.number = 6, .fails = QVL_ERROR_NUMERIC, .hold = &hold}, good = {.number = 6};
    request failing[2], others[ASKING];
    start(failing, 1, cache, &bad);
    wait_for_runs(&bad, 1);
    start(failing + 1, 1, cache, &bad);
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    start(others, ASKING, cache, &good);
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    atomic_store(&hold, false);
    for (size_t i = 0; i < ASKING; i++) {
        pthread_join(others[i].thread, NULL);
        assert_true(others[i].right);
    }
    for (size_t i = 0; i < 2; i++) pthread_join(failing[i].thread, NULL);
    assert_int_equal(failing[0].status, QVL_ERROR_NUMERIC);
    assert_int_equal(atomic_load(&good.runs), 1);
    qvl_cache_close(&cache);
}

static bool never(void *user) {
    (void)user;
    return false;
}

/* Who waits can give up, and nobody else notices. */
static void test_waiting_can_be_cancelled(void **state) {
    (void)state;
    qvl_cache *cache = open_cache(MB, NULL, NULL);
    atomic_bool hold = true;
    encoder e = {.number = 7, .hold = &hold};
    request first[1], impatient = {.cache = cache, .encoder = &e}, last[2];
    start(first, 1, cache, &e);
    wait_for_runs(&e, 1);
    const qvl_patience none = {never, NULL};
    impatient.patience = &none;
    ask(&impatient);
    assert_int_equal(impatient.status, QVL_ERROR_CANCELLED);
    start(last, 2, cache, &e);
    atomic_store(&hold, false);
    pthread_join(first[0].thread, NULL);
    assert_true(first[0].right);
    for (size_t i = 0; i < 2; i++) {
        pthread_join(last[i].thread, NULL);
        assert_true(last[i].right);
    }
    assert_int_equal(atomic_load(&e.runs), 1);
    qvl_cache_close(&cache);
}

/* ---- pictures */

static int64_t runs_of(qvl_cache *cache) {
    return stats_of(cache).encoded;
}

static void assert_same_features(const qvl_features *a, const qvl_features *b) {
    assert_int_equal(a->tokens, b->tokens);
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->deepstack_count, b->deepstack_count);
    size_t bytes = qvl_features_array_bytes(a);
    assert_memory_equal(a->embeds, b->embeds, bytes);
    for (int32_t i = 0; i < a->deepstack_count; i++) assert_memory_equal(a->deepstack[i], b->deepstack[i], bytes);
    assert_int_equal(a->item_count, b->item_count);
    for (size_t i = 0; i < a->item_count; i++) assert_same_item(&a->items[i], &b->items[i]);
}

static void use_cache(qvl_session *session, qvl_cache *cache) {
    qvl_error error = {0};
    if (qvl_session_use_cache(session, cache, &error)) fail_msg("%s", error.message);
}

/* Encodes with the cache and without it: equal bits. Returns how many groups the tower was needed for. */
static int64_t runs_for(qvl_session *session, qvl_cache *cache, const qvl_input *inputs, size_t count,
                        const qvl_preprocess_options *options) {
    use_cache(session, NULL);
    qvl_features plain = encode(session, inputs, count, options);
    use_cache(session, cache);
    int64_t before = runs_of(cache);
    qvl_features found = encode(session, inputs, count, options);
    assert_same_features(&found, &plain);
    int64_t runs = runs_of(cache) - before, encoded = 0, kept = 0;
    for (size_t i = 0; i < count; i++) {
        encoded += found.items[i].origin.encoded;
        kept += found.items[i].origin.memory + found.items[i].origin.disk;
        assert_int_equal(plain.items[i].origin.encoded, 1);
    }
    assert_int_equal(encoded, runs);
    assert_int_equal(encoded + kept, count);
    qvl_features_free(&plain);
    qvl_features_free(&found);
    return runs;
}

/* Pictures keep their size, small as they are. */
static qvl_preprocess_options unscaled(void) {
    qvl_preprocess_options options;
    qvl_preprocess_options_init(&options);
    options.min_pixels = 1;
    return options;
}

/* [A], [A, B], [B, A]: one key for each item, wherever it stands. */
static void report_68_a_second_picture(void **state) {
    (void)state;
    qvl_model *model = open_folder(QVL_RANDOM_MODEL, QVL_OPEN_WEIGHTS);
    qvl_session *session = open_session(model);
    qvl_cache *cache = open_cache(64 * MB, NULL, NULL);
    qvl_input a = make_rgb(200, 120), b = make_rgb(120, 300);
    const qvl_input ab[2] = {a, b}, ba[2] = {b, a};
    assert_int_equal(runs_for(session, cache, &a, 1, NULL), 1);
    assert_int_equal(runs_for(session, cache, ab, 2, NULL), 1);
    assert_int_equal(runs_for(session, cache, ba, 2, NULL), 0);
    assert_int_equal(runs_for(session, cache, (qvl_input[]){a, a, b}, 3, NULL), 0);
    free_picture(&a);
    free_picture(&b);
    qvl_session_close(&session);
    qvl_cache_close(&cache);
    qvl_model_close(&model);
}

static qvl_input transposed(const qvl_input *in) {
    qvl_input out = make_rgb(in->height, in->width);
    uint8_t *to = (uint8_t *)(uintptr_t)out.bytes;
    const uint8_t *from = in->bytes;
    for (int64_t y = 0; y < in->height; y++)
        for (int64_t x = 0; x < in->width; x++)
            memcpy(to + 3 * (x * in->height + y), from + 3 * (y * in->width + x), 3);
    return out;
}

/* Whatever changes pixels or patch rows is a miss, and only that: a name does not count. */
static void report_67_what_is_the_same(void **state) {
    (void)state;
    qvl_model *model = open_folder(QVL_RANDOM_MODEL, QVL_OPEN_WEIGHTS);
    qvl_session *session = open_session(model);
    qvl_cache *cache = open_cache(64 * MB, scratch("same"), NULL);
    qvl_input a = make_rgb(160, 96), same = make_rgb(160, 96), turned = transposed(&a);
    qvl_input flipped = make_rgb(160, 96), reshaped = a;
    ((uint8_t *)(uintptr_t)flipped.bytes)[3 * (50 * 160 + 70) + 1] ^= 1;
    reshaped.width = 96; /* the very same bytes as 96 x 160 */
    reshaped.height = 160;
    const qvl_preprocess_options as_is = unscaled();
    qvl_preprocess_options larger = as_is, mlx = as_is;
    larger.min_pixels = 60000;
    mlx.preset = QVL_PRESET_MLX;
    assert_int_equal(runs_for(session, cache, &a, 1, &as_is), 1);
    same.name = "another name";
    assert_int_equal(runs_for(session, cache, &same, 1, &as_is), 0);
    assert_int_equal(runs_for(session, cache, &flipped, 1, &as_is), 1);
    assert_int_equal(runs_for(session, cache, &turned, 1, &as_is), 1);
    assert_int_equal(runs_for(session, cache, &reshaped, 1, &as_is), 1);
    assert_int_equal(runs_for(session, cache, &a, 1, &larger), 1);
    assert_int_equal(runs_for(session, cache, &a, 1, &mlx), 1);
    assert_int_equal(runs_for(session, cache, &a, 1, &as_is), 0);
    const qvl_input clear = {.kind = QVL_INPUT_FILE, .name = MEDIA "rgba_8.png"};
    qvl_preprocess_options drop = as_is, red = as_is;
    drop.media.alpha = QVL_ALPHA_DROP;
    red.media.alpha_colour[1] = 0;
    assert_int_equal(runs_for(session, cache, &clear, 1, &as_is), 1);
    assert_int_equal(runs_for(session, cache, &clear, 1, &drop), 1);
    assert_int_equal(runs_for(session, cache, &clear, 1, &red), 1);
    assert_int_equal(runs_for(session, cache, &clear, 1, &drop), 0);
    qvl_session_close(&session);
    qvl_model_close(&model);
    free_picture(&a);
    free_picture(&same);
    free_picture(&turned);
    free_picture(&flipped);
    qvl_cache_close(&cache);
}

/* One cache for towers of other weights, dtypes and instruction sets; the same tower opened again is the same. */
static void test_towers_are_told_apart(void **state) {
    (void)state;
    char quarter[512], scaled[512];
    snprintf(quarter, sizeof quarter, "%s", make_model_folder("tiny-vl", "quarter", "f32"));
    snprintf(scaled, sizeof scaled, "%s", make_model_folder("tiny-vl", "scaled", "f32"));
    const struct {
        const char *folder;
        qvl_dtype dtype;
        uint32_t mask;
        int64_t runs;
    } cases[] = {{quarter, QVL_F32, QVL_CPU_ALL, 1},  {scaled, QVL_F32, QVL_CPU_ALL, 1},
                 {quarter, QVL_BF16, QVL_CPU_ALL, 1}, {quarter, QVL_F32, QVL_CPU_SCALAR, 1},
                 {quarter, QVL_F32, QVL_CPU_ALL, 0},  {scaled, QVL_F32, QVL_CPU_ALL, 0},
                 {quarter, QVL_BF16, QVL_CPU_ALL, 0}, {quarter, QVL_F32, QVL_CPU_SCALAR, 0}};
    const qvl_preprocess_options as_is = unscaled();
    qvl_input a = make_rgb(64, 48);
    qvl_cache *cache = open_cache(64 * MB, scratch("towers"), NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        qvl_model *model = open_model(cases[i].folder, cases[i].dtype, 1, cases[i].mask);
        qvl_session *session = open_session(model);
        assert_int_equal(runs_for(session, cache, &a, 1, &as_is), cases[i].runs);
        qvl_session_close(&session);
        qvl_model_close(&model);
    }
    free_picture(&a);
    qvl_cache_close(&cache);
}

/* From memory, from disk, after eviction, in any mixture: the bits of an encode without a cache. */
static void test_features_are_equal_bit_for_bit(void **state) {
    (void)state;
    enum { PICTURES = 9 };
    const qvl_preprocess_options as_is = unscaled();
    qvl_input pictures[PICTURES];
    for (int64_t i = 0; i < PICTURES; i++) pictures[i] = make_rgb(40 + 31 * i, 200 - 17 * i);
    for (int dtype = QVL_F32; dtype <= QVL_BF16; dtype++) {
        qvl_model *model = open_model(QVL_RANDOM_MODEL, (qvl_dtype)dtype, 2, QVL_CPU_ALL);
        qvl_session *session = open_session(model);
        qvl_cache *cache = open_cache(MB / 32, scratch(dtype ? "bits-bf16" : "bits-f32"), NULL);
        for (int round = 0; round < 3; round++) {
            for (size_t first = 0; first < PICTURES; first += 2)
                runs_for(session, cache, &pictures[first], first + 3 <= PICTURES ? 3 : 1, &as_is);
        }
        qvl_cache_stats stats = stats_of(cache);
        assert_int_equal(stats.encoded, PICTURES);
        assert_true(stats.memory_hits > 0 && stats.disk_hits > 0 && stats.evicted > 0);
        qvl_session_close(&session);
        qvl_cache_close(&cache);
        qvl_model_close(&model);
    }
    for (size_t i = 0; i < PICTURES; i++) free_picture(&pictures[i]);
}

/* A result of one picture is a view: two of them show the same memory. */
static void test_hits_are_views(void **state) {
    (void)state;
    qvl_model *model = open_folder(QVL_RANDOM_MODEL, QVL_OPEN_WEIGHTS);
    qvl_session *session = open_session(model);
    qvl_cache *cache = open_cache(64 * MB, NULL, NULL);
    use_cache(session, cache);
    qvl_input a = make_rgb(64, 64);
    qvl_features first = encode(session, &a, 1, NULL), second = encode(session, &a, 1, NULL);
    assert_ptr_equal(first.embeds, second.embeds);
    assert_ptr_equal(first.deepstack[0], second.deepstack[0]);
    assert_int_equal(second.items[0].origin.memory, 1);
    qvl_features_free(&first);
    qvl_session_close(&session);
    qvl_cache_close(&cache);
    session = open_session(model);
    qvl_features plain = encode(session, &a, 1, NULL);
    assert_same_features(&second, &plain);
    qvl_features_free(&second);
    qvl_features_free(&plain);
    free_picture(&a);
    qvl_session_close(&session);
    qvl_model_close(&model);
}

/* ---- the pipeline */

/* A profile and taps time and see the tower itself: no cache. */
static void test_profiles_and_taps_never_use_it(void **state) {
    (void)state;
    qvl_model *model = open_folder(QVL_RANDOM_MODEL, QVL_OPEN_WEIGHTS);
    qvl_session *session = open_session(model);
    qvl_cache *cache = open_cache(64 * MB, NULL, NULL);
    use_cache(session, cache);
    qvl_input a = make_rgb(64, 64);
    qvl_features f = encode(session, &a, 1, NULL);
    qvl_features_free(&f);
    qvl_profile profile = {{0}};
    static stages seen;
    qvl_encode_options profiled, tapped;
    qvl_encode_options_init(&profiled);
    tapped = profiled;
    profiled.profile = &profile;
    tapped.tap = keep_stage;
    tapped.tap_user = &seen;
    assert_int_equal(qvl_encode(session, &a, 1, NULL, &profiled, &f, NULL), QVL_OK);
    assert_true(profile.seconds[QVL_STAGE_MLP] > 0);
    assert_int_equal(f.items[0].origin.encoded, 1);
    qvl_features_free(&f);
    assert_int_equal(qvl_encode(session, &a, 1, NULL, &tapped, &f, NULL), QVL_OK);
    assert_non_null(find_stage(&seen, "merged"));
    qvl_features_free(&f);
    free_stages(&seen);
    assert_int_equal(stats_of(cache).memory_hits, 0);
    free_picture(&a);
    qvl_session_close(&session);
    qvl_cache_close(&cache);
    qvl_model_close(&model);
}

typedef struct handed {
    const qvl_features *plain; /* of all inputs */
    int64_t tokens;
    size_t groups, stop_at;
} handed;

static bool check_group(size_t input, int64_t group, const qvl_item *item, const qvl_features *features,
                        void *user) {
    handed *h = user;
    assert_int_equal(input, h->groups);
    assert_int_equal(group, 0);
    assert_int_equal(item->tokens, features->tokens);
    size_t row = (size_t)features->width * qvl_dtype_bits(features->dtype) / 8;
    assert_memory_equal(features->embeds, (const char *)h->plain->embeds + (size_t)h->tokens * row,
                        qvl_features_array_bytes(features));
    h->tokens += features->tokens;
    return ++h->groups != h->stop_at;
}

static void test_groups_are_handed_out_early(void **state) {
    (void)state;
    enum { PICTURES = 6 };
    qvl_model *model = open_folder(QVL_RANDOM_MODEL, QVL_OPEN_WEIGHTS);
    qvl_session *session = open_session(model);
    qvl_input pictures[PICTURES];
    for (int64_t i = 0; i < PICTURES; i++) pictures[i] = make_rgb(50 + 40 * i, 90);
    qvl_features plain = encode(session, pictures, PICTURES, NULL), f;
    handed h = {.plain = &plain};
    qvl_encode_options options;
    qvl_encode_options_init(&options);
    options.group = check_group;
    options.group_user = &h;
    assert_int_equal(qvl_encode(session, pictures, PICTURES, NULL, &options, &f, NULL), QVL_OK);
    assert_int_equal(h.groups, PICTURES);
    assert_same_features(&f, &plain);
    qvl_features_free(&f);
    h = (handed){.plain = &plain, .stop_at = 3};
    assert_int_equal(qvl_encode(session, pictures, PICTURES, NULL, &options, &f, NULL), QVL_ERROR_CANCELLED);
    assert_int_equal(h.groups, 3);
    assert_null(f.embeds);
    qvl_features_free(&plain);
    for (size_t i = 0; i < PICTURES; i++) free_picture(&pictures[i]);
    qvl_session_close(&session);
    qvl_model_close(&model);
}

/* The first input that fails is the one that is named, whatever was read ahead. */
static void test_first_failure_in_order(void **state) {
    (void)state;
    qvl_model *model = open_folder(QVL_RANDOM_MODEL, QVL_OPEN_WEIGHTS);
    qvl_session *session = open_session(model);
    qvl_input good = make_rgb(64, 64), strip = make_rgb(500, 1), strip2 = make_rgb(501, 1);
    strip.name = "first.png";
    strip2.name = "second.png";
    for (size_t at = 0; at < 6; at++) {
        qvl_input inputs[7];
        for (size_t i = 0; i < 7; i++) inputs[i] = good;
        inputs[at] = strip;
        inputs[at + 1] = strip2;
        qvl_features f;
        qvl_error error = {0};
        assert_int_equal(qvl_encode(session, inputs, 7, NULL, NULL, &f, &error), QVL_ERROR_LIMIT);
        assert_says(error.message, "first.png: ");
        assert_null(f.embeds);
    }
    free_picture(&good);
    free_picture(&strip);
    free_picture(&strip2);
    qvl_session_close(&session);
    qvl_model_close(&model);
}

typedef struct watch {
    int64_t last, total, calls, stop_at;
} watch;

static bool look_on(int64_t done, int64_t total, void *user) {
    watch *w = user;
    assert_true(done >= w->last && done <= total && (!w->total || total == w->total));
    w->last = done;
    w->total = total;
    return ++w->calls != w->stop_at;
}

/* Progress goes forward to its end, hits or not; a cancelled call leaves session and cache as they were. */
static void test_progress_and_cancellation(void **state) {
    (void)state;
    enum { PICTURES = 4 };
    qvl_model *model = open_folder(QVL_RANDOM_MODEL, QVL_OPEN_WEIGHTS);
    qvl_session *session = open_session(model);
    qvl_cache *cache = open_cache(64 * MB, NULL, NULL);
    qvl_input pictures[PICTURES];
    for (int64_t i = 0; i < PICTURES; i++) pictures[i] = make_rgb(64 + 32 * i, 64);
    qvl_features plain = encode(session, pictures, PICTURES, NULL), f;
    use_cache(session, cache);
    watch w = {0};
    qvl_encode_options options;
    qvl_encode_options_init(&options);
    options.progress = look_on;
    options.progress_user = &w;
    for (int64_t stop = 1; stop < 12; stop++) {
        w = (watch){.stop_at = stop};
        assert_int_equal(qvl_encode(session, pictures, PICTURES, NULL, &options, &f, NULL), QVL_ERROR_CANCELLED);
        assert_int_equal(w.calls, stop);
        assert_int_equal(qvl_cache_clear(cache, NULL), QVL_OK);
    }
    for (int round = 0; round < 2; round++) {
        w = (watch){0};
        assert_int_equal(qvl_encode(session, pictures, PICTURES, NULL, &options, &f, NULL), QVL_OK);
        assert_int_equal(w.last, w.total);
        assert_same_features(&f, &plain);
        qvl_features_free(&f);
    }
    assert_true(w.calls < 3 * PICTURES); /* hits have no steps */
    qvl_features_free(&plain);
    for (size_t i = 0; i < PICTURES; i++) free_picture(&pictures[i]);
    qvl_session_close(&session);
    qvl_cache_close(&cache);
    qvl_model_close(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_least_recently_used_goes),
        cmocka_unit_test(test_entries_in_use_are_pinned),
        cmocka_unit_test(test_no_memory_tier),
        cmocka_unit_test(test_unusable_folder_is_a_note),
        cmocka_unit_test(test_impossible_options),
        cmocka_unit_test(test_concurrent_requests_encode_once),
        cmocka_unit_test(test_failed_leader_hands_over),
        cmocka_unit_test(test_waiting_can_be_cancelled),
        cmocka_unit_test(report_68_a_second_picture),
        cmocka_unit_test(report_67_what_is_the_same),
        cmocka_unit_test(test_towers_are_told_apart),
        cmocka_unit_test(test_features_are_equal_bit_for_bit),
        cmocka_unit_test(test_hits_are_views),
        cmocka_unit_test(test_profiles_and_taps_never_use_it),
        cmocka_unit_test(test_groups_are_handed_out_early),
        cmocka_unit_test(test_first_failure_in_order),
        cmocka_unit_test(test_progress_and_cancellation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
