/* SPDX-License-Identifier: BSD-3-Clause
 * Clusters from their sources: a live Slurm controller, presets, this machine.
 */
#ifndef MF_CLUSTER_READ_H
#define MF_CLUSTER_READ_H

#include "planner/layout/cluster.h"

struct mf_cluster_ask {
    const char *const *source; /* as given with --cluster */
    int sources;
    int64_t world;          /* devices wanted, 0: not known */
    double slurm_timeout_s; /* 5 unless the user says otherwise */
    const char *db_file; /* where `local` keeps its measures; NULL: default */
    const char *runner;  /* path of moefold-run for the 2-rank probe, or
                            NULL: the exchange rate is then assumed */
    bool as_told;        /* do not use what was probed before */
};

/* Read the sources, join them (later ones fill unknown fields, a conflict is a
 * warning). Without a source: Slurm if a slurm.conf is found (dead controller:
 * MF_FAILED), else MF_INVALID with the names of the presets.
 */
int mf_cluster_read(const struct mf_cluster_ask *ask,
    struct mf_cluster *cluster, struct mf_error *err);

/* The rates of tiers that `moefold cluster --probe` measured and kept in the
 * history at DB_FILE (NULL: where it lies by default), for the cluster of this
 * name; where there are any, they take the place of others.
 */
int mf_probe_apply(
    struct mf_cluster *cluster, const char *db_file, struct mf_error *err);
/* Keep them. MF_FAILED when the history cannot be written. */
int mf_probe_keep(const struct mf_cluster *cluster, const char *tier,
    double bytes_per_s, double latency_s, const char *db_file,
    struct mf_error *err);

/* The part of a cluster that a plan can use: nodes that are up, with one type
 * and number of GPUs; the largest such part. The others leave CLUSTER, and a
 * warning says which stay. MF_INVALID when no node is known to have GPUs.
 */
int mf_cluster_pick(struct mf_cluster *cluster, struct mf_error *err);
#endif
