/* SPDX-License-Identifier: BSD-3-Clause
 * The order of nodes in a tree of switches, and the tiers that follow.
 */
#include "config.h"

#include "planner/cluster_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEVELS_MAX 16

static int no_memory(struct mf_error *err)
{
    return mf_error_set(err, MF_FAILED, "cluster: out of memory");
}

/* Names of the switches over one, outermost first. */
struct path {
    const char *name[LEVELS_MAX];
    int length;
};

static void path_of(const struct mf_switch *sw, int leaf, struct path *path)
{
    const char *up[LEVELS_MAX];
    int n = 0;

    for (int at = leaf; at >= 0 && n < LEVELS_MAX; at = sw[at].parent)
        up[n++] = sw[at].name;
    path->length = n;
    for (int i = 0; i < n; i++)
        path->name[i] = up[n - 1 - i];
}

static int path_compare(const struct path *a, const struct path *b)
{
    for (int i = 0; i < a->length && i < b->length; i++) {
        int order = strverscmp(a->name[i], b->name[i]);

        if (order)
            return order;
    }
    return a->length - b->length;
}

struct placed {
    struct mf_node node;
    const struct path *path; /* NULL: no leaf, goes last */
};

static int placed_compare(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    int order = 0;

    if (!x->path != !y->path)
        return x->path ? -1 : 1;
    if (x->path)
        order = path_compare(x->path, y->path);
    return order ? order : strverscmp(x->node.name, y->node.name);
}

/* The switch of LEVEL over LEAF, or -1. */
static int switch_above(const struct mf_switch *sw, int leaf, int level)
{
    int at = leaf;

    for (int n = 0; at >= 0 && n < LEVELS_MAX; n++, at = sw[at].parent)
        if (sw[at].level == level)
            return at;
    return -1;
}

static int label_set(char **label, const char *name, struct mf_error *err)
{
    free(*label);
    *label = strdup(name);
    return *label ? 0 : no_memory(err);
}

static int labels_set(struct mf_cluster *cluster, const struct mf_switch *sw,
    size_t switches, const int *leaf, struct mf_error *err)
{
    int top = 0;

    for (size_t i = 0; i < switches; i++)
        if (sw[i].level > top)
            top = sw[i].level;
    for (size_t i = 0; i < cluster->nodes; i++) {
        int pod = top > 1 ? switch_above(sw, leaf[i], 1) : -1;

        if (leaf[i] >= 0 &&
            label_set(&cluster->node[i].switch_name, sw[leaf[i]].name, err) < 0)
            return -1;
        if (pod >= 0 &&
            label_set(&cluster->node[i].block, sw[pod].name, err) < 0)
            return -1;
    }
    return 0;
}

int mf_topology_order(struct mf_cluster *cluster, const struct mf_switch *sw,
    size_t switches, const int *leaf, struct mf_error *err)
{
    struct path *path = calloc(switches + 1, sizeof *path);
    struct placed *placed = calloc(cluster->nodes + 1, sizeof *placed);
    int rc = -1;

    if (!path || !placed) {
        no_memory(err);
        goto out;
    }
    if (switches > 0 && labels_set(cluster, sw, switches, leaf, err) < 0)
        goto out;
    for (size_t i = 0; i < switches; i++)
        path_of(sw, (int)i, &path[i]);
    for (size_t i = 0; i < cluster->nodes; i++) {
        placed[i].node = cluster->node[i];
        if (switches > 0 && leaf[i] >= 0)
            placed[i].path = &path[leaf[i]];
    }
    qsort(placed, cluster->nodes, sizeof *placed, placed_compare);
    for (size_t i = 0; i < cluster->nodes; i++)
        cluster->node[i] = placed[i].node;
    rc = 0;
out:
    free(placed);
    free(path);
    return rc;
}

/* Devices of the largest run of nodes with one label: SELECT gives it. */
static int64_t largest_run(const struct mf_cluster *cluster,
    const char *(*select)(const struct mf_node *node))
{
    const char *last = NULL;
    int64_t run = 0, most = 0;

    for (size_t i = 0; i < cluster->nodes; i++) {
        const char *label = select(&cluster->node[i]);

        if (!label || !last || strcmp(label, last))
            run = 0;
        run += cluster->node[i].gpus;
        last = label;
        most = run > most ? run : most;
    }
    return most;
}

static const char *select_node(const struct mf_node *node)
{
    return node->name;
}

static const char *select_leaf(const struct mf_node *node)
{
    return node->switch_name;
}

static const char *select_pod(const struct mf_node *node)
{
    return node->block;
}

static int add_network(struct mf_cluster *cluster,
    const struct mf_device *device, const char *name, int64_t size,
    struct mf_error *err)
{
    bool leaf = !strcmp(name, "leaf") || !strcmp(name, "network");
    struct mf_tier tier = {.size = size,
        .bytes_per_s = device ? device->nic_bytes_per_s : NAN,
        .latency_s = MF_NETWORK_LATENCY_S};

    snprintf(tier.name, sizeof tier.name, "%s", name);
    return mf_cluster_add_tier(cluster, &tier, leaf ? MF_PRESET : MF_ASSUMED,
        leaf ? (device ? device->from : "") : "no narrower than a leaf",
        leaf ? MF_LATENCY_FROM : "as of a leaf", err);
}

int mf_topology_tiers(struct mf_cluster *cluster,
    const struct mf_device *device, int levels, struct mf_error *err)
{
    struct mf_tier link = {.size = largest_run(cluster, select_node),
        .bytes_per_s = device ? device->link_bytes_per_s : NAN,
        .latency_s = device ? MF_LINK_LATENCY_S : NAN};
    int64_t all = 0, leaf = largest_run(cluster, select_leaf);

    for (size_t i = 0; i < cluster->nodes; i++)
        all += cluster->node[i].gpus;
    snprintf(link.name, sizeof link.name, "%s", device ? device->link : "node");
    if (mf_cluster_add_tier(cluster, &link, MF_PRESET,
            device ? device->from : "", MF_LATENCY_FROM, err) < 0)
        return -1;
    if (levels < 1)
        return add_network(cluster, device, "network", all, err);
    if (add_network(cluster, device, "leaf", leaf, err) < 0)
        return -1;
    if (leaf == all)
        return 0;
    if (levels > 2 && add_network(cluster, device, "pod",
                          largest_run(cluster, select_pod), err) < 0)
        return -1;
    return add_network(cluster, device, "spine", all, err);
}
