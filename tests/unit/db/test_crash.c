/* SPDX-License-Identifier: BSD-3-Clause
 * Many processes at once, and processes killed at any moment: what was told
 * to be merged is there, whole and once.
 */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/db/help.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_up, bed_down)
#define SAMPLES 20

/* Without cmocka, for child processes; 0 or the place that failed. */
static int work(struct bed *bed, mfdb *db, char run_id[MFDB_UUID_TEXT])
{
    struct mfdb_run run = {.started_at = 1000, .status = "running"};
    struct mfdb_sample sample[SAMPLES];
    mfdb_spool *spool;
    char path[600];

    if (mfdb_uuid(run.run_id) != 0)
        return 1;
    run.ranks = run.nodes = 1;
    spool = mfdb_spool_create(bed->spools, &run, bed->err);
    if (!spool)
        return 2;
    for (int i = 0; i < SAMPLES; i++)
        sample_make(&sample[i], i);
    for (int i = 0; i < SAMPLES; i += 4)
        if (mfdb_spool_append(spool, &sample[i], 4, bed->err) != 0)
            return 3;
    snprintf(run.status, sizeof run.status, "done");
    if (mfdb_spool_finish(spool, &run, bed->err) != 0)
        return 4;
    snprintf(path, sizeof path, "%s", mfdb_spool_path(spool));
    mfdb_spool_close(spool);
    memcpy(run_id, run.run_id, MFDB_UUID_TEXT);
    return mfdb_merge(db, path, bed->err) == 0 ? 0 : 5;
}

static int work_often(struct bed *bed, int runs)
{
    char run_id[MFDB_UUID_TEXT];
    mfdb *db = mfdb_open(bed->path, MFDB_UPDATE, bed->err);
    int rc = db ? 0 : 6;

    for (int i = 0; rc == 0 && i < runs; i++)
        rc = work(bed, db, run_id);
    if (rc != 0)
        fprintf(stderr, "# %d: %s\n", rc, bed->err);
    mfdb_close(db);
    return rc;
}

static void eight_processes_lose_nothing(void **state)
{
    enum { PROCESSES = 8, RUNS = 5 };
    struct bed *bed = *state;
    pid_t child[PROCESSES];
    int status;

    for (int i = 0; i < PROCESSES; i++) {
        child[i] = fork();
        if (child[i] == 0)
            _exit(work_often(bed, RUNS));
        assert_true(child[i] > 0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    assert_int_equal(
        ask(bed->path, "SELECT count(*) FROM run WHERE status = 'done'"),
        PROCESSES * RUNS);
    assert_int_equal(ask(bed->path, "SELECT count(DISTINCT run_id) FROM run"),
        PROCESSES * RUNS);
    assert_int_equal(ask(bed->path, "SELECT count(*) FROM sample"),
        PROCESSES * RUNS * SAMPLES);
}

static void eight_processes_merge_the_same_spools(void **state)
{
    enum { PROCESSES = 8, SPOOLS = 12 };
    struct bed *bed = *state;
    struct mfdb_run run;
    char path[600];
    pid_t child[PROCESSES];
    int status;

    for (int i = 0; i < SPOOLS; i++) {
        run_make(&run, "done");
        spool_write(bed, &run, SAMPLES, 1, path);
    }
    for (int i = 0; i < PROCESSES; i++) {
        child[i] = fork();
        if (child[i] == 0)
            _exit(work_often(bed, 0));
        assert_true(child[i] > 0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(ask(bed->path, "SELECT count(*) FROM run"), SPOOLS);
    assert_int_equal(
        ask(bed->path, "SELECT count(*) FROM sample"), SPOOLS * SAMPLES);
    assert_int_equal(rmdir(bed->spools), 0); /* nothing left in it */
}

/* Work until killed, telling each merged run through FD. */
static void work_until_killed(struct bed *bed, int fd)
{
    char run_id[MFDB_UUID_TEXT];
    mfdb *db = mfdb_open(bed->path, MFDB_UPDATE, bed->err);

    while (db && work(bed, db, run_id) == 0)
        if (write(fd, run_id, sizeof run_id) != (ssize_t)sizeof run_id)
            break;
    _exit(1);
}

#define LOST_RUNS "SELECT count(*) FROM run WHERE status = 'lost'"

static int64_t kill_after(struct bed *bed, long milliseconds, int *told)
{
    const struct timespec wait = {.tv_nsec = milliseconds * 1000000};
    char run_id[MFDB_UUID_TEXT], sql[200];
    int ends[2], status;
    int64_t there = 0, lost = ask(bed->path, LOST_RUNS);
    pid_t child;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    child = fork();
    if (child == 0)
        work_until_killed(bed, ends[1]);
    assert_true(child > 0);
    close(ends[1]);
    nanosleep(&wait, NULL);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status)); /* it did not fail by itself */
    /* All of a spool or nothing: no run is half there before its leftover is
     * merged again.
     */
    assert_int_equal(ask(bed->path, LOST_RUNS), lost);
    mfdb_close(open_update(bed));
    while (read(ends[0], run_id, sizeof run_id) == (ssize_t)sizeof run_id) {
        snprintf(sql, sizeof sql,
            "SELECT count(*) FROM run WHERE status = 'done'"
            " AND run_id = '%s'",
            run_id);
        there += ask(bed->path, sql);
        (*told)++;
    }
    close(ends[0]);
    return there;
}

static void killed_processes_leave_whole_runs(void **state)
{
    enum { ROUNDS = 20 };
    struct bed *bed = *state;
    int told = 0;
    int64_t there = 0;

    mfdb_close(open_update(bed));
    for (int round = 0; round < ROUNDS; round++) {
        there += kill_after(bed, 3 + 7 * (round % 11), &told);
        assert_int_equal(there, told);
        assert_int_equal(ask(bed->path, "SELECT count(*) FROM"
                                        " pragma_integrity_check"
                                        " WHERE integrity_check = 'ok'"),
            1);
        assert_int_equal(ask(bed->path, "SELECT count(*) FROM"
                                        " pragma_foreign_key_check"),
            0);
    }
    assert_true(told > 0);
    /* One run at most a kill was merged or found without being told. */
    assert_in_range(
        ask(bed->path, "SELECT count(*) FROM run"), there, there + ROUNDS);
    assert_int_equal(
        ask(bed->path, "SELECT count(*) FROM run WHERE status = 'done' AND"
                       " (SELECT count(*) FROM sample WHERE run = run.id)"
                       " <> 20"),
        0);
    assert_int_equal(
        ask(bed->path, "SELECT count(*) FROM run WHERE status = 'lost' AND"
                       " (SELECT count(*) FROM sample WHERE run = run.id)"
                       " % 4 <> 0"),
        0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(eight_processes_lose_nothing),
        TEST(eight_processes_merge_the_same_spools),
        TEST(killed_processes_leave_whole_runs),
    };

    return cmocka_run_group_tests_name("crash", tests, NULL, NULL);
}
