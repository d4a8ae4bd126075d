/* Merging by rank: short words, long words and a plain version of the rule give the same; so does NFC in linear time. */
#include "text/bpe.h"

#include "base/memory.h"
#include "text/normalize.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <utf8proc.h>

#define MERGES 40
#define LONGEST 300

static uint32_t next_random(uint32_t *state, uint32_t below) {
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

typedef struct merge {
    int32_t left, right, rank, id;
} merge;

/* Ids of bytes are the bytes; merges of random pairs of ids, the id of rank r is 256 + r. */
static void make_merges(qvl_bpe *bpe, merge *merges, uint32_t *seed) {
    int32_t byte_ids[256];
    assert_int_equal(qvl_bpe_open(bpe, MERGES, NULL), QVL_OK);
    for (int32_t r = 0; r < MERGES;) {
        merge m = {.rank = r, .id = 256 + r};
        m.left = next_random(seed, 2) && r ? 256 + (int32_t)next_random(seed, (uint32_t)r)
                                           : 'a' + (int32_t)next_random(seed, 3);
        m.right = next_random(seed, 2) && r ? 256 + (int32_t)next_random(seed, (uint32_t)r)
                                            : 'a' + (int32_t)next_random(seed, 3);
        bool known = false;
        for (int32_t k = 0; k < r; k++) known |= merges[k].left == m.left && merges[k].right == m.right;
        if (known) continue;
        merges[r++] = m;
        qvl_bpe_add(bpe, m.left, m.right, m.rank, m.id);
    }
    for (int32_t b = 0; b < 256; b++) byte_ids[b] = b;
    qvl_bpe_finish(bpe, byte_ids);
}

/* The rule as it stands in the header. */
static size_t merge_plainly(const merge *merges, int32_t *ids, size_t count) {
    for (;;) {
        const merge *best = NULL;
        size_t where = 0;
        for (size_t i = 0; i + 1 < count; i++)
            for (int32_t r = 0; r < MERGES; r++)
                if (merges[r].left == ids[i] && merges[r].right == ids[i + 1] && (!best || r < best->rank)) {
                    best = &merges[r];
                    where = i;
                }
        if (!best) return count;
        ids[where] = best->id;
        memmove(ids + where + 1, ids + where + 2, (count - where - 2) * sizeof *ids);
        count--;
    }
}

static void test_merging(void **state) {
    (void)state;
    uint32_t seed = 1;
    qvl_bpe_scratch scratch = {0};
    for (int round = 0; round < 300; round++) {
        qvl_bpe bpe;
        merge merges[MERGES];
        make_merges(&bpe, merges, &seed);
        for (int k = 0; k < 12; k++) {
            uint8_t word[LONGEST];
            int32_t ids[LONGEST], other[LONGEST], wanted[LONGEST];
            size_t starts[LONGEST], other_starts[LONGEST], found, other_found;
            size_t count = 1 + next_random(&seed, k < 8 ? 40 : LONGEST);
            for (size_t i = 0; i < count; i++) {
                word[i] = (uint8_t)('a' + next_random(&seed, 3));
                wanted[i] = word[i];
            }
            size_t wanted_count = merge_plainly(merges, wanted, count);
            assert_int_equal(qvl_bpe_encode(&bpe, &scratch, word, count, ids, starts, &found, NULL), QVL_OK);
            assert_int_equal(found, wanted_count);
            assert_memory_equal(ids, wanted, found * sizeof *ids);
            /* With merges that may share an id every word goes the long way. */
            bpe.distinct = false;
            assert_int_equal(qvl_bpe_encode(&bpe, &scratch, word, count, other, other_starts, &other_found, NULL),
                             QVL_OK);
            bpe.distinct = true;
            assert_int_equal(other_found, found);
            assert_memory_equal(other, ids, found * sizeof *ids);
            assert_memory_equal(other_starts, starts, found * sizeof *starts);
            assert_int_equal(starts[0], 0);
        }
        qvl_bpe_close(&bpe);
    }
    qvl_bpe_scratch_free(&scratch);
}

/* ------------------------------------------------------------------------------------------------------------ NFC */

static size_t normalize(const qvl_unicode *unicode, qvl_normalizer *normalizer, const uint8_t *text, size_t count,
                        uint8_t *out) {
    qvl_rewrite rewrite;
    const uint8_t *result;
    size_t size;
    qvl_rewrite_start(&rewrite, text, count);
    assert_int_equal(qvl_normalize(normalizer, unicode, &rewrite, 0, count, NULL), QVL_OK);
    assert_int_equal(qvl_rewrite_end(&rewrite, &result, &size, NULL), QVL_OK);
    memcpy(out, result, size);
    for (size_t i = 1; i < rewrite.edit_count; i++)
        assert_true(rewrite.edits[i - 1].from_end <= rewrite.edits[i].from);
    qvl_rewrite_free(&rewrite);
    return size;
}

/* utf8proc's own NFC, on characters that the reference's Unicode 9 has too. */
static void test_nfc(void **state) {
    (void)state;
    static const uint32_t likely[] = {
        'a',    'e',    'i',     0xe9,   0x1ea1, 0x301,  0x323,  0x327, 0x334, 0x345, 0x915, 0x93c, 0x94d,
        0x1100, 0x1161, 0x11a8,  0xac00, 0xac01, 0x212b, 0x1f82, 0x5e9, 0x5bc, 0x5c1, 0x622, 0x653, 0xf73,
        0x344,  0x2adc, 0x1d15e, 0x304b, 0x3099, 0xfb2c, 0x2126, 0x37e, 0x958, 0x9cb, 0x9be};
    qvl_unicode unicode;
    qvl_normalizer normalizer = {0};
    uint32_t seed = 9;
    assert_int_equal(qvl_unicode_open(&unicode, NULL), QVL_OK);
    for (int round = 0; round < 60000; round++) {
        uint8_t text[256], out[1024];
        size_t count = 0;
        for (uint32_t n = next_random(&seed, 16); n > 0; n--) {
            uint32_t code = next_random(&seed, 3) ? likely[next_random(&seed, sizeof likely / sizeof likely[0])]
                                                  : 1 + next_random(&seed, 0x2fff);
            if ((qvl_unicode_value(&unicode, code) & QVL_NFC) == QVL_NFC_INERT) continue;
            if (code == 0x11a7) continue; /* utf8proc 2.8 drops it behind a Hangul syllable */
            count += qvl_utf8_put(code, text + count);
        }
        text[count] = 0;
        uint8_t *wanted = utf8proc_NFC(text);
        assert_non_null(wanted);
        size_t size = normalize(&unicode, &normalizer, text, count, out);
        assert_int_equal(size, strlen((char *)wanted));
        assert_memory_equal(out, wanted, size);
        free(wanted);
    }
    qvl_normalizer_free(&normalizer);
    qvl_unicode_close(&unicode);
}

/* Newer characters neither move nor let others move; and a heap of marks takes no quadratic time. */
static void test_nfc_of_newer_characters_and_heaps(void **state) {
    (void)state;
    qvl_unicode unicode;
    qvl_normalizer normalizer = {0};
    uint8_t out[64];
    assert_int_equal(qvl_unicode_open(&unicode, NULL), QVL_OK);
    const char *inert[] = {
        "a\xe1\xab\x81\xcc\xa7",            /* U+1AC1 (class 230 in Unicode 14), then a class of 202: not sorted */
        "\xf0\x91\xa4\xb5\xf0\x91\xa4\xb0", /* U+11935 U+11930 compose since Unicode 13 */
        "\xf0\x91\xa4\xb8",
    };
    for (size_t i = 0; i < sizeof inert / sizeof inert[0]; i++) {
        size_t count = strlen(inert[i]);
        assert_int_equal(normalize(&unicode, &normalizer, (const uint8_t *)inert[i], count, out), count);
        assert_memory_equal(out, inert[i], count);
    }
    size_t half = 200000, count = 4 * half;
    uint8_t *heap = malloc(count), *sorted = malloc(count);
    assert_non_null(heap);
    assert_non_null(sorted);
    for (size_t i = 0; i < half; i++) {
        memcpy(heap + 2 * i, "\xcc\x8d", 2);          /* U+030D, class 230 */
        memcpy(heap + 2 * (half + i), "\xcc\xb4", 2); /* U+0334, class 1 */
    }
    assert_int_equal(normalize(&unicode, &normalizer, heap, count, sorted), count);
    assert_memory_equal(sorted, "\xcc\xb4\xcc\xb4", 4);
    assert_memory_equal(sorted + count - 4, "\xcc\x8d\xcc\x8d", 4);
    free(heap);
    free(sorted);
    qvl_normalizer_free(&normalizer);
    qvl_unicode_close(&unicode);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merging),
        cmocka_unit_test(test_nfc),
        cmocka_unit_test(test_nfc_of_newer_characters_and_heaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
