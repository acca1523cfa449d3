/* SPDX-License-Identifier: BSD-3-Clause
 * What a description of one node tells, whatever its format: the GPUs, what
 * joins them, and the network adapters.
 */
#ifndef MF_CLUSTER_FACTS_H
#define MF_CLUSTER_FACTS_H

#include "planner/cluster_parts.h"

#define MF_FACTS_GPUS_MAX 64

struct mf_facts {
    char host[256];                 /* empty: not said */
    int64_t gpus;                   /* MF_GPUS_UNKNOWN: cannot be counted */
    const struct mf_device *device; /* NULL: not known */
    char model[64];                 /* as written; empty: not said */
    double memory_bytes;            /* of a GPU; NAN: not said */
    /* Bytes a second from GPU to GPU, one direction, over NVLink or xGMI, and
     * from a GPU into switches that reach all others; 0: none.
     */
    double link[MF_FACTS_GPUS_MAX][MF_FACTS_GPUS_MAX];
    double fabric[MF_FACTS_GPUS_MAX];
    bool links_known; /* else those of the device hold */
    enum mf_how link_how;
    char link_from[128];
    bool xgmi;
    double pcie_bytes_per_s; /* of a GPU; NAN: not said */
    double nic_bytes_per_s;  /* of all adapters; NAN: not known */
    int64_t nics;
    enum mf_how nic_how;
    char nic_from[128];
    int numa_nodes;                  /* with cores; 0: not said */
    int32_t numa[MF_FACTS_GPUS_MAX]; /* of a GPU; -1: not said */
};

/* All unknown. */
void mf_facts_init(struct mf_facts *facts);

/* A cluster of the one node that FACTS, read from the file at PATH, describe:
 * tiers nvlink or xgmi (the largest runs of GPUs that are joined each to each),
 * node where that is less than all, and network where there are adapters.
 */
int mf_facts_cluster(const struct mf_facts *facts, const char *path,
    const char *kind, struct mf_cluster *cluster, struct mf_error *err);

#endif
