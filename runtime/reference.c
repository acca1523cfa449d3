/* SPDX-License-Identifier: BSD-3-Clause
 * The MoE layer in double precision, token by token.
 */
#include "runtime/reference.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What one token needs besides the results; sized by the shape. */
struct scratch {
    double *score;     /* [experts] */
    double *dscore;    /* [experts] */
    double *dweight;   /* [topk] */
    double *a, *b, *h; /* [ffn]: G x, U x, silu(a) * b */
    double *v;         /* [hidden] */
};

static int scratch_create(
    const struct mfr_reference_shape *shape, struct scratch *s)
{
    size_t experts = (size_t)shape->experts, ffn = (size_t)shape->ffn;

    *s = (struct scratch){
        .score = calloc(experts, sizeof(double)),
        .dscore = calloc(experts, sizeof(double)),
        .dweight = calloc((size_t)shape->topk, sizeof(double)),
        .a = calloc(ffn, sizeof(double)),
        .b = calloc(ffn, sizeof(double)),
        .h = calloc(ffn, sizeof(double)),
        .v = calloc((size_t)shape->hidden, sizeof(double)),
    };
    return s->score && s->dscore && s->dweight && s->a && s->b && s->h && s->v
               ? 0
               : -1;
}

static void scratch_free(struct scratch *s)
{
    free(s->score);
    free(s->dscore);
    free(s->dweight);
    free(s->a);
    free(s->b);
    free(s->h);
    free(s->v);
}

/* v = M u, M [rows][columns]. */
static void times(
    const double *m, const double *u, int64_t rows, int64_t columns, double *v)
{
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;

        for (int64_t j = 0; j < columns; j++)
            sum += m[i * columns + j] * u[j];
        v[i] = sum;
    }
}

/* v += M^T u, M [rows][columns]. */
static void add_transposed(
    const double *m, const double *u, int64_t rows, int64_t columns, double *v)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            v[j] += m[i * columns + j] * u[i];
}

/* M += u v^T, M [rows][columns]. */
static void add_outer(
    const double *u, const double *v, int64_t rows, int64_t columns, double *m)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            m[i * columns + j] += u[i] * v[j];
}

static double dot(const double *u, const double *v, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += u[i] * v[i];
    return sum;
}

static void softmax(double *v, int64_t n)
{
    double most = v[0], sum = 0;

    for (int64_t i = 1; i < n; i++)
        if (v[i] > most)
            most = v[i];
    for (int64_t i = 0; i < n; i++) {
        v[i] = exp(v[i] - most);
        sum += v[i];
    }
    for (int64_t i = 0; i < n; i++)
        v[i] /= sum;
}

static bool holds(const int32_t *route, int64_t n, int64_t expert)
{
    for (int64_t k = 0; k < n; k++)
        if (route[k] == expert)
            return true;
    return false;
}

/* The best expert that is not among the N chosen; -1: none is left. */
static int32_t best_left(
    const double *score, int64_t experts, const int32_t *route, int64_t n)
{
    int64_t best = -1;

    for (int64_t e = 0; e < experts; e++)
        if (!holds(route, n, e) && (best < 0 || score[e] > score[best]))
            best = e;
    return (int32_t)best;
}

/* Whether TESTED differs from the K best only inside the tie at FLOOR, the
 * score of the last chosen.
 */
static bool within_tie(const struct mfr_reference_shape *shape,
    const double *score, double floor, const int32_t *tested)
{
    for (int64_t k = 0; k < shape->topk; k++) {
        int32_t e = tested[k];

        if (e < 0 || e >= shape->experts || holds(tested, k, e) ||
            score[e] < floor - MFR_REFERENCE_TIE)
            return false;
    }
    for (int64_t e = 0; e < shape->experts; e++)
        if (score[e] > floor + MFR_REFERENCE_TIE &&
            !holds(tested, shape->topk, e))
            return false;
    return true;
}

static void choose(struct mfr_reference *ref, const double *score,
    const int32_t *tested, int32_t *route)
{
    int64_t topk = ref->shape.topk;
    double floor;
    int32_t next;

    for (int64_t k = 0; k < topk; k++)
        route[k] = best_left(score, ref->shape.experts, route, k);
    floor = score[route[topk - 1]];
    next = best_left(score, ref->shape.experts, route, topk);
    if (next < 0 || floor - score[next] >= MFR_REFERENCE_TIE)
        return;
    ref->near_ties++;
    if (tested && within_tie(&ref->shape, score, floor, tested))
        memcpy(route, tested, (size_t)topk * sizeof *route);
}

/* Sum of the chosen scores, or 1 when they are not renormalised. */
static double divisor(const struct mfr_reference_shape *shape,
    const double *score, const int32_t *route)
{
    double sum = 0;

    if (!shape->renormalize)
        return 1;
    for (int64_t k = 0; k < shape->topk; k++)
        sum += score[route[k]];
    return sum;
}

/* Expert E forward: leaves a, b, h for the backward, E_e(x) in s->v. */
static void expert_forward(const struct mfr_reference_shape *shape,
    const struct mfr_reference_weights *weights, int64_t e, const double *x,
    struct scratch *s)
{
    int64_t size = shape->ffn * shape->hidden;

    times(weights->gate + e * size, x, shape->ffn, shape->hidden, s->a);
    times(weights->up + e * size, x, shape->ffn, shape->hidden, s->b);
    for (int64_t f = 0; f < shape->ffn; f++)
        s->h[f] = s->a[f] / (1 + exp(-s->a[f])) * s->b[f];
    times(weights->down + e * size, s->h, shape->hidden, shape->ffn, s->v);
}

/* Expert E backward for the gradient W * DY of its output: adds to the
 * weight gradients and to DX. Uses a, b, h of expert_forward and spoils them.
 */
static void expert_backward(struct mfr_reference *ref,
    const struct mfr_reference_weights *weights, int64_t e, double w,
    const double *x, const double *dy, double *dx, struct scratch *s)
{
    int64_t ffn = ref->shape.ffn, hidden = ref->shape.hidden;
    int64_t size = ffn * hidden;

    for (int64_t i = 0; i < hidden; i++)
        s->v[i] = w * dy[i];
    add_outer(s->v, s->h, hidden, ffn, ref->down + e * size);
    memset(s->h, 0, (size_t)ffn * sizeof *s->h);
    add_transposed(weights->down + e * size, s->v, hidden, ffn, s->h);
    for (int64_t f = 0; f < ffn; f++) {
        double a = s->a[f], b = s->b[f], sigma = 1 / (1 + exp(-a));

        /* silu'(a) = sigma (1 + a (1 - sigma)) */
        s->a[f] = s->h[f] * b * sigma * (1 + a * (1 - sigma));
        s->b[f] = s->h[f] * a * sigma;
    }
    add_outer(s->a, x, ffn, hidden, ref->gate + e * size);
    add_outer(s->b, x, ffn, hidden, ref->up + e * size);
    add_transposed(weights->gate + e * size, s->a, ffn, hidden, dx);
    add_transposed(weights->up + e * size, s->b, ffn, hidden, dx);
}

/* From the gradients of the K weights back through the division and the
 * softmax: with q_e = p_e / sum, dp_e = c (dw_e - sum dw q) / sum, and
 * dlogit_e = p_e (dp_e - sum dp p).
 */
static void router_backward(struct mfr_reference *ref,
    const struct mfr_reference_weights *weights, const int32_t *route,
    const double *x, double *dx, struct scratch *s)
{
    const struct mfr_reference_shape *shape = &ref->shape;
    double sum = divisor(shape, s->score, route), mean = 0;

    memset(s->dscore, 0, (size_t)shape->experts * sizeof *s->dscore);
    if (shape->renormalize)
        for (int64_t k = 0; k < shape->topk; k++)
            mean += s->dweight[k] * s->score[route[k]] / sum;
    for (int64_t k = 0; k < shape->topk; k++)
        s->dscore[route[k]] = shape->scaling * (s->dweight[k] - mean) / sum;
    mean = dot(s->dscore, s->score, shape->experts);
    for (int64_t e = 0; e < shape->experts; e++)
        s->dscore[e] = s->score[e] * (s->dscore[e] - mean);
    add_outer(s->dscore, x, shape->experts, shape->hidden, ref->router);
    add_transposed(
        weights->router, s->dscore, shape->experts, shape->hidden, dx);
}

static void run_token(struct mfr_reference *ref,
    const struct mfr_reference_weights *weights, const double *x,
    const double *dy, const int32_t *tested, struct scratch *s)
{
    const struct mfr_reference_shape *shape = &ref->shape;
    int32_t *route = ref->route + ref->done * shape->topk;
    double *weight = ref->weight + ref->done * shape->topk;
    double *y = ref->output + ref->done * shape->hidden;
    double *dx = ref->dx + ref->done * shape->hidden;
    double sum;

    times(weights->router, x, shape->experts, shape->hidden, s->score);
    softmax(s->score, shape->experts);
    choose(ref, s->score, tested, route);
    sum = divisor(shape, s->score, route);
    for (int64_t k = 0; k < shape->topk; k++) {
        int64_t e = route[k];

        weight[k] = shape->scaling * s->score[e] / sum;
        expert_forward(shape, weights, e, x, s);
        s->dweight[k] = dot(s->v, dy, shape->hidden);
        for (int64_t i = 0; i < shape->hidden; i++)
            y[i] += weight[k] * s->v[i];
        expert_backward(ref, weights, e, weight[k], x, dy, dx, s);
        ref->count[e]++;
    }
    router_backward(ref, weights, route, x, dx, s);
    for (int64_t i = 0; i < shape->hidden; i++) {
        ref->loss += y[i] * dy[i];
        ref->loss_squares += y[i] * dy[i] * y[i] * dy[i];
    }
    ref->done++;
}

int mfr_reference_run(struct mfr_reference *ref,
    const struct mfr_reference_weights *weights, const double *x,
    const double *dy, const int32_t *tested, struct mf_error *err)
{
    const struct mfr_reference_shape *shape = &ref->shape;
    struct scratch s = {0};
    int rc = -1;

    if (ref->done + shape->tokens > shape->batches * shape->tokens)
        return mf_error_set(err, MF_INVALID,
            "reference: more than %" PRId64 " micro batches", shape->batches);
    if (scratch_create(shape, &s)) {
        mf_error_set(err, MF_FAILED, "reference: out of memory");
        goto out;
    }
    for (int64_t t = 0; t < shape->tokens; t++)
        run_token(ref, weights, x + t * shape->hidden, dy + t * shape->hidden,
            tested ? tested + t * shape->topk : NULL, &s);
    rc = 0;
out:
    scratch_free(&s);
    return rc;
}

/* Zeroed room for a * b * c items of SIZE bytes; NULL for more than any
 * machine has, which is worth no attempt.
 */
static void *room(int64_t a, int64_t b, int64_t c, size_t size)
{
    int64_t n;

    if (__builtin_mul_overflow(a, b, &n) || __builtin_mul_overflow(n, c, &n) ||
        n > (int64_t)1 << 36)
        return NULL;
    return calloc((size_t)n, size);
}

int mfr_reference_create(const struct mfr_reference_shape *shape,
    struct mfr_reference *ref, struct mf_error *err)
{
    const struct mfr_reference_shape *s = shape;

    *ref = (struct mfr_reference){.shape = *shape};
    if (s->tokens < 1 || s->batches < 1 || s->hidden < 1 || s->ffn < 1 ||
        s->topk < 1 || s->topk > s->experts || s->experts > INT32_MAX)
        return mf_error_set(err, MF_INVALID,
            "reference: tokens, micro batches, hidden and ffn must be at "
            "least 1, and topk from 1 to the number of experts");
    ref->count = room(s->experts, 1, 1, sizeof *ref->count);
    ref->route = room(s->batches, s->tokens, s->topk, sizeof *ref->route);
    ref->weight = room(s->batches, s->tokens, s->topk, sizeof *ref->weight);
    ref->output = room(s->batches, s->tokens, s->hidden, sizeof(double));
    ref->dx = room(s->batches, s->tokens, s->hidden, sizeof(double));
    ref->router = room(s->experts, s->hidden, 1, sizeof(double));
    ref->gate = room(s->experts, s->ffn, s->hidden, sizeof(double));
    ref->up = room(s->experts, s->ffn, s->hidden, sizeof(double));
    ref->down = room(s->experts, s->hidden, s->ffn, sizeof(double));
    if (ref->count && ref->route && ref->weight && ref->output && ref->dx &&
        ref->router && ref->gate && ref->up && ref->down)
        return 0;
    mfr_reference_free(ref);
    return mf_error_set(err, MF_INVALID,
        "reference: this shape does not fit in memory; take a smaller one");
}

double mfr_reference_grad_norm(const struct mfr_reference *ref)
{
    const struct mfr_reference_shape *s = &ref->shape;
    int64_t router = s->experts * s->hidden, expert = router * s->ffn;

    return sqrt(dot(ref->router, ref->router, router) +
                dot(ref->gate, ref->gate, expert) +
                dot(ref->up, ref->up, expert) +
                dot(ref->down, ref->down, expert));
}

void mfr_reference_free(struct mfr_reference *ref)
{
    if (!ref)
        return;
    free(ref->count);
    free(ref->route);
    free(ref->weight);
    free(ref->output);
    free(ref->dx);
    free(ref->router);
    free(ref->gate);
    free(ref->up);
    free(ref->down);
    *ref = (struct mfr_reference){0};
}
