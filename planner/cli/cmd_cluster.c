/* SPDX-License-Identifier: BSD-3-Clause
 * moefold cluster: the cluster as the planner sees it.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/runner.h"
#include "planner/cli/cluster_probe.h"
#include "planner/cli/commands.h"
#include "planner/cli/inputs.h"
#include "planner/cluster_read.h"

#define GIB 1073741824.0
#define PLACES_MAX 40

/* VALUE / UNIT with WIDTH and one decimal, or "?" where it is not known. */
static const char *figure_text(
    double value, double unit, int width, char text[32])
{
    if (isfinite(value))
        snprintf(text, 32, "%*.*f", width, value / unit < 9.95 ? 2 : 1,
            value / unit);
    else
        snprintf(text, 32, "%*s", width, "?");
    return text;
}

static void print_devices(const struct mf_cluster *c)
{
    int64_t each = mf_cluster_gpus_per_node(c);
    const char *model = c->gpu.model[0] ? c->gpu.model : "unknown devices";

    printf("%s: %zu node%s", c->name, c->nodes, c->nodes == 1 ? "" : "s");
    if (c->cpu_ranks)
        printf(" with %" PRId64 " CPU ranks on %" PRId64 " cores, %s", each,
            c->cores, model);
    else if (each >= 0)
        printf(" of %" PRId64 " %s", each, model);
    else if (c->nodes > 0 && c->node[0].gpus < 0)
        printf(", how many GPUs each has is not known");
    else
        printf(" of unequal size, %s", model);
    printf("\n\n");
}

static void print_state(const struct mf_cluster *c)
{
    static const char *const name[] = {"up", "down", "drained", "unknown"};
    size_t count[4] = {0};

    for (size_t i = 0; i < c->nodes; i++)
        count[c->node[i].state]++;
    printf("  %-10s", "nodes");
    for (int s = 0, said = 0; s < 4; s++)
        if (count[s])
            printf("%s%zu %s", said++ ? ", " : "", count[s], name[s]);
    if (c->nodes > 1)
        printf(", %s to %s", c->node[0].name, c->node[c->nodes - 1].name);
    printf("\n  %-10s%" PRId64 " on nodes that are up\n",
        c->cpu_ranks ? "ranks" : "GPUs", mf_cluster_devices(c));
}

static void print_figures(const struct mf_cluster *c)
{
    const char *each = c->cpu_ranks ? "each rank" : "each GPU";
    const char *flops_unit = c->cpu_ranks ? "GFLOP/s fp32" : "TFLOP/s bf16";
    char memory[32], flops[32], hbm[32];

    printf("  %-10s%s GiB, %s %s, %s GB/s memory\n", each,
        figure_text(c->gpu.memory_bytes, GIB, 0, memory),
        figure_text(c->gpu.bf16_flops, c->cpu_ranks ? 1e9 : 1e12, 0, flops),
        flops_unit, figure_text(c->gpu.hbm_bytes_per_s, 1e9, 0, hbm));
}

static const char *size_text(int64_t size, char text[32])
{
    if (size > 0)
        snprintf(text, 32, "%10" PRId64, size);
    else
        snprintf(text, 32, "%10s", "?");
    return text;
}

static bool text_equal(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* Do A and B hang on one place, and are they of one kind? */
static bool is_alike(const struct mf_node *a, const struct mf_node *b)
{
    return text_equal(a->switch_name, b->switch_name) &&
           text_equal(a->block, b->block) &&
           text_equal(a->gpu_type, b->gpu_type) && a->gpus == b->gpus &&
           a->state == b->state;
}

static void print_place(const struct mf_cluster *c, size_t first, size_t last)
{
    static const char *const state[] = {"", ", down", ", drained", ", unknown"};
    const struct mf_node *node = &c->node[first];

    printf("  %-20s%s%s%s",
        node->block ? node->block
                    : (node->switch_name ? node->switch_name : "-"),
        node->name, first < last ? " to " : "",
        first < last ? c->node[last].name : "");
    printf(" (%zu", last - first + 1);
    if (node->gpus >= 0)
        printf(" of %" PRId64 " %s", node->gpus,
            node->gpu_type ? node->gpu_type : "GPUs");
    printf("%s)\n", state[node->state]);
}

/* Runs of nodes that share a block or a leaf, where the network tells. */
static void print_places(const struct mf_cluster *c)
{
    bool tells = false;
    int lines = 0;
    size_t last;

    for (size_t i = 0; i < c->nodes; i++)
        tells |= c->node[i].switch_name || c->node[i].block ||
                 !is_alike(&c->node[i], &c->node[0]);
    if (!tells)
        return;
    printf("\n  %-20s%s\n", "block or switch", "nodes");
    for (size_t i = 0; i < c->nodes; i = last + 1) {
        for (last = i;
             last + 1 < c->nodes && is_alike(&c->node[i], &c->node[last + 1]);
             last++)
            ;
        if (lines++ == PLACES_MAX) {
            printf("  ... (--json has all %zu nodes)\n", c->nodes);
            return;
        }
        print_place(c, i, last);
    }
}

static bool numa_equal(const struct mf_numa *a, const struct mf_numa *b)
{
    return a == b || (a && b && a->nodes == b->nodes && a->gpus == b->gpus &&
                         !memcmp(a->of_gpu, b->of_gpu,
                             (size_t)a->gpus * sizeof *a->of_gpu));
}

/* "GPUs 0-3 on 0, 4-7 on 1", of the first node that tells. */
static void print_numa(const struct mf_cluster *c)
{
    const struct mf_numa *numa = NULL;
    bool same = true;

    for (size_t i = 0; i < c->nodes; i++) {
        if (!numa)
            numa = c->node[i].numa;
        same &= numa_equal(c->node[i].numa, numa);
    }
    if (!numa)
        return;
    printf("  %-10s", "NUMA");
    if (numa->nodes > 0)
        printf("%" PRId32 " node%s%s", numa->nodes, numa->nodes == 1 ? "" : "s",
            numa->gpus ? "; " : "");
    if (numa->gpus > 0)
        printf("GPUs");
    for (int32_t i = 0, last; i < numa->gpus; i = last + 1) {
        for (last = i;
             last + 1 < numa->gpus && numa->of_gpu[last + 1] == numa->of_gpu[i];
             last++)
            ;
        printf("%s %" PRId32, i ? "," : "", i);
        if (last > i)
            printf("-%" PRId32, last);
        if (numa->of_gpu[i] >= 0)
            printf(" on %" PRId32, numa->of_gpu[i]);
        else
            printf(" unknown");
    }
    printf("%s\n", same ? "" : " (nodes differ)");
}

static void print_tiers(const struct mf_cluster *c)
{
    char rate[32], latency[32], size[32];

    printf("\n  %-10s%10s%20s%14s\n", "tier", "reaches", "GB/s one way",
        "latency us");
    for (int t = 0; t < c->tiers; t++)
        printf("  %-10s%s%s%s\n", c->tier[t].name,
            size_text(c->tier[t].size, size),
            figure_text(c->tier[t].bytes_per_s, 1e9, 20, rate),
            figure_text(c->tier[t].latency_s, 1e-6, 14, latency));
}

static void print_sources(const struct mf_cluster *c)
{
    static const char *const how[] = {"measured", "read", "preset", "assumed"};

    printf("\n  where the figures come from\n");
    for (size_t i = 0; i < c->sources; i++)
        printf("  %-28s%-10s%s\n", c->source[i].field, how[c->source[i].how],
            c->source[i].from);
    for (size_t i = 0; c->warning && c->warning[i]; i++)
        printf("%s  warning: %s\n", i ? "" : "\n", c->warning[i]);
}

static int cluster_print(const struct mf_cluster *c, struct mf_error *err)
{
    print_devices(c);
    print_state(c);
    print_figures(c);
    print_numa(c);
    print_tiers(c);
    print_places(c);
    print_sources(c);
    if (fflush(stdout) || ferror(stdout))
        return mf_error_set(err, MF_FAILED, "cannot print the cluster");
    return 0;
}

/* Operands first, then the values of --cluster; NULL: no memory. */
static const char **sources_gather(const struct mf_cli *cli, int *count)
{
    int operands = mf_cli_operands(cli), options = 0;
    const char **source;

    while (mf_cli_value_at(cli, "cluster", options))
        options++;
    source = calloc((size_t)(operands + options) + 1, sizeof *source);
    *count = operands + options;
    for (int i = 0; source && i < *count; i++)
        source[i] = i < operands
                        ? mf_cli_operand(cli, i)
                        : mf_cli_value_at(cli, "cluster", i - operands);
    return source;
}

static int cluster_read(
    struct mf_cli *cli, struct mf_cluster *cluster, struct mf_error *err)
{
    struct mf_cluster_ask ask = {
        .slurm_timeout_s = 5, .db_file = mf_cli_value(cli, "db")};
    const char **source;
    char *runner;
    int rc;

    if (mf_inputs_world(cli, &ask.world, err) ||
        mf_cli_decimal(
            cli, "slurm-timeout", 0.1, 3600, &ask.slurm_timeout_s, err))
        return -1;
    source = sources_gather(cli, &ask.sources);
    if (!source)
        return mf_error_set(err, MF_FAILED, "no memory");
    runner = mfl_runner_find();
    ask.source = source;
    ask.runner = runner;
    ask.as_told = mf_cli_has(cli, "probe");
    rc = mf_cluster_read(&ask, cluster, err);
    free(runner);
    free(source);
    return rc;
}

static int cluster_run(struct mf_cli *cli, struct mf_error *err)
{
    struct mf_cluster cluster;
    int rc;

    if (cluster_read(cli, &cluster, err))
        return -1;
    if (mf_cli_has(cli, "probe") &&
        mf_cluster_probe(&cluster, mf_cli_value(cli, "db"), err) < 0) {
        mf_cluster_free(&cluster);
        return -1;
    }
    rc = mf_cli_json(cli) ? mf_cli_print_json(mf_cluster_to_json(&cluster), err)
                          : cluster_print(&cluster, err);
    mf_cluster_free(&cluster);
    return rc;
}

static const struct mf_option cluster_options[] = {
    {"db", "FILE", "where local and --probe keep what they measured"},
    {"probe", NULL, "measure the tiers in this allocation"},
    {NULL, NULL, NULL},
};

static const struct mf_option *const cluster_tables[] = {
    mf_options_cluster, cluster_options, NULL};

const struct mf_command mf_command_cluster = {
    .name = "cluster",
    .operands = "[SOURCE...]",
    .summary = "Show a cluster, and where each figure comes from",
    .tables = cluster_tables,
    .least = 0,
    .most = -1,
    .run = cluster_run,
};
