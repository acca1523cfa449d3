/* SPDX-License-Identifier: BSD-3-Clause
 * moefold-run --probe: how fast two ranks exchange data.
 */
#ifndef MFR_PROBE_H
#define MFR_PROBE_H

#include <mpi.h>

#include "runtime/options.h"

/* Measure between the first and the last rank, over what rows of a layer take
 * between them: from device to device where there are devices that can, else
 * through host memory; into the peer's memory where both are on one node. One
 * JSON line on rank 0: bytes_per_s (each rank, one direction, while both send),
 * latency_s (half a round trip of one byte, or one exchange between devices),
 * via, device ("cpu", or its name) and driver (is there one for GPUs on rank
 * 0's node?). Collective over WORLD, which has 2 ranks or more; takes under a
 * second.
 */
int mfr_probe_main(
    MPI_Comm world, const struct mfr_options *options, struct mf_error *err);

#endif
