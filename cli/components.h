/* The principal components of features: the directions in which tokens differ most from one another. */
#ifndef CLI_COMPONENTS_H
#define CLI_COMPONENTS_H

#include "qvl.h"

enum { CLI_COMPONENTS = 3 };

/* scores [CLI_COMPONENTS, tokens]: where each token lies on the first components, largest variance first; of mean 0
 * and length 1 over the tokens. The token that lies farthest out is on the positive side; of several as far, to a
 * millionth, the first. All 0 where tokens do not vary in so many ways: in a direction with less than a millionth of
 * the first one's spread, so always beyond as many components as there are tokens but one. One thread, double
 * precision, a fixed order: equal features give equal bits. false: no memory. */
bool cli_find_components(const qvl_features *features, double *scores);

/* levels[CLI_COMPONENTS * i] = 0..255 for scores[i], i < count: from the 1st percentile to the 99th (between two
 * scores linearly, as numpy's default), what lies beyond them at the ends. Where these two are closer than a
 * billionth of the whole range, from the least to the largest; 128 where all are equal. false: no memory. */
bool cli_scale_component(const double *scores, int64_t count, uint8_t *levels);

#endif
