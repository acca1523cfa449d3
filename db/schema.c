/* SPDX-License-Identifier: BSD-3-Clause
 * The tables, as a list of migrations, each one step of user_version.
 *
 * A step that was released is never edited: a later version is a new step at
 * the end, and MFDB_SCHEMA goes up by one.
 */
#include "db/internal.h"

static const char schema_1[] =
    "CREATE TABLE run ("
    " id INTEGER PRIMARY KEY,"
    " run_id TEXT NOT NULL UNIQUE CHECK (length(run_id) = 36),"
    " started_unix_s REAL NOT NULL CHECK (started_unix_s >= 0),"
    " ended_unix_s REAL CHECK (ended_unix_s >= 0),"
    " status TEXT NOT NULL"
    "  CHECK (status IN ('running', 'done', 'failed', 'lost')),"
    " version TEXT NOT NULL,"
    " user_name TEXT NOT NULL,"
    " command TEXT NOT NULL,"
    " model TEXT NOT NULL,"
    " cluster TEXT NOT NULL,"
    " layout TEXT NOT NULL,"
    " rank_order TEXT NOT NULL,"
    " coupled INTEGER NOT NULL CHECK (coupled IN (0, 1)),"
    " ranks INTEGER CHECK (ranks >= 1),"
    " nodes INTEGER CHECK (nodes >= 1),"
    " node_list TEXT NOT NULL,"
    " job_id TEXT NOT NULL,"
    " backend TEXT NOT NULL,"
    " comm TEXT NOT NULL,"
    " experts_kernel TEXT NOT NULL,"
    " dispatcher TEXT NOT NULL,"
    " device TEXT NOT NULL,"
    " libraries TEXT NOT NULL,"
    " hidden INTEGER CHECK (hidden >= 0),"
    " ffn INTEGER CHECK (ffn >= 0),"
    " experts INTEGER CHECK (experts >= 0),"
    " topk INTEGER CHECK (topk >= 0),"
    " seq_tokens INTEGER CHECK (seq_tokens >= 0),"
    " micro_batch_sequences INTEGER CHECK (micro_batch_sequences >= 0),"
    " vocab INTEGER CHECK (vocab >= 0),"
    " gated INTEGER NOT NULL CHECK (gated IN (0, 1)),"
    " imbalance_gini REAL CHECK (imbalance_gini >= 0),"
    " iterations INTEGER CHECK (iterations >= 0),"
    " layer_s REAL CHECK (layer_s >= 0),"
    " tokens_per_s REAL CHECK (tokens_per_s >= 0),"
    " predicted_s REAL CHECK (predicted_s >= 0),"
    " coefficients TEXT NOT NULL"
    ") STRICT;"
    "CREATE INDEX run_started ON run (started_unix_s);"
    "CREATE TABLE sample ("
    " run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,"
    " sequence INTEGER NOT NULL CHECK (sequence >= 0),"
    " iteration INTEGER NOT NULL CHECK (iteration >= 0),"
    " phase TEXT NOT NULL CHECK (phase <> ''),"
    " direction TEXT NOT NULL CHECK (direction IN ('forward', 'backward')),"
    " min_s REAL CHECK (min_s >= 0),"
    " median_s REAL CHECK (median_s >= 0),"
    " max_s REAL CHECK (max_s >= 0),"
    " slowest_rank INTEGER CHECK (slowest_rank >= 0),"
    " bytes REAL CHECK (bytes >= 0),"
    " flops REAL CHECK (flops >= 0),"
    " predicted_s REAL CHECK (predicted_s >= 0),"
    " PRIMARY KEY (run, sequence)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE coefficient_set ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " name TEXT NOT NULL UNIQUE CHECK (name <> ''),"
    " created_unix_s REAL NOT NULL CHECK (created_unix_s >= 0),"
    " scope TEXT NOT NULL,"
    " error_before REAL CHECK (error_before >= 0),"
    " error_after REAL CHECK (error_after >= 0),"
    " samples INTEGER CHECK (samples >= 0)"
    ") STRICT;"
    "CREATE INDEX coefficient_set_scope ON coefficient_set (scope);"
    "CREATE TABLE coefficient ("
    " set_id INTEGER NOT NULL"
    "  REFERENCES coefficient_set (id) ON DELETE CASCADE,"
    " name TEXT NOT NULL CHECK (name <> ''),"
    " value REAL NOT NULL,"
    " PRIMARY KEY (set_id, name)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE machine_cache ("
    " key TEXT NOT NULL PRIMARY KEY CHECK (key <> ''),"
    " value REAL NOT NULL,"
    " measured_unix_s REAL NOT NULL CHECK (measured_unix_s >= 0)"
    ") STRICT, WITHOUT ROWID;";

/* How runs of one kind are found among many. */
static const char schema_2[] =
    "CREATE INDEX run_kind ON run (model, layout, started_unix_s);";

static const char *const migration[] = {NULL, schema_1, schema_2};

_Static_assert(sizeof migration / sizeof migration[0] == MFDB_SCHEMA + 1,
    "one migration a schema version");

static int migrate(mfdb *db, int64_t version, char *err)
{
    char pragma[96];

    if (version == MFDB_SCHEMA)
        return 0;
    for (int64_t to = version + 1; to <= MFDB_SCHEMA; to++)
        if (mfdb_sql_exec(db, migration[to], err) < 0)
            return -1;
    snprintf(pragma, sizeof pragma,
        "PRAGMA application_id = %d; PRAGMA user_version = %d;",
        MFDB_APPLICATION_ID, MFDB_SCHEMA);
    return mfdb_sql_exec(db, pragma, err);
}

int mfdb_schema_update(mfdb *db, char *err)
{
    int64_t version, objects;

    if (mfdb_sql_exec(db, "BEGIN IMMEDIATE", err) < 0)
        return -1;
    /* Read under the lock: another process may have been first. */
    if (mfdb_sql_integer(db, "PRAGMA user_version", &version, err) < 0 ||
        mfdb_sql_integer(
            db, "SELECT count(*) FROM sqlite_schema", &objects, err) < 0)
        goto fail;
    if (version < 0 || version > MFDB_SCHEMA || (version == 0 && objects > 0)) {
        mfdb_error(
            err, "%s: became another database while it was opened", db->path);
        goto fail;
    }
    if (migrate(db, version, err) < 0 || mfdb_sql_exec(db, "COMMIT", err) < 0)
        goto fail;
    return 0;
fail:
    mfdb_sql_rollback(db);
    return -1;
}
