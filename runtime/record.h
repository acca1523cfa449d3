/* SPDX-License-Identifier: BSD-3-Clause
 * A run's way into the history: a spool while it runs, the database at its
 * end. What goes wrong here is a warning, never the end of a run. Rank 0 only.
 */
#ifndef MFR_RECORD_H
#define MFR_RECORD_H

#include "db/db.h"
#include "planner/layout/plan.h"
#include "runtime/timing.h"

struct mfr_history {
    bool wanted;
    const char *db_option; /* --db, or NULL */
    const char *run_dir;   /* --run-dir, or NULL */
    char *db;              /* path, NULL: none */
    mfdb_spool *spool;     /* NULL: no history is kept */
    char *spool_path;      /* once it is begun */
    char state[16];        /* none, spooled, merged */
    char warning[1024];    /* the first one; empty: all is well */
};

/* Begin the spool beside the database, else in the run's folder. */
void mfr_history_begin(struct mfr_history *history, const struct mfdb_run *run);
/* Iterations FIRST up to LAST of TIMING; COST has the predictions. */
void mfr_history_append(struct mfr_history *history,
    const struct mfr_timing *timing, int64_t first, int64_t last,
    const struct mf_cost *cost);
/* The run's last record, and into the database. */
void mfr_history_end(struct mfr_history *history, const struct mfdb_run *run);
void mfr_history_free(struct mfr_history *history);

#endif
