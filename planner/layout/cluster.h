/* SPDX-License-Identifier: BSD-3-Clause
 * A cluster as data: nodes, devices, tiers of the network, and for each figure
 * where it came from. Readers (planner/cluster_*.c) fill it; plans carry it.
 */
#ifndef MF_CLUSTER_H
#define MF_CLUSTER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/layout/error.h"

#define MF_TIERS_MAX 6
#define MF_NODES_MAX 1000000
#define MF_GPUS_UNKNOWN (-1) /* of a node: null in JSON */

/* Figures that are not known are NAN (null in JSON). */
struct mf_gpu {
    char model[64]; /* "H100", or the CPU's name for CPU ranks */
    double memory_bytes, bf16_flops, hbm_bytes_per_s;
};

/* A level of the network, innermost first. Ranks in one domain talk at this
 * tier's rate; SIZE is how many devices the largest domain holds. A tier no
 * larger than the largest node never crosses a node, and cuts it into runs of
 * SIZE. A wider one binds whole nodes: tier "leaf" those of one switch_name,
 * "pod" those of one pod, "nvlink" and "block" those of one block; a node
 * without that label is alone, since nothing says whom it shares with. Where no
 * node has one, nodes in order up to SIZE devices, those that are down counted.
 * The last tier holds all.
 */
struct mf_tier {
    char name[32];
    int64_t size;       /* 0: not known */
    double bytes_per_s; /* a device, one direction */
    double latency_s;
};

enum mf_node_state {
    MF_NODE_UP,
    MF_NODE_DOWN,
    MF_NODE_DRAINED,
    MF_NODE_UNKNOWN
};

/* Where the devices of a node lie among its NUMA nodes. */
struct mf_numa {
    int32_t nodes;    /* 0: not known */
    int32_t gpus;     /* entries of of_gpu */
    int32_t of_gpu[]; /* the operating system's number; -1: not known */
};

struct mf_node {
    char *name;
    enum mf_node_state state;
    char *switch_name, *pod, *block; /* NULL: not known */
    char *partitions;                /* joined by commas; NULL: not known */
    char *features;                  /* the same */
    char *gpu_type; /* as the source writes it, "a100:3,a30:1" when mixed */
    int64_t gpus;
    struct mf_numa *numa; /* NULL: not known */
};

enum mf_how { MF_MEASURED, MF_READ, MF_PRESET, MF_ASSUMED };

struct mf_source {
    char field[48];
    enum mf_how how;
    char from[128];
};

struct mf_cluster {
    char name[128];
    bool cpu_ranks; /* devices are CPU ranks of moefold-run's CPU backend */
    int64_t cores;  /* CPU ranks: cores of a node that the ranks share */
    struct mf_gpu gpu;
    struct mf_tier tier[MF_TIERS_MAX];
    int tiers;
    struct mf_node *node; /* in topology order */
    size_t nodes;
    struct mf_source *source;
    size_t sources;
    char **warning; /* NULL-terminated, or NULL */
};

/* Devices of a node, or -1 when nodes differ or it is not known. */
int64_t mf_cluster_gpus_per_node(const struct mf_cluster *cluster);

/* Devices of the nodes that are up. */
int64_t mf_cluster_devices(const struct mf_cluster *cluster);

/* A node that is up goes last. MF_INVALID: a name that a host cannot have.
 * GPUS may be MF_GPUS_UNKNOWN.
 */
int mf_cluster_add_node(struct mf_cluster *cluster, const char *name,
    int64_t gpus, struct mf_error *err);
/* Texts that are too long are cut. */
int mf_cluster_add_source(struct mf_cluster *cluster, const char *field,
    enum mf_how how, const char *from, struct mf_error *err);
/* The same in place of what stands for FIELD, if anything does. */
int mf_cluster_source_set(struct mf_cluster *cluster, const char *field,
    enum mf_how how, const char *from, struct mf_error *err);
/* Add a warning line; beyond 1,000 they are dropped. */
int mf_cluster_warn(struct mf_cluster *cluster, struct mf_error *err,
    const char *fmt, ...) MF_PRINTF(3, 4);

/* Replace the text at LABEL, a field of a node, by TEXT (NULL: not known). */
int mf_cluster_label(char **label, const char *text, struct mf_error *err);

/* NODES NUMA nodes and where GPUS devices lie (NULL: nobody knows), in place of
 * what NODE had. Without either, the place is not known.
 */
int mf_node_numa(struct mf_node *node, int32_t nodes, int32_t gpus,
    const int32_t *of_gpu, struct mf_error *err);
/* The same as OTHER's. */
int mf_node_numa_copy(
    struct mf_node *node, const struct mf_numa *other, struct mf_error *err);

void mf_node_free(struct mf_node *node);

/* domain[rank] for WORLD ranks laid over the nodes that are up, in order, one
 * a device: which domain of tier T each lies in, numbered from 0 as the ranks
 * meet them. MF_NO when WORLD is larger than the cluster, MF_INVALID without
 * tier T.
 */
int mf_cluster_domains(const struct mf_cluster *cluster, int t, int64_t world,
    int32_t *domain, struct mf_error *err);

/* The JSON of `moefold cluster --json`, and back. Reading checks all. */
json_t *mf_cluster_to_json(const struct mf_cluster *cluster);
int mf_cluster_from_json(
    const json_t *json, struct mf_cluster *cluster, struct mf_error *err);

void mf_cluster_free(struct mf_cluster *cluster);

#endif
