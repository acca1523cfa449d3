/* SPDX-License-Identifier: BSD-3-Clause
 * moefold cluster --probe: tiers measured with MPI.
 */
#include "config.h"

#include "planner/cli/cluster_probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/hostlist.h"
#include "launcher/start.h"
#include "planner/cluster_read.h"

/* Two nodes of the job, by their index in the cluster, or one twice; -1: not
 * found. The first and the last of RANKS ranks on them measure.
 */
struct pair {
    int64_t a, b, ranks;
};

static bool is_named(const struct mfl_list *hosts, const char *name)
{
    for (size_t i = 0; i < hosts->count; i++)
        if (!strcmp(hosts->item[i], name))
            return true;
    return false;
}

/* Nodes of the job that the cluster has: their indices, -1 behind the last. */
static int job_nodes(
    const struct mf_cluster *cluster, int64_t **list, struct mf_error *err)
{
    const char *names = getenv("SLURM_JOB_NODELIST");
    struct mfl_list hosts = {0};
    size_t n = 0;

    *list = NULL;
    if (!names || !mfl_in_allocation())
        return mf_error_set(err, MF_INVALID,
            "--probe measures on the nodes of a Slurm job; run it inside "
            "one (salloc, sbatch)");
    if (mfl_hostlist_parse(names, &hosts, err) < 0) {
        mfl_list_free(&hosts);
        return mf_error_prefix(err, "SLURM_JOB_NODELIST");
    }
    *list = malloc((cluster->nodes + 1) * sizeof **list);
    for (size_t i = 0; *list && i < cluster->nodes; i++)
        if (is_named(&hosts, cluster->node[i].name))
            (*list)[n++] = (int64_t)i;
    mfl_list_free(&hosts);
    if (!*list)
        return mf_error_set(err, MF_FAILED, "no memory");
    (*list)[n] = -1;
    if (n == 0)
        return mf_error_set(
            err, MF_INVALID, "--probe: no node of this job is in the cluster");
    return 0;
}

/* The first rank on each node of the cluster, were all up: the domain of a
 * tier that node I lies in.
 */
static int node_domains(const struct mf_cluster *cluster, int t,
    int32_t *domain, struct mf_error *err)
{
    struct mf_cluster view = *cluster;
    int32_t *all = NULL;
    int64_t world = 0, at = 0;
    int rc = -1;

    view.node = calloc(cluster->nodes + 1, sizeof *view.node);
    for (size_t i = 0; view.node && i < cluster->nodes; i++) {
        view.node[i] = cluster->node[i];
        view.node[i].state = MF_NODE_UP;
        view.node[i].gpus = view.node[i].gpus > 0 ? view.node[i].gpus : 1;
        world += view.node[i].gpus;
    }
    all = malloc(((size_t)world + 1) * sizeof *all);
    if (!view.node || !all)
        mf_error_set(err, MF_FAILED, "no memory");
    else
        rc = mf_cluster_domains(&view, t, world, all, err);
    for (size_t i = 0; rc == 0 && i < cluster->nodes; i++) {
        domain[i] = all[at];
        at += view.node[i].gpus;
    }
    free(all);
    free(view.node);
    return rc;
}

/* Two nodes that share a domain of tier T, but none of the tier under it. */
static int pair_between(const struct mf_cluster *cluster, const int64_t *node,
    int t, struct pair *pair, struct mf_error *err)
{
    int32_t *here = malloc((cluster->nodes + 1) * sizeof *here);
    int32_t *under = malloc((cluster->nodes + 1) * sizeof *under);
    int rc = -1;

    if (!here || !under)
        mf_error_set(err, MF_FAILED, "no memory");
    else if (node_domains(cluster, t, here, err) == 0)
        rc = node_domains(cluster, t - 1, under, err);
    for (int i = 0; rc == 0 && pair->a < 0 && node[i] >= 0; i++)
        for (int j = i + 1; pair->a < 0 && node[j] >= 0; j++)
            if (here[node[i]] == here[node[j]] &&
                under[node[i]] != under[node[j]])
                *pair = (struct pair){node[i], node[j], 2};
    free(under);
    free(here);
    return rc;
}

/* Devices of one node that share a domain of tier T, but none of the tier
 * under it: the first, and the first behind the first domain of that.
 */
static void pair_inside(const struct mf_cluster *cluster, const int64_t *node,
    int t, struct pair *pair)
{
    int64_t under = t > 0 ? cluster->tier[t - 1].size : 1;

    for (int i = 0; under > 0 && pair->a < 0 && node[i] >= 0; i++)
        if (cluster->node[node[i]].gpus > under &&
            cluster->tier[t].size > under)
            *pair = (struct pair){node[i], node[i], under + 1};
}

static int pair_find(const struct mf_cluster *cluster, const int64_t *node,
    int t, struct pair *pair, struct mf_error *err)
{
    *pair = (struct pair){-1, -1, 0};
    pair_inside(cluster, node, t, pair);
    return pair->a >= 0 || t == 0 ? 0
                                  : pair_between(cluster, node, t, pair, err);
}

/* What moefold-run --probe answered. */
struct answer {
    double bytes_per_s, latency_s;
    bool on_cpu, driver;
    char via[24];
};

static int answer_read(
    const char *output, struct answer *answer, struct mf_error *err)
{
    json_t *json = json_loads(output, JSON_DISABLE_EOF_CHECK, NULL);
    const char *via = json_string_value(json_object_get(json, "via"));
    const char *device = json_string_value(json_object_get(json, "device"));

    *answer = (struct answer){
        .bytes_per_s = json_number_value(json_object_get(json, "bytes_per_s")),
        .latency_s = json_number_value(json_object_get(json, "latency_s")),
        .on_cpu = !device || !strcmp(device, "cpu"),
        .driver = json_is_true(json_object_get(json, "driver"))};
    snprintf(answer->via, sizeof answer->via, "%s", via ? via : "MPI");
    json_decref(json);
    if (answer->bytes_per_s > 0 && answer->latency_s > 0 &&
        isfinite(answer->bytes_per_s) && isfinite(answer->latency_s))
        return 0;
    return mf_error_set(
        err, MF_FAILED, "moefold-run --probe gave no rate: '%.80s'", output);
}

static int pair_measure(const struct mf_cluster *cluster,
    const struct pair *pair, struct answer *answer, struct mf_error *err)
{
    bool inside = pair->a == pair->b;
    const char *a = cluster->node[pair->a].name;
    const char *b = cluster->node[pair->b].name;
    char probe[] = "--probe", overlap[] = "--overlap";
    char share[] = "--overcommit", nodes[32], each[48], list[600];
    char *args[] = {probe, NULL};
    char *srun[] = {nodes, each, overlap, share, list, NULL};
    struct mfl_start start = {
        .ranks = pair->ranks, .args = args, .srun_args = srun};
    char *output = NULL;
    int rc;

    snprintf(nodes, sizeof nodes, "--nodes=%d", inside ? 1 : 2);
    snprintf(each, sizeof each, "--ntasks-per-node=%lld",
        inside ? (long long)pair->ranks : 1LL);
    snprintf(list, sizeof list, "--nodelist=%s%s%s", a, inside ? "" : ",",
        inside ? "" : b);
    rc = mfl_start_run(&start, &output, err);
    if (rc > 0)
        rc = mf_error_set(err, MF_FAILED,
            "moefold-run --probe %s %s%s%s ended with status %d",
            inside ? "on" : "between", a, inside ? "" : " and ",
            inside ? "" : b, rc);
    else if (rc == 0)
        rc = answer_read(output ? output : "", answer, err);
    free(output);
    return rc;
}

static int tier_set(struct mf_cluster *cluster, int t, const struct pair *pair,
    const struct answer *answer, const char *db_file, struct mf_error *err)
{
    struct mf_tier *tier = &cluster->tier[t];
    const char *a = cluster->node[pair->a].name;
    const char *b = cluster->node[pair->b].name;
    char field[96], from[128];

    tier->bytes_per_s = answer->bytes_per_s;
    tier->latency_s = answer->latency_s;
    if (pair->a == pair->b)
        snprintf(from, sizeof from, "moefold-run --probe, inside %.36s, %s", a,
            answer->via);
    else
        snprintf(from, sizeof from, "moefold-run --probe, %.30s to %.30s, %s",
            a, b, answer->via);
    snprintf(field, sizeof field, "tiers.%s.bytes_per_s", tier->name);
    if (mf_cluster_source_set(cluster, field, MF_MEASURED, from, err) < 0)
        return -1;
    snprintf(field, sizeof field, "tiers.%s.latency_s", tier->name);
    if (mf_cluster_source_set(cluster, field, MF_MEASURED, from, err) < 0)
        return -1;
    return mf_probe_keep(
        cluster, tier->name, tier->bytes_per_s, tier->latency_s, db_file, err);
}

/* Inside a node that has GPUs, CPU ranks would not take their links. *MEASURED
 * counts up.
 */
static int tier_probe(struct mf_cluster *cluster, int t,
    const struct pair *pair, const char *db_file, int *measured,
    struct mf_error *err)
{
    struct answer answer;

    if (pair->a < 0)
        return mf_cluster_warn(cluster, err,
            "tier %s is not probed: no two %s of this job are joined by it and "
            "by none under it",
            cluster->tier[t].name, t > 0 ? "nodes" : "devices of a node");
    if (pair_measure(cluster, pair, &answer, err) < 0)
        return -1;
    if (pair->a == pair->b && answer.on_cpu && answer.driver)
        return mf_cluster_warn(cluster, err,
            "tier %s is not probed: its GPUs are not usable by moefold-run, "
            "whose CPU ranks take other ways",
            cluster->tier[t].name);
    ++*measured;
    return tier_set(cluster, t, pair, &answer, db_file, err);
}

int mf_cluster_probe(
    struct mf_cluster *cluster, const char *db_file, struct mf_error *err)
{
    int64_t *node = NULL;
    int rc = 0, measured = 0;

    if (cluster->cpu_ranks)
        return 0;
    if (job_nodes(cluster, &node, err) < 0)
        rc = -1;
    for (int t = 0; rc == 0 && t < cluster->tiers; t++) {
        struct pair pair;

        rc = pair_find(cluster, node, t, &pair, err);
        if (rc == 0)
            rc = tier_probe(cluster, t, &pair, db_file, &measured, err);
    }
    free(node);
    if (rc == 0 && measured == 0)
        rc = mf_error_set(err, MF_FAILED,
            "--probe: no tier could be measured: this job has one node of one "
            "device, or its nodes share no network tier");
    return rc;
}
