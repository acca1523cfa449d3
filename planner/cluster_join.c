/* SPDX-License-Identifier: BSD-3-Clause
 * Several descriptions of one cluster made into one.
 */
#include "config.h"

#include "planner/cluster_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The source that OTHER names for FROM_FIELD now stands for FIELD. */
static int take_source(struct mf_cluster *cluster, const char *field,
    const struct mf_cluster *other, const char *from_field,
    struct mf_error *err)
{
    for (size_t i = 0; i < other->sources; i++)
        if (!strcmp(other->source[i].field, from_field))
            return mf_cluster_add_source(cluster, field, other->source[i].how,
                other->source[i].from, err);
    return mf_cluster_add_source(cluster, field, MF_READ, other->name, err);
}

struct figure {
    double *mine, theirs;
    char field[96], from_field[96];
};

static int join_figure(struct mf_cluster *cluster,
    const struct mf_cluster *other, const char *name,
    const struct figure *figure, struct mf_error *err)
{
    if (!isfinite(figure->theirs))
        return 0;
    if (!isfinite(*figure->mine)) {
        *figure->mine = figure->theirs;
        return take_source(
            cluster, figure->field, other, figure->from_field, err);
    }
    if (fabs(*figure->mine - figure->theirs) <= 1e-9 * fabs(*figure->mine))
        return 0;
    return mf_cluster_warn(cluster, err, "%s is %g, but %s says %g",
        figure->field, *figure->mine, name, figure->theirs);
}

static int join_gpu(struct mf_cluster *cluster, const struct mf_cluster *other,
    const char *name, struct mf_error *err)
{
    struct figure figure[] = {
        {&cluster->gpu.memory_bytes, other->gpu.memory_bytes,
            "gpu.memory_bytes", "gpu.memory_bytes"},
        {&cluster->gpu.bf16_flops, other->gpu.bf16_flops, "gpu.bf16_flops",
            "gpu.bf16_flops"},
        {&cluster->gpu.hbm_bytes_per_s, other->gpu.hbm_bytes_per_s,
            "gpu.hbm_bytes_per_s", "gpu.hbm_bytes_per_s"},
    };

    for (size_t i = 0; i < sizeof figure / sizeof *figure; i++)
        if (join_figure(cluster, other, name, &figure[i], err) < 0)
            return -1;
    if (!other->gpu.model[0] || !strcmp(cluster->gpu.model, other->gpu.model))
        return 0;
    if (cluster->gpu.model[0])
        return mf_cluster_warn(cluster, err, "gpu.model is %s, but %s says %s",
            cluster->gpu.model, name, other->gpu.model);
    memcpy(cluster->gpu.model, other->gpu.model, sizeof cluster->gpu.model);
    return take_source(cluster, "gpu.model", other, "gpu.model", err);
}

/* The tier of OTHER that tells of tier T: that of the same name; else the
 * innermost of the innermost, and the outermost of those that cross nodes.
 */
static const struct mf_tier *tier_like(
    const struct mf_cluster *cluster, int t, const struct mf_cluster *other)
{
    for (int i = 0; i < other->tiers; i++)
        if (!strcmp(other->tier[i].name, cluster->tier[t].name))
            return &other->tier[i];
    if (other->tiers == 0 || (t > 0 && other->tiers == 1))
        return NULL;
    return &other->tier[t == 0 ? 0 : other->tiers - 1];
}

static int join_tier(struct mf_cluster *cluster, int t,
    const struct mf_cluster *other, const char *name, struct mf_error *err)
{
    struct mf_tier *mine = &cluster->tier[t];
    const struct mf_tier *like = tier_like(cluster, t, other);
    struct figure rate, latency;

    if (!like)
        return 0;
    rate = (struct figure){&mine->bytes_per_s, like->bytes_per_s, "", ""};
    latency = (struct figure){&mine->latency_s, like->latency_s, "", ""};
    snprintf(rate.field, sizeof rate.field, "tiers.%s.bytes_per_s", mine->name);
    snprintf(rate.from_field, sizeof rate.from_field, "tiers.%s.bytes_per_s",
        like->name);
    snprintf(
        latency.field, sizeof latency.field, "tiers.%s.latency_s", mine->name);
    snprintf(latency.from_field, sizeof latency.from_field,
        "tiers.%s.latency_s", like->name);
    if (join_figure(cluster, other, name, &rate, err) < 0)
        return -1;
    return join_figure(cluster, other, name, &latency, err);
}

static int join_nodes(struct mf_cluster *cluster,
    const struct mf_cluster *other, const char *name, struct mf_error *err)
{
    int64_t mine = mf_cluster_gpus_per_node(cluster);
    int64_t theirs = mf_cluster_gpus_per_node(other);

    if (cluster->nodes != other->nodes)
        return mf_cluster_warn(cluster, err, "%zu nodes, but %s says %zu",
            cluster->nodes, name, other->nodes);
    if (mine != theirs)
        return mf_cluster_warn(cluster, err,
            "%lld GPUs a node, but %s says %lld (-1: uneven)", (long long)mine,
            name, (long long)theirs);
    return 0;
}

int mf_cluster_join(struct mf_cluster *cluster, const struct mf_cluster *other,
    const char *name, struct mf_error *err)
{
    bool sizeless = mf_preset_is(name) && !strchr(name, ':');

    if (join_gpu(cluster, other, name, err) < 0 ||
        (!sizeless && join_nodes(cluster, other, name, err) < 0))
        return -1;
    for (int t = 0; t < cluster->tiers; t++)
        if (join_tier(cluster, t, other, name, err) < 0)
            return -1;
    return 0;
}
