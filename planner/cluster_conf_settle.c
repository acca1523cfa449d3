/* SPDX-License-Identifier: BSD-3-Clause
 * Lines of Slurm's files that name nodes, put onto those nodes.
 */
#include "config.h"

#include "planner/cluster_conf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "planner/layout/hostlist.h"

#define NAMES_MAX 8000000 /* in all lists together */
#define SETS_MAX 1000
#define LABEL_MAX 1000 /* what a cluster's JSON takes */

static int no_memory(struct mf_error *err)
{
    return mf_error_set(err, MF_FAILED, "out of memory");
}

/* GPUs of a node by gres.conf. */
struct gres {
    int64_t count;
    const char *type;
    bool mixed, detect;
};

struct settle {
    struct mf_conf *conf;
    const struct mf_node **by_name; /* sorted */
    struct gres *gres;              /* by node */
    size_t names;
    const struct mf_conf_later *line;
    const struct mf_conf_later *set[SETS_MAX];
    int sets, depth;
    int64_t fresh_gpus; /* of a node that no NodeName line names */
};

static int node_compare(const void *a, const void *b)
{
    const struct mf_node *const *x = a, *const *y = b;
    int order = strcmp((*x)->name, (*y)->name);

    return order ? order : (*x < *y ? -1 : *x > *y);
}

static int name_compare(const void *key, const void *b)
{
    const struct mf_node *const *y = b;

    return strcmp(key, (*y)->name);
}

static struct mf_node *node_find(const struct settle *s, const char *name)
{
    struct mf_cluster *cluster = s->conf->cluster;
    const struct mf_node **found = bsearch(
        name, s->by_name, cluster->nodes, sizeof *s->by_name, name_compare);

    return found ? &cluster->node[*found - cluster->node] : NULL;
}

static int index_make(struct settle *s, struct mf_error *err)
{
    struct mf_cluster *cluster = s->conf->cluster;

    free(s->by_name);
    s->by_name = calloc(cluster->nodes + 1, sizeof *s->by_name);
    if (!s->by_name)
        return no_memory(err);
    for (size_t i = 0; i < cluster->nodes; i++)
        s->by_name[i] = &cluster->node[i];
    qsort(s->by_name, cluster->nodes, sizeof *s->by_name, node_compare);
    return 0;
}

/* Nodes defined twice: the first counts. Where that is a fault, WARN. */
static int twins_drop(struct settle *s, bool warn, struct mf_error *err)
{
    struct mf_cluster *cluster = s->conf->cluster;
    char *twin = calloc(cluster->nodes + 1, 1), first[80] = "";
    size_t kept = 0, twins = 0;

    if (!twin)
        return no_memory(err);
    for (size_t i = 1; i < cluster->nodes; i++)
        if (!strcmp(s->by_name[i]->name, s->by_name[i - 1]->name)) {
            if (twins++ == 0)
                snprintf(first, sizeof first, "%s", s->by_name[i]->name);
            twin[s->by_name[i] - cluster->node] = 1;
        }
    for (size_t i = 0; i < cluster->nodes; i++)
        if (twin[i])
            mf_node_free(&cluster->node[i]);
        else
            cluster->node[kept++] = cluster->node[i];
    cluster->nodes = kept;
    free(twin);
    if (twins == 0)
        return 0;
    if (warn && mf_cluster_warn(cluster, err,
                    "%zu nodes are defined twice (%.60s first); the first "
                    "counts",
                    twins, first) < 0)
        return -1;
    return index_make(s, err);
}

/* ---- one node at a time ---- */

static int partition_add(
    struct mf_node *node, const char *name, struct mf_error *err)
{
    size_t have = node->partitions ? strlen(node->partitions) : 0;
    char text[LABEL_MAX + 1];

    if (have + strlen(name) + 1 > LABEL_MAX)
        return 0;
    snprintf(text, sizeof text, "%s%s%s", have ? node->partitions : "",
        have ? "," : "", name);
    return mf_cluster_label(&node->partitions, text, err);
}

static void gres_add(struct settle *s, const struct mf_node *node)
{
    struct gres *gres = &s->gres[node - s->conf->cluster->node];
    const char *type = s->line->type ? s->line->type : "";

    if (s->line->what == MF_CONF_DETECT) {
        gres->detect = true;
        return;
    }
    if (gres->type && strcasecmp(gres->type, type) != 0)
        gres->mixed = true;
    gres->type = gres->type ? gres->type : type;
    gres->count += s->line->count;
}

static int node_settle(
    struct settle *s, struct mf_node *node, struct mf_error *err)
{
    switch (s->line->what) {
    case MF_CONF_PARTITION:
        return partition_add(node, s->line->name, err);
    case MF_CONF_DOWN:
        node->state = mf_slurm_state(s->line->name);
        return 0;
    default:
        gres_add(s, node);
        return 0;
    }
}

static int all_settle(struct settle *s, struct mf_error *err)
{
    struct mf_cluster *cluster = s->conf->cluster;

    s->names += cluster->nodes;
    if (s->names > NAMES_MAX)
        return mf_error_set(
            err, MF_INVALID, "lists name more than %d nodes", NAMES_MAX);
    for (size_t i = 0; i < cluster->nodes; i++)
        if (node_settle(s, &cluster->node[i], err) < 0)
            return -1;
    return 0;
}

static int name_settle(void *arg, const char *name, struct mf_error *err);

/* FEATURE is one of those joined by commas in LIST. */
static bool has_feature(const char *list, const char *feature)
{
    size_t n = strlen(feature);

    for (const char *at = list; at && *at; at += *at == ',') {
        size_t word = strcspn(at, ",");

        if (word == n && !strncmp(at, feature, n))
            return true;
        at += word;
    }
    return false;
}

static int set_settle(
    struct settle *s, const struct mf_conf_later *set, struct mf_error *err)
{
    struct mf_cluster *cluster = s->conf->cluster;
    int rc = 0;

    if (s->depth > 0)
        return 0;
    s->depth++;
    if (set->nodes && set->nodes[0])
        rc = mf_hostlist_each(set->nodes, 0, name_settle, s, err);
    for (size_t i = 0; rc == 0 && set->type && i < cluster->nodes; i++)
        if (has_feature(cluster->node[i].features, set->type))
            rc = node_settle(s, &cluster->node[i], err);
    s->depth--;
    return rc;
}

static int name_settle(void *arg, const char *name, struct mf_error *err)
{
    struct settle *s = arg;
    struct mf_node *node = node_find(s, name);

    if (++s->names > NAMES_MAX)
        return mf_error_set(
            err, MF_INVALID, "lists name more than %d nodes", NAMES_MAX);
    if (node)
        return node_settle(s, node, err);
    if (!strcasecmp(name, "ALL"))
        return all_settle(s, err);
    for (int i = 0; i < s->sets; i++)
        if (!strcmp(s->set[i]->name, name))
            return set_settle(s, s->set[i], err);
    return 0;
}

static int line_settle(struct settle *s, struct mf_error *err)
{
    const char *nodes = s->line->nodes;

    if (nodes && !nodes[0])
        return 0;
    if (!nodes)
        return all_settle(s, err);
    if (mf_hostlist_each(nodes, 0, name_settle, s, err) < 0)
        return mf_error_prefix(
            err, "%.80s", s->line->name ? s->line->name : "gres.conf");
    return 0;
}

/* ---- gres.conf against slurm.conf ---- */

static int gres_alone(struct settle *s, struct mf_error *err)
{
    struct mf_cluster *cluster = s->conf->cluster;

    for (size_t i = 0; i < cluster->nodes; i++) {
        const struct gres *g = &s->gres[i];

        cluster->node[i].gpus =
            g->detect && g->count == 0 ? MF_GPUS_UNKNOWN : g->count;
        if (g->type && g->type[0] && !g->mixed &&
            mf_cluster_label(&cluster->node[i].gpu_type, g->type, err) < 0)
            return -1;
        if (g->mixed &&
            mf_cluster_label(&cluster->node[i].gpu_type, "mixed", err) < 0)
            return -1;
    }
    return 0;
}

static int gres_join(struct settle *s, struct mf_error *err)
{
    struct mf_cluster *cluster = s->conf->cluster;
    const char *first = NULL;
    int64_t differ = 0;

    if (!s->conf->lines[MF_CONF_NODES]) {
        bool gres =
            s->conf->lines[MF_CONF_GRES] + s->conf->lines[MF_CONF_DETECT];

        return gres ? gres_alone(s, err) : 0;
    }
    for (size_t i = 0; i < cluster->nodes; i++) {
        const struct gres *g = &s->gres[i];
        struct mf_node *node = &cluster->node[i];

        if (node->gpus > 0 && !node->gpu_type && g->type && g->type[0] &&
            !g->mixed && mf_cluster_label(&node->gpu_type, g->type, err) < 0)
            return -1;
        if (g->type && g->count != node->gpus && !g->detect && differ++ == 0)
            first = node->name;
    }
    if (differ == 0)
        return 0;
    return mf_cluster_warn(cluster, err,
        "gres.conf and Gres= differ in the GPUs of %" PRId64
        " nodes (%.60s first); Gres= counts",
        differ, first);
}

static int fresh_add(void *arg, const char *name, struct mf_error *err)
{
    struct settle *s = arg;

    if (++s->names > NAMES_MAX)
        return mf_error_set(
            err, MF_INVALID, "lists name more than %d nodes", NAMES_MAX);
    return mf_cluster_add_node(s->conf->cluster, name, s->fresh_gpus, err);
}

/* Nodes that only lines of gres.conf name, else those of partitions; without
 * any, one that stands for all.
 */
static int fresh_nodes(struct settle *s, struct mf_error *err)
{
    struct mf_conf *conf = s->conf;
    bool gres = conf->lines[MF_CONF_GRES] + conf->lines[MF_CONF_DETECT] > 0;

    if (conf->lines[MF_CONF_NODES] || conf->lines[MF_CONF_NET])
        return 0;
    for (size_t i = 0; i < conf->laters; i++) {
        const struct mf_conf_later *later = &conf->later[i];
        bool wanted =
            gres ? later->what == MF_CONF_GRES || later->what == MF_CONF_DETECT
                 : later->what == MF_CONF_PARTITION;

        s->fresh_gpus = gres ? 0 : later->count;
        if (wanted && later->nodes && later->nodes[0] &&
            mf_hostlist_each(later->nodes, 0, fresh_add, s, err) < 0)
            return -1;
    }
    if (conf->cluster->nodes == 0 && gres)
        return mf_cluster_add_node(conf->cluster, "node", 0, err);
    return index_make(s, err) < 0 ? -1 : twins_drop(s, false, err);
}

static int sources_add(
    const struct mf_conf *conf, const char *path, struct mf_error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    if (mf_cluster_add_source(conf->cluster, "node_list", MF_READ, name, err) <
        0)
        return -1;
    if (conf->scontrol)
        return mf_cluster_add_source(
            conf->cluster, "node_list.state", MF_READ, name, err);
    return mf_cluster_add_source(conf->cluster, "node_list.state", MF_ASSUMED,
        "files know no states: up unless they say otherwise", err);
}

static int settle_all(struct settle *s, const char *path, struct mf_error *err)
{
    struct mf_conf *conf = s->conf;

    if (fresh_nodes(s, err) < 0 || index_make(s, err) < 0 ||
        twins_drop(s, true, err) < 0)
        return -1;
    s->gres = calloc(conf->cluster->nodes + 1, sizeof *s->gres);
    if (!s->gres)
        return no_memory(err);
    for (size_t i = 0; i < conf->laters; i++)
        if (conf->later[i].what == MF_CONF_NODESET && s->sets < SETS_MAX)
            s->set[s->sets++] = &conf->later[i];
    for (size_t i = 0; i < conf->laters; i++) {
        s->line = &conf->later[i];
        if (s->line->what != MF_CONF_NODESET &&
            s->line->what != MF_CONF_OTHER && line_settle(s, err) < 0)
            return -1;
    }
    if (conf->cluster->nodes > 0 && gres_join(s, err) < 0)
        return -1;
    return sources_add(conf, path, err);
}

int mf_conf_settle(struct mf_conf *conf, const char *path, struct mf_error *err)
{
    struct settle s = {.conf = conf};
    int rc = settle_all(&s, path, err);

    free(s.by_name);
    free(s.gres);
    return rc;
}
