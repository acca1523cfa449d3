/* SPDX-License-Identifier: BSD-3-Clause
 * What counts as a difference, and how a verdict is reached.
 */
#include "runtime/verify_check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static bool settled(struct mfr_checks *checks)
{
    assert_int_equal(
        mfr_checks_settle(checks, MPI_COMM_SELF, MPI_COMM_SELF, NULL), 0);
    return !mfr_checks_failed(checks);
}

/* Largest difference 2, largest reference 8: a quarter. */
static void test_relative(void **state)
{
    const float a[] = {1, -10, 3};
    const double b[] = {1, -8, 4};
    struct mfr_checks checks = {0};

    (void)state;
    mfr_check_doubles(mfr_checks_add(&checks, "loose", 0.3, false), a, b, 3);
    mfr_check_doubles(mfr_checks_add(&checks, "tight", 0.2, false), a, b, 3);
    assert_false(settled(&checks));
    assert_true(checks.check[0].ok);
    assert_true(checks.check[0].max_abs == 2);
    assert_true(checks.check[0].max_rel == 0.25);
    assert_string_equal(mfr_checks_failed(&checks)->name, "tight");
}

/* Each call adds to the same tensor: the largest entry may lie elsewhere. */
static void test_shards(void **state)
{
    const float a[] = {1.5F, 100};
    const double b[] = {1, 100};
    struct mfr_checks checks = {0};
    struct mfr_check *check = mfr_checks_add(&checks, "x", 0.01, false);

    (void)state;
    mfr_check_doubles(check, a, b, 1);
    mfr_check_doubles(check, a + 1, b + 1, 1);
    assert_true(settled(&checks));
    assert_true(checks.check[0].max_rel == 0.005);
}

static void fails(float a, double b)
{
    struct mfr_checks checks = {0};

    mfr_check_doubles(mfr_checks_add(&checks, "x", 1e-5, false), &a, &b, 1);
    assert_false(settled(&checks));
}

static void test_not_finite(void **state)
{
    (void)state;
    fails(NAN, 1);
    fails(INFINITY, 1);
    fails(1, (double)NAN);
    fails(INFINITY, (double)INFINITY);
    fails(1e-9F, 0);
}

static void test_zero(void **state)
{
    const float a = 0;
    const double b = 0;
    struct mfr_checks checks = {0};

    (void)state;
    mfr_check_doubles(mfr_checks_add(&checks, "x", 1e-5, false), &a, &b, 1);
    assert_true(settled(&checks));
}

/* 1e-3 apart: of a sum of 0.01 that is a tenth, of its terms a thousandth. */
static void test_cancelled_sum(void **state)
{
    struct mfr_checks checks = {0};

    (void)state;
    mfr_check_sum(mfr_checks_add(&checks, "sum", 2e-3, false), 0.011, 0.01, 1);
    mfr_check_sum(
        mfr_checks_add(&checks, "small", 2e-3, false), 0.011, 0.01, 0.005);
    assert_false(settled(&checks));
    assert_true(checks.check[0].ok);
    assert_false(checks.check[1].ok);
}

static void test_bits(void **state)
{
    const float a[] = {0, 1}, b[] = {-0.0F, 1};
    struct mfr_checks checks = {0};

    (void)state;
    mfr_check_floats(mfr_checks_add(&checks, "bits", 1e-5, true), a, b, 2);
    mfr_check_floats(mfr_checks_add(&checks, "bound", 1e-5, false), a, b, 2);
    mfr_check_floats(mfr_checks_add(&checks, "same", 1e-5, true), a, a, 2);
    assert_false(settled(&checks));
    assert_false(checks.check[0].ok);
    assert_true(checks.check[1].ok);
    assert_int_equal(checks.check[1].bitwise, MFR_BITS_DIFFER);
    assert_true(checks.check[2].ok);
}

static void test_one_difference_stays(void **state)
{
    struct mfr_checks checks = {0};
    struct mfr_check *check = mfr_checks_add(&checks, "x", 0, true);

    (void)state;
    mfr_check_equal(check, true);
    mfr_check_equal(check, false);
    mfr_check_equal(check, true);
    assert_false(settled(&checks));
}

static void test_nothing_compared(void **state)
{
    struct mfr_checks checks = {0};

    (void)state;
    mfr_checks_add(&checks, "x", 0, false);
    assert_false(settled(&checks));
}

static void test_json(void **state)
{
    const float a = NAN;
    const double b = 1;
    struct mfr_checks checks = {0};
    json_t *list, *item;

    (void)state;
    mfr_check_doubles(mfr_checks_add(&checks, "x", 1e-5, false), &a, &b, 1);
    mfr_check_equal(mfr_checks_add(&checks, "y", 0, true), true);
    assert_false(settled(&checks));
    list = mfr_checks_to_json(&checks);
    assert_int_equal(json_array_size(list), 2);
    item = json_array_get(list, 0);
    assert_string_equal(json_string_value(json_object_get(item, "name")), "x");
    assert_true(json_is_null(json_object_get(item, "max_abs")));
    assert_true(json_is_null(json_object_get(item, "bitwise")));
    assert_true(json_is_false(json_object_get(item, "ok")));
    item = json_array_get(list, 1);
    assert_true(json_is_null(json_object_get(item, "max_rel")));
    assert_true(json_is_true(json_object_get(item, "bitwise")));
    assert_true(json_is_true(json_object_get(item, "ok")));
    json_decref(list);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relative),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_zero),
        cmocka_unit_test(test_cancelled_sum),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_one_difference_stays),
        cmocka_unit_test(test_nothing_compared),
        cmocka_unit_test(test_json),
    };
    int failed;

    if (MPI_Init(&argc, &argv) != MPI_SUCCESS)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    return MPI_Finalize() == MPI_SUCCESS ? failed : 1;
}
