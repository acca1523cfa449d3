/* SPDX-License-Identifier: BSD-3-Clause
 * Measured rates of a cluster's tiers, kept in the history.
 */
#include "config.h"

#include "planner/cluster_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "db/db.h"

#define KEPT_S (365 * 86400.0)
#define FROM "moefold cluster --probe, 2 ranks over MPI"

static mfdb *history_open(const char *file, char text[MFDB_ERROR_TEXT])
{
    char *path = file ? NULL : mfdb_default_path(text);
    mfdb *db = NULL;

    if (file || path)
        db = mfdb_open(file ? file : path, MFDB_UPDATE, text);
    free(path);
    return db;
}

static void key_print(const struct mf_cluster *cluster, const char *tier,
    const char *figure, char *key, size_t size)
{
    snprintf(key, size, "probe/%s/%s/%s", cluster->name, tier, figure);
}

static int figure_apply(mfdb *db, struct mf_cluster *cluster, const char *tier,
    const char *figure, double *value, struct mf_error *err)
{
    char key[512], field[96], text[MFDB_ERROR_TEXT];
    double kept;

    key_print(cluster, tier, figure, key, sizeof key);
    if (mfdb_cache_get(db, key, KEPT_S, &kept, text) != 1 || !isfinite(kept) ||
        !(kept > 0))
        return 0;
    *value = kept;
    snprintf(field, sizeof field, "tiers.%s.%s", tier, figure);
    return mf_cluster_source_set(cluster, field, MF_MEASURED, FROM, err);
}

/* A history that cannot be read has nothing to say. */
int mf_probe_apply(
    struct mf_cluster *cluster, const char *db_file, struct mf_error *err)
{
    char text[MFDB_ERROR_TEXT];
    mfdb *db = history_open(db_file, text);
    int rc = 0;

    for (int t = 0; db && rc == 0 && t < cluster->tiers; t++) {
        struct mf_tier *tier = &cluster->tier[t];

        rc = figure_apply(
            db, cluster, tier->name, "bytes_per_s", &tier->bytes_per_s, err);
        if (rc == 0)
            rc = figure_apply(
                db, cluster, tier->name, "latency_s", &tier->latency_s, err);
    }
    mfdb_close(db);
    return rc;
}

int mf_probe_keep(const struct mf_cluster *cluster, const char *tier,
    double bytes_per_s, double latency_s, const char *db_file,
    struct mf_error *err)
{
    char rate[512], latency[512], text[MFDB_ERROR_TEXT] = "";
    mfdb *db = history_open(db_file, text);
    int rc = -1;

    key_print(cluster, tier, "bytes_per_s", rate, sizeof rate);
    key_print(cluster, tier, "latency_s", latency, sizeof latency);
    if (db && mfdb_cache_put(db, rate, bytes_per_s, text) == 0)
        rc = mfdb_cache_put(db, latency, latency_s, text);
    mfdb_close(db);
    if (rc < 0)
        return mf_error_set(
            err, MF_FAILED, "the measured rates cannot be kept: %s", text);
    return 0;
}
