qvl_test(test_kernels compute/test_kernels.c)
target_link_libraries(test_kernels PRIVATE m)
qvl_test(test_operations compute/test_operations.c)
target_link_libraries(test_operations PRIVATE m)
