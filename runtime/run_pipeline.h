/* SPDX-License-Identifier: BSD-3-Clause
 * Time micro batches through the pipeline stages of a run.
 */
#ifndef MFR_RUN_PIPELINE_H
#define MFR_RUN_PIPELINE_H

#include "runtime/pipeline.h"

/* Medians over steps, of the slowest rank. */
struct mfr_pipeline_times {
    int64_t batches, layers; /* 0: no pipeline was run */
    double step_s;           /* forward and backward of all micro batches */
    double send_s[MF_DIRECTIONS]; /* of it receiving and sending */
};

struct mfr_run;

/* With --pipeline, after the iterations. Collective; all return the same. */
int mfr_run_pipeline(struct mfr_run *run, struct mf_error *err);

#endif
