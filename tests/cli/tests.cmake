# Tests of the programs: each runs the real one.
function(qvl_program_test name)
  qvl_test(${name} cli/${name}.c cli/program.c ${ARGN})
  target_compile_definitions(${name} PRIVATE QVL_PROGRAM="$<TARGET_FILE:qvl>"
    QVL_DEMO_MODEL_TOOL="$<TARGET_FILE:demo_model>")
  add_dependencies(${name} qvl demo_model)
endfunction()

set(DEMO_MODEL ${CMAKE_SOURCE_DIR}/tools/demo_model)
qvl_program_test(test_usage)
qvl_program_test(test_commands)
qvl_program_test(test_read_flags)
qvl_program_test(test_info)
qvl_program_test(test_plan cli/pictures.c)
qvl_program_test(test_prompt_commands)
qvl_program_test(test_cache_commands)
qvl_program_test(test_ask cli/models.c cli/pictures.c)
qvl_program_test(test_thinking_flags cli/models.c)
qvl_program_test(test_chat cli/models.c cli/pictures.c cli/terminal.c)
qvl_program_test(test_video_commands media/clips.c media/support.c)
target_link_libraries(test_video_commands PRIVATE PkgConfig::FFMPEG m)
qvl_program_test(test_box cli/pictures.c)
target_link_libraries(test_box PRIVATE m)
qvl_program_test(test_demo_model ${DEMO_MODEL}/generator.c ${DEMO_MODEL}/shapes.c ${DEMO_MODEL}/tensors.c)
target_link_libraries(test_demo_model PRIVATE m)

# The library example of the README, against the shared library.
add_executable(example_encode ${CMAKE_SOURCE_DIR}/examples/encode.c)
target_link_libraries(example_encode PRIVATE qvl_shared)
add_test(NAME example_encode COMMAND example_encode ${CMAKE_SOURCE_DIR}/models/demo
  ${CMAKE_SOURCE_DIR}/examples/scene.jpg)
set_tests_properties(example_encode PROPERTIES LABELS offline
  PASS_REGULAR_EXPRESSION "260 tokens of 64 values")
