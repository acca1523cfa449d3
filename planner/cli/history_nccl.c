/* SPDX-License-Identifier: BSD-3-Clause
 * See history_nccl.h.
 */
#include "config.h"

#include "planner/cli/history_nccl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/cli/inputs.h"
#include "planner/cluster_read.h"

enum { WORDS = 24 };

/* Sizes under this say more of latency than of rate. */
#define BYTES_LEAST 1e6

struct table {
    int64_t ranks, hosts;
    char host[256]; /* the last one seen */
    int time;       /* column of the out-of-place time; -1 not seen yet */
    double bytes_per_s, at_bytes; /* the best bus bandwidth and its size */
    int64_t rows;
};

static int split(char *line, char *word[WORDS])
{
    char *rest;
    int n = 0;

    for (char *w = strtok_r(line, " \t\r\n", &rest); w && n < WORDS;
         w = strtok_r(NULL, " \t\r\n", &rest))
        word[n++] = w;
    return n;
}

/* "#  Rank  0 Group  0 Pid 37300 on g100n126 device  0 ...": ranks of one host
 * stand together.
 */
static void take_rank(struct table *t, char *word[], int n)
{
    t->ranks++;
    for (int i = 0; i + 2 < n; i++)
        if (!strcmp(word[i], "on") && !strcmp(word[i + 2], "device")) {
            t->hosts += strcmp(t->host, word[i + 1]) != 0;
            snprintf(t->host, sizeof t->host, "%s", word[i + 1]);
        }
}

/* "#  size  count  type  redop  root  time  algbw  busbw ...": the first word
 * is the #, which lines of numbers do not have.
 */
static void take_head(struct table *t, char *word[], int n)
{
    for (int i = 2; i < n && t->time < 0; i++)
        if (!strcmp(word[i], "time"))
            t->time = i - 1;
}

static bool number(const char *text, double *value)
{
    char *end;

    *value = strtod(text, &end);
    return !*end && end != text && isfinite(*value) && *value >= 0;
}

static void take_row(struct table *t, char *word[], int n)
{
    double bytes, microseconds, alg, bus;

    if (t->time < 0 || n < t->time + 3 || !number(word[0], &bytes) ||
        !number(word[t->time], &microseconds) ||
        !number(word[t->time + 1], &alg) || !number(word[t->time + 2], &bus))
        return;
    t->rows++;
    if (bytes >= BYTES_LEAST && bus * 1e9 > t->bytes_per_s) {
        t->bytes_per_s = bus * 1e9;
        t->at_bytes = bytes;
    }
}

static int read_table(FILE *file, struct table *t, struct mf_error *err)
{
    char *word[WORDS], line[4096];

    *t = (struct table){.time = -1};
    while (fgets(line, sizeof line, file)) {
        const int n = split(line, word);

        if (n > 2 && !strcmp(word[0], "#") && !strcmp(word[1], "Rank"))
            take_rank(t, word, n);
        else if (n > 2 && !strcmp(word[0], "#") && !strcmp(word[1], "size"))
            take_head(t, word, n);
        else if (n > 0 && word[0][0] != '#')
            take_row(t, word, n);
    }
    if (t->rows == 0)
        return mf_error_set(err, MF_INVALID,
            "no table of nccl-tests: no line with a size, a time and two "
            "bandwidths");
    if (t->ranks < 2)
        return mf_error_set(err, MF_INVALID,
            "%" PRId64 " lines with a rank; the rate between two or more is "
            "wanted",
            t->ranks);
    if (!(t->bytes_per_s > 0))
        return mf_error_set(
            err, MF_INVALID, "no size of 1 MB or more; run it with -e 1G");
    return 0;
}

/* The smallest tier that holds all ranks; more than one host is never within
 * the node's own.
 */
static struct mf_tier *tier_of(
    struct mf_cluster *cluster, const struct table *t, struct mf_error *err)
{
    for (int i = 0; i < cluster->tiers; i++) {
        struct mf_tier *tier = &cluster->tier[i];

        if (tier->size >= t->ranks &&
            (t->hosts < 2 || tier->size > mf_cluster_gpus_per_node(cluster)))
            return tier;
    }
    mf_error_set(err, MF_INVALID,
        "no tier of cluster %s holds %" PRId64 " ranks on %" PRId64 " hosts",
        cluster->name, t->ranks, t->hosts);
    return NULL;
}

static int keep(const struct mf_cli *cli, struct mf_cluster *cluster,
    const struct table *t, struct mf_error *err)
{
    struct mf_tier *tier = tier_of(cluster, t, err);

    if (!tier || mf_probe_keep(cluster, tier->name, t->bytes_per_s,
                     tier->latency_s, mf_cli_value(cli, "db"), err))
        return -1;
    if (mf_cli_json(cli))
        return mf_cli_print_json(
            json_pack("{s:s, s:s, s:s, s:I, s:f, s:f, s:I}", "imported",
                mf_cli_operand(cli, 1), "cluster", cluster->name, "tier",
                tier->name, "ranks", (json_int_t)t->ranks, "bytes_per_s",
                t->bytes_per_s, "at_bytes", t->at_bytes, "rows",
                (json_int_t)t->rows),
            err);
    printf("cluster %s, tier %s: %.4g GB/s a GPU, by %" PRId64
           " ranks at %.0f bytes\n",
        cluster->name, tier->name, t->bytes_per_s / 1e9, t->ranks, t->at_bytes);
    return 0;
}

int mf_history_import_nccl(
    const struct mf_cli *cli, FILE *file, struct mf_error *err)
{
    struct mf_cluster cluster;
    struct table t;
    int rc;

    if (read_table(file, &t, err))
        return mf_error_prefix(err, "%s", mf_cli_operand(cli, 1));
    if (!mf_cli_value(cli, "cluster"))
        return mf_error_set(err, MF_INVALID,
            "%s is of nccl-tests: --cluster says whose rates these are",
            mf_cli_operand(cli, 1));
    if (mf_inputs_cluster(cli, t.ranks, &cluster, err))
        return -1;
    rc = keep(cli, &cluster, &t, err);
    mf_cluster_free(&cluster);
    return rc;
}
