/* SPDX-License-Identifier: BSD-3-Clause
 * moefold-run --verify-all: every layout of the job's world size in one job.
 */
#ifndef MFR_WALK_H
#define MFR_WALK_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "planner/layout/layout.h"
#include "runtime/device.h"
#include "runtime/layer.h"

struct mfr_walk_options {
    bool json;  /* one document, else lines */
    bool quiet; /* no count when all is well */
    enum mfk_gemm kernel;
    uint64_t seed;
    int64_t one_in; /* of so many layouts in a row, drawn by seed; 0: all */
    enum mfr_fault fault;
    enum mf_dispatcher dispatcher;
    const struct mfr_transport *transport;
    const char *backend; /* as mfr_device_choose takes it */
    enum mfr_comm_kind comm;
    bool padded; /* exchanges between devices */
};

/* Call VISIT for every layout of WORLD: all factorings tp*cp*dp*pp, with
 * etp*ep*edp*pp of the same pp, by ascending pp. Ends early with what VISIT
 * returns when that is not 0.
 */
int mfr_walk_layouts(int64_t world,
    int (*visit)(const struct mf_layout *layout, void *data), void *data);

/* The whole command; rank 0 prints one line a layout that failed and a count.
 * Collective over WORLD, all ranks return the same. *HELD: no layout failed.
 */
int mfr_walk_main(MPI_Comm world, const struct mfr_walk_options *options,
    bool *held, struct mf_error *err);

#endif
