/* SPDX-License-Identifier: BSD-3-Clause
 * See help.h.
 */
#include "config.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/db/help.h"

int bed_up(void **state)
{
    const char *place = getenv("TMPDIR");
    struct bed *bed = calloc(1, sizeof *bed);

    if (!bed)
        return -1;
    snprintf(bed->folder, sizeof bed->folder, "%.200s/moefold-db.XXXXXX",
        place ? place : "/tmp");
    if (!mkdtemp(bed->folder))
        return -1;
    snprintf(bed->path, sizeof bed->path, "%s/h.db", bed->folder);
    snprintf(bed->spools, sizeof bed->spools, "%s.spool", bed->path);
    *state = bed;
    return 0;
}

static int remove_one(
    const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info;
    (void)type;
    (void)ftw;
    return remove(path);
}

int bed_down(void **state)
{
    struct bed *bed = *state;
    int rc = nftw(bed->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);

    free(bed);
    return rc;
}

void run_make_bare(struct mfdb_run *run)
{
    memset(run, 0, sizeof *run);
    assert_int_equal(mfdb_uuid(run->run_id), 0);
    run->started_at = 1000;
    snprintf(run->status, sizeof run->status, "running");
    run->ended_at = run->imbalance = run->layer_s = (double)NAN;
    run->tokens_per_s = run->predicted_s = (double)NAN;
    run->ranks = run->nodes = run->hidden = run->ffn = run->experts = -1;
    run->topk = run->seq = run->micro_batch = run->vocab = -1;
    run->iterations = -1;
}

#define TEXT(member, ...) snprintf(run->member, sizeof run->member, __VA_ARGS__)

void run_make(struct mfdb_run *run, const char *status)
{
    run_make_bare(run);
    TEXT(status, "%s", status);
    run->started_at = 1764547200.125; /* 2025-12-01T00:00:00.125Z */
    run->ended_at = 1764547260.5;
    TEXT(version, "0.1.0");
    TEXT(user, "ada");
    TEXT(command, "moefold-run plan.json --iterations 20");
    TEXT(model, "Mixtral-8x22B-v0.1");
    TEXT(cluster, "local");
    TEXT(layout, "tp2.cp1.dp4.pp1/etp1.ep8.edp1");
    TEXT(rank_order, "tp-cp-ep-dp-pp");
    run->coupled = true;
    run->ranks = 8;
    run->nodes = 2;
    TEXT(node_list, "n1,n2");
    TEXT(job_id, "4711");
    TEXT(backend, "cpu");
    TEXT(comm, "mpi");
    TEXT(experts_kernel, "blas");
    TEXT(dispatcher, "alltoall");
    TEXT(device, "A CPU");
    TEXT(libraries, "Open MPI 4.1.4");
    run->hidden = 6144;
    run->ffn = 16384;
    run->experts = 8;
    run->topk = 2;
    run->seq = 4096;
    run->micro_batch = 1;
    run->vocab = 32768;
    run->gated = true;
    run->imbalance = 0.15;
    run->iterations = 20;
    run->layer_s = 0.1; /* not a binary fraction */
    run->tokens_per_s = 40960;
    run->predicted_s = 0.0875;
    TEXT(coefficients, "fit-3");
}

static void assert_same(double a, double b)
{
    if (isnan(a) || isnan(b))
        assert_true(isnan(a) && isnan(b));
    else
        assert_memory_equal(&a, &b, sizeof a);
}

void run_assert_equal(const struct mfdb_run *a, const struct mfdb_run *b)
{
    assert_string_equal(a->run_id, b->run_id);
    assert_same(a->started_at, b->started_at);
    assert_same(a->ended_at, b->ended_at);
    assert_string_equal(a->status, b->status);
    assert_string_equal(a->version, b->version);
    assert_string_equal(a->user, b->user);
    assert_string_equal(a->command, b->command);
    assert_string_equal(a->model, b->model);
    assert_string_equal(a->cluster, b->cluster);
    assert_string_equal(a->layout, b->layout);
    assert_string_equal(a->rank_order, b->rank_order);
    assert_int_equal(a->coupled, b->coupled);
    assert_int_equal(a->ranks, b->ranks);
    assert_int_equal(a->nodes, b->nodes);
    assert_string_equal(a->node_list, b->node_list);
    assert_string_equal(a->job_id, b->job_id);
    assert_string_equal(a->backend, b->backend);
    assert_string_equal(a->comm, b->comm);
    assert_string_equal(a->experts_kernel, b->experts_kernel);
    assert_string_equal(a->dispatcher, b->dispatcher);
    assert_string_equal(a->device, b->device);
    assert_string_equal(a->libraries, b->libraries);
    assert_int_equal(a->hidden, b->hidden);
    assert_int_equal(a->ffn, b->ffn);
    assert_int_equal(a->experts, b->experts);
    assert_int_equal(a->topk, b->topk);
    assert_int_equal(a->seq, b->seq);
    assert_int_equal(a->micro_batch, b->micro_batch);
    assert_int_equal(a->vocab, b->vocab);
    assert_int_equal(a->gated, b->gated);
    assert_same(a->imbalance, b->imbalance);
    assert_int_equal(a->iterations, b->iterations);
    assert_same(a->layer_s, b->layer_s);
    assert_same(a->tokens_per_s, b->tokens_per_s);
    assert_same(a->predicted_s, b->predicted_s);
    assert_string_equal(a->coefficients, b->coefficients);
}

void sample_make(struct mfdb_sample *sample, int64_t iteration)
{
    memset(sample, 0, sizeof *sample);
    sample->iteration = iteration;
    snprintf(sample->phase, sizeof sample->phase, "dispatch");
    snprintf(sample->direction, sizeof sample->direction, "forward");
    sample->min_s = 0.25;
    sample->median_s = 0.5;
    sample->max_s = 0.75;
    sample->slowest_rank = 3;
    sample->bytes = 1048576;
    sample->flops = (double)NAN;
    sample->predicted_s = 0.4;
}

void spool_write(struct bed *bed, const struct mfdb_run *run, int samples,
    int finished, char path[600])
{
    mfdb_spool *spool = mfdb_spool_create(bed->spools, run, bed->err);
    struct mfdb_sample sample;

    if (!spool)
        fail_msg("%s", bed->err);
    for (int i = 0; i < samples; i++) {
        sample_make(&sample, i);
        assert_int_equal(mfdb_spool_append(spool, &sample, 1, bed->err), 0);
    }
    if (finished)
        assert_int_equal(mfdb_spool_finish(spool, run, bed->err), 0);
    snprintf(path, 600, "%s", mfdb_spool_path(spool));
    mfdb_spool_close(spool);
}

mfdb *open_update(struct bed *bed)
{
    mfdb *db = mfdb_open(bed->path, MFDB_UPDATE, bed->err);

    if (!db)
        fail_msg("%s", bed->err);
    return db;
}

void run_save(struct bed *bed, mfdb *db, const struct mfdb_run *run)
{
    char path[600];

    spool_write(bed, run, 0, 1, path);
    if (mfdb_merge(db, path, bed->err) != 0)
        fail_msg("%s", bed->err);
}

int64_t ask(const char *path, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *s;
    int64_t value;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_busy_timeout(db, 10000), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    value = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(db);
    return value;
}

void change(const char *path, const char *sql)
{
    sqlite3 *db;
    char *problem = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &problem) != SQLITE_OK)
        fail_msg("%s: %s", sql, problem);
    sqlite3_close(db);
}

struct bytes file_read(const char *path)
{
    struct bytes bytes = {NULL, 0};
    struct stat info;
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &info), 0);
    bytes.size = (size_t)info.st_size;
    bytes.byte = malloc(bytes.size + 1);
    assert_non_null(bytes.byte);
    assert_int_equal(fread(bytes.byte, 1, bytes.size, file), bytes.size);
    fclose(file);
    return bytes;
}

void file_write(const char *path, const void *byte, size_t size)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(byte, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

int file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

void assert_file_is(const char *path, struct bytes bytes)
{
    struct bytes now = file_read(path);

    assert_int_equal(now.size, bytes.size);
    assert_memory_equal(now.byte, bytes.byte, now.size);
    free(now.byte);
}
