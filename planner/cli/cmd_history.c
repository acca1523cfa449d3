/* SPDX-License-Identifier: BSD-3-Clause
 * moefold history: the memory of past runs.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "planner/cli/commands.h"
#include "planner/cli/database.h"
#include "planner/cli/history.h"
#include "planner/cli/history_verbs.h"
#include "planner/layout/layout.h"
#include "planner/layout/number.h"

/* Columns hold the canonical text, so that any way to write it is found. */
static int history_layout(const struct mf_cli *cli, int64_t world,
    char text[MF_LAYOUT_TEXT], struct mf_error *err)
{
    struct mf_layout layout;

    if (mf_layout_parse(mf_cli_value(cli, "layout"), &layout, err))
        return -1;
    if (!world && !layout.dp && !layout.edp)
        return mf_error_set(err, MF_INVALID,
            "--layout %s leaves dp open; give dp or --world N",
            mf_cli_value(cli, "layout"));
    if (!world && layout.dp)
        world = mf_product(
            4, (int64_t[]){layout.tp, layout.cp, layout.dp, layout.pp});
    else if (!world)
        world = mf_product(
            4, (int64_t[]){layout.etp, layout.ep, layout.edp, layout.pp});
    if (mf_layout_resolve(&layout, world, ~0u, err))
        return -1;
    mf_layout_format(&layout, text, MF_LAYOUT_TEXT);
    return 0;
}

int mf_history_filter(const struct mf_cli *cli, struct mfdb_filter *filter,
    char layout[MF_LAYOUT_TEXT], struct mf_error *err)
{
    int64_t limit = 0;

    *filter = (struct mfdb_filter){
        .model = mf_cli_value(cli, "model"),
        .cluster = mf_cli_value(cli, "cluster"),
        .user = mf_cli_value(cli, "user"),
        .node = mf_cli_value(cli, "node"),
        .version = mf_cli_value(cli, "of-version"),
    };
    if (mf_cli_integer(cli, "gpus", 1, MF_WORLD_MAX, &filter->world, err) ||
        mf_cli_integer(cli, "world", 1, MF_WORLD_MAX, &filter->world, err) ||
        mf_cli_integer(cli, "limit", 1, INT32_MAX, &limit, err) ||
        mf_history_time(cli, "since", &filter->since_unix_s, err))
        return -1;
    filter->limit = (size_t)limit;
    if (!mf_cli_value(cli, "layout"))
        return 0;
    if (history_layout(cli, filter->world, layout, err))
        return -1;
    filter->layout = layout;
    return 0;
}

typedef int history_query(mfdb *db, const struct mfdb_filter *filter,
    struct mfdb_runs *runs, char err[MFDB_ERROR_TEXT]);

/* The runs that QUERY finds; none where there is no history yet. */
static int history_ask(const struct mf_cli *cli, history_query *query,
    struct mfdb_runs *runs, struct mf_error *err)
{
    char layout[MF_LAYOUT_TEXT], text[MFDB_ERROR_TEXT];
    struct mfdb_filter filter;
    mfdb *db = NULL;
    int rc = 0;

    *runs = (struct mfdb_runs){0};
    if (mf_history_filter(cli, &filter, layout, err) ||
        mf_database_query(cli, &db, err))
        return -1;
    if (!db)
        return 0;
    if (query(db, &filter, runs, text))
        rc = mf_error_set(err, MF_FAILED, "%s", text);
    mf_database_warn(db, "history");
    mfdb_close(db);
    return rc;
}

static int history_list(const struct mf_cli *cli, struct mf_error *err)
{
    struct mfdb_runs runs;
    int rc = 0;

    if (history_ask(cli, mfdb_list, &runs, err))
        return -1;
    if (mf_cli_json(cli))
        rc = mf_cli_print_json(mf_history_runs_json(&runs), err);
    else if (runs.count > 0)
        mf_history_table(&runs);
    else
        puts("no runs");
    mfdb_runs_free(&runs);
    return rc;
}

static int history_best(const struct mf_cli *cli, struct mf_error *err)
{
    struct mfdb_runs runs;
    int rc = 0;

    if (history_ask(cli, mfdb_best, &runs, err))
        return -1;
    if (mf_cli_json(cli))
        rc = mf_cli_print_json(mf_history_runs_json(&runs), err);
    else if (runs.count > 0)
        mf_history_table(&runs);
    if (rc == 0 && runs.count == 0) {
        mf_error_set(err, MF_NO, "no finished run that was asked for");
        rc = MF_NO;
    }
    mfdb_runs_free(&runs);
    return rc;
}

static int history_print_run(const struct mf_cli *cli,
    const struct mfdb_run *run, const struct mfdb_phases *phases,
    struct mf_error *err)
{
    json_t *json;

    if (!mf_cli_json(cli)) {
        if (mf_cli_has(cli, "plot"))
            mf_history_plot(phases);
        else
            mf_history_show(run, phases);
        return 0;
    }
    json = mf_history_run_json(run);
    if (!json ||
        json_object_set_new(json, "phases", mf_history_phases_json(phases))) {
        json_decref(json);
        return mf_error_set(err, MF_FAILED, "no memory");
    }
    return mf_cli_print_json(json_pack("{s:[o]}", "runs", json), err);
}

static int history_show(const struct mf_cli *cli, struct mf_error *err)
{
    struct mfdb_phases phases = {0};
    struct mfdb_run run;
    char text[MFDB_ERROR_TEXT];
    mfdb *db = NULL;
    int rc = -1;

    if (mf_cli_operands(cli) != 2)
        return mf_error_set(
            err, MF_INVALID, "show wants one RUN; history list shows them");
    if (mf_database_query(cli, &db, err))
        return -1;
    mf_database_warn(db, "history");
    if (!db)
        mf_error_set(err, MF_INVALID, "no run '%s': there is no history yet",
            mf_cli_operand(cli, 1));
    else if (mfdb_find(db, mf_cli_operand(cli, 1), &run, text))
        mf_error_set(err, MF_INVALID, "%s", text);
    else if (mfdb_phases_of(db, run.run_id, &phases, text))
        mf_error_set(err, MF_FAILED, "%s", text);
    else
        rc = history_print_run(cli, &run, &phases, err);
    mfdb_phases_free(&phases);
    mfdb_close(db);
    return rc;
}

int mf_history_open(const struct mf_cli *cli, mfdb **db, struct mf_error *err)
{
    if (mf_database_query(cli, db, err))
        return -1;
    mf_database_warn(*db, "history");
    return *db ? 0
               : mf_error_set(err, MF_INVALID,
                     "there is no history yet; moefold-run makes one");
}

static int history_run(struct mf_cli *cli, struct mf_error *err)
{
    static const struct {
        const char *name;
        int operands; /* with its name */
        int (*run)(const struct mf_cli *cli, struct mf_error *err);
    } verbs[] = {
        {"list", 1, history_list},
        {"show", 2, history_show},
        {"best", 1, history_best},
        {"compare", 3, mf_history_compare},
        {"regress", 1, mf_history_regress},
        {"report", 1, mf_history_report},
        {"export", 1, mf_history_export},
        {"import", 2, mf_history_import},
        {"prune", 1, mf_history_prune},
        {"check", 1, mf_history_check},
    };
    const char *name = mf_cli_operand(cli, 0);

    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].name, name) != 0)
            continue;
        if (mf_cli_operands(cli) > verbs[i].operands)
            return mf_error_set(err, MF_INVALID, "%s: '%s' is one too many",
                name, mf_cli_operand(cli, verbs[i].operands));
        return verbs[i].run(cli, err);
    }
    return mf_error_set(err, MF_INVALID,
        "'%s' is none of list, show, best, compare, regress, report, export, "
        "import, prune, check",
        name);
}

static const struct mf_option history_options[] = {
    {"db", "FILE", "the history ($MOEFOLD_DB, else the XDG data folder)"},
    {"model", "NAME", "runs of models whose name begins so, in any case"},
    {"cluster", "NAME", "the same for the cluster's name"},
    {"layout", "L", "runs of this layout"},
    {"world", "N", "runs of N ranks"},
    {"gpus", "N", "the same as --world"},
    {"user", "NAME", "runs of this user"},
    {"node", "NAME", "runs that had this node"},
    {"since", "TIME", "begun since: 2026-12-01, or 90d, 12h before now"},
    {"of-version", "V", "runs of this version of moefold"},
    {"limit", "N", "at most N runs (all)"},
    {"plot", NULL, "show: draw the phases"},
    {"threshold", "F", "regress: slower by more than this part (0.05)"},
    {"html", "FILE", "report: write one page to FILE"},
    {"csv", NULL, "export: runs as CSV instead of JSON"},
    {"samples", NULL, "export: with --csv, their samples instead"},
    {"older-than", "TIME", "prune: runs begun before; 90d, or a date"},
    {"keep-last", "N", "prune: but the newest N of each kind (1)"},
    {"dry-run", NULL, "prune: only show which"},
    {NULL, NULL, NULL},
};

static const struct mf_option *const history_tables[] = {history_options, NULL};

const struct mf_command mf_command_history = {
    .name = "history",
    .operands = "list | best | show RUN | compare A B | …",
    .summary = "Show past runs, predicted beside measured, and the fastest",
    .tables = history_tables,
    .least = 1,
    .most = 3,
    .run = history_run,
};
