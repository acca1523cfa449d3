/* SPDX-License-Identifier: BSD-3-Clause
 * Error text, time, folders and run ids.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "db/internal.h"

int mfdb_error(char *err, const char *fmt, ...)
{
    va_list args;

    if (!err)
        return -1;
    va_start(args, fmt);
    if (vsnprintf(err, MFDB_ERROR_TEXT, fmt, args) < 0)
        err[0] = '\0';
    va_end(args);
    return -1;
}

double mfdb_now(void)
{
    struct timespec now;

    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return 0;
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int make_folder(const char *folder, char *err)
{
    struct stat info;
    int why;

    if (mkdir(folder, 0777) == 0)
        return 0;
    why = errno;
    if (why == EEXIST && stat(folder, &info) == 0 && S_ISDIR(info.st_mode))
        return 0;
    if (why == EEXIST)
        return mfdb_error(err, "%s: is in the way of a folder", folder);
    /* A parent may be read only and yet have the folder. */
    if (stat(folder, &info) == 0 && S_ISDIR(info.st_mode))
        return 0;
    return mfdb_error(err, "%s: can't be made: %s", folder, strerror(why));
}

int mfdb_make_folders(const char *folder, char *err)
{
    char *path = strdup(folder);
    int rc = -1;

    if (!path)
        return mfdb_error(err, "out of memory");
    for (char *slash = path + 1; *path && (slash = strchr(slash, '/'));
         slash++) {
        *slash = '\0';
        if (make_folder(path, err) < 0)
            goto out;
        *slash = '/';
    }
    rc = make_folder(path, err);
out:
    free(path);
    return rc;
}

bool mfdb_uuid_ok(const char *text)
{
    size_t i;

    for (i = 0; i < MFDB_UUID_TEXT - 1; i++) {
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (text[i] != '-')
                return false;
        } else if (!text[i] || !strchr("0123456789abcdef", text[i])) {
            return false;
        }
    }
    return text[i] == '\0';
}

int mfdb_uuid(char text[MFDB_UUID_TEXT])
{
    unsigned char b[16];
    int n;

    if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b)
        return -1;
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40); /* RFC 9562, version 4 */
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    n = snprintf(text, MFDB_UUID_TEXT,
        "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
        b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10],
        b[11], b[12], b[13], b[14], b[15]);
    return n == MFDB_UUID_TEXT - 1 ? 0 : -1;
}
