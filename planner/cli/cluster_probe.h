/* SPDX-License-Identifier: BSD-3-Clause
 * moefold cluster --probe: tiers measured with MPI.
 */
#ifndef MF_CLI_CLUSTER_PROBE_H
#define MF_CLI_CLUSTER_PROBE_H

#include "planner/layout/cluster.h"

/* Measure the tiers of CLUSTER between two ranks each, inside a Slurm job on
 * its nodes: between nodes, and inside one between ranks that share it. Put the
 * figures into CLUSTER and keep them in the history at DB_FILE (NULL: by
 * default). CPU ranks tell nothing of the links of GPUs that moefold-run cannot
 * use: a warning. CPU ranks of this machine are measured when they are read, so
 * for them there is nothing to do. MF_INVALID outside a job.
 */
int mf_cluster_probe(
    struct mf_cluster *cluster, const char *db_file, struct mf_error *err);

#endif
