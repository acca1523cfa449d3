/* SPDX-License-Identifier: BSD-3-Clause
 * Products against sums in double precision, and rows that stand alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

enum { NT, NN, TN, FORMS };

static uint32_t state = 12345;

/* Uniform in [-1, 1); Numerical Recipes' quick generator. */
static float next(void)
{
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) * 0x1p-23f - 1;
}

static float *fill(int64_t n)
{
    float *values = malloc(((size_t)n + 1) * sizeof *values);

    assert_non_null(values);
    for (int64_t i = 0; i < n; i++)
        values[i] = next();
    return values;
}

static void product(int form, enum mfk_gemm kind, const int64_t s[3],
    const float *a, const float *b, bool add, float *c)
{
    if (form == NT)
        mfk_gemm_nt(kind, s[0], s[1], s[2], a, b, add, c);
    else if (form == NN)
        mfk_gemm_nn(kind, s[0], s[1], s[2], a, b, add, c);
    else
        mfk_gemm_tn(kind, s[0], s[1], s[2], a, b, add, c);
}

static double element(int form, const int64_t s[3], const float *a,
    const float *b, int64_t i, int64_t j)
{
    double sum = 0;

    for (int64_t p = 0; p < s[2]; p++) {
        const double x = form == TN ? a[p * s[0] + i] : a[i * s[2] + p];
        const double y = form == NT ? b[j * s[2] + p] : b[p * s[1] + j];
        sum += x * y;
    }
    return sum;
}

static void check_product(
    int form, enum mfk_gemm kind, const int64_t s[3], bool add)
{
    float *a = fill(s[0] * s[2]), *b = fill(s[1] * s[2]);
    float *c = fill(s[0] * s[1]), *before = fill(s[0] * s[1]);
    const double bound = 1e-6 * (double)(s[2] + 2);

    memcpy(before, c, (size_t)(s[0] * s[1]) * sizeof *c);
    product(form, kind, s, a, b, add, c);
    for (int64_t i = 0; i < s[0]; i++)
        for (int64_t j = 0; j < s[1]; j++) {
            const int64_t at = i * s[1] + j;
            const double want =
                element(form, s, a, b, i, j) + (add ? (double)before[at] : 0);
            assert_true(fabs((double)c[at] - want) <= bound);
        }
    free(a);
    free(b);
    free(c);
    free(before);
}

static void products_equal_sums(void **unused)
{
    static const int64_t sizes[] = {0, 1, 2, 5, 8, 17, 35, 70};
    const size_t n = sizeof sizes / sizeof *sizes;

    (void)unused;
    for (int form = 0; form < FORMS; form++)
        for (size_t i = 0; i < n * n * n; i++) {
            const int64_t s[3] = {
                sizes[i % n], sizes[i / n % n], sizes[i / n / n]};
            check_product(form, MFK_EXACT, s, i % 2);
            check_product(form, MFK_BLAS, s, i % 2);
        }
}

/* One row alone has the bits that it has among M rows. */
static void exact_rows_stand_alone(void **unused)
{
    const int64_t m = 131, n = 37, k = 53, one[3] = {1, n, k};
    const int64_t all[3] = {m, n, k};
    float *a = fill(m * k), *b = fill(n * k), *c = fill(m * n);
    float *row = fill(n);

    (void)unused;
    for (int form = NT; form <= NN; form++) {
        product(form, MFK_EXACT, all, a, b, false, c);
        for (int64_t i = 0; i < m; i++) {
            product(form, MFK_EXACT, one, a + i * k, b, false, row);
            assert_memory_equal(row, c + i * n, (size_t)n * sizeof *row);
        }
    }
    free(a);
    free(b);
    free(c);
    free(row);
}

static void dot_equals_sum(void **unused)
{
    const float a[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    const float b[] = {1, -1, 1, -1, 1, -1, 1, -1, 2, 3};

    (void)unused;
    /* 1-2+3-4+5-6+7-8 = -4, and 18 + 30. */
    assert_true(mfk_dot(10, a, b) == 44);
    assert_true(mfk_dot(1, a, b) == 1);
    assert_true(mfk_dot(0, a, b) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_equal_sums),
        cmocka_unit_test(exact_rows_stand_alone),
        cmocka_unit_test(dot_equals_sum),
    };

    return cmocka_run_group_tests_name("gemm", tests, NULL, NULL);
}
