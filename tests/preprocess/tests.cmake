set(PREPROCESS_SUPPORT preprocess/support.c)
qvl_test(test_geometry preprocess/test_geometry.c ${PREPROCESS_SUPPORT})
qvl_test(test_resample preprocess/test_resample.c ${PREPROCESS_SUPPORT})
qvl_test(test_patches preprocess/test_patches.c ${PREPROCESS_SUPPORT})
qvl_test(test_reference_fixtures preprocess/test_reference_fixtures.c ${PREPROCESS_SUPPORT})

qvl_oracle_test(oracle_preprocess preprocess_oracle.py)
qvl_test(test_coordinates preprocess/test_coordinates.c)
target_link_libraries(test_coordinates PRIVATE m)
