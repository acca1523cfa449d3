/* SPDX-License-Identifier: BSD-3-Clause
 * What `nvidia-smi topo -m` prints.
 */
#ifndef MF_CLUSTER_SMI_H
#define MF_CLUSTER_SMI_H

#include "planner/cluster_facts.h"

/* Does DATA hold such a table? */
bool mf_smi_is(const char *data);

/* A cluster of the one node that the table in DATA, read from PATH, shows.
 * DATA is changed. The table names no GPU: rates are those of the generation
 * that has so many links, and marked as assumed.
 */
int mf_smi_cluster(const char *path, char *data, struct mf_cluster *cluster,
    struct mf_error *err);

/* Links and adapters of the table in DATA, which is changed, into FACTS, whose
 * gpus and device are known from elsewhere. A table of other GPUs says nothing.
 */
void mf_smi_links(char *data, struct mf_facts *facts);

#endif
