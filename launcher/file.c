/* SPDX-License-Identifier: BSD-3-Clause
 * Texts to files, whole or not at all.
 */
#include "config.h"

#include "launcher/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int file_failed(const char *path, struct mf_error *err)
{
    return mf_error_set(
        err, MF_FAILED, "%s: cannot write it: %s", path, strerror(errno));
}

static int fill(int fd, const char *text)
{
    size_t left = strlen(text);

    while (left > 0) {
        ssize_t n = write(fd, text, left);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        text += n;
        left -= (size_t)n;
    }
    return 0;
}

/* Fill and close FD, the open file PATH; it is removed when that fails. */
static int finish(int fd, const char *path, const char *text)
{
    int rc = fill(fd, text), saved;

    if (close(fd) < 0)
        rc = -1;
    if (rc < 0) {
        saved = errno;
        unlink(path);
        errno = saved;
    }
    return rc;
}

static int write_new(
    const char *path, const char *text, unsigned mode, struct mf_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

    if (fd < 0 && errno == EEXIST)
        return mf_error_set(err, MF_INVALID,
            "%s: it exists; give another name, or --force to replace it", path);
    if (fd < 0 || finish(fd, path, text) < 0)
        return file_failed(path, err);
    return 0;
}

static int write_over(
    const char *path, const char *text, unsigned mode, struct mf_error *err)
{
    mode_t mask = umask(0);
    char *temp = NULL;
    int fd, rc = -1;

    umask(mask);
    if (asprintf(&temp, "%s.XXXXXX", path) < 0)
        return mf_error_set(err, MF_FAILED, "out of memory");
    fd = mkostemp(temp, O_CLOEXEC);
    if (fd < 0) {
        file_failed(path, err);
        goto out;
    }
    if (fchmod(fd, mode & ~mask) < 0 || finish(fd, temp, text) < 0 ||
        rename(temp, path) < 0) {
        file_failed(path, err);
        unlink(temp);
        goto out;
    }
    rc = 0;
out:
    free(temp);
    return rc;
}

int mfl_file_write(const char *path, const char *text, unsigned mode,
    bool replace, struct mf_error *err)
{
    struct stat there;

    if (!replace)
        return write_new(path, text, mode, err);
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode))
        return mf_error_set(err, MF_INVALID,
            "%s: it is not a regular file; give another name", path);
    return write_over(path, text, mode, err);
}
