/* SPDX-License-Identifier: BSD-3-Clause
 * What is gathered from Slurm's files before it becomes a cluster.
 */
#ifndef MF_CLUSTER_CONF_H
#define MF_CLUSTER_CONF_H

#include "planner/cluster_parts.h"
#include "planner/conf_lines.h"

enum mf_conf_what {
    MF_CONF_SITE,
    MF_CONF_NODES,
    MF_CONF_NET,
    MF_CONF_PARTITION,
    MF_CONF_NODESET,
    MF_CONF_DOWN,
    MF_CONF_GRES,   /* count GPUs of a type on nodes */
    MF_CONF_DETECT, /* GPUs that slurmd is to find itself */
    MF_CONF_OTHER,
    MF_CONF_WHATS
};

/* A line that names nodes, used when all are known. */
struct mf_conf_later {
    enum mf_conf_what what;
    char *name;  /* partition, node set, or state of DownNodes */
    char *nodes; /* NULL: on all */
    char *type;  /* of GPUs; of a node set: the feature that its nodes have */
    int64_t count;
};

struct mf_conf {
    struct mf_cluster *cluster;
    struct mf_net net;
    struct mf_conf_later *later;
    size_t laters;
    char *default_gres, *default_state, *default_features, *default_nodes;
    char plugin[64];
    bool scontrol; /* nodes are as scontrol prints them, states are real */
    int lines[MF_CONF_WHATS];
};

/* A mf_conf_function: one line into the struct mf_conf at ARG. */
int mf_conf_take(
    void *arg, const struct mf_conf_line *line, struct mf_error *err);

/* With all lines taken: partitions, states and gres.conf onto the nodes, and
 * sources[]. PATH is the file, for sources[].
 */
int mf_conf_settle(
    struct mf_conf *conf, const char *path, struct mf_error *err);

void mf_conf_free(struct mf_conf *conf);

/* Is DATA Slurm's topology.yaml? And its switches, blocks or rings into CONF;
 * of several topologies those of the cluster's default.
 */
bool mf_topology_yaml_is(const char *data);
int mf_topology_yaml(struct mf_conf *conf, const char *path,
    const struct mf_text *text, struct mf_error *err);

/* The cluster that TEXT, read from PATH, describes; TEXT is changed. */
int mf_conf_cluster(const char *path, struct mf_text *text,
    struct mf_cluster *cluster, struct mf_error *err);

#endif
