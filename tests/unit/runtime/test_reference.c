/* SPDX-License-Identifier: BSD-3-Clause
 * The double-precision reference against hand sums and finite differences.
 */
#include "runtime/reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NEAR 1e-13
#define LN3 1.0986122886681098

static void assert_near(double got, double want, double bound)
{
    if (!(fabs(got - want) <= bound * fmax(1, fabs(want))))
        fail_msg("got %.17g, want %.17g", got, want);
}

/* Two experts of width 1 over two hidden entries; x = (1, 2) chooses expert
 * 1, whose G x = ln 3, so that the sigmoid is 3/4, and U x = 4.
 */
static double hand_router[] = {1, 0, 0, 1};
static double hand_gate[] = {7, 7, LN3, 0};
static double hand_up[] = {7, 7, 0, 2};
static double hand_down[] = {7, 7, 1, -1};
static const struct mfr_reference_tensors hand_weights = {
    .router = hand_router, .gate = hand_gate, .up = hand_up, .down = hand_down};
static const double hand_x[] = {1, 2}, hand_dy[] = {1, 0};

static void hand_run(bool renormalize, struct mfr_reference *ref)
{
    struct mfr_reference_shape shape = {.tokens = 1,
        .batches = 1,
        .hidden = 2,
        .ffn = 1,
        .experts = 2,
        .topk = 1,
        .renormalize = renormalize,
        .scaling = 1};

    assert_int_equal(mfr_reference_create(&shape, &hand_weights, ref, NULL), 0);
    assert_int_equal(
        mfr_reference_run(ref, &hand_weights, hand_x, hand_dy, NULL, NULL), 0);
}

static void test_hand_renormalized(void **state)
{
    struct mfr_reference ref;

    (void)state;
    hand_run(true, &ref);
    assert_int_equal(ref.route[0], 1);
    assert_int_equal(ref.count[0], 0);
    assert_int_equal(ref.count[1], 1);
    assert_int_equal(ref.near_ties, 0);
    assert_near(ref.weight[0], 1, NEAR);
    /* h = ln3 * 3/4 * 4 = 3 ln3; y = (h, -h); L = y . (1, 0) */
    assert_near(ref.output[0], 3 * LN3, NEAR);
    assert_near(ref.output[1], -3 * LN3, NEAR);
    assert_near(ref.loss, 3 * LN3, NEAR);
    assert_near(ref.loss_squares, 9 * LN3 * LN3, NEAR);
    /* dD = dy h; dh = 1; da = 4 * 3/4 * (1 + ln3 / 4); db = 3/4 ln3 */
    assert_near(ref.gradient.down[2], 3 * LN3, NEAR);
    assert_near(ref.gradient.down[3], 0, NEAR);
    assert_near(ref.gradient.gate[2], 3 + 0.75 * LN3, NEAR);
    assert_near(ref.gradient.gate[3], 6 + 1.5 * LN3, NEAR);
    assert_near(ref.gradient.up[2], 0.75 * LN3, NEAR);
    assert_near(ref.gradient.up[3], 1.5 * LN3, NEAR);
    /* dx = G^T da + U^T db; a single weight of 1 gives the router nothing */
    assert_near(ref.dx[0], LN3 * (3 + 0.75 * LN3), NEAR);
    assert_near(ref.dx[1], 2 * 0.75 * LN3, NEAR);
    for (int i = 0; i < 4; i++)
        assert_near(ref.gradient.router[i], 0, NEAR);
    for (int i = 0; i < 2; i++)
        assert_true(ref.gradient.gate[i] == 0 && ref.gradient.up[i] == 0 &&
                    ref.gradient.down[i] == 0);
    /* 9 ln3^2 + (1 + 4)((3 + 3/4 ln3)^2 + (3/4 ln3)^2), worked out apart */
    assert_near(mfr_reference_grad_norm(&ref), 9.347213758490629, 1e-12);
    mfr_reference_free(&ref);
}

static void test_hand_plain_softmax(void **state)
{
    struct mfr_reference ref;
    /* p = e^2 / (e + e^2), and p (1 - p) */
    const double p = 0.73105857863000490, slope = 0.19661193324148185;

    (void)state;
    hand_run(false, &ref);
    assert_near(ref.weight[0], p, NEAR);
    assert_near(ref.loss, p * 3 * LN3, NEAR);
    assert_near(ref.gradient.down[2], p * 3 * LN3, NEAR);
    /* dlogit_1 = dw p (1 - p) with dw = 3 ln3, dlogit_0 its opposite */
    assert_near(ref.gradient.router[0], -slope * 3 * LN3, NEAR);
    assert_near(ref.gradient.router[1], -2 * slope * 3 * LN3, NEAR);
    assert_near(ref.gradient.router[2], slope * 3 * LN3, NEAR);
    assert_near(ref.gradient.router[3], 2 * slope * 3 * LN3, NEAR);
    mfr_reference_free(&ref);
}

/* A case whose every entry can be nudged. */
enum { PARAMETERS = sizeof(struct mfr_reference_tensors) / sizeof(double *) };

struct nudge {
    struct mfr_reference_shape shape;
    struct mfr_reference_tensors weights;
    double *x, *dy;
    int64_t tokens, size[PARAMETERS];
};

static double **parameter(struct mfr_reference_tensors *t, int i)
{
    return &t->router + i;
}

static double noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (1 << 23) - 1;
}

static double *noise_array(int64_t n, uint32_t *state)
{
    double *v = malloc((size_t)n * sizeof *v);

    assert_non_null(v);
    for (int64_t i = 0; i < n; i++)
        v[i] = noise(state);
    return v;
}

/* OTHERS: biases, the shared part and its gate too. */
static void nudge_create(
    const struct mfr_reference_shape *how, bool others, struct nudge *c)
{
    uint32_t seed = 12345;

    *c = (struct nudge){.shape = *how};
    c->shape.tokens = 3;
    c->shape.batches = 2;
    c->shape.hidden = 5;
    c->shape.ffn = 4;
    c->shape.experts = 6;
    c->shape.shared = others ? 3 : 0;
    c->tokens = c->shape.tokens * c->shape.batches;
    c->x = noise_array(c->tokens * c->shape.hidden, &seed);
    c->dy = noise_array(c->tokens * c->shape.hidden, &seed);
    for (int i = 0; i < PARAMETERS; i++) {
        /* In the order of the members: 6 experts, 5 hidden, 4 and 3 wide. */
        const int64_t size[] = {6 * 5, 6, 6, 6 * 4 * 5, 6 * 4 * 5, 6 * 5 * 4,
            6 * 4, 6 * 4, 6 * 5, 3 * 5, 3 * 5, 5 * 3, 5};
        const bool always = i == 0 || (i >= 3 && i <= 5);

        c->size[i] = size[i];
        if (always || others)
            *parameter(&c->weights, i) = noise_array(size[i], &seed);
    }
}

static void nudge_free(struct nudge *c)
{
    free(c->x);
    free(c->dy);
    for (int i = 0; i < PARAMETERS; i++)
        free(*parameter(&c->weights, i));
}

static void nudge_run(const struct nudge *c, struct mfr_reference *ref)
{
    int64_t step = c->shape.tokens * c->shape.hidden;

    assert_int_equal(
        mfr_reference_create(&c->shape, &c->weights, ref, NULL), 0);
    for (int64_t i = 0; i < c->shape.batches; i++)
        assert_int_equal(mfr_reference_run(ref, &c->weights, c->x + i * step,
                             c->dy + i * step, NULL, NULL),
            0);
}

static double nudge_loss(const struct nudge *c)
{
    struct mfr_reference ref;
    double loss;

    nudge_run(c, &ref);
    loss = ref.loss;
    mfr_reference_free(&ref);
    return loss;
}

/* (L(v + d) - L(v - d)) / 2d at every entry of ARRAY against GRADIENT. The
 * error of the difference is O(d^2) + rounding / d, about 1e-9 here.
 */
static void nudge_compare(
    const struct nudge *c, double *array, int64_t n, const double *gradient)
{
    const double d = 1e-5;
    int64_t alive = 0;

    for (int64_t i = 0; i < n; i++) {
        double kept = array[i], more, less;

        array[i] = kept + d;
        more = nudge_loss(c);
        array[i] = kept - d;
        less = nudge_loss(c);
        array[i] = kept;
        assert_near(gradient[i], (more - less) / (2 * d), 1e-8);
        alive += fabs(gradient[i]) > 1e-3;
    }
    assert_true(alive > n / 4);
}

static void nudge_all(const struct mfr_reference_shape *how, bool others)
{
    struct nudge c;
    struct mfr_reference ref;

    nudge_create(how, others, &c);
    nudge_run(&c, &ref);
    assert_int_equal(ref.near_ties, 0);
    nudge_compare(&c, c.x, c.tokens * c.shape.hidden, ref.dx);
    for (int i = 0; i < PARAMETERS; i++) {
        double *values = *parameter(&c.weights, i);

        /* A bias to choose by has no gradient while no choice changes. */
        if (values && values != c.weights.select_bias)
            nudge_compare(&c, values, c.size[i], *parameter(&ref.gradient, i));
    }
    /* The loss is linear in dy, and its slope is the output. */
    nudge_compare(&c, c.dy, c.tokens * c.shape.hidden, ref.output);
    mfr_reference_free(&ref);
    nudge_free(&c);
}

static void test_differences_renormalized(void **state)
{
    (void)state;
    nudge_all(
        &(struct mfr_reference_shape){
            .topk = 3, .renormalize = true, .scaling = 1},
        false);
}

static void test_differences_plain(void **state)
{
    (void)state;
    nudge_all(&(struct mfr_reference_shape){.topk = 2, .scaling = 2.5}, false);
}

static void test_differences_all_experts(void **state)
{
    (void)state;
    nudge_all(
        &(struct mfr_reference_shape){
            .topk = 6, .renormalize = true, .scaling = 0.5},
        false);
}

static void test_differences_sigmoid(void **state)
{
    (void)state;
    for (int renormalize = 0; renormalize < 2; renormalize++)
        nudge_all(&(struct mfr_reference_shape){.topk = 3,
                      .renormalize = renormalize,
                      .scaling = 2.5,
                      .sigmoid = true},
            true);
}

static void test_differences_groups(void **state)
{
    (void)state;
    nudge_all(&(struct mfr_reference_shape){.topk = 3,
                  .renormalize = true,
                  .scaling = 1.5,
                  .sigmoid = true,
                  .groups = 3,
                  .topk_groups = 2,
                  .group_best = 2},
        true);
}

static void test_differences_activations(void **state)
{
    (void)state;
    for (int h = MFR_H_SILU; h <= MFR_H_CLAMPED; h++)
        nudge_all(&(struct mfr_reference_shape){.topk = 2,
                      .renormalize = true,
                      .scaling = 1,
                      .h = (enum mfr_reference_h)h},
            true);
}

/* One token over six experts in three groups, scores by hand: a sigmoid of 0 is
 * 1/2, so the biases choose. Groups {.9 .0} {.5 .5} {.8 .1}: by their two best
 * the second (1.0) and of 0.9 and 0.9 the first; by the best alone the first
 * and the third.
 */
static void groups_expect(int64_t group_best, int32_t a, int32_t b)
{
    double zero[6] = {0}, one[6] = {1, 1, 1, 1, 1, 1}, x[] = {1};
    double bias[] = {.9, .0, .5, .5, .8, .1};
    const struct mfr_reference_tensors weights = {.router = zero,
        .select_bias = bias,
        .gate = one,
        .up = one,
        .down = one};
    const struct mfr_reference_shape shape = {.tokens = 1,
        .batches = 1,
        .hidden = 1,
        .ffn = 1,
        .experts = 6,
        .topk = 2,
        .scaling = 1,
        .sigmoid = true,
        .groups = 3,
        .topk_groups = group_best == 2 ? 1 : 2,
        .group_best = group_best};
    struct mfr_reference ref;

    assert_int_equal(mfr_reference_create(&shape, &weights, &ref, NULL), 0);
    assert_int_equal(mfr_reference_run(&ref, &weights, x, x, NULL, NULL), 0);
    assert_int_equal(ref.route[0], a);
    assert_int_equal(ref.route[1], b);
    /* The bias is for the choice alone. */
    assert_near(ref.weight[0], 0.5, NEAR);
    mfr_reference_free(&ref);
}

static void test_groups(void **state)
{
    (void)state;
    groups_expect(2, 2, 3);
    groups_expect(1, 0, 4);
}

/* Three experts and one token of width 1, logits as given. */
static void tie_run(
    double *router, const int32_t *tested, struct mfr_reference *ref)
{
    double one[] = {1, 1, 1, 1, 1, 1}, x[] = {1};
    struct mfr_reference_tensors weights = {
        .router = router, .gate = one, .up = one, .down = one};
    struct mfr_reference_shape shape = {.tokens = 1,
        .batches = 1,
        .hidden = 1,
        .ffn = 1,
        .experts = 3,
        .topk = 2,
        .renormalize = true,
        .scaling = 1};

    assert_int_equal(mfr_reference_create(&shape, &weights, ref, NULL), 0);
    assert_int_equal(mfr_reference_run(ref, &weights, x, x, tested, NULL), 0);
}

static void tie_expect(double *router, const int32_t *tested, int32_t first,
    int32_t second, int64_t near_ties)
{
    struct mfr_reference ref;

    tie_run(router, tested, &ref);
    assert_int_equal(ref.route[0], first);
    assert_int_equal(ref.route[1], second);
    assert_int_equal(ref.near_ties, near_ties);
    mfr_reference_free(&ref);
}

static void test_ties(void **state)
{
    double equal[] = {1, 2, 1}, apart[] = {1, 2, 1.001};
    double all[] = {1, 1, 1};
    const int32_t other[] = {1, 2}, wrong[] = {0, 2}, twice[] = {1, 1};
    const int32_t outside[] = {1, 3}, swapped[] = {0, 1};

    (void)state;
    tie_expect(equal, NULL, 1, 0, 1);
    tie_expect(equal, other, 1, 2, 1);
    /* A tested route must hold what stands clear above the tie ... */
    tie_expect(equal, wrong, 1, 0, 1);
    /* ... be made of K different experts ... */
    tie_expect(equal, twice, 1, 0, 1);
    tie_expect(equal, outside, 1, 0, 1);
    /* ... and counts for nothing where there is no tie. */
    tie_expect(apart, swapped, 1, 2, 0);
    tie_expect(all, NULL, 0, 1, 1);
    tie_expect(all, other, 1, 2, 1);
}

static void test_refused(void **state)
{
    struct mfr_reference_shape good = {.tokens = 1,
        .batches = 1,
        .hidden = 1,
        .ffn = 1,
        .experts = 2,
        .topk = 2,
        .scaling = 1};
    struct mfr_reference_shape bad = good;
    struct mfr_reference ref;
    struct mf_error err;
    double one[] = {1, 1};
    struct mfr_reference_tensors weights = {
        .router = one, .gate = one, .up = one, .down = one};

    (void)state;
    bad.topk = 3;
    assert_int_equal(mfr_reference_create(&bad, &weights, &ref, &err), -1);
    assert_int_equal(err.status, MF_INVALID);
    bad = good;
    bad.hidden = INT64_MAX / 4;
    bad.ffn = 8;
    assert_int_equal(mfr_reference_create(&bad, &weights, &ref, &err), -1);
    assert_int_equal(mfr_reference_create(&good, &weights, &ref, &err), 0);
    assert_int_equal(
        mfr_reference_run(&ref, &weights, one, one, NULL, &err), 0);
    assert_int_equal(
        mfr_reference_run(&ref, &weights, one, one, NULL, &err), -1);
    mfr_reference_free(&ref);
    mfr_reference_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hand_renormalized),
        cmocka_unit_test(test_hand_plain_softmax),
        cmocka_unit_test(test_differences_renormalized),
        cmocka_unit_test(test_differences_plain),
        cmocka_unit_test(test_differences_all_experts),
        cmocka_unit_test(test_differences_sigmoid),
        cmocka_unit_test(test_differences_groups),
        cmocka_unit_test(test_differences_activations),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
