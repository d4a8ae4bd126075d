#include "qvl.h"

static const struct {
    const char *name;
    size_t bits;
} dtypes[] = {
    [QVL_F32] = {"F32", 32},
    [QVL_BF16] = {"BF16", 16},
    [QVL_F16] = {"F16", 16},
    [QVL_I64] = {"I64", 64},
    [QVL_U8] = {"U8", 8},
    [QVL_I32] = {"I32", 32},
    [QVL_F64] = {"F64", 64},
    [QVL_I16] = {"I16", 16},
    [QVL_I8] = {"I8", 8},
    [QVL_U16] = {"U16", 16},
    [QVL_U32] = {"U32", 32},
    [QVL_U64] = {"U64", 64},
    [QVL_BOOL] = {"BOOL", 8},
    [QVL_F8_E4M3] = {"F8_E4M3", 8},
    [QVL_F8_E5M2] = {"F8_E5M2", 8},
    [QVL_F8_E8M0] = {"F8_E8M0", 8},
    [QVL_F6_E2M3] = {"F6_E2M3", 6},
    [QVL_F6_E3M2] = {"F6_E3M2", 6},
    [QVL_F4] = {"F4", 4},
    [QVL_C64] = {"C64", 64},
    [QVL_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", 8},
    [QVL_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", 8},
};

size_t qvl_dtype_bits(qvl_dtype dtype) {
    size_t i = (size_t)dtype;
    return i < sizeof dtypes / sizeof dtypes[0] ? dtypes[i].bits : 0;
}

const char *qvl_dtype_name(qvl_dtype dtype) {
    size_t i = (size_t)dtype;
    return i < sizeof dtypes / sizeof dtypes[0] ? dtypes[i].name : "?";
}
