/* SPDX-License-Identifier: BSD-3-Clause
 * Before any work: does every rank sit where the launcher's map says?
 */
#ifndef MFR_PREFLIGHT_H
#define MFR_PREFLIGHT_H

#include <mpi.h>

#include "planner/layout/error.h"

/* The variable that launchers hand the map in. */
#define MFR_PREFLIGHT_MAP "MOEFOLD_MAP"

/* MAP names the nodes of the ranks in their order, each with how many it
 * holds: "n1*8,n3*8". NULL or empty: there is nothing to hold ranks against.
 * Collective over WORLD and guarded by its timeout. MF_NO with the first rank
 * that is in the wrong place, at the wrong number of its node, or that shares
 * its GPU (as Slurm shows them) with another; or when the number of ranks is
 * another. MF_INVALID: MAP is no such list.
 */
int mfr_preflight(MPI_Comm world, const char *map, struct mf_error *err);

#endif
