/* SPDX-License-Identifier: BSD-3-Clause
 * The layouts that a walk visits.
 */
#include "runtime/walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LAYOUTS_MOST 200

struct seen {
    struct mf_layout layout[LAYOUTS_MOST];
    int n;
};

static int see(const struct mf_layout *layout, void *data)
{
    struct seen *seen = data;

    assert_true(seen->n < LAYOUTS_MOST);
    for (int i = 0; i < seen->n; i++)
        assert_false(mf_layout_equal(&seen->layout[i], layout));
    seen->layout[seen->n++] = *layout;
    return 0;
}

/* Over the divisors pp of N, the square of the number of ordered products of
 * three that make N / pp: 1, 3, 6, 10 for 1, a prime, 4, 8, and 9 for 6. So 4
 * has 36 + 9 + 1, 6 has 81 + 9 + 9 + 1, and 8 has 100 + 36 + 9 + 1.
 */
static void test_counts(void **state)
{
    static const int want[] = {0, 1, 10, 10, 46, 10, 100, 10, 146};
    struct seen *seen = malloc(sizeof *seen);

    (void)state;
    assert_non_null(seen);
    for (int64_t world = 1; world <= 8; world++) {
        seen->n = 0;
        assert_int_equal(mfr_walk_layouts(world, see, seen), 0);
        assert_int_equal(seen->n, want[world]);
    }
    free(seen);
}

static void test_each_resolves(void **state)
{
    struct seen *seen = calloc(1, sizeof *seen);

    (void)state;
    assert_non_null(seen);
    assert_int_equal(mfr_walk_layouts(6, see, seen), 0);
    for (int i = 0; i < seen->n; i++) {
        struct mf_layout layout = seen->layout[i];

        assert_int_equal(mf_layout_resolve(&layout, 6, ~0u, NULL), 0);
        assert_true(mf_layout_equal(&layout, &seen->layout[i]));
    }
    free(seen);
}

static int stop(const struct mf_layout *layout, void *data)
{
    int *left = data;

    (void)layout;
    return --*left ? 0 : 7;
}

static void test_stops(void **state)
{
    int left = 5;

    (void)state;
    assert_int_equal(mfr_walk_layouts(8, stop, &left), 7);
    assert_int_equal(left, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_each_resolves),
        cmocka_unit_test(test_stops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
