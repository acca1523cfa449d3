/* SPDX-License-Identifier: BSD-3-Clause
 * Clusters from their sources, told apart and joined.
 */
#include "config.h"

#include "planner/cluster_parts.h"

#include <string.h>
#include <unistd.h>

#include "planner/cluster_file.h"

static int unknown_source(const char *source, struct mf_error *err)
{
    char names[512];

    mf_preset_names(names, sizeof names);
    return mf_error_set(err, MF_INVALID,
        "cluster '%.200s' is not known, and no file; use slurm, local, a file "
        "or a preset with a number behind it (%s:N)",
        source, names);
}

static int read_one(const struct mf_cluster_ask *ask, const char *source,
    int64_t world, struct mf_cluster *cluster, struct mf_error *err)
{
    if (!strcmp(source, "local"))
        return mf_local_read(ask, cluster, err);
    if (!strcmp(source, "slurm"))
        return mf_slurm_read(ask->slurm_timeout_s, cluster, err);
    if (mf_preset_is(source))
        return mf_preset_read(source, world, cluster, err);
    if (strchr(source, '/') || access(source, F_OK) == 0)
        return mf_cluster_file(source, cluster, err);
    return unknown_source(source, err);
}

static int read_without_source(const struct mf_cluster_ask *ask,
    struct mf_cluster *cluster, struct mf_error *err)
{
    char names[512];

    if (mf_slurm_conf_found())
        return mf_slurm_read(ask->slurm_timeout_s, cluster, err);
    mf_preset_names(names, sizeof names);
    return mf_error_set(err, MF_INVALID,
        "no cluster: there is no slurm.conf at %s; give --cluster local, or a "
        "preset with a number behind it (%s:N)",
        mf_slurm_conf(), names);
}

/* Those of nodes that are down too, at least 1: what a further source that
 * has no size of its own is asked for.
 */
static int64_t all_devices(const struct mf_cluster *cluster)
{
    int64_t devices = 0;

    for (size_t i = 0; i < cluster->nodes; i++)
        devices += cluster->node[i].gpus;
    return devices > 0 ? devices : 1;
}

static int sources_read(const struct mf_cluster_ask *ask,
    struct mf_cluster *cluster, struct mf_error *err)
{
    if (ask->sources == 0)
        return read_without_source(ask, cluster, err);
    if (read_one(ask, ask->source[0], ask->world, cluster, err) < 0)
        return -1;
    for (int i = 1; i < ask->sources; i++) {
        int64_t world = all_devices(cluster);
        struct mf_cluster other;
        int rc = read_one(ask, ask->source[i], world, &other, err);

        if (rc == 0) {
            rc = mf_cluster_join(cluster, &other, ask->source[i], err);
            mf_cluster_free(&other);
        }
        if (rc < 0) {
            mf_cluster_free(cluster);
            return -1;
        }
    }
    return 0;
}

int mf_cluster_read(const struct mf_cluster_ask *ask,
    struct mf_cluster *cluster, struct mf_error *err)
{
    *cluster = (struct mf_cluster){0};
    if (sources_read(ask, cluster, err) < 0)
        return -1;
    if (cluster->cpu_ranks || ask->as_told ||
        mf_probe_apply(cluster, ask->db_file, err) == 0)
        return 0;
    mf_cluster_free(cluster);
    return -1;
}
