/* SPDX-License-Identifier: BSD-3-Clause
 * What a run prints: predicted beside measured. Rank 0 only.
 */
#ifndef MFR_REPORT_H
#define MFR_REPORT_H

#include "db/db.h"
#include "planner/layout/plan.h"
#include "runtime/record.h"
#include "runtime/run_pipeline.h"
#include "runtime/timing.h"

struct mfr_report {
    const struct mfdb_run *run;
    const struct mf_cost *cost;
    const struct mfr_history *history;
    struct mfr_timing_report times;            /* measured */
    const struct mfr_pipeline_times *pipeline; /* NULL: none */
    const char *nodes; /* as mfr_machine_node takes them */
    const char *transport;
    const char *note; /* NULL: none */
};

/* Print on standard output; -1 with ERR when that fails. */
int mfr_report_json(const struct mfr_report *report, struct mf_error *err);
int mfr_report_table(const struct mfr_report *report, struct mf_error *err);

#endif
