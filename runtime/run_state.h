/* SPDX-License-Identifier: BSD-3-Clause
 * One run in progress; for the files of moefold-run's main command only.
 */
#ifndef MFR_RUN_STATE_H
#define MFR_RUN_STATE_H

#include "runtime/checkpoint.h"
#include "runtime/device.h"
#include "runtime/options.h"
#include "runtime/record.h"
#include "runtime/run_pipeline.h"
#include "runtime/timing.h"
#include "runtime/trace.h"

struct mfr_run {
    MPI_Comm world;
    int rank, ranks;
    const struct mfr_options *options;
    bool *alone;
    struct mf_plan plan;
    bool have_plan;
    const struct mf_plan_entry *entry;
    struct mfr_shape shape;
    struct mfr_comms comms;
    bool have_comms;
    struct mfr_device device;             /* none: the CPU */
    struct mfr_device_comms device_comms; /* none: MPI */
    mfr_layer *layer;
    float *x, *y, *dy, *dx;     /* [tokens][hidden] */
    struct mfr_checkpoint from; /* with --load */
    struct mfr_timing timing;
    struct mfr_trace trace;             /* with --trace */
    struct mfr_pipeline_times pipeline; /* with --pipeline */
    struct mfr_history history;
    struct mfdb_run record; /* rank 0 */
    char *nodes;            /* of ranks, rank 0 */
};

/* Of the expert loads in a stage, the largest over stages. Collective. */
int mfr_run_imbalance(
    struct mfr_run *run, double *imbalance, struct mf_error *err);

/* What is known before the first iteration, and the spool. Collective. */
int mfr_run_record_begin(
    struct mfr_run *run, const char *command, struct mf_error *err);

/* What was measured, into the record and onto standard output. Rank 0. */
int mfr_run_record_end(
    struct mfr_run *run, double imbalance, struct mf_error *err);

#endif
