/* SPDX-License-Identifier: BSD-3-Clause
 * One node, from what its description tells to tiers.
 */
#include "config.h"

#include "planner/cluster_facts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "planner/layout/hostlist.h"

void mf_facts_init(struct mf_facts *facts)
{
    *facts = (struct mf_facts){.gpus = MF_GPUS_UNKNOWN,
        .memory_bytes = NAN,
        .pcie_bytes_per_s = NAN,
        .nic_bytes_per_s = NAN,
        .link_how = MF_READ,
        .nic_how = MF_READ};
    memset(facts->numa, 0xff, sizeof facts->numa);
}

/* Are A and B joined without PCIe? */
static bool joined(const struct mf_facts *f, int64_t a, int64_t b)
{
    return (f->link[a][b] > 0 && f->link[b][a] > 0) ||
           (f->fabric[a] > 0 && f->fabric[b] > 0);
}

/* Are all runs of SIZE joined each to each? */
static bool runs_are_joined(const struct mf_facts *f, int64_t size)
{
    for (int64_t a = 0; a < f->gpus; a++)
        for (int64_t b = a - a % size; b < a; b++)
            if (!joined(f, a, b))
                return false;
    return true;
}

static int64_t domain_size(const struct mf_facts *f)
{
    for (int64_t size = f->gpus; size > 1; size--)
        if (f->gpus % size == 0 && runs_are_joined(f, size))
            return size;
    return 1;
}

/* What the worst GPU sends to others of its run of SIZE, or to those outside
 * it.
 */
static double worst_rate(const struct mf_facts *f, int64_t size, bool inside)
{
    double worst = INFINITY;

    for (int64_t a = 0; a < f->gpus; a++) {
        double sum = inside ? f->fabric[a] : 0;

        for (int64_t b = 0; b < f->gpus; b++)
            if (a != b && (a / size == b / size) == inside)
                sum += f->link[a][b];
        worst = sum < worst ? sum : worst;
    }
    return isfinite(worst) ? worst : 0;
}

static int add_tier(struct mf_cluster *cluster, const char *name, int64_t size,
    double rate, double latency_s, enum mf_how how, const char *from,
    struct mf_error *err)
{
    struct mf_tier tier = {.size = size,
        .bytes_per_s = rate > 0 && rate < 1e18 ? rate : NAN,
        .latency_s = NAN};
    char field[96];

    snprintf(tier.name, sizeof tier.name, "%s", name);
    if (mf_cluster_add_tier(cluster, &tier, how, from, "", err) < 0)
        return -1;
    cluster->tier[cluster->tiers - 1].latency_s = latency_s;
    snprintf(field, sizeof field, "tiers.%s.latency_s", name);
    return mf_cluster_add_source(
        cluster, field, MF_PRESET, MF_LATENCY_FROM, err);
}

static int add_pcie(const struct mf_facts *f, struct mf_cluster *cluster,
    double linked, struct mf_error *err)
{
    int64_t size = f->gpus > 0 ? f->gpus : 0;

    if (linked > 0)
        return add_tier(cluster, "node", size, linked, MF_LINK_LATENCY_S,
            f->link_how, "links that leave a group of GPUs joined each to each",
            err);
    if (f->pcie_bytes_per_s > 0)
        return add_tier(cluster, "node", size, f->pcie_bytes_per_s,
            MF_PCIE_LATENCY_S, MF_READ, "the PCIe link of a GPU", err);
    return add_tier(cluster, "node", size, MF_PCIE_ASSUMED, MF_PCIE_LATENCY_S,
        MF_ASSUMED, "PCIe generation 4, 16 lanes", err);
}

static int add_links(
    const struct mf_facts *f, struct mf_cluster *cluster, struct mf_error *err)
{
    const char *name = f->xgmi ? "xgmi" : "nvlink";
    int64_t size;

    if (!f->links_known && f->device && f->device->link && f->gpus > 1)
        return add_tier(cluster, f->device->link, f->gpus,
            f->device->link_bytes_per_s, MF_LINK_LATENCY_S, MF_PRESET,
            f->device->from, err);
    if (!f->links_known || f->gpus < 2)
        return add_pcie(f, cluster, 0, err);
    size = domain_size(f);
    if (size > 1 && add_tier(cluster, name, size, worst_rate(f, size, true),
                        MF_LINK_LATENCY_S, f->link_how, f->link_from, err) < 0)
        return -1;
    if (size == f->gpus)
        return 0;
    return add_pcie(f, cluster, worst_rate(f, size, false), err);
}

static int add_network(
    const struct mf_facts *f, struct mf_cluster *cluster, struct mf_error *err)
{
    double rate = f->gpus > 0 ? f->nic_bytes_per_s / (double)f->gpus : NAN;

    if (f->nics == 0)
        return 0;
    if (!isfinite(rate) && mf_cluster_warn(cluster, err,
                               "the rate of the %lld network adapters is not "
                               "known",
                               (long long)f->nics) < 0)
        return -1;
    return add_tier(cluster, "network", f->gpus > 0 ? f->gpus : 0, rate,
        MF_NETWORK_LATENCY_S, f->nic_how, f->nic_from, err);
}

static int describe_gpu(const struct mf_facts *f, const char *kind,
    struct mf_cluster *cluster, struct mf_error *err)
{
    cluster->gpu = (struct mf_gpu){
        .memory_bytes = NAN, .bf16_flops = NAN, .hbm_bytes_per_s = NAN};
    if (f->device && mf_device_describe(cluster, f->device, err) < 0)
        return -1;
    if (!f->device && f->model[0]) {
        snprintf(cluster->gpu.model, sizeof cluster->gpu.model, "%s", f->model);
        if (mf_cluster_add_source(cluster, "gpu.model", MF_READ, kind, err) < 0)
            return -1;
    }
    if (!f->device && f->gpus > 0 &&
        mf_cluster_warn(cluster, err,
            "%s%s: the figures of the GPU are missing; add a preset with a "
            "second --cluster",
            f->model[0] ? "not a known GPU: "
                        : "nothing says of what type the GPUs are",
            f->model) < 0)
        return -1;
    if (!isfinite(f->memory_bytes))
        return 0;
    cluster->gpu.memory_bytes = f->memory_bytes;
    for (size_t i = 0; i < cluster->sources; i++)
        if (!strcmp(cluster->source[i].field, "gpu.memory_bytes")) {
            cluster->source[i].how = MF_READ;
            snprintf(cluster->source[i].from, sizeof cluster->source[i].from,
                "%s", kind);
            return 0;
        }
    return mf_cluster_add_source(
        cluster, "gpu.memory_bytes", MF_READ, kind, err);
}

static int cluster_fill(const struct mf_facts *f, const char *path,
    const char *kind, struct mf_cluster *cluster, struct mf_error *err)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    struct mf_node *node;

    snprintf(cluster->name, sizeof cluster->name, "%.100s", base);
    if (mf_cluster_add_node(cluster,
            f->host[0] && mf_host_is_plain(f->host) ? f->host : "node", f->gpus,
            err) < 0)
        return -1;
    node = &cluster->node[0];
    if (f->device && mf_cluster_label(&node->gpu_type, f->device->key, err) < 0)
        return -1;
    if (mf_node_numa(node, f->numa_nodes, (int32_t)f->gpus, f->numa, err) < 0 ||
        (node->numa && mf_cluster_add_source(
                           cluster, "node_list.numa", MF_READ, kind, err) < 0))
        return -1;
    if (mf_cluster_add_source(cluster, "node_list", MF_READ, kind, err) < 0 ||
        describe_gpu(f, kind, cluster, err) < 0 ||
        add_links(f, cluster, err) < 0)
        return -1;
    return add_network(f, cluster, err);
}

int mf_facts_cluster(const struct mf_facts *facts, const char *path,
    const char *kind, struct mf_cluster *cluster, struct mf_error *err)
{
    *cluster = (struct mf_cluster){0};
    if (facts->gpus > MF_FACTS_GPUS_MAX)
        return mf_error_set(err, MF_INVALID, "%.200s: over %d GPUs in a node",
            path, MF_FACTS_GPUS_MAX);
    if (facts->gpus == 0)
        return mf_error_set(err, MF_INVALID,
            "%.200s: no GPU in it; name the description of a node that has "
            "some",
            path);
    if (cluster_fill(facts, path, kind, cluster, err) == 0)
        return 0;
    mf_cluster_free(cluster);
    return -1;
}
