/* Every allocation of reading a clip fails once: an error that says so, and nothing stays behind. */
#include "base/failing_allocation.h"

#include "preprocess/clip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static uint8_t pixels[3 * 100 * 80];

static qvl_status preprocess_once(const qvl_model *model, const qvl_input *list, qvl_error *error) {
    qvl_patches patches;
    qvl_status status = qvl_preprocess_inputs(model, list, 1, NULL, &patches, error);
    qvl_patches_free(&patches);
    return status;
}

static qvl_status plan_once(const qvl_model *model, const qvl_input *list, qvl_error *error) {
    qvl_plan plan;
    qvl_status status = qvl_plan_inputs(model, list, 1, NULL, &plan, error);
    qvl_plan_free(&plan);
    return status;
}

static void every_allocation(void **state) {
    (void)state;
    const qvl_model_options options = {
        .size = sizeof options, .level = QVL_OPEN_CONFIG, .dtype = QVL_BF16, .threads = 1};
    qvl_model *model;
    assert_int_equal(qvl_model_open(QVL_RANDOM_MODEL, &options, &model, NULL), QVL_OK);
    const qvl_input frame = {.kind = QVL_INPUT_RGB8, .bytes = pixels, .width = 100, .height = 80};
    const qvl_input frames[3] = {frame, frame, frame};
    const qvl_input list = {
        .kind = QVL_INPUT_FRAMES, .name = "list", .frames = frames, .frame_count = 3, .rate = 2};
    qvl_status (*const ways[])(const qvl_model *, const qvl_input *, qvl_error *) = {preprocess_once, plan_once};
    for (int way = 0; way < 2; way++) {
        bool failed = true;
        long count = 0, memory_errors = 0;
        for (; failed && count < 1000; count++) {
            qvl_error error = {0};
            long before = live_allocations();
            allocation_fails_after(count);
            qvl_status status = ways[way](model, &list, &error);
            failed = !allocation_failure_is_due();
            if (status) assert_int_equal(status, QVL_ERROR_MEMORY); /* some it can do without */
            memory_errors += status != QVL_OK;
            assert_int_equal(live_allocations(), before);
        }
        assert_true(memory_errors > 6 && count < 1000);
    }
    qvl_model_close(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
