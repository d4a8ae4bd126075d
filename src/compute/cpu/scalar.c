/* The specification: every kernel as plainly as it can be said. */
#include "compute/cpu/scalar_math.h"

const float qvl_exp2_coefficients[8] = {1.0f,           0.693147182f,   0.240226507f,    0.0555041097f,
                                        0.00961802527f, 0.00133334508f, 0.000154697322f, 1.53100809e-05f};

const float qvl_erfc_coefficients[QVL_ERFC_TERMS] = {-0.671794057f,  1.34528637f,  0.189373016f,   -0.375148267f,
                                                     -0.157955095f,  0.28178364f,  0.112646095f,   -0.290605605f,
                                                     -0.0428080074f, 0.273325294f, -0.0310696401f, -0.119526982f};

static float gelu_tanh(float x) {
    float inner = fmaf(x * x, QVL_GELU_CUBIC, 1.0f) * x;
    return x / (1.0f + exponential(inner * QVL_GELU_SLOPE));
}

static float gelu_erf(float x) {
    float z = fabsf(x) * QVL_SQRT_HALF;
    float t = 1.0f / fmaf(z, 0.5f, 1.0f);
    float s = t - 0.5f;
    float p = qvl_erfc_coefficients[QVL_ERFC_TERMS - 1];
    for (int i = QVL_ERFC_TERMS - 2; i >= 0; i--) p = fmaf(p, s, qvl_erfc_coefficients[i]);
    float erfc = t * exponential(fmaf(-z, z, p));
    float half = x * 0.5f;
    return x > 0.0f ? fmaf(-half, erfc, x) : half * erfc;
}

static void product(int64_t rows, int64_t cols, int64_t k, const float *a, int64_t lda, const float *b,
                    int64_t ldb, float *c, int64_t ldc, bool add, qvl_ahead next) {
    (void)next;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            float s = 0.0f;
            for (int64_t l = 0; l < k; l++) s = fmaf(a[i * lda + l], b[l * ldb + j], s);
            c[i * ldc + j] = add ? c[i * ldc + j] + s : s;
        }
}

static void finish(qvl_epilogue kind, bool round, int64_t rows, int64_t cols, const float *c, int64_t ldc,
                   const float *bias, float *out, int64_t ldo) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            float v = c[i * ldc + j] + bias[j];
            if (kind == QVL_EPILOGUE_ADD) v = out[i * ldo + j] + v;
            if (kind == QVL_EPILOGUE_TANH) v = gelu_tanh(v);
            if (kind == QVL_EPILOGUE_ERF) v = gelu_erf(v);
            out[i * ldo + j] = round ? round_to_bf16(v) : v;
        }
}

static void layer_norm(int64_t n, const float *x, const float *weight, const float *bias, float eps, bool round,
                       float *y) {
    float lanes[QVL_LANES] = {0};
    for (int64_t i = 0; i < n; i++) lanes[i % QVL_LANES] += x[i];
    float mean = sum_lanes(lanes) / (float)n;
    float squares[QVL_LANES] = {0};
    for (int64_t i = 0; i < n; i++) {
        float d = x[i] - mean;
        squares[i % QVL_LANES] = fmaf(d, d, squares[i % QVL_LANES]);
    }
    float inverse = 1.0f / sqrtf(sum_lanes(squares) / (float)n + eps);
    for (int64_t i = 0; i < n; i++) {
        float v = fmaf((x[i] - mean) * inverse, weight[i], bias[i]);
        y[i] = round ? round_to_bf16(v) : v;
    }
}

static float maximum(int64_t n, const float *x) {
    float m = -INFINITY;
    for (int64_t i = 0; i < n; i++) m = x[i] > m ? x[i] : m;
    return m;
}

static float exponentials(int64_t n, float *x, float top, float factor, bool round) {
    float lanes[QVL_LANES] = {0};
    for (int64_t i = 0; i < n; i++) {
        float p = exp2_scaled(x[i] - top, factor);
        x[i] = round ? round_to_bf16(p) : p;
        lanes[i % QVL_LANES] += x[i];
    }
    return sum_lanes(lanes);
}

static void scale(int64_t n, float *x, float factor) {
    for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

static void round_bf16(int64_t n, const float *x, float *out) {
    for (int64_t i = 0; i < n; i++) out[i] = round_to_bf16(x[i]);
}

static void widen_bf16(int64_t n, const uint16_t *x, float *out) {
    for (int64_t i = 0; i < n; i++) out[i] = qvl_f32_from_bf16(x[i]);
}

static double multiply_adds(int64_t n) {
    volatile float result;
    float s[4] = {0.0f, 0.25f, 0.5f, 0.75f};
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < 4; j++) s[j] = fmaf(s[j], 0.5f, 0.25f);
    result = s[0] + s[1] + s[2] + s[3];
    (void)result;
    return 2.0 * 4.0 * (double)n;
}

const qvl_kernels qvl_kernels_scalar = {
    .name = "scalar",
    .product = product,
    .finish = finish,
    .layer_norm = layer_norm,
    .maximum = maximum,
    .exponentials = exponentials,
    .scale = scale,
    .round_bf16 = round_bf16,
    .widen_bf16 = widen_bf16,
    .multiply_adds = multiply_adds,
};
