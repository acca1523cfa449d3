/* SPDX-License-Identifier: BSD-3-Clause
 * Clusters and nodes from files, told apart by what is in them.
 */
#ifndef MF_CLUSTER_FILE_H
#define MF_CLUSTER_FILE_H

#include "planner/layout/cluster.h"

/* slurm.conf, topology.conf, gres.conf, scontrol's output, hwloc or NCCL XML,
 * nvidia-smi topo -m, or what `moefold cluster --json` printed. MF_INVALID,
 * naming file, place and mend.
 */
int mf_cluster_file(
    const char *path, struct mf_cluster *cluster, struct mf_error *err);

#endif
