/* SPDX-License-Identifier: BSD-3-Clause
 * The search over layouts.
 *
 * Every way to write the world as tp*cp*dp*pp, and a stage's ranks as
 * etp*ep*edp, is a layout, whether or not its sizes are powers of two. Each is
 * held against the rules, which is cheap, and priced if it breaks none.
 */
#include "config.h"

#include "planner/search.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "planner/cost_parts.h"

enum { FIX_TP, FIX_CP, FIX_DP, FIX_PP, FIX_ETP, FIX_EP, FIX_EDP };

struct divisors {
    int64_t *value;
    int count;
};

struct searching {
    const struct mf_search *search;
    mf_pricer *pricer;
    struct mf_plan *plan;
    struct divisors world;
    size_t room; /* entries that plan->entry has space for */
    int64_t done, all;
    int64_t counted_pp, count; /* grids of the experts, see search_reject */
    struct mf_error *err;
};

static int divisors_fill(int64_t n, struct divisors *out, struct mf_error *err)
{
    out->count = 0;
    for (int64_t d = 1; d * d <= n; d++)
        if (n % d == 0)
            out->count += d * d == n ? 1 : 2;
    out->value = calloc((size_t)out->count, sizeof *out->value);
    if (!out->value)
        return mf_error_set(err, MF_FAILED, "out of memory");
    for (int64_t d = 1, low = 0; d * d <= n; d++)
        if (n % d == 0) {
            out->value[out->count - 1 - low] = n / d;
            out->value[low++] = d;
        }
    return 0;
}

static void plan_reject(struct mf_plan *plan, const char *reason, int64_t count)
{
    struct mf_reason *r;
    int i;

    for (i = 0; i < plan->reasons; i++)
        if (!strcmp(plan->rejected[i].text, reason))
            break;
    if (i == MF_REASONS_MAX)
        return;
    r = &plan->rejected[i];
    if (i == plan->reasons) {
        *r = (struct mf_reason){0};
        snprintf(r->text, sizeof r->text, "%s", reason);
        plan->reasons++;
    }
    r->count += count;
}

/* Faster first; of equals the smaller text, so that no order of visiting
 * shows.
 */
static bool entry_before(
    const struct mf_plan_entry *a, const struct mf_plan_entry *b)
{
    char x[MF_LAYOUT_TEXT], y[MF_LAYOUT_TEXT];

    if (a->cost.step_s != b->cost.step_s)
        return a->cost.step_s < b->cost.step_s;
    mf_layout_format(&a->layout, x, sizeof x);
    mf_layout_format(&b->layout, y, sizeof y);
    return strcmp(x, y) < 0;
}

static int plan_make_room(struct searching *s)
{
    size_t room = s->room ? 2 * s->room : 16;
    struct mf_plan_entry *entry;

    if (s->plan->entries < s->room)
        return 0;
    entry = realloc(s->plan->entry, room * sizeof *entry);
    if (!entry)
        return mf_error_set(s->err, MF_FAILED, "out of memory");
    s->plan->entry = entry;
    s->room = room;
    return 0;
}

/* Put ENTRY, which is taken over, at its place among the best. */
static int plan_keep(struct searching *s, struct mf_plan_entry *entry)
{
    struct mf_plan *plan = s->plan;
    size_t top = s->search->top, i;

    if (top && plan->entries == top) {
        if (!entry_before(entry, &plan->entry[top - 1])) {
            mf_cost_free(&entry->cost);
            return 0;
        }
        mf_cost_free(&plan->entry[--plan->entries].cost);
    }
    if (plan_make_room(s)) {
        mf_cost_free(&entry->cost);
        return -1;
    }
    if (!top) {
        plan->entry[plan->entries++] = *entry;
        return 0;
    }
    for (i = plan->entries++; i > 0; i--) {
        if (!entry_before(entry, &plan->entry[i - 1]))
            break;
        plan->entry[i] = plan->entry[i - 1];
    }
    plan->entry[i] = *entry;
    return 0;
}

static int entry_compare(const void *a, const void *b)
{
    return entry_before(a, b) ? -1 : 1;
}

static bool fixed(const struct mf_search *search, int which, int64_t value)
{
    return search->fix[which] == 0 || search->fix[which] == value;
}

/* One layout: count it, hold it against the rules, price it. */
static int search_visit(struct searching *s, const struct mf_layout *sizes)
{
    const struct mf_search *search = s->search;
    struct mf_plan_entry entry = {
        .layout = *sizes, .settings = search->settings};
    const char *rule;

    s->plan->enumerated++;
    if (search->progress)
        search->progress(search->progress_arg, s->done, s->all);
    rule = mf_check_rule(
        &s->plan->model, &entry.layout, &entry.settings, search->scope, NULL);
    if (!rule && mf_layout_resolve(&entry.layout, search->world, ~0u, NULL))
        rule = "the order of the axes does not allow it";
    if (rule) {
        plan_reject(s->plan, rule, 1);
        return 0;
    }
    if (mf_pricer_price(
            s->pricer, &entry, &s->plan->priced, &s->plan->bounded, s->err))
        return -1;
    if (!entry.cost.fits) {
        plan_reject(s->plan, "does not fit in memory", 1);
        mf_cost_free(&entry.cost);
        return 0;
    }
    return plan_keep(s, &entry);
}

static bool etp_allowed(
    const struct mf_search *search, const struct mf_layout *l, int64_t ranks)
{
    return ranks % l->etp == 0 && fixed(search, FIX_ETP, l->etp) &&
           !(search->coupled && l->etp != l->tp);
}

static bool ep_allowed(
    const struct mf_search *search, const struct mf_layout *l, int64_t ranks)
{
    int64_t left = ranks / l->etp;

    return left % l->ep == 0 && fixed(search, FIX_EP, l->ep) &&
           fixed(search, FIX_EDP, left / l->ep) &&
           !(search->coupled && l->dp % l->ep);
}

/* Every grid of the experts under an attention grid, counted or visited. */
static int search_experts(
    struct searching *s, struct mf_layout *l, int64_t *count)
{
    const struct mf_search *search = s->search;
    int64_t ranks = search->world / l->pp;

    for (int i = 0; i < s->world.count; i++) {
        l->etp = s->world.value[i];
        if (!etp_allowed(search, l, ranks))
            continue;
        for (int j = 0; j < s->world.count; j++) {
            l->ep = s->world.value[j];
            if (!ep_allowed(search, l, ranks))
                continue;
            l->edp = ranks / l->etp / l->ep;
            if (count)
                ++*count;
            else if (search_visit(s, l))
                return -1;
        }
    }
    return 0;
}

/* An attention grid that breaks a rule takes all its layouts with it. Of a
 * world with many divisors that is most of a billion, so they are counted once
 * a pipeline; coupled grids, which are few, each on their own.
 */
static void search_reject(
    struct searching *s, struct mf_layout *l, const char *rule)
{
    if (s->search->coupled || s->counted_pp != l->pp) {
        s->count = 0;
        s->counted_pp = l->pp;
        search_experts(s, l, &s->count);
    }
    if (s->count > 0)
        plan_reject(s->plan, rule, s->count);
    s->plan->enumerated += s->count;
}

/* A single MoE layer has no stages, and to it context parallel ranks are as
 * tensor parallel ones: both stay at 1 unless the user fixes them.
 */
static bool attention_allowed(
    const struct mf_search *search, const struct mf_layout *l)
{
    if (search->scope == MF_SCOPE_MOE) {
        if (!search->fix[FIX_PP] && l->pp > 1)
            return false;
        if (!search->fix[FIX_CP] && l->cp > 1)
            return false;
    }
    return fixed(search, FIX_TP, l->tp) && fixed(search, FIX_CP, l->cp) &&
           fixed(search, FIX_DP, l->dp) && fixed(search, FIX_PP, l->pp);
}

static int search_attention(struct searching *s)
{
    struct mf_layout l = {
        .order = s->search->order, .coupled = s->search->coupled};
    const int64_t *d = s->world.value;
    int64_t world = s->search->world;
    int n = s->world.count;

    s->all = (int64_t)n * n * n;
    for (int64_t i = 0; i < s->all; i++) {
        const char *rule;
        int64_t left;

        s->done = i;
        l.pp = d[i / n / n];
        l.tp = d[i / n % n];
        l.cp = d[i % n];
        left = world / l.pp;
        if (left % l.tp || left / l.tp % l.cp)
            continue;
        l.dp = left / l.tp / l.cp;
        if (!attention_allowed(s->search, &l))
            continue;
        rule = mf_check_attention_rule(
            &s->plan->model, &l, &s->search->settings, s->search->scope, NULL);
        if (rule)
            search_reject(s, &l, rule);
        else if (search_experts(s, &l, NULL))
            return -1;
    }
    return 0;
}

static int search_rank(struct searching *s)
{
    struct mf_plan *plan = s->plan;

    if (!s->search->top && plan->entries > 1)
        qsort(plan->entry, plan->entries, sizeof *plan->entry, entry_compare);
    for (size_t i = 0; i < plan->entries; i++)
        if (mf_pricer_note(s->pricer, &plan->entry[i], s->err))
            return -1;
    return 0;
}

static int reason_compare(const void *a, const void *b)
{
    const struct mf_reason *x = a, *y = b;

    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return strcmp(x->text, y->text);
}

/* Nothing fits: say what stood in the way most often. */
static int search_none(const struct mf_plan *plan, struct mf_error *err)
{
    if (!plan->enumerated)
        return mf_error_set(err, MF_NO,
            "no layout of world %" PRId64 " has the sizes that are fixed",
            plan->world);
    return mf_error_set(err, MF_NO,
        "none of %" PRId64
        " layouts will do; the most frequent reason, %" PRId64 " times: %s",
        plan->enumerated, plan->rejected[0].count, plan->rejected[0].text);
}

static double now_s(void)
{
    struct timespec now;

    if (clock_gettime(CLOCK_MONOTONIC, &now))
        return 0;
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int mf_search_run(const struct mf_search *search,
    const struct mf_coefficients *set, struct mf_plan *plan,
    struct mf_error *err)
{
    struct searching s = {.search = search, .plan = plan, .err = err};
    double start = now_s();
    int rc = -1;

    plan->world = search->world;
    plan->scope = search->scope;
    snprintf(plan->coefficients, sizeof plan->coefficients, "%s", set->name);
    if (search->scope == MF_SCOPE_STEP && search->settings.global_batch < 1)
        return mf_error_set(err, MF_INVALID,
            "the global batch is not known; give --global-batch, in "
            "sequences an optimizer step");
    s.pricer = mf_pricer_create(
        &plan->model, &plan->cluster, search->world, search->scope, set, err);
    if (!s.pricer || divisors_fill(search->world, &s.world, err))
        goto out;
    if (search_attention(&s) || search_rank(&s))
        goto out;
    qsort(plan->rejected, (size_t)plan->reasons, sizeof *plan->rejected,
        reason_compare);
    plan->elapsed_s = now_s() - start;
    rc = plan->entries ? 0 : search_none(plan, err);
out:
    free(s.world.value);
    mf_pricer_free(s.pricer);
    return rc;
}
