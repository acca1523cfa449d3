/* SPDX-License-Identifier: BSD-3-Clause
 * Measured figures of a machine, kept with the time of their measurement.
 */
#include <math.h>

#include "db/internal.h"

int mfdb_cache_get(mfdb *db, const char *key, double max_age_s, double *value,
    char err[MFDB_ERROR_TEXT])
{
    /* A time to come is that of a clock set back: measure again. */
    sqlite3_stmt *statement = mfdb_sql_prepare(db,
        "SELECT value FROM machine_cache WHERE key = ?1"
        " AND measured_unix_s BETWEEN ?2 - ?3 AND ?2",
        err);
    int rc = -1;

    if (!statement)
        return -1;
    if (sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC) ||
        sqlite3_bind_double(statement, 2, mfdb_now()) ||
        sqlite3_bind_double(statement, 3, max_age_s))
        mfdb_sql_fail(db, err);
    else
        rc = mfdb_sql_step(db, statement, err);
    if (rc > 0)
        *value = sqlite3_column_double(statement, 0);
    sqlite3_finalize(statement);
    return rc;
}

int mfdb_cache_put(
    mfdb *db, const char *key, double value, char err[MFDB_ERROR_TEXT])
{
    sqlite3_stmt *statement;
    int rc = -1;

    if (!isfinite(value))
        return mfdb_error(err, "cache: %s can't be %g", key, value);
    statement = mfdb_sql_prepare(db,
        "INSERT INTO machine_cache (key, value, measured_unix_s)"
        " VALUES (?1, ?2, ?3) ON CONFLICT (key) DO UPDATE SET"
        " value = excluded.value, measured_unix_s = excluded.measured_unix_s",
        err);
    if (!statement)
        return -1;
    if (sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC) ||
        sqlite3_bind_double(statement, 2, value) ||
        sqlite3_bind_double(statement, 3, mfdb_now()))
        mfdb_sql_fail(db, err);
    else
        rc = mfdb_sql_step(db, statement, err);
    sqlite3_finalize(statement);
    return rc;
}
