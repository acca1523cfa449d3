/* SPDX-License-Identifier: BSD-3-Clause
 * Steps of SQL with their errors as text that names the file.
 */
#include "db/internal.h"

int mfdb_sql_fail(const mfdb *db, char *err)
{
    int code = sqlite3_errcode(db->sql) & 0xff;

    switch (code) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return mfdb_error(err, "%s: another process has held its lock for %d s",
            db->path, MFDB_WAIT_MS / 1000);
    case SQLITE_NOTADB:
        return mfdb_error(err,
            "%s: is not a history of moefold, or damaged; name another file",
            db->path);
    case SQLITE_CORRUPT:
        return mfdb_error(
            err, "%s: is damaged (%s)", db->path, sqlite3_errmsg(db->sql));
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
        return mfdb_error(err, "%s: can't be opened or written (%s)", db->path,
            sqlite3_errmsg(db->sql));
    default:
        return mfdb_error(err, "%s: %s", db->path, sqlite3_errmsg(db->sql));
    }
}

int mfdb_sql_exec(mfdb *db, const char *sql, char *err)
{
    if (sqlite3_exec(db->sql, sql, NULL, NULL, NULL) != SQLITE_OK)
        return mfdb_sql_fail(db, err);
    return 0;
}

sqlite3_stmt *mfdb_sql_prepare(mfdb *db, const char *sql, char *err)
{
    sqlite3_stmt *statement = NULL;

    if (sqlite3_prepare_v2(db->sql, sql, -1, &statement, NULL) != SQLITE_OK) {
        mfdb_sql_fail(db, err);
        return NULL;
    }
    return statement;
}

sqlite3_stmt *mfdb_sql_prepare_str(mfdb *db, sqlite3_str *text, char *err)
{
    char *sql = sqlite3_str_finish(text);
    sqlite3_stmt *statement = NULL;

    if (!sql)
        mfdb_error(err, "out of memory");
    else
        statement = mfdb_sql_prepare(db, sql, err);
    sqlite3_free(sql);
    return statement;
}

int mfdb_sql_step(mfdb *db, sqlite3_stmt *statement, char *err)
{
    int rc = sqlite3_step(statement);

    if (rc == SQLITE_ROW)
        return 1;
    return rc == SQLITE_DONE ? 0 : mfdb_sql_fail(db, err);
}

int mfdb_sql_integer(mfdb *db, const char *sql, int64_t *value, char *err)
{
    sqlite3_stmt *statement = mfdb_sql_prepare(db, sql, err);
    int rc;

    if (!statement)
        return -1;
    rc = mfdb_sql_step(db, statement, err);
    if (rc == 0)
        rc = mfdb_error(err, "%s: no answer to %s", db->path, sql);
    if (rc > 0)
        *value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return rc < 0 ? -1 : 0;
}

void mfdb_sql_rollback(mfdb *db)
{
    /* Some errors have rolled back by themselves. */
    if (!sqlite3_get_autocommit(db->sql))
        sqlite3_exec(db->sql, "ROLLBACK", NULL, NULL, NULL);
}

int mfdb_begin(mfdb *db, char err[MFDB_ERROR_TEXT])
{
    return mfdb_sql_exec(db, "BEGIN IMMEDIATE", err);
}

int mfdb_end(mfdb *db, int *rc, char err[MFDB_ERROR_TEXT])
{
    if (*rc == 0)
        *rc = mfdb_sql_exec(db, "COMMIT", err);
    if (*rc)
        mfdb_sql_rollback(db);
    return *rc ? -1 : 0;
}
