/* SPDX-License-Identifier: BSD-3-Clause
 * What nccl-tests printed, taken for the rate of a cluster's tier.
 */
#ifndef MF_HISTORY_NCCL_H
#define MF_HISTORY_NCCL_H

#include <stdio.h>

#include "planner/cli/cli.h"

/* FILE as all_reduce_perf, all_gather_perf, reduce_scatter_perf or
 * alltoall_perf print it; --cluster says whose it is. The best bus bandwidth
 * becomes that of the smallest tier that holds all ranks: kept in the history,
 * as what `cluster --probe` measures.
 */
int mf_history_import_nccl(
    const struct mf_cli *cli, FILE *file, struct mf_error *err);

#endif
