/* SPDX-License-Identifier: BSD-3-Clause
 * Writing a run's spool: whole records in one write, under a lock that ends
 * with the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "db/internal.h"

struct mfdb_spool {
    int fd;
    off_t size; /* of whole records */
    bool finished;
    char run_id[MFDB_UUID_TEXT];
    char *path;
    struct mfdb_buffer buffer;
};

static int write_buffer(struct mfdb_spool *spool, char *err)
{
    size_t done = 0;
    int problem;

    while (done < spool->buffer.size) {
        ssize_t n = write(
            spool->fd, spool->buffer.byte + done, spool->buffer.size - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    if (done == spool->buffer.size) {
        spool->size += (off_t)done;
        spool->buffer.size = 0;
        return 0;
    }
    problem = errno;
    spool->buffer.size = 0;
    mfdb_error(err, "%s: can't be written: %s", spool->path, strerror(problem));
    /* Records behind a piece of one would be lost to the reader. */
    if (ftruncate(spool->fd, spool->size) != 0 ||
        lseek(spool->fd, spool->size, SEEK_SET) < 0)
        spool->finished = true;
    return -1;
}

/* FOLDER/RUN_IDsuffix, malloc'd. */
static char *spool_name(
    const char *folder, const char *run_id, const char *suffix)
{
    size_t room = strlen(folder) + strlen(run_id) + strlen(suffix) + 2;
    char *name = malloc(room);

    if (name)
        snprintf(name, room, "%s/%s%s", folder, run_id, suffix);
    return name;
}

/* The name comes last: whoever finds it finds a whole run under a lock. */
static int create_file(struct mfdb_spool *spool, const char *temporary,
    const struct mfdb_run *run, char *err)
{
    if (faccessat(AT_FDCWD, spool->path, F_OK, AT_EACCESS) == 0)
        return mfdb_error(err, "%s: is there already", spool->path);
    spool->fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (spool->fd < 0)
        return mfdb_error(
            err, "%s: can't be made: %s", temporary, strerror(errno));
    if (flock(spool->fd, LOCK_EX | LOCK_NB) != 0) {
        mfdb_error(err, "%s: can't be locked: %s", temporary, strerror(errno));
        goto fail;
    }
    if (mfdb_spool_encode_header(&spool->buffer, err) < 0 ||
        mfdb_spool_encode(
            &spool->buffer, MFDB_SPOOL_RUN, &mfdb_run_record, run, err) < 0 ||
        write_buffer(spool, err) < 0)
        goto fail;
    if (rename(temporary, spool->path) == 0)
        return 0;
    mfdb_error(err, "%s: can't be made: %s", spool->path, strerror(errno));
fail:
    (void)unlink(temporary); /* ERR says what went wrong first */
    return -1;
}

mfdb_spool *mfdb_spool_create(
    const char *folder, const struct mfdb_run *run, char err[MFDB_ERROR_TEXT])
{
    mfdb_spool *spool = calloc(1, sizeof *spool);
    char *temporary = NULL;
    int rc = -1;

    if (!spool) {
        mfdb_error(err, "out of memory");
        return NULL;
    }
    spool->fd = -1;
    if (mfdb_record_check(&mfdb_run_record, run, err) < 0)
        goto out;
    if (!mfdb_uuid_ok(run->run_id)) {
        mfdb_error(err, "run: run_id '%s' is not a UUID", run->run_id);
        goto out;
    }
    memcpy(spool->run_id, run->run_id, sizeof spool->run_id);
    if (mfdb_make_folders(folder, err) < 0)
        goto out;
    spool->path = spool_name(folder, run->run_id, ".spool");
    temporary = spool_name(folder, run->run_id, ".new");
    if (!spool->path || !temporary)
        mfdb_error(err, "out of memory");
    else
        rc = create_file(spool, temporary, run, err);
out:
    free(temporary);
    if (rc == 0)
        return spool;
    mfdb_spool_close(spool);
    return NULL;
}

const char *mfdb_spool_path(const mfdb_spool *spool)
{
    return spool->path;
}

static int check_open(const mfdb_spool *spool, char *err)
{
    if (spool->finished)
        return mfdb_error(err, "%s: has its last record", spool->path);
    return 0;
}

int mfdb_spool_append(mfdb_spool *spool, const struct mfdb_sample *sample,
    size_t count, char err[MFDB_ERROR_TEXT])
{
    if (check_open(spool, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (mfdb_spool_encode(&spool->buffer, MFDB_SPOOL_SAMPLE,
                &mfdb_sample_record, &sample[i], err) < 0) {
            spool->buffer.size = 0;
            return -1;
        }
    }
    return write_buffer(spool, err);
}

int mfdb_spool_finish(
    mfdb_spool *spool, const struct mfdb_run *run, char err[MFDB_ERROR_TEXT])
{
    if (check_open(spool, err) < 0 ||
        mfdb_record_check(&mfdb_run_record, run, err) < 0)
        return -1;
    if (strcmp(run->run_id, spool->run_id) != 0)
        return mfdb_error(err, "%s: belongs to run %s, not %s", spool->path,
            spool->run_id, run->run_id);
    if (strcmp(run->status, "done") != 0 && strcmp(run->status, "failed") != 0)
        return mfdb_error(
            err, "run: ends as done or failed, not '%s'", run->status);
    if (mfdb_spool_encode(
            &spool->buffer, MFDB_SPOOL_END, &mfdb_run_record, run, err) < 0 ||
        write_buffer(spool, err) < 0)
        return -1;
    spool->finished = true;
    if (fsync(spool->fd) != 0)
        return mfdb_error(
            err, "%s: can't be written: %s", spool->path, strerror(errno));
    return 0;
}

void mfdb_spool_close(mfdb_spool *spool)
{
    if (!spool)
        return;
    if (spool->fd >= 0)
        (void)close(spool->fd); /* finish has synced what matters */
    free(spool->buffer.byte);
    free(spool->path);
    free(spool);
}
