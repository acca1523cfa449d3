/* SPDX-License-Identifier: BSD-3-Clause
 * What `nvidia-smi topo -m` prints.
 */
#ifndef MF_CLUSTER_SMI_H
#define MF_CLUSTER_SMI_H

#include "planner/layout/cluster.h"

/* Does DATA hold such a table? */
bool mf_smi_is(const char *data);

/* A cluster of the one node that the table in DATA, read from PATH, shows.
 * DATA is changed. The table names no GPU: rates are those of the generation
 * that has so many links, and marked as assumed.
 */
int mf_smi_cluster(const char *path, char *data, struct mf_cluster *cluster,
    struct mf_error *err);

#endif
