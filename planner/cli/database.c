/* SPDX-License-Identifier: BSD-3-Clause
 * See database.h.
 */
#include "config.h"

#include "planner/cli/database.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char *database_path(const struct mf_cli *cli, struct mf_error *err)
{
    const char *given = mf_cli_value(cli, "db");
    char text[MFDB_ERROR_TEXT];
    char *path;

    if (given && !*given) {
        mf_error_set(err, MF_INVALID, "--db is empty; give a file");
        return NULL;
    }
    path = given ? strdup(given) : mfdb_default_path(text);
    if (!path)
        mf_error_set(err, MF_FAILED, "%s; or give --db FILE",
            given ? "no memory" : text);
    return path;
}

static bool is_missing(const char *path)
{
    struct stat info;

    return stat(path, &info) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

/* Also as a full disk leaves a history that was just to be made. */
static bool is_new(const char *path)
{
    struct stat info;

    return is_missing(path) || (stat(path, &info) == 0 &&
                                   S_ISREG(info.st_mode) && info.st_size == 0);
}

mfdb *mf_database_update(const struct mf_cli *cli, struct mf_error *err)
{
    char *path = database_path(cli, err);
    char text[MFDB_ERROR_TEXT], other[MFDB_ERROR_TEXT];
    mfdb *db = NULL, *view;

    if (!path)
        return NULL;
    db = mfdb_open(path, MFDB_UPDATE, text);
    if (!db) {
        /* What can be read, or made, is ours: then it is the writing. */
        view = mfdb_open(path, MFDB_QUERY, other);
        mf_error_set(
            err, view || is_new(path) ? MF_FAILED : MF_INVALID, "%s", text);
        mfdb_close(view);
    }
    free(path);
    return db;
}

/* Neither a history nor spools that could become one. */
static int is_absent(const char *path, bool *absent, struct mf_error *err)
{
    char *folder = mfdb_spool_folder(path);

    if (!folder)
        return mf_error_set(err, MF_FAILED, "no memory");
    *absent = is_missing(path) && is_missing(folder);
    free(folder);
    return 0;
}

int mf_database_query(const struct mf_cli *cli, mfdb **db, struct mf_error *err)
{
    char *path = database_path(cli, err);
    char text[MFDB_ERROR_TEXT], other[MFDB_ERROR_TEXT];
    bool absent = false;
    int rc = -1;

    *db = NULL;
    if (!path || is_absent(path, &absent, err))
        goto out;
    rc = 0;
    if (absent)
        goto out;
    *db = mfdb_open(path, MFDB_UPDATE, text);
    if (!*db)
        *db = mfdb_open(path, MFDB_QUERY, other);
    if (!*db)
        rc = mf_error_set(
            err, is_missing(path) ? MF_FAILED : MF_INVALID, "%s", text);
out:
    free(path);
    return rc;
}

void mf_database_warn(const mfdb *db, const char *command)
{
    struct mf_error line;

    if (!db || !mfdb_warning(db))
        return;
    mf_error_set(&line, MF_OK, "%s", mfdb_warning(db));
    fprintf(stderr, "moefold: %s: warning: %s\n", command, line.text);
}
