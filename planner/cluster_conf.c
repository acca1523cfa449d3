/* SPDX-License-Identifier: BSD-3-Clause
 * A Slurm cluster from its files, without a controller: slurm.conf with the
 * topology.conf and gres.conf beside it, either of these alone, or what
 * `scontrol show node` and `scontrol show topology` print.
 */
#include "config.h"

#include "planner/cluster_conf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "planner/conf_lines.h"
#include "planner/layout/hostlist.h"

#define NODE_GPUS_MAX 1024

static int no_memory(struct mf_error *err)
{
    return mf_error_set(err, MF_FAILED, "cluster: out of memory");
}

/* ---- nodes ---- */

struct node_line {
    struct mf_conf *conf;
    const char *state, *features, *partitions;
    char type[64];
    int64_t gpus;
};

static int node_take(void *arg, const char *name, struct mf_error *err)
{
    const struct node_line *line = arg;
    struct mf_cluster *cluster = line->conf->cluster;
    struct mf_node *node;

    if (mf_cluster_add_node(cluster, name, line->gpus, err) < 0)
        return -1;
    node = &cluster->node[cluster->nodes - 1];
    if (line->state)
        node->state = mf_slurm_state(line->state);
    /* slurm.conf has it for "as it was", scontrol for what nobody knows. */
    if (line->conf->scontrol && line->state && node->state == MF_NODE_UP &&
        !strncasecmp(line->state, "UNKNOWN", 7))
        node->state = MF_NODE_UNKNOWN;
    if (line->type[0] && mf_cluster_label(&node->gpu_type, line->type, err) < 0)
        return -1;
    if (mf_cluster_label(&node->features, line->features, err) < 0)
        return -1;
    return mf_cluster_label(&node->partitions, line->partitions, err);
}

static const char *known_text(const char *text, size_t most)
{
    if (!text || !text[0] || !strcasecmp(text, "(null)") || strlen(text) > most)
        return NULL;
    return text;
}

static const char *features_of(const struct mf_conf_line *line)
{
    static const char *const key[] = {
        "Features", "Feature", "ActiveFeatures", "AvailableFeatures"};

    for (size_t i = 0; i < sizeof key / sizeof *key; i++)
        if (known_text(mf_conf_value(line, key[i]), 1000))
            return mf_conf_value(line, key[i]);
    return NULL;
}

static int default_keep(char **kept, const char *value, struct mf_error *err)
{
    return value ? mf_cluster_label(kept, value, err) : 0;
}

static int node_line(
    struct mf_conf *conf, const struct mf_conf_line *line, struct mf_error *err)
{
    const char *names = mf_conf_value(line, "NodeName");
    const char *gres = mf_conf_value(line, "Gres");
    struct node_line n = {.conf = conf,
        .state = mf_conf_value(line, "State"),
        .features = features_of(line),
        .partitions = known_text(mf_conf_value(line, "Partitions"), 1000)};

    if (!strcasecmp(names, "DEFAULT")) {
        if (default_keep(&conf->default_gres, gres, err) < 0 ||
            default_keep(&conf->default_state, n.state, err) < 0)
            return -1;
        return default_keep(&conf->default_features, n.features, err);
    }
    if (mf_conf_value(line, "CPUAlloc") || mf_conf_value(line, "CfgTRES"))
        conf->scontrol = true;
    gres = gres ? gres : conf->default_gres;
    n.state = n.state ? n.state : conf->default_state;
    n.features = n.features ? n.features : conf->default_features;
    n.gpus = mf_slurm_gres_gpus(gres, n.type, sizeof n.type);
    if (n.gpus > NODE_GPUS_MAX)
        return mf_error_set(err, MF_INVALID,
            "Gres=%.60s gives a node over %d GPUs", gres, NODE_GPUS_MAX);
    conf->lines[MF_CONF_NODES]++;
    return mf_hostlist_each(names, 0, node_take, &n, err);
}

/* ---- lines that name nodes, used when all nodes are known ---- */

static int later_add(struct mf_conf *conf, enum mf_conf_what what,
    const char *name, const char *nodes, const char *type, int64_t count,
    struct mf_error *err)
{
    struct mf_conf_later *later = conf->later;

    if ((conf->laters & (conf->laters - 1)) == 0)
        later = realloc(
            later, (conf->laters ? 2 * conf->laters : 1) * sizeof *later);
    if (!later)
        return no_memory(err);
    conf->later = later;
    later += conf->laters++;
    *later = (struct mf_conf_later){.what = what, .count = count};
    conf->lines[what]++;
    if (mf_cluster_label(&later->name, name, err) < 0 ||
        mf_cluster_label(&later->nodes, nodes, err) < 0)
        return -1;
    return mf_cluster_label(&later->type, type, err);
}

static int count_one(void *arg, const char *name, struct mf_error *err)
{
    int64_t *count = arg;

    (void)name;
    (void)err;
    ++*count;
    return 0;
}

/* A line of gres.conf: so many devices as File= names, or Count= says. */
static int gres_line(
    struct mf_conf *conf, const struct mf_conf_line *line, struct mf_error *err)
{
    const char *name = mf_conf_value(line, "Name");
    const char *count = mf_conf_value(line, "Count");
    const char *file = mf_conf_value(line, "File");
    const char *nodes = mf_conf_value(line, "NodeName");
    int64_t gpus = -1;

    if (!file)
        file = mf_conf_value(line, "MultipleFiles");
    if (!name || strcasecmp(name, "gpu") != 0) {
        bool detect = mf_conf_value(line, "AutoDetect") &&
                      strcasecmp(mf_conf_value(line, "AutoDetect"), "off");

        if (!detect || name)
            return later_add(conf, MF_CONF_OTHER, NULL, NULL, NULL, 0, err);
        return later_add(conf, MF_CONF_DETECT, NULL, nodes, NULL, 0, err);
    }
    if (count)
        gpus = mf_gres_count(count, strlen(count));
    else if (file) {
        gpus = 0;
        if (mf_hostlist_each(file, 0, count_one, &gpus, err) < 0)
            return mf_error_prefix(err, "File=");
    } else
        gpus = 1;
    if (gpus < 0 || gpus > NODE_GPUS_MAX)
        return mf_error_set(err, MF_INVALID, "%s=%.40s is not 0 to %d GPUs",
            count ? "Count" : "File", count ? count : file, NODE_GPUS_MAX);
    return later_add(conf, MF_CONF_GRES, NULL, nodes,
        mf_conf_value(line, "Type"), gpus, err);
}

/* The number behind KEY in "cpu=8,node=2,gres/gpu=16", or -1. */
static int64_t tres_value(const char *tres, const char *key)
{
    size_t n = strlen(key);

    for (const char *at = tres; at && *at; at += *at == ',') {
        size_t word = strcspn(at, ",");

        if (word > n && !strncmp(at, key, n) && at[n] == '=')
            return mf_gres_count(at + n + 1, word - n - 1);
        at += word;
    }
    return -1;
}

/* What scontrol prints of a partition tells that much, if it comes out even. */
static int64_t gpus_per_node(const char *tres)
{
    int64_t nodes = tres_value(tres, "node");
    int64_t gpus = tres_value(tres, "gres/gpu");

    return nodes > 0 && gpus > 0 && gpus % nodes == 0 ? gpus / nodes
                                                      : MF_GPUS_UNKNOWN;
}

static int partition_line(
    struct mf_conf *conf, const struct mf_conf_line *line, struct mf_error *err)
{
    const char *name = mf_conf_value(line, "PartitionName");
    const char *nodes = mf_conf_value(line, "Nodes");

    if (!strcasecmp(name, "DEFAULT"))
        return default_keep(&conf->default_nodes, nodes, err);
    if (!nodes)
        nodes = conf->default_nodes;
    if (!known_text(nodes, SIZE_MAX) || strlen(name) > 200)
        nodes = "";
    return later_add(conf, MF_CONF_PARTITION, name, nodes, NULL,
        gpus_per_node(mf_conf_value(line, "TRES")), err);
}

static int net_line(struct mf_conf *conf, const struct mf_conf_line *line,
    enum mf_net_kind kind, const char *name, struct mf_error *err)
{
    const char *nodes = known_text(mf_conf_value(line, "Nodes"), SIZE_MAX);
    const char *switches =
        known_text(mf_conf_value(line, "Switches"), SIZE_MAX);

    if (!name[0] || strlen(name) > 200)
        return mf_error_set(err, MF_INVALID,
            "the name of a switch or block is empty or longer than 200");
    conf->lines[MF_CONF_NET]++;
    return mf_net_add(&conf->net, kind, name, nodes, switches, err);
}

static int site_line(
    struct mf_conf *conf, const struct mf_conf_line *line, struct mf_error *err)
{
    const char *name = mf_conf_value(line, "ClusterName");
    const char *plugin = mf_conf_value(line, "TopologyPlugin");
    const char *down = mf_conf_value(line, "DownNodes");
    const char *state = mf_conf_value(line, "State");

    if (name && name[0])
        snprintf(
            conf->cluster->name, sizeof conf->cluster->name, "%.100s", name);
    if (plugin)
        snprintf(conf->plugin, sizeof conf->plugin, "%.60s", plugin);
    if (name || mf_conf_value(line, "SlurmctldHost") ||
        mf_conf_value(line, "ControlMachine") || plugin)
        conf->lines[MF_CONF_SITE]++;
    if (down)
        return later_add(
            conf, MF_CONF_DOWN, state ? state : "DOWN", down, NULL, 0, err);
    return 0;
}

int mf_conf_take(
    void *arg, const struct mf_conf_line *line, struct mf_error *err)
{
    struct mf_conf *conf = arg;
    const char *key = line->pair[0].key, *value = line->pair[0].value;

    if (!strcasecmp(key, "SwitchName"))
        return net_line(conf, line, MF_NET_SWITCH, value, err);
    if (!strcasecmp(key, "BlockName"))
        return net_line(conf, line, MF_NET_BLOCK, value, err);
    if (!strcasecmp(key, "RingName"))
        return net_line(conf, line, MF_NET_RING, value, err);
    if (!strcasecmp(key, "AggregatedBlock") || !strcasecmp(key, "BlockSizes"))
        return 0;
    if (!strcasecmp(key, "NodeSet"))
        return later_add(conf, MF_CONF_NODESET, value,
            mf_conf_value(line, "Nodes"), mf_conf_value(line, "Feature"), 0,
            err);
    if (!strcasecmp(key, "PartitionName"))
        return partition_line(conf, line, err);
    if (mf_conf_value(line, "Name") || mf_conf_value(line, "AutoDetect"))
        return gres_line(conf, line, err);
    if (!strcasecmp(key, "NodeName"))
        return node_line(conf, line, err);
    return site_line(conf, line, err);
}

void mf_conf_free(struct mf_conf *conf)
{
    for (size_t i = 0; i < conf->laters; i++) {
        free(conf->later[i].name);
        free(conf->later[i].nodes);
        free(conf->later[i].type);
    }
    free(conf->later);
    free(conf->default_gres);
    free(conf->default_state);
    free(conf->default_features);
    free(conf->default_nodes);
    mf_net_free(&conf->net);
}

/* ---- the files beside ---- */

static int beside_read(struct mf_conf *conf, const char *path, const char *name,
    struct mf_error *err)
{
    const char *slash = strrchr(path, '/');
    struct mf_text text;
    char file[4096];
    int rc, n;

    n = snprintf(file, sizeof file, "%.*s%s",
        slash ? (int)(slash - path) + 1 : 0, path, name);
    if (n < 0 || (size_t)n >= sizeof file || access(file, F_OK) != 0)
        return 0;
    if (mf_text_read(file, &text, err) < 0)
        return -1;
    if (mf_topology_yaml_is(text.data))
        rc = mf_topology_yaml(conf, file, &text, err);
    else
        rc = mf_conf_each(file, &text, mf_conf_take, conf, err);
    free(text.data);
    return rc;
}

static int others_read(
    struct mf_conf *conf, const char *path, struct mf_error *err)
{
    int net;

    if (!conf->lines[MF_CONF_NODES] || conf->scontrol)
        return 0;
    net = conf->lines[MF_CONF_NET];
    if (!conf->lines[MF_CONF_GRES] &&
        beside_read(conf, path, "gres.conf", err) < 0)
        return -1;
    if (net)
        return 0;
    if (beside_read(conf, path, "topology.yaml", err) < 0)
        return -1;
    if (conf->lines[MF_CONF_NET]) /* Slurm prefers it, too */
        return 0;
    if (beside_read(conf, path, "topology.conf", err) < 0)
        return -1;
    if (conf->lines[MF_CONF_NET] && !strstr(conf->plugin, "tree") &&
        !strstr(conf->plugin, "block") && !strstr(conf->plugin, "ring"))
        return mf_cluster_warn(conf->cluster, err,
            "topology.conf is read, though TopologyPlugin=%s makes Slurm pass "
            "over it",
            conf->plugin[0] ? conf->plugin : "(not set)");
    return 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static int unknown_file(
    const struct mf_conf *conf, const char *path, struct mf_error *err)
{
    if (conf->lines[MF_CONF_SITE] || conf->lines[MF_CONF_OTHER])
        return mf_error_set(err, MF_INVALID,
            "%.300s: no NodeName line in it; name the file that has them, or "
            "the slurm.conf that includes it",
            path);
    return mf_error_set(err, MF_INVALID,
        "%.300s: no node, switch, block or GPU in it: it is none of "
        "slurm.conf, topology.conf, gres.conf, the output of scontrol show "
        "node or topology, hwloc or NCCL XML, nvidia-smi topo -m, or "
        "moefold cluster --json",
        path);
}

static int conf_read(struct mf_conf *conf, const char *path,
    struct mf_text *text, struct mf_error *err)
{
    bool add_nodes;

    int rc;

    if (mf_topology_yaml_is(text->data))
        rc = mf_topology_yaml(conf, path, text, err);
    else
        rc = mf_conf_each(path, text, mf_conf_take, conf, err);
    if (rc < 0)
        return -1;
    if (!conf->lines[MF_CONF_NODES] && !conf->lines[MF_CONF_NET] &&
        !conf->lines[MF_CONF_GRES] && !conf->lines[MF_CONF_DETECT] &&
        !conf->lines[MF_CONF_PARTITION])
        return unknown_file(conf, path, err);
    if (others_read(conf, path, err) < 0)
        return -1;
    if (!conf->cluster->name[0])
        snprintf(conf->cluster->name, sizeof conf->cluster->name, "%.100s",
            base_name(path));
    snprintf(conf->net.from, sizeof conf->net.from, "%.40s%s",
        conf->lines[MF_CONF_NODES] ? "topology.conf of " : "", base_name(path));
    add_nodes = !conf->lines[MF_CONF_NODES];
    if (mf_conf_settle(conf, path, err) < 0)
        return mf_error_prefix(err, "%.200s", path);
    if (mf_slurm_finish(conf->cluster, &conf->net,
            add_nodes && conf->cluster->nodes == 0, err) < 0)
        return mf_error_prefix(err, "%.200s", path);
    return 0;
}

int mf_conf_cluster(const char *path, struct mf_text *text,
    struct mf_cluster *cluster, struct mf_error *err)
{
    struct mf_conf conf = {.cluster = cluster};
    int rc;

    *cluster = (struct mf_cluster){0};
    rc = conf_read(&conf, path, text, err);
    mf_conf_free(&conf);
    if (rc < 0)
        mf_cluster_free(cluster);
    return rc;
}
