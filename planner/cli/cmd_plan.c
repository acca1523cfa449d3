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
#include "planner/cli/rejects.h"
#include "planner/cli/searching.h"
#include "planner/search.h"

#define GIB 1073741824.0
#define TOP_DEFAULT 10
#define TOP_MOST 10000

struct planning {
    struct mf_plan plan;
    struct mf_search search;
    struct mf_coefficients set;
    const char *output;
    const char *reason; /* of the rejected layouts to list, or NULL */
    bool cost, pareto;
    struct mf_front one, front; /* of a world, of all; with --pareto */
    struct mf_rejects rejects;
    int64_t worlds; /* that were searched */
    int shown;      /* per cent on the terminal */
};

/* ---- what is asked for ---- */

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

static int objective_read(
    const struct mf_cli *cli, struct planning *p, struct mf_error *err)
{
    const char *text = mf_cli_value(cli, "objective");

    p->cost = text && !strcmp(text, "cost");
    if (text && !p->cost && strcmp(text, "time"))
        return mf_error_set(err, MF_INVALID,
            "--objective '%.32s' is neither time nor cost", text);
    if (p->search.scope == MF_SCOPE_MOE && (p->cost || p->pareto))
        return mf_error_set(err, MF_INVALID,
            "--objective cost and --pareto compare worlds by whole steps; "
            "leave out --scope moe");
    return 0;
}

/* --layout: all sizes are fixed; the world comes from it when it says it. */
static int layout_read(const struct mf_cli *cli, struct mf_layout *layout,
    struct mf_search *search, struct mf_error *err)
{
    unsigned given;

    *layout = (struct mf_layout){0};
    if (!mf_cli_value(cli, "layout"))
        return 0;
    if (mf_inputs_layout(cli, layout, &given, err))
        return -1;
    return search->world
               ? 0
               : mf_inputs_layout_world(cli, layout, &search->world, err);
}

static int layout_fix(
    struct mf_layout *layout, struct mf_search *search, struct mf_error *err)
{
    if (!layout->tp)
        return 0;
    if (mf_layout_resolve(layout, search->world, ~0u, err))
        return -1;
    search->fix[MF_SIZE_TP] = layout->tp;
    search->fix[MF_SIZE_CP] = layout->cp;
    search->fix[MF_SIZE_DP] = layout->dp;
    search->fix[MF_SIZE_PP] = layout->pp;
    search->fix[MF_SIZE_ETP] = layout->etp;
    search->fix[MF_SIZE_EP] = layout->ep;
    search->fix[MF_SIZE_EDP] = layout->edp;
    return 0;
}

static int planning_read(
    const struct mf_cli *cli, struct planning *p, struct mf_error *err)
{
    struct mf_layout layout;
    struct mf_search *search = &p->search;
    int64_t top = TOP_DEFAULT;

    p->output = mf_cli_value(cli, "output");
    p->reason = mf_cli_value(cli, "rejected");
    p->pareto = mf_cli_has(cli, "pareto");
    if (mf_search_read(cli, search, err) ||
        mf_inputs_world(cli, &search->world, err) ||
        layout_read(cli, &layout, search, err) ||
        mf_cli_integer(cli, "top", 1, TOP_MOST, &top, err) ||
        objective_read(cli, p, err))
        return -1;
    search->top = (size_t)top;
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
    if (layout_fix(&layout, search, err))
        return -1;
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

/* Move the layouts of FROM to P, whose own are dropped; model and cluster stay
 * where they are.
 */
static void plan_take(struct planning *p, struct mf_plan *from)
{
    struct mf_plan own = p->plan;

    p->plan.entry = from->entry;
    p->plan.entries = from->entries;
    p->plan.world = from->world;
    p->plan.enumerated = from->enumerated;
    p->plan.priced = from->priced;
    p->plan.bounded = from->bounded;
    p->plan.elapsed_s += from->elapsed_s;
    memcpy(p->plan.rejected, from->rejected, sizeof from->rejected);
    p->plan.reasons = from->reasons;
    from->entry = own.entry;
    from->entries = own.entries;
}

static void entries_free(struct mf_plan *plan)
{
    for (size_t i = 0; i < plan->entries; i++)
        mf_cost_free(&plan->entry[i].cost);
    free(plan->entry);
    plan->entry = NULL;
    plan->entries = 0;
}

static double plan_gpu_s(const struct mf_plan *plan)
{
    if (!plan->entries)
        return INFINITY;
    return (double)plan->world * plan->entry[0].cost.step_s;
}

/* Points of one world beside those of others, of which each may have fewer
 * GPUs.
 */
static int front_take(
    struct planning *p, struct mf_front *from, struct mf_error *err)
{
    struct mf_front *all = &p->front;
    size_t room = all->points + from->points;
    struct mf_point *more;

    if (!from->points)
        return 0;
    more = realloc(all->point, room * sizeof *more);
    if (!more)
        return mf_error_set(err, MF_FAILED, "out of memory");
    memcpy(more + all->points, from->point, from->points * sizeof *more);
    all->point = more;
    all->points = all->room = room;
    from->points = 0;
    return 0;
}

/* Half the world, a quarter and so on: what they add to the front, and, when
 * GPU time is to be saved, the one that needs least of it.
 */
static int planning_smaller(struct planning *p, struct mf_error *err)
{
    struct mf_search search = p->search;
    int rc = 0;

    search.told = NULL;
    while (!rc && search.world % 2 == 0) {
        struct mf_plan other = {
            .model = p->plan.model, .cluster = p->plan.cluster};
        struct mf_error none = {0};

        search.world /= 2;
        p->worlds++;
        if (mf_search_run(&search, &p->set, &other, &none) &&
            none.status != MF_NO)
            rc = mf_error_set(err, none.status, "%s", none.text);
        if (!rc && p->pareto)
            rc = front_take(p, &p->one, err);
        if (!rc && p->cost && plan_gpu_s(&other) < plan_gpu_s(&p->plan)) {
            plan_take(p, &other);
            p->search.world = search.world;
        } else {
            p->plan.elapsed_s += other.elapsed_s;
        }
        entries_free(&other);
    }
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
    if (p->pareto)
        p->search.front = &p->one;
    if (p->reason) {
        p->rejects.wanted = p->reason;
        p->search.told = mf_rejects_add;
        p->search.told_arg = &p->rejects;
    }
    p->worlds = 1;
    rc = mf_search_run(&p->search, &p->set, &p->plan, err);
    if (rc && err->status != MF_NO)
        return -1;
    if (p->pareto && front_take(p, &p->one, err))
        return -1;
    if ((p->cost || p->pareto) && planning_smaller(p, err))
        rc = -1;
    if (terminal)
        fprintf(stderr, "\r               \r");
    p->search.front = NULL;
    p->search.told = NULL;
    if (p->rejects.failed)
        return mf_error_set(err, MF_FAILED, "out of memory");
    if (rc < 0 && (err->status != MF_NO || p->plan.entries == 0))
        return err->status == MF_NO ? MF_NO : -1;
    *err = (struct mf_error){0};
    return p->search.coupled ? 0 : plan_add_coupled(p, err);
}

/* ---- output ---- */

/* Seconds as people read them: s for steps, ms for layers. */
static void print_row(const struct planning *p, size_t i)
{
    const struct mf_plan_entry *entry = &p->plan.entry[i];
    const struct mf_cost *cost = &entry->cost;
    double best = p->plan.entry[0].cost.step_s, percent;
    double unit = p->plan.scope == MF_SCOPE_MOE ? 1e3 : 1;
    char text[MF_LAYOUT_TEXT], limit[24];

    mf_layout_format(&entry->layout, text, sizeof text);
    snprintf(limit, sizeof limit, "%s", cost->limit ? cost->limit : "-");
    for (char *c = limit; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    percent = fmin(100 * (cost->step_s / best - 1), 9999);
    printf("%4zu  %-34s %8.4g %+7.1f %5.1f %5.1f %.11s\n", i + 1, text,
        unit * cost->step_s, percent, 100 * cost->mfu, cost->peak_bytes / GIB,
        limit);
}

/* The settings under a row. */
static void print_settings(const struct planning *p, size_t i)
{
    const struct mf_plan_entry *entry = &p->plan.entry[i];
    const struct mf_settings *s = &entry->settings;
    double unit = p->plan.scope == MF_SCOPE_MOE ? 1e3 : 1;
    struct mf_order order = mf_order_default();
    char text[MF_LAYOUT_TEXT], again[MF_RECOMPUTE_TEXT];

    mf_recompute_format(s, again);
    printf(
        "      micro batch %" PRId64 ", vpp %" PRId64, s->micro_batch, s->vpp);
    if (s->first_layers > 0)
        printf(", split %" PRId64 ",%" PRId64, s->first_layers, s->last_layers);
    printf(", recompute %.20s, %s, %.4g-%.4g\n", again,
        mf_dispatcher_name(s->dispatcher), unit * entry->cost.step_s_low,
        unit * entry->cost.step_s_high);
    mf_order_format(&entry->layout.order, text, sizeof text);
    if (memcmp(&order, &entry->layout.order, sizeof order))
        printf("      order %s\n", text);
}

static void print_rejected(const struct mf_plan *plan)
{
    if (plan->reasons)
        puts("\nnot ranked");
    for (int i = 0; i < plan->reasons; i++)
        printf("%8" PRId64 "  %s\n", plan->rejected[i].count,
            plan->rejected[i].text);
}

/* No other point has as few GPUs, as little time and as little memory. */
static bool point_is_best(const struct mf_front *front, size_t i)
{
    const struct mf_point *p = &front->point[i];
    int64_t world = mf_layout_world(&p->layout);

    for (size_t k = 0; k < front->points; k++) {
        const struct mf_point *q = &front->point[k];
        int64_t other = mf_layout_world(&q->layout);

        if (other <= world && q->step_s <= p->step_s &&
            q->peak_bytes <= p->peak_bytes &&
            (other < world || q->step_s < p->step_s ||
                q->peak_bytes < p->peak_bytes))
            return false;
    }
    return true;
}

static void print_front(const struct mf_front *front)
{
    puts("\nbest in time, memory and GPUs");
    printf(
        "%6s  %-34s %8s %6s %9s\n", "GPUs", "layout", "step s", "GiB", "GPU s");
    for (size_t i = 0; i < front->points; i++) {
        const struct mf_point *p = &front->point[i];
        int64_t world = mf_layout_world(&p->layout);
        char text[MF_LAYOUT_TEXT];

        if (!point_is_best(front, i))
            continue;
        mf_layout_format(&p->layout, text, sizeof text);
        printf("%6" PRId64 "  %-34s %8.4g %6.1f %9.4g\n", world, text,
            p->step_s, p->peak_bytes / GIB, (double)world * p->step_s);
    }
}

static void planning_print(const struct planning *p)
{
    const struct mf_plan *plan = &p->plan;
    bool moe = plan->scope == MF_SCOPE_MOE;

    printf("%.36s on %.36s\nworld %" PRId64 ", sequence %" PRId64
           ", global batch %" PRId64 ", coefficients %.24s\n",
        plan->model.name, plan->cluster.name, plan->world,
        p->search.settings.seq, p->search.settings.global_batch,
        plan->coefficients);
    if (moe)
        puts("one MoE layer: all micro batches, and the expert gradients");
    if (p->cost)
        printf("of %" PRId64 " worlds the one that needs least GPU time\n",
            p->worlds);
    if (plan->entries)
        printf("\n%4s  %-34s %8s %7s %5s %5s %s\n", "rank", "layout",
            moe ? "ms" : "step s", "diff %", "MFU %", "GiB", "limited by");
    for (size_t i = 0; i < plan->entries; i++) {
        bool apart = !p->search.coupled && plan->entry[i].layout.coupled;

        if (apart)
            puts("      ---- best coupled layout, to compare with ----");
        print_row(p, i);
        print_settings(p, i);
    }
    print_rejected(plan);
    if (p->reason)
        mf_rejects_print(&p->rejects);
    if (p->pareto)
        print_front(&p->front);
    printf("\nsearched %" PRId64 " layouts in %.2f s\npriced %" PRId64
           " settings of them, left out %" PRId64 " that could not win\n",
        plan->enumerated, plan->elapsed_s, plan->priced, plan->bounded);
}

static json_t *point_json(const struct mf_point *point)
{
    const struct mf_settings *s = &point->settings;
    char text[MF_LAYOUT_TEXT], order[MF_LAYOUT_TEXT], again[MF_RECOMPUTE_TEXT];
    int64_t world = mf_layout_world(&point->layout);

    mf_layout_format(&point->layout, text, sizeof text);
    mf_order_format(&point->layout.order, order, sizeof order);
    mf_recompute_format(s, again);
    return json_pack(
        "{s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:s, s:f, s:f, s:f}", "world",
        (json_int_t)world, "layout", text, "order", order, "micro_batch",
        (json_int_t)s->micro_batch, "vpp", (json_int_t)s->vpp, "first_layers",
        (json_int_t)s->first_layers, "last_layers", (json_int_t)s->last_layers,
        "recompute", again, "dispatcher", mf_dispatcher_name(s->dispatcher),
        "step_s", point->step_s, "peak_bytes", point->peak_bytes, "gpu_s",
        (double)world * point->step_s);
}

static int planning_print_json(const struct planning *p, struct mf_error *err)
{
    json_t *json = mf_plan_to_json(&p->plan), *list;

    if (json && p->reason)
        json_object_set_new(json, "rejected_layouts",
            mf_rejects_to_json(&p->rejects, &p->plan.model, &p->search));
    if (json && p->pareto) {
        list = json_array();
        for (size_t i = 0; i < p->front.points; i++)
            if (point_is_best(&p->front, i))
                json_array_append_new(list, point_json(&p->front.point[i]));
        json_object_set_new(json, "pareto", list);
    }
    return mf_cli_print_json(json, err);
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
    if (mf_cli_json(cli)) {
        if (planning_print_json(&p, err))
            rc = -1;
    } else if (p.plan.enumerated) {
        planning_print(&p);
    }
out:
    mf_rejects_free(&p.rejects);
    mf_front_free(&p.one);
    mf_front_free(&p.front);
    mf_plan_free(&p.plan);
    return rc;
}

static const struct mf_option plan_options[] = {
    {"scope", "S", "step, or moe: what moefold-run runs (step)"},
    {"layout", "L", "this one alone"},
    {"top", "K", "ranked layouts (10)"},
    {"objective", "O", "time, or cost: GPU time, over smaller worlds too"},
    {"pareto", NULL, "also what is best in time, memory and GPUs"},
    {"rejected", "REASON", "list those not ranked for it, or all"},
    {"output", "FILE", "write the plan, with its alternatives"},
    {NULL, NULL, NULL},
};

static const struct mf_option *const plan_tables[] = {mf_options_model,
    mf_options_cluster, mf_options_settings, mf_options_search, plan_options,
    mf_options_db, NULL};

const struct mf_command mf_command_plan = {
    .name = "plan",
    .operands = "",
    .summary = "Search all layouts and rank those that fit",
    .tables = plan_tables,
    .run = plan_run,
};
