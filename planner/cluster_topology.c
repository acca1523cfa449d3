/* SPDX-License-Identifier: BSD-3-Clause
 * The order of nodes in a network, and the tiers that follow.
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

static void path_of(const struct mf_net *net,
    const struct mf_net_places *places, int leaf, struct path *path)
{
    const char *up[LEVELS_MAX];
    int n = 0;

    for (int at = leaf; at >= 0 && n < LEVELS_MAX; at = places->parent[at])
        up[n++] = net->item[at].name;
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
    int block;               /* -1: none, goes last */
};

static int placed_compare(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    int order = 0;

    if (!x->path != !y->path)
        return x->path ? -1 : 1;
    if (x->path)
        order = path_compare(x->path, y->path);
    if (!order && x->block != y->block) {
        if (x->block < 0 || y->block < 0)
            return x->block < 0 ? 1 : -1;
        return x->block < y->block ? -1 : 1;
    }
    return order ? order : strverscmp(x->node.name, y->node.name);
}

int mf_net_order(const struct mf_net *net, const struct mf_net_places *places,
    struct mf_cluster *cluster, struct mf_error *err)
{
    struct path *path = calloc(net->count + 1, sizeof *path);
    struct placed *placed = calloc(cluster->nodes + 1, sizeof *placed);
    int rc = -1;

    if (!path || !placed) {
        no_memory(err);
        goto out;
    }
    for (size_t i = 0; i < net->count; i++)
        path_of(net, places, (int)i, &path[i]);
    for (size_t i = 0; i < cluster->nodes; i++) {
        placed[i].node = cluster->node[i];
        placed[i].block = places->block[i];
        if (places->leaf[i] >= 0)
            placed[i].path = &path[places->leaf[i]];
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

/* ---- tiers ---- */

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
    return node->pod;
}

static const char *select_block(const struct mf_node *node)
{
    return node->block;
}

/* Devices of the largest run of nodes with one label: SELECT gives it. A node
 * without one is alone. 0: not known.
 */
static int64_t largest_run(const struct mf_cluster *cluster,
    const char *(*select)(const struct mf_node *node))
{
    const char *last = NULL;
    int64_t run = 0, most = 0;

    for (size_t i = 0; i < cluster->nodes; i++) {
        const char *label = select(&cluster->node[i]);

        if (cluster->node[i].gpus < 0)
            return 0;
        if (!label || !last || strcmp(label, last))
            run = 0;
        run += cluster->node[i].gpus;
        last = label;
        most = run > most ? run : most;
    }
    return most;
}

static bool any_label(const struct mf_cluster *cluster,
    const char *(*select)(const struct mf_node *node))
{
    for (size_t i = 0; i < cluster->nodes; i++)
        if (select(&cluster->node[i]))
            return true;
    return false;
}

/* Of the innermost tier: an NVLink domain that spans nodes where blocks tell
 * them, else a node.
 */
static int64_t inner_size(const struct mf_cluster *cluster)
{
    const struct mf_device *device = mf_device_find(cluster->gpu.model);

    if (device && device->rack && any_label(cluster, select_block))
        return largest_run(cluster, select_block);
    return largest_run(cluster, select_node);
}

static int64_t all_devices(const struct mf_cluster *cluster)
{
    int64_t all = 0;

    for (size_t i = 0; i < cluster->nodes; i++) {
        if (cluster->node[i].gpus < 0)
            return 0;
        all += cluster->node[i].gpus;
    }
    return all;
}

static int64_t tier_size(
    const struct mf_cluster *cluster, const struct mf_tier *tier, bool inner)
{
    if (inner)
        return inner_size(cluster);
    if (!strcmp(tier->name, "node"))
        return largest_run(cluster, select_node);
    if (!strcmp(tier->name, "leaf"))
        return largest_run(cluster, select_leaf);
    if (!strcmp(tier->name, "pod"))
        return largest_run(cluster, select_pod);
    if (!strcmp(tier->name, "block"))
        return largest_run(cluster, select_block);
    return all_devices(cluster);
}

void mf_topology_sizes(struct mf_cluster *cluster)
{
    for (int t = 0; t < cluster->tiers; t++) {
        struct mf_tier *tier = &cluster->tier[t];

        int64_t size = tier_size(cluster, tier, t == 0);

        /* A source may know a domain that is narrower than the labels say. */
        if (tier->size == 0 || size < tier->size)
            tier->size = size;
        if (t > 0 && tier->size > 0 && tier->size < tier[-1].size)
            tier->size = tier[-1].size;
    }
}

static int add_network(struct mf_cluster *cluster,
    const struct mf_device *device, const char *name, bool first,
    struct mf_error *err)
{
    struct mf_tier tier = {
        .bytes_per_s = device ? device->nic_bytes_per_s : NAN,
        .latency_s = MF_NETWORK_LATENCY_S};

    snprintf(tier.name, sizeof tier.name, "%s", name);
    return mf_cluster_add_tier(cluster, &tier, first ? MF_PRESET : MF_ASSUMED,
        first ? (device ? device->from : "")
              : "no narrower than the tier under",
        first ? MF_LATENCY_FROM : "as of the tier under", err);
}

/* The same nodes in one of these and in all: one tier says it. */
static bool holds_all(const struct mf_cluster *cluster,
    const char *(*select)(const struct mf_node *node))
{
    const char *first = cluster->nodes ? select(&cluster->node[0]) : NULL;

    for (size_t i = 0; i < cluster->nodes; i++) {
        const char *label = select(&cluster->node[i]);

        if (!first || !label || strcmp(label, first))
            return false;
    }
    return first != NULL;
}

static int add_networks(struct mf_cluster *cluster,
    const struct mf_device *device, int levels, struct mf_error *err)
{
    bool blocks = any_label(cluster, select_block) && !(device && device->rack);

    if (levels < 1) {
        if (blocks && !holds_all(cluster, select_block)) {
            if (add_network(cluster, device, "block", true, err) < 0)
                return -1;
            return add_network(cluster, device, "network", false, err);
        }
        return add_network(cluster, device, "network", true, err);
    }
    if (add_network(cluster, device, "leaf", true, err) < 0)
        return -1;
    if (holds_all(cluster, select_leaf))
        return 0;
    if (levels > 2 && !holds_all(cluster, select_pod) &&
        add_network(cluster, device, "pod", false, err) < 0)
        return -1;
    return add_network(cluster, device, "spine", false, err);
}

int mf_topology_tiers(struct mf_cluster *cluster,
    const struct mf_device *device, int levels, struct mf_error *err)
{
    bool pcie = device && !device->link;
    struct mf_tier link = {
        .bytes_per_s = device ? device->link_bytes_per_s : NAN,
        .latency_s = device ? MF_LINK_LATENCY_S : NAN};

    if (pcie) {
        link.bytes_per_s = MF_PCIE_ASSUMED;
        link.latency_s = MF_PCIE_LATENCY_S;
    }
    snprintf(link.name, sizeof link.name, "%s",
        device && device->link ? device->link : "node");
    if (mf_cluster_add_tier(cluster, &link, pcie ? MF_ASSUMED : MF_PRESET,
            pcie     ? "PCIe generation 4, 16 lanes"
            : device ? device->from
                     : "",
            MF_LATENCY_FROM, err) < 0 ||
        add_networks(cluster, device, levels, err) < 0)
        return -1;
    mf_topology_sizes(cluster);
    return 0;
}
