/* SPDX-License-Identifier: BSD-3-Clause
 * moefold explain: where time and memory go, and why not another layout.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/cli/commands.h"
#include "planner/cli/fitted.h"
#include "planner/cli/inputs.h"
#include "planner/cost.h"
#include "planner/layout/number.h"

#define TERMS_MOST (MF_PARTS_MAX * 2 + 16)

struct term {
    const char *name, *unit; /* literals */
    double a, b;             /* NAN: none */
};

/* A plan, whether it was read or put together from options, and the one or two
 * entries that are explained.
 */
struct explain {
    struct mf_plan plan;
    struct mf_settings asked; /* settings before auto is resolved */
    struct mf_coefficients set;
    bool priced_here;            /* SET is filled */
    struct mf_plan_entry own[2]; /* entries that were priced here */
    const struct mf_plan_entry *a, *b;
    struct term term[TERMS_MOST];
    int terms;
};

/* ---- what is explained ---- */

/* GIVEN as of mf_layout_resolve. */
static int explain_price(struct explain *x, const struct mf_layout *layout,
    unsigned given, int which, struct mf_error *err)
{
    struct mf_plan_entry *entry = &x->own[which];

    entry->layout = *layout;
    entry->settings = x->asked;
    if (mf_layout_resolve(&entry->layout, x->plan.world, given, err))
        return -1;
    return mf_cost_predict(
        &x->plan.model, &x->plan.cluster, x->plan.scope, &x->set, entry, err);
}

static const struct mf_plan_entry *plan_entry(
    const struct mf_plan *plan, int64_t k, struct mf_error *err)
{
    if (k >= 1 && k <= (int64_t)plan->entries)
        return &plan->entry[k - 1];
    mf_error_set(err, MF_INVALID, "the plan has layouts 1 to %zu, not %" PRId64,
        plan->entries, k);
    return NULL;
}

/* "ep=8": LAYOUT with this size, and dp and edp from the world again. */
static int layout_change(
    const char *text, struct mf_layout *layout, struct mf_error *err)
{
    struct {
        const char *name;
        int64_t *size;
    } const axis[] = {{"tp=", &layout->tp}, {"cp=", &layout->cp},
        {"pp=", &layout->pp}, {"etp=", &layout->etp}, {"ep=", &layout->ep}};

    for (size_t i = 0; i < sizeof axis / sizeof *axis; i++)
        if (!strncmp(text, axis[i].name, strlen(axis[i].name))) {
            layout->dp = layout->edp = 0;
            return mf_number_parse(strchr(text, '=') + 1, "--against", 1,
                MF_WORLD_MAX, axis[i].size, err);
        }
    return mf_error_set(err, MF_INVALID,
        "--against '%.32s' is not like ep=8, with tp, cp, pp, etp or ep", text);
}

/* --against is a rank in the plan, any layout, or one size that differs. */
static int explain_against(
    const struct mf_cli *cli, struct explain *x, struct mf_error *err)
{
    const char *text = mf_cli_value(cli, "against");
    struct mf_layout layout;
    int64_t k;

    if (!text)
        return 0;
    if (strspn(text, "0123456789") == strlen(text)) {
        if (mf_number_parse(text, "against", 1, MF_WORLD_MAX, &k, err))
            return -1;
        x->b = plan_entry(&x->plan, k, err);
        return x->b ? 0 : -1;
    }
    if (!x->priced_here &&
        mf_inputs_coefficients(cli, &x->plan.cluster, &x->set, err))
        return -1;
    if (strchr(text, '=')) {
        layout = x->a->layout;
        if (layout_change(text, &layout, err))
            return -1;
    } else if (mf_layout_parse(text, &layout, err)) {
        return -1;
    }
    layout.coupled = mf_cli_has(cli, "coupled");
    layout.order = x->a->layout.order;
    if (explain_price(x, &layout, ~0u, 1, err))
        return -1;
    x->b = &x->own[1];
    return 0;
}

static int explain_refuse(const char *option, struct mf_error *err)
{
    return mf_error_set(err, MF_INVALID,
        "a PLAN comes with its own; leave out --%s, or PLAN (another layout "
        "is --against L)",
        option);
}

/* What a plan already says must not be said otherwise. */
static int explain_check_plan(const struct mf_cli *cli, struct mf_error *err)
{
    static const char *const other[] = {"scope", "layout", "order"};
    static const struct mf_option *const tables[] = {
        mf_options_model, mf_options_cluster, mf_options_settings, NULL};

    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (mf_cli_has(cli, other[i]))
            return explain_refuse(other[i], err);
    for (int t = 0; tables[t]; t++)
        for (const struct mf_option *o = tables[t]; o->name; o++)
            if (mf_cli_has(cli, o->name))
                return explain_refuse(o->name, err);
    return 0;
}

static int explain_read_plan(
    const struct mf_cli *cli, struct explain *x, struct mf_error *err)
{
    int64_t pick = 1;

    if (explain_check_plan(cli, err))
        return -1;
    if (mf_cli_integer(cli, "pick", 1, MF_WORLD_MAX, &pick, err) ||
        mf_plan_read(mf_cli_operand(cli, 0), &x->plan, err))
        return -1;
    x->a = plan_entry(&x->plan, pick, err);
    if (!x->a)
        return -1;
    x->asked = x->a->settings;
    return explain_against(cli, x, err);
}

static int explain_read_scope(
    const struct mf_cli *cli, struct explain *x, struct mf_error *err)
{
    const char *text = mf_cli_value(cli, "scope");
    int found = text ? mf_scope_find(text) : MF_SCOPE_STEP;

    if (found < 0)
        return mf_error_set(
            err, MF_INVALID, "--scope '%.32s' is neither step nor moe", text);
    x->plan.scope = (enum mf_scope)found;
    return 0;
}

static int explain_read_options(
    const struct mf_cli *cli, struct explain *x, struct mf_error *err)
{
    struct mf_layout layout;
    unsigned given;

    if (mf_cli_has(cli, "pick"))
        return mf_error_set(
            err, MF_INVALID, "--pick is of a PLAN; give one, or leave it out");
    mf_settings_init(&x->asked);
    if (mf_inputs_settings(cli, &x->asked, err) ||
        explain_read_scope(cli, x, err) ||
        mf_inputs_model(cli, &x->plan.model, err) ||
        mf_inputs_layout(cli, &layout, &given, err) ||
        mf_inputs_layout_world(cli, &layout, &x->plan.world, err) ||
        mf_inputs_cluster(cli, x->plan.world, &x->plan.cluster, err))
        return -1;
    if (!x->plan.world)
        x->plan.world = mf_cluster_devices(&x->plan.cluster);
    if (mf_inputs_coefficients(cli, &x->plan.cluster, &x->set, err))
        return -1;
    x->priced_here = true;
    layout.coupled &= !mf_cli_has(cli, "against");
    if (explain_price(x, &layout, given, 0, err))
        return -1;
    x->a = &x->own[0];
    return explain_against(cli, x, err);
}

/* ---- the terms ---- */

static void explain_add(
    struct explain *x, const char *name, const char *unit, double a, double b)
{
    if (x->terms < TERMS_MOST)
        x->term[x->terms++] = (struct term){name, unit, a, x->b ? b : NAN};
}

static double part_of(const struct mf_cost *cost, const char *name)
{
    for (int i = 0; cost && i < cost->parts; i++)
        if (!strcmp(cost->part[i].name, name))
            return cost->part[i].seconds;
    return 0;
}

static void explain_add_parts(struct explain *x)
{
    const struct mf_cost *a = &x->a->cost, *b = x->b ? &x->b->cost : NULL;

    for (int i = 0; i < a->parts; i++)
        explain_add(x, a->part[i].name, "s", a->part[i].seconds,
            part_of(b, a->part[i].name));
    for (int i = 0; b && i < b->parts; i++)
        if (part_of(a, b->part[i].name) <= 0)
            explain_add(x, b->part[i].name, "s", 0, b->part[i].seconds);
}

static void explain_fill(struct explain *x)
{
    const struct mf_cost *a = &x->a->cost;
    const struct mf_cost *b = x->b ? &x->b->cost : a;

    explain_add_parts(x);
    explain_add(x, "step_s", "s", a->step_s, b->step_s);
    explain_add(x, "hidden", "s", a->hidden_s, b->hidden_s);
    explain_add(x, "mfu", "", a->mfu, b->mfu);
    explain_add(x, "memory.params", "GiB", a->memory.params, b->memory.params);
    explain_add(x, "memory.grads", "GiB", a->memory.grads, b->memory.grads);
    explain_add(
        x, "memory.optimizer", "GiB", a->memory.optimizer, b->memory.optimizer);
    explain_add(x, "memory.activations", "GiB", a->memory.activations,
        b->memory.activations);
    explain_add(
        x, "memory.buffers", "GiB", a->memory.buffers, b->memory.buffers);
    explain_add(x, "peak_bytes", "GiB", a->peak_bytes, b->peak_bytes);
}

/* ---- output ---- */

static json_t *number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static int explain_print_json(const struct explain *x, struct mf_error *err)
{
    json_t *terms = json_array();
    char text[2][MF_LAYOUT_TEXT] = {"", ""};

    for (int i = 0; i < x->terms; i++)
        json_array_append_new(terms,
            json_pack("{s:s, s:o, s:o}", "name", x->term[i].name, "a",
                number_json(x->term[i].a), "b", number_json(x->term[i].b)));
    mf_layout_format(&x->a->layout, text[0], sizeof text[0]);
    if (x->b)
        mf_layout_format(&x->b->layout, text[1], sizeof text[1]);
    return mf_cli_print_json(json_pack("{s:s, s:o, s:s?, s:o}", "a", text[0],
                                 "b", x->b ? json_string(text[1]) : json_null(),
                                 "limit", x->a->cost.limit, "terms", terms),
        err);
}

/* Seconds of a step, milliseconds of a layer, GiB, fractions. */
static void print_term(const struct explain *x, const struct term *t)
{
    bool layer = x->plan.scope == MF_SCOPE_MOE && !strcmp(t->unit, "s");
    double unit = layer ? 1e-3 : 1;
    int decimals = 4;

    if (!strcmp(t->unit, "GiB")) {
        unit = 1073741824.0;
        decimals = 2;
    }
    printf("  %-20s %12.*f", t->name, decimals, t->a / unit);
    if (x->b)
        printf(" %12.*f %+12.*f", decimals, t->b / unit, decimals,
            (t->b - t->a) / unit);
    printf("%s%s\n", *t->unit ? " " : "", layer ? "ms" : t->unit);
}

#define BAR 30

/* Of the largest term of a unit, so much. */
static void print_bar(double value, double most)
{
    int full = most > 0 ? (int)(BAR * value / most + 0.5) : 0;

    for (int i = 0; i < full && i < BAR; i++)
        putchar('#');
    putchar('\n');
}

static bool term_has_bar(const struct term *t)
{
    return strcmp(t->name, "step_s") && strcmp(t->name, "hidden") &&
           strcmp(t->name, "mfu") && strcmp(t->name, "peak_bytes");
}

/* Bars for one layout: its parts against the step, its memory against the
 * peak.
 */
static void print_bars(const struct explain *x)
{
    const struct mf_cost *cost = &x->a->cost;
    double gib = 1073741824.0;

    puts("\nwhere time and memory go");
    for (int i = 0; i < x->terms; i++) {
        const struct term *t = &x->term[i];
        bool memory = !strcmp(t->unit, "GiB");
        double all = memory ? cost->peak_bytes : cost->step_s;

        if (!term_has_bar(t) || !(all > 0))
            continue;
        printf("  %-20s %5.1f %%  ", t->name, 100 * t->a / all);
        print_bar(t->a, all);
    }
    printf("peak %.1f GiB: %s\n", cost->peak_bytes / gib,
        cost->fits ? "fits" : "does not fit in memory");
}

/* The part that grows most, and the one that shrinks most. */
static void print_why(const struct explain *x)
{
    const struct term *more = NULL, *less = NULL;
    double ratio = x->b->cost.step_s / x->a->cost.step_s - 1;

    for (int i = 0; i < x->terms; i++) {
        const struct term *t = &x->term[i];

        if (!strcmp(t->name, "step_s"))
            break;
        if (!more || t->b - t->a > more->b - more->a)
            more = t;
        if (!less || t->b - t->a < less->b - less->a)
            less = t;
    }
    printf("\nb is %.1f %% %s than a", 100 * fabs(ratio),
        ratio < 0 ? "faster" : "slower");
    puts("");
    if (more && more->b > more->a)
        printf(
            "most is added by %s (%+.4g s)\n", more->name, more->b - more->a);
    if (less && less->b < less->a)
        printf(
            "most is saved by %s (%+.4g s)\n", less->name, less->b - less->a);
    if (!x->b->cost.fits)
        puts("b does not fit in memory");
}

static void explain_print(const struct explain *x)
{
    char text[MF_LAYOUT_TEXT];

    mf_layout_format(&x->a->layout, text, sizeof text);
    printf("a: %s%s, limited by %s\n", text,
        x->a->layout.coupled ? ", coupled" : "",
        x->a->cost.limit ? x->a->cost.limit : "-");
    if (x->b) {
        mf_layout_format(&x->b->layout, text, sizeof text);
        printf("b: %s%s, limited by %s\n", text,
            x->b->layout.coupled ? ", coupled" : "",
            x->b->cost.limit ? x->b->cost.limit : "-");
    }
    printf("\n  %-20s %12s%s\n", "", "a",
        x->b ? "            b        b - a" : "");
    for (int i = 0; i < x->terms; i++)
        print_term(x, &x->term[i]);
    if (x->b)
        print_why(x);
    else
        print_bars(x);
}

static int explain_run(struct mf_cli *cli, struct mf_error *err)
{
    struct explain x = {0};
    int rc = mf_cli_operands(cli) ? explain_read_plan(cli, &x, err)
                                  : explain_read_options(cli, &x, err);

    if (rc)
        goto out;
    explain_fill(&x);
    if (mf_cli_json(cli))
        rc = explain_print_json(&x, err);
    else
        explain_print(&x);
out:
    mf_cost_free(&x.own[0].cost);
    mf_cost_free(&x.own[1].cost);
    mf_plan_free(&x.plan);
    return rc;
}

static const struct mf_option explain_options[] = {
    {"pick", "K", "the plan's Kth layout (1)"},
    {"against", "K|L|AXIS=N",
        "the plan's Kth layout, layout L, or one size: ep=8"},
    {"scope", "S", "step, or moe: what moefold-run runs (step)"},
    {NULL, NULL, NULL},
};

static const struct mf_option *const explain_tables[] = {explain_options,
    mf_options_model, mf_options_cluster, mf_options_layout,
    mf_options_settings, mf_options_db, NULL};

const struct mf_command mf_command_explain = {
    .name = "explain",
    .operands = "[PLAN]",
    .summary = "Show where time and memory go, and why not another layout",
    .tables = explain_tables,
    .most = 1,
    .run = explain_run,
};
