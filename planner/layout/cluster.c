/* SPDX-License-Identifier: BSD-3-Clause
 * A cluster as data: building it, and which domain of a tier a rank lies in.
 */
#include "planner/layout/cluster.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/layout/hostlist.h"
#include "planner/layout/layout.h"

#define WARNINGS_MAX 1000

static int no_memory(struct mf_error *err)
{
    return mf_error_set(err, MF_FAILED, "cluster: out of memory");
}

/* Room for one more of COUNT items: blocks double, so that no capacity needs
 * to be kept.
 */
static void *grown(void *items, size_t count, size_t item_size)
{
    size_t bytes;

    if (count & (count - 1))
        return items;
    if (__builtin_mul_overflow(count ? 2 * count : 1, item_size, &bytes))
        return NULL;
    return realloc(items, bytes);
}

int mf_cluster_add_node(struct mf_cluster *cluster, const char *name,
    int64_t gpus, struct mf_error *err)
{
    struct mf_node *node;

    if (!mf_host_is_plain(name)) /* it goes to host files and scripts */
        return mf_error_set(err, MF_INVALID,
            "cluster: '%.80s' is not a node name: letters, digits, '.', '_' "
            "and '-' only",
            name);
    if (gpus < MF_GPUS_UNKNOWN || gpus > MF_WORLD_MAX)
        return mf_error_set(err, MF_INVALID,
            "cluster: node %s has %lld devices, not 0 to %lld", name,
            (long long)gpus, (long long)MF_WORLD_MAX);
    if (cluster->nodes >= MF_NODES_MAX)
        return mf_error_set(
            err, MF_INVALID, "cluster: more than %d nodes", MF_NODES_MAX);
    node = grown(cluster->node, cluster->nodes, sizeof *node);
    if (!node)
        return no_memory(err);
    cluster->node = node;
    node += cluster->nodes;
    *node = (struct mf_node){.state = MF_NODE_UP, .gpus = gpus};
    node->name = strdup(name);
    if (!node->name)
        return no_memory(err);
    cluster->nodes++;
    return 0;
}

int mf_cluster_add_source(struct mf_cluster *cluster, const char *field,
    enum mf_how how, const char *from, struct mf_error *err)
{
    struct mf_source *source =
        grown(cluster->source, cluster->sources, sizeof *source);

    if (!source)
        return no_memory(err);
    cluster->source = source;
    source += cluster->sources++;
    *source = (struct mf_source){.how = how};
    snprintf(source->field, sizeof source->field, "%s", field);
    snprintf(source->from, sizeof source->from, "%s", from);
    return 0;
}

int mf_cluster_source_set(struct mf_cluster *cluster, const char *field,
    enum mf_how how, const char *from, struct mf_error *err)
{
    for (size_t i = 0; i < cluster->sources; i++) {
        struct mf_source *source = &cluster->source[i];

        if (strcmp(source->field, field) != 0)
            continue;
        source->how = how;
        snprintf(source->from, sizeof source->from, "%s", from);
        return 0;
    }
    return mf_cluster_add_source(cluster, field, how, from, err);
}

int mf_cluster_label(char **label, const char *text, struct mf_error *err)
{
    char *copy = text ? strdup(text) : NULL;

    if (text && !copy)
        return no_memory(err);
    free(*label);
    *label = copy;
    return 0;
}

static void text_to_one_line(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = '?';
}

int mf_cluster_warn(
    struct mf_cluster *cluster, struct mf_error *err, const char *fmt, ...)
{
    char text[512], **warning;
    size_t n = 0;
    va_list args;

    while (cluster->warning && cluster->warning[n])
        n++;
    if (n >= WARNINGS_MAX)
        return 0;
    va_start(args, fmt);
    if (vsnprintf(text, sizeof text, fmt, args) < 0)
        text[0] = 0;
    va_end(args);
    text_to_one_line(text);
    warning = realloc(cluster->warning, (n + 2) * sizeof *warning);
    if (!warning)
        return no_memory(err);
    cluster->warning = warning;
    warning[n + 1] = NULL;
    warning[n] = strdup(text);
    return warning[n] ? 0 : no_memory(err);
}

int64_t mf_cluster_gpus_per_node(const struct mf_cluster *cluster)
{
    if (!cluster->nodes)
        return -1;
    for (size_t i = 1; i < cluster->nodes; i++)
        if (cluster->node[i].gpus != cluster->node[0].gpus)
            return -1;
    return cluster->node[0].gpus;
}

int64_t mf_cluster_devices(const struct mf_cluster *cluster)
{
    int64_t devices = 0;

    for (size_t i = 0; i < cluster->nodes; i++)
        if (cluster->node[i].state == MF_NODE_UP && cluster->node[i].gpus > 0)
            devices += cluster->node[i].gpus;
    return devices;
}

static int64_t largest_node(const struct mf_cluster *cluster)
{
    int64_t most = 0;

    for (size_t i = 0; i < cluster->nodes; i++)
        if (cluster->node[i].gpus > most)
            most = cluster->node[i].gpus;
    return most;
}

/* The name that binds nodes into one domain of TIER, NULL: none is known. */
static const char *node_label(
    const struct mf_node *node, const struct mf_tier *tier)
{
    if (!strcmp(tier->name, "leaf"))
        return node->switch_name;
    if (!strcmp(tier->name, "pod"))
        return node->pod;
    if (!strcmp(tier->name, "nvlink") || !strcmp(tier->name, "block"))
        return node->block;
    return NULL;
}

struct labelled {
    const char *label; /* NULL: the node is alone */
    size_t node;
};

static int labelled_compare(const void *a, const void *b)
{
    const struct labelled *x = a, *y = b;
    int order = x->label && y->label ? strcmp(x->label, y->label)
                                     : !x->label - !y->label;

    if (order)
        return order;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* owner[i] = first node that carries the same label as node I. */
static int owners_by_label(const struct mf_cluster *cluster,
    const struct mf_tier *tier, int32_t *owner, struct mf_error *err)
{
    struct labelled *list = calloc(cluster->nodes, sizeof *list);
    size_t first = 0;

    if (!list)
        return no_memory(err);
    for (size_t i = 0; i < cluster->nodes; i++) {
        list[i].label = node_label(&cluster->node[i], tier);
        list[i].node = i;
    }
    qsort(list, cluster->nodes, sizeof *list, labelled_compare);
    for (size_t i = 0; i < cluster->nodes; i++) {
        if (!list[i].label || strcmp(list[i].label, list[first].label))
            first = i;
        owner[list[i].node] = (int32_t)list[first].node;
    }
    free(list);
    return 0;
}

/* Whole nodes fill a domain up to the tier's size. Nodes that are down count:
 * they still hold their ports.
 */
static void owners_by_size(const struct mf_cluster *cluster,
    const struct mf_tier *tier, int32_t *owner)
{
    int64_t filled = 0;
    size_t first = 0;

    for (size_t i = 0; i < cluster->nodes; i++) {
        int64_t here = cluster->node[i].gpus > 0 ? cluster->node[i].gpus : 0;

        if (filled + here > tier->size) {
            first = i;
            filled = 0;
        }
        filled += here;
        owner[i] = (int32_t)first;
    }
}

static int domain_owners(const struct mf_cluster *cluster, int t,
    int32_t *owner, struct mf_error *err)
{
    const struct mf_tier *tier = &cluster->tier[t];

    if (t == cluster->tiers - 1) {
        memset(owner, 0, cluster->nodes * sizeof *owner);
        return 0;
    }
    if (tier->size <= largest_node(cluster)) {
        for (size_t i = 0; i < cluster->nodes; i++)
            owner[i] = (int32_t)i;
        return 0;
    }
    for (size_t i = 0; i < cluster->nodes; i++)
        if (node_label(&cluster->node[i], tier))
            return owners_by_label(cluster, tier, owner, err);
    owners_by_size(cluster, tier, owner);
    return 0;
}

/* Number the domains in the order in which ranks meet them. FIRST_ID[node] is
 * the number of the domain that NODE owns, -1 until a rank meets it. A tier
 * smaller than a node cuts the node into runs of its size.
 */
static void domains_number(const struct mf_cluster *cluster, int t,
    int64_t world, const int32_t *owner, int32_t *first_id, int32_t *domain)
{
    bool inside =
        t < cluster->tiers - 1 && cluster->tier[t].size < largest_node(cluster);
    int64_t step = inside ? cluster->tier[t].size : INT64_MAX, rank = 0;
    int32_t next = 0;

    for (size_t i = 0; i < cluster->nodes && rank < world; i++) {
        if (cluster->node[i].state != MF_NODE_UP)
            continue;
        for (int64_t g = 0; g < cluster->node[i].gpus && rank < world; g++) {
            int32_t *id = &first_id[owner[i]];

            if (*id < 0 || (g > 0 && g % step == 0))
                *id = next++;
            domain[rank++] = *id;
        }
    }
}

int mf_cluster_domains(const struct mf_cluster *cluster, int t, int64_t world,
    int32_t *domain, struct mf_error *err)
{
    int64_t devices = mf_cluster_devices(cluster);
    int32_t *owner = NULL, *first_id = NULL;
    int rc = -1;

    if (t < 0 || t >= cluster->tiers || cluster->tier[t].size < 1)
        return mf_error_set(err, MF_INVALID, "cluster: there is no tier %d", t);
    if (world > devices)
        return mf_error_set(err, MF_NO,
            "cluster %s has %lld devices on nodes that are up, not %lld",
            cluster->name, (long long)devices, (long long)world);
    if (world < 1)
        return mf_error_set(err, MF_INVALID,
            "cluster: world is %lld, not 1 "
            "or more",
            (long long)world);
    owner = malloc(cluster->nodes * sizeof *owner);
    first_id = malloc(cluster->nodes * sizeof *first_id);
    if (!owner || !first_id) {
        no_memory(err);
        goto out;
    }
    memset(first_id, 0xff, cluster->nodes * sizeof *first_id);
    if (domain_owners(cluster, t, owner, err) < 0)
        goto out;
    domains_number(cluster, t, world, owner, first_id, domain);
    rc = 0;
out:
    free(first_id);
    free(owner);
    return rc;
}

int mf_node_numa(struct mf_node *node, int32_t nodes, int32_t gpus,
    const int32_t *of_gpu, struct mf_error *err)
{
    bool known = nodes > 0;
    struct mf_numa *numa = NULL;

    gpus = of_gpu && gpus > 0 ? gpus : 0;
    for (int32_t i = 0; i < gpus; i++)
        known |= of_gpu[i] >= 0;
    if (known) {
        numa = malloc(sizeof *numa + (size_t)gpus * sizeof *of_gpu);
        if (!numa)
            return no_memory(err);
        *numa = (struct mf_numa){.nodes = nodes, .gpus = gpus};
        if (gpus > 0)
            memcpy(numa->of_gpu, of_gpu, (size_t)gpus * sizeof *of_gpu);
    }
    free(node->numa);
    node->numa = numa;
    return 0;
}

int mf_node_numa_copy(
    struct mf_node *node, const struct mf_numa *other, struct mf_error *err)
{
    if (!other)
        return 0;
    return mf_node_numa(node, other->nodes, other->gpus, other->of_gpu, err);
}

void mf_node_free(struct mf_node *node)
{
    if (!node)
        return;
    free(node->name);
    free(node->switch_name);
    free(node->pod);
    free(node->block);
    free(node->partitions);
    free(node->features);
    free(node->gpu_type);
    free(node->numa);
    *node = (struct mf_node){0};
}

void mf_cluster_free(struct mf_cluster *cluster)
{
    if (!cluster)
        return;
    for (size_t i = 0; i < cluster->nodes; i++)
        mf_node_free(&cluster->node[i]);
    free(cluster->node);
    free(cluster->source);
    for (size_t i = 0; cluster->warning && cluster->warning[i]; i++)
        free(cluster->warning[i]);
    free(cluster->warning);
    *cluster = (struct mf_cluster){0};
}
