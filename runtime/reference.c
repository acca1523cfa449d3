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
    double *choice;    /* [experts]: what they are chosen by */
    double *dweight;   /* [topk] */
    double *a, *b, *h; /* [ffn or shared]: G x, U x, h(a, b) */
    double *v;         /* [hidden] */
};

static int scratch_create(
    const struct mfr_reference_shape *shape, struct scratch *s)
{
    size_t experts = (size_t)shape->experts;
    size_t ffn =
        (size_t)(shape->ffn > shape->shared ? shape->ffn : shape->shared);

    *s = (struct scratch){
        .score = calloc(experts, sizeof(double)),
        .dscore = calloc(experts, sizeof(double)),
        .choice = calloc(experts, sizeof(double)),
        .dweight = calloc((size_t)shape->topk, sizeof(double)),
        .a = calloc(ffn, sizeof(double)),
        .b = calloc(ffn, sizeof(double)),
        .h = calloc(ffn, sizeof(double)),
        .v = calloc((size_t)shape->hidden, sizeof(double)),
    };
    return s->score && s->dscore && s->choice && s->dweight && s->a && s->b &&
                   s->h && s->v
               ? 0
               : -1;
}

static void scratch_free(struct scratch *s)
{
    free(s->score);
    free(s->dscore);
    free(s->choice);
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

/* The sum of the best choices of a group. */
static double group_worth(
    const struct mfr_reference_shape *shape, const double *choice, int64_t g)
{
    int64_t size = shape->experts / shape->groups;
    int32_t taken[2] = {-1, -1};
    double sum = 0;

    for (int64_t n = 0; n < shape->group_best && n < size && n < 2; n++) {
        taken[n] = best_left(choice + g * size, size, taken, n);
        sum += choice[g * size + taken[n]];
    }
    return sum;
}

/* Leave out the experts of all groups but the best. True: two groups at the
 * edge lie so close that either may stay.
 */
static bool leave_groups(
    const struct mfr_reference_shape *shape, double *choice, double *worth)
{
    int64_t size = shape->experts / shape->groups;
    int32_t *kept = calloc((size_t)shape->topk_groups, sizeof *kept);
    bool tie = false;
    int32_t next;

    if (!kept)
        return false;
    for (int64_t g = 0; g < shape->groups; g++)
        worth[g] = group_worth(shape, choice, g);
    for (int64_t n = 0; n < shape->topk_groups; n++)
        kept[n] = best_left(worth, shape->groups, kept, n);
    next = best_left(worth, shape->groups, kept, shape->topk_groups);
    tie = next >= 0 &&
          worth[kept[shape->topk_groups - 1]] - worth[next] < MFR_REFERENCE_TIE;
    for (int64_t e = 0; e < shape->experts; e++)
        if (!holds(kept, shape->topk_groups, e / size))
            choice[e] = -INFINITY;
    free(kept);
    return tie;
}

/* Whether TESTED are distinct experts at all. */
static bool is_a_choice(
    const struct mfr_reference_shape *shape, const int32_t *tested)
{
    for (int64_t k = 0; k < shape->topk; k++)
        if (tested[k] < 0 || tested[k] >= shape->experts ||
            holds(tested, k, tested[k]))
            return false;
    return true;
}

static void choose(struct mfr_reference *ref,
    const struct mfr_reference_tensors *weights, const int32_t *tested,
    int32_t *route, struct scratch *s)
{
    const struct mfr_reference_shape *shape = &ref->shape;
    int64_t topk = shape->topk;
    bool tie = false;
    double floor;
    int32_t next;

    for (int64_t e = 0; e < shape->experts; e++)
        s->choice[e] =
            s->score[e] + (weights->select_bias ? weights->select_bias[e] : 0);
    /* The gradients of scores are worked out later: their room is free. */
    if (shape->groups > 1)
        tie = leave_groups(shape, s->choice, s->dscore);
    for (int64_t k = 0; k < topk; k++)
        route[k] = best_left(s->choice, shape->experts, route, k);
    floor = s->choice[route[topk - 1]];
    next = best_left(s->choice, shape->experts, route, topk);
    if (!tie && (next < 0 || !(floor - s->choice[next] < MFR_REFERENCE_TIE)))
        return;
    ref->near_ties++;
    if (tested && (tie ? is_a_choice(shape, tested)
                       : within_tie(shape, s->choice, floor, tested)))
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

static double sigmoid(double v)
{
    return 1 / (1 + exp(-v));
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

static double within(double v, double most)
{
    return v > most ? most : v < -most ? -most : v;
}

static double activate(enum mfr_reference_h kind, double a, double b)
{
    switch (kind) {
    case MFR_H_GELU:
        return a * erfc(-a / sqrt(2)) / 2 * b;
    case MFR_H_CLAMPED:
        a = least(a, 7);
        return a * sigmoid(1.702 * a) * (within(b, 7) + 1);
    case MFR_H_SILU:
        break;
    }
    return a * sigmoid(a) * b;
}

/* The derivatives of activate by A and by B. */
static void activate_slopes(
    enum mfr_reference_h kind, double a, double b, double *by_a, double *by_b)
{
    double sigma;

    switch (kind) {
    case MFR_H_GELU:
        *by_b = activate(kind, a, 1);
        *by_a = b * (erfc(-a / sqrt(2)) / 2 +
                        a * exp(-a * a / 2) / sqrt(2 * acos(-1)));
        return;
    case MFR_H_CLAMPED:
        sigma = sigmoid(1.702 * least(a, 7));
        *by_b = fabs(b) > 7 ? 0 : least(a, 7) * sigma;
        *by_a =
            a > 7 ? 0
                  : (within(b, 7) + 1) * sigma * (1 + 1.702 * a * (1 - sigma));
        return;
    case MFR_H_SILU:
        break;
    }
    sigma = sigmoid(a);
    *by_b = a * sigma;
    *by_a = b * sigma * (1 + a * (1 - sigma));
}

/* One feed-forward part, of an expert or of all shared ones; biases NULL:
 * none.
 */
struct part {
    int64_t ffn, hidden;
    enum mfr_reference_h h;
    double *gate, *up, *down, *gate_bias, *up_bias, *down_bias;
};

static double *at(double *values, int64_t offset)
{
    return values ? values + offset : NULL;
}

static struct part expert_part(const struct mfr_reference_shape *shape,
    const struct mfr_reference_tensors *t, int64_t e)
{
    int64_t size = shape->ffn * shape->hidden;

    return (struct part){shape->ffn, shape->hidden, shape->h,
        t->gate + e * size, t->up + e * size, t->down + e * size,
        at(t->gate_bias, e * shape->ffn), at(t->up_bias, e * shape->ffn),
        at(t->down_bias, e * shape->hidden)};
}

static struct part shared_part(const struct mfr_reference_shape *shape,
    const struct mfr_reference_tensors *t)
{
    return (struct part){shape->shared, shape->hidden, shape->h, t->shared_gate,
        t->shared_up, t->shared_down, NULL, NULL, NULL};
}

/* Leaves a, b, h for the backward, its output in s->v. */
static void part_forward(
    const struct part *p, const double *x, struct scratch *s)
{
    times(p->gate, x, p->ffn, p->hidden, s->a);
    times(p->up, x, p->ffn, p->hidden, s->b);
    for (int64_t f = 0; f < p->ffn; f++) {
        s->a[f] += p->gate_bias ? p->gate_bias[f] : 0;
        s->b[f] += p->up_bias ? p->up_bias[f] : 0;
        s->h[f] = activate(p->h, s->a[f], s->b[f]);
    }
    times(p->down, s->h, p->hidden, p->ffn, s->v);
    for (int64_t i = 0; p->down_bias && i < p->hidden; i++)
        s->v[i] += p->down_bias[i];
}

static void add_to(double *sum, const double *values, int64_t n)
{
    for (int64_t i = 0; sum && i < n; i++)
        sum[i] += values[i];
}

/* For the gradient W * DY of its output: adds to the gradients G and to DX.
 * Uses a, b, h of part_forward and spoils them.
 */
static void part_backward(const struct part *p, const struct part *g, double w,
    const double *x, const double *dy, double *dx, struct scratch *s)
{
    int64_t ffn = p->ffn, hidden = p->hidden;

    for (int64_t i = 0; i < hidden; i++)
        s->v[i] = w * dy[i];
    add_outer(s->v, s->h, hidden, ffn, g->down);
    add_to(g->down_bias, s->v, hidden);
    memset(s->h, 0, (size_t)ffn * sizeof *s->h);
    add_transposed(p->down, s->v, hidden, ffn, s->h);
    for (int64_t f = 0; f < ffn; f++) {
        double by_a, by_b;

        activate_slopes(p->h, s->a[f], s->b[f], &by_a, &by_b);
        s->a[f] = s->h[f] * by_a;
        s->b[f] = s->h[f] * by_b;
    }
    add_outer(s->a, x, ffn, hidden, g->gate);
    add_outer(s->b, x, ffn, hidden, g->up);
    add_to(g->gate_bias, s->a, ffn);
    add_to(g->up_bias, s->b, ffn);
    add_transposed(p->gate, s->a, ffn, hidden, dx);
    add_transposed(p->up, s->b, ffn, hidden, dx);
}

/* The shared part of one token, behind its gate if it has one. */
static void run_shared(struct mfr_reference *ref,
    const struct mfr_reference_tensors *weights, const double *x,
    const double *dy, double *y, double *dx, struct scratch *s)
{
    const struct mfr_reference_shape *shape = &ref->shape;
    const struct part p = shared_part(shape, weights);
    const struct part g = shared_part(shape, &ref->gradient);
    const double *w = weights->shared_router;
    double factor = w ? sigmoid(dot(w, x, shape->hidden)) : 1, slope;

    part_forward(&p, x, s);
    slope = dot(s->v, dy, shape->hidden) * factor * (1 - factor);
    for (int64_t i = 0; i < shape->hidden; i++)
        y[i] += factor * s->v[i];
    part_backward(&p, &g, factor, x, dy, dx, s);
    for (int64_t i = 0; w && i < shape->hidden; i++) {
        dx[i] += slope * w[i];
        ref->gradient.shared_router[i] += slope * x[i];
    }
}

/* From the gradients of the K weights back through the division and the
 * scores: with q_e = p_e / sum, dp_e = c (dw_e - sum dw q) / sum; then for a
 * softmax dlogit_e = p_e (dp_e - sum dp p), for sigmoids dp_e p_e (1 - p_e).
 */
static void router_backward(struct mfr_reference *ref,
    const struct mfr_reference_tensors *weights, const int32_t *route,
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
        s->dscore[e] = shape->sigmoid
                           ? s->dscore[e] * s->score[e] * (1 - s->score[e])
                           : s->score[e] * (s->dscore[e] - mean);
    add_outer(
        s->dscore, x, shape->experts, shape->hidden, ref->gradient.router);
    add_to(ref->gradient.router_bias, s->dscore, shape->experts);
    add_transposed(
        weights->router, s->dscore, shape->experts, shape->hidden, dx);
}

static void score_experts(const struct mfr_reference_shape *shape,
    const struct mfr_reference_tensors *weights, const double *x, double *score)
{
    times(weights->router, x, shape->experts, shape->hidden, score);
    if (weights->router_bias)
        add_to(score, weights->router_bias, shape->experts);
    if (!shape->sigmoid)
        softmax(score, shape->experts);
    for (int64_t e = 0; shape->sigmoid && e < shape->experts; e++)
        score[e] = sigmoid(score[e]);
}

static void run_token(struct mfr_reference *ref,
    const struct mfr_reference_tensors *weights, const double *x,
    const double *dy, const int32_t *tested, struct scratch *s)
{
    const struct mfr_reference_shape *shape = &ref->shape;
    int32_t *route = ref->route + ref->done * shape->topk;
    double *weight = ref->weight + ref->done * shape->topk;
    double *y = ref->output + ref->done * shape->hidden;
    double *dx = ref->dx + ref->done * shape->hidden;
    double sum;

    score_experts(shape, weights, x, s->score);
    choose(ref, weights, tested, route, s);
    sum = divisor(shape, s->score, route);
    for (int64_t k = 0; k < shape->topk; k++) {
        int64_t e = route[k];
        const struct part p = expert_part(shape, weights, e);
        const struct part g = expert_part(shape, &ref->gradient, e);

        weight[k] = shape->scaling * s->score[e] / sum;
        part_forward(&p, x, s);
        s->dweight[k] = dot(s->v, dy, shape->hidden);
        for (int64_t i = 0; i < shape->hidden; i++)
            y[i] += weight[k] * s->v[i];
        part_backward(&p, &g, weight[k], x, dy, dx, s);
        ref->count[e]++;
    }
    router_backward(ref, weights, route, x, dx, s);
    if (shape->shared > 0)
        run_shared(ref, weights, x, dy, y, dx, s);
    for (int64_t i = 0; i < shape->hidden; i++) {
        ref->loss += y[i] * dy[i];
        ref->loss_squares += y[i] * dy[i] * y[i] * dy[i];
    }
    ref->done++;
}

int mfr_reference_run(struct mfr_reference *ref,
    const struct mfr_reference_tensors *weights, const double *x,
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

/* How many values each parameter has, in the order of the struct's members. */
enum { TENSORS = sizeof(struct mfr_reference_tensors) / sizeof(double *) };

static double **members(struct mfr_reference_tensors *t)
{
    return &t->router;
}

static void sizes(const struct mfr_reference_shape *s, int64_t n[TENSORS][3])
{
    const int64_t e = s->experts, h = s->hidden, f = s->ffn, w = s->shared;
    const int64_t size[TENSORS][3] = {{e, h, 1}, {e, 1, 1}, {e, 1, 1},
        {e, f, h}, {e, f, h}, {e, h, f}, {e, f, 1}, {e, f, 1}, {e, h, 1},
        {w, h, 1}, {w, h, 1}, {h, w, 1}, {h, 1, 1}};

    memcpy(n, size, sizeof size);
}

static int gradients_create(
    const struct mfr_reference_tensors *weights, struct mfr_reference *ref)
{
    struct mfr_reference_tensors given = *weights;
    int64_t n[TENSORS][3];

    sizes(&ref->shape, n);
    for (int i = 0; i < TENSORS; i++) {
        double **gradient = &members(&ref->gradient)[i];

        if (!members(&given)[i])
            continue;
        *gradient = room(n[i][0], n[i][1], n[i][2], sizeof **gradient);
        if (!*gradient)
            return -1;
    }
    return 0;
}

int mfr_reference_create(const struct mfr_reference_shape *shape,
    const struct mfr_reference_tensors *weights, struct mfr_reference *ref,
    struct mf_error *err)
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
    if (ref->count && ref->route && ref->weight && ref->output && ref->dx &&
        gradients_create(weights, ref) == 0)
        return 0;
    mfr_reference_free(ref);
    return mf_error_set(err, MF_INVALID,
        "reference: this shape does not fit in memory; take a smaller one");
}

double mfr_reference_grad_norm(const struct mfr_reference *ref)
{
    struct mfr_reference_tensors g = ref->gradient;
    int64_t n[TENSORS][3];
    double sum = 0;

    sizes(&ref->shape, n);
    g.select_bias = NULL;
    for (int i = 0; i < TENSORS; i++)
        if (members(&g)[i])
            sum += dot(
                members(&g)[i], members(&g)[i], n[i][0] * n[i][1] * n[i][2]);
    return sqrt(sum);
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
    for (int i = 0; i < TENSORS; i++)
        free(members(&ref->gradient)[i]);
    *ref = (struct mfr_reference){0};
}
