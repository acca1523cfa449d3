/* SPDX-License-Identifier: BSD-3-Clause
 * Merging spools: all of one in one transaction, then the file goes.
 *
 * The lock on the spool is its writer's while it lives, and then that of the
 * one process that merges it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "db/internal.h"

enum outcome {
    MERGE_BAD = -2, /* not a spool that can be read */
    MERGE_FAILED = -1,
    MERGE_OK,
    MERGE_LIVE,
    MERGE_GONE,
};

static sqlite3_stmt *prepare_run(mfdb *db, char *err)
{
    sqlite3_str *sql = sqlite3_str_new(db->sql);

    sqlite3_str_appendall(sql, "INSERT INTO run (");
    mfdb_record_columns(&mfdb_run_record, sql, false);
    sqlite3_str_appendall(sql, ") VALUES (");
    for (size_t i = 0; i < mfdb_run_record.fields; i++)
        sqlite3_str_appendall(sql, i ? ", ?" : "?");
    sqlite3_str_appendall(sql, ") ON CONFLICT (run_id) DO UPDATE SET ");
    mfdb_record_columns(&mfdb_run_record, sql, true);
    /* An older, cut copy of a spool never undoes what a whole one told. */
    sqlite3_str_appendall(sql, " WHERE excluded.status <> 'lost' OR "
                               "run.status IN ('running', 'lost')");
    return mfdb_sql_prepare_str(db, sql, err);
}

static sqlite3_stmt *prepare_sample(mfdb *db, char *err)
{
    sqlite3_str *sql = sqlite3_str_new(db->sql);

    sqlite3_str_appendall(sql, "INSERT INTO sample (run, sequence, ");
    mfdb_record_columns(&mfdb_sample_record, sql, false);
    sqlite3_str_appendall(sql, ") VALUES (?, ?");
    for (size_t i = 0; i < mfdb_sample_record.fields; i++)
        sqlite3_str_appendall(sql, ", ?");
    sqlite3_str_appendall(sql, ") ON CONFLICT (run, sequence) DO NOTHING");
    return mfdb_sql_prepare_str(db, sql, err);
}

static int save_run(mfdb *db, const struct mfdb_run *run, char *err)
{
    sqlite3_stmt *statement = prepare_run(db, err);
    int rc = -1;

    if (!statement)
        return -1;
    if (mfdb_record_bind(&mfdb_run_record, run, statement, 1) < 0)
        mfdb_sql_fail(db, err);
    else
        rc = mfdb_sql_step(db, statement, err);
    sqlite3_finalize(statement);
    return rc;
}

/* 1 and *ID, 0 no such run, -1. */
static int find_run(mfdb *db, const char *run_id, int64_t *id, char *err)
{
    sqlite3_stmt *statement =
        mfdb_sql_prepare(db, "SELECT id FROM run WHERE run_id = ?", err);
    int rc = -1;

    if (!statement)
        return -1;
    if (sqlite3_bind_text(statement, 1, run_id, -1, SQLITE_STATIC) != SQLITE_OK)
        mfdb_sql_fail(db, err);
    else
        rc = mfdb_sql_step(db, statement, err);
    if (rc > 0)
        *id = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return rc;
}

static int save_sample(mfdb *db, sqlite3_stmt *statement, int64_t run,
    int64_t sequence, const struct mfdb_sample *sample, char *err)
{
    if (sqlite3_bind_int64(statement, 1, run) != SQLITE_OK ||
        sqlite3_bind_int64(statement, 2, sequence) != SQLITE_OK ||
        mfdb_record_bind(&mfdb_sample_record, sample, statement, 3) < 0)
        return mfdb_sql_fail(db, err);
    if (mfdb_sql_step(db, statement, err) < 0)
        return -1;
    return sqlite3_reset(statement) == SQLITE_OK ? 0 : mfdb_sql_fail(db, err);
}

int mfdb_put_run(
    mfdb *db, const struct mfdb_run *run, char err[MFDB_ERROR_TEXT])
{
    if (mfdb_record_check(&mfdb_run_record, run, err))
        return -1;
    if (!mfdb_uuid_ok(run->run_id))
        return mfdb_error(err, "run: run_id '%.40s' is none", run->run_id);
    return save_run(db, run, err);
}

int mfdb_put_sample(mfdb *db, const char *run_id, int64_t sequence,
    const struct mfdb_sample *sample, char err[MFDB_ERROR_TEXT])
{
    sqlite3_stmt *statement;
    int64_t id;
    int rc;

    if (mfdb_record_check(&mfdb_sample_record, sample, err))
        return -1;
    if (sequence < 0)
        return mfdb_error(
            err, "sample: sequence can't be %lld", (long long)sequence);
    rc = find_run(db, run_id, &id, err);
    if (rc == 0)
        return mfdb_error(err, "sample: no run '%.40s'", run_id);
    statement = rc > 0 ? prepare_sample(db, err) : NULL;
    rc = statement ? save_sample(db, statement, id, sequence, sample, err) : -1;
    sqlite3_finalize(statement);
    return rc;
}

/* The samples, then the last record if it is there; what comes after the
 * first damage is left out.
 */
static int save_rest(mfdb *db, struct mfdb_reader *reader, int64_t id,
    const char *run_id, char *err)
{
    sqlite3_stmt *statement = prepare_sample(db, err);
    struct mfdb_sample sample;
    struct mfdb_run last;
    int64_t sequence = 0;
    int rc = statement ? 1 : -1;

    while (rc > 0 && (rc = mfdb_reader_next(reader, err)) > 0) {
        if (reader->kind != MFDB_SPOOL_SAMPLE)
            break;
        if (mfdb_spool_decode(&mfdb_sample_record, reader->payload,
                reader->size, &sample) < 0)
            break;
        if (save_sample(db, statement, id, sequence++, &sample, err) < 0)
            rc = -1;
    }
    if (rc > 0 && reader->kind == MFDB_SPOOL_END &&
        mfdb_spool_decode(
            &mfdb_run_record, reader->payload, reader->size, &last) == 0 &&
        strcmp(last.run_id, run_id) == 0)
        rc = save_run(db, &last, err);
    sqlite3_finalize(statement);
    return rc < 0 ? -1 : 0;
}

static int read_run(struct mfdb_reader *reader, struct mfdb_run *run, char *err)
{
    int rc = mfdb_reader_next(reader, err);

    if (rc < 0)
        return -1;
    if (rc == 0 || reader->kind != MFDB_SPOOL_RUN ||
        mfdb_spool_decode(
            &mfdb_run_record, reader->payload, reader->size, run) < 0 ||
        !mfdb_uuid_ok(run->run_id))
        return mfdb_error(
            err, "%s: is damaged at its first record", reader->path);
    return 0;
}

static int save_spool(
    mfdb *db, struct mfdb_reader *reader, struct mfdb_run *run, char *err)
{
    int64_t id = 0;
    int rc;

    if (mfdb_sql_exec(db, "BEGIN IMMEDIATE", err) < 0)
        return -1;
    /* What it stays if no last record comes. */
    snprintf(run->status, sizeof run->status, "lost");
    run->ended_at = run->layer_s = run->tokens_per_s = (double)NAN;
    if (save_run(db, run, err) < 0)
        goto fail;
    rc = find_run(db, run->run_id, &id, err);
    if (rc == 0)
        mfdb_error(err, "%s: run %s vanished", db->path, run->run_id);
    if (rc <= 0 || save_rest(db, reader, id, run->run_id, err) < 0 ||
        mfdb_sql_exec(db, "COMMIT", err) < 0)
        goto fail;
    return 0;
fail:
    mfdb_sql_rollback(db);
    return -1;
}

static enum outcome merge_reader(
    mfdb *db, struct mfdb_reader *reader, int fd, const char *path, char *err)
{
    struct mfdb_run run;

    if (mfdb_reader_open(reader, fd, path, err) < 0 ||
        read_run(reader, &run, err) < 0)
        return MERGE_BAD;
    if (save_spool(db, reader, &run, err) < 0)
        return MERGE_FAILED;
    /* Still under the lock, so that nobody merges it in vain. */
    if (unlink(path) != 0 && errno != ENOENT)
        mfdb_error(db->warning, "%s: is merged but can't be removed: %s", path,
            strerror(errno));
    return MERGE_OK;
}

static enum outcome merge_locked(mfdb *db, int fd, const char *path, char *err)
{
    struct mfdb_reader *reader = calloc(1, sizeof *reader);
    enum outcome outcome = MERGE_FAILED;

    if (reader)
        outcome = merge_reader(db, reader, fd, path, err);
    else
        mfdb_error(err, "out of memory");
    if (!reader || !reader->file)
        close(fd);
    if (reader)
        mfdb_reader_close(reader);
    free(reader);
    return outcome;
}

static int open_spool(const char *path)
{
    const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = open(path, O_RDWR | flags);

    /* Some network file systems lock only what is open for writing. */
    if (fd < 0 && (errno == EACCES || errno == EROFS || errno == EPERM))
        fd = open(path, O_RDONLY | flags);
    return fd;
}

static enum outcome try_merge(mfdb *db, const char *path, char *err)
{
    int fd = open_spool(path);
    struct stat info;

    if (fd < 0 && errno == ENOENT)
        return MERGE_GONE;
    if (fd < 0 || fstat(fd, &info) != 0) {
        mfdb_error(err, "%s: can't be opened: %s", path, strerror(errno));
        goto fail;
    }
    if (!S_ISREG(info.st_mode)) {
        mfdb_error(err, "%s: is not a file", path);
        goto fail;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) {
            close(fd);
            return MERGE_LIVE;
        }
        mfdb_error(err, "%s: can't be locked: %s", path, strerror(errno));
        goto fail;
    }
    if (fstat(fd, &info) == 0 && info.st_nlink == 0) {
        close(fd);
        return MERGE_GONE;
    }
    return merge_locked(db, fd, path, err);
fail:
    if (fd >= 0)
        close(fd);
    return MERGE_BAD;
}

/* Does the spool at PATH have its last record? */
static bool is_finished(const char *path)
{
    struct mfdb_reader *reader = calloc(1, sizeof *reader);
    int fd = reader ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    bool finished = false;

    if (fd >= 0 && mfdb_reader_open(reader, fd, path, NULL) == 0)
        while (!finished && mfdb_reader_next(reader, NULL) > 0)
            finished = reader->kind == MFDB_SPOOL_END;
    if (fd >= 0 && !reader->file)
        close(fd);
    if (reader)
        mfdb_reader_close(reader);
    free(reader);
    return finished;
}

/* A spool that is gone was merged by another process if its run is here. */
static int check_gone(mfdb *db, const char *path, char *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char run_id[MFDB_UUID_TEXT];
    int64_t id;
    int rc = 0;

    snprintf(run_id, sizeof run_id, "%s", name);
    if (mfdb_uuid_ok(run_id) &&
        strcmp(name + MFDB_UUID_TEXT - 1, ".spool") == 0)
        rc = find_run(db, run_id, &id, err);
    if (rc == 0) {
        mfdb_error(err, "%s: no such file", path);
        return MERGE_BAD;
    }
    return rc < 0 ? -1 : 0;
}

int mfdb_merge(mfdb *db, const char *spool, char err[MFDB_ERROR_TEXT])
{
    const struct timespec pause = {.tv_nsec = 20 * 1000000};
    enum outcome outcome = try_merge(db, spool, err);

    /* A finished spool under a lock is being merged or closed right now. */
    for (int waited_ms = 0; outcome == MERGE_LIVE && waited_ms < MFDB_WAIT_MS &&
                            is_finished(spool);
         waited_ms += 20) {
        nanosleep(&pause, NULL);
        outcome = try_merge(db, spool, err);
    }
    if (outcome == MERGE_LIVE && faccessat(AT_FDCWD, spool, F_OK, 0) != 0)
        outcome = MERGE_GONE;
    if (outcome == MERGE_LIVE)
        return mfdb_error(err, "%s: its run is still writing", spool);
    if (outcome == MERGE_GONE)
        return check_gone(db, spool, err);
    return outcome;
}

static int is_spool_name(const struct dirent *entry)
{
    char run_id[MFDB_UUID_TEXT];

    if (strlen(entry->d_name) != MFDB_UUID_TEXT - 1 + strlen(".spool"))
        return 0;
    snprintf(run_id, sizeof run_id, "%.36s", entry->d_name);
    return mfdb_uuid_ok(run_id) &&
           strcmp(entry->d_name + MFDB_UUID_TEXT - 1, ".spool") == 0;
}

static void merge_leftover(mfdb *db, const char *folder, const char *name)
{
    size_t room = strlen(folder) + strlen(name) + 2;
    char *path = malloc(room), err[MFDB_ERROR_TEXT] = "";

    if (!path) {
        mfdb_error(db->warning, "out of memory");
        return;
    }
    snprintf(path, room, "%s/%s", folder, name);
    if (try_merge(db, path, err) < 0 && !db->warning[0])
        memcpy(db->warning, err, sizeof err);
    free(path);
}

void mfdb_merge_leftovers(mfdb *db)
{
    char *folder = mfdb_spool_folder(db->path);
    struct dirent **entry = NULL;
    int count = folder ? scandir(folder, &entry, is_spool_name, alphasort) : -1;

    if (!folder)
        mfdb_error(db->warning, "out of memory");
    else if (count < 0 && errno != ENOENT)
        mfdb_error(
            db->warning, "%s: can't be read: %s", folder, strerror(errno));
    for (int i = 0; i < count; i++) {
        merge_leftover(db, folder, entry[i]->d_name);
        free(entry[i]);
    }
    free(entry);
    free(folder);
}
