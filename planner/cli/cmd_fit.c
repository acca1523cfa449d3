/* SPDX-License-Identifier: BSD-3-Clause
 * moefold fit: coefficients from past runs.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/cli/commands.h"
#include "planner/cli/database.h"
#include "planner/cli/fitted.h"
#include "planner/cli/inputs.h"
#include "planner/cluster_read.h"
#include "planner/fit.h"
#include "planner/published.h"

/* ---- the sets there are ---- */

static json_t *number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *saved_json(const struct mfdb_coefficients *set)
{
    json_t *values = json_array();

    for (size_t i = 0; i < set->values; i++)
        json_array_append_new(
            values, json_pack("{s:s, s:o}", "name", set->value[i].name, "value",
                        number_json(set->value[i].value)));
    return json_pack("{s:I, s:s, s:s, s:I, s:o, s:o, s:o}", "id",
        (json_int_t)set->id, "name", set->name, "scope", set->scope, "runs",
        (json_int_t)set->samples, "error_before",
        number_json(set->error_before), "error_after",
        number_json(set->error_after), "coefficients", values);
}

/* Those that come with the program, fitted to published runs. */
static json_t *shipped_json(void)
{
    json_t *list = json_array();

    for (int i = -1; i < mf_source_count; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:s?, s:i}", "name",
                      i < 0 ? "published" : mf_sources[i].name, "document",
                      i < 0 ? NULL : mf_sources[i].pattern, "runs",
                      mf_published_runs_of(i)));
    return list;
}

static void shipped_print(void)
{
    printf("\nfitted to published runs; --coefficients takes the name, or the "
           "document's\n%-18s %5s  %s\n",
        "name", "runs", "document");
    for (int i = -1; i < mf_source_count; i++)
        printf("%-18s %5d  %s\n", i < 0 ? "published" : mf_sources[i].name,
            mf_published_runs_of(i),
            i < 0 ? "(all; what predictions for GPUs begin with)"
                  : mf_sources[i].pattern);
}

static int list_print(const struct mf_cli *cli, struct mfdb_coefficients *sets,
    size_t count, struct mf_error *err)
{
    json_t *list;

    if (!mf_cli_json(cli)) {
        printf("%4s  %-24s %-24s %5s %8s %8s\n", "id", "name", "cluster",
            "runs", "before", "after");
        for (size_t i = 0; i < count; i++)
            printf("%4" PRId64 "  %-24s %-24s %5" PRId64 " %7.1f%% %7.1f%%\n",
                sets[i].id, sets[i].name, sets[i].scope, sets[i].samples,
                100 * sets[i].error_before, 100 * sets[i].error_after);
        shipped_print();
        return 0;
    }
    list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, saved_json(&sets[i]));
    return mf_cli_print_json(
        json_pack("{s:o, s:o}", "sets", list, "shipped", shipped_json()), err);
}

static int fit_list(const struct mf_cli *cli, mfdb *db, struct mf_error *err)
{
    struct mfdb_coefficients *sets = NULL;
    char text[MFDB_ERROR_TEXT];
    size_t count = 0;
    int rc;

    if (db && mfdb_coefficients_list(db, &sets, &count, text) < 0)
        return mf_error_set(err, MF_FAILED, "%s", text);
    rc = list_print(cli, sets, count, err);
    for (size_t i = 0; i < count; i++)
        mfdb_coefficients_free(&sets[i]);
    free(sets);
    return rc;
}

/* ---- a new set ---- */

/* The cluster of the newest finished run, and the most ranks of any. */
static int newest_cluster(
    mfdb *db, char *name, size_t size, int64_t *world, struct mf_error *err)
{
    struct mfdb_filter filter = {0};
    struct mfdb_runs runs = {0};
    char text[MFDB_ERROR_TEXT];

    if (mfdb_list(db, &filter, &runs, text))
        return mf_error_set(err, MF_FAILED, "%s", text);
    for (size_t i = 0; i < runs.count; i++) {
        if (strcmp(runs.run[i].status, "done"))
            continue;
        if (!name[0])
            snprintf(name, size, "%s", runs.run[i].cluster);
        if (!strcmp(runs.run[i].cluster, name) && runs.run[i].ranks > *world)
            *world = runs.run[i].ranks;
    }
    mfdb_runs_free(&runs);
    if (!name[0])
        return mf_error_set(err, MF_FAILED,
            "the history has no finished run to fit to; see moefold run");
    return 0;
}

/* --cluster is a source as everywhere; without it the newest run's cluster,
 * if its name is a source, such as local.
 */
static int fit_cluster(const struct mf_cli *cli, mfdb *db,
    struct mf_cluster *cluster, struct mf_error *err)
{
    char name[128] = "";
    const char *source = name;
    struct mf_cluster_ask ask = {.source = &source,
        .sources = 1,
        .slurm_timeout_s = 5,
        .db_file = mf_cli_value(cli, "db")};
    const char *given = mf_cli_value(cli, "cluster");
    int64_t world = 0;

    if (given)
        snprintf(name, sizeof name, "%.*s", (int)strcspn(given, ":"), given);
    if (newest_cluster(db, name, sizeof name, &world, err))
        return -1;
    if (given)
        return mf_inputs_cluster(cli, world, cluster, err);
    ask.world = world;
    if (mf_cluster_read(&ask, cluster, err))
        return mf_error_prefix(
            err, "give --cluster SOURCE for the runs on '%s'", name);
    return 0;
}

/* All values are kept, so that a set means the same whatever later priors. */
static int fit_save(const struct mf_cli *cli, mfdb *db,
    const struct mf_cluster *cluster, struct mf_fit *fit, struct mf_error *err)
{
    struct mfdb_value value[MF_COEFS];
    struct mfdb_coefficients saved = {.value = value,
        .values = MF_COEFS,
        .error_before = fit->error_before,
        .error_after = fit->error_after,
        .samples = fit->runs};
    const char *name = mf_cli_value(cli, "name");
    char text[MFDB_ERROR_TEXT];

    memset(value, 0, sizeof value);
    for (int i = 0; i < MF_COEFS; i++) {
        snprintf(
            value[i].name, sizeof value[i].name, "%s", mf_coefficient_name(i));
        value[i].value = fit->set.value[i];
    }
    snprintf(saved.scope, sizeof saved.scope, "%s", cluster->name);
    snprintf(saved.name, sizeof saved.name, "%s", name ? name : "");
    if (mfdb_coefficients_save(db, &saved, text))
        return mf_error_set(err, MF_FAILED, "%s", text);
    snprintf(fit->set.name, sizeof fit->set.name, "%s", saved.name);
    return 0;
}

static int fit_print_json(const struct mf_fit *fit,
    const struct mf_coefficients *prior, const char *cluster, bool saved,
    struct mf_error *err)
{
    json_t *list = json_array();

    for (int i = 0; i < MF_COEFS; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:o, s:o}", "name", mf_coefficient_name(i),
                      "value", number_json(fit->set.value[i]), "prior",
                      number_json(prior->value[i])));
    return mf_cli_print_json(
        json_pack("{s:s, s:o, s:o, s:o, s:b, s:b, s:I, s:I, s:I, s:I, s:o}",
            "cluster", cluster, "name",
            saved ? json_string(fit->set.name) : json_null(), "error_before",
            number_json(fit->error_before), "error_after",
            number_json(fit->error_after), "improved", fit->improved, "saved",
            saved, "runs", (json_int_t)fit->runs, "layouts",
            (json_int_t)fit->layouts, "samples", (json_int_t)fit->samples,
            "skipped", (json_int_t)fit->skipped, "coefficients", list),
        err);
}

static void fit_print(const struct mf_fit *fit,
    const struct mf_coefficients *prior, const char *cluster, bool saved)
{
    printf("%" PRId64 " runs of %" PRId64 " layouts on %s, %" PRId64
           " timed phases\n",
        fit->runs, fit->layouts, cluster, fit->samples);
    if (fit->skipped)
        printf("%" PRId64 " runs could not be priced and are left out\n",
            fit->skipped);
    printf("error on layouts left out of the fit: %.1f %% before, %.1f %% "
           "after\n",
        100 * fit->error_before, 100 * fit->error_after);
    if (!fit->improved)
        puts("the fit is no better: it is not used, and nothing is saved");
    for (int i = 0; fit->improved && i < MF_COEFS; i++)
        if (fit->set.value[i] != prior->value[i])
            printf("  %-12s %12.6g  (was %.6g)\n", mf_coefficient_name(i),
                fit->set.value[i], prior->value[i]);
    if (saved)
        printf("saved as %s; predictions for %s now use it\n", fit->set.name,
            cluster);
}

static int fit_new(const struct mf_cli *cli, mfdb *db, struct mf_error *err)
{
    bool dry = mf_cli_has(cli, "dry-run"), saved;
    struct mf_cluster cluster = {0};
    struct mf_coefficients prior;
    struct mf_fit fit;
    int rc = -1;

    if (fit_cluster(cli, db, &cluster, err))
        goto out;
    mf_coefficients_prior(&cluster, &prior);
    if (mf_fit_run(db, &cluster, &prior, &fit, err))
        goto out;
    saved = fit.improved && !dry;
    if (saved && fit_save(cli, db, &cluster, &fit, err))
        goto out;
    rc = 0;
    if (mf_cli_json(cli))
        rc = fit_print_json(&fit, &prior, cluster.name, saved, err);
    else
        fit_print(&fit, &prior, cluster.name, saved);
out:
    mf_cluster_free(&cluster);
    return rc;
}

static int fit_run(struct mf_cli *cli, struct mf_error *err)
{
    bool list = mf_cli_has(cli, "list");
    mfdb *db = NULL;
    int rc;

    if (list || mf_cli_has(cli, "dry-run"))
        rc = mf_database_query(cli, &db, err);
    else
        rc = (db = mf_database_update(cli, err)) ? 0 : -1;
    if (rc)
        return -1;
    mf_database_warn(db, "fit");
    if (list)
        rc = fit_list(cli, db, err);
    else if (db)
        rc = fit_new(cli, db, err);
    else
        rc = mf_error_set(
            err, MF_FAILED, "there is no history yet; see moefold run");
    mfdb_close(db);
    return rc;
}

static const struct mf_option fit_options[] = {
    {"cluster", "SOURCE", "whose runs (the newest run's cluster)"},
    {"slurm-timeout", "SECONDS", "how long to wait for Slurm (5)"},
    {"dry-run", NULL, "fit and show, save nothing"},
    {"list", NULL, "show the sets of coefficients that there are"},
    {"name", "NAME", "what to call the new set (made from its number)"},
    {"db", "FILE", "the history ($MOEFOLD_DB, else the XDG data folder)"},
    {NULL, NULL, NULL},
};

static const struct mf_option *const fit_tables[] = {fit_options, NULL};

const struct mf_command mf_command_fit = {
    .name = "fit",
    .operands = "",
    .summary = "Refine the cost model with the timings of past runs",
    .tables = fit_tables,
    .run = fit_run,
};
