/* SPDX-License-Identifier: BSD-3-Clause
 * From a plan file to a shape that the layer executes, or why it can't.
 */
#ifndef MFR_SETUP_H
#define MFR_SETUP_H

#include <mpi.h>

#include "planner/layout/plan.h"
#include "runtime/comm.h"
#include "runtime/shape.h"

/* Rank 0 reads FILE and all ranks get the plan (free with mf_plan_free), so
 * that only rank 0's node needs the file. Collective; all return the same.
 */
int mfr_setup_plan(MPI_Comm world, const char *file, struct mf_plan *plan,
    struct mf_error *err);

/* What this rank was told to do, or chose, in one line: the same on all ranks,
 * or the first that differs is named. Collective; all return the same.
 */
int mfr_setup_same(MPI_Comm world, const char *choices, struct mf_error *err);

/* Layout PICK (from 1) of PLAN for a job of RANKS ranks. */
int mfr_setup_pick(const struct mf_plan *plan, int64_t pick, int64_t ranks,
    const struct mf_plan_entry **entry, struct mf_error *err);

/* The shape of ENTRY's layer. MF_INVALID says which part of the model or which
 * setting the runtime does not execute.
 */
int mfr_setup_shape(const struct mf_plan *plan,
    const struct mf_plan_entry *entry, struct mfr_shape *shape,
    struct mf_error *err);

/* Bytes needed on each node, summed over its ranks, against what is free
 * there. Collective over WORLD; all return the same.
 */
int mfr_setup_memory(MPI_Comm world, int64_t bytes, struct mf_error *err);

#endif
