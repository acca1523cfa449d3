/* SPDX-License-Identifier: BSD-3-Clause
 * The samples of a run as they are.
 */
#include <stdlib.h>

#include "db/internal.h"

static int add(struct mfdb_samples *samples, size_t *room, sqlite3_stmt *s)
{
    if (samples->count == *room) {
        size_t more = *room ? *room * 2 : 256;
        struct mfdb_sample *sample =
            reallocarray(samples->sample, more, sizeof *sample);

        if (!sample)
            return -1;
        samples->sample = sample;
        *room = more;
    }
    mfdb_record_read(
        &mfdb_sample_record, s, 0, &samples->sample[samples->count++]);
    return 0;
}

int mfdb_samples_of(mfdb *db, const char *run_id, struct mfdb_samples *samples,
    char err[MFDB_ERROR_TEXT])
{
    sqlite3_str *sql = sqlite3_str_new(db->sql);
    sqlite3_stmt *statement;
    size_t room = 0;
    int rc = -1;

    *samples = (struct mfdb_samples){0};
    sqlite3_str_appendall(sql, "SELECT ");
    mfdb_record_columns(&mfdb_sample_record, sql, false);
    sqlite3_str_appendall(sql,
        " FROM sample WHERE run = (SELECT id FROM run WHERE run_id = ?)"
        " ORDER BY sequence");
    statement = mfdb_sql_prepare_str(db, sql, err);
    if (!statement)
        return -1;
    if (sqlite3_bind_text(statement, 1, run_id, -1, SQLITE_STATIC))
        mfdb_sql_fail(db, err);
    else
        while ((rc = mfdb_sql_step(db, statement, err)) > 0)
            if (add(samples, &room, statement) < 0) {
                rc = mfdb_error(err, "out of memory");
                break;
            }
    sqlite3_finalize(statement);
    if (rc < 0)
        mfdb_samples_free(samples);
    return rc;
}

void mfdb_samples_free(struct mfdb_samples *samples)
{
    if (!samples)
        return;
    free(samples->sample);
    *samples = (struct mfdb_samples){0};
}
