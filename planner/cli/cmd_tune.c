/* SPDX-License-Identifier: BSD-3-Clause
 * moefold tune: the plan's best layouts, each run briefly where this is.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/list.h"
#include "launcher/picks.h"
#include "launcher/start.h"
#include "planner/cli/commands.h"
#include "planner/cli/database.h"
#include "planner/layout/plan.h"

#define LAYOUTS 4
#define ITERATIONS 10

struct result {
    size_t pick;
    double layer_s, tokens_per_s; /* NAN: it did not end well */
    bool kept;                    /* of an earlier start of this job */
};

struct tune {
    const struct mf_cli *cli;
    const char *file;
    struct mf_plan plan;
    int64_t iterations;
    struct result *result;
    size_t results;
};

static const struct mf_plan_entry *entry_of(
    const struct tune *t, const struct result *r)
{
    return &t->plan.entry[r->pick - 1];
}

/* One job may tune several plans, whose layouts are alike. A sequence of -1
 * is not known.
 */
static bool same_work(
    const struct mfdb_run *run, const struct tune *t, const struct result *r)
{
    const struct mf_settings *s = &entry_of(t, r)->settings;

    return !strcmp(run->model, t->plan.model.name) &&
           run->ranks == t->plan.world &&
           (run->seq < 0 || run->seq == s->seq) &&
           (run->micro_batch < 0 || run->micro_batch == s->micro_batch);
}

/* A job that Slurm has put back runs nothing twice: what it has measured lies
 * in the history under its number.
 */
static int find_kept(
    const struct tune *t, struct result *r, struct mf_error *err)
{
    const char *job = getenv("SLURM_JOB_ID");
    char layout[MF_LAYOUT_TEXT], order[MF_LAYOUT_TEXT], text[MFDB_ERROR_TEXT];
    const struct mf_layout *l = &entry_of(t, r)->layout;
    struct mfdb_filter filter = {.model = t->plan.model.name, .layout = layout};
    struct mfdb_runs runs = {0};
    mfdb *db = NULL;

    if (!job || mf_database_query(t->cli, &db, err) || !db)
        return 0;
    mf_layout_format(l, layout, sizeof layout);
    mf_order_format(&l->order, order, sizeof order);
    if (mfdb_list(db, &filter, &runs, text) == 0)
        for (size_t i = 0; i < runs.count && !r->kept; i++) {
            const struct mfdb_run *run = &runs.run[i];

            if (strcmp(run->job_id, job) || strcmp(run->status, "done") ||
                strcmp(run->rank_order, order) || run->coupled != l->coupled ||
                !same_work(run, t, r) || !isfinite(run->layer_s))
                continue;
            r->kept = true;
            r->layer_s = run->layer_s;
            r->tokens_per_s = run->tokens_per_s;
        }
    mfdb_runs_free(&runs);
    mfdb_close(db);
    return 0;
}

static int arguments(const struct tune *t, size_t pick, struct mfl_list *args,
    struct mf_error *err)
{
    const char *db = mf_cli_value(t->cli, "db");

    if (mfl_list_add(args, "--json", err) < 0 ||
        mfl_list_add(args, "--pick", err) < 0 ||
        mfl_list_addf(args, err, "%zu", pick) < 0 ||
        mfl_list_add(args, "--iterations", err) < 0 ||
        mfl_list_addf(args, err, "%" PRId64, t->iterations) < 0 ||
        (db && (mfl_list_add(args, "--db", err) < 0 ||
                   mfl_list_add(args, db, err) < 0)))
        return -1;
    return mfl_list_add(args, "--", err) < 0 ||
                   mfl_list_add(args, t->file, err) < 0
               ? -1
               : 0;
}

static double number_of(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);

    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* One layout; that it fails is a result, that it cannot be started an error. */
static int measure(const struct tune *t, struct result *r, struct mf_error *err)
{
    struct mfl_list args = {0};
    struct mfl_start start = {.ranks = t->plan.world, .plan = &t->plan};
    char *output = NULL;
    json_t *json;
    int rc = arguments(t, r->pick, &args, err);

    if (rc == 0) {
        start.args = args.item;
        rc = mfl_start_run(&start, &output, err);
    }
    mfl_list_free(&args);
    if (rc == 0) {
        json = json_loads(output ? output : "", 0, NULL);
        r->layer_s = number_of(json, "layer_ms") / 1e3;
        r->tokens_per_s = number_of(json, "tokens_per_s");
        json_decref(json);
    }
    free(output);
    return rc < 0 ? -1 : 0;
}

static double predicted_s(const struct tune *t, const struct result *r)
{
    const struct mf_cost *cost = &entry_of(t, r)->cost;

    return cost->layer_forward_s + cost->layer_backward_s;
}

static void print_result(const struct tune *t, const struct result *r)
{
    char layout[MF_LAYOUT_TEXT];

    mf_layout_format(&entry_of(t, r)->layout, layout, sizeof layout);
    printf("%4zu  %-36s %10.3f ", r->pick, layout, 1e3 * predicted_s(t, r));
    if (isfinite(r->layer_s))
        printf("%10.3f %12.0f%s\n", 1e3 * r->layer_s, r->tokens_per_s,
            r->kept ? "  (before the requeue)" : "");
    else
        printf("%10s %12s\n", "failed", "-");
    fflush(stdout);
}

/* Most tokens a second: with more data parallelism a layer works on more
 * tokens. NULL: none ended well.
 */
static const struct result *winner(const struct tune *t)
{
    const struct result *best = NULL;

    for (size_t i = 0; i < t->results; i++)
        if (isfinite(t->result[i].tokens_per_s) &&
            (!best || t->result[i].tokens_per_s > best->tokens_per_s))
            best = &t->result[i];
    return best;
}

static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *tune_json(const struct tune *t)
{
    const struct result *best = winner(t);
    json_t *list = json_array();
    char layout[MF_LAYOUT_TEXT];

    for (size_t i = 0; i < t->results; i++) {
        const struct result *r = &t->result[i];

        mf_layout_format(&entry_of(t, r)->layout, layout, sizeof layout);
        json_array_append_new(list,
            json_pack("{s:I, s:s, s:b, s:o, s:o, s:o, s:s, s:b}", "pick",
                (json_int_t)r->pick, "layout", layout, "coupled",
                entry_of(t, r)->layout.coupled, "predicted_ms",
                real(1e3 * predicted_s(t, r)), "layer_ms",
                real(1e3 * r->layer_s), "tokens_per_s", real(r->tokens_per_s),
                "status", isfinite(r->layer_s) ? "done" : "failed",
                "measured_before", r->kept));
    }
    if (best)
        mf_layout_format(&entry_of(t, best)->layout, layout, sizeof layout);
    return json_pack(
        "{s:o, s:s?}", "results", list, "winner", best ? layout : NULL);
}

/* A plan with the winner alone in it. */
static int write_winner(
    const struct tune *t, const struct result *best, struct mf_error *err)
{
    const char *output = mf_cli_value(t->cli, "output");
    struct mf_plan one = t->plan;

    if (!output)
        return 0;
    one.entry = &t->plan.entry[best->pick - 1];
    one.entries = 1;
    return mf_plan_write(&one, output, err);
}

static int tune_all(struct tune *t, struct mf_error *err)
{
    const bool json = mf_cli_json(t->cli);
    const struct result *best;

    if (!json)
        printf("%4s  %-36s %10s %10s %12s\n", "pick", "layout", "predicted ms",
            "measured", "tokens/s");
    for (size_t i = 0; i < t->results; i++) {
        struct result *r = &t->result[i];

        if (find_kept(t, r, err) || (!r->kept && measure(t, r, err)))
            return -1;
        if (!json)
            print_result(t, r);
    }
    best = winner(t);
    if (!best)
        return mf_error_set(err, MF_FAILED, "no layout ended well");
    /* Before --json prints: a document comes with 0 alone. */
    if (write_winner(t, best, err))
        return -1;
    if (json)
        return mf_cli_print_json(tune_json(t), err);
    printf("\nmost tokens a second: layout %zu\n", best->pick);
    return 0;
}

/* The first K of the plan, or those of --picks. */
static int choose(struct tune *t, struct mf_error *err)
{
    const char *text = mf_cli_value(t->cli, "picks");
    int64_t top =
        t->plan.entries < LAYOUTS ? (int64_t)t->plan.entries : LAYOUTS;
    struct mfl_picks picks;
    char first[32];

    if (mf_cli_integer(t->cli, "top", 1, (int64_t)t->plan.entries, &top, err))
        return -1;
    snprintf(first, sizeof first, "1-%" PRId64, top);
    if (mfl_picks_parse(text ? text : first, &t->plan, &picks, err) < 0)
        return -1;
    t->result = calloc(picks.count + 1, sizeof *t->result);
    for (size_t i = 0; t->result && i < picks.count; i++)
        t->result[t->results++] = (struct result){
            .pick = picks.pick[i], .layer_s = NAN, .tokens_per_s = NAN};
    mfl_picks_free(&picks);
    return t->result ? 0 : mf_error_set(err, MF_FAILED, "no memory");
}

static int tune_run(struct mf_cli *cli, struct mf_error *err)
{
    struct tune t = {
        .cli = cli, .file = mf_cli_operand(cli, 0), .iterations = ITERATIONS};
    int rc = -1;

    if (mf_cli_integer(cli, "iterations", 1, 1000000, &t.iterations, err) ||
        mf_plan_read(t.file, &t.plan, err) < 0)
        return -1;
    if (choose(&t, err) == 0)
        rc = tune_all(&t, err);
    free(t.result);
    mf_plan_free(&t.plan);
    return rc;
}

static const struct mf_option tune_options[] = {
    {"top", "K", "the plan's best K layouts (4)"},
    {"picks", "LIST", "these instead, such as 1-3,coupled"},
    {"iterations", "N", "timed iterations of each (10)"},
    {"output", "FILE", "write the winner as a plan"},
    {"db", "FILE", "the history ($MOEFOLD_DB, else the XDG data folder)"},
    {NULL, NULL, NULL},
};

static const struct mf_option *const tune_tables[] = {tune_options, NULL};

const struct mf_command mf_command_tune = {
    .name = "tune",
    .operands = "PLAN",
    .summary = "Run a plan's best layouts briefly and pick the fastest",
    .tables = tune_tables,
    .least = 1,
    .most = 1,
    .run = tune_run,
};
