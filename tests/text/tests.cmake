find_package(ZLIB REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)

set(text_support text/small_tokenizer.c)
qvl_test(test_tokenizer text/test_tokenizer.c ${text_support})
qvl_test(test_tokenizer_load text/test_tokenizer_load.c ${text_support})
qvl_test(test_bpe text/test_bpe.c)
target_link_libraries(test_bpe PRIVATE PkgConfig::UTF8PROC)
qvl_test(test_split text/test_split.c)
target_link_libraries(test_split PRIVATE PkgConfig::PCRE2)
qvl_test(test_qwen3_tokenizer text/test_qwen3_tokenizer.c ${text_support})
target_link_libraries(test_qwen3_tokenizer PRIVATE ZLIB::ZLIB)
if(NOT QVL_SANITIZE)
  qvl_test(test_tokenizer_allocation text/test_tokenizer_allocation.c base/failing_allocation.c ${text_support})
endif()
set_tests_properties(test_tokenizer test_bpe PROPERTIES TIMEOUT 120) # quadratic work takes minutes
qvl_oracle_test(tokenizer_oracle tokenizer_oracle.py)

# Templates. The published ones are read from ${QVL_DATA}.
qvl_test(test_jinja text/test_jinja.c)
qvl_test(test_jinja_limits text/test_jinja_limits.c)
qvl_test(test_template_find text/test_template_find.c)
qvl_oracle_test(jinja_oracle jinja_oracle.py)
