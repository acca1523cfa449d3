/* SPDX-License-Identifier: BSD-3-Clause
 * Batch scripts, byte for byte (tests/golden/launch-*.sh; set
 * MOEFOLD_UPDATE_GOLDEN=1 to write them anew) and with hostile values.
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
#include <unistd.h>

#include "launcher/file.h"
#include "launcher/process.h"
#include "launcher/script.h"
#include "tests/unit/launcher/fixture.h"

/* The job's texts replaced by ones that are the same on every machine. */
static void make(const struct mf_plan *plan, struct mfl_wish wish,
    const char *plan_file, struct mfl_job *job)
{
    struct mf_error err = {0};

    /* Not that of whatever libslurm is here. */
    wish.slurm_version = "22.05";
    wish.plan_file = "/proc/self/exe";
    wish.db = "/var/lib/moefold/history.db";
    if (mfl_job_make(plan, &wish, job, &err) < 0)
        fail_msg("%s", err.text);
    free(job->plan_file);
    free(job->moefold);
    free(job->runner);
    job->plan_file = strdup(plan_file);
    job->moefold = strdup("/opt/moefold/bin/moefold");
    job->runner = strdup("/opt/moefold/bin/moefold-run");
}

static char *script_of(
    const char *nodes, struct mfl_wish wish, const char *plan_file)
{
    struct mf_error err = {0};
    struct mf_plan plan;
    struct mfl_job job;
    char *text;

    fixture_plan(nodes, &plan);
    make(&plan, wish, plan_file, &job);
    text = mfl_script_text(&job, &err);
    if (!text)
        fail_msg("%s", err.text);
    mfl_job_free(&job);
    mf_plan_free(&plan);
    return text;
}

static void is_golden(const char *name, const char *text)
{
    const char *source = getenv("MOEFOLD_SRCDIR");
    struct mf_error err = {0};
    char file[4096], *want;

    snprintf(
        file, sizeof file, "%s/tests/golden/%s", source ? source : ".", name);
    if (getenv("MOEFOLD_UPDATE_GOLDEN") &&
        mfl_file_write(file, text, 0666, true, &err) < 0)
        fail_msg("%s", err.text);
    want = fixture_read(file);
    assert_string_equal(text, want);
    free(want);
}

static int bash(const char *option, const char *script, char **output)
{
    char *argv[] = {"/bin/bash", (char *)option, (char *)script, NULL};
    char *env[] = {"PATH=/usr/bin:/bin", NULL};
    char file[] = "/tmp/moefold-script.XXXXXX";
    struct mf_error err = {0};
    int status, fd = mkstemp(file);

    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(mfl_file_write(file, script, 0700, true, &err), 0);
    argv[2] = file;
    if (mfl_process_run(argv, env, output, &status, &err) < 0)
        fail_msg("%s", err.text);
    unlink(file);
    return status;
}

static void test_block(void **state)
{
    char *text = script_of("n1,n2,n3,n4",
        (struct mfl_wish){.command_line = "moefold launch plan.json"},
        "/home/ada/plan.json");

    (void)state;
    is_golden("launch-block.sh", text);
    assert_int_equal(bash("-n", text, NULL), 0);
    free(text);
}

static void test_hostfile_and_options(void **state)
{
    char *text = script_of("n1,n3,n2,n4",
        (struct mfl_wish){.picks = "1-2,coupled",
            .name = "fold it",
            .partition = "gpu",
            .account = "a \"b\"",
            .qos = "high",
            .time = "1-12",
            .iterations = 50,
            .cpus_per_task = 4,
            .log = "logs/%x_%j.out",
            .command_line = "moefold launch plan.json --picks 1-2,coupled"},
        "/home/ada/it's a plan.json");

    (void)state;
    is_golden("launch-hostfile.sh", text);
    assert_int_equal(bash("-n", text, NULL), 0);
    free(text);
}

/* The script with srun replaced by a function that prints its arguments, one
 * a line: hostile paths arrive whole and nothing in them is run.
 */
static void test_hostile_values(void **state)
{
    static const char hostile[] =
        "/tmp/$(touch /tmp/moefold-was-run) `id` 'q' \"d\" \\ ;#.json";
    char *text = script_of("n1,n2,n3,n4",
        (struct mfl_wish){.command_line = "moefold launch x\necho hurt\r"},
        hostile);
    char *script = NULL, *output = NULL, *place;

    (void)state;
    assert_null(strstr(text, "\necho hurt"));
    assert_int_equal(bash("-n", text, NULL), 0);
    place = strchr(text, '\n');
    assert_non_null(place);
    assert_true(
        asprintf(&script, "%.*s\nsrun() { printf '<%%s>\\n' \"$@\"; }%s",
            (int)(place - text), text, place) > 0);
    assert_int_equal(bash("-e", script, &output), 0);
    place = NULL;
    assert_true(asprintf(&place, "\n<%s>\n", hostile) > 0);
    assert_non_null(strstr(output, place));
    assert_non_null(strstr(output, "\n<--pick>\n<1>\n"));
    assert_int_not_equal(access("/tmp/moefold-was-run", F_OK), 0);
    free(place);
    free(output);
    free(script);
    free(text);
}

static void test_no_isolation_of_gpus(void **state)
{
    char *text =
        script_of("n1,n2,n3,n4", (struct mfl_wish){0}, "/home/ada/plan.json");

    (void)state;
    assert_null(strstr(text, "gpus-per-task"));
    assert_null(strstr(text, "gpu-bind"));
    assert_non_null(strstr(text, "\nunset SLURM_HOSTFILE MOEFOLD_MAP\n"));
    free(text);
}

static void test_a_login_node_without_the_runner(void **state)
{
    struct mf_error err = {0};
    struct mf_plan plan;
    struct mfl_job job;
    char *text;

    (void)state;
    fixture_plan("n1,n2,n3,n4", &plan);
    make(&plan, (struct mfl_wish){0}, "/home/ada/plan.json", &job);
    free(job.runner);
    job.runner = NULL;
    text = mfl_script_text(&job, &err);
    assert_non_null(strstr(text, "\nrunner='moefold-run'\n"));
    free(text);
    mfl_job_free(&job);
    mf_plan_free(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block),
        cmocka_unit_test(test_hostfile_and_options),
        cmocka_unit_test(test_hostile_values),
        cmocka_unit_test(test_no_isolation_of_gpus),
        cmocka_unit_test(test_a_login_node_without_the_runner),
    };

    return cmocka_run_group_tests_name("script", tests, NULL, NULL);
}
