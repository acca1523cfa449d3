/* SPDX-License-Identifier: BSD-3-Clause
 * A running stopwatch over a pass of a layer: each mark ends a phase and
 * begins the next. Where all work is queued on a device, its own clock is read
 * once, after the pass, so that timing adds no waiting.
 */
#ifndef MFR_WATCH_H
#define MFR_WATCH_H

#include <mpi.h>

#include "runtime/layer.h"

struct mfr_watch {
    struct mfr_times *times;
    enum mf_direction direction;
    double at, cpu;
    struct mfk_device *device; /* NULL: the host's clock */
    int marks;
    enum mf_phase phase[MFK_STAMPS];
    bool lost; /* a stamp failed */
};

/* DEVICE NULL: the host's clock. Times of the pass begin empty. */
void mfr_watch_start(struct mfr_watch *watch, struct mfr_times *times,
    enum mf_direction direction, struct mfk_device *device);
/* For what runs after a pass and adds to its times. */
void mfr_watch_resume(struct mfr_watch *watch, struct mfr_times *times,
    enum mf_direction direction, struct mfk_device *device);
void mfr_watch_mark(
    struct mfr_watch *watch, enum mf_phase phase, double bytes, double flops);
/* An exchange over COMM follows, as part of PHASE: where the times ask for it,
 * meet its ranks first, and count that as waiting.
 */
int mfr_watch_meet(struct mfr_watch *watch, MPI_Comm comm, enum mf_phase phase,
    struct mf_error *err);
/* The device's clock into the times; waits for it. */
int mfr_watch_end(struct mfr_watch *watch, struct mf_error *err);

#endif
