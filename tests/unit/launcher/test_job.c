/* SPDX-License-Identifier: BSD-3-Clause
 * Jobs: times, shapes, picks, and wishes that are refused.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/file.h"
#include "launcher/job.h"
#include "tests/unit/launcher/fixture.h"

static void lasts(const char *text, int64_t minutes, const char *shown)
{
    struct mf_error err = {0};
    char back[32];
    int64_t got;

    if (mfl_job_parse_time(text, &got, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    assert_int_equal(got, minutes);
    mfl_job_format_time(got, back, sizeof back);
    assert_string_equal(back, shown);
}

/* The forms of sbatch(1): minutes, minutes:seconds, hours:minutes:seconds,
 * days-hours, days-hours:minutes, days-hours:minutes:seconds.
 */
static void test_times(void **state)
{
    static const char *const bad[] = {"", "0", "1:2:3:4", "-5", "1-", "-", "5m",
        " 5", "1::2", "99999999999", "1-1-1", "00:00:00", "1e3", "2k"};
    struct mf_error err = {0};
    int64_t minutes;

    (void)state;
    lasts("90", 90, "01:30:00");
    lasts("5:30", 6, "00:06:00");
    lasts("02:00:00", 120, "02:00:00");
    lasts("1-6", 30 * 60, "1-06:00:00");
    lasts("1-06:15", 30 * 60 + 15, "1-06:15:00");
    lasts("2-00:00:01", 2880 + 1, "2-00:01:00");
    lasts("unlimited", MFL_TIME_UNLIMITED, "UNLIMITED");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (mfl_job_parse_time(bad[i], &minutes, &err) == 0)
            fail_msg("'%s' is taken for a time", bad[i]);
        assert_int_equal(err.status, MF_INVALID);
    }
}

static void make(
    const struct mf_plan *plan, struct mfl_wish wish, struct mfl_job *job)
{
    struct mf_error err = {0};

    wish.plan_file = "/proc/self/exe";
    if (mfl_job_make(plan, &wish, job, &err) < 0)
        fail_msg("%s", err.text);
}

static void test_shape(void **state)
{
    struct mfl_wish wish = {0};
    struct mf_plan plan;
    struct mfl_job job;

    (void)state;
    fixture_plan("n1,n2,n3,n4", &plan);
    make(&plan, wish, &job);
    assert_string_equal(job.name, "tiny-moe");
    assert_int_equal(job.nodes, 4);
    assert_int_equal(job.ranks_per_node, 8);
    assert_int_equal(job.gpus_per_node, 8);
    assert_true(job.whole_nodes);
    assert_false(job.needs_hostfile);
    /* 23 iterations of 10 ms and a minute's start: under the least, 10. */
    assert_int_equal(job.time_minutes, 10);
    mfl_job_free(&job);
    mf_plan_free(&plan);
}

/* 10 ms a layer, 100,000 + 3 iterations, threefold, a minute to start:
 * 60 + 3 * 1000.03 s = 3060.09 s, 52 minutes when rounded up.
 */
static void test_time_from_the_prediction(void **state)
{
    struct mfl_wish wish = {.iterations = 100000};
    struct mf_plan plan;
    struct mfl_job job;

    (void)state;
    fixture_plan("n1,n2,n3,n4", &plan);
    make(&plan, wish, &job);
    assert_int_equal(job.time_minutes, 52);
    mfl_job_free(&job);
    wish.time = "7";
    make(&plan, wish, &job);
    assert_int_equal(job.time_minutes, 7);
    mfl_job_free(&job);
    mf_plan_free(&plan);
}

static bool needs_hostfile(const char *nodes, int64_t gpus_of_last)
{
    struct mfl_wish wish = {0};
    struct mf_plan plan;
    struct mfl_job job;
    bool needs;

    fixture_plan(nodes, &plan);
    if (gpus_of_last)
        plan.cluster.node[plan.cluster.nodes - 1].gpus = gpus_of_last;
    make(&plan, wish, &job);
    needs = job.needs_hostfile;
    mfl_job_free(&job);
    mf_plan_free(&plan);
    return needs;
}

static void test_hostfile_when_block_order_is_not_the_plans(void **state)
{
    (void)state;
    assert_false(needs_hostfile("n1,n2,n3,n4", 0));
    assert_false(needs_hostfile("n2,n9,n10,n11", 0));
    assert_true(needs_hostfile("n1,n3,n2,n4", 0));
    assert_true(needs_hostfile("n10,n9,n11,n12", 0));
    assert_true(needs_hostfile("n1,n2,n3,n4", 16));
}

static void test_cpu_ranks_ask_for_no_gpu(void **state)
{
    struct mfl_wish wish = {.cpus_per_task = 2};
    struct mf_plan plan;
    struct mfl_job job;

    (void)state;
    fixture_cpu_plan(&plan);
    make(&plan, wish, &job);
    assert_int_equal(job.gpus_per_node, 0);
    assert_int_equal(job.nodes, 1);
    assert_int_equal(job.ranks_per_node, 8);
    assert_false(job.whole_nodes);
    /* Nothing is predicted in that plan. */
    assert_int_equal(job.time_minutes, 60);
    mfl_job_free(&job);
    mf_plan_free(&plan);
}

static void refused(struct mfl_wish wish, const char *why)
{
    struct mf_error err = {0};
    struct mf_plan plan;
    struct mfl_job job;

    wish.plan_file = wish.plan_file ? wish.plan_file : "/proc/self/exe";
    fixture_plan("n1,n2,n3,n4", &plan);
    assert_int_equal(mfl_job_make(&plan, &wish, &job, &err), -1);
    assert_int_equal(err.status, MF_INVALID);
    if (!strstr(err.text, why))
        fail_msg("refused with: %s", err.text);
    mf_plan_free(&plan);
}

static void test_refusals(void **state)
{
    (void)state;
    refused((struct mfl_wish){.name = "a/b"}, "--job-name");
    refused((struct mfl_wish){.name = "a\nb"}, "--job-name");
    refused((struct mfl_wish){.name = ""}, "--job-name");
    refused((struct mfl_wish){.partition = "a\n#SBATCH -A x"}, "--partition");
    refused((struct mfl_wish){.account = "\x1b[0m"}, "--account");
    refused((struct mfl_wish){.qos = ""}, "--qos");
    refused((struct mfl_wish){.log = "a\tb"}, "--log");
    refused((struct mfl_wish){.time = "soon"}, "--time");
    refused((struct mfl_wish){.picks = "4"}, "pick");
    refused((struct mfl_wish){.picks = "2-1"}, "pick");
    refused((struct mfl_wish){.picks = "1,,2"}, "picks");
    refused((struct mfl_wish){.picks = ""}, "picks");
    refused((struct mfl_wish){.picks = "0"}, "pick");
    refused((struct mfl_wish){.plan_file = "/nonexistent/plan"}, "plan");
}

static void picks_are(const char *text, const char *want)
{
    struct mf_error err = {0};
    struct mfl_picks picks;
    struct mf_plan plan;
    char got[64] = "";
    size_t used = 0;

    fixture_plan("n1,n2,n3,n4", &plan);
    if (mfl_picks_parse(text, &plan, &picks, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    for (size_t i = 0; i < picks.count; i++)
        used += (size_t)snprintf(
            got + used, sizeof got - used, " %zu", picks.pick[i]);
    assert_string_equal(got, want);
    mfl_picks_free(&picks);
    mf_plan_free(&plan);
}

static void test_picks(void **state)
{
    struct mf_error err = {0};
    struct mfl_picks picks;
    struct mf_plan plan;

    (void)state;
    picks_are("1", " 1");
    picks_are("2-3", " 2 3");
    picks_are("3,1,3,1-2", " 3 1 2");
    picks_are("1-2,coupled", " 1 2 3");
    picks_are("coupled,all", " 3 1 2");
    fixture_cpu_plan(&plan);
    assert_int_equal(mfl_picks_parse("coupled", &plan, &picks, &err), -1);
    assert_int_equal(err.status, MF_INVALID);
    mf_plan_free(&plan);
}

static void test_plan_larger_than_its_cluster(void **state)
{
    struct mfl_wish wish = {.plan_file = "/proc/self/exe"};
    struct mf_error err = {0};
    struct mf_plan plan;
    struct mfl_job job;

    (void)state;
    fixture_plan("n1,n2,n3,n4", &plan);
    plan.cluster.node[2].state = MF_NODE_DOWN;
    assert_int_equal(mfl_job_make(&plan, &wish, &job, &err), -1);
    assert_int_equal(err.status, MF_NO);
    mf_plan_free(&plan);
}

static void test_files_are_not_overwritten(void **state)
{
    char folder[] = "/tmp/moefold-file.XXXXXX", file[64];
    struct mf_error err = {0};
    struct stat there;
    char *text;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/script", folder);
    umask(022);
    assert_int_equal(mfl_file_write(file, "one", 0777, false, &err), 0);
    assert_int_equal(mfl_file_write(file, "two", 0777, false, &err), -1);
    assert_int_equal(err.status, MF_INVALID);
    assert_non_null(strstr(err.text, "--force"));
    text = fixture_read(file);
    assert_string_equal(text, "one");
    free(text);
    assert_int_equal(mfl_file_write(file, "two", 0777, true, &err), 0);
    text = fixture_read(file);
    assert_string_equal(text, "two");
    free(text);
    assert_int_equal(stat(file, &there), 0);
    assert_int_equal(there.st_mode & 0777, 0755);
    assert_int_equal(mfl_file_write("/dev/null", "x", 0666, true, &err), -1);
    assert_int_equal(err.status, MF_INVALID);
    assert_int_equal(
        mfl_file_write("/nonexistent/x", "x", 0666, true, &err), -1);
    assert_int_equal(err.status, MF_FAILED);
    unlink(file);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_shape),
        cmocka_unit_test(test_time_from_the_prediction),
        cmocka_unit_test(test_hostfile_when_block_order_is_not_the_plans),
        cmocka_unit_test(test_cpu_ranks_ask_for_no_gpu),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_picks),
        cmocka_unit_test(test_plan_larger_than_its_cluster),
        cmocka_unit_test(test_files_are_not_overwritten),
    };

    return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
