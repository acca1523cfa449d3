/* SPDX-License-Identifier: BSD-3-Clause
 * moefold plan: a ranked list of layouts.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planner/cli/commands.h"
#include "planner/cli/fitted.h"
#include "planner/cli/inputs.h"
#include "planner/layout/number.h"
#include "planner/search.h"

#define GIB 1073741824.0
#define TOP_DEFAULT 10
#define TOP_MOST 10000

struct planning {
    struct mf_plan plan;
    struct mf_search search;
    struct mf_coefficients set;
    const char *output;
    int shown; /* per cent on the terminal */
};

/* ---- what is asked for ---- */

static int fix_read(const char *text, int64_t fix[7], struct mf_error *err)
{
    static const char *const names[] = {
        "tp", "cp", "dp", "pp", "etp", "ep", "edp"};
    const char *equal = strchr(text, '=');
    size_t length = equal ? (size_t)(equal - text) : 0;

    for (int i = 0; i < 7; i++)
        if (length == strlen(names[i]) && !strncmp(text, names[i], length))
            return mf_number_parse(
                equal + 1, names[i], 1, MF_WORLD_MAX, &fix[i], err);
    return mf_error_set(err, MF_INVALID,
        "--fix '%.32s' is not like tp=2, with tp, cp, dp, pp, etp, ep or edp",
        text);
}

static int search_read_scope(
    const struct mf_cli *cli, struct mf_search *search, struct mf_error *err)
{
    const char *text = mf_cli_value(cli, "scope");
    int found = text ? mf_scope_find(text) : MF_SCOPE_STEP;

    if (found < 0)
        return mf_error_set(
            err, MF_INVALID, "--scope '%.32s' is neither step nor moe", text);
    search->scope = (enum mf_scope)found;
    return 0;
}

static int search_read(
    const struct mf_cli *cli, struct mf_search *search, struct mf_error *err)
{
    const char *order = mf_cli_value(cli, "order"), *fix;
    int64_t top = TOP_DEFAULT;
    unsigned given;

    search->order = mf_order_default();
    search->coupled = mf_cli_has(cli, "coupled");
    mf_settings_init(&search->settings);
    search->settings.micro_batch = 0;
    search->settings.vpp = 0;
    search->settings.recompute = MF_RECOMPUTE_AUTO;
    search->settings.dispatcher = MF_DISPATCHER_AUTO;
    if (mf_inputs_settings(cli, &search->settings, err) ||
        search_read_scope(cli, search, err) ||
        mf_cli_integer(cli, "top", 1, TOP_MOST, &top, err) ||
        mf_inputs_world(cli, &search->world, err))
        return -1;
    if (order && mf_order_parse(order, &search->order, &given, err))
        return -1;
    for (int i = 0; (fix = mf_cli_value_at(cli, "fix", i)); i++)
        if (fix_read(fix, search->fix, err))
            return -1;
    search->top = (size_t)top;
    return 0;
}

/* Without a global batch, layouts of one layer are compared at equal work: as
 * many sequences as there are ranks, which every dp divides.
 */
static void search_fill_batch(struct mf_search *search)
{
    struct mf_settings *s = &search->settings;

    if (search->scope != MF_SCOPE_MOE)
        return;
    if (s->micro_batch == 0)
        s->micro_batch = 1;
    if (s->global_batch == 0)
        s->global_batch = search->world * s->micro_batch;
}

static int planning_read(
    const struct mf_cli *cli, struct planning *p, struct mf_error *err)
{
    struct mf_search *search = &p->search;

    p->output = mf_cli_value(cli, "output");
    if (search_read(cli, search, err))
        return -1;
    if (mf_inputs_model(cli, &p->plan.model, err))
        return -1;
    if (search->scope == MF_SCOPE_STEP && !search->settings.global_batch)
        return mf_error_set(err, MF_INVALID,
            "the global batch is not known; give --global-batch, in "
            "sequences an optimizer step");
    if (mf_inputs_cluster(cli, search->world, &p->plan.cluster, err))
        return -1;
    if (!search->world)
        search->world = mf_cluster_devices(&p->plan.cluster);
    if (search->world < 1)
        return mf_error_set(err, MF_NO, "cluster %s has no device that is up",
            p->plan.cluster.name);
    search_fill_batch(search);
    return mf_inputs_coefficients(cli, &p->plan.cluster, &p->set, err);
}

/* ---- searching ---- */

static void show_progress(void *arg, int64_t done, int64_t all)
{
    struct planning *p = arg;
    int percent = (int)(100 * done / all);

    if (percent == p->shown)
        return;
    p->shown = percent;
    fprintf(stderr, "\rsearching %3d %%", percent);
    fflush(stderr);
}

/* Append the best coupled layout, to compare with. That there is none is no
 * error.
 */
static int plan_add_coupled(struct planning *p, struct mf_error *err)
{
    struct mf_search search = p->search;
    struct mf_plan other = {0}, *plan = &p->plan;
    struct mf_plan_entry *entry;
    struct mf_error ignored = {0};
    int rc = 0;

    search.coupled = true;
    search.top = 1;
    other.model = plan->model; /* borrowed */
    other.cluster = plan->cluster;
    if (mf_search_run(&search, &p->set, &other, &ignored)) {
        if (ignored.status != MF_NO)
            rc = mf_error_set(err, ignored.status, "%s", ignored.text);
        free(other.entry);
        return rc;
    }
    entry = realloc(plan->entry, (plan->entries + 1) * sizeof *entry);
    if (!entry) {
        mf_cost_free(&other.entry[0].cost);
        rc = mf_error_set(err, MF_FAILED, "out of memory");
    } else {
        plan->entry = entry;
        plan->entry[plan->entries++] = other.entry[0];
        plan->elapsed_s += other.elapsed_s;
    }
    free(other.entry);
    return rc;
}

/* 0, MF_NO with ERR filled when nothing fits, or -1. */
static int planning_search(struct planning *p, struct mf_error *err)
{
    bool terminal = isatty(STDERR_FILENO);
    int rc;

    if (terminal) {
        p->shown = -1;
        p->search.progress = show_progress;
        p->search.progress_arg = p;
    }
    rc = mf_search_run(&p->search, &p->set, &p->plan, err);
    if (terminal)
        fprintf(stderr, "\r               \r");
    if (rc)
        return err->status == MF_NO ? MF_NO : -1;
    return p->search.coupled ? 0 : plan_add_coupled(p, err);
}

/* ---- the table ---- */

static void print_limit(const char *limit)
{
    putchar(' ');
    for (; limit && *limit; limit++)
        putchar(*limit == '_' ? ' ' : *limit);
    putchar('\n');
}

/* Seconds as people read them: s for steps, ms for layers. */
static void print_time(const struct planning *p, const struct mf_cost *cost)
{
    double unit = p->plan.scope == MF_SCOPE_MOE ? 1e3 : 1;

    printf(" %8.4g  %8.4g-%-8.4g", unit * cost->step_s, unit * cost->step_s_low,
        unit * cost->step_s_high);
}

static void print_row(const struct planning *p, size_t i)
{
    const struct mf_plan_entry *entry = &p->plan.entry[i];
    const struct mf_settings *s = &entry->settings;
    double best = p->plan.entry[0].cost.step_s;
    char text[MF_LAYOUT_TEXT];

    mf_layout_format(&entry->layout, text, sizeof text);
    printf("%4zu  %-36s %2" PRId64 " %3" PRId64 " %-9s %-9s", i + 1, text,
        s->micro_batch, s->vpp, mf_recompute_name(s->recompute),
        mf_dispatcher_name(s->dispatcher));
    print_time(p, &entry->cost);
    printf(" %5.1f %7.1f %+7.1f", 100 * entry->cost.mfu,
        entry->cost.peak_bytes / GIB, 100 * (entry->cost.step_s / best - 1));
    print_limit(entry->cost.limit);
}

static void print_rejected(const struct mf_plan *plan)
{
    if (plan->reasons)
        puts("\nnot ranked");
    for (int i = 0; i < plan->reasons; i++)
        printf("%8" PRId64 "  %s\n", plan->rejected[i].count,
            plan->rejected[i].text);
}

static void planning_print(const struct planning *p)
{
    const struct mf_plan *plan = &p->plan;
    bool moe = plan->scope == MF_SCOPE_MOE;

    printf("%s on %s, world %" PRId64 ", sequence %" PRId64
           ", global batch %" PRId64 ", coefficients %s\n",
        plan->model.name, plan->cluster.name, plan->world,
        p->search.settings.seq, p->search.settings.global_batch,
        plan->coefficients);
    if (moe)
        puts("one MoE layer: all micro batches, and the expert gradients");
    if (plan->entries)
        printf("\n%4s  %-36s %2s %3s %-9s %-9s %8s  %-17s %5s %7s %7s %s\n",
            "rank", "layout", "mb", "vpp", "recompute", "dispatch",
            moe ? "ms" : "step s", "  interval", "MFU %", "GiB", "diff %",
            "limited by");
    for (size_t i = 0; i < plan->entries; i++) {
        bool apart = !p->search.coupled && plan->entry[i].layout.coupled;

        if (apart)
            puts("      ---- best coupled layout, to compare with ----");
        print_row(p, i);
    }
    print_rejected(plan);
    printf("\nsearched %" PRId64 " layouts, priced %" PRId64
           " settings of them, left out %" PRId64
           " that could not win, in %.2f s\n",
        plan->enumerated, plan->priced, plan->bounded, plan->elapsed_s);
}

/* ---- the command ---- */

static int plan_run(struct mf_cli *cli, struct mf_error *err)
{
    struct planning p = {0};
    int rc = planning_read(cli, &p, err);

    if (!rc)
        rc = planning_search(&p, err);
    if (rc < 0)
        goto out;
    if (rc == 0 && p.output && mf_plan_write(&p.plan, p.output, err)) {
        rc = -1;
        goto out;
    }
    if (!mf_cli_json(cli)) {
        if (p.plan.enumerated)
            planning_print(&p);
    } else if (mf_cli_print_json(mf_plan_to_json(&p.plan), err)) {
        rc = -1;
    }
out:
    mf_plan_free(&p.plan);
    return rc;
}

static const struct mf_option plan_options[] = {
    {"order", "O", "which axis varies fastest (tp-cp-ep-dp-pp)"},
    {"coupled", NULL, "only coupled layouts: etp = tp and ep inside dp"},
    {"scope", "S", "step, or moe: what moefold-run runs (step)"},
    {"fix", "AXIS=N", "keep an axis at a size, such as tp=2; repeatable"},
    {"top", "K", "ranked layouts (10)"},
    {"output", "FILE", "write the plan, with its alternatives"},
    {NULL, NULL, NULL},
};

static const struct mf_option *const plan_tables[] = {mf_options_model,
    mf_options_cluster, mf_options_settings, plan_options, mf_options_db, NULL};

const struct mf_command mf_command_plan = {
    .name = "plan",
    .operands = "",
    .summary = "Search all layouts and rank those that fit",
    .tables = plan_tables,
    .run = plan_run,
};
