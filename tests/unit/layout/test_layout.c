/* SPDX-License-Identifier: BSD-3-Clause
 * Numbers, orders, layouts, coordinates and groups.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "planner/layout/groups.h"
#include "planner/layout/number.h"

static void test_numbers(void **state)
{
    static const struct {
        const char *text;
        int64_t value; /* -1: refused */
    } cases[] = {
        {"8", 8},
        {"4k", 4000},
        {"1.5M", 1500000},
        {"2T", 2000000000000},
        {"1e3", 1000},
        {"0", 0},
        {"", -1},
        {"4 ", -1},
        {" 4", -1},
        {"0x10", -1},
        {"nan", -1},
        {"inf", -1},
        {"1.5", -1},
        {"4kk", -1},
        {"1e", -1},
        {"1.", -1},
        {"-", -1},
        {"-3", -1},
        {"+3", -1},
        {"1e300", -1},
        {"99999999999999999999", -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct mf_error err;
        int64_t value = -1;
        int rc =
            mf_number_parse(cases[i].text, "it", 0, INT64_MAX, &value, &err);

        assert_int_equal(rc, cases[i].value < 0 ? -1 : 0);
        assert_int_equal(value, cases[i].value);
    }
}

static void test_product_overflow(void **state)
{
    int64_t big[] = {(int64_t)1 << 40, (int64_t)1 << 30};
    int64_t zero[] = {4, 0};

    (void)state;
    assert_int_equal(mf_product(2, big), -1);
    assert_int_equal(mf_product(2, zero), -1);
    assert_int_equal(mf_product(0, NULL), 1);
}

/* Text in, canonical text out for a world; NULL: refused. */
static void test_layout_text(void **state)
{
    static const struct {
        const char *text;
        int64_t world;
        const char *canonical;
    } cases[] = {
        {"tp2.pp8/ep8", 128, "tp2.cp1.dp8.pp8/etp1.ep8.edp2"},
        {"pp8.tp2/edp2.ep8", 128, "tp2.cp1.dp8.pp8/etp1.ep8.edp2"},
        {"dp4", 4, "tp1.cp1.dp4.pp1/etp1.ep1.edp4"},
        {"dp4", 8, NULL},
        {"tp2.tp2", 4, NULL},
        {"tp0", 4, NULL},
        {"tp2 ", 4, NULL},
        {"tp2/pp2", 4, NULL},
        {"ep2", 4, NULL},
        {"tp2/ep2/ep2", 4, NULL},
        {"", 4, NULL},
        {"tp", 4, NULL},
        {"xp2", 4, NULL},
        {"tp-2", 4, NULL},
        {"tp2.", 4, NULL},
        {"/ep2", 4, NULL},
        {"tp99999999999999999999", 4, NULL},
        {"tp1.5", 4, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[MF_LAYOUT_TEXT];
        struct mf_layout layout;
        struct mf_error err;
        int rc = mf_layout_parse(cases[i].text, &layout, &err);

        if (!rc)
            rc = mf_layout_resolve(&layout, cases[i].world, ~0u, &err);
        assert_int_equal(rc, cases[i].canonical ? 0 : -1);
        if (rc) {
            assert_int_equal(err.status, MF_INVALID);
            continue;
        }
        mf_layout_format(&layout, text, sizeof text);
        assert_string_equal(text, cases[i].canonical);
    }
}

static int64_t coord_of(const struct mf_coords *c, enum mf_group_kind kind)
{
    switch (kind) {
    case MF_GROUP_TP:
        return c->tp;
    case MF_GROUP_CP:
        return c->cp;
    case MF_GROUP_DP:
        return c->dp;
    case MF_GROUP_PP:
        return c->pp;
    case MF_GROUP_ETP:
        return c->etp;
    case MF_GROUP_EP:
        return c->ep;
    default:
        return c->edp;
    }
}

/* A rank's coordinate on an axis is its place in its group of that axis, and
 * every kind but embd holds each rank exactly once.
 */
static void check_layout(const struct mf_layout *layout)
{
    static const enum mf_group_kind axes[] = {MF_GROUP_TP, MF_GROUP_CP,
        MF_GROUP_DP, MF_GROUP_PP, MF_GROUP_ETP, MF_GROUP_EP, MF_GROUP_EDP};
    int64_t world = mf_layout_world(layout);
    int32_t *member = calloc((size_t)world, sizeof *member);
    int *seen = calloc((size_t)world, sizeof *seen);

    for (int kind = 0; kind < MF_GROUP_KINDS; kind++) {
        struct mf_groups groups;
        struct mf_error err;

        assert_int_equal(
            mf_groups_build(layout, (enum mf_group_kind)kind, &groups, &err),
            0);
        memset(seen, 0, (size_t)world * sizeof *seen);
        for (int64_t i = 0; i < groups.count * groups.size; i++)
            seen[groups.rank[i]]++;
        for (int64_t r = 0; kind != MF_GROUP_EMBD && r < world; r++)
            assert_int_equal(seen[r], 1);
        mf_groups_free(&groups);
    }
    for (int64_t rank = 0; rank < world; rank++) {
        struct mf_coords coords;

        mf_layout_coords(layout, rank, &coords);
        for (size_t a = 0; a < sizeof axes / sizeof axes[0]; a++) {
            int64_t place = mf_group_members(layout, axes[a], rank, member);

            assert_int_equal(member[place], rank);
            assert_int_equal(place, coord_of(&coords, axes[a]));
        }
    }
    free(member);
    free(seen);
}

static void test_coordinates_agree_with_groups(void **state)
{
    static const char *const folded[] = {
        "tp2.cp2.pp2/ep4", "tp4.pp3/etp2.ep6", "cp3.pp2/etp3", "tp2/ep8.etp2"};
    static const char *const coupled[] = {"tp2.cp2/ep2", "tp2/ep4", "tp3.pp2"};

    (void)state;
    for (size_t i = 0; i < sizeof folded / sizeof folded[0]; i++) {
        struct mf_layout layout;
        struct mf_error err;

        assert_int_equal(mf_layout_parse(folded[i], &layout, &err), 0);
        assert_int_equal(mf_layout_resolve(&layout, 144, ~0u, &err), 0);
        check_layout(&layout);
    }
    for (size_t i = 0; i < sizeof coupled / sizeof coupled[0]; i++) {
        struct mf_layout layout;
        struct mf_error err;

        assert_int_equal(mf_layout_parse(coupled[i], &layout, &err), 0);
        layout.coupled = true;
        assert_int_equal(mf_layout_resolve(&layout, 48, ~0u, &err), 0);
        check_layout(&layout);
    }
}

/* Megatron-LM 0.8: ep had stride tp*cp inside the data-parallel ranks. For
 * tp2, cp2, dp4, ep2 on 16 ranks, written out by hand.
 */
static void test_coupled_groups(void **state)
{
    static const int32_t ep[] = {0, 4}, edp[] = {0, 2, 8, 10};
    struct mf_layout layout;
    struct mf_groups groups;
    struct mf_error err;

    (void)state;
    assert_int_equal(mf_layout_parse("tp2.cp2/ep2", &layout, &err), 0);
    layout.coupled = true;
    assert_int_equal(mf_layout_resolve(&layout, 16, ~0u, &err), 0);
    assert_int_equal(layout.etp, 2);
    assert_int_equal(layout.edp, 4);
    assert_int_equal(mf_groups_build(&layout, MF_GROUP_EP, &groups, &err), 0);
    assert_memory_equal(groups.rank, ep, sizeof ep);
    mf_groups_free(&groups);
    assert_int_equal(mf_groups_build(&layout, MF_GROUP_EDP, &groups, &err), 0);
    assert_memory_equal(groups.rank, edp, sizeof edp);
    mf_groups_free(&groups);
}

static void test_order(void **state)
{
    static const char *const bad[] = {
        "", "tp-tp", "tp-xp", "tp--cp", "tp-", "tp cp", "tp-cp-ep-dp-pp-tp"};
    struct mf_order order;
    struct mf_error err;
    unsigned given;
    char text[64];

    (void)state;
    assert_int_equal(mf_order_parse("tp-cp-ep-pp-dp", &order, &given, &err), 0);
    mf_order_format(&order, text, sizeof text);
    assert_string_equal(text, "tp-cp-ep-pp-dp");
    assert_int_equal(mf_order_parse("tp-dp", &order, &given, &err), 0);
    mf_order_format(&order, text, sizeof text);
    assert_string_equal(text, "tp-dp-cp-ep-pp");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(mf_order_parse(bad[i], &order, &given, &err), -1);
}

static void test_error_text(void **state)
{
    char lengthy[3000];
    struct mf_error err;

    (void)state;
    memset(lengthy, 'x', sizeof lengthy - 1);
    lengthy[sizeof lengthy - 1] = 0;
    assert_int_equal(mf_error_set(&err, MF_NO, "a\nb%s", lengthy), -1);
    assert_int_equal(err.status, MF_NO);
    assert_memory_equal(err.text, "a?bx", 4);
    assert_int_equal(mf_error_prefix(&err, "%s", lengthy), -1);
    assert_true(strlen(err.text) < sizeof err.text);
    assert_int_equal(mf_error_set(NULL, MF_NO, "x"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_product_overflow),
        cmocka_unit_test(test_layout_text),
        cmocka_unit_test(test_coordinates_agree_with_groups),
        cmocka_unit_test(test_coupled_groups),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_error_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
