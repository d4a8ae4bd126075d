qvl_oracle_test(generator_oracle generator_oracle.py)
qvl_oracle_test(tower_mlx_oracle tower_mlx_oracle.py)

# Tower tests make their model folders with random_model.
function(qvl_tower_test name)
  qvl_test(${name} ${CMAKE_SOURCE_DIR}/tests/vision/${name}.c ${CMAKE_SOURCE_DIR}/tests/vision/towers.c
    ${CMAKE_SOURCE_DIR}/tools/random_model/generator.c)
  target_compile_definitions(${name} PRIVATE QVL_RANDOM_MODEL_TOOL="$<TARGET_FILE:random_model>")
  target_link_libraries(${name} PRIVATE m)
  add_dependencies(${name} random_model)
endfunction()

qvl_tower_test(test_tower)
qvl_tower_test(test_invariance)
qvl_tower_test(test_tower_large)
qvl_tower_test(test_folders)
if(NOT QVL_SANITIZE)
  qvl_tower_test(test_allocation)
  target_sources(test_allocation PRIVATE base/failing_allocation.c)
endif()
