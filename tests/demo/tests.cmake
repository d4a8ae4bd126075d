# What the demo model answers. test_answers can ask another folder of its kind: -DQVL_DEMO_MODEL=FOLDER.
set(QVL_DEMO_MODEL ${CMAKE_SOURCE_DIR}/models/demo CACHE PATH "The demo model that tests ask")
function(qvl_demo_test name)
  qvl_test(${name} demo/${name}.c cli/program.c ${ARGN})
  target_compile_definitions(${name} PRIVATE QVL_PROGRAM="$<TARGET_FILE:qvl>" QVL_DEMO_MODEL="${QVL_DEMO_MODEL}")
  add_dependencies(${name} qvl)
endfunction()

qvl_demo_test(test_answers demo/asker.c)
qvl_demo_test(test_demo_folder)
