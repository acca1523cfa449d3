/* SPDX-License-Identifier: BSD-3-Clause
 * The part of an uneven cluster that a plan can use.
 */
#include "config.h"

#include "planner/cluster_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nodes with one type and number of GPUs. */
struct part {
    const char *type; /* "": not said */
    int64_t gpus, nodes, devices;
    size_t first, last;
};

static const char *node_type(const struct mf_node *node)
{
    return node->gpu_type ? node->gpu_type : "";
}

static bool is_usable(const struct mf_node *node)
{
    return node->state == MF_NODE_UP && node->gpus > 0;
}

static bool is_of(const struct mf_node *node, const struct part *part)
{
    return node->gpus == part->gpus && !strcmp(node_type(node), part->type);
}

static int order_compare(const void *a, const void *b)
{
    const struct mf_node *x = *(const struct mf_node *const *)a;
    const struct mf_node *y = *(const struct mf_node *const *)b;
    int order = strcmp(node_type(x), node_type(y));

    if (order)
        return order;
    if (x->gpus != y->gpus)
        return x->gpus < y->gpus ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* The part with most devices, of equals the one whose first node is first. */
static int part_find(
    const struct mf_cluster *cluster, bool down_too, struct part *best)
{
    const struct mf_node **list = calloc(cluster->nodes + 1, sizeof *list);
    struct part now = {.type = ""};
    size_t n = 0;

    *best = now;
    if (!list)
        return -1;
    for (size_t i = 0; i < cluster->nodes; i++)
        if (is_usable(&cluster->node[i]) ||
            (down_too && cluster->node[i].gpus > 0))
            list[n++] = &cluster->node[i];
    qsort(list, n, sizeof *list, order_compare);
    for (size_t i = 0; i < n; i++) {
        size_t index = (size_t)(list[i] - cluster->node);

        if (i == 0 || !is_of(list[i], &now))
            now = (struct part){.type = node_type(list[i]),
                .gpus = list[i]->gpus,
                .first = index};
        now.last = index;
        now.nodes++;
        now.devices += now.gpus;
        if (now.devices > best->devices ||
            (now.devices == best->devices && now.first < best->first))
            *best = now;
    }
    free(list);
    return 0;
}

static bool is_whole(const struct mf_cluster *cluster, const struct part *part)
{
    for (size_t i = 0; i < cluster->nodes; i++)
        if (cluster->node[i].gpus > 0 && !is_of(&cluster->node[i], part))
            return false;
    return true;
}

static void part_print(const struct mf_cluster *cluster,
    const struct part *part, char *text, size_t size)
{
    snprintf(text, size,
        "the cluster is uneven; plans use the %" PRId64 " node%s with %" PRId64
        " %s each that are up (%.60s to %.60s)",
        part->nodes, part->nodes == 1 ? "" : "s", part->gpus,
        part->type[0] ? part->type : "GPUs", cluster->node[part->first].name,
        cluster->node[part->last].name);
}

int mf_cluster_part(const struct mf_cluster *cluster, char *text, size_t size)
{
    struct part part;

    text[0] = 0;
    if (cluster->cpu_ranks)
        return 0;
    if (part_find(cluster, false, &part) < 0)
        return -1;
    if (part.devices > 0 && !is_whole(cluster, &part))
        part_print(cluster, &part, text, size);
    return 0;
}

int mf_cluster_main_type(
    const struct mf_cluster *cluster, char *type, size_t size)
{
    struct part part;

    if (part_find(cluster, false, &part) < 0 ||
        (part.devices == 0 && part_find(cluster, true, &part) < 0))
        return -1;
    snprintf(type, size, "%s", part.type);
    return 0;
}

/* Nodes of another kind leave; those of this kind that are down stay, since
 * they still hold their ports.
 */
static void part_keep(struct mf_cluster *cluster, const struct part *part)
{
    size_t kept = 0;

    for (size_t i = 0; i < cluster->nodes; i++)
        if (is_of(&cluster->node[i], part)) {
            struct mf_node node = cluster->node[i];

            cluster->node[i] = (struct mf_node){0};
            cluster->node[kept++] = node;
        } else
            mf_node_free(&cluster->node[i]);
    cluster->nodes = kept;
}

/* ---- blocks of different sizes ---- */

struct weighed {
    struct mf_node node;
    int64_t block_gpus; /* that are up in its block; -1: it is in none */
    size_t rank;
};

static int weighed_compare(const void *a, const void *b)
{
    const struct weighed *x = a, *y = b;

    if (x->block_gpus != y->block_gpus)
        return x->block_gpus > y->block_gpus ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Whether nodes from I on are of one block with it: blocks lie together. */
static size_t block_end(const struct mf_cluster *cluster, size_t i)
{
    size_t end = i + 1;

    while (end < cluster->nodes && cluster->node[i].block &&
           cluster->node[end].block &&
           !strcmp(cluster->node[end].block, cluster->node[i].block))
        end++;
    return end;
}

static bool blocks_weigh(
    const struct mf_cluster *cluster, struct weighed *weighed)
{
    bool differ = false;

    for (size_t i = 0, end; i < cluster->nodes; i = end) {
        int64_t gpus = cluster->node[i].block ? 0 : -1;

        end = block_end(cluster, i);
        for (size_t j = i; gpus >= 0 && j < end; j++)
            if (is_usable(&cluster->node[j]))
                gpus += cluster->node[j].gpus;
        for (size_t j = i; j < end; j++)
            weighed[j] = (struct weighed){cluster->node[j], gpus, j};
        differ |= gpus != weighed[0].block_gpus;
    }
    return differ;
}

/* Where an NVLink domain is a block, a plan that does not need all of them
 * takes the larger ones first: a group of experts may fit those alone.
 */
static int blocks_order(struct mf_cluster *cluster, struct mf_error *err)
{
    struct weighed *weighed;
    bool wide = false;
    int rc = 0;

    for (size_t i = 0; i < cluster->nodes && cluster->tiers > 0; i++)
        wide |= cluster->node[i].block && cluster->node[i].gpus > 0 &&
                !strcmp(cluster->tier[0].name, "nvlink") &&
                cluster->tier[0].size > cluster->node[i].gpus;
    if (!wide)
        return 0;
    weighed = calloc(cluster->nodes, sizeof *weighed);
    if (!weighed)
        return mf_error_set(err, MF_FAILED, "cluster: out of memory");
    if (blocks_weigh(cluster, weighed)) {
        qsort(weighed, cluster->nodes, sizeof *weighed, weighed_compare);
        for (size_t i = 0; i < cluster->nodes; i++)
            cluster->node[i] = weighed[i].node;
        rc = mf_cluster_warn(cluster, err,
            "NVLink domains differ in size: plans fill the larger first, from "
            "%.60s (%" PRId64 " GPUs that are up)",
            cluster->node[0].block ? cluster->node[0].block : "?",
            weighed[0].block_gpus);
    }
    free(weighed);
    return rc;
}

int mf_cluster_pick(struct mf_cluster *cluster, struct mf_error *err)
{
    struct part part;
    char type[64];

    if (cluster->cpu_ranks)
        return 0;
    if (part_find(cluster, false, &part) < 0)
        return mf_error_set(err, MF_FAILED, "cluster: out of memory");
    if (part.devices == 0)
        return mf_error_set(err, MF_INVALID,
            "cluster %s: no node that is up is known to have GPUs; add a "
            "source that says so, such as a node's hwloc XML or a preset",
            cluster->name);
    if (is_whole(cluster, &part))
        return blocks_order(cluster, err);
    snprintf(type, sizeof type, "%s", part.type);
    part.type = type;
    part_keep(cluster, &part);
    mf_topology_sizes(cluster);
    return blocks_order(cluster, err);
}
