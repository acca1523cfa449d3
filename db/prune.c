/* SPDX-License-Identifier: BSD-3-Clause
 * Forgetting old runs, and looking for damage.
 */
#include <stdlib.h>
#include <string.h>

#include "db/internal.h"

/* Which runs go. The best and the newest of each key never do, nor what still
 * runs.
 */
static sqlite3_stmt *prepare_doomed(mfdb *db, char *err)
{
    sqlite3_str *sql = sqlite3_str_new(db->sql);

    sqlite3_str_appendall(sql, "SELECT id, ");
    mfdb_record_columns(&mfdb_run_record, sql, false);
    sqlite3_str_appendall(sql,
        " FROM run JOIN (SELECT id AS judged,"
        " row_number() OVER (PARTITION BY" MFDB_KEY
        " ORDER BY started_unix_s DESC, id DESC) AS age,"
        " row_number() OVER (PARTITION BY" MFDB_KEY
        " ORDER BY status <> 'done', layer_s IS NULL, layer_s, id) AS place"
        " FROM run) ON id = judged"
        " WHERE started_unix_s < ?1 AND age > ?2 AND status <> 'running'"
        " AND NOT (place = 1 AND status = 'done')"
        " ORDER BY started_unix_s DESC, id DESC");
    return mfdb_sql_prepare_str(db, sql, err);
}

static int doomed_add(struct mfdb_runs *runs, int64_t **ids, sqlite3_stmt *s)
{
    struct mfdb_run *run;
    int64_t *id;

    /* Grown where the count is a power of two. */
    if ((runs->count & (runs->count - 1)) == 0) {
        const size_t room = runs->count ? runs->count * 2 : 1;

        run = reallocarray(runs->run, room, sizeof *run);
        if (!run)
            return -1;
        runs->run = run;
        id = reallocarray(*ids, room, sizeof *id);
        if (!id)
            return -1;
        *ids = id;
    }
    (*ids)[runs->count] = sqlite3_column_int64(s, 0);
    mfdb_record_read(&mfdb_run_record, s, 1, &runs->run[runs->count++]);
    return 0;
}

static int doomed_find(mfdb *db, const struct mfdb_prune_rule *rule,
    struct mfdb_runs *runs, int64_t **ids, char *err)
{
    sqlite3_stmt *s = prepare_doomed(db, err);
    int rc = -1;

    if (!s)
        return -1;
    if (sqlite3_bind_double(s, 1, rule->before_unix_s) ||
        sqlite3_bind_int64(s, 2, rule->keep_last < 1 ? 1 : rule->keep_last))
        mfdb_sql_fail(db, err);
    else
        while ((rc = mfdb_sql_step(db, s, err)) > 0)
            if (doomed_add(runs, ids, s) < 0) {
                rc = mfdb_error(err, "out of memory");
                break;
            }
    sqlite3_finalize(s);
    return rc;
}

/* Their samples go with them: the foreign key cascades. */
static int delete_all(mfdb *db, const int64_t *id, size_t count, char *err)
{
    sqlite3_stmt *s = mfdb_sql_prepare(db, "DELETE FROM run WHERE id = ?", err);
    int rc = s ? 0 : -1;

    for (size_t i = 0; rc == 0 && i < count; i++) {
        if (sqlite3_bind_int64(s, 1, id[i]))
            rc = mfdb_sql_fail(db, err);
        else
            rc = mfdb_sql_step(db, s, err);
        if (rc == 0 && sqlite3_reset(s))
            rc = mfdb_sql_fail(db, err);
    }
    sqlite3_finalize(s);
    return rc;
}

int mfdb_prune(mfdb *db, const struct mfdb_prune_rule *rule,
    struct mfdb_runs *runs, char err[MFDB_ERROR_TEXT])
{
    int64_t *ids = NULL;
    int rc;

    *runs = (struct mfdb_runs){0};
    if (mfdb_begin(db, err))
        return -1;
    rc = doomed_find(db, rule, runs, &ids, err);
    if (rc == 0 && !rule->dry_run)
        rc = delete_all(db, ids, runs->count, err);
    free(ids);
    if (mfdb_end(db, &rc, err) || rc) {
        mfdb_runs_free(runs);
        return -1;
    }
    /* The room is given back where the disk has room to do that. */
    if (!rule->dry_run && runs->count > 0 &&
        mfdb_sql_exec(db, "VACUUM", db->warning) == 0)
        db->warning[0] = '\0';
    return 0;
}

/* ---- damage ---- */

struct finding {
    mfdb_problem *told;
    void *arg;
    int64_t count;
};

static void tell(struct finding *f, const char *text)
{
    f->count++;
    f->told(f->arg, text);
}

/* Rows of a pragma that says "ok", or nothing, when all is well. */
static int ask(mfdb *db, const char *pragma, const char *what,
    struct finding *f, char *err)
{
    sqlite3_stmt *s = mfdb_sql_prepare(db, pragma, err);
    char line[MFDB_ERROR_TEXT];
    int rc;

    if (!s)
        return -1;
    while ((rc = mfdb_sql_step(db, s, err)) > 0) {
        const char *text = (const char *)sqlite3_column_text(s, 0);

        if (text && strcmp(text, "ok") == 0)
            continue;
        snprintf(line, sizeof line, "%s: %s", what, text ? text : "?");
        tell(f, line);
    }
    sqlite3_finalize(s);
    return rc;
}

/* Each run within the rules that a spool has to keep. */
static int ask_runs(mfdb *db, struct finding *f, char *err)
{
    struct mfdb_runs runs;
    char line[MFDB_ERROR_TEXT], text[MFDB_ERROR_TEXT];

    if (mfdb_list(db, NULL, &runs, err))
        return -1;
    for (size_t i = 0; i < runs.count; i++) {
        const struct mfdb_run *run = &runs.run[i];

        if (mfdb_record_check(&mfdb_run_record, run, text) == 0) {
            if (mfdb_uuid_ok(run->run_id))
                continue;
            mfdb_error(text, "run: run_id is none");
        }
        snprintf(line, sizeof line, "%.40s: %.400s", run->run_id, text);
        tell(f, line);
    }
    mfdb_runs_free(&runs);
    return 0;
}

int mfdb_check(
    mfdb *db, mfdb_problem *told, void *arg, char err[MFDB_ERROR_TEXT])
{
    struct finding f = {told, arg, 0};

    if (ask(db, "PRAGMA integrity_check", "integrity", &f, err))
        return -1;
    /* Of a damaged file no more is asked. */
    if (f.count == 0 &&
        (ask(db, "PRAGMA foreign_key_check", "without its run", &f, err) ||
            ask_runs(db, &f, err)))
        return -1;
    return f.count > 0;
}
