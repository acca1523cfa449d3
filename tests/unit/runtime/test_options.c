/* SPDX-License-Identifier: BSD-3-Clause
 * The command line of moefold-run, and the figures of its record.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "runtime/options.h"
#include "runtime/stats.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

static int parse(int argc, const char *const *argv, struct mfr_options *options,
    struct mf_error *err)
{
    char *copy[16];

    for (int i = 0; i < argc; i++)
        copy[i] = (char *)(uintptr_t)argv[i];
    return mfr_options_parse(argc, copy, options, err);
}

static void defaults(void **unused)
{
    const char *const argv[] = {"moefold-run", "plan.json"};
    struct mfr_options o;

    (void)unused;
    assert_int_equal(parse(COUNT(argv), argv, &o, NULL), 0);
    assert_int_equal(o.mode, MFR_MODE_RUN);
    assert_string_equal(o.plan, "plan.json");
    assert_int_equal(o.pick, 1);
    assert_int_equal(o.iterations, 20);
    assert_int_equal(o.warmup, 3);
    assert_false(o.json || o.quiet || o.no_history || o.full);
}

static void values_both_ways(void **unused)
{
    const char *const argv[] = {"moefold-run", "--verify", "--pick=3",
        "--experts", "exact", "--fault=wrong-group", "--full", "--json", "--",
        "--plan"};
    struct mfr_options o;

    (void)unused;
    assert_int_equal(parse(COUNT(argv), argv, &o, NULL), 0);
    assert_int_equal(o.mode, MFR_MODE_VERIFY);
    assert_string_equal(o.plan, "--plan");
    assert_int_equal(o.pick, 3);
    assert_int_equal(o.kernel, MFK_EXACT);
    assert_int_equal(o.fault, MFR_FAULT_WRONG_GROUP);
    assert_true(o.full && o.json);
}

static void refused(void **unused)
{
    static const char *const bad[][4] = {
        {"moefold-run", NULL},
        {"moefold-run", "a", "b", NULL},
        {"moefold-run", "a", "--nope", NULL},
        {"moefold-run", "a", "-j", NULL},
        {"moefold-run", "a", "--pick", NULL},
        {"moefold-run", "a", "--pick=0", NULL},
        {"moefold-run", "a", "--iterations=0", NULL},
        {"moefold-run", "a", "--json=yes", NULL},
        {"moefold-run", "a", "--experts=fast", NULL},
        {"moefold-run", "a", "--backend=../cuda", NULL},
        {"moefold-run", "a", "--backend=", NULL},
        {"moefold-run", "a", "--backend=CUDA", NULL},
        {"moefold-run", "a", "--comm=tcp", NULL},
        {"moefold-run", "a", "--exchange=some", NULL},
        {"moefold-run", "a", "--fault=wrong-group", NULL},
        {"moefold-run", "--verify-all", "--fault=other", NULL},
        {"moefold-run", "--verify-all", "--full", NULL},
        {"moefold-run", "a", "--verify-all", NULL},
        {"moefold-run", "--verify", "--probe", NULL},
    };

    (void)unused;
    for (int i = 0; i < COUNT(bad); i++) {
        struct mf_error err = {MF_OK, ""};
        struct mfr_options o;
        int argc = 0;

        while (argc < 4 && bad[i][argc])
            argc++;
        assert_int_equal(parse(argc, bad[i], &o, &err), -1);
        assert_int_equal(err.status, MF_INVALID);
        assert_true(err.text[0]);
    }
}

static void medians(void **unused)
{
    double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2}, one[] = {7};

    (void)unused;
    assert_true(mfr_median(3, odd) == 3);
    assert_true(mfr_median(4, even) == 2.5);
    assert_true(mfr_median(1, one) == 7);
    assert_true(isnan(mfr_median(0, one)));
}

/* G is half the mean absolute difference over the mean: for 0, 0, 0, 8 the 16
 * pairs differ by 6 * 8 = 48 in all, mean 3, over 2 * mean load 2 = 0.75; for
 * 3, 1 by 4, mean 1, over 2 * 2 = 0.25.
 */
static void gini(void **unused)
{
    int64_t equal[] = {5, 5, 5}, one[] = {0, 8, 0, 0}, two[] = {3, 1};
    int64_t none[] = {0, 0};

    (void)unused;
    assert_true(fabs(mfr_gini(3, equal)) < 1e-12);
    assert_true(fabs(mfr_gini(4, one) - 0.75) < 1e-12);
    assert_true(fabs(mfr_gini(2, two) - 0.25) < 1e-12);
    assert_true(mfr_gini(2, none) == 0);
}

static void faults_have_names(void **unused)
{
    (void)unused;
    for (int i = MFR_FAULT_NONE; i <= MFR_FAULT_DROP_LAST_ROW; i++)
        assert_int_equal(mfr_fault_find(mfr_fault_name((enum mfr_fault)i)), i);
    assert_int_equal(mfr_fault_find("nothing"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(values_both_ways),
        cmocka_unit_test(refused),
        cmocka_unit_test(medians),
        cmocka_unit_test(gini),
        cmocka_unit_test(faults_have_names),
    };

    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
