/* SPDX-License-Identifier: BSD-3-Clause
 * Coefficients from the database of past runs.
 */
#include "config.h"

#include "planner/cli/fitted.h"
#include "planner/published.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *mf_inputs_db(const struct mf_cli *cli, struct mf_error *err)
{
    const char *given = mf_cli_value(cli, "db");
    char text[MFDB_ERROR_TEXT], *path;

    path = given ? strdup(given) : mfdb_default_path(text);
    if (!path && given)
        mf_error_set(err, MF_FAILED, "out of memory");
    else if (!path)
        mf_error_set(err, MF_FAILED, "%s", text);
    return path;
}

int mf_coefficients_restore(const struct mfdb_coefficients *saved,
    const struct mf_cluster *cluster, struct mf_coefficients *set,
    struct mf_error *err)
{
    mf_coefficients_prior(cluster, set);
    for (size_t i = 0; i < saved->values; i++) {
        int index = mf_coefficient_find(saved->value[i].name);

        if (index < 0 || !(saved->value[i].value >= 0) ||
            !isfinite(saved->value[i].value))
            return mf_error_set(err, MF_INVALID,
                "coefficients %s: %s is not known to this version; fit anew",
                saved->name, saved->value[i].name);
        set->value[index] = saved->value[i].value;
    }
    snprintf(set->name, sizeof set->name, "%s", saved->name);
    return 0;
}

/* 1: found, 0: none, -1. */
static int coefficients_load(const char *path, const char *name,
    const struct mf_cluster *cluster, struct mf_coefficients *set,
    struct mf_error *err)
{
    struct mfdb_coefficients saved = {0};
    char text[MFDB_ERROR_TEXT];
    mfdb *db = mfdb_open(path, MFDB_QUERY, text);
    int found = -1;

    if (!db)
        return mf_error_set(err, MF_INVALID, "%s", text);
    found = mfdb_coefficients_load(db, name, cluster->name, &saved, text);
    if (found < 0)
        mf_error_set(err, MF_FAILED, "%s", text);
    else if (found && mf_coefficients_restore(&saved, cluster, set, err))
        found = -1;
    mfdb_coefficients_free(&saved);
    mfdb_close(db);
    return found;
}

int mf_inputs_coefficients(const struct mf_cli *cli,
    const struct mf_cluster *cluster, struct mf_coefficients *set,
    struct mf_error *err)
{
    const char *name = mf_cli_value(cli, "coefficients");
    char *path;
    int found;

    mf_coefficients_prior(cluster, set);
    if (name && !strcmp(name, set->name))
        return 0;
    if (!cluster->cpu_ranks)
        mf_published_set(cluster, -1, set);
    if (name && (!strcmp(name, set->name) || mf_source_find(name) >= 0)) {
        if (!cluster->cpu_ranks)
            mf_published_set(cluster, mf_source_find(name), set);
        return 0;
    }
    path = mf_inputs_db(cli, name || mf_cli_has(cli, "db") ? err : NULL);
    if (!path)
        return name ? -1 : 0;
    if (!name && !mf_cli_has(cli, "db") && access(path, F_OK)) {
        free(path);
        return 0;
    }
    found = coefficients_load(path, name, cluster, set, err);
    free(path);
    if (found == 0 && name)
        return mf_error_set(err, MF_INVALID,
            "no coefficients are called %s; moefold fit --list shows them",
            name);
    return found < 0 ? -1 : 0;
}
