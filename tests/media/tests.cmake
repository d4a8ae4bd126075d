qvl_test(test_media media/test_media.c)
qvl_oracle_test(media_oracle media_oracle.py)
