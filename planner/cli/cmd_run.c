/* SPDX-License-Identifier: BSD-3-Clause
 * moefold run and moefold verify: moefold-run on the ranks of a plan.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/list.h"
#include "launcher/start.h"
#include "planner/cli/commands.h"
#include "planner/layout/plan.h"

/* Options that moefold-run takes under the same name. */
static const struct mf_option pick_options[] = {
    {"pick", "K", "the plan's Kth layout (1)"},
    {NULL, NULL, NULL},
};

static const struct mf_option shared_options[] = {
    {"seed", "N", "of the random weights and tokens"},
    {"experts", "NAME", "the experts' product: blas or exact"},
    {"dispatcher", "NAME", "alltoall, allgather or dedup (the plan's)"},
    {"backend", "NAME", "what computes: cpu, cuda, or auto"},
    {"comm", "NAME", "what communicates: mpi, nccl, or auto"},
    {"quiet", NULL, "print nothing when all is well"},
    {NULL, NULL, NULL},
};

static const struct mf_option run_options[] = {
    {"iterations", "N", "timed ones"},
    {"warmup", "N", "iterations before the timed ones"},
    {"db", "FILE", "the history ($MOEFOLD_DB, else the XDG data folder)"},
    {"no-history", NULL, "record nothing"},
    {"load", "FILE", "weights and tokens from FILE (safetensors)"},
    {"dump", "FILE", "output and gradients of the last iteration to FILE"},
    {"trace", "FILE", "a timeline for chrome://tracing or Perfetto"},
    {"run-dir", "DIR", "where the spool goes when no history can be kept"},
    {NULL, NULL, NULL},
};

static const struct mf_option gate_passed[] = {
    {"seed", "N", "of the random weights and tokens"},
    {"quiet", NULL, "print nothing when all is well"},
    {NULL, NULL, NULL},
};

static const struct mf_option fault_options[] = {
    {"fault", "NAME", "seed a fault, which must be found (moefold-run(1))"},
    {NULL, NULL, NULL},
};

static const struct mf_option full_options[] = {
    {"full", NULL, "the plan's whole shape, not a smaller one"},
    {NULL, NULL, NULL},
};

static const struct mf_option verify_options[] = {
    {"all", NULL, "instead of PLAN: every layout of one world"},
    {"gate", NULL, "route before and after the gather, and compare"},
    {"world", "N", "with --all or --gate: how many ranks"},
    {NULL, NULL, NULL},
};

/* Hand on what was given of TABLES. */
static int pass_options(const struct mf_cli *cli,
    const struct mf_option *const *tables, struct mfl_list *args,
    struct mf_error *err)
{
    for (; *tables; tables++) {
        for (const struct mf_option *o = *tables; o->name; o++) {
            if (!mf_cli_has(cli, o->name))
                continue;
            if (mfl_list_addf(args, err, "--%s", o->name) < 0)
                return -1;
            if (o->value &&
                mfl_list_add(args, mf_cli_value(cli, o->name), err) < 0)
                return -1;
        }
    }
    return mf_cli_json(cli) ? mfl_list_add(args, "--json", err) : 0;
}

/* moefold-run with ARGS on RANKS ranks; its status. A JSON document is taken
 * in and printed here: whole or not at all, and a full disk is seen, which
 * mpirun does not tell.
 */
static int start(const struct mf_cli *cli, struct mfl_list *args, int64_t ranks,
    const struct mf_plan *plan, struct mf_error *err)
{
    struct mfl_start run = {.ranks = ranks, .plan = plan, .args = args->item};
    char *output = NULL;
    int rc = mfl_start_run(&run, mf_cli_json(cli) ? &output : NULL, err);

    if (output && (rc == MF_OK || rc == MF_NO))
        fputs(output, stdout);
    free(output);
    return rc;
}

/* MODE: NULL, or moefold-run's flag for what else it does with a plan. */
static int run_plan(const struct mf_cli *cli, const char *mode,
    const struct mf_option *const *tables, struct mf_error *err)
{
    const char *file = mf_cli_operand(cli, 0);
    struct mfl_list args = {0};
    struct mf_plan plan;
    int64_t pick = 1;
    int rc = -1;

    if (mf_plan_read(file, &plan, err) < 0)
        return -1;
    /* Checked here, so that a slip costs no start of all ranks. */
    if (mf_cli_integer(cli, "pick", 1, (int64_t)plan.entries, &pick, err) < 0)
        goto out;
    if ((mode && mfl_list_add(&args, mode, err) < 0) ||
        pass_options(cli, tables, &args, err) < 0 ||
        mfl_list_add(&args, "--", err) < 0 ||
        mfl_list_add(&args, file, err) < 0)
        goto out;
    rc = start(cli, &args, plan.world, &plan, err);
out:
    mfl_list_free(&args);
    mf_plan_free(&plan);
    return rc;
}

static const struct mf_option *const run_tables[] = {
    pick_options, shared_options, run_options, NULL};

static int run_run(struct mf_cli *cli, struct mf_error *err)
{
    return run_plan(cli, NULL, run_tables, err);
}

static int verify_all(const struct mf_cli *cli, struct mf_error *err)
{
    static const struct mf_option *const passed[] = {
        shared_options, fault_options, NULL};
    struct mfl_list args = {0};
    int64_t world = 0;
    int rc = -1;

    if (mf_cli_operands(cli) > 0 || mf_cli_has(cli, "pick") ||
        mf_cli_has(cli, "full"))
        return mf_error_set(err, MF_INVALID,
            "--all walks all layouts of a world; give no PLAN, --pick or "
            "--full");
    if (mf_cli_integer(cli, "world", 1, MF_WORLD_MAX, &world, err) < 0)
        return -1;
    if (world == 0)
        return mf_error_set(
            err, MF_INVALID, "--all needs --world N, the number of ranks");
    if (mfl_list_add(&args, "--verify-all", err) == 0 &&
        pass_options(cli, passed, &args, err) == 0)
        rc = start(cli, &args, world, NULL, err);
    mfl_list_free(&args);
    return rc;
}

/* Of a plan, or of the sequence split over 4 ranks and EP 4. */
static int verify_gate(const struct mf_cli *cli, struct mf_error *err)
{
    static const struct mf_option *const passed[] = {
        pick_options, gate_passed, full_options, NULL};
    struct mfl_list args = {0};
    int64_t world = 4;
    int rc = -1;

    if (mf_cli_operands(cli) > 0)
        return run_plan(cli, "--gate", passed, err);
    if (mf_cli_integer(cli, "world", 1, MF_WORLD_MAX, &world, err) < 0)
        return -1;
    if (mfl_list_add(&args, "--gate", err) == 0 &&
        pass_options(cli, passed, &args, err) == 0)
        rc = start(cli, &args, world, NULL, err);
    mfl_list_free(&args);
    return rc;
}

static int verify_run(struct mf_cli *cli, struct mf_error *err)
{
    static const struct mf_option *const passed[] = {
        pick_options, shared_options, fault_options, full_options, NULL};

    if (mf_cli_has(cli, "all"))
        return verify_all(cli, err);
    if (mf_cli_has(cli, "gate"))
        return verify_gate(cli, err);
    if (mf_cli_has(cli, "world"))
        return mf_error_set(err, MF_INVALID,
            "--world goes with --all or --gate; a plan has its own world");
    if (mf_cli_operands(cli) == 0)
        return mf_error_set(
            err, MF_INVALID, "give a PLAN, or --all and --world N, or --gate");
    return run_plan(cli, "--verify", passed, err);
}

static const struct mf_option *const verify_tables[] = {pick_options,
    shared_options, fault_options, full_options, verify_options, NULL};

const struct mf_command mf_command_run = {
    .name = "run",
    .operands = "PLAN",
    .summary = "Run a plan's MoE layer on its ranks, time it, remember it",
    .tables = run_tables,
    .least = 1,
    .most = 1,
    .run = run_run,
};

const struct mf_command mf_command_verify = {
    .name = "verify",
    .operands = "[PLAN]",
    .summary = "Hold a layout's results against independent references",
    .tables = verify_tables,
    .least = 0,
    .most = 1,
    .run = verify_run,
};
