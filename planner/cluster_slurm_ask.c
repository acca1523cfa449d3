/* SPDX-License-Identifier: BSD-3-Clause
 * The questions to libslurm. Runs in a child process only.
 */
#include "config.h"

#include "planner/cluster_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef HAVE_SLURM

int mf_slurm_ask(struct mf_cluster *cluster, struct mf_error *err)
{
    *cluster = (struct mf_cluster){0};
    return mf_error_set(err, MF_INVALID,
        "this moefold was built without libslurm; name another --cluster");
}

#else

#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

struct answer {
    slurm_conf_t *conf;
    node_info_msg_t *nodes;
    partition_info_msg_t *parts;
    topo_info_response_msg_t *topo;
};

static int no_memory(struct mf_error *err)
{
    return mf_error_set(err, MF_FAILED, "out of memory");
}

static int slurm_says(const char *what, struct mf_error *err)
{
    return mf_error_set(err, MF_FAILED, "%s: %s", what, slurm_strerror(errno));
}

static void answer_free(struct answer *a)
{
    if (a->conf)
        slurm_free_ctl_conf(a->conf);
    if (a->nodes)
        slurm_free_node_info_msg(a->nodes);
    if (a->parts)
        slurm_free_partition_info_msg(a->parts);
    if (a->topo)
        slurm_free_topo_info_msg(a->topo);
}

static int answer_get(struct answer *a, struct mf_error *err)
{
    if (slurm_load_ctl_conf(0, &a->conf) != SLURM_SUCCESS)
        return slurm_says("the controller does not answer", err);
    if (slurm_load_node(0, &a->nodes, SHOW_ALL) != SLURM_SUCCESS)
        return slurm_says("cannot ask for nodes", err);
    if (slurm_load_partitions(0, &a->parts, SHOW_ALL) != SLURM_SUCCESS)
        return slurm_says("cannot ask for partitions", err);
    if (slurm_load_topo(&a->topo) != SLURM_SUCCESS)
        return slurm_says("cannot ask for the topology", err);
    return 0;
}

static enum mf_node_state state_of(uint32_t state)
{
    uint32_t base = state & NODE_STATE_BASE;

    if (state & (NODE_STATE_DRAIN | NODE_STATE_FAIL))
        return MF_NODE_DRAINED;
    if (base == NODE_STATE_DOWN || base == NODE_STATE_ERROR)
        return MF_NODE_DOWN;
    if (state & (NODE_STATE_NO_RESPOND | NODE_STATE_INVALID_REG))
        return MF_NODE_DOWN;
    if (base == NODE_STATE_IDLE || base == NODE_STATE_ALLOCATED ||
        base == NODE_STATE_MIXED)
        return MF_NODE_UP;
    return MF_NODE_UNKNOWN;
}

static int partitions_set(struct mf_node *node, int32_t index,
    const partition_info_msg_t *parts, struct mf_error *err)
{
    char names[1024] = "";
    size_t used = 0;

    for (uint32_t p = 0; p < parts->record_count; p++) {
        const partition_info_t *part = &parts->partition_array[p];
        const int32_t *range = part->node_inx;

        for (; range && range[0] >= 0; range += 2)
            if (index >= range[0] && index <= range[1])
                break;
        if (!range || range[0] < 0 || used >= sizeof names)
            continue;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
            used ? "," : "", part->name);
    }
    if (!names[0])
        return 0;
    node->partitions = strdup(names);
    return node->partitions ? 0 : no_memory(err);
}

static int nodes_add(
    const struct answer *a, struct mf_cluster *cluster, struct mf_error *err)
{
    for (uint32_t i = 0; i < a->nodes->record_count; i++) {
        const node_info_t *info = &a->nodes->node_array[i];
        struct mf_node *node;
        char type[64];
        int64_t gpus;

        if (!info->name) /* a slot that is free */
            continue;
        gpus = mf_slurm_gres_gpus(info->gres, type, sizeof type);
        if (mf_cluster_add_node(cluster, info->name, gpus, err) < 0)
            return -1;
        node = &cluster->node[cluster->nodes - 1];
        node->state = state_of(info->node_state);
        if (type[0] && mf_cluster_label(&node->gpu_type, type, err) < 0)
            return -1;
        if (info->features && info->features[0] &&
            strlen(info->features) < 1000 &&
            mf_cluster_label(&node->features, info->features, err) < 0)
            return -1;
        if (partitions_set(node, (int32_t)i, a->parts, err) < 0)
            return -1;
    }
    return 0;
}

/* topology/tree answers with switches; other plugins with none, or with a
 * record for each node.
 */
static bool topology_is_tree(const slurm_conf_t *conf)
{
    return conf->topology_plugin && strstr(conf->topology_plugin, "tree");
}

static int net_read(
    const struct answer *a, struct mf_net *net, struct mf_error *err)
{
    snprintf(net->from, sizeof net->from, "slurmctld, topology/tree");
    if (!topology_is_tree(a->conf))
        return 0;
    for (uint32_t i = 0; i < a->topo->record_count; i++) {
        const topo_info_t *info = &a->topo->topo_array[i];
        bool inner = info->level > 0;

        if (!info->name)
            continue;
        if (mf_net_add(net, MF_NET_SWITCH, info->name,
                inner ? NULL : info->nodes, info->switches, err) < 0)
            return -1;
    }
    return 0;
}

static int answer_use(
    const struct answer *a, struct mf_cluster *cluster, struct mf_error *err)
{
    const char *host = a->conf->control_cnt ? a->conf->control_machine[0] : "";
    struct mf_net net = {0};
    char from[128];
    int rc;

    snprintf(from, sizeof from, "slurmctld %.100s", host ? host : "");
    snprintf(cluster->name, sizeof cluster->name, "%.100s",
        a->conf->cluster_name ? a->conf->cluster_name : "slurm");
    rc = nodes_add(a, cluster, err);
    if (rc == 0)
        rc = mf_cluster_add_source(cluster, "node_list", MF_READ, from, err);
    if (rc == 0)
        rc = net_read(a, &net, err);
    if (rc == 0)
        rc = mf_slurm_finish(cluster, &net, false, err);
    mf_net_free(&net);
    return rc;
}

int mf_slurm_ask(struct mf_cluster *cluster, struct mf_error *err)
{
    struct answer a = {0};
    int rc;

    *cluster = (struct mf_cluster){0};
    slurm_init(NULL);
    rc = answer_get(&a, err);
    if (rc == 0)
        rc = answer_use(&a, cluster, err);
    answer_free(&a);
    if (rc < 0)
        mf_cluster_free(cluster);
    return rc;
}

#endif
