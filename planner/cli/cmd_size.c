/* SPDX-License-Identifier: BSD-3-Clause
 * moefold size: how many GPUs a training run needs.
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
#include "planner/cli/searching.h"

#define GIB 1073741824.0
#define DAY_S 86400.0
#define LIMIT_DEFAULT 4096
#define WORLDS_MOST 4096

/* The best layout of one world. */
struct sized {
    int64_t world;
    bool found;
    struct mf_plan_entry entry; /* its cost is not owned */
    double tokens_per_s, days, gpu_hours, efficiency;
};

struct sizing {
    struct mf_plan plan; /* model and cluster */
    struct mf_search search;
    struct mf_coefficients set;
    int64_t limit, unit;                    /* largest world; GPUs of a node */
    double tokens, days, budget, threshold; /* NAN: not asked */
    struct sized *curve;
    size_t points, room;
    int64_t searched, answer; /* worlds; the answer's place, -1: none */
    const char *why;          /* there is no answer */
};

/* ---- what is asked for ---- */

/* A whole number, perhaps of tokens in powers of 1000, as a double. */
static int count_read(const struct mf_cli *cli, const char *name, double *value,
    struct mf_error *err)
{
    int64_t count;

    *value = NAN;
    if (!mf_cli_has(cli, name))
        return 0;
    if (mf_cli_integer(cli, name, 1, (int64_t)1 << 60, &count, err))
        return -1;
    *value = (double)count;
    return 0;
}

static int targets_read(
    const struct mf_cli *cli, struct sizing *s, struct mf_error *err)
{
    double days = -1, hours = -1;

    s->threshold = 0.8;
    if (count_read(cli, "tokens", &s->tokens, err) ||
        mf_cli_decimal(cli, "days", 1e-6, 1e6, &days, err) ||
        mf_cli_decimal(cli, "gpu-hours", 1e-6, 1e15, &hours, err) ||
        mf_cli_decimal(cli, "efficiency", 0.01, 1, &s->threshold, err))
        return -1;
    s->days = days > 0 ? days : NAN;
    s->budget = hours > 0 ? hours : NAN;
    if (isnan(s->tokens) && !(isnan(s->days) && isnan(s->budget)))
        return mf_error_set(err, MF_INVALID,
            "--days and --gpu-hours need --tokens, such as --tokens 1T");
    if (!isnan(s->tokens) && isnan(s->days) && isnan(s->budget))
        return mf_error_set(err, MF_INVALID,
            "--tokens needs --days D or --gpu-hours H; without all three, size "
            "finds the smallest world that fits in memory");
    return 0;
}

static int sizing_read(
    const struct mf_cli *cli, struct sizing *s, struct mf_error *err)
{
    int64_t devices;

    s->search.top = 1;
    if (mf_search_read(cli, &s->search, err) || targets_read(cli, s, err) ||
        mf_inputs_world(cli, &s->limit, err) ||
        mf_cli_integer(cli, "max-world", 1, MF_WORLD_MAX, &s->limit, err) ||
        mf_inputs_model(cli, &s->plan.model, err))
        return -1;
    if (s->search.settings.global_batch < 1)
        return mf_error_set(err, MF_INVALID,
            "the global batch is not known; give --global-batch, in "
            "sequences an optimizer step");
    if (!s->limit)
        s->limit = LIMIT_DEFAULT;
    if (mf_inputs_cluster(cli, s->limit, &s->plan.cluster, err) ||
        mf_inputs_coefficients(cli, &s->plan.cluster, &s->set, err))
        return -1;
    devices = mf_cluster_devices(&s->plan.cluster);
    s->limit = devices < s->limit ? devices : s->limit;
    s->unit = 1;
    for (size_t i = 0; i < s->plan.cluster.nodes; i++)
        if (s->plan.cluster.node[i].gpus > s->unit)
            s->unit = s->plan.cluster.node[i].gpus;
    if (s->limit < 1)
        return mf_error_set(err, MF_NO, "cluster %s has no device that is up",
            s->plan.cluster.name);
    return 0;
}

/* ---- the curve ---- */

static void sized_fill(const struct sizing *s, struct sized *out)
{
    const struct mf_settings *set = &out->entry.settings;
    double batch = (double)set->global_batch * (double)set->seq;

    out->tokens_per_s = batch / out->entry.cost.step_s;
    out->days = s->tokens / out->tokens_per_s / DAY_S;
    out->gpu_hours = out->days * 24 * (double)out->world;
}

/* The best layout of WORLD, or one faster than BOUND_S when that is over 0. */
static int sizing_search(struct sizing *s, int64_t world, double bound_s,
    struct sized *out, struct mf_error *err)
{
    struct mf_plan plan = {.model = s->plan.model, .cluster = s->plan.cluster};
    struct mf_search search = s->search;
    struct mf_error none = {0};
    int rc;

    *out = (struct sized){.world = world, .efficiency = NAN};
    search.world = world;
    search.bound_s = bound_s;
    rc = mf_search_run(&search, &s->set, &plan, &none);
    s->searched++;
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\rworld %-10" PRId64, world);
        fflush(stderr);
    }
    if (!rc && plan.entries) {
        out->found = true;
        out->entry = plan.entry[0];
        sized_fill(s, out);
    }
    s->plan.enumerated += plan.enumerated;
    s->plan.priced += plan.priced;
    s->plan.bounded += plan.bounded;
    s->plan.elapsed_s += plan.elapsed_s;
    for (size_t i = 0; i < plan.entries; i++)
        mf_cost_free(&plan.entry[i].cost);
    free(plan.entry);
    if (rc && none.status != MF_NO)
        return mf_error_set(err, none.status, "%s", none.text);
    return 0;
}

static int curve_add(
    struct sizing *s, const struct sized *point, struct mf_error *err)
{
    size_t i;

    if (s->points == s->room) {
        size_t room = s->room ? 2 * s->room : 32;
        struct sized *more = realloc(s->curve, room * sizeof *more);

        if (!more)
            return mf_error_set(err, MF_FAILED, "out of memory");
        s->curve = more;
        s->room = room;
    }
    for (i = s->points++; i > 0 && s->curve[i - 1].world > point->world; i--)
        s->curve[i] = s->curve[i - 1];
    s->curve[i] = *point;
    return 0;
}

/* Does POINT answer? */
static bool suits(const struct sizing *s, const struct sized *point)
{
    return point->found && !(point->days > s->days) &&
           !(point->gpu_hours > s->budget);
}

/* Powers of two and three times such, up to the limit, and the limit. */
static int curve_fill(struct sizing *s, struct mf_error *err)
{
    struct sized point;

    for (int64_t two = 1; two <= s->limit; two *= 2)
        for (int64_t world = two; world <= two / 2 * 3; world += two / 2) {
            if (world > s->limit || (world > s->unit && world % s->unit))
                continue;
            if (sizing_search(s, world, 0, &point, err) ||
                (point.found && curve_add(s, &point, err)))
                return -1;
            if (two < 2)
                break;
        }
    if (s->points && s->curve[s->points - 1].world == s->limit)
        return 0;
    if (sizing_search(s, s->limit, 0, &point, err) ||
        (point.found && curve_add(s, &point, err)))
        return -1;
    return 0;
}

static void curve_fill_efficiency(struct sizing *s)
{
    double best = 0;

    for (size_t i = 0; i < s->points; i++)
        best = fmax(best, s->curve[i].tokens_per_s / (double)s->curve[i].world);
    for (size_t i = 0; i < s->points; i++)
        s->curve[i].efficiency =
            s->curve[i].tokens_per_s / (double)s->curve[i].world / best;
}

/* Between the curve's first world that answers and the one before there may be
 * a smaller one: every whole number of nodes is tried, and those that can't
 * make the deadline are left after their bound.
 */
static int answer_refine(struct sizing *s, size_t first, struct mf_error *err)
{
    int64_t least = first ? s->curve[first - 1].world : 0;
    int64_t most = s->curve[first].world;
    int64_t unit = most > s->unit ? s->unit : 1;
    double batch = (double)s->search.settings.global_batch *
                   (double)s->search.settings.seq;
    double bound = isnan(s->days) ? 0 : s->days * DAY_S * batch / s->tokens;

    for (int64_t world = least / unit * unit + unit; world < most;
         world += unit) {
        struct sized point;

        if (world <= least)
            continue;
        if (sizing_search(s, world, bound, &point, err))
            return -1;
        if (suits(s, &point))
            return curve_add(s, &point, err);
    }
    return 0;
}

/* With a deadline or for memory alone, the smallest world; with a budget and
 * no deadline, the fastest.
 */
static void answer_pick(struct sizing *s)
{
    bool fastest = isnan(s->days) && !isnan(s->budget);

    s->answer = -1;
    for (size_t i = 0; i < s->points; i++) {
        if (!suits(s, &s->curve[i]))
            continue;
        if (s->answer < 0 ||
            (fastest && s->curve[i].days < s->curve[s->answer].days))
            s->answer = (int64_t)i;
        if (!fastest)
            return;
    }
}

static int sizing_answer(struct sizing *s, struct mf_error *err)
{
    if (curve_fill(s, err))
        return -1;
    answer_pick(s);
    if (s->answer >= 0 && !(isnan(s->days) && !isnan(s->budget))) {
        if (answer_refine(s, (size_t)s->answer, err))
            return -1;
        answer_pick(s);
    }
    curve_fill_efficiency(s);
    if (s->answer >= 0)
        return 0;
    s->why = "no world up to the limit makes it";
    if (!s->points)
        s->why = "no world up to the limit has a layout that fits in memory";
    return MF_NO;
}

/* The first world after the best one that is below the threshold. */
static const struct sized *curve_drop(const struct sizing *s)
{
    size_t best = 0;

    for (size_t i = 0; i < s->points; i++)
        if (s->curve[i].efficiency >= s->curve[best].efficiency)
            best = i;
    for (size_t i = best; i < s->points; i++)
        if (s->curve[i].efficiency < s->threshold)
            return &s->curve[i];
    return NULL;
}

/* ---- output ---- */

static json_t *number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *sized_json(const struct sized *p)
{
    const struct mf_settings *s = &p->entry.settings;
    char text[MF_LAYOUT_TEXT], order[MF_LAYOUT_TEXT], again[MF_RECOMPUTE_TEXT];

    mf_layout_format(&p->entry.layout, text, sizeof text);
    mf_order_format(&p->entry.layout.order, order, sizeof order);
    mf_recompute_format(s, again);
    return json_pack("{s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:s, s:f, s:f, "
                     "s:f, s:f, s:o, s:o, s:o}",
        "world", (json_int_t)p->world, "layout", text, "order", order,
        "micro_batch", (json_int_t)s->micro_batch, "vpp", (json_int_t)s->vpp,
        "first_layers", (json_int_t)s->first_layers, "last_layers",
        (json_int_t)s->last_layers, "recompute", again, "dispatcher",
        mf_dispatcher_name(s->dispatcher), "step_s", p->entry.cost.step_s,
        "peak_bytes", p->entry.cost.peak_bytes, "tokens_per_s", p->tokens_per_s,
        "mfu", p->entry.cost.mfu, "efficiency", number_json(p->efficiency),
        "days", number_json(p->days), "gpu_hours", number_json(p->gpu_hours));
}

static int sizing_print_json(const struct sizing *s, struct mf_error *err)
{
    const struct sized *answer = s->answer >= 0 ? &s->curve[s->answer] : NULL;
    const struct sized *drop = curve_drop(s);
    json_t *curve = json_array(), *json;

    for (size_t i = 0; i < s->points; i++)
        json_array_append_new(curve, sized_json(&s->curve[i]));
    json = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:o, s:I, s:o, "
                     "s:{s:I, s:I, s:I, s:I}, s:f, s:o}",
        "world", answer ? json_integer(answer->world) : json_null(), "answer",
        answer ? sized_json(answer) : json_null(), "tokens",
        number_json(s->tokens), "days",
        number_json(answer ? answer->days : NAN), "gpu_hours",
        number_json(answer ? answer->gpu_hours : NAN), "days_wanted",
        number_json(s->days), "gpu_hours_wanted", number_json(s->budget),
        "threshold", s->threshold, "drops_at",
        drop ? json_integer(drop->world) : json_null(), "max_world",
        (json_int_t)s->limit, "curve", curve, "searched", "worlds",
        (json_int_t)s->searched, "enumerated", (json_int_t)s->plan.enumerated,
        "bounded", (json_int_t)s->plan.bounded, "priced",
        (json_int_t)s->plan.priced, "elapsed_s", s->plan.elapsed_s, "reason",
        s->why ? json_string(s->why) : json_null());
    return mf_cli_print_json(json, err);
}

static void print_sized(const struct sizing *s, const struct sized *p)
{
    char text[MF_LAYOUT_TEXT];

    mf_layout_format(&p->entry.layout, text, sizeof text);
    printf("%6" PRId64 "  %-34s %10.4g", p->world, text, p->tokens_per_s);
    if (isnan(s->tokens))
        printf(" %8.3g", p->entry.cost.peak_bytes / GIB);
    else
        printf(" %8.4g %9.4g", p->days, p->gpu_hours);
    printf(" %5.0f\n", 100 * p->efficiency);
}

static void print_answer(const struct sizing *s)
{
    const struct sized *drop = curve_drop(s);

    if (s->answer >= 0) {
        const struct sized *a = &s->curve[s->answer];
        char text[MF_LAYOUT_TEXT];

        mf_layout_format(&a->entry.layout, text, sizeof text);
        printf("%" PRId64 " GPUs, layout %s\n", a->world, text);
        if (!isnan(s->tokens))
            printf("%.4g days, %.4g GPU hours at %.4g tokens/s\n", a->days,
                a->gpu_hours, a->tokens_per_s);
    } else {
        printf("no answer: %s (%" PRId64 " GPUs)\n", s->why, s->limit);
    }
    if (drop)
        printf("from %" PRId64 " GPUs on a GPU does less than %.0f %% of what "
               "it does at best\n",
            drop->world, 100 * s->threshold);
}

static void sizing_print(const struct sizing *s)
{
    printf("%.36s on %.36s\nsequence %" PRId64 ", global batch %" PRId64
           ", worlds up to %" PRId64 "\n",
        s->plan.model.name, s->plan.cluster.name, s->search.settings.seq,
        s->search.settings.global_batch, s->limit);
    print_answer(s);
    if (s->points && isnan(s->tokens))
        printf("\n%6s  %-34s %10s %8s %5s\n", "GPUs", "layout", "tokens/s",
            "GiB", "eff %");
    else if (s->points)
        printf("\n%6s  %-34s %10s %8s %9s %5s\n", "GPUs", "layout", "tokens/s",
            "days", "GPU h", "eff %");
    for (size_t i = 0; i < s->points; i++)
        print_sized(s, &s->curve[i]);
    printf("\nsearched %" PRId64 " worlds, %" PRId64 " layouts in %.2f s\n",
        s->searched, s->plan.enumerated, s->plan.elapsed_s);
}

/* ---- the command ---- */

static int size_run(struct mf_cli *cli, struct mf_error *err)
{
    struct sizing s = {.answer = -1};
    int rc = sizing_read(cli, &s, err);

    if (!rc)
        rc = sizing_answer(&s, err);
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r                \r");
    if (rc < 0)
        goto out;
    if (!mf_cli_json(cli))
        sizing_print(&s);
    else if (sizing_print_json(&s, err))
        rc = -1;
out:
    free(s.curve);
    mf_plan_free(&s.plan);
    return rc;
}

static const struct mf_option size_options[] = {
    {"tokens", "N", "to train on, such as 1T"},
    {"days", "D", "the deadline"},
    {"gpu-hours", "H", "the budget"},
    {"efficiency", "E", "of a GPU against its best, where it is low (0.8)"},
    {"max-world", "N", "largest world to look at (4096, or the cluster)"},
    {NULL, NULL, NULL},
};

static const struct mf_option *const size_tables[] = {size_options,
    mf_options_model, mf_options_cluster, mf_options_settings,
    mf_options_search, mf_options_db, NULL};

const struct mf_command mf_command_size = {
    .name = "size",
    .operands = "",
    .summary = "Find how many GPUs make a deadline, a budget, or just fit",
    .tables = size_tables,
    .run = size_run,
};
