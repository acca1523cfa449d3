/* SPDX-License-Identifier: BSD-3-Clause
 * Where the database is, and opening it without harm to a file that is not
 * ours.
 *
 * A first look reads the file's header by itself, which takes no lock, replays
 * no journal and makes no file beside it; only a database of ours, or an empty
 * file, is then opened for good. It looks at no more than the header, since
 * another process may be writing the rest.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "db/internal.h"

static char *join(const char *a, const char *b)
{
    size_t left = strlen(a), right = strlen(b);
    char *text = malloc(left + right + 1);

    if (!text)
        return NULL;
    memcpy(text, a, left);
    memcpy(text + left, b, right + 1);
    return text;
}

static bool is_set(const char *text)
{
    return text && *text;
}

char *mfdb_default_path(char err[MFDB_ERROR_TEXT])
{
    const char *file = getenv("MOEFOLD_DB");
    const char *data = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");
    char *path;

    if (is_set(file))
        path = strdup(file);
    else if (is_set(data) && data[0] == '/') /* others are to be ignored */
        path = join(data, "/moefold/history.db");
    else if (is_set(home))
        path = join(home, "/.local/share/moefold/history.db");
    else {
        mfdb_error(err, "no place for the database: "
                        "set MOEFOLD_DB, XDG_DATA_HOME or HOME");
        return NULL;
    }
    if (!path)
        mfdb_error(err, "out of memory");
    return path;
}

char *mfdb_spool_folder(const char *path)
{
    return join(path, ".spool");
}

static int check_version(const mfdb *db, int64_t application, int64_t version,
    enum mfdb_mode mode, char *err)
{
    if (application != MFDB_APPLICATION_ID)
        return mfdb_error(err,
            "%s: is not a history of moefold; name another file", db->path);
    if (version > MFDB_SCHEMA)
        return mfdb_error(err,
            "%s: has schema %lld, and this moefold knows up to %d; "
            "use a newer moefold",
            db->path, (long long)version, MFDB_SCHEMA);
    if (version < 1)
        return mfdb_error(
            err, "%s: is damaged (schema %lld)", db->path, (long long)version);
    if (version < MFDB_SCHEMA && mode == MFDB_QUERY)
        return mfdb_error(err,
            "%s: has the older schema %lld; open it once where it can be "
            "written",
            db->path, (long long)version);
    return 0;
}

static int read_versions(
    mfdb *db, int64_t *application, int64_t *version, char *err)
{
    if (mfdb_sql_integer(db, "PRAGMA application_id", application, err) < 0)
        return -1;
    return mfdb_sql_integer(db, "PRAGMA user_version", version, err);
}

static int64_t big_endian(const unsigned char *byte)
{
    return (int64_t)byte[0] << 24 | byte[1] << 16 | byte[2] << 8 | byte[3];
}

/* Where SQLite's file format has the two numbers: sqlite.org/fileformat.html,
 * "The Database Header".
 */
static int look(const mfdb *db, enum mfdb_mode mode, char *err)
{
    enum { HEADER = 100, VERSION_AT = 60, APPLICATION_AT = 68 };
    static const char magic[16] = "SQLite format 3";
    unsigned char header[HEADER];
    int fd = open(db->path, O_RDONLY | O_CLOEXEC);
    ssize_t length;

    if (fd < 0)
        return mfdb_error(err, "%s: %s", db->path, strerror(errno));
    length = pread(fd, header, HEADER, 0);
    close(fd);
    if (length < 0)
        return mfdb_error(err, "%s: %s", db->path, strerror(errno));
    if (length < HEADER || memcmp(header, magic, sizeof magic) != 0)
        return mfdb_error(err,
            "%s: is not a history of moefold; name another file", db->path);
    return check_version(db, big_endian(header + APPLICATION_AT),
        big_endian(header + VERSION_AT), mode, err);
}

/* 1 look at it, 0 new or empty, -1 refused. */
static int check_file(const mfdb *db, enum mfdb_mode mode, char *err)
{
    struct stat info;

    if (!*db->path)
        return mfdb_error(err, "the database's file name is empty");
    if (stat(db->path, &info) != 0) {
        if (errno == ENOENT && mode == MFDB_UPDATE)
            return 0;
        return mfdb_error(err, "%s: %s", db->path, strerror(errno));
    }
    if (!S_ISREG(info.st_mode))
        return mfdb_error(err, "%s: is not a file", db->path);
    if (info.st_size > 0)
        return 1;
    if (mode == MFDB_UPDATE)
        return 0;
    return mfdb_error(err, "%s: is empty", db->path);
}

static int make_parent(const char *path, char *err)
{
    const char *slash = strrchr(path, '/');
    char *folder;
    int rc;

    if (!slash || slash == path)
        return 0;
    folder = strndup(path, (size_t)(slash - path));
    if (!folder)
        return mfdb_error(err, "out of memory");
    rc = mfdb_make_folders(folder, err);
    free(folder);
    return rc;
}

static int connect(mfdb *db, enum mfdb_mode mode, char *err)
{
    /* "file:" and ":memory:" are names of files here. */
    char *name = join(db->path[0] == '/' ? "" : "./", db->path);
    int flags = mode == MFDB_QUERY ? SQLITE_OPEN_READONLY
                                   : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    int rc;

    if (!name)
        return mfdb_error(err, "out of memory");
    rc = sqlite3_open_v2(name, &db->sql, flags, NULL);
    free(name);
    if (rc != SQLITE_OK && !db->sql)
        return mfdb_error(err, "out of memory");
    if (rc != SQLITE_OK ||
        sqlite3_busy_timeout(db->sql, MFDB_WAIT_MS) != SQLITE_OK ||
        sqlite3_extended_result_codes(db->sql, 1) != SQLITE_OK ||
        /* A file may come from anyone: no code of its own runs. */
        sqlite3_db_config(db->sql, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL) ||
        sqlite3_db_config(db->sql, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL) ||
        sqlite3_db_config(db->sql, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL) ||
        sqlite3_db_config(db->sql, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL))
        return mfdb_sql_fail(db, err);
    return mfdb_sql_exec(db, "PRAGMA foreign_keys = ON", err);
}

static int check_writable(const mfdb *db, char *err)
{
    const char *slash = strrchr(db->path, '/');
    size_t length = slash ? (size_t)(slash - db->path) : 0;
    char *folder = slash ? strndup(db->path, length ? length : 1) : strdup(".");
    int denied;

    if (!folder)
        return mfdb_error(err, "out of memory");
    /* The journal goes beside the file. */
    denied = faccessat(AT_FDCWD, folder, W_OK, AT_EACCESS);
    if (denied)
        mfdb_error(err, "%s: its folder can't be written: %s", db->path,
            strerror(errno));
    free(folder);
    if (denied)
        return -1;
    if (sqlite3_db_readonly(db->sql, "main") != 0)
        return mfdb_error(err, "%s: can't be written", db->path);
    return 0;
}

static int check_damage(mfdb *db, char *err)
{
    sqlite3_stmt *statement =
        mfdb_sql_prepare(db, "PRAGMA quick_check(run)", err);
    const unsigned char *text;
    int rc;

    if (!statement)
        return -1;
    rc = mfdb_sql_step(db, statement, err);
    text = rc > 0 ? sqlite3_column_text(statement, 0) : NULL;
    if (rc >= 0 && (!text || strcmp((const char *)text, "ok") != 0))
        rc = mfdb_error(err, "%s: is damaged (%s)", db->path,
            text ? (const char *)text : "no answer");
    sqlite3_finalize(statement);
    return rc < 0 ? -1 : 0;
}

static int open_checked(mfdb *db, enum mfdb_mode mode, char *err)
{
    int64_t application, version;
    int there = check_file(db, mode, err);

    if (there < 0 || (there && look(db, mode, err) < 0))
        return -1;
    if (!there && make_parent(db->path, err) < 0)
        return -1;
    if (connect(db, mode, err) < 0)
        return -1;
    if (mode == MFDB_QUERY) {
        if (read_versions(db, &application, &version, err) < 0)
            return -1;
        return check_version(db, application, version, mode, err);
    }
    /* A write-ahead log needs memory that hosts share; put a file that
     * somebody switched to it back.
     */
    if (check_writable(db, err) < 0 ||
        mfdb_sql_exec(db, "PRAGMA journal_mode = DELETE", err) < 0 ||
        mfdb_schema_update(db, err) < 0)
        return -1;
    return check_damage(db, err);
}

mfdb *mfdb_open(
    const char *path, enum mfdb_mode mode, char err[MFDB_ERROR_TEXT])
{
    mfdb *db = calloc(1, sizeof *db);

    if (db)
        db->path = strdup(path);
    if (!db || !db->path) {
        mfdb_error(err, "out of memory");
        goto fail;
    }
    if (open_checked(db, mode, err) < 0)
        goto fail;
    if (mode == MFDB_UPDATE)
        mfdb_merge_leftovers(db);
    return db;
fail:
    mfdb_close(db);
    return NULL;
}

void mfdb_close(mfdb *db)
{
    if (!db)
        return;
    sqlite3_close(db->sql);
    free(db->path);
    free(db);
}

const char *mfdb_warning(const mfdb *db)
{
    return db->warning[0] ? db->warning : NULL;
}
