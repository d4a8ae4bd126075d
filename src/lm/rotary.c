/* Frequencies and angles are rounded to f32 where transformers rounds them: at position 10,000 the last bit of an angle is
 * 0.001. */
#include "lm/rotary.h"

#include <math.h>

/* The dimension that turns `turns` times within the original length. */
static double turning_dimension(const qvl_text_config *c, double turns) {
    const double pi = 3.14159265358979323846;
    return c->rotary * log(c->yarn.original_max_positions / (turns * 2.0 * pi)) /
           (2.0 * log((double)c->rope_theta));
}

/* From the plain frequency, 1 / period, to that divided by the factor, between two dimensions. */
static float stretch(const qvl_text_config *c, int32_t i, float period) {
    double low = floor(turning_dimension(c, c->yarn.beta_fast)),
           high = ceil(turning_dimension(c, c->yarn.beta_slow));
    low = low > 0.0 ? low : 0.0;
    high = high < c->rotary - 1 ? high : c->rotary - 1;
    if (low == high) high += 0.001;
    float ramp = ((float)i - (float)low) / (float)(high - low);
    float plain = 1.0f - (ramp < 0.0f ? 0.0f : ramp > 1.0f ? 1.0f : ramp);
    return 1.0f / ((float)c->yarn.factor * period) * (1.0f - plain) + 1.0f / period * plain;
}

void qvl_rotary_init(const qvl_text_config *c, qvl_rotary *r) {
    *r = (qvl_rotary){.half = c->rotary / 2, .factor = c->yarn.on ? (float)c->yarn.attention_factor : 1.0f};
    for (int32_t i = 0; i < r->half; i++) {
        float exponent = (float)(2 * i) / (float)c->rotary;
        float period = (float)pow((double)c->rope_theta, (double)exponent);
        r->frequency[i] = c->yarn.on ? stretch(c, i, period) : 1.0f / period;
        int32_t axis = i % 3;
        r->axis[i] = (uint8_t)(axis && i < c->sections[axis] * 3 ? axis : 0);
    }
}

void qvl_rotary_row(const qvl_rotary *r, const int64_t position[3], float *cosine, float *sine) {
    for (int32_t i = 0; i < r->half; i++) {
        float angle = (float)position[r->axis[i]] * r->frequency[i];
        cosine[i] = (float)cos((double)angle) * r->factor;
        sine[i] = (float)sin((double)angle) * r->factor;
    }
}
