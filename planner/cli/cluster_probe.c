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

/* Two nodes of the job, by their index in the cluster; -1: not found. */
struct pair {
    int64_t a, b;
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
            "--probe measures between the nodes of a Slurm job; run it inside "
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
static int pair_find(const struct mf_cluster *cluster, const int64_t *node,
    int t, struct pair *pair, struct mf_error *err)
{
    int32_t *here = malloc((cluster->nodes + 1) * sizeof *here);
    int32_t *under = malloc((cluster->nodes + 1) * sizeof *under);
    int rc = -1;

    *pair = (struct pair){-1, -1};
    if (!here || !under)
        mf_error_set(err, MF_FAILED, "no memory");
    else if (node_domains(cluster, t, here, err) == 0)
        rc = t == 0 ? 0 : node_domains(cluster, t - 1, under, err);
    for (int i = 0; rc == 0 && t > 0 && pair->a < 0 && node[i] >= 0; i++)
        for (int j = i + 1; pair->a < 0 && node[j] >= 0; j++)
            if (here[node[i]] == here[node[j]] &&
                under[node[i]] != under[node[j]])
                *pair = (struct pair){node[i], node[j]};
    free(under);
    free(here);
    return rc;
}

static int answer_read(const char *output, double *bytes_per_s,
    double *latency_s, struct mf_error *err)
{
    json_t *json = json_loads(output, JSON_DISABLE_EOF_CHECK, NULL);

    *bytes_per_s = json_number_value(json_object_get(json, "bytes_per_s"));
    *latency_s = json_number_value(json_object_get(json, "latency_s"));
    json_decref(json);
    if (*bytes_per_s > 0 && *latency_s > 0 && isfinite(*bytes_per_s))
        return 0;
    return mf_error_set(
        err, MF_FAILED, "moefold-run --probe gave no rate: '%.80s'", output);
}

static int pair_measure(const char *a, const char *b, double *bytes_per_s,
    double *latency_s, struct mf_error *err)
{
    char probe[] = "--probe", two[] = "--nodes=2",
         one[] = "--ntasks-per-node=1";
    char overlap[] = "--overlap", list[600];
    char *args[] = {probe, NULL}, *srun[] = {two, one, overlap, list, NULL};
    struct mfl_start start = {.ranks = 2, .args = args, .srun_args = srun};
    char *output = NULL;
    int rc;

    snprintf(list, sizeof list, "--nodelist=%s,%s", a, b);
    rc = mfl_start_run(&start, &output, err);
    if (rc > 0)
        rc = mf_error_set(err, MF_FAILED,
            "moefold-run --probe between %s and %s ended with status %d", a, b,
            rc);
    else if (rc == 0)
        rc = answer_read(output ? output : "", bytes_per_s, latency_s, err);
    free(output);
    return rc;
}

static int tier_measured(struct mf_cluster *cluster, int t,
    const struct pair *pair, const char *db_file, struct mf_error *err)
{
    struct mf_tier *tier = &cluster->tier[t];
    const char *a = cluster->node[pair->a].name;
    const char *b = cluster->node[pair->b].name;
    char field[96], from[128];

    if (pair_measure(a, b, &tier->bytes_per_s, &tier->latency_s, err) < 0)
        return -1;
    snprintf(from, sizeof from, "moefold-run --probe, %.40s to %.40s", a, b);
    snprintf(field, sizeof field, "tiers.%s.bytes_per_s", tier->name);
    if (mf_cluster_source_set(cluster, field, MF_MEASURED, from, err) < 0)
        return -1;
    snprintf(field, sizeof field, "tiers.%s.latency_s", tier->name);
    if (mf_cluster_source_set(cluster, field, MF_MEASURED, from, err) < 0)
        return -1;
    return mf_probe_keep(
        cluster, tier->name, tier->bytes_per_s, tier->latency_s, db_file, err);
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
    for (int t = 1; rc == 0 && t < cluster->tiers; t++) {
        struct pair pair;

        rc = pair_find(cluster, node, t, &pair, err);
        if (rc == 0 && pair.a >= 0) {
            rc = tier_measured(cluster, t, &pair, db_file, err);
            measured++;
        } else if (rc == 0)
            rc = mf_cluster_warn(cluster, err,
                "tier %s is not probed: no two nodes of this job are joined "
                "by it and by none under it",
                cluster->tier[t].name);
    }
    free(node);
    if (rc == 0 && measured == 0)
        rc = mf_error_set(err, MF_FAILED,
            "--probe: no tier could be measured: this job has one node, or "
            "its nodes share no network tier");
    return rc;
}
