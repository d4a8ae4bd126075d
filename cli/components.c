/* A block Krylov method on the tokens' Gram matrix A = X X^T, X the features without their mean: an orthonormal basis
 * of tokens' scores grows by what A makes of its last vectors, and the best components within it are those of a small
 * symmetric matrix. A is never formed; features are read twice for each BLOCK of vectors. */
#include "components.h"

#include "values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A block finds components of equal variance, up to so many. The basis of a picture's tokens ends at about 20 to 60
 * vectors; MOST bounds the work for features without any structure. */
enum { BLOCK = 4, MOST = 160, SWEEPS = 40 };

/* Shares of the largest eigenvalue: of an error that does not matter, and of variance that is rounding noise. */
#define CONVERGED 1e-10
#define NO_VARIANCE 1e-12

typedef struct search {
    const qvl_features *features;
    size_t tokens, width;
    size_t limit;                /* vectors that the basis may get */
    size_t count;                /* that it has */
    double *mean;                /* [width] */
    double *row;                 /* [width] one token without the mean */
    double *sums;                /* [width, BLOCK] X^T of the last vectors */
    double *basis;               /* [1 + limit, tokens]; the first is constant, and keeps the others' means at 0 */
    double *image;               /* [BLOCK, tokens] A times the last vectors */
    double *product;             /* [MOST, MOST] the small matrix, basis A basis^T */
    double *scratch;             /* [MOST, MOST] becomes its eigenvalues, on the diagonal */
    double *turned;              /* [MOST, MOST] its eigenvectors, in columns */
    double left[BLOCK];          /* lengths of image beyond the basis */
    size_t best[CLI_COMPONENTS]; /* columns of turned, largest eigenvalue first */
    uint64_t random;
} search;

/* ---- tokens */

static double value_at(const qvl_features *features, size_t index) {
    return cli_value(features->dtype, features->embeds, index);
}

static void find_mean(search *s) {
    for (size_t t = 0; t < s->tokens; t++)
        for (size_t c = 0; c < s->width; c++) s->mean[c] += value_at(s->features, t * s->width + c);
    for (size_t c = 0; c < s->width; c++) s->mean[c] /= (double)s->tokens;
}

static void read_row(search *s, size_t token) {
    for (size_t c = 0; c < s->width; c++) s->row[c] = value_at(s->features, token * s->width + c) - s->mean[c];
}

static double *vector(const search *s, size_t index) {
    return s->basis + index * s->tokens;
}

/* image = A times the basis from first on, at most BLOCK vectors. */
static void multiply(search *s, size_t first) {
    size_t size = 1 + s->count - first;
    memset(s->sums, 0, s->width * BLOCK * sizeof *s->sums);
    for (size_t t = 0; t < s->tokens; t++) {
        double factor[BLOCK] = {0};
        for (size_t b = 0; b < size; b++) factor[b] = vector(s, first + b)[t];
        read_row(s, t);
        for (size_t c = 0; c < s->width; c++)
            for (size_t b = 0; b < BLOCK; b++) s->sums[c * BLOCK + b] += factor[b] * s->row[c];
    }
    for (size_t t = 0; t < s->tokens; t++) {
        double sum[BLOCK] = {0};
        read_row(s, t);
        for (size_t c = 0; c < s->width; c++)
            for (size_t b = 0; b < BLOCK; b++) sum[b] += s->sums[c * BLOCK + b] * s->row[c];
        for (size_t b = 0; b < BLOCK; b++) s->image[b * s->tokens + t] = sum[b];
    }
}

/* ---- the basis */

static double dot(const double *a, const double *b, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

/* Takes from v what the basis has of it, twice, for what rounding left; returns the length of the rest. */
static double reduce(const search *s, double *v) {
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i <= s->count; i++) {
            const double *q = vector(s, i);
            double share = dot(q, v, s->tokens);
            for (size_t t = 0; t < s->tokens; t++) v[t] -= share * q[t];
        }
    return sqrt(dot(v, v, s->tokens));
}

/* SplitMix64, to -1..1. */
static double draw(search *s) {
    uint64_t z = s->random += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (double)(int64_t)((z ^ z >> 31) >> 11) / (double)((int64_t)1 << 52) - 1.0;
}

/* Adds v, or an arbitrary vector where v (NULL: none) says nothing new. */
static void extend(search *s, const double *v, double scale) {
    double *q = vector(s, 1 + s->count), length = 0.0;
    if (v) {
        memcpy(q, v, s->tokens * sizeof *q);
        length = reduce(s, q);
    }
    while (length <= CONVERGED * scale) {
        for (size_t t = 0; t < s->tokens; t++) q[t] = draw(s);
        scale = 0.0;
        length = reduce(s, q);
    }
    for (size_t t = 0; t < s->tokens; t++) q[t] /= length;
    s->count++;
}

/* ---- the small matrix */

/* Rows and columns of product from first on, of image; then image is cut to what lies beyond the basis. */
static void project(search *s, size_t first) {
    for (size_t b = 0; first + b <= s->count; b++) {
        double *image = s->image + b * s->tokens;
        size_t column = first + b - 1;
        for (size_t i = 0; i < s->count; i++) {
            double share = dot(vector(s, 1 + i), image, s->tokens);
            s->product[i * MOST + column] = s->product[column * MOST + i] = share;
        }
        s->left[b] = reduce(s, image);
    }
}

/* Rotates rows and columns p and q of a so that a[p][q] becomes 0. */
static void rotate(double *a, double *v, size_t n, size_t p, size_t q) {
    double off = a[p * MOST + q];
    if (off == 0.0) return;
    double slope = (a[q * MOST + q] - a[p * MOST + p]) / (2.0 * off);
    double t = (slope < 0.0 ? -1.0 : 1.0) / (fabs(slope) + sqrt(1.0 + slope * slope));
    double c = 1.0 / sqrt(1.0 + t * t), d = t * c;
    for (size_t i = 0; i < n; i++) {
        double x = a[i * MOST + p], y = a[i * MOST + q];
        a[i * MOST + p] = c * x - d * y;
        a[i * MOST + q] = d * x + c * y;
    }
    for (size_t i = 0; i < n; i++) {
        double x = a[p * MOST + i], y = a[q * MOST + i], z = v[i * MOST + p], w = v[i * MOST + q];
        a[p * MOST + i] = c * x - d * y;
        a[q * MOST + i] = d * x + c * y;
        v[i * MOST + p] = c * z - d * w;
        v[i * MOST + q] = d * z + c * w;
    }
    a[p * MOST + q] = a[q * MOST + p] = 0.0;
}

/* Jacobi's method on product. */
static void diagonalise(search *s) {
    double *a = s->scratch, *v = s->turned;
    size_t n = s->count;
    memcpy(a, s->product, sizeof(double) * MOST * MOST);
    memset(v, 0, sizeof(double) * MOST * MOST);
    for (size_t i = 0; i < n; i++) v[i * MOST + i] = 1.0;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double diagonal = 0.0, off = 0.0;
        for (size_t i = 0; i < n; i++) {
            diagonal += a[i * MOST + i] * a[i * MOST + i];
            for (size_t k = 0; k < i; k++) off += a[i * MOST + k] * a[i * MOST + k];
        }
        if (off <= 1e-30 * diagonal) break;
        for (size_t p = 0; p < n; p++)
            for (size_t q = p + 1; q < n; q++) rotate(a, v, n, p, q);
    }
}

/* The largest eigenvalues; of equal ones the first. Past the end of a small matrix its size. */
static void find_best(search *s) {
    for (size_t k = 0; k < CLI_COMPONENTS; k++) {
        size_t best = s->count;
        for (size_t i = 0; i < s->count; i++) {
            bool taken = false;
            for (size_t j = 0; j < k; j++) taken |= s->best[j] == i;
            if (!taken && (best == s->count || s->scratch[i * MOST + i] > s->scratch[best * MOST + best]))
                best = i;
        }
        s->best[k] = best;
    }
}

/* About the largest eigenvalue; never above it. */
static double scale_of(const search *s) {
    double most = 0.0;
    for (size_t i = 0; i < s->count; i++)
        if (s->product[i * MOST + i] > most) most = s->product[i * MOST + i];
    return most;
}

/* Is what A makes of the best components beyond the basis too little to matter? */
static bool converged(const search *s, size_t first) {
    double most = s->scratch[s->best[0] * MOST + s->best[0]];
    for (size_t k = 0; k < CLI_COMPONENTS && s->best[k] < s->count; k++) {
        double rest = 0.0;
        for (size_t b = 0; first + b <= s->count; b++)
            rest += fabs(s->turned[(first + b - 1) * MOST + s->best[k]]) * s->left[b];
        if (rest > CONVERGED * most) return false;
    }
    return true;
}

static void grow(search *s) {
    double even = 1.0 / sqrt((double)s->tokens);
    for (size_t t = 0; t < s->tokens; t++) s->basis[t] = even;
    while (s->count < BLOCK && s->count < s->limit) extend(s, NULL, 0.0);
    for (size_t first = 1, blocks = 1;; blocks++) {
        size_t size = 1 + s->count - first;
        multiply(s, first);
        project(s, first);
        if (blocks % 4 == 0 || s->count == s->limit) {
            diagonalise(s);
            find_best(s);
            if (s->count == s->limit || converged(s, first)) return;
        }
        double scale = scale_of(s);
        first = 1 + s->count;
        for (size_t b = 0; b < size && s->count < s->limit; b++) extend(s, s->image + b * s->tokens, scale);
    }
}

/* ---- the result */

static void set_sign(double *scores, size_t count) {
    double most = 0.0;
    size_t first = 0;
    for (size_t i = 0; i < count; i++)
        if (fabs(scores[i]) > most) most = fabs(scores[i]);
    while (first < count && fabs(scores[first]) < most * (1.0 - 1e-6)) first++;
    if (first == count || scores[first] >= 0.0) return;
    for (size_t i = 0; i < count; i++) scores[i] = -scores[i];
}

static void take(const search *s, double *scores) {
    double most = s->scratch[s->best[0] * MOST + s->best[0]];
    for (size_t k = 0; k < CLI_COMPONENTS; k++, scores += s->tokens) {
        size_t column = s->best[k];
        if (column == s->count || s->scratch[column * MOST + column] <= NO_VARIANCE * most) continue;
        for (size_t i = 0; i < s->count; i++) {
            double share = s->turned[i * MOST + column];
            const double *q = vector(s, 1 + i);
            for (size_t t = 0; t < s->tokens; t++) scores[t] += share * q[t];
        }
        set_sign(scores, s->tokens);
    }
}

bool cli_find_components(const qvl_features *features, double *scores) {
    size_t tokens = (size_t)features->tokens, width = (size_t)features->width;
    search s = {.features = features, .tokens = tokens, .width = width, .limit = tokens - 1};
    if (s.limit > MOST) s.limit = MOST;
    memset(scores, 0, CLI_COMPONENTS * tokens * sizeof *scores);
    if (s.limit == 0) return true;
    s.mean = calloc(width, sizeof *s.mean);
    s.row = calloc(width, sizeof *s.row);
    s.sums = calloc(width, BLOCK * sizeof *s.sums);
    s.basis = calloc(tokens, (1 + s.limit) * sizeof *s.basis);
    s.image = calloc(tokens, BLOCK * sizeof *s.image);
    s.product = calloc(MOST, MOST * sizeof *s.product);
    s.scratch = calloc(MOST, MOST * sizeof *s.scratch);
    s.turned = calloc(MOST, MOST * sizeof *s.turned);
    bool good = s.mean && s.row && s.sums && s.basis && s.image && s.product && s.scratch && s.turned;
    if (good) {
        find_mean(&s);
        grow(&s);
        take(&s, scores);
    }
    free(s.mean);
    free(s.row);
    free(s.sums);
    free(s.basis);
    free(s.image);
    free(s.product);
    free(s.scratch);
    free(s.turned);
    return good;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Between the two neighbours in ascending scores. */
static double percentile(const double *sorted, size_t count, double share) {
    double place = share * (double)(count - 1);
    size_t below = (size_t)place;
    if (below + 1 >= count) return sorted[count - 1];
    return sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below]);
}

bool cli_scale_component(const double *scores, int64_t count, uint8_t *levels) {
    size_t n = (size_t)count;
    double *sorted = calloc(n, sizeof *sorted);
    if (!sorted) return false;
    memcpy(sorted, scores, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, ascending);
    double least = sorted[0], range = sorted[n - 1] - least;
    double low = percentile(sorted, n, 0.01), spread = percentile(sorted, n, 0.99) - low;
    free(sorted);
    if (spread <= 1e-9 * range) {
        low = least;
        spread = range;
    }
    for (size_t i = 0; i < n; i++) {
        double share = spread > 0.0 ? (scores[i] - low) / spread : 0.5;
        share = share < 0.0 ? 0.0 : share > 1.0 ? 1.0 : share;
        levels[CLI_COMPONENTS * i] = (uint8_t)(255.0 * share + 0.5);
    }
    return true;
}
