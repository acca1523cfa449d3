/* SPDX-License-Identifier: BSD-3-Clause
 * Past runs as JSON and as a table.
 */
#ifndef MF_HISTORY_H
#define MF_HISTORY_H

#include <jansson.h>

#include "db/db.h"

/* predicted / measured - 1; NAN when either is not known. */
double mf_history_error(double predicted_s, double measured_s);

/* One run with the keys of DESIGN's history, and more. NULL: no memory. */
json_t *mf_history_run_json(const struct mfdb_run *run);
/* {runs: [...]} */
json_t *mf_history_runs_json(const struct mfdb_runs *runs);
/* [{phase, direction, samples, ...}] */
json_t *mf_history_phases_json(const struct mfdb_phases *phases);

/* A line a run, predicted beside measured. */
void mf_history_table(const struct mfdb_runs *runs);
/* All of one run. */
void mf_history_show(
    const struct mfdb_run *run, const struct mfdb_phases *phases);

#endif
