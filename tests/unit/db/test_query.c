/* SPDX-License-Identifier: BSD-3-Clause
 * Questions: which runs a filter finds, which run is best, medians of phases,
 * coefficients and the cache.
 */
#include "tests/unit/db/help.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_up, bed_down)

static void add(struct bed *bed, mfdb *db, const char *model,
    const char *layout, double started, double layer_s, struct mfdb_run *run)
{
    run_make(run, "done");
    snprintf(run->model, sizeof run->model, "%s", model);
    snprintf(run->layout, sizeof run->layout, "%s", layout);
    run->started_at = started;
    run->layer_s = layer_s;
    run_save(bed, db, run);
}

static void check_count(struct bed *bed, mfdb *db,
    const struct mfdb_filter *filter, size_t expected)
{
    struct mfdb_runs runs;

    assert_int_equal(mfdb_list(db, filter, &runs, bed->err), 0);
    assert_int_equal(runs.count, expected);
    mfdb_runs_free(&runs);
}

static void list_is_newest_first(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run run[3];
    struct mfdb_runs runs;
    mfdb *db = open_update(bed);

    add(bed, db, "m", "l", 200, 1, &run[0]);
    add(bed, db, "m", "l", 300, 1, &run[1]);
    add(bed, db, "m", "l", 100, 1, &run[2]);
    assert_int_equal(mfdb_list(db, NULL, &runs, bed->err), 0);
    assert_int_equal(runs.count, 3);
    run_assert_equal(&runs.run[0], &run[1]);
    run_assert_equal(&runs.run[1], &run[0]);
    run_assert_equal(&runs.run[2], &run[2]);
    mfdb_runs_free(&runs);
    mfdb_close(db);
}

static void filters_choose(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run run;
    mfdb *db = open_update(bed);

    add(bed, db, "Mixtral-8x22B-v0.1", "a", 1, 1, &run);
    add(bed, db, "Mixtral-8x7B", "b", 2, 1, &run);
    add(bed, db, "Qwen2-57B", "b", 3, 1, &run);
    check_count(bed, db, NULL, 3);
    check_count(bed, db, &(struct mfdb_filter){.model = "MIXTRAL"}, 2);
    check_count(bed, db, &(struct mfdb_filter){.model = "mixtral-8x22b"}, 1);
    check_count(bed, db, &(struct mfdb_filter){.model = "8x22b"}, 0);
    check_count(bed, db, &(struct mfdb_filter){.model = "mixtral_8x"}, 0);
    check_count(bed, db, &(struct mfdb_filter){.model = "%"}, 0);
    check_count(bed, db, &(struct mfdb_filter){.model = ""}, 3);
    check_count(bed, db, &(struct mfdb_filter){.cluster = "LOC"}, 3);
    check_count(bed, db, &(struct mfdb_filter){.cluster = "x"}, 0);
    check_count(bed, db, &(struct mfdb_filter){.layout = "b"}, 2);
    check_count(bed, db, &(struct mfdb_filter){.layout = "B"}, 0);
    check_count(bed, db, &(struct mfdb_filter){.world = 8}, 3);
    check_count(bed, db, &(struct mfdb_filter){.world = 16}, 0);
    check_count(bed, db, &(struct mfdb_filter){.limit = 2}, 2);
    check_count(
        bed, db, &(struct mfdb_filter){.model = "mixtral", .layout = "b"}, 1);
    mfdb_close(db);
}

static void best_is_the_median_run_of_each_key(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run run, odd, even;
    struct mfdb_runs runs;
    mfdb *db = open_update(bed);

    /* Of 0.1, 0.3, 0.9 the middle one; the lucky 0.1 does not count. */
    add(bed, db, "m", "a", 1, 0.1, &run);
    add(bed, db, "m", "a", 2, 0.9, &run);
    add(bed, db, "m", "a", 3, 0.3, &odd);
    /* Of 0.15, 0.2, 0.4, 0.5 the faster of the middle two. */
    add(bed, db, "m", "b", 4, 0.5, &run);
    add(bed, db, "m", "b", 5, 0.2, &even);
    add(bed, db, "m", "b", 6, 0.4, &run);
    add(bed, db, "m", "b", 7, 0.15, &run);
    assert_int_equal(mfdb_best(db, NULL, &runs, bed->err), 0);
    assert_int_equal(runs.count, 2);
    run_assert_equal(&runs.run[0], &even);
    run_assert_equal(&runs.run[1], &odd);
    mfdb_runs_free(&runs);
    assert_int_equal(
        mfdb_best(db, &(struct mfdb_filter){.limit = 1}, &runs, bed->err), 0);
    assert_int_equal(runs.count, 1);
    run_assert_equal(&runs.run[0], &even);
    mfdb_runs_free(&runs);
    mfdb_close(db);
}

/* Twice the tokens in 1.5 times the time is the better layout. */
static void best_ranks_by_tokens_not_by_layer(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run few, many;
    struct mfdb_runs runs;
    mfdb *db = open_update(bed);

    run_make(&few, "done");
    few.layer_s = 0.2;
    few.tokens_per_s = 1000 / 0.2;
    run_save(bed, db, &few);
    run_make(&many, "done");
    snprintf(many.layout, sizeof many.layout, "more data parallel");
    many.layer_s = 0.3;
    many.tokens_per_s = 2000 / 0.3;
    run_save(bed, db, &many);
    assert_int_equal(mfdb_best(db, NULL, &runs, bed->err), 0);
    assert_int_equal(runs.count, 2);
    run_assert_equal(&runs.run[0], &many);
    mfdb_runs_free(&runs);
    mfdb_close(db);
}

static void best_counts_finished_runs_alone(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run run;
    struct mfdb_runs runs;
    char path[600];
    mfdb *db = open_update(bed);

    run_make(&run, "failed");
    run_save(bed, db, &run);
    run_make(&run, "done");
    run.layer_s = (double)NAN;
    run_save(bed, db, &run);
    run_make(&run, "running");
    spool_write(bed, &run, 1, 0, path);
    assert_int_equal(mfdb_merge(db, path, bed->err), 0);
    check_count(bed, db, NULL, 3);
    assert_int_equal(mfdb_best(db, NULL, &runs, bed->err), 0);
    assert_int_equal(runs.count, 0);
    mfdb_runs_free(&runs);
    mfdb_close(db);
}

static void best_keeps_different_work_apart(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run run[8];
    struct mfdb_runs runs;
    mfdb *db = open_update(bed);

    for (int i = 0; i < 8; i++)
        run_make(&run[i], "done");
    run[1].coupled = false;
    snprintf(run[2].rank_order, sizeof run[2].rank_order, "tp-ep-dp-pp-cp");
    run[3].seq = 8192;
    run[4].ranks = 16;
    snprintf(run[5].experts_kernel, sizeof run[5].experts_kernel, "exact");
    snprintf(run[6].cluster, sizeof run[6].cluster, "other");
    run[7].hidden = -1;
    for (int i = 0; i < 8; i++)
        run_save(bed, db, &run[i]);
    assert_int_equal(mfdb_best(db, NULL, &runs, bed->err), 0);
    assert_int_equal(runs.count, 8);
    mfdb_runs_free(&runs);
    mfdb_close(db);
}

static void save_as(struct bed *bed, mfdb *db, const char *run_id)
{
    struct mfdb_run run;

    run_make(&run, "done");
    snprintf(run.run_id, sizeof run.run_id, "%s", run_id);
    run_save(bed, db, &run);
}

static void find_wants_exactly_one(void **state)
{
    static const char a[] = "aaaaaaaa-0000-4000-8000-000000000001";
    static const char b[] = "aaaabbbb-0000-4000-8000-000000000002";
    struct bed *bed = *state;
    struct mfdb_run run;
    mfdb *db = open_update(bed);

    save_as(bed, db, a);
    save_as(bed, db, b);
    assert_int_equal(mfdb_find(db, "aaaab", &run, bed->err), 0);
    assert_string_equal(run.run_id, b);
    assert_int_equal(mfdb_find(db, "AAAAA", &run, bed->err), 0);
    assert_string_equal(run.run_id, a);
    assert_int_equal(mfdb_find(db, "aaaa", &run, bed->err), -1);
    assert_non_null(strstr(bed->err, "more than one"));
    assert_int_equal(mfdb_find(db, "b", &run, bed->err), -1);
    assert_non_null(strstr(bed->err, "no run 'b'"));
    assert_int_equal(mfdb_find(db, "", &run, bed->err), -1);
    assert_int_equal(mfdb_find(db, "%", &run, bed->err), -1);
    mfdb_close(db);
}

static void append(struct bed *bed, mfdb_spool *spool, int64_t iteration,
    const char *phase, const char *direction, double median_s, double bytes)
{
    struct mfdb_sample sample;

    sample_make(&sample, iteration);
    snprintf(sample.phase, sizeof sample.phase, "%s", phase);
    snprintf(sample.direction, sizeof sample.direction, "%s", direction);
    sample.median_s = median_s;
    sample.bytes = bytes;
    assert_int_equal(mfdb_spool_append(spool, &sample, 1, bed->err), 0);
}

static void phases_are_medians_over_iterations(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run run;
    struct mfdb_phases phases;
    mfdb_spool *spool;
    mfdb *db;

    run_make(&run, "done");
    spool = mfdb_spool_create(bed->spools, &run, bed->err);
    assert_non_null(spool);
    append(bed, spool, 0, "route", "forward", 9, (double)NAN);
    append(bed, spool, 0, "dispatch", "forward", 1, 100);
    append(bed, spool, 0, "dispatch", "backward", 5, 100);
    append(bed, spool, 1, "route", "forward", 2, (double)NAN);
    append(bed, spool, 1, "dispatch", "forward", 4, (double)NAN);
    append(bed, spool, 2, "route", "forward", 3, (double)NAN);
    append(bed, spool, 2, "dispatch", "forward", 2, 300);
    append(bed, spool, 3, "dispatch", "forward", 8, 500);
    mfdb_spool_close(spool);
    db = open_update(bed);
    assert_int_equal(mfdb_phases_of(db, run.run_id, &phases, bed->err), 0);
    assert_int_equal(phases.count, 3);
    assert_string_equal(phases.phase[0].phase, "route");
    assert_int_equal(phases.phase[0].samples, 3);
    assert_true(phases.phase[0].median_s == 3); /* of 2 3 9 */
    assert_true(isnan(phases.phase[0].bytes));
    assert_string_equal(phases.phase[1].phase, "dispatch");
    assert_string_equal(phases.phase[1].direction, "forward");
    assert_int_equal(phases.phase[1].samples, 4);
    assert_true(phases.phase[1].median_s == 3); /* of 1 2 4 8 */
    assert_true(phases.phase[1].bytes == 300);  /* of 100 300 500 */
    assert_string_equal(phases.phase[2].direction, "backward");
    assert_true(phases.phase[2].median_s == 5);
    mfdb_phases_free(&phases);
    assert_int_equal(mfdb_phases_of(db, "x", &phases, bed->err), 0);
    assert_int_equal(phases.count, 0);
    mfdb_phases_free(&phases);
    mfdb_close(db);
}

static void coefficients_are_versioned(void **state)
{
    struct bed *bed = *state;
    struct mfdb_value value[2] = {{"gemm_s", 1.25}, {"'; --", -3e-300}};
    struct mfdb_coefficients first = {.created_at = 100,
        .scope = "local A CPU",
        .error_before = 0.5,
        .error_after = (double)NAN,
        .samples = 7,
        .value = value,
        .values = 2};
    struct mfdb_coefficients second = {
        .name = "mine", .created_at = 200, .scope = "local A CPU"};
    struct mfdb_coefficients got, *sets;
    size_t count;
    mfdb *db = open_update(bed);

    assert_int_equal(mfdb_coefficients_save(db, &first, bed->err), 0);
    assert_string_equal(first.name, "fit-1");
    assert_int_equal(mfdb_coefficients_save(db, &second, bed->err), 0);
    assert_int_equal(
        mfdb_coefficients_load(db, NULL, "local A CPU", &got, bed->err), 1);
    assert_string_equal(got.name, "mine");
    mfdb_coefficients_free(&got);
    assert_int_equal(
        mfdb_coefficients_load(db, NULL, "other", &got, bed->err), 0);
    assert_int_equal(
        mfdb_coefficients_load(db, "1", "other", &got, bed->err), 1);
    assert_string_equal(got.name, "fit-1");
    assert_true(got.created_at == 100 && got.error_before == 0.5);
    assert_true(isnan(got.error_after));
    assert_int_equal(got.samples, 7);
    assert_int_equal(got.values, 2);
    assert_string_equal(got.value[0].name, "'; --");
    assert_true(got.value[0].value == -3e-300 && got.value[1].value == 1.25);
    mfdb_coefficients_free(&got);
    assert_int_equal(mfdb_coefficients_load(db, "no", NULL, &got, bed->err), 0);
    assert_int_equal(mfdb_coefficients_list(db, &sets, &count, bed->err), 0);
    assert_int_equal(count, 2);
    assert_string_equal(sets[0].name, "mine");
    assert_int_equal(sets[1].values, 2);
    for (size_t i = 0; i < count; i++)
        mfdb_coefficients_free(&sets[i]);
    free(sets);
    mfdb_close(db);
}

static void wrong_coefficients_are_refused(void **state)
{
    struct bed *bed = *state;
    struct mfdb_value value[2] = {{"a", 1}, {"a", 2}};
    struct mfdb_coefficients set = {
        .name = "mine", .value = value, .values = 1};
    mfdb *db = open_update(bed);

    assert_int_equal(mfdb_coefficients_save(db, &set, bed->err), 0);
    assert_true(set.created_at > 1.7e9); /* 2023 */
    assert_int_equal(mfdb_coefficients_save(db, &set, bed->err), -1);
    assert_non_null(strstr(bed->err, "'mine' already"));
    snprintf(set.name, sizeof set.name, "7");
    assert_int_equal(mfdb_coefficients_save(db, &set, bed->err), -1);
    set.name[0] = '\0';
    value[0].value = (double)NAN;
    assert_int_equal(mfdb_coefficients_save(db, &set, bed->err), -1);
    value[0].value = 1;
    set.values = 2; /* the same name twice: all or nothing */
    assert_int_equal(mfdb_coefficients_save(db, &set, bed->err), -1);
    mfdb_close(db);
    assert_int_equal(ask(bed->path, "SELECT count(*) FROM coefficient_set"), 1);
    assert_int_equal(ask(bed->path, "SELECT count(*) FROM coefficient"), 1);
}

static void the_cache_forgets_by_age(void **state)
{
    struct bed *bed = *state;
    double value = 0;
    mfdb *db = open_update(bed);

    assert_int_equal(mfdb_cache_get(db, "k", 1e9, &value, bed->err), 0);
    assert_int_equal(mfdb_cache_put(db, "k", 1.5, bed->err), 0);
    assert_int_equal(mfdb_cache_get(db, "k", 86400, &value, bed->err), 1);
    assert_true(value == 1.5);
    assert_int_equal(mfdb_cache_put(db, "k", 2.5, bed->err), 0);
    assert_int_equal(mfdb_cache_get(db, "k", 86400, &value, bed->err), 1);
    assert_true(value == 2.5);
    /* An hour ago, then an hour to come. */
    change(bed->path, "UPDATE machine_cache"
                      " SET measured_unix_s = measured_unix_s - 3600");
    assert_int_equal(mfdb_cache_get(db, "k", 3000, &value, bed->err), 0);
    assert_int_equal(mfdb_cache_get(db, "k", 86400, &value, bed->err), 1);
    change(bed->path, "UPDATE machine_cache"
                      " SET measured_unix_s = measured_unix_s + 7200");
    assert_int_equal(mfdb_cache_get(db, "k", 86400, &value, bed->err), 0);
    assert_int_equal(mfdb_cache_put(db, "k", (double)INFINITY, bed->err), -1);
    assert_int_equal(mfdb_cache_put(db, "", 1, bed->err), -1);
    mfdb_close(db);
}

/* Both from the tables of Mann and Whitney's paper: for 3 and 3 values U = 0
 * has probability 0.05, for 5 and 5 U <= 2 has 4 of 252; two-sided, twice that.
 * The third is of 2 and 2 values by hand: 2 4 | 1 3 has U = 1, and 2 of the 6
 * ways have U <= 1.
 */
static void the_rank_test_is_exact(void **state)
{
    static const double low[] = {1, 2, 3}, high[] = {4, 5, 6};
    static const double a[] = {1, 2, 3, 4, 7}, b[] = {5, 6, 8, 9, 10};
    static const double c[] = {2, 4}, d[] = {1, 3};
    static const double same[] = {1, 1, 1, 1};

    (void)state;
    assert_true(fabs(mfdb_rank_test(low, 3, high, 3) - 0.1) < 1e-12);
    assert_true(fabs(mfdb_rank_test(high, 3, low, 3) - 0.1) < 1e-12);
    assert_true(fabs(mfdb_rank_test(a, 5, b, 5) - 2 * 4.0 / 252) < 1e-12);
    assert_true(fabs(mfdb_rank_test(c, 2, d, 2) - 2 * 2.0 / 6) < 1e-12);
    assert_true(mfdb_rank_test(same, 4, same, 4) == 1);
    assert_true(isnan(mfdb_rank_test(low, 0, high, 3)));
}

/* The normal approximation against the exact count, where both can be had: 30
 * values a side that are exact, and 31 that are not, of one shift.
 */
static void the_rank_test_goes_over_smoothly(void **state)
{
    double a[31], b[31], exact, normal;

    (void)state;
    for (int i = 0; i < 31; i++) {
        a[i] = i;
        b[i] = i + 6.5;
    }
    exact = mfdb_rank_test(a, 30, b, 30);
    normal = mfdb_rank_test(a, 31, b, 31);
    assert_true(exact > 0.001 && exact < 0.05);
    assert_true(fabs(normal / exact - 1) < 0.25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(list_is_newest_first),
        TEST(filters_choose),
        TEST(best_is_the_median_run_of_each_key),
        TEST(best_ranks_by_tokens_not_by_layer),
        TEST(best_counts_finished_runs_alone),
        TEST(best_keeps_different_work_apart),
        TEST(find_wants_exactly_one),
        TEST(phases_are_medians_over_iterations),
        TEST(coefficients_are_versioned),
        TEST(wrong_coefficients_are_refused),
        TEST(the_cache_forgets_by_age),
        TEST(the_rank_test_is_exact),
        TEST(the_rank_test_goes_over_smoothly),
    };

    return cmocka_run_group_tests_name("query", tests, NULL, NULL);
}
