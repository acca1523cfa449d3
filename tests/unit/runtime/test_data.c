/* SPDX-License-Identifier: BSD-3-Clause
 * Seeded data and token shards: what every layout must agree on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "runtime/data.h"
#include "runtime/shard.h"

static const struct mfr_shape shape = {
    .seq = 13, .batch = 2, .hidden = 48, .ffn = 12, .experts = 4, .topk = 2};

static void a_part_is_a_slice(void **unused)
{
    float whole[64], part[10];

    (void)unused;
    mfr_data_row(&shape, 7, MFR_GATE, 1, 2, 3, 0, 64, whole);
    mfr_data_row(&shape, 7, MFR_GATE, 1, 2, 3, 20, 10, part);
    assert_memory_equal(part, whole + 20, sizeof part);
}

static void each_index_counts(void **unused)
{
    static const int64_t index[][4] = {
        {7, 1, 2, 3}, {8, 1, 2, 3}, {7, 0, 2, 3}, {7, 1, 3, 3}, {7, 1, 2, 2}};
    float row[7][8];

    (void)unused;
    for (int i = 0; i < 5; i++)
        mfr_data_row(&shape, (uint64_t)index[i][0], MFR_GATE, index[i][1],
            index[i][2], index[i][3], 0, 8, row[i]);
    mfr_data_row(&shape, 7, MFR_UP, 1, 2, 3, 0, 8, row[5]);
    mfr_data_row(&shape, 7, MFR_GATE, 1, 2, 3, 8, 8, row[6]);
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(row[i], row[j], sizeof row[i]);
}

/* Uniform with variance VARIANCE: mean 0 within 5 standard errors, variance
 * within 5 %, nothing beyond sqrt(3 * VARIANCE).
 */
static void check_spread(enum mfr_tensor tensor, double variance)
{
    enum { N = 40000 };
    static float row[N];
    double sum = 0, squares = 0;

    mfr_data_row(&shape, 3, tensor, 0, 0, 0, 0, N, row);
    for (int i = 0; i < N; i++) {
        assert_true((double)row[i] * (double)row[i] <= 3.0001 * variance);
        sum += (double)row[i];
        squares += (double)row[i] * (double)row[i];
    }
    assert_true(fabs(sum / N) < 5 * sqrt(variance / N));
    assert_true(fabs(squares / N / variance - 1) < 0.05);
}

static void values_are_sane(void **unused)
{
    (void)unused;
    check_spread(MFR_INPUT, 1);
    check_spread(MFR_OUTPUT_GRAD, 1);
    check_spread(MFR_ROUTER, 1.0 / 48);
    check_spread(MFR_UP, 1.0 / 48);
    check_spread(MFR_DOWN, 1.0 / 12);
}

static void layout_of(const char *text, int64_t world, struct mf_layout *layout)
{
    assert_int_equal(mf_layout_parse(text, layout, NULL), 0);
    assert_int_equal(mf_layout_resolve(layout, world, ~0u, NULL), 0);
}

/* 13 positions over tp 2 * cp 2: 4, 3, 3, 3; rank = tp + 2 * cp + 4 * dp. */
static void shards_of_uneven_length(void **unused)
{
    static const int64_t first[] = {0, 4, 7, 10}, positions[] = {4, 3, 3, 3};
    struct mf_layout layout;

    (void)unused;
    layout_of("tp2.cp2.dp2", 8, &layout);
    for (int rank = 0; rank < 8; rank++) {
        struct mfr_shard shard;

        mfr_shard_of(&shape, &layout, rank, &shard);
        assert_int_equal(shard.micro_batch, rank / 4);
        assert_int_equal(shard.shard, rank % 4);
        assert_int_equal(shard.first, first[rank % 4]);
        assert_int_equal(shard.positions, positions[rank % 4]);
        assert_int_equal(shard.tokens, 2 * positions[rank % 4]);
    }
}

static void shards_may_be_empty(void **unused)
{
    struct mfr_shape tiny = shape;
    struct mf_layout layout;
    int64_t all = 0;

    (void)unused;
    tiny.seq = 3;
    layout_of("cp8", 8, &layout);
    for (int rank = 0; rank < 8; rank++) {
        struct mfr_shard shard;

        mfr_shard_of(&tiny, &layout, rank, &shard);
        assert_int_equal(shard.positions, rank < 3 ? 1 : 0);
        all += shard.tokens;
    }
    assert_int_equal(all, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_is_a_slice),
        cmocka_unit_test(each_index_counts),
        cmocka_unit_test(values_are_sane),
        cmocka_unit_test(shards_of_uneven_length),
        cmocka_unit_test(shards_may_be_empty),
    };

    return cmocka_run_group_tests_name("data", tests, NULL, NULL);
}
