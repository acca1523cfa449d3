/* SPDX-License-Identifier: BSD-3-Clause
 * A run's way into the history.
 */
#include "runtime/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void warn(
    struct mfr_history *history, const char *what, const char *text)
{
    if (history->warning[0])
        return;
    snprintf(history->warning, sizeof history->warning, "%s%s", what, text);
}

static void state(struct mfr_history *history, const char *text)
{
    snprintf(history->state, sizeof history->state, "%s", text);
}

/* Give up the spool, but not the run. */
static void drop(struct mfr_history *history)
{
    mfdb_spool_close(history->spool);
    history->spool = NULL;
    state(history, "none");
}

void mfr_history_begin(struct mfr_history *history, const struct mfdb_run *run)
{
    char err[MFDB_ERROR_TEXT] = "";
    const char *folder = history->run_dir ? history->run_dir : ".";
    char *beside = NULL;

    state(history, "none");
    if (!history->wanted)
        return;
    history->db = history->db_option ? strdup(history->db_option)
                                     : mfdb_default_path(err);
    if (history->db)
        beside = mfdb_spool_folder(history->db);
    if (beside)
        history->spool = mfdb_spool_create(beside, run, err);
    free(beside);
    if (!history->spool) {
        warn(history, "", err[0] ? err : "out of memory");
        history->spool = mfdb_spool_create(folder, run, err);
    }
    if (history->spool)
        history->spool_path = strdup(mfdb_spool_path(history->spool));
    if (history->spool)
        state(history, "spooled");
}

static struct mfdb_sample sample(const struct mfr_iteration *it,
    int64_t iteration, int phase, int direction, const struct mf_cost *cost)
{
    const struct mfr_summary *sum = &it->phase[phase][direction];
    struct mfdb_sample s = {
        .iteration = iteration,
        .min_s = sum->min_s,
        .median_s = sum->median_s,
        .max_s = sum->max_s,
        .slowest_rank = sum->slowest_rank,
        .bytes = sum->bytes,
        .flops = sum->flops,
        .predicted_s = cost->phase_s[phase][direction],
    };

    snprintf(
        s.phase, sizeof s.phase, "%s", mf_phase_name((enum mf_phase)phase));
    snprintf(s.direction, sizeof s.direction, "%s",
        mf_direction_name((enum mf_direction)direction));
    return s;
}

static int append_iteration(struct mfr_history *history,
    const struct mfr_iteration *it, int64_t iteration,
    const struct mf_cost *cost, char *err)
{
    struct mfdb_sample samples[MF_PHASES * MF_DIRECTIONS];
    size_t n = 0;

    for (int phase = 0; phase < MF_PHASES; phase++)
        for (int d = 0; d < MF_DIRECTIONS; d++)
            if (!isnan(it->phase[phase][d].max_s))
                samples[n++] = sample(it, iteration, phase, d, cost);
    return mfdb_spool_append(history->spool, samples, n, err);
}

void mfr_history_append(struct mfr_history *history,
    const struct mfr_timing *timing, int64_t first, int64_t last,
    const struct mf_cost *cost)
{
    char err[MFDB_ERROR_TEXT] = "";

    for (int64_t i = first; history->spool && i < last; i++)
        if (append_iteration(history, &timing->iteration[i], i, cost, err)) {
            warn(history, "", err);
            drop(history);
        }
}

static int merge(const char *path, const char *spool, char *err)
{
    mfdb *db = mfdb_open(path, MFDB_UPDATE, err);
    int rc;

    if (!db)
        return -1;
    /* Opening merges what ended runs left behind, and this one has ended. */
    rc = mfdb_merge(db, spool, err);
    mfdb_close(db);
    return rc;
}

void mfr_history_end(struct mfr_history *history, const struct mfdb_run *run)
{
    char err[MFDB_ERROR_TEXT] = "";

    if (!history->spool)
        return;
    if (mfdb_spool_finish(history->spool, run, err)) {
        warn(history, "", err);
        drop(history);
        return;
    }
    mfdb_spool_close(history->spool);
    history->spool = NULL;
    if (!history->db || !history->spool_path)
        return;
    if (merge(history->db, history->spool_path, err))
        warn(history, "", err);
    else
        state(history, "merged");
}

void mfr_history_free(struct mfr_history *history)
{
    mfdb_spool_close(history->spool);
    free(history->db);
    free(history->spool_path);
}
