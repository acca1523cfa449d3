/* SPDX-License-Identifier: BSD-3-Clause
 * Which switch, pod and block each node hangs on, from the lines of a network.
 */
#include "config.h"

#include "planner/cluster_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/layout/hostlist.h"

#define ITEMS_MAX 1000000
#define NAMES_MAX 4000000 /* in all lists together */
#define LEVELS_MAX 16

static int no_memory(struct mf_error *err)
{
    return mf_error_set(err, MF_FAILED, "cluster: out of memory");
}

static int text_copy(char **to, const char *from, struct mf_error *err)
{
    *to = from ? strdup(from) : NULL;
    return from && !*to ? no_memory(err) : 0;
}

int mf_net_add(struct mf_net *net, enum mf_net_kind kind, const char *name,
    const char *nodes, const char *switches, struct mf_error *err)
{
    struct mf_net_item *item = net->item;

    if (net->count >= ITEMS_MAX)
        return mf_error_set(
            err, MF_INVALID, "more than %d switches and blocks", ITEMS_MAX);
    if ((net->count & (net->count - 1)) == 0)
        item = realloc(item, (net->count ? 2 * net->count : 1) * sizeof *item);
    if (!item)
        return no_memory(err);
    net->item = item;
    item += net->count++;
    *item = (struct mf_net_item){.kind = kind};
    if (text_copy(&item->name, name, err) < 0 ||
        text_copy(&item->nodes, nodes, err) < 0)
        return -1;
    return text_copy(&item->switches, switches, err);
}

void mf_net_free(struct mf_net *net)
{
    for (size_t i = 0; i < net->count; i++) {
        free(net->item[i].name);
        free(net->item[i].nodes);
        free(net->item[i].switches);
    }
    free(net->item);
    *net = (struct mf_net){0};
}

void mf_net_places_free(struct mf_net_places *places)
{
    free(places->leaf);
    free(places->block);
    free(places->level);
    free(places->parent);
    *places = (struct mf_net_places){0};
}

/* ---- names looked up ---- */

struct key {
    const char *name;
    int index;
};

static int key_compare(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order ? order : x->index - y->index;
}

static int name_compare(const void *a, const void *b)
{
    const struct key *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static const struct key *key_find(
    const struct key *list, size_t count, const char *name)
{
    struct key key = {.name = name};

    return bsearch(&key, list, count, sizeof *list, name_compare);
}

struct edge {
    int parent, child;
};

/* One walk over the lists of all items. */
struct walk {
    const struct mf_net *net;
    struct mf_cluster *cluster;
    struct mf_net_places *places;
    struct key *node, *sw; /* sorted by name */
    size_t nodes;
    struct edge *edge;
    size_t edges;
    char **fresh; /* names of nodes to be added */
    size_t fresh_count, names;
    int at; /* the item */
    int64_t strangers, twice;
    const char *stranger, *twin;
};

static int names_count(struct walk *w, struct mf_error *err)
{
    if (++w->names > NAMES_MAX)
        return mf_error_set(err, MF_INVALID,
            "the network names more than %d nodes and switches", NAMES_MAX);
    return 0;
}

static int edge_add(void *arg, const char *name, struct mf_error *err)
{
    struct walk *w = arg;
    const struct key *found = key_find(w->sw, w->net->count, name);

    if (names_count(w, err) < 0)
        return -1;
    if (!found)
        return 0;
    if ((w->edges & (w->edges - 1)) == 0) {
        struct edge *edge =
            realloc(w->edge, (w->edges ? 2 * w->edges : 1) * sizeof *edge);

        if (!edge)
            return no_memory(err);
        w->edge = edge;
    }
    w->edge[w->edges++] = (struct edge){w->at, found->index};
    return 0;
}

static int node_place(void *arg, const char *name, struct mf_error *err)
{
    struct walk *w = arg;
    const struct key *found = key_find(w->node, w->nodes, name);
    int *place;

    if (names_count(w, err) < 0)
        return -1;
    if (!found) {
        if (w->strangers++ == 0)
            w->stranger = w->net->item[w->at].name;
        return 0;
    }
    place = w->net->item[w->at].kind == MF_NET_SWITCH ? w->places->leaf
                                                      : w->places->block;
    if (place[found->index] < 0)
        place[found->index] = w->at;
    else if (place[found->index] != w->at && w->twice++ == 0)
        w->twin = w->cluster->node[found->index].name;
    return 0;
}

static int fresh_add(void *arg, const char *name, struct mf_error *err)
{
    struct walk *w = arg;

    if (names_count(w, err) < 0)
        return -1;
    if (key_find(w->node, w->nodes, name))
        return 0;
    if ((w->fresh_count & (w->fresh_count - 1)) == 0) {
        char **fresh = realloc(w->fresh,
            (w->fresh_count ? 2 * w->fresh_count : 1) * sizeof *fresh);

        if (!fresh)
            return no_memory(err);
        w->fresh = fresh;
    }
    w->fresh[w->fresh_count] = strdup(name);
    return w->fresh[w->fresh_count++] ? 0 : no_memory(err);
}

/* Nodes of inner switches, as scontrol prints them, are those of the leaves. */
static bool item_has_nodes(const struct mf_net_item *item)
{
    return item->nodes && !(item->kind == MF_NET_SWITCH && item->switches);
}

static int items_walk(
    struct walk *w, bool switches, mf_host_function each, struct mf_error *err)
{
    for (size_t i = 0; i < w->net->count; i++) {
        const struct mf_net_item *item = &w->net->item[i];
        const char *list = switches ? item->switches : item->nodes;

        if (!list || !strcmp(list, "(null)") ||
            (!switches && !item_has_nodes(item)))
            continue;
        w->at = (int)i;
        if (mf_hostlist_each(list, 0, each, w, err) < 0)
            return mf_error_prefix(err, "%.80s", item->name);
    }
    return 0;
}

static int nodes_index(struct walk *w, struct mf_error *err)
{
    free(w->node);
    w->nodes = w->cluster->nodes;
    w->node = calloc(w->nodes + 1, sizeof *w->node);
    if (!w->node)
        return no_memory(err);
    for (size_t i = 0; i < w->nodes; i++)
        w->node[i] = (struct key){w->cluster->node[i].name, (int)i};
    qsort(w->node, w->nodes, sizeof *w->node, key_compare);
    return 0;
}

static int text_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Nodes that only the network names. */
static int nodes_add(struct walk *w, struct mf_error *err)
{
    int rc = items_walk(w, false, fresh_add, err);

    if (rc == 0 && w->fresh_count > 0)
        qsort(w->fresh, w->fresh_count, sizeof *w->fresh, text_compare);
    for (size_t i = 0; rc == 0 && i < w->fresh_count; i++)
        if (i == 0 || strcmp(w->fresh[i], w->fresh[i - 1]))
            rc = mf_cluster_add_node(
                w->cluster, w->fresh[i], MF_GPUS_UNKNOWN, err);
    return rc < 0 ? -1 : nodes_index(w, err);
}

static int places_make(struct walk *w, struct mf_error *err)
{
    struct mf_net_places *p = w->places;
    size_t nodes = w->cluster->nodes + 1, items = w->net->count + 1;

    p->leaf = malloc(nodes * sizeof *p->leaf);
    p->block = malloc(nodes * sizeof *p->block);
    p->level = malloc(items * sizeof *p->level);
    p->parent = malloc(items * sizeof *p->parent);
    if (!p->leaf || !p->block || !p->level || !p->parent)
        return no_memory(err);
    memset(p->leaf, 0xff, nodes * sizeof *p->leaf);
    memset(p->block, 0xff, nodes * sizeof *p->block);
    memset(p->level, 0xff, items * sizeof *p->level);
    memset(p->parent, 0xff, items * sizeof *p->parent);
    return 0;
}

/* ---- levels: a leaf is 0, a switch one over the highest under it ---- */

/* One round: those whose children are all known. Whether any was new. */
static bool levels_round(struct walk *w, int *best, bool last)
{
    int *level = w->places->level;
    bool some = false;

    for (size_t i = 0; i < w->net->count; i++)
        best[i] = 0;
    for (size_t e = 0; e < w->edges; e++) {
        int *b = &best[w->edge[e].parent], below = level[w->edge[e].child];

        if (below < 0 && !last)
            *b = -1;
        else if (*b >= 0 && below + 1 > *b)
            *b = below + 1;
    }
    for (size_t i = 0; i < w->net->count; i++)
        if (level[i] < 0 && best[i] >= 0) {
            level[i] = best[i];
            some = true;
        }
    return some;
}

static int levels_find(struct walk *w, struct mf_error *err)
{
    int *best = malloc((w->net->count + 1) * sizeof *best);
    const char *name = NULL;
    int64_t circle = 0;

    if (!best)
        return no_memory(err);
    for (int n = 0; n < LEVELS_MAX && levels_round(w, best, false); n++)
        ;
    for (size_t i = 0; i < w->net->count; i++)
        if (w->places->level[i] < 0 && circle++ == 0)
            name = w->net->item[i].name;
    (void)levels_round(w, best, true);
    free(best);
    if (!name)
        return 0;
    return mf_cluster_warn(w->cluster, err,
        "the switches are no tree: %lld of them (%.60s first) name each other "
        "in a circle or lie over %d levels; links among those are left out",
        (long long)circle, name, LEVELS_MAX);
}

/* The nearest switch over each, the first listed of several. */
static void parents_find(struct walk *w)
{
    struct mf_net_places *p = w->places;

    for (size_t e = 0; e < w->edges; e++) {
        int child = w->edge[e].child, parent = w->edge[e].parent;
        int now = p->parent[child];

        if (p->level[parent] <= p->level[child])
            continue;
        if (now < 0 || p->level[parent] < p->level[now])
            p->parent[child] = parent;
    }
    for (size_t i = 0; i < w->net->count; i++)
        if (w->net->item[i].kind == MF_NET_SWITCH &&
            p->level[i] + 1 > p->levels)
            p->levels = p->level[i] + 1;
}

static int labels_set(struct walk *w, struct mf_error *err)
{
    const struct mf_net_places *p = w->places;

    for (size_t i = 0; i < w->cluster->nodes; i++) {
        struct mf_node *node = &w->cluster->node[i];
        int leaf = p->leaf[i], pod = leaf;

        if (p->block[i] >= 0 && mf_cluster_label(&node->block,
                                    w->net->item[p->block[i]].name, err) < 0)
            return -1;
        if (leaf < 0)
            continue;
        if (p->parent[leaf] >= 0 && p->level[p->parent[leaf]] == 1)
            pod = p->parent[leaf];
        if (mf_cluster_label(&node->switch_name, w->net->item[leaf].name, err) <
                0 ||
            (p->levels > 2 &&
                mf_cluster_label(&node->pod, w->net->item[pod].name, err) < 0))
            return -1;
    }
    return 0;
}

static int walk_warn(struct walk *w, struct mf_error *err)
{
    if (w->strangers && mf_cluster_warn(w->cluster, err,
                            "the network names %lld nodes that the cluster "
                            "does not have (first in %.60s)",
                            (long long)w->strangers, w->stranger) < 0)
        return -1;
    if (w->twice)
        return mf_cluster_warn(w->cluster, err,
            "%lld times a node is in two places of the network (%.60s first); "
            "the first counts",
            (long long)w->twice, w->twin);
    return 0;
}

static int walk_all(struct walk *w, bool add_nodes, struct mf_error *err)
{
    for (size_t i = 0; i < w->net->count; i++)
        w->sw[i] = (struct key){w->net->item[i].name, (int)i};
    qsort(w->sw, w->net->count, sizeof *w->sw, key_compare);
    if (nodes_index(w, err) < 0 || (add_nodes && nodes_add(w, err) < 0) ||
        places_make(w, err) < 0 || items_walk(w, true, edge_add, err) < 0 ||
        items_walk(w, false, node_place, err) < 0 || levels_find(w, err) < 0)
        return -1;
    parents_find(w);
    return labels_set(w, err) < 0 ? -1 : walk_warn(w, err);
}

int mf_net_apply(const struct mf_net *net, bool add_nodes,
    struct mf_cluster *cluster, struct mf_net_places *places,
    struct mf_error *err)
{
    struct walk w = {.net = net, .cluster = cluster, .places = places};
    int rc = -1;

    *places = (struct mf_net_places){0};
    w.sw = calloc(net->count + 1, sizeof *w.sw);
    if (!w.sw)
        no_memory(err);
    else
        rc = walk_all(&w, add_nodes, err);
    for (size_t i = 0; i < w.fresh_count; i++)
        free(w.fresh[i]);
    free(w.fresh);
    free(w.edge);
    free(w.node);
    free(w.sw);
    return rc;
}
