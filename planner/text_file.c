/* SPDX-License-Identifier: BSD-3-Clause
 * A whole file of bounded size in memory.
 */
#include "config.h"

#include "planner/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE_MS 10000

static int refuse(const char *path, const char *why, struct mf_error *err)
{
    return mf_error_set(err, MF_INVALID, "%.300s: %s", path, why);
}

/* Opened without waiting: a pipe nobody writes to must not hang us. */
static int file_open(const char *path, struct mf_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) != 0) {
        refuse(path, strerror(errno), err);
        goto out;
    }
    if (S_ISDIR(st.st_mode)) {
        refuse(path, "is a folder; name a file in it", err);
        goto out;
    }
    if (S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode))
        return fd;
    refuse(path, "is no file that can be read to its end", err);
out:
    if (fd >= 0)
        close(fd);
    return -1;
}

/* The next bytes, 0 at the end, -1 with errno set. */
static ssize_t next_bytes(int fd, char *data, size_t room)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t n = read(fd, data, room);
        int ready;

        if (n >= 0)
            return n;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            return -1;
        ready = poll(&p, 1, PATIENCE_MS);
        if (ready == 0)
            errno = ETIMEDOUT;
        if (ready == 0 || (ready < 0 && errno != EINTR))
            return -1;
    }
}

static int fd_read(
    int fd, const char *path, struct mf_text *text, struct mf_error *err)
{
    size_t room = 0;

    for (;;) {
        ssize_t n;

        if (text->length + 1 >= room) {
            char *data;

            room = room ? 2 * room : 16384;
            data = realloc(text->data, room);
            if (!data)
                return mf_error_set(
                    err, MF_FAILED, "%.300s: out of memory", path);
            text->data = data;
        }
        n = next_bytes(fd, text->data + text->length, room - 1 - text->length);
        if (n < 0)
            return refuse(path, strerror(errno), err);
        text->length += (size_t)n;
        text->data[text->length] = 0;
        if (text->length > MF_TEXT_FILE_MAX)
            return refuse(path, "is larger than 64 MiB", err);
        if (n == 0)
            return 0;
    }
}

int mf_text_read(const char *path, struct mf_text *text, struct mf_error *err)
{
    int fd = file_open(path, err), rc;

    *text = (struct mf_text){0};
    if (fd < 0)
        return -1;
    rc = fd_read(fd, path, text, err);
    if (rc == 0 && text->length == 0)
        rc = refuse(path, "is empty", err);
    if (rc == 0 && strlen(text->data) != text->length)
        rc = refuse(path, "holds a byte 0: it is no text", err);
    if (close(fd) != 0 && rc == 0)
        rc = refuse(path, strerror(errno), err);
    if (rc < 0) {
        free(text->data);
        *text = (struct mf_text){0};
    }
    return rc;
}
