/* SPDX-License-Identifier: BSD-3-Clause
 * Several descriptions of one cluster made into one.
 */
#include "config.h"

#include "planner/cluster_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct mf_source *source_of(
    const struct mf_cluster *cluster, const char *field)
{
    for (size_t i = 0; i < cluster->sources; i++)
        if (!strcmp(cluster->source[i].field, field))
            return &cluster->source[i];
    return NULL;
}

static bool is_assumed(const struct mf_cluster *cluster, const char *field)
{
    const struct mf_source *source = source_of(cluster, field);

    return source && source->how == MF_ASSUMED;
}

/* The source that OTHER names for FROM_FIELD now stands for FIELD. */
static int take_source(struct mf_cluster *cluster, const char *field,
    const struct mf_cluster *other, const char *from_field,
    struct mf_error *err)
{
    const struct mf_source *theirs = source_of(other, from_field);
    enum mf_how how = theirs ? theirs->how : MF_READ;
    char from[sizeof theirs->from];

    snprintf(from, sizeof from, "%s", theirs ? theirs->from : other->name);
    return mf_cluster_source_set(cluster, field, how, from, err);
}

struct figure {
    double *mine, theirs;
    char field[96], from_field[96];
};

/* What is only assumed gives way to what is not. */
static int join_figure(struct mf_cluster *cluster,
    const struct mf_cluster *other, const char *name,
    const struct figure *figure, struct mf_error *err)
{
    bool soft = is_assumed(cluster, figure->field);

    if (!isfinite(figure->theirs))
        return 0;
    if (!isfinite(*figure->mine) ||
        (soft && !is_assumed(other, figure->from_field))) {
        *figure->mine = figure->theirs;
        return take_source(
            cluster, figure->field, other, figure->from_field, err);
    }
    if (soft || is_assumed(other, figure->from_field) ||
        fabs(*figure->mine - figure->theirs) <= 1e-9 * fabs(*figure->mine))
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
    if (!other->gpu.model[0] ||
        !strcasecmp(cluster->gpu.model, other->gpu.model))
        return 0;
    if (cluster->gpu.model[0])
        return mf_cluster_warn(cluster, err, "gpu.model is %s, but %s says %s",
            cluster->gpu.model, name, other->gpu.model);
    memcpy(cluster->gpu.model, other->gpu.model, sizeof cluster->gpu.model);
    return take_source(cluster, "gpu.model", other, "gpu.model", err);
}

static bool is_network(const struct mf_tier *tier)
{
    static const char *const name[] = {
        "network", "leaf", "pod", "spine", "block"};

    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (!strcmp(tier->name, name[i]))
            return true;
    return false;
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
    if (other->tiers == 0)
        return NULL;
    if (t == 0)
        return &other->tier[0];
    if (!is_network(&cluster->tier[t]) ||
        !is_network(&other->tier[other->tiers - 1]))
        return NULL;
    return &other->tier[other->tiers - 1];
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

/* ---- nodes ---- */

/* The GPUs of a node of OTHER, where it describes what each node is. */
static int join_kind(struct mf_cluster *cluster, const struct mf_cluster *other,
    const char *name, bool *changed, struct mf_error *err)
{
    int64_t theirs = mf_cluster_gpus_per_node(other), differ = 0;
    const char *type = other->nodes ? other->node[0].gpu_type : NULL;

    if (!type && other->gpu.model[0])
        type = other->gpu.model;
    for (size_t i = 0; theirs > 0 && i < cluster->nodes; i++) {
        struct mf_node *node = &cluster->node[i];

        if (node->gpus < 0) {
            *changed = true;
            node->gpus = theirs;
            if (!node->gpu_type &&
                mf_cluster_label(&node->gpu_type, type, err) < 0)
                return -1;
        }
        differ += node->gpus != theirs;
        if (!node->numa && node->gpus == theirs &&
            mf_node_numa_copy(node, other->node[0].numa, err) < 0)
            return -1;
    }
    if (*changed &&
        take_source(cluster, "node_list.gpus", other, "node_list", err) < 0)
        return -1;
    if (differ == 0)
        return 0;
    return mf_cluster_warn(cluster, err,
        "%" PRId64 " of %zu nodes have another number of GPUs than the %" PRId64
        " that %s says",
        differ, cluster->nodes, theirs, name);
}

static int node_compare(const void *a, const void *b)
{
    const struct mf_node *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

static int label_join(
    char **mine, const char *theirs, bool *changed, struct mf_error *err)
{
    if (*mine || !theirs)
        return 0;
    *changed = true;
    return mf_cluster_label(mine, theirs, err);
}

static int node_join(struct mf_node *mine, const struct mf_node *theirs,
    bool *gpus, bool *labels, struct mf_error *err)
{
    bool ignored = false;

    if (mine->gpus < 0 && theirs->gpus >= 0) {
        mine->gpus = theirs->gpus;
        *gpus = true;
    }
    if (mine->state == MF_NODE_UP && theirs->state != MF_NODE_UP)
        mine->state = theirs->state;
    if (!mine->numa && mf_node_numa_copy(mine, theirs->numa, err) < 0)
        return -1;
    if (label_join(&mine->switch_name, theirs->switch_name, labels, err) < 0 ||
        label_join(&mine->pod, theirs->pod, labels, err) < 0 ||
        label_join(&mine->block, theirs->block, labels, err) < 0 ||
        label_join(&mine->partitions, theirs->partitions, &ignored, err) < 0 ||
        label_join(&mine->features, theirs->features, &ignored, err) < 0)
        return -1;
    return label_join(&mine->gpu_type, theirs->gpu_type, &ignored, err);
}

struct ranked {
    struct mf_node node;
    size_t rank;
};

static int ranked_compare(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return strverscmp(x->node.name, y->node.name);
}

/* Nodes in the order in which OTHER, which knows the network, has them. */
static int join_by_name(struct mf_cluster *cluster,
    const struct mf_cluster *other, const char *name, bool *gpus, bool *labels,
    struct mf_error *err)
{
    const struct mf_node **list = calloc(other->nodes + 1, sizeof *list);
    struct ranked *ranked = calloc(cluster->nodes + 1, sizeof *ranked);
    int64_t strangers = 0;
    int rc = 0;

    if (!list || !ranked)
        rc = mf_error_set(err, MF_FAILED, "cluster: out of memory");
    for (size_t i = 0; rc == 0 && i < other->nodes; i++)
        list[i] = &other->node[i];
    if (rc == 0)
        qsort(list, other->nodes, sizeof *list, node_compare);
    for (size_t i = 0; rc == 0 && i < cluster->nodes; i++) {
        const struct mf_node *key = &cluster->node[i], **found;

        found = bsearch(&key, list, other->nodes, sizeof *list, node_compare);
        strangers += !found;
        if (found)
            rc = node_join(&cluster->node[i], *found, gpus, labels, err);
        ranked[i].node = cluster->node[i];
        ranked[i].rank = found ? (size_t)(*found - other->node) : SIZE_MAX;
    }
    if (rc == 0 && *labels) {
        qsort(ranked, cluster->nodes, sizeof *ranked, ranked_compare);
        for (size_t i = 0; i < cluster->nodes; i++)
            cluster->node[i] = ranked[i].node;
    }
    free(ranked);
    free(list);
    if (rc == 0 && strangers > 0)
        rc = mf_cluster_warn(cluster, err,
            "%" PRId64 " of %zu nodes are not in %s, which has %zu", strangers,
            cluster->nodes, name, other->nodes);
    return rc;
}

/* ---- tiers ---- */

static void add_some(
    struct mf_cluster *to, const struct mf_cluster *from, bool network)
{
    for (int t = 0; t < from->tiers && to->tiers < MF_TIERS_MAX; t++)
        if (is_network(&from->tier[t]) == network)
            to->tier[to->tiers++] = from->tier[t];
}

/* Tiers inside a node from one, those of the network from another; figures of
 * the tiers that leave are lost, the rate and source of the last network tier
 * goes on to those that come.
 */
static int tiers_take(struct mf_cluster *cluster,
    const struct mf_cluster *other, bool inside, struct mf_error *err)
{
    struct mf_cluster made = {0};
    struct mf_tier last = {.bytes_per_s = NAN, .latency_s = NAN};
    char field[96], from_field[96];

    for (int t = 0; t < cluster->tiers; t++)
        if (is_network(&cluster->tier[t]))
            last = cluster->tier[t];
    add_some(&made, inside ? other : cluster, false);
    add_some(&made, inside ? cluster : other, true);
    memcpy(cluster->tier, made.tier, sizeof cluster->tier);
    cluster->tiers = made.tiers;
    for (int t = 0; t < cluster->tiers; t++) {
        struct mf_tier *tier = &cluster->tier[t];

        tier->size = 0;
        snprintf(field, sizeof field, "tiers.%s.bytes_per_s", tier->name);
        if (is_network(tier) == inside)
            continue;
        if (!inside && !isfinite(tier->bytes_per_s) && last.name[0]) {
            tier->bytes_per_s = last.bytes_per_s;
            snprintf(from_field, sizeof from_field, "tiers.%s.bytes_per_s",
                last.name);
            if (isfinite(last.bytes_per_s) &&
                take_source(cluster, field, cluster, from_field, err) < 0)
                return -1;
            continue;
        }
        if (take_source(cluster, field, other, field, err) < 0)
            return -1;
        snprintf(field, sizeof field, "tiers.%s.latency_s", tier->name);
        if (take_source(cluster, field, other, field, err) < 0)
            return -1;
    }
    return 0;
}

static void tiers_inner_sizes(
    struct mf_cluster *cluster, const struct mf_cluster *other)
{
    mf_topology_sizes(cluster);
    /* Domains that are less than a node are known to OTHER alone. */
    for (int t = 0; t < cluster->tiers; t++)
        for (int i = 0; i + 1 < other->tiers; i++)
            if (!strcmp(cluster->tier[t].name, other->tier[i].name) &&
                !is_network(&other->tier[i]) && other->tier[i].size > 0 &&
                other->tier[i].size < mf_cluster_gpus_per_node(other))
                cluster->tier[t].size = other->tier[i].size;
}

static bool inside_is_known(const struct mf_cluster *cluster)
{
    return cluster->tiers > 0 && (strcmp(cluster->tier[0].name, "node") != 0 ||
                                     isfinite(cluster->tier[0].bytes_per_s));
}

static bool inside_is_told(const struct mf_cluster *other)
{
    return other->tiers > 0 && !is_network(&other->tier[0]) &&
           isfinite(other->tier[0].bytes_per_s);
}

static int join_structure(struct mf_cluster *cluster,
    const struct mf_cluster *other, const char *name, struct mf_error *err)
{
    bool kind = other->nodes == 1 || mf_preset_is(name);
    bool gpus = false, labels = false, inside;
    int rc = 0;

    if (kind && mf_preset_is(name) && strchr(name, ':') &&
        other->nodes != cluster->nodes)
        rc = mf_cluster_warn(cluster, err, "%zu nodes, but %s says %zu",
            cluster->nodes, name, other->nodes);
    if (rc == 0)
        rc = kind ? join_kind(cluster, other, name, &gpus, err)
                  : join_by_name(cluster, other, name, &gpus, &labels, err);
    if (rc < 0)
        return -1;
    inside = !inside_is_known(cluster) && inside_is_told(other);
    if (inside && tiers_take(cluster, other, true, err) < 0)
        return -1;
    if (labels && tiers_take(cluster, other, false, err) < 0)
        return -1;
    if (gpus || labels || inside)
        tiers_inner_sizes(cluster, other);
    return 0;
}

/* Where an NVLink domain is a block, one tier says it. */
static void rack_settle(struct mf_cluster *cluster)
{
    const struct mf_device *device = mf_device_find(cluster->gpu.model);
    int kept = 0;

    for (int t = 0; t < cluster->tiers; t++)
        if (!device || !device->rack || strcmp(cluster->tier[t].name, "block"))
            cluster->tier[kept++] = cluster->tier[t];
    cluster->tiers = kept;
}

static bool any_node(const struct mf_cluster *cluster, char what)
{
    for (size_t i = 0; i < cluster->nodes; i++) {
        const struct mf_node *node = &cluster->node[i];

        if ((what == 'g' && node->gpus >= 0) || (what == 'b' && node->block) ||
            (what == 't' && (node->block || node->switch_name)))
            return true;
    }
    return false;
}

/* Does what WARNING misses stand in CLUSTER by now? */
static bool is_stale(const struct mf_cluster *cluster, const char *warning)
{
    const struct mf_tier *last =
        cluster->tiers ? &cluster->tier[cluster->tiers - 1] : NULL;

    if (strstr(warning, "no node is said to have GPUs"))
        return any_node(cluster, 'g');
    if (strstr(warning, "nothing says of what type the GPUs are"))
        return cluster->gpu.model[0];
    if (strstr(warning, "their figures are missing"))
        return isfinite(cluster->gpu.memory_bytes);
    if (strstr(warning, "Slurm knows no topology"))
        return any_node(cluster, 't');
    if (strstr(warning, "share NVLink domains, but nothing says which"))
        return any_node(cluster, 'b');
    if (strstr(warning, "network adapters is not known"))
        return last && isfinite(last->bytes_per_s);
    return strstr(warning, "the cluster is uneven") != NULL;
}

static int warnings_settle(struct mf_cluster *cluster, struct mf_error *err)
{
    size_t kept = 0;
    char text[400];

    for (size_t i = 0; cluster->warning && cluster->warning[i]; i++) {
        char *warning = cluster->warning[i];

        if (is_stale(cluster, warning))
            free(warning);
        else
            cluster->warning[kept++] = warning;
    }
    if (cluster->warning)
        cluster->warning[kept] = NULL;
    if (mf_cluster_part(cluster, text, sizeof text) < 0)
        return mf_error_set(err, MF_FAILED, "cluster: out of memory");
    return text[0] ? mf_cluster_warn(cluster, err, "%s", text) : 0;
}

static int numa_source(struct mf_cluster *cluster,
    const struct mf_cluster *other, struct mf_error *err)
{
    static const char field[] = "node_list.numa";
    bool any = false;

    for (size_t i = 0; i < cluster->nodes; i++)
        any |= cluster->node[i].numa != NULL;
    if (!any || !source_of(other, field) || source_of(cluster, field))
        return 0;
    return take_source(cluster, field, other, field, err);
}

int mf_cluster_join(struct mf_cluster *cluster, const struct mf_cluster *other,
    const char *name, struct mf_error *err)
{
    if (join_gpu(cluster, other, name, err) < 0 ||
        join_structure(cluster, other, name, err) < 0 ||
        numa_source(cluster, other, err) < 0)
        return -1;
    for (int t = 0; t < cluster->tiers; t++)
        if (join_tier(cluster, t, other, name, err) < 0)
            return -1;
    rack_settle(cluster);
    return warnings_settle(cluster, err);
}
