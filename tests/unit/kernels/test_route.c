/* SPDX-License-Identifier: BSD-3-Clause
 * The router's choice and its gradient, in hand-made and in random cases.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "kernels/kernels.h"

static void near(double a, double b, double bound)
{
    if (!(fabs(a - b) <= bound))
        fail_msg("%.9g is not %.9g", a, b);
}

/* logits ln 1, ln 4, ln 2, ln 3: probabilities 0.1, 0.4, 0.2, 0.3. */
static const double odds[4] = {1, 4, 2, 3};

/* A plain softmax router on one token. */
#define ROUTER(number, best, sum_is_one, factor)                               \
    (struct mfk_router)                                                        \
    {                                                                          \
        .tokens = 1, .experts = number, .topk = best,                          \
        .renormalize = sum_is_one, .scaling = factor,                          \
    }

static void route_odds(int topk, bool renormalize, float scaling, float *probs,
    int32_t *ids, float *weights)
{
    float logits[4];

    for (int e = 0; e < 4; e++)
        logits[e] = (float)log(odds[e]);
    mfk_route(
        &ROUTER(4, topk, renormalize, scaling), logits, probs, ids, weights);
}

static void best_first(void **unused)
{
    float probs[4], weights[4];
    int32_t ids[4];

    (void)unused;
    route_odds(2, false, 1, probs, ids, weights);
    near(probs[0], 0.1, 1e-6);
    near(probs[1], 0.4, 1e-6);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 3);
    near(weights[0], 0.4, 1e-6);
    near(weights[1], 0.3, 1e-6);
    route_odds(2, true, 2.5f, probs, ids, weights);
    near(weights[0], 2.5 * 4 / 7, 1e-6);
    near(weights[1], 2.5 * 3 / 7, 1e-6);
    /* K = E: all of them, best first. */
    route_odds(4, true, 1, probs, ids, weights);
    assert_int_equal(ids[2], 2);
    assert_int_equal(ids[3], 0);
    near(weights[3], 0.1, 1e-6);
}

static void ties_to_the_lower_expert(void **unused)
{
    const float logits[] = {1, 3, 3, 3, 2};
    float probs[5], weights[3];
    int32_t ids[3];

    (void)unused;
    mfk_route(&ROUTER(5, 3, true, 1), logits, probs, ids, weights);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 2);
    assert_int_equal(ids[2], 3);
}

static void not_a_number_still_chooses(void **unused)
{
    const float logits[] = {NAN, 2, NAN, NAN};
    float probs[4], weights[3];
    int32_t ids[3];

    (void)unused;
    mfk_route(&ROUTER(4, 3, true, 1), logits, probs, ids, weights);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 0);
    assert_int_equal(ids[2], 2);
}

static void one_expert(void **unused)
{
    const float logit = 700, dweight = 3;
    float prob, weight, dlogit;
    int32_t id;

    (void)unused;
    mfk_route(&ROUTER(1, 1, false, 1), &logit, &prob, &id, &weight);
    assert_true(weight == 1 && id == 0);
    mfk_route_backward(&ROUTER(1, 1, false, 1), &prob, &id, &dweight, &dlogit);
    assert_true(dlogit == 0);
}

/* sum of dweight * weight as the maths has it, in double, with fixed ids. */
static double objective(const double *logits, const int32_t *ids, int experts,
    int topk, bool renormalize, double scaling, const float *dweights)
{
    double sum = 0, chosen = 0, total = 0;

    for (int e = 0; e < experts; e++)
        sum += exp(logits[e]);
    for (int j = 0; j < topk; j++)
        chosen += exp(logits[ids[j]]);
    for (int j = 0; j < topk; j++)
        total += (double)dweights[j] * scaling * exp(logits[ids[j]]) /
                 (renormalize ? chosen : sum);
    return total;
}

static void gradient_equals_differences(void **unused)
{
    enum { EXPERTS = 6, TOPK = 3 };
    const float logits[EXPERTS] = {0.3f, -1.1f, 0.9f, 0.2f, 1.4f, -0.5f};
    const float dweights[TOPK] = {0.7f, -1.3f, 0.4f};
    const double step = 1e-5;

    (void)unused;
    for (int renormalize = 0; renormalize < 2; renormalize++) {
        float probs[EXPERTS], weights[TOPK], dlogits[EXPERTS];
        int32_t ids[TOPK];

        mfk_route(&ROUTER(EXPERTS, TOPK, renormalize, 1.7f), logits, probs, ids,
            weights);
        mfk_route_backward(&ROUTER(EXPERTS, TOPK, renormalize, 1.7f), probs,
            ids, dweights, dlogits);
        for (int e = 0; e < EXPERTS; e++) {
            double up[EXPERTS], down[EXPERTS];

            for (int i = 0; i < EXPERTS; i++)
                up[i] = down[i] = (double)logits[i];
            up[e] += step;
            down[e] -= step;
            near(dlogits[e],
                (objective(up, ids, EXPERTS, TOPK, renormalize, 1.7, dweights) -
                    objective(
                        down, ids, EXPERTS, TOPK, renormalize, 1.7, dweights)) /
                    (2 * step),
                1e-6);
        }
    }
}

static void places_keep_order(void **unused)
{
    const int32_t ids[] = {2, 0, 2, 1, 0, 2};
    const int64_t want[] = {3, 0, 4, 2, 1, 5};
    int64_t counts[4], cursor[4], place[6];

    (void)unused;
    mfk_count(6, 4, ids, counts);
    assert_int_equal(counts[0], 2);
    assert_int_equal(counts[1], 1);
    assert_int_equal(counts[2], 3);
    assert_int_equal(counts[3], 0);
    mfk_place(6, 4, ids, counts, cursor, place);
    assert_memory_equal(place, want, sizeof want);
    mfk_count(0, 4, ids, counts);
    assert_int_equal(counts[2], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_first),
        cmocka_unit_test(ties_to_the_lower_expert),
        cmocka_unit_test(not_a_number_still_chooses),
        cmocka_unit_test(one_expert),
        cmocka_unit_test(gradient_equals_differences),
        cmocka_unit_test(places_keep_order),
    };

    return cmocka_run_group_tests_name("route", tests, NULL, NULL);
}
