/* SPDX-License-Identifier: BSD-3-Clause
 * What Slurm says, made whole: the device, the order and the tiers.
 */
#include "config.h"

#include "planner/cluster_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool any_gpus(const struct mf_cluster *cluster)
{
    for (size_t i = 0; i < cluster->nodes; i++)
        if (cluster->node[i].gpus > 0)
            return true;
    return false;
}

/* Nodes without GPUs leave where others have some; where none has, GPUs are
 * not configured in Slurm, and nobody knows.
 */
static int gpuless_settle(struct mf_cluster *cluster,
    struct mf_net_places *places, struct mf_error *err)
{
    size_t kept = 0, out;

    if (!any_gpus(cluster)) {
        for (size_t i = 0; i < cluster->nodes; i++)
            cluster->node[i].gpus = MF_GPUS_UNKNOWN;
        return mf_cluster_warn(cluster, err,
            "no node is said to have GPUs: how many there are is not known; "
            "add a source that says so with a second --cluster");
    }
    for (size_t i = 0; i < cluster->nodes; i++) {
        if (cluster->node[i].gpus == 0) {
            mf_node_free(&cluster->node[i]);
            continue;
        }
        places->leaf[kept] = places->leaf[i];
        places->block[kept] = places->block[i];
        cluster->node[kept++] = cluster->node[i];
    }
    out = cluster->nodes - kept;
    cluster->nodes = kept;
    if (out > 0)
        return mf_cluster_warn(
            cluster, err, "nodes left out: %zu without GPUs", out);
    return 0;
}

static int device_describe(struct mf_cluster *cluster,
    const struct mf_device **device, struct mf_error *err)
{
    char type[64];

    if (mf_cluster_main_type(cluster, type, sizeof type) < 0)
        return mf_error_set(err, MF_FAILED, "cluster: out of memory");
    *device = mf_device_find(type);
    if (*device)
        return mf_device_describe(cluster, *device, err);
    cluster->gpu = (struct mf_gpu){
        .memory_bytes = NAN, .bf16_flops = NAN, .hbm_bytes_per_s = NAN};
    snprintf(cluster->gpu.model, sizeof cluster->gpu.model, "%s", type);
    if (!any_gpus(cluster))
        return 0;
    if (type[0] && mf_cluster_add_source(cluster, "gpu.model", MF_READ,
                       "the type in Gres", err) < 0)
        return -1;
    if (!type[0])
        return mf_cluster_warn(cluster, err,
            "nothing says of what type the GPUs are: their figures are "
            "missing; add a preset with a second --cluster");
    return mf_cluster_warn(cluster, err,
        "GPU type '%s' is not known: its figures are missing; add a preset "
        "with a second --cluster",
        type);
}

static int states_warn(struct mf_cluster *cluster, struct mf_error *err)
{
    static const char *const word[] = {"up", "down", "drained", "unknown"};

    for (int s = MF_NODE_DOWN; s <= MF_NODE_UNKNOWN; s++) {
        const char *first = NULL;
        int64_t count = 0;

        for (size_t i = 0; i < cluster->nodes; i++)
            if ((int)cluster->node[i].state == s && count++ == 0)
                first = cluster->node[i].name;
        if (count > 0 && mf_cluster_warn(cluster, err,
                             "%" PRId64 " node%s %s (%.60s%s): not planned for",
                             count, count == 1 ? " is" : "s are", word[s],
                             first, count > 1 ? " first" : "") < 0)
            return -1;
    }
    return 0;
}

/* Of the nodes that a network should place, those that it does not. */
static int unplaced_warn(struct mf_cluster *cluster,
    const struct mf_device *device, const struct mf_net_places *places,
    struct mf_error *err)
{
    int64_t blocked = 0, loose = 0, leafless = 0;

    for (size_t i = 0; i < cluster->nodes; i++) {
        blocked += cluster->node[i].block != NULL;
        loose += cluster->node[i].block == NULL;
        leafless += cluster->node[i].switch_name == NULL;
    }
    if (device && device->rack && blocked == 0)
        return mf_cluster_warn(cluster, err,
            "%s nodes share NVLink domains, but nothing says which: without "
            "blocks (topology/block) each node is taken to be alone",
            device->model);
    if (blocked > 0 && loose > 0)
        return mf_cluster_warn(cluster, err,
            "%" PRId64 " nodes are in no block: each is taken to be alone",
            loose);
    if (places->levels > 0 && leafless > 0)
        return mf_cluster_warn(cluster, err,
            "%" PRId64 " nodes hang on no switch: each is taken to be alone",
            leafless);
    return 0;
}

static int roots_warn(struct mf_cluster *cluster, const struct mf_net *net,
    const struct mf_net_places *places, struct mf_error *err)
{
    char *seen = calloc(net->count + 1, 1);
    int64_t roots = 0;

    if (!seen)
        return mf_error_set(err, MF_FAILED, "cluster: out of memory");
    for (size_t i = 0; i < cluster->nodes; i++) {
        int at = places->leaf[i];

        while (at >= 0 && places->parent[at] >= 0)
            at = places->parent[at];
        if (at >= 0 && !seen[at]) {
            seen[at] = 1;
            roots++;
        }
    }
    free(seen);
    if (roots < 2 || places->levels < 2)
        return 0;
    return mf_cluster_warn(cluster, err,
        "%" PRId64 " trees of switches without a common root: what joins them "
        "is assumed to be as fast as a tree's own top",
        roots);
}

static int finish(struct mf_cluster *cluster, const struct mf_net *net,
    bool add_nodes, struct mf_net_places *places, struct mf_error *err)
{
    const struct mf_device *device = NULL;
    char text[400];

    if (mf_net_apply(net, add_nodes, cluster, places, err) < 0)
        return -1;
    if (cluster->nodes == 0)
        return mf_error_set(err, MF_INVALID,
            "no nodes: give a file with NodeName=, SwitchName= or BlockName= "
            "lines that name some");
    if (gpuless_settle(cluster, places, err) < 0 ||
        device_describe(cluster, &device, err) < 0 ||
        unplaced_warn(cluster, device, places, err) < 0 ||
        roots_warn(cluster, net, places, err) < 0 ||
        mf_net_order(net, places, cluster, err) < 0 ||
        mf_topology_tiers(cluster, device, places->levels, err) < 0 ||
        states_warn(cluster, err) < 0)
        return -1;
    if (net->count == 0 &&
        mf_cluster_warn(cluster, err,
            "Slurm knows no topology: one flat network is assumed") < 0)
        return -1;
    if (net->count > 0 &&
        mf_cluster_add_source(cluster, "tiers", MF_READ, net->from, err) < 0)
        return -1;
    if (mf_cluster_part(cluster, text, sizeof text) < 0)
        return mf_error_set(err, MF_FAILED, "cluster: out of memory");
    return text[0] ? mf_cluster_warn(cluster, err, "%s", text) : 0;
}

int mf_slurm_finish(struct mf_cluster *cluster, const struct mf_net *net,
    bool add_nodes, struct mf_error *err)
{
    struct mf_net_places places;
    int rc = finish(cluster, net, add_nodes, &places, err);

    mf_net_places_free(&places);
    return rc;
}
