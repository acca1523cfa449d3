/* SPDX-License-Identifier: BSD-3-Clause
 * Sets of coefficients of the cost model: rows that are added, never changed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "db/internal.h"

#define SET_COLUMNS                                                            \
    "id, name, created_unix_s, scope, error_before, error_after, samples"

static int bind_real(sqlite3_stmt *s, int place, double value)
{
    return isnan(value) ? sqlite3_bind_null(s, place)
                        : sqlite3_bind_double(s, place, value);
}

/* Digits alone are an id. */
static bool is_id(const char *name)
{
    return *name && strspn(name, "0123456789") == strlen(name);
}

static int check_set(const struct mfdb_coefficients *set, char *err)
{
    if (is_id(set->name))
        return mfdb_error(err,
            "coefficients: the name '%s' would be taken for an id", set->name);
    for (size_t i = 0; i < set->values; i++)
        if (!isfinite(set->value[i].value) || !set->value[i].name[0])
            return mfdb_error(err, "coefficients: '%s' can't be %g",
                set->value[i].name, set->value[i].value);
    return 0;
}

/* 1 a set has NAME, 0 none, -1. */
static int is_taken(mfdb *db, const char *name, char *err)
{
    sqlite3_stmt *s = mfdb_sql_prepare(
        db, "SELECT 1 FROM coefficient_set WHERE name = ?", err);
    int rc = -1;

    if (!s)
        return -1;
    if (sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC))
        mfdb_sql_fail(db, err);
    else
        rc = mfdb_sql_step(db, s, err);
    sqlite3_finalize(s);
    return rc;
}

static int insert_set(mfdb *db, struct mfdb_coefficients *set, char *err)
{
    sqlite3_stmt *s = mfdb_sql_prepare(db,
        "INSERT INTO coefficient_set (name, created_unix_s, scope,"
        " error_before, error_after, samples) VALUES (?, ?, ?, ?, ?, ?)",
        err);
    int rc = -1;

    if (!s)
        return -1;
    if (sqlite3_bind_text(s, 1, set->name, -1, SQLITE_STATIC) ||
        sqlite3_bind_double(s, 2, set->created_at) ||
        sqlite3_bind_text(s, 3, set->scope, -1, SQLITE_STATIC) ||
        bind_real(s, 4, set->error_before) ||
        bind_real(s, 5, set->error_after) ||
        (set->samples < 0 ? sqlite3_bind_null(s, 6)
                          : sqlite3_bind_int64(s, 6, set->samples)))
        mfdb_sql_fail(db, err);
    else
        rc = mfdb_sql_step(db, s, err);
    sqlite3_finalize(s);
    if (rc == 0)
        set->id = sqlite3_last_insert_rowid(db->sql);
    return rc;
}

static int insert_values(
    mfdb *db, const struct mfdb_coefficients *set, char *err)
{
    sqlite3_stmt *s = mfdb_sql_prepare(db,
        "INSERT INTO coefficient (set_id, name, value) VALUES (?, ?, ?)", err);
    int rc = s ? 0 : -1;

    for (size_t i = 0; rc == 0 && i < set->values; i++) {
        const struct mfdb_value *value = &set->value[i];

        if (sqlite3_bind_int64(s, 1, set->id) ||
            sqlite3_bind_text(s, 2, value->name, -1, SQLITE_STATIC) ||
            sqlite3_bind_double(s, 3, value->value) ||
            mfdb_sql_step(db, s, NULL) < 0 || sqlite3_reset(s))
            rc = mfdb_sql_fail(db, err);
    }
    sqlite3_finalize(s);
    return rc;
}

/* A name for a set that came without: the id that it will have. */
static int make_name(mfdb *db, struct mfdb_coefficients *set, char *err)
{
    int64_t id;

    if (mfdb_sql_integer(db,
            "SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence"
            " WHERE name = 'coefficient_set'",
            &id, err) < 0)
        return -1;
    snprintf(set->name, sizeof set->name, "fit-%lld", (long long)id);
    return 0;
}

static int save(mfdb *db, struct mfdb_coefficients *set, char *err)
{
    int taken;

    if (!set->name[0] && make_name(db, set, err) < 0)
        return -1;
    taken = is_taken(db, set->name, err);
    if (taken > 0)
        return mfdb_error(
            err, "%s: has coefficients '%s' already", db->path, set->name);
    if (taken < 0 || insert_set(db, set, err) < 0)
        return -1;
    return insert_values(db, set, err);
}

int mfdb_coefficients_save(
    mfdb *db, struct mfdb_coefficients *set, char err[MFDB_ERROR_TEXT])
{
    struct mfdb_coefficients saved = *set;

    if (check_set(set, err) < 0)
        return -1;
    if (isnan(saved.created_at) || saved.created_at <= 0)
        saved.created_at = mfdb_now();
    if (mfdb_sql_exec(db, "BEGIN IMMEDIATE", err) < 0)
        return -1;
    if (save(db, &saved, err) < 0 || mfdb_sql_exec(db, "COMMIT", err) < 0) {
        mfdb_sql_rollback(db);
        return -1;
    }
    *set = saved;
    return 0;
}

/* --- reading --- */

static void read_text(sqlite3_stmt *s, int column, char *text, size_t size)
{
    const unsigned char *from = sqlite3_column_text(s, column);

    snprintf(text, size, "%s", from ? (const char *)from : "");
}

static double read_real(sqlite3_stmt *s, int column)
{
    return sqlite3_column_type(s, column) == SQLITE_NULL
               ? (double)NAN
               : sqlite3_column_double(s, column);
}

/* A row of SET_COLUMNS. */
static void read_set(sqlite3_stmt *s, struct mfdb_coefficients *set)
{
    memset(set, 0, sizeof *set);
    set->id = sqlite3_column_int64(s, 0);
    read_text(s, 1, set->name, sizeof set->name);
    set->created_at = sqlite3_column_double(s, 2);
    read_text(s, 3, set->scope, sizeof set->scope);
    set->error_before = read_real(s, 4);
    set->error_after = read_real(s, 5);
    set->samples = sqlite3_column_type(s, 6) == SQLITE_NULL
                       ? -1
                       : sqlite3_column_int64(s, 6);
}

static int add_value(struct mfdb_coefficients *set, sqlite3_stmt *s)
{
    struct mfdb_value *value =
        reallocarray(set->value, set->values + 1, sizeof *value);

    if (!value)
        return -1;
    set->value = value;
    value = &value[set->values++];
    read_text(s, 0, value->name, sizeof value->name);
    value->value = sqlite3_column_double(s, 1);
    return 0;
}

static int load_values(mfdb *db, struct mfdb_coefficients *set, char *err)
{
    sqlite3_stmt *s = mfdb_sql_prepare(db,
        "SELECT name, value FROM coefficient WHERE set_id = ? ORDER BY name",
        err);
    int rc = -1;

    if (!s)
        return -1;
    if (sqlite3_bind_int64(s, 1, set->id)) {
        mfdb_sql_fail(db, err);
        goto out;
    }
    while ((rc = mfdb_sql_step(db, s, err)) > 0) {
        if (add_value(set, s) < 0) {
            rc = mfdb_error(err, "out of memory");
            break;
        }
    }
out:
    sqlite3_finalize(s);
    if (rc < 0)
        mfdb_coefficients_free(set);
    return rc;
}

static sqlite3_stmt *prepare_load(
    mfdb *db, const char *name, const char *scope, char *err)
{
    sqlite3_stmt *s = mfdb_sql_prepare(db,
        name ? "SELECT " SET_COLUMNS " FROM coefficient_set"
               " WHERE name = ?1 OR CAST(id AS TEXT) = ?1"
             : "SELECT " SET_COLUMNS " FROM coefficient_set"
               " WHERE ?1 IS NULL OR scope = ?1"
               " ORDER BY created_unix_s DESC, id DESC LIMIT 1",
        err);

    if (s && sqlite3_bind_text(s, 1, name ? name : scope, -1, SQLITE_STATIC)) {
        mfdb_sql_fail(db, err);
        sqlite3_finalize(s);
        return NULL;
    }
    return s;
}

int mfdb_coefficients_load(mfdb *db, const char *name, const char *scope,
    struct mfdb_coefficients *set, char err[MFDB_ERROR_TEXT])
{
    sqlite3_stmt *s = prepare_load(db, name, scope, err);
    int rc;

    memset(set, 0, sizeof *set);
    if (!s)
        return -1;
    rc = mfdb_sql_step(db, s, err);
    if (rc > 0) {
        read_set(s, set);
        rc = load_values(db, set, err) < 0 ? -1 : 1;
    }
    sqlite3_finalize(s);
    return rc;
}

static int add_set(mfdb *db, struct mfdb_coefficients **sets, size_t *count,
    sqlite3_stmt *s, char *err)
{
    struct mfdb_coefficients *set =
        reallocarray(*sets, *count + 1, sizeof *set);

    if (!set)
        return mfdb_error(err, "out of memory");
    *sets = set;
    read_set(s, &set[*count]);
    if (load_values(db, &set[*count], err) < 0)
        return -1;
    (*count)++;
    return 0;
}

int mfdb_coefficients_list(mfdb *db, struct mfdb_coefficients **sets,
    size_t *count, char err[MFDB_ERROR_TEXT])
{
    sqlite3_stmt *s = mfdb_sql_prepare(db,
        "SELECT " SET_COLUMNS " FROM coefficient_set"
        " ORDER BY created_unix_s DESC, id DESC",
        err);
    int rc = s ? 1 : -1;

    *sets = NULL;
    *count = 0;
    while (rc > 0 && (rc = mfdb_sql_step(db, s, err)) > 0)
        if (add_set(db, sets, count, s, err) < 0)
            rc = -1;
    sqlite3_finalize(s);
    if (rc < 0) {
        for (size_t i = 0; i < *count; i++)
            mfdb_coefficients_free(&(*sets)[i]);
        free(*sets);
        *sets = NULL;
        *count = 0;
    }
    return rc;
}

void mfdb_coefficients_free(struct mfdb_coefficients *set)
{
    if (!set)
        return;
    free(set->value);
    set->value = NULL;
    set->values = 0;
}
