# The whole pipeline through the public header, with the random model.
qvl_test(test_dry_run pipeline/test_dry_run.c pipeline/pipeline.c)
qvl_test(test_reports pipeline/test_reports.c pipeline/pipeline.c ${PREPROCESS_SUPPORT})
qvl_test(test_video_reports pipeline/test_video_reports.c media/clips.c media/support.c)
target_link_libraries(test_video_reports PRIVATE PkgConfig::FFMPEG m)
