# Answers: sampling, the loop, and what a folder says about both.
qvl_test(test_sampler answers/test_sampler.c ${CMAKE_SOURCE_DIR}/tools/random_model/generator.c)
target_link_libraries(test_sampler PRIVATE m)
qvl_test(test_generation_config answers/test_generation_config.c prompt/support.c)
# Its language model follows a script: it is linked before the library's.
qvl_test(test_generate answers/test_generate.c answers/scripted_lm.c prompt/support.c)
target_link_libraries(test_generate PRIVATE m)
qvl_test(test_thinking answers/test_thinking.c answers/scripted_lm.c prompt/support.c)
target_link_libraries(test_thinking PRIVATE m)
qvl_test(test_conversation answers/test_conversation.c prompt/support.c)
if(NOT QVL_SANITIZE)
  qvl_test(test_answer_allocation answers/test_answer_allocation.c answers/scripted_lm.c base/failing_allocation.c
    prompt/support.c)
endif()
