qvl_test(test_json model/test_json.c)
qvl_test(test_config model/test_config.c)
qvl_test(test_safetensors model/test_safetensors.c)
qvl_test(test_weights model/test_weights.c)
set_tests_properties(test_json test_safetensors PROPERTIES TIMEOUT 60) # quadratic work takes minutes
qvl_oracle_test(safetensors_oracle safetensors_oracle.py)
qvl_oracle_test(config_oracle config_oracle.py)
