/* SPDX-License-Identifier: BSD-3-Clause
 * Past runs as JSON and as a table.
 */
#ifndef MF_HISTORY_H
#define MF_HISTORY_H

#include <jansson.h>

#include "db/db.h"

/* predicted / measured - 1; NAN when either is not known. */
double mf_history_error(double predicted_s, double measured_s);

/* What is not known is null; bytes that are no UTF-8 become '?'. */
json_t *mf_history_text(const char *value);
json_t *mf_history_real(double value);

/* One run with the keys of DESIGN's history, and more. NULL: no memory. */
json_t *mf_history_run_json(const struct mfdb_run *run);
/* {runs: [...]} */
json_t *mf_history_runs_json(const struct mfdb_runs *runs);
/* [{phase, direction, samples, ...}] */
json_t *mf_history_phases_json(const struct mfdb_phases *phases);

/* Cells of tables: what is not known is "-", in the same width. */
enum { MF_HISTORY_CELL = 320 };

/* TEXT without what could steer a terminal. */
const char *mf_history_plain(const char *text, char cell[MF_HISTORY_CELL]);
const char *mf_history_figure(
    int width, int digits, double value, char cell[MF_HISTORY_CELL]);
/* +12.3%, 9 wide. */
const char *mf_history_percent(double fraction, char cell[MF_HISTORY_CELL]);

/* A line a run, predicted beside measured. */
void mf_history_table(const struct mfdb_runs *runs);
/* All of one run. */
void mf_history_show(
    const struct mfdb_run *run, const struct mfdb_phases *phases);

/* Bars of each phase's time on the slowest rank. */
void mf_history_plot(const struct mfdb_phases *phases);

#endif
