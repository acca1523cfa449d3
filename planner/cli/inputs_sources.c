/* SPDX-License-Identifier: BSD-3-Clause
 * The model and the cluster that a command line names.
 */
#include "config.h"

#include <stdlib.h>

#include "launcher/runner.h"
#include "planner/cli/inputs.h"
#include "planner/cluster_read.h"
#include "planner/model_read.h"

int mf_inputs_model(
    const struct mf_cli *cli, struct mf_model *model, struct mf_error *err)
{
    const char *file = mf_cli_value(cli, "model");

    if (!file)
        return mf_error_set(err, MF_INVALID,
            "no model; give its config.json with --model FILE");
    return mf_model_read(file, model, err);
}

/* Repeated --cluster values as a vector; NULL when there is no memory. */
static const char **cluster_sources(const struct mf_cli *cli, int *count)
{
    const char **source;

    for (*count = 0; mf_cli_value_at(cli, "cluster", *count); (*count)++)
        ;
    source = calloc((size_t)*count + 1, sizeof *source);
    for (int i = 0; source && i < *count; i++)
        source[i] = mf_cli_value_at(cli, "cluster", i);
    return source;
}

int mf_inputs_cluster(const struct mf_cli *cli, int64_t world,
    struct mf_cluster *cluster, struct mf_error *err)
{
    struct mf_cluster_ask ask = {
        .world = world,
        .slurm_timeout_s = 5,
        .db_file = mf_cli_value(cli, "db"),
    };
    const char **source;
    char *runner;
    int rc;

    if (mf_cli_decimal(
            cli, "slurm-timeout", 0.1, 3600, &ask.slurm_timeout_s, err))
        return -1;
    source = cluster_sources(cli, &ask.sources);
    if (!source)
        return mf_error_set(err, MF_FAILED, "no memory");
    runner = mfl_runner_find();
    ask.source = source;
    ask.runner = runner;
    rc = mf_cluster_read(&ask, cluster, err);
    if (rc == 0 && mf_cluster_pick(cluster, err) < 0) {
        mf_cluster_free(cluster);
        rc = -1;
    }
    free(runner);
    free(source);
    return rc;
}
