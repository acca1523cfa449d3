/* SPDX-License-Identifier: BSD-3-Clause
 * moefold-run --probe: how fast two ranks exchange data.
 */
#ifndef MFR_PROBE_H
#define MFR_PROBE_H

#include <mpi.h>

#include "planner/layout/error.h"

/* Measure between ranks 0 and 1 and print one JSON line on rank 0:
 * bytes_per_s (each rank, one direction, while both send) and latency_s (half
 * a round trip of one byte). Collective over WORLD, which has 2 ranks or more;
 * takes under a second.
 */
int mfr_probe_main(MPI_Comm world, struct mf_error *err);

#endif
