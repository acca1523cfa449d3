/* SPDX-License-Identifier: BSD-3-Clause
 * What the readers of clusters share among themselves: one function a kind of
 * source, the table of devices, and the order of nodes in a network.
 */
#ifndef MF_CLUSTER_PARTS_H
#define MF_CLUSTER_PARTS_H

#include "planner/cluster_read.h"

/* Published figures of a device and of what joins it to its peers. */
struct mf_device {
    const char *key;   /* as a GRES type names it, lower case: "h100" */
    const char *model; /* "H100" */
    double memory_bytes, bf16_flops, hbm_bytes_per_s;
    const char *link;                         /* name of the innermost tier */
    double link_bytes_per_s, nic_bytes_per_s; /* a device, one direction */
    const char *from;
};

/* Latencies of one hop, and where they come from. */
#define MF_LINK_LATENCY_S 3.4e-6
#define MF_NETWORK_LATENCY_S 14e-6
#define MF_LATENCY_FROM "NCCL tuning.cc, Simple protocol"

/* The device that a GRES type such as "h100" or "nvidia_h100_80gb_hbm3" names,
 * or NULL. Variants with other links (pcie, nvl) are not taken for it.
 */
const struct mf_device *mf_device_find(const char *type);

/* The GPU figures of DEVICE with their sources. */
int mf_device_describe(struct mf_cluster *cluster,
    const struct mf_device *device, struct mf_error *err);

/* Append a tier with its figures and their sources. NAN: not known, no
 * source.
 */
int mf_cluster_add_tier(struct mf_cluster *cluster, const struct mf_tier *tier,
    enum mf_how how, const char *rate_from, const char *latency_from,
    struct mf_error *err);

/* All preset names, joined by ", ". */
void mf_preset_names(char *text, size_t size);
bool mf_preset_is(const char *source);
/* "dgx-h100:16", or "dgx-h100" with as many nodes as WORLD needs. */
int mf_preset_read(const char *source, int64_t world,
    struct mf_cluster *cluster, struct mf_error *err);

/* This machine as ASK->world CPU ranks, or one a core. */
int mf_local_read(const struct mf_cluster_ask *ask, struct mf_cluster *cluster,
    struct mf_error *err);

/* slurm.conf as Slurm looks for it: $SLURM_CONF, else the built-in path. */
const char *mf_slurm_conf(void);
bool mf_slurm_conf_found(void);
/* The live controller, asked in a child process. */
int mf_slurm_read(
    double timeout_s, struct mf_cluster *cluster, struct mf_error *err);
/* What runs in that child: libslurm may print, hang or exit here. */
int mf_slurm_ask(struct mf_cluster *cluster, struct mf_error *err);
/* The GPUs in a node's GRES text, such as "gpu:h100:8(S:0-1),mps:400"; TYPE
 * is that of its first GPUs, or empty.
 */
int64_t mf_slurm_gres_gpus(const char *gres, char *type, size_t size);

/* A switch of a tree; parent is an index into the same list, or -1. */
struct mf_switch {
    const char *name;
    int level; /* 0: a leaf */
    int parent;
};

/* Put the nodes of CLUSTER in the order of the tree (leaf by leaf, names in
 * natural order; nodes without a leaf last), and name the leaf (and, with
 * three levels or more, the pod) of each. LEAF[node] is an index into SW, or
 * -1. Without switches only the names order.
 */
int mf_topology_order(struct mf_cluster *cluster, const struct mf_switch *sw,
    size_t switches, const int *leaf, struct mf_error *err);

/* The tiers of ordered nodes: inside a node, leaf, pod, spine, with the rates
 * of DEVICE where it is known (else NULL).
 */
int mf_topology_tiers(struct mf_cluster *cluster,
    const struct mf_device *device, int levels, struct mf_error *err);

/* Fill what CLUSTER does not know from OTHER, which NAME gave; what differs
 * becomes a warning.
 */
int mf_cluster_join(struct mf_cluster *cluster, const struct mf_cluster *other,
    const char *name, struct mf_error *err);

#endif
