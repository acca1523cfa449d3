/* SPDX-License-Identifier: BSD-3-Clause
 * Permute, un-permute and the activation against plain loops.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

enum { TOKENS = 3, TOPK = 2, ROWS = TOKENS * TOPK, HIDDEN = 19 };

static const int64_t place[ROWS] = {4, 1, 0, 5, 2, 3};

static void near(double a, double b, double bound)
{
    if (!(fabs(a - b) <= bound))
        fail_msg("%.9g is not %.9g", a, b);
}

static float value(int64_t row, int64_t column)
{
    return (float)((row * 7 + column * 3) % 11) - 5;
}

static void fill(int64_t rows, float *x)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < HIDDEN; c++)
            x[r * HIDDEN + c] = value(r, c);
}

static void permute_moves_rows(void **unused)
{
    float x[TOKENS * HIDDEN], rows[ROWS * HIDDEN];

    (void)unused;
    fill(TOKENS, x);
    mfk_permute(TOKENS, TOPK, HIDDEN, x, place, rows);
    for (int i = 0; i < ROWS; i++)
        assert_memory_equal(rows + place[i] * HIDDEN, x + i / TOPK * HIDDEN,
            HIDDEN * sizeof *x);
    mfk_permute(0, TOPK, HIDDEN, x, place, rows);
}

static void unpermute_adds_rows(void **unused)
{
    const float weights[ROWS] = {0.5f, 2, -1, 0.25f, 3, 1};
    float rows[ROWS * HIDDEN], y[TOKENS * HIDDEN];

    (void)unused;
    fill(ROWS, rows);
    for (int weighted = 0; weighted < 2; weighted++) {
        mfk_unpermute(
            TOKENS, TOPK, HIDDEN, rows, place, weighted ? weights : NULL, y);
        for (int t = 0; t < TOKENS; t++)
            for (int c = 0; c < HIDDEN; c++) {
                const int i = t * TOPK;
                const float a = weighted ? weights[i] : 1;
                const float b = weighted ? weights[i + 1] : 1;
                /* Small multiples of 1/4: exact in fp32. */
                assert_true(
                    y[t * HIDDEN + c] ==
                    a * value(place[i], c) + b * value(place[i + 1], c));
            }
    }
}

static void unpermute_backward_is_the_transpose(void **unused)
{
    const float weights[ROWS] = {0.5f, 2, -1, 0.25f, 3, 1};
    float rows[ROWS * HIDDEN], dy[TOKENS * HIDDEN];
    float drows[ROWS * HIDDEN], dweights[ROWS];

    (void)unused;
    fill(ROWS, rows);
    fill(TOKENS, dy);
    mfk_unpermute_backward(
        TOKENS, TOPK, HIDDEN, rows, place, weights, dy, drows, dweights);
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;

        for (int c = 0; c < HIDDEN; c++) {
            assert_true(drows[place[i] * HIDDEN + c] ==
                        weights[i] * value(i / TOPK, c));
            sum += (double)value(place[i], c) * (double)value(i / TOPK, c);
        }
        assert_true((double)dweights[i] == sum);
    }
}

static double silu(double g)
{
    return g / (1 + exp(-g));
}

static void swiglu_and_its_gradient(void **unused)
{
    const float gate[] = {-90, -3, -0.5f, 0, 0.1f, 2, 90};
    const float up[] = {1, -2, 0.5f, 3, -1, 0.25f, 2};
    const float dout[] = {1, 1, -2, 0.5f, 3, -1, 1};
    const double step = 1e-5;
    float out[7], dgate[7], dup[7];

    (void)unused;
    mfk_activate(MFK_SWIGLU, 7, gate, up, out);
    mfk_activate_backward(MFK_SWIGLU, 7, gate, up, dout, dgate, dup);
    for (int i = 0; i < 7; i++) {
        const double g = (double)gate[i], u = (double)up[i];
        const double d = (double)dout[i];

        near(out[i], silu(g) * u, 1e-6 * (1 + fabs(silu(g) * u)));
        near(dup[i], d * silu(g), 1e-6 * (1 + fabs(d * silu(g))));
        near(dgate[i], d * u * (silu(g + step) - silu(g - step)) / (2 * step),
            1e-5);
    }
    mfk_activate_backward(MFK_SWIGLU, 0, gate, up, dout, dgate, dup);
}

static void add_and_scale(void **unused)
{
    float sum[HIDDEN], part[HIDDEN];

    (void)unused;
    for (int i = 0; i < HIDDEN; i++) {
        sum[i] = (float)i;
        part[i] = 2;
    }
    mfk_add(HIDDEN, part, sum);
    mfk_scale(HIDDEN, 0.5f, sum);
    for (int i = 0; i < HIDDEN; i++)
        assert_true(sum[i] == (float)(i + 2) / 2);
}

/* Large ones are written past the caches: every value, aligned or not. */
static void large_permutes_move_all(void **unused)
{
    enum { MANY = 9000, MOST = 2 * MANY, WIDE = 512 };
    float *x = malloc(MANY * WIDE * sizeof *x);
    float *rows = aligned_alloc(64, (MOST * WIDE + 16) * sizeof *rows);
    int64_t *target = malloc(MOST * sizeof *target);

    (void)unused;
    assert_true(x && rows && target);
    for (int i = 0; i < MANY * WIDE; i++)
        x[i] = (float)i;
    for (int64_t i = 0; i < MOST; i++)
        target[i] = i * 7919 % MOST; /* a prime that does not divide it */
    for (int shift = 0; shift < 2; shift++) {
        float *to = rows + shift;

        memset(rows, 0xff, (MOST * WIDE + 16) * sizeof *rows);
        mfk_permute(MANY, 2, WIDE, x, target, to);
        for (int64_t i = 0; i < MOST; i++)
            assert_memory_equal(
                to + target[i] * WIDE, x + i / 2 * WIDE, WIDE * sizeof *x);
    }
    free(x);
    free(rows);
    free(target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(permute_moves_rows),
        cmocka_unit_test(unpermute_adds_rows),
        cmocka_unit_test(unpermute_backward_is_the_transpose),
        cmocka_unit_test(swiglu_and_its_gradient),
        cmocka_unit_test(add_and_scale),
        cmocka_unit_test(large_permutes_move_all),
    };

    return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
