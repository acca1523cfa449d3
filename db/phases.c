/* SPDX-License-Identifier: BSD-3-Clause
 * The phases of a run: medians over its iterations.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "db/internal.h"

enum { MIN_S, MEDIAN_S, MAX_S, BYTES, FLOPS, PREDICTED_S, FIGURES };

/* The values of one phase and direction, while its samples come by. */
struct group {
    double *value[FIGURES];
    size_t count[FIGURES], samples, room;
};

static void group_free(struct group *group)
{
    for (int i = 0; i < FIGURES; i++)
        free(group->value[i]);
}

static int group_grow(struct group *group)
{
    size_t room = group->room ? group->room * 2 : 64;

    for (int i = 0; i < FIGURES; i++) {
        double *value = reallocarray(group->value[i], room, sizeof *value);

        if (!value)
            return -1;
        group->value[i] = value;
    }
    group->room = room;
    return 0;
}

static int group_add(struct group *group, const struct mfdb_sample *sample)
{
    const double figure[FIGURES] = {sample->min_s, sample->median_s,
        sample->max_s, sample->bytes, sample->flops, sample->predicted_s};

    if (group->samples == group->room && group_grow(group) < 0)
        return -1;
    group->samples++;
    for (int i = 0; i < FIGURES; i++)
        if (!isnan(figure[i]))
            group->value[i][group->count[i]++] = figure[i];
    return 0;
}

/* Close the group into the last of PHASES and make it ready for the next. */
static void group_close(struct group *group, struct mfdb_phases *phases)
{
    struct mfdb_phase *phase;
    double middle[FIGURES];

    if (phases->count == 0)
        return;
    phase = &phases->phase[phases->count - 1];
    for (int i = 0; i < FIGURES; i++) {
        middle[i] = mfdb_median(group->value[i], group->count[i]);
        group->count[i] = 0;
    }
    phase->samples = (int64_t)group->samples;
    phase->min_s = middle[MIN_S];
    phase->median_s = middle[MEDIAN_S];
    phase->max_s = middle[MAX_S];
    phase->bytes = middle[BYTES];
    phase->flops = middle[FLOPS];
    phase->predicted_s = middle[PREDICTED_S];
    group->samples = 0;
}

static int start_phase(struct mfdb_phases *phases, struct group *group,
    const struct mfdb_sample *sample)
{
    struct mfdb_phase *phase =
        phases->count ? &phases->phase[phases->count - 1] : NULL;

    if (phase && strcmp(phase->phase, sample->phase) == 0 &&
        strcmp(phase->direction, sample->direction) == 0)
        return 0;
    group_close(group, phases);
    phase = reallocarray(phases->phase, phases->count + 1, sizeof *phase);
    if (!phase)
        return -1;
    phases->phase = phase;
    phase = &phase[phases->count++];
    memset(phase, 0, sizeof *phase);
    memcpy(phase->phase, sample->phase, sizeof phase->phase);
    memcpy(phase->direction, sample->direction, sizeof phase->direction);
    return 0;
}

/* Phases in the order in which the run first timed them. */
static sqlite3_stmt *prepare(mfdb *db, char *err)
{
    sqlite3_str *sql = sqlite3_str_new(db->sql);

    sqlite3_str_appendall(sql, "SELECT ");
    mfdb_record_columns(&mfdb_sample_record, sql, false);
    sqlite3_str_appendall(sql,
        " FROM (SELECT *, min(sequence) OVER (PARTITION BY phase, direction)"
        " AS first FROM sample WHERE run ="
        " (SELECT id FROM run WHERE run_id = ?)) ORDER BY first, sequence");
    return mfdb_sql_prepare_str(db, sql, err);
}

int mfdb_phases_of(mfdb *db, const char *run_id, struct mfdb_phases *phases,
    char err[MFDB_ERROR_TEXT])
{
    sqlite3_stmt *statement = prepare(db, err);
    struct group group = {0};
    struct mfdb_sample sample;
    int rc = -1;

    *phases = (struct mfdb_phases){0};
    if (!statement)
        return -1;
    if (sqlite3_bind_text(statement, 1, run_id, -1, SQLITE_STATIC)) {
        mfdb_sql_fail(db, err);
        goto out;
    }
    while ((rc = mfdb_sql_step(db, statement, err)) > 0) {
        mfdb_record_read(&mfdb_sample_record, statement, 0, &sample);
        if (start_phase(phases, &group, &sample) < 0 ||
            group_add(&group, &sample) < 0) {
            rc = mfdb_error(err, "out of memory");
            goto out;
        }
    }
    group_close(&group, phases);
out:
    sqlite3_finalize(statement);
    group_free(&group);
    if (rc < 0)
        mfdb_phases_free(phases);
    return rc;
}

void mfdb_phases_free(struct mfdb_phases *phases)
{
    if (!phases)
        return;
    free(phases->phase);
    *phases = (struct mfdb_phases){0};
}
