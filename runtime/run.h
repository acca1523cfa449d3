/* SPDX-License-Identifier: BSD-3-Clause
 * moefold-run PLAN: run the layer of a plan, time it, record it.
 */
#ifndef MFR_RUN_H
#define MFR_RUN_H

#include <mpi.h>

#include "runtime/options.h"

/* Collective over WORLD. All ranks return the same, unless *ALONE is set: then
 * this rank failed by itself while others may wait for it, and only MPI_Abort
 * helps. COMMAND is the command line, for the record.
 */
int mfr_run_main(MPI_Comm world, const struct mfr_options *options,
    const char *command, bool *alone, struct mf_error *err);

#endif
