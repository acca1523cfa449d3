/* SPDX-License-Identifier: BSD-3-Clause
 * What the readers of clusters share among themselves: one function a kind of
 * source, the table of devices, and the order of nodes in a network.
 */
#ifndef MF_CLUSTER_PARTS_H
#define MF_CLUSTER_PARTS_H

#include "planner/cluster_read.h"

/* Published figures of a device and of what joins it to its peers. */
struct mf_device {
    const char *key;     /* a word of its name, lower case: "h100" */
    const char *variant; /* a further word that must be there, or NULL */
    const char *model;   /* "H100" */
    double memory_bytes, bf16_flops, hbm_bytes_per_s; /* NAN: none */
    const char *link; /* name of the innermost tier; NULL: PCIe alone */
    /* a device's all links, one of them, its NIC; one direction */
    double link_bytes_per_s, one_link_bytes_per_s, nic_bytes_per_s;
    const char *from;
    uint32_t pci[2]; /* vendor << 16 | device; 0: not known */
    bool rack;       /* its NVLink domain spans nodes, which a block tells */
};

/* Latencies of one hop, and where they come from. */
#define MF_LINK_LATENCY_S 3.4e-6
#define MF_NETWORK_LATENCY_S 14e-6
#define MF_PCIE_LATENCY_S 5e-6
#define MF_PCIE_ASSUMED 31.5e9 /* bytes a second: generation 4, 16 lanes */
#define MF_LATENCY_FROM "NCCL tuning.cc, Simple protocol"

/* The device that a text such as "h100", "nvidia_h100_80gb_hbm3" or "Tesla
 * V100-SXM2-16GB" names, or NULL. Variants with other links (pcie, nvl) and
 * slices of a GPU (MIG) are not taken for it.
 */
const struct mf_device *mf_device_find(const char *type);
const struct mf_device *mf_device_pci(unsigned vendor, unsigned device);
/* Bytes a second, one direction, of a network adapter; NAN: not known. */
double mf_nic_pci(unsigned vendor, unsigned device);

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
 * is "h100", "a100:3,a30:1" when they differ, or empty.
 */
int64_t mf_slurm_gres_gpus(const char *gres, char *type, size_t size);
/* "8" or "2k" as a number, or -1. */
int64_t mf_gres_count(const char *text, size_t length);
/* A node's state as slurm.conf or scontrol writes it, "IDLE+DRAIN". UNKNOWN,
 * which slurm.conf has for "as it was", is up; FUTURE is not there yet.
 */
enum mf_node_state mf_slurm_state(const char *text);

/* Lines of a network: a switch with its nodes or the switches under it, a
 * block or a ring with its nodes. Lists are Slurm's host lists.
 */
enum mf_net_kind { MF_NET_SWITCH, MF_NET_BLOCK, MF_NET_RING };

struct mf_net_item {
    enum mf_net_kind kind;
    char *name, *nodes, *switches; /* lists: NULL when there is none */
};

struct mf_net {
    struct mf_net_item *item;
    size_t count;
    char from[128]; /* for sources[] */
};

/* Texts are copied; NODES and SWITCHES may be NULL. */
int mf_net_add(struct mf_net *net, enum mf_net_kind kind, const char *name,
    const char *nodes, const char *switches, struct mf_error *err);
void mf_net_free(struct mf_net *net);

/* What a network says of the nodes of CLUSTER, by node: the index of its
 * item, or -1; and the levels of the tree (0: no tree).
 */
struct mf_net_places {
    int *leaf, *block;
    int *level, *parent; /* of an item; parent -1: it is a root */
    int levels;
};

/* Work out PLACES and set the labels of the nodes. With ADD_NODES, nodes that
 * CLUSTER lacks are added, their GPUs unknown; else they are counted in a
 * warning. Switches that name each other in a circle lose those links, with a
 * warning. Free with mf_net_places_free, also after -1.
 */
int mf_net_apply(const struct mf_net *net, bool add_nodes,
    struct mf_cluster *cluster, struct mf_net_places *places,
    struct mf_error *err);
void mf_net_places_free(struct mf_net_places *places);

/* Put the nodes of CLUSTER in the order of the network: tree before the rest,
 * leaf by leaf, blocks as they are listed, names in natural order.
 */
int mf_net_order(const struct mf_net *net, const struct mf_net_places *places,
    struct mf_cluster *cluster, struct mf_error *err);

/* The tiers of ordered nodes: inside a node (or an NVLink domain over nodes,
 * where DEVICE has one and blocks are known), leaf, pod and spine of a tree,
 * or block and network; with the rates of DEVICE, NULL where it is not known.
 */
int mf_topology_tiers(struct mf_cluster *cluster,
    const struct mf_device *device, int levels, struct mf_error *err);
/* Sizes anew, after the GPUs of nodes became known. */
void mf_topology_sizes(struct mf_cluster *cluster);

/* What Slurm says becomes a cluster: nodes with their gpu_type, gpus, state
 * and the like are there, NET may be empty. Nodes without GPUs are left out
 * where others have some; the device is that of most GPUs.
 */
int mf_slurm_finish(struct mf_cluster *cluster, const struct mf_net *net,
    bool add_nodes, struct mf_error *err);

/* The gpu_type of that part into TYPE, of most GPUs where all nodes are down,
 * or empty.
 */
int mf_cluster_main_type(
    const struct mf_cluster *cluster, char *type, size_t size);
/* The line that says which part that is, or empty when it is all of it. */
int mf_cluster_part(const struct mf_cluster *cluster, char *text, size_t size);

/* Fill what CLUSTER does not know from OTHER, which NAME gave; what differs
 * becomes a warning.
 */
int mf_cluster_join(struct mf_cluster *cluster, const struct mf_cluster *other,
    const char *name, struct mf_error *err);

#endif
