/* SPDX-License-Identifier: BSD-3-Clause
 * The questions to libslurm. Runs in a child process only.
 */
#include "config.h"

#include "planner/cluster_parts.h"

#include <math.h>
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

/* The GPU type that most GPUs are of, and how many nodes have another. */
struct majority {
    char type[64];
    int64_t gpus;
};

static void majority_find(const node_info_msg_t *nodes, struct majority *most)
{
    struct majority seen[32];
    size_t count = 0, j;

    *most = (struct majority){0};
    for (uint32_t i = 0; i < nodes->record_count; i++) {
        struct majority one = {0};

        one.gpus = mf_slurm_gres_gpus(
            nodes->node_array[i].gres, one.type, sizeof one.type);
        for (j = 0; j < count && strcmp(seen[j].type, one.type); j++)
            ;
        if (j == sizeof seen / sizeof *seen)
            continue;
        if (j == count)
            seen[count++] = (struct majority){0};
        memcpy(seen[j].type, one.type, sizeof one.type);
        seen[j].gpus += one.gpus;
        if (seen[j].gpus > most->gpus)
            *most = seen[j];
    }
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

/* Nodes with GPUs of the main type; the planner cannot mix devices. */
static int nodes_add(const struct answer *a, const struct majority *main_type,
    struct mf_cluster *cluster, struct mf_error *err)
{
    int64_t other = 0, none = 0;

    for (uint32_t i = 0; i < a->nodes->record_count; i++) {
        const node_info_t *info = &a->nodes->node_array[i];
        struct mf_node *node;
        char type[64];
        int64_t gpus;

        if (!info->name) /* a slot that is free */
            continue;
        gpus = mf_slurm_gres_gpus(info->gres, type, sizeof type);
        if (gpus == 0 || strcmp(type, main_type->type)) {
            none += gpus == 0;
            other += gpus != 0;
            continue;
        }
        if (mf_cluster_add_node(cluster, info->name, gpus, err) < 0)
            return -1;
        node = &cluster->node[cluster->nodes - 1];
        node->state = state_of(info->node_state);
        if (partitions_set(node, (int32_t)i, a->parts, err) < 0)
            return -1;
    }
    if (none && mf_cluster_warn(cluster, err,
                    "nodes left out: %lld without GPUs", (long long)none) < 0)
        return -1;
    if (other)
        return mf_cluster_warn(cluster, err,
            "nodes left out: %lld with other GPUs than %s", (long long)other,
            main_type->type);
    return 0;
}

/* ---- the tree ---- */

struct name_index {
    const char *name;
    int index;
};

static int name_compare(const void *a, const void *b)
{
    const struct name_index *x = a, *y = b;

    return strcmp(x->name, y->name);
}

/* Call set(FIRST found index, VALUE) for each name in the host list LIST. */
static int list_apply(const char *list, const struct name_index *names,
    size_t count, int value, void (*set)(void *arg, int index, int value),
    void *arg, struct mf_error *err)
{
    hostlist_t hosts = slurm_hostlist_create(list);
    char *name;

    if (!hosts)
        return no_memory(err);
    while ((name = slurm_hostlist_shift(hosts))) {
        struct name_index key = {.name = name};
        const struct name_index *found =
            bsearch(&key, names, count, sizeof *names, name_compare);

        if (found)
            set(arg, found->index, value);
        free(name);
    }
    slurm_hostlist_destroy(hosts);
    return 0;
}

static void set_leaf(void *arg, int index, int value)
{
    int *leaf = arg;

    leaf[index] = value;
}

static void set_parent(void *arg, int index, int value)
{
    struct mf_switch *sw = arg;

    if (sw[index].level < sw[value].level)
        sw[index].parent = value;
}

struct tree {
    struct mf_switch *sw;
    struct name_index *by_switch, *by_node;
    int *leaf;
    int levels;
};

static void tree_free(struct tree *tree)
{
    free(tree->sw);
    free(tree->by_switch);
    free(tree->by_node);
    free(tree->leaf);
}

static int tree_names(const topo_info_response_msg_t *topo,
    const struct mf_cluster *cluster, struct tree *tree, struct mf_error *err)
{
    size_t switches = topo->record_count, nodes = cluster->nodes;

    tree->sw = calloc(switches + 1, sizeof *tree->sw);
    tree->by_switch = calloc(switches + 1, sizeof *tree->by_switch);
    tree->by_node = calloc(nodes + 1, sizeof *tree->by_node);
    tree->leaf = calloc(nodes + 1, sizeof *tree->leaf);
    if (!tree->sw || !tree->by_switch || !tree->by_node || !tree->leaf)
        return no_memory(err);
    for (size_t i = 0; i < switches; i++) {
        const topo_info_t *info = &topo->topo_array[i];

        tree->sw[i] = (struct mf_switch){
            .name = info->name, .level = info->level, .parent = -1};
        tree->by_switch[i] = (struct name_index){info->name, (int)i};
        if (info->level + 1 > tree->levels)
            tree->levels = info->level + 1;
    }
    for (size_t i = 0; i < nodes; i++) {
        tree->by_node[i] = (struct name_index){cluster->node[i].name, (int)i};
        tree->leaf[i] = -1;
    }
    qsort(tree->by_switch, switches, sizeof *tree->by_switch, name_compare);
    qsort(tree->by_node, nodes, sizeof *tree->by_node, name_compare);
    return 0;
}

static int tree_links(const topo_info_response_msg_t *topo,
    const struct mf_cluster *cluster, struct tree *tree, struct mf_error *err)
{
    for (size_t i = 0; i < topo->record_count; i++) {
        const topo_info_t *info = &topo->topo_array[i];

        if (info->level == 0 && info->nodes &&
            list_apply(info->nodes, tree->by_node, cluster->nodes, (int)i,
                set_leaf, tree->leaf, err) < 0)
            return -1;
        if (info->switches &&
            list_apply(info->switches, tree->by_switch, topo->record_count,
                (int)i, set_parent, tree->sw, err) < 0)
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

static int topology_read(const struct answer *a, const struct mf_device *device,
    struct mf_cluster *cluster, struct mf_error *err)
{
    topo_info_response_msg_t none = {0};
    const topo_info_response_msg_t *topo =
        topology_is_tree(a->conf) ? a->topo : &none;
    struct tree tree = {0};
    int rc = -1;

    if (tree_names(topo, cluster, &tree, err) < 0 ||
        tree_links(topo, cluster, &tree, err) < 0 ||
        mf_topology_order(
            cluster, tree.sw, topo->record_count, tree.leaf, err) < 0 ||
        mf_topology_tiers(cluster, device, tree.levels, err) < 0)
        goto out;
    if (tree.levels == 0)
        rc = mf_cluster_warn(cluster, err,
            "Slurm knows no topology: one flat network is assumed");
    else
        rc = mf_cluster_add_source(
            cluster, "tiers", MF_READ, "slurmctld, topology/tree", err);
out:
    tree_free(&tree);
    return rc;
}

static int gpu_describe(const struct majority *type,
    const struct mf_device *device, struct mf_cluster *cluster,
    struct mf_error *err)
{
    struct mf_gpu unknown = {
        .memory_bytes = NAN, .bf16_flops = NAN, .hbm_bytes_per_s = NAN};

    if (device)
        return mf_device_describe(cluster, device, err);
    cluster->gpu = unknown;
    snprintf(cluster->gpu.model, sizeof cluster->gpu.model, "%s", type->type);
    return mf_cluster_warn(cluster, err,
        "GPU type '%s' is not known: its figures are missing; add a preset "
        "with a second --cluster",
        type->type);
}

static int answer_use(
    const struct answer *a, struct mf_cluster *cluster, struct mf_error *err)
{
    const char *host = a->conf->control_cnt ? a->conf->control_machine[0] : "";
    const struct mf_device *device;
    struct majority type;
    char from[128];

    snprintf(from, sizeof from, "slurmctld %.100s", host ? host : "");
    snprintf(cluster->name, sizeof cluster->name, "%.100s",
        a->conf->cluster_name ? a->conf->cluster_name : "slurm");
    majority_find(a->nodes, &type);
    if (type.gpus == 0)
        return mf_error_set(err, MF_INVALID,
            "Slurm cluster %s has zero GPUs: no node has Gres=gpu:TYPE:N",
            cluster->name);
    device = mf_device_find(type.type);
    if (nodes_add(a, &type, cluster, err) < 0 ||
        mf_cluster_add_source(cluster, "node_list", MF_READ, from, err) < 0 ||
        gpu_describe(&type, device, cluster, err) < 0)
        return -1;
    return topology_read(a, device, cluster, err);
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
