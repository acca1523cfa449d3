/* SPDX-License-Identifier: BSD-3-Clause
 * A timeline of all phases of all ranks, as Chrome's tracing and Perfetto read
 * it: one process a rank, on the clock of rank 0.
 */
#ifndef MFR_TRACE_H
#define MFR_TRACE_H

#include <stdio.h>

#include "planner/layout/phase.h"
#include "runtime/comm.h"

struct mfr_event {
    double begin, end; /* seconds of this rank's monotonic clock */
    double cpu;        /* of its thread meanwhile */
    int64_t iteration;
    int phase, direction;
};

struct mfr_trace {
    FILE *file; /* rank 0 */
    const char *path;
    int64_t iteration;
    struct mfr_event *event;
    size_t events, room;
    bool lost; /* no memory for an event */
};

/* Opens PATH on rank 0. Collective; all return the same. */
int mfr_trace_open(struct mfr_trace *trace, MPI_Comm world, const char *path,
    struct mf_error *err);
void mfr_trace_add(struct mfr_trace *trace, int phase, int direction,
    double begin, double end, double cpu);
/* Everything into the file; clocks are compared by messages to and fro.
 * Collective; all return the same.
 */
int mfr_trace_write(
    struct mfr_trace *trace, MPI_Comm world, struct mf_error *err);
/* Not collective. */
void mfr_trace_close(struct mfr_trace *trace);

/* Seconds to add to this rank's monotonic clock to have that of rank 0.
 * Collective.
 */
int mfr_trace_offset(MPI_Comm world, double *offset, struct mf_error *err);

#endif
