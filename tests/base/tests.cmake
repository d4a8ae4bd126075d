qvl_test(test_base base/test_base.c)
