# Tests of the language model make their folders with random_model, as the tower's do.
function(qvl_lm_test name)
  qvl_test(${name} ${CMAKE_SOURCE_DIR}/tests/lm/${name}.c ${CMAKE_SOURCE_DIR}/tests/lm/prompts.c
    ${CMAKE_SOURCE_DIR}/tests/vision/towers.c ${CMAKE_SOURCE_DIR}/tools/random_model/generator.c ${ARGN})
  target_compile_definitions(${name} PRIVATE QVL_RANDOM_MODEL_TOOL="$<TARGET_FILE:random_model>")
  target_link_libraries(${name} PRIVATE m)
  add_dependencies(${name} random_model)
endfunction()

qvl_lm_test(test_lm)
qvl_lm_test(test_hybrid ${CMAKE_SOURCE_DIR}/tests/lm/hybrid.c)
qvl_lm_test(test_lm_invariance)
qvl_lm_test(test_hybrid_state ${CMAKE_SOURCE_DIR}/tests/lm/hybrid.c)
qvl_lm_test(test_hybrid_chat ${CMAKE_SOURCE_DIR}/tests/prompt/support.c)
qvl_lm_test(test_hybrid_folders ${CMAKE_SOURCE_DIR}/tests/lm/hybrid.c)
if(NOT QVL_SANITIZE)
  qvl_lm_test(test_hybrid_allocation ${CMAKE_SOURCE_DIR}/tests/lm/hybrid.c
    ${CMAKE_SOURCE_DIR}/tests/base/failing_allocation.c)
endif()
qvl_lm_test(test_lm_folders)
qvl_lm_test(test_bench_lm)
if(NOT QVL_SANITIZE)
  qvl_lm_test(test_lm_errors ${CMAKE_SOURCE_DIR}/tests/base/failing_allocation.c)
endif()
