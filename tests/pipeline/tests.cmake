# The whole pipeline through the public header, with the bundled demo model.
qvl_test(test_dry_run pipeline/test_dry_run.c pipeline/pipeline.c)
qvl_test(test_reports pipeline/test_reports.c pipeline/pipeline.c ${PREPROCESS_SUPPORT})
