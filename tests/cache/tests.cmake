# The encoder cache and its store.
qvl_test(test_store cache/test_store.c cache/support.c)
# The test sees where a writer is that it kills.
target_link_options(test_store PRIVATE
  LINKER:--wrap=mdb_txn_begin,--wrap=mdb_txn_commit,--wrap=mdb_txn_abort)

# With real towers; random_model makes their folders.
function(qvl_cache_test name)
  qvl_test(${name} cache/${name}.c cache/support.c pipeline/pipeline.c vision/towers.c
    ${CMAKE_SOURCE_DIR}/tools/random_model/generator.c)
  target_compile_definitions(${name} PRIVATE QVL_RANDOM_MODEL_TOOL="$<TARGET_FILE:random_model>")
  target_link_libraries(${name} PRIVATE m)
  add_dependencies(${name} random_model)
endfunction()

qvl_cache_test(test_cache)
qvl_cache_test(test_cache_stress)

# The same for a minute, for builds with sanitizers: .ci/run asks for it.
add_test(NAME cache_stress_minute COMMAND test_cache_stress 60)
set_tests_properties(cache_stress_minute PROPERTIES LABELS stress TIMEOUT 600)

# The table of docs/PERFORMANCE.md: what a hit costs beside an encode. No test.
add_executable(time_cache cache/time_cache.c)
target_link_libraries(time_cache PRIVATE qvl_static)
