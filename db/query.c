/* SPDX-License-Identifier: BSD-3-Clause
 * Questions about past runs.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "db/internal.h"

/* Parameters 1 to 4 and 6 to 9. A prefix in any case, without LIKE: its % and _
 * would be taken for patterns.
 */
#define FILTER                                                                 \
    " (?1 IS NULL OR lower(substr(model, 1, length(?1))) = lower(?1))"         \
    " AND (?2 IS NULL OR lower(substr(cluster, 1, length(?2))) = lower(?2))"   \
    " AND (?3 IS NULL OR layout = ?3) AND (?4 = 0 OR ranks = ?4)"              \
    " AND (?6 IS NULL OR user_name = ?6)"                                      \
    " AND (?7 IS NULL OR instr(',' || node_list || ',', ',' || ?7 || ','))"    \
    " AND (?8 IS NULL OR version = ?8) AND started_unix_s >= ?9 "

static int bind_filter(
    mfdb *db, sqlite3_stmt *s, const struct mfdb_filter *filter, char *err)
{
    static const struct mfdb_filter any;
    int64_t limit;

    if (!filter)
        filter = &any;
    limit = filter->limit && filter->limit < INT64_MAX ? (int64_t)filter->limit
                                                       : -1;
    /* A NULL text binds NULL. */
    if (sqlite3_bind_text(s, 1, filter->model, -1, SQLITE_STATIC) ||
        sqlite3_bind_text(s, 2, filter->cluster, -1, SQLITE_STATIC) ||
        sqlite3_bind_text(s, 3, filter->layout, -1, SQLITE_STATIC) ||
        sqlite3_bind_int64(s, 4, filter->world) ||
        sqlite3_bind_int64(s, 5, limit) ||
        sqlite3_bind_text(s, 6, filter->user, -1, SQLITE_STATIC) ||
        sqlite3_bind_text(s, 7, filter->node, -1, SQLITE_STATIC) ||
        sqlite3_bind_text(s, 8, filter->version, -1, SQLITE_STATIC) ||
        sqlite3_bind_double(s, 9, filter->since_unix_s))
        return mfdb_sql_fail(db, err);
    return 0;
}

static int grow(struct mfdb_runs *runs, bool spread, size_t *room)
{
    size_t more = *room ? *room * 2 : 16;
    struct mfdb_run *run = reallocarray(runs->run, more, sizeof *run);
    struct mfdb_spread *wide;

    if (!run)
        return -1;
    runs->run = run;
    if (spread) {
        wide = reallocarray(runs->spread, more, sizeof *wide);
        if (!wide)
            return -1;
        runs->spread = wide;
    }
    *room = more;
    return 0;
}

/* What stands behind the run's columns is its spread. */
static int add_run(struct mfdb_runs *runs, size_t *room, sqlite3_stmt *s)
{
    const int behind = (int)mfdb_run_record.fields;
    const bool spread = sqlite3_column_count(s) > behind;

    if (runs->count == *room && grow(runs, spread, room))
        return -1;
    mfdb_record_read(&mfdb_run_record, s, 0, &runs->run[runs->count]);
    if (spread)
        runs->spread[runs->count] = (struct mfdb_spread){
            .runs = sqlite3_column_int64(s, behind),
            .least_s = sqlite3_column_double(s, behind + 1),
            .most_s = sqlite3_column_double(s, behind + 2),
        };
    runs->count++;
    return 0;
}

/* Run a statement whose columns are those of a run. */
static int collect(
    mfdb *db, sqlite3_stmt *statement, struct mfdb_runs *runs, char *err)
{
    size_t room = 0;
    int rc;

    while ((rc = mfdb_sql_step(db, statement, err)) > 0) {
        if (add_run(runs, &room, statement) < 0) {
            rc = mfdb_error(err, "out of memory");
            break;
        }
    }
    if (rc < 0)
        mfdb_runs_free(runs);
    return rc;
}

static int query(mfdb *db, sqlite3_str *sql, const struct mfdb_filter *filter,
    struct mfdb_runs *runs, char *err)
{
    sqlite3_stmt *statement = mfdb_sql_prepare_str(db, sql, err);
    int rc = -1;

    *runs = (struct mfdb_runs){0};
    if (!statement)
        return -1;
    if (bind_filter(db, statement, filter, err) == 0)
        rc = collect(db, statement, runs, err);
    sqlite3_finalize(statement);
    return rc;
}

int mfdb_list(mfdb *db, const struct mfdb_filter *filter,
    struct mfdb_runs *runs, char err[MFDB_ERROR_TEXT])
{
    sqlite3_str *sql = sqlite3_str_new(db->sql);

    sqlite3_str_appendall(sql, "SELECT ");
    mfdb_record_columns(&mfdb_run_record, sql, false);
    sqlite3_str_appendall(sql,
        " FROM run WHERE" FILTER "ORDER BY started_unix_s DESC, id DESC "
        "LIMIT ?5");
    return query(db, sql, filter, runs, err);
}

int mfdb_earlier(mfdb *db, const struct mfdb_run *run, size_t limit,
    struct mfdb_runs *runs, char err[MFDB_ERROR_TEXT])
{
    sqlite3_str *sql = sqlite3_str_new(db->sql);
    sqlite3_stmt *statement;
    int rc = -1;

    *runs = (struct mfdb_runs){0};
    sqlite3_str_appendall(sql, "SELECT ");
    mfdb_record_columns(&mfdb_run_record, sql, false);
    /* Model and layout by themselves too, for the index. */
    sqlite3_str_appendall(sql,
        " FROM run WHERE model = ?1 AND layout = ?2 AND started_unix_s < ?3"
        " AND status = 'done' AND layer_s IS NOT NULL AND (" MFDB_KEY
        ") IS (SELECT" MFDB_KEY " FROM run WHERE run_id = ?4)"
        " ORDER BY started_unix_s DESC, id DESC LIMIT ?5");
    statement = mfdb_sql_prepare_str(db, sql, err);
    if (!statement)
        return -1;
    if (sqlite3_bind_text(statement, 1, run->model, -1, SQLITE_STATIC) ||
        sqlite3_bind_text(statement, 2, run->layout, -1, SQLITE_STATIC) ||
        sqlite3_bind_double(statement, 3, run->started_at) ||
        sqlite3_bind_text(statement, 4, run->run_id, -1, SQLITE_STATIC) ||
        sqlite3_bind_int64(statement, 5, (int64_t)limit))
        mfdb_sql_fail(db, err);
    else
        rc = collect(db, statement, runs, err);
    sqlite3_finalize(statement);
    return rc;
}

/* Of an even number of runs the faster of the two in the middle stands for
 * the key, so that the answer is a run that took place. Keys are ranked by
 * tokens a second: with more data parallelism a layer works on more tokens, so
 * layer_s alone would favour whoever does less.
 */
int mfdb_best(mfdb *db, const struct mfdb_filter *filter,
    struct mfdb_runs *runs, char err[MFDB_ERROR_TEXT])
{
    sqlite3_str *sql = sqlite3_str_new(db->sql);

    sqlite3_str_appendall(sql, "SELECT ");
    mfdb_record_columns(&mfdb_run_record, sql, false);
    sqlite3_str_appendall(sql,
        ", runs, least_s, most_s"
        " FROM run JOIN (SELECT id AS chosen, layer_s AS chosen_s,"
        " row_number() OVER (same ORDER BY layer_s, id) AS place,"
        " count(*) OVER same AS runs, min(layer_s) OVER same AS least_s,"
        " max(layer_s) OVER same AS most_s"
        " FROM run WHERE status = 'done' AND layer_s IS NOT NULL AND" FILTER
        " WINDOW same AS (PARTITION BY" MFDB_KEY "))"
        " ON id = chosen WHERE place = (runs + 1) / 2"
        " ORDER BY tokens_per_s DESC NULLS LAST, chosen_s,"
        " started_unix_s DESC, id DESC LIMIT ?5");
    return query(db, sql, filter, runs, err);
}

void mfdb_runs_free(struct mfdb_runs *runs)
{
    if (!runs)
        return;
    free(runs->run);
    free(runs->spread);
    *runs = (struct mfdb_runs){0};
}

int mfdb_find(mfdb *db, const char *prefix, struct mfdb_run *run,
    char err[MFDB_ERROR_TEXT])
{
    sqlite3_str *sql = sqlite3_str_new(db->sql);
    struct mfdb_runs runs = {0};
    sqlite3_stmt *statement;
    int rc = -1;

    sqlite3_str_appendall(sql, "SELECT ");
    mfdb_record_columns(&mfdb_run_record, sql, false);
    sqlite3_str_appendall(sql,
        " FROM run WHERE ?1 <> '' AND"
        " substr(run_id, 1, length(?1)) = lower(?1) LIMIT 2");
    statement = mfdb_sql_prepare_str(db, sql, err);
    if (!statement)
        return -1;
    if (sqlite3_bind_text(statement, 1, prefix, -1, SQLITE_STATIC))
        mfdb_sql_fail(db, err);
    else
        rc = collect(db, statement, &runs, err);
    sqlite3_finalize(statement);
    if (rc == 0 && runs.count == 0)
        rc = mfdb_error(err, "%s: no run '%s'", db->path, prefix);
    else if (rc == 0 && runs.count > 1)
        rc = mfdb_error(
            err, "%s: more than one run starts with '%s'", db->path, prefix);
    else if (rc == 0)
        *run = runs.run[0];
    mfdb_runs_free(&runs);
    return rc;
}
