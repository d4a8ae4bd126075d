qvl_test(test_base base/test_base.c)
qvl_test(test_waiting base/test_waiting.c)
