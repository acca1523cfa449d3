/* SPDX-License-Identifier: BSD-3-Clause
 * moefold launch: a batch script, a submitted job, or a run right here.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launcher/file.h"
#include "launcher/list.h"
#include "launcher/script.h"
#include "launcher/start.h"
#include "launcher/submit.h"
#include "planner/cli/commands.h"

#define TIMEOUT_S 5.0

/* {job_id, script, hostfile, placement, text}: the host file is made in the
 * job, from the nodes that it got, so there is none to name yet.
 */
static json_t *launch_json(const struct mfl_job *job, const char *file,
    const char *text, const struct mfl_submission *submission)
{
    const bool asked = submission && submission->start_unix_s;

    return json_pack("{s:o, s:o, s:s?, s:s?, s:n, s:s, s:I, s:I, s:s}",
        "job_id",
        submission && !asked ? json_integer(submission->job_id) : json_null(),
        "start_unix_s",
        asked ? json_integer(submission->start_unix_s) : json_null(),
        "node_list", submission ? submission->node_list : NULL, "script", file,
        "hostfile", "placement", job->needs_hostfile ? "arbitrary" : "block",
        "nodes", (json_int_t)job->nodes, "ranks", (json_int_t)job->ranks,
        "text", text);
}

static int launch_submit(const struct mf_cli *cli, const struct mfl_job *job,
    const char *text, struct mfl_submission *submission, struct mf_error *err)
{
    double timeout_s = TIMEOUT_S;

    if (mf_cli_decimal(cli, "slurm-timeout", 0.1, 3600, &timeout_s, err) < 0)
        return -1;
    return mfl_submit(
        job, text, mf_cli_has(cli, "dry-run"), timeout_s, submission, err);
}

static void print_start(const struct mfl_submission *submission)
{
    const time_t start = (time_t)submission->start_unix_s;
    char text[32];
    struct tm local;

    if (!localtime_r(&start, &local) ||
        !strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &local))
        snprintf(text, sizeof text, "%" PRId64, submission->start_unix_s);
    printf("It would start at %s%s%s\n", text,
        submission->node_list ? " on " : "",
        submission->node_list ? submission->node_list : "");
}

static int launch_script(
    const struct mf_cli *cli, const struct mfl_job *job, struct mf_error *err)
{
    const char *file = mf_cli_value(cli, "output");
    const bool ask = mf_cli_has(cli, "dry-run");
    const bool submit = ask || mf_cli_has(cli, "submit");
    struct mfl_submission submission = {0};
    char *text = mfl_script_text(job, err);
    int rc = -1;

    if (!text)
        return -1;
    if (file &&
        mfl_file_write(file, text, 0777, mf_cli_has(cli, "force"), err) < 0)
        goto out;
    if (submit && launch_submit(cli, job, text, &submission, err) < 0)
        goto out;
    rc = 0;
    if (mf_cli_json(cli))
        rc = mf_cli_print_json(
            launch_json(job, file, text, submit ? &submission : NULL), err);
    else if (ask)
        print_start(&submission);
    else if (submit)
        printf("Submitted batch job %" PRId64 "\n", submission.job_id);
    else if (!file)
        fputs(text, stdout);
    if (submission.words)
        fprintf(stderr, "moefold: launch: Slurm says: %s\n", submission.words);
out:
    mfl_submission_free(&submission);
    free(text);
    return rc;
}

static void print_pick(const struct mf_plan *plan, size_t pick)
{
    const struct mf_plan_entry *entry = &plan->entry[pick - 1];
    double predicted_s =
        entry->cost.layer_forward_s + entry->cost.layer_backward_s;
    char layout[MF_LAYOUT_TEXT];

    mf_layout_format(&entry->layout, layout, sizeof layout);
    printf("layout %zu of %zu: %s%s", pick, plan->entries, layout,
        entry->layout.coupled ? " (coupled)" : "");
    if (isfinite(predicted_s))
        printf(", predicted %.4g ms a layer", 1e3 * predicted_s);
    putchar('\n');
}

static int local_arguments(const struct mf_cli *cli, const struct mfl_job *job,
    size_t pick, struct mfl_list *args, struct mf_error *err)
{
    if (mfl_list_add(args, job->plan_file, err) < 0 ||
        mfl_list_add(args, "--pick", err) < 0 ||
        mfl_list_addf(args, err, "%zu", pick) < 0 ||
        mfl_list_add(args, "--iterations", err) < 0 ||
        mfl_list_addf(args, err, "%" PRId64, job->iterations) < 0)
        return -1;
    if (job->db && (mfl_list_add(args, "--db", err) < 0 ||
                       mfl_list_add(args, job->db, err) < 0))
        return -1;
    return mf_cli_json(cli) ? mfl_list_add(args, "--json", err) : 0;
}

/* One pick; with --json its document is added to RUNS. The run's status. */
static int local_pick(const struct mf_cli *cli, const struct mfl_job *job,
    size_t pick, json_t *runs, struct mf_error *err)
{
    struct mfl_start start = {.ranks = job->ranks, .here = true};
    struct mfl_list args = {0};
    bool json = mf_cli_json(cli);
    char *output = NULL;
    json_t *document;
    int rc = -1;

    if (local_arguments(cli, job, pick, &args, err) < 0)
        goto out;
    if (!json)
        print_pick(job->plan, pick);
    start.args = args.item;
    rc = mfl_start_run(&start, json ? &output : NULL, err);
    if (!json || (rc != MF_OK && rc != MF_NO))
        goto out;
    document = json_loads(output ? output : "", 0, NULL);
    if (json_array_append_new(runs, document) < 0)
        rc = mf_error_set(
            err, MF_FAILED, "moefold-run's answer is not one JSON document");
out:
    free(output);
    mfl_list_free(&args);
    return rc;
}

/* The picks one after another, up to the first that does not end with 0. */
static int launch_local(
    const struct mf_cli *cli, const struct mfl_job *job, struct mf_error *err)
{
    char *runner = mfl_start_runner(err);
    json_t *runs, *all;
    int rc = 0;

    /* Nothing is printed about layouts that cannot be run. */
    if (!runner)
        return -1;
    free(runner);
    if (mfl_start_check_here(job->ranks, err) < 0)
        return -1;
    runs = json_array();
    for (size_t i = 0; rc == 0 && i < job->picks.count; i++)
        rc = local_pick(cli, job, job->picks.pick[i], runs, err);
    if (mf_cli_json(cli) && (rc == MF_OK || rc == MF_NO)) {
        all = json_pack("{s:n, s:n, s:n, s:O}", "job_id", "script", "hostfile",
            "runs", runs);
        if (mf_cli_print_json(all, err) < 0)
            rc = -1;
    }
    json_decref(runs);
    return rc;
}

static int check_usage(const struct mf_cli *cli, struct mf_error *err)
{
    bool local = mf_cli_has(cli, "local");

    if (mf_cli_has(cli, "pick") + mf_cli_has(cli, "picks") +
            mf_cli_has(cli, "all") >
        1)
        return mf_error_set(
            err, MF_INVALID, "give one of --pick, --picks and --all");
    if (local && (mf_cli_has(cli, "submit") || mf_cli_has(cli, "output") ||
                     mf_cli_has(cli, "dry-run")))
        return mf_error_set(err, MF_INVALID,
            "--local runs here without a script; leave out --submit and "
            "--output");
    return 0;
}

/* What may be given several times. */
struct lists {
    struct mfl_list modules, extra;
};

static int read_list(const struct mf_cli *cli, const char *name,
    struct mfl_list *list, struct mf_error *err)
{
    const char *text;

    for (int i = 0; (text = mf_cli_value_at(cli, name, i)) != NULL; i++)
        if (mfl_list_add(list, text, err) < 0)
            return -1;
    return 0;
}

static int read_wish(const struct mf_cli *cli, struct lists *lists,
    struct mfl_wish *wish, struct mf_error *err)
{
    const char *pick = mf_cli_value(cli, "pick");
    int64_t one;

    if (mf_cli_integer(cli, "pick", 1, INT64_MAX, &one, err) < 0 ||
        read_list(cli, "module", &lists->modules, err) < 0 ||
        read_list(cli, "sbatch", &lists->extra, err) < 0)
        return -1;
    *wish = (struct mfl_wish){.plan_file = mf_cli_operand(cli, 0),
        .picks = pick ? pick : mf_cli_value(cli, "picks"),
        .name = mf_cli_value(cli, "job-name"),
        .partition = mf_cli_value(cli, "partition"),
        .account = mf_cli_value(cli, "account"),
        .qos = mf_cli_value(cli, "qos"),
        .time = mf_cli_value(cli, "time"),
        .log = mf_cli_value(cli, "log"),
        .container = mf_cli_value(cli, "container-image"),
        .slurm_version = mf_cli_value(cli, "slurm-version"),
        .modules = lists->modules.item,
        .extra = lists->extra.item,
        .requeue = mf_cli_has(cli, "requeue"),
        .db = mf_cli_value(cli, "db"),
        .command_line = mf_cli_line(cli)};
    if (mf_cli_has(cli, "all"))
        wish->picks = "all";
    if (mf_cli_integer(cli, "iterations", 1, 1000000, &wish->iterations, err) <
            0 ||
        mf_cli_integer(cli, "after", 1, UINT32_MAX, &wish->after, err) < 0 ||
        mf_cli_integer(cli, "switches", 1, 1 << 20, &wish->switches, err) < 0 ||
        mf_cli_integer(cli, "segment", 1, UINT16_MAX - 2, &wish->segment, err) <
            0)
        return -1;
    return mf_cli_integer(
        cli, "cpus-per-task", 1, 4096, &wish->cpus_per_task, err);
}

static int launch_run(struct mf_cli *cli, struct mf_error *err)
{
    struct lists lists = {0};
    struct mfl_wish wish;
    struct mfl_job job;
    struct mf_plan plan;
    int rc = -1;

    if (check_usage(cli, err) < 0 || read_wish(cli, &lists, &wish, err) < 0 ||
        mf_plan_read(wish.plan_file, &plan, err) < 0)
        goto out;
    if (mfl_job_make(&plan, &wish, &job, err) == 0) {
        rc = mf_cli_has(cli, "local") ? launch_local(cli, &job, err)
                                      : launch_script(cli, &job, err);
        mfl_job_free(&job);
    }
    mf_plan_free(&plan);
out:
    mfl_list_free(&lists.modules);
    mfl_list_free(&lists.extra);
    return rc;
}

static const struct mf_option launch_options[] = {
    {"pick", "K", "the plan's Kth layout (1)"},
    {"picks", "LIST", "several, one after another, such as 1-3,coupled"},
    {"all", NULL, "all of the plan's layouts"},
    {"local", NULL, "run here, by mpirun, instead of writing a script"},
    {"submit", NULL, "hand the job to Slurm"},
    {"output", "FILE", "write the script to FILE instead of printing it"},
    {"force", NULL, "replace FILE when it exists"},
    {"iterations", "N", "timed iterations of each layout (20)"},
    {"db", "FILE", "the history ($MOEFOLD_DB, else the XDG data folder)"},
    {"job-name", "NAME", "of the Slurm job (the model's name)"},
    {"partition", "NAME", "Slurm partition"},
    {"account", "NAME", "Slurm account"},
    {"qos", "NAME", "Slurm quality of service"},
    {"time", "T", "limit: minutes or [D-]HH:MM:SS (from the prediction)"},
    {"cpus-per-task", "N", "cores of a rank"},
    {"log", "FILE", "of the job, with sbatch's patterns (%x_%j.out)"},
    {"after", "JOBID", "start when that job has ended well"},
    {"switches", "N", "on nodes under at most N switches"},
    {"segment", "K", "in segments of K nodes of a block (Slurm 23.11)"},
    {"requeue", NULL, "stop in time, go on with what is left"},
    {"container-image", "I", "run in this image (pyxis)"},
    {"module", "NAME", "load it first; repeatable"},
    {"sbatch", "OPTION",
        "a further #SBATCH line, --constraint=hbm; repeatable"},
    {"slurm-version", "V", "write for it (that of libslurm here)"},
    {"dry-run", NULL, "ask Slurm when and where it would start"},
    {"slurm-timeout", "S", "seconds to wait for Slurm (5)"},
    {NULL, NULL, NULL},
};

static const struct mf_option *const launch_tables[] = {launch_options, NULL};

const struct mf_command mf_command_launch = {
    .name = "launch",
    .operands = "PLAN",
    .summary = "Write a plan's batch script, submit it, or run it here",
    .tables = launch_tables,
    .least = 1,
    .most = 1,
    .run = launch_run,
};
