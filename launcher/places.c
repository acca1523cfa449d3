/* SPDX-License-Identifier: BSD-3-Clause
 * The nodes that ranks may be put on.
 */
#include "config.h"

#include "launcher/places.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/hostlist.h"
#include "planner/layout/number.h"

/* The plan's nodes by name, to find the few of an allocation among many. */
struct index {
    const struct mf_node **node;
    size_t count;
};

static int node_compare(const void *a, const void *b)
{
    const struct mf_node *const *left = a, *const *right = b;

    return strcmp((*left)->name, (*right)->name);
}

static int index_make(
    const struct mf_cluster *cluster, struct index *index, struct mf_error *err)
{
    index->count = cluster->nodes;
    index->node = calloc(cluster->nodes + 1, sizeof *index->node);
    if (!index->node)
        return mf_error_set(err, MF_FAILED, "out of memory");
    for (size_t i = 0; i < cluster->nodes; i++)
        index->node[i] = &cluster->node[i];
    qsort(index->node, index->count, sizeof *index->node, node_compare);
    return 0;
}

static const struct mf_node *index_find(
    const struct index *index, const char *name)
{
    struct mf_node key = {.name = (char *)name};
    const struct mf_node *wanted = &key, **found;

    found = bsearch(
        &wanted, index->node, index->count, sizeof *index->node, node_compare);
    return found ? *found : NULL;
}

/* A node of the allocation while it is sorted. */
struct given {
    char *name;
    int64_t ranks;
    size_t place;   /* in the plan, SIZE_MAX: unknown there */
    size_t arrival; /* as Slurm gave it */
};

static int given_compare(const void *a, const void *b)
{
    const struct given *left = a, *right = b;

    if (left->place != right->place)
        return left->place < right->place ? -1 : 1;
    return (left->arrival > right->arrival) - (left->arrival < right->arrival);
}

static int sort_by_plan(const struct mf_cluster *cluster,
    const struct index *index, struct mfl_places *places, struct mf_error *err)
{
    struct given *given = calloc(places->node.count + 1, sizeof *given);

    if (!given)
        return mf_error_set(err, MF_FAILED, "out of memory");
    for (size_t i = 0; i < places->node.count; i++) {
        const struct mf_node *node = index_find(index, places->node.item[i]);

        given[i] = (struct given){.name = places->node.item[i],
            .ranks = places->ranks[i],
            .place = node ? (size_t)(node - cluster->node) : SIZE_MAX,
            .arrival = i};
    }
    qsort(given, places->node.count, sizeof *given, given_compare);
    for (size_t i = 0; i < places->node.count; i++) {
        places->node.item[i] = given[i].name;
        places->ranks[i] = given[i].ranks;
    }
    free(given);
    return 0;
}

/* Devices as the plan has them: of that very node, else of any. */
static int ranks_from_plan(const struct mf_plan *plan,
    const struct index *index, struct mfl_places *places, struct mf_error *err)
{
    int64_t uniform = mf_cluster_gpus_per_node(&plan->cluster);

    for (size_t i = 0; i < places->node.count; i++) {
        const char *name = places->node.item[i];
        const struct mf_node *node = index_find(index, name);

        places->ranks[i] = node ? node->gpus : uniform;
        if (places->ranks[i] < 0)
            return mf_error_set(err, MF_INVALID,
                "node %s is not in the plan, whose nodes differ in devices; "
                "plan for this cluster",
                name);
    }
    return 0;
}

/* SLURM_TASKS_PER_NODE, when it is a statement about this plan's ranks: 1. */
static int ranks_from_tasks(
    const struct mf_plan *plan, struct mfl_places *places, struct mf_error *err)
{
    const char *text = getenv("SLURM_TASKS_PER_NODE");
    int64_t sum = 0;
    long *tasks;
    int rc = -1;

    if (!text)
        return 0;
    tasks = calloc(places->node.count + 1, sizeof *tasks);
    if (!tasks)
        return mf_error_set(err, MF_FAILED, "out of memory");
    if (mfl_hostlist_counts(text, places->node.count, tasks, err) < 0) {
        mf_error_prefix(err, "SLURM_TASKS_PER_NODE");
        goto out;
    }
    for (size_t i = 0; i < places->node.count; i++)
        sum += tasks[i];
    rc = sum == plan->world || (plan->cluster.cpu_ranks && sum > plan->world);
    for (size_t i = 0; rc == 1 && i < places->node.count; i++)
        places->ranks[i] = tasks[i];
out:
    free(tasks);
    return rc;
}

static int ranks_in_allocation(const struct mf_plan *plan,
    const struct index *index, struct mfl_places *places, struct mf_error *err)
{
    const char *gpus = getenv("SLURM_GPUS_ON_NODE");
    int taken = ranks_from_tasks(plan, places, err);
    int64_t each;

    if (taken != 0)
        return taken < 0 ? -1 : 0;
    if (plan->cluster.cpu_ranks || !gpus)
        return ranks_from_plan(plan, index, places, err);
    if (mf_number_parse(gpus, "SLURM_GPUS_ON_NODE", 0, INT_MAX, &each, err) < 0)
        return -1;
    for (size_t i = 0; i < places->node.count; i++)
        places->ranks[i] = each;
    return 0;
}

static int places_from_plan(
    const struct mf_plan *plan, struct mfl_places *places, struct mf_error *err)
{
    places->from = "plan";
    places->ranks = calloc(plan->cluster.nodes + 1, sizeof *places->ranks);
    if (!places->ranks)
        return mf_error_set(err, MF_FAILED, "out of memory");
    for (size_t i = 0; i < plan->cluster.nodes; i++) {
        const struct mf_node *node = &plan->cluster.node[i];

        if (node->state != MF_NODE_UP)
            continue;
        if (!mfl_hostlist_is_name(node->name))
            return mf_error_set(err, MF_INVALID,
                "the plan's node '%.100s' is not a host name", node->name);
        places->ranks[places->node.count] = node->gpus;
        if (mfl_list_add(&places->node, node->name, err) < 0)
            return -1;
    }
    return 0;
}

static int places_from_list(const struct mf_plan *plan, const char *list,
    bool allocation, struct mfl_places *places, struct mf_error *err)
{
    struct index index = {0};
    int rc = -1;

    places->from = allocation ? "allocation" : "list";
    if (mfl_hostlist_parse(list, &places->node, err) < 0) {
        mf_error_prefix(err, allocation ? "SLURM_JOB_NODELIST" : "--nodes");
        goto out;
    }
    places->ranks = calloc(places->node.count + 1, sizeof *places->ranks);
    if (!places->ranks) {
        mf_error_set(err, MF_FAILED, "out of memory");
        goto out;
    }
    if (index_make(&plan->cluster, &index, err) < 0)
        goto out;
    if (!allocation)
        rc = ranks_from_plan(plan, &index, places, err);
    else if (ranks_in_allocation(plan, &index, places, err) == 0)
        rc = sort_by_plan(&plan->cluster, &index, places, err);
out:
    free(index.node);
    return rc;
}

int mfl_places_find(const struct mf_plan *plan, const char *list,
    struct mfl_places *places, struct mf_error *err)
{
    const char *job = getenv("SLURM_JOB_NODELIST");
    int64_t sum = 0;
    int rc;

    *places = (struct mfl_places){0};
    if (list || job)
        rc = places_from_list(plan, list ? list : job, !list, places, err);
    else
        rc = places_from_plan(plan, places, err);
    for (size_t i = 0; rc == 0 && i < places->node.count; i++)
        if (__builtin_add_overflow(sum, places->ranks[i], &sum))
            rc = mf_error_set(err, MF_INVALID, "too many devices");
    if (rc == 0 && sum < plan->world)
        rc = mf_error_set(err, MF_NO,
            "the plan has %lld ranks, %zu nodes of the %s take %lld; name "
            "more nodes or plan for fewer ranks",
            (long long)plan->world, places->node.count, places->from,
            (long long)sum);
    if (rc < 0)
        mfl_places_free(places);
    return rc;
}

void mfl_places_free(struct mfl_places *places)
{
    if (!places)
        return;
    mfl_list_free(&places->node);
    free(places->ranks);
    *places = (struct mfl_places){0};
}

bool mfl_places_in_block_order(const struct mf_cluster *cluster)
{
    const struct mf_node *last = NULL;

    for (size_t i = 0; i < cluster->nodes; i++) {
        const struct mf_node *node = &cluster->node[i];

        if (node->state != MF_NODE_UP)
            continue;
        if (last && (node->gpus != last->gpus ||
                        strverscmp(last->name, node->name) > 0))
            return false;
        last = node;
    }
    return true;
}

int mfl_places_span(const struct mf_cluster *cluster, int64_t world,
    int64_t *nodes, int64_t *per_node, struct mf_error *err)
{
    int64_t left = world;

    *nodes = *per_node = 0;
    for (size_t i = 0; i < cluster->nodes && left > 0; i++) {
        const struct mf_node *node = &cluster->node[i];
        int64_t taken = node->gpus < left ? node->gpus : left;

        if (node->state != MF_NODE_UP || node->gpus == 0)
            continue;
        ++*nodes;
        left -= taken;
        if (taken > *per_node)
            *per_node = taken;
    }
    if (left > 0)
        return mf_error_set(err, MF_NO,
            "the plan has %lld ranks, its cluster %lld devices that are up",
            (long long)world, (long long)(world - left));
    return 0;
}
