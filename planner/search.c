/* SPDX-License-Identifier: BSD-3-Clause
 * The search over layouts.
 *
 * Every way to write the world as tp*cp*dp*pp, and a stage's ranks as
 * etp*ep*edp, is a layout, whether or not its sizes are powers of two. Each is
 * held against the rules, which is cheap, and priced if it breaks none. Threads
 * take pairs of tp and cp from a counter; what they keep is merged in the end,
 * so that their number shows in the time alone.
 */
#include "config.h"

#include "planner/search.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "planner/search_parts.h"

#define THREADS_MOST 64

struct divisors {
    int64_t *value;
    int count;
};

/* What all workers share. */
struct searching {
    const struct mf_search *search;
    const struct mf_plan *plan; /* its model and cluster */
    const struct mf_coefficients *set;
    struct divisors world;
    atomic_int next; /* pair of tp and cp */
    atomic_bool stop;
};

struct worker {
    struct searching *s;
    const struct mf_search *search;
    mf_pricer *pricer;
    struct mf_plan plan; /* its model and cluster are the caller's */
    struct mf_ranking ranking;
    struct mf_front front;
    int64_t *count; /* [divisors] grids of experts by pp, -1: not counted */
    bool told;      /* single thread */
    pthread_t thread;
    bool started;
    int rc;
    struct mf_error err;
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

static bool allowed(
    const struct mf_search *search, enum mf_size size, int64_t value)
{
    if (search->fix[size] && search->fix[size] != value)
        return false;
    if (search->max[size] && value > search->max[size])
        return false;
    for (int i = 0; i < search->forbids; i++)
        if (search->forbid[i].size == size && search->forbid[i].value == value)
            return false;
    return true;
}

static void worker_reject(
    struct worker *w, const struct mf_layout *layout, const char *rule)
{
    mf_plan_reject(&w->plan, rule, 1);
    if (w->search->told)
        w->search->told(w->search->told_arg, layout, rule);
}

/* One layout and order: hold it against the rules, price it. */
static int worker_price(struct worker *w, const struct mf_layout *layout)
{
    const struct mf_search *search = w->search;
    struct mf_plan_entry entry = {.layout = *layout};
    double bound = INFINITY;
    const char *rule;
    struct mf_best best;

    w->plan.enumerated++;
    rule = mf_check_rule(
        &w->s->plan->model, layout, &search->settings, search->scope, NULL);
    if (!rule && mf_layout_resolve(&entry.layout, search->world, ~0u, NULL))
        rule = "the order of the axes does not allow it";
    if (rule) {
        worker_reject(w, layout, rule);
        return 0;
    }
    if (!search->front)
        bound = mf_ranking_bound(&w->ranking);
    if (search->bound_s > 0)
        bound = fmin(bound, search->bound_s);
    mf_pricer_bound(w->pricer, bound);
    if (mf_pricer_best(
            w->pricer, &entry.layout, &search->settings, &best, &w->err))
        return -1;
    w->plan.priced += best.priced;
    w->plan.bounded += best.bounded;
    if (!best.fits) {
        worker_reject(w, layout, "does not fit in memory");
        return 0;
    }
    if (search->bound_s > 0 && best.step_s > search->bound_s)
        return 0;
    entry.settings = best.settings;
    entry.cost.step_s = best.step_s;
    return mf_ranking_keep(&w->ranking, &entry, &w->err);
}

static int worker_visit(struct worker *w, const struct mf_layout *sizes)
{
    struct mf_order order[MF_ORDERS_MOST];
    struct mf_layout layout = *sizes;
    int n = mf_orders_fill(w->search, sizes, order);

    for (int i = 0; i < n; i++) {
        layout.order = order[i];
        if (worker_price(w, &layout))
            return -1;
    }
    return 0;
}

static bool etp_allowed(
    const struct mf_search *search, const struct mf_layout *l, int64_t ranks)
{
    return ranks % l->etp == 0 && allowed(search, MF_SIZE_ETP, l->etp) &&
           !(search->coupled && l->etp != l->tp);
}

static bool ep_allowed(
    const struct mf_search *search, const struct mf_layout *l, int64_t ranks)
{
    int64_t left = ranks / l->etp;

    return left % l->ep == 0 && allowed(search, MF_SIZE_EP, l->ep) &&
           allowed(search, MF_SIZE_EDP, left / l->ep) &&
           !(search->coupled && l->dp % l->ep);
}

/* Every grid of the experts under an attention grid: counted, told to break
 * RULE, or visited.
 */
static int worker_experts(
    struct worker *w, struct mf_layout *l, int64_t *count, const char *rule)
{
    const struct divisors *d = &w->s->world;
    int64_t ranks = w->search->world / l->pp;

    for (int i = 0; i < d->count; i++) {
        l->etp = d->value[i];
        if (!etp_allowed(w->search, l, ranks))
            continue;
        for (int j = 0; j < d->count; j++) {
            l->ep = d->value[j];
            if (!ep_allowed(w->search, l, ranks))
                continue;
            l->edp = ranks / l->etp / l->ep;
            if (count)
                ++*count;
            else if (rule)
                w->search->told(w->search->told_arg, l, rule);
            else if (worker_visit(w, l))
                return -1;
        }
    }
    return 0;
}

/* An attention grid that breaks a rule takes all its layouts with it. Of a
 * world with many divisors that is most of a billion, so they are counted once
 * a pipeline (one order each); coupled grids, which are few, on their own.
 */
static void worker_reject_grid(
    struct worker *w, struct mf_layout *l, int which, const char *rule)
{
    int64_t *count = &w->count[which];

    if (w->search->coupled || *count < 0) {
        *count = 0;
        worker_experts(w, l, count, NULL);
    }
    if (*count > 0)
        mf_plan_reject(&w->plan, rule, *count);
    w->plan.enumerated += *count;
    if (w->search->told)
        worker_experts(w, l, NULL, rule);
}

/* A single MoE layer has no stages, and to it context parallel ranks are as
 * tensor parallel ones: both stay at 1 unless the user fixes them.
 */
static bool attention_allowed(
    const struct mf_search *search, const struct mf_layout *l)
{
    if (search->scope == MF_SCOPE_MOE) {
        if (!search->fix[MF_SIZE_PP] && l->pp > 1)
            return false;
        if (!search->fix[MF_SIZE_CP] && l->cp > 1)
            return false;
    }
    return allowed(search, MF_SIZE_TP, l->tp) &&
           allowed(search, MF_SIZE_CP, l->cp) &&
           allowed(search, MF_SIZE_DP, l->dp) &&
           allowed(search, MF_SIZE_PP, l->pp);
}

/* All pipelines of one tp and cp. */
static int worker_pair(struct worker *w, int64_t tp, int64_t cp)
{
    const struct mf_search *search = w->search;
    struct mf_layout l = {
        .tp = tp, .cp = cp, .order = search->order, .coupled = search->coupled};

    for (int i = 0; i < w->s->world.count && !w->s->stop; i++) {
        int64_t left = search->world / w->s->world.value[i];
        const char *rule;

        l.pp = w->s->world.value[i];
        if (left % tp || left / tp % cp)
            continue;
        l.dp = left / tp / cp;
        if (!attention_allowed(search, &l))
            continue;
        rule = mf_check_attention_rule(
            &w->s->plan->model, &l, &search->settings, search->scope, NULL);
        if (rule)
            worker_reject_grid(w, &l, i, rule);
        else if (worker_experts(w, &l, NULL, NULL))
            return -1;
    }
    return 0;
}

static void *worker_run(void *arg)
{
    struct worker *w = arg;
    struct searching *s = w->s;
    int n = s->world.count, all = n * n;

    w->rc = 0;
    while (!w->rc && !s->stop) {
        int i = atomic_fetch_add(&s->next, 1);

        if (i >= all)
            break;
        if (w->told && w->search->progress)
            w->search->progress(w->search->progress_arg, i, all);
        w->rc = worker_pair(w, s->world.value[i / n], s->world.value[i % n]);
    }
    if (w->rc)
        s->stop = true;
    return NULL;
}

static int worker_up(struct worker *w, struct searching *s)
{
    const struct mf_limits *limits = &s->search->limits;

    w->s = s;
    w->search = s->search;
    w->ranking = (struct mf_ranking){.plan = &w->plan, .top = s->search->top};
    w->count = malloc((size_t)s->world.count * sizeof *w->count);
    if (!w->count)
        return mf_error_set(&w->err, MF_FAILED, "out of memory");
    for (int i = 0; i < s->world.count; i++)
        w->count[i] = -1;
    w->pricer = mf_pricer_create(&s->plan->model, &s->plan->cluster,
        s->search->world, s->search->scope, s->set, &w->err);
    if (!w->pricer)
        return -1;
    if (limits->dispatchers || limits->recomputes || limits->max_vpp ||
        limits->max_micro_batch) {
        struct mf_limits all = *limits;

        all.dispatchers = all.dispatchers ? all.dispatchers : ~0u;
        all.recomputes = all.recomputes ? all.recomputes : ~0u;
        mf_pricer_limit(w->pricer, &all);
    }
    if (s->search->front)
        mf_pricer_collect(w->pricer, &w->front);
    return 0;
}

static void worker_down(struct worker *w)
{
    free(w->count);
    free(w->plan.entry);
    mf_front_free(&w->front);
    mf_pricer_free(w->pricer);
}

/* The first worker is the calling thread; without room for a thread there is
 * one less.
 */
static int workers_run(struct searching *s, struct worker *worker, int threads,
    struct mf_error *err)
{
    for (int i = 0; i < threads; i++)
        if (worker_up(&worker[i], s)) {
            *err = worker[i].err;
            return -1;
        }
    worker[0].told = true;
    for (int i = 1; i < threads; i++)
        worker[i].started =
            !pthread_create(&worker[i].thread, NULL, worker_run, &worker[i]);
    worker_run(&worker[0]);
    for (int i = 1; i < threads; i++)
        if (worker[i].started && pthread_join(worker[i].thread, NULL))
            return mf_error_set(err, MF_FAILED, "a thread was lost");
    for (int i = 0; i < threads; i++)
        if (worker[i].rc) {
            *err = worker[i].err;
            return -1;
        }
    return 0;
}

static int workers_merge(const struct mf_search *search,
    const struct worker *worker, int threads, struct mf_plan *plan,
    struct mf_error *err)
{
    struct mf_ranking ranking = {.plan = plan, .top = search->top};

    for (int i = 0; i < threads; i++) {
        if (mf_ranking_merge(&ranking, &worker[i].plan, err))
            return -1;
        for (size_t k = 0; search->front && k < worker[i].front.points; k++)
            mf_front_add(search->front, &worker[i].front.point[k]);
        if (worker[i].front.failed || (search->front && search->front->failed))
            return mf_error_set(err, MF_FAILED, "out of memory");
    }
    mf_ranking_sort(&ranking);
    return 0;
}

/* Work out all of the price of those that are kept. */
static int search_fill(
    mf_pricer *pricer, struct mf_plan *plan, struct mf_error *err)
{
    for (size_t i = 0; i < plan->entries; i++)
        if (mf_pricer_fill(pricer, &plan->entry[i], err) ||
            mf_pricer_note(pricer, &plan->entry[i], err))
            return -1;
    return 0;
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

static int search_threads(const struct mf_search *search)
{
    if (search->told || search->threads < 2)
        return 1;
    return search->threads < THREADS_MOST ? search->threads : THREADS_MOST;
}

int mf_search_run(const struct mf_search *search,
    const struct mf_coefficients *set, struct mf_plan *plan,
    struct mf_error *err)
{
    struct searching s = {.search = search, .plan = plan, .set = set};
    int threads = search_threads(search);
    double start = now_s();
    struct worker *worker;
    int rc = -1;

    plan->world = search->world;
    plan->scope = search->scope;
    snprintf(plan->coefficients, sizeof plan->coefficients, "%s", set->name);
    if (search->scope == MF_SCOPE_STEP && search->settings.global_batch < 1)
        return mf_error_set(err, MF_INVALID,
            "the global batch is not known; give --global-batch, in "
            "sequences an optimizer step");
    worker = calloc((size_t)threads, sizeof *worker);
    if (!worker) {
        mf_error_set(err, MF_FAILED, "out of memory");
        goto out;
    }
    if (divisors_fill(search->world, &s.world, err) ||
        workers_run(&s, worker, threads, err) ||
        workers_merge(search, worker, threads, plan, err) ||
        search_fill(worker[0].pricer, plan, err))
        goto out;
    plan->elapsed_s = now_s() - start;
    rc = plan->entries ? 0 : search_none(plan, err);
out:
    for (int i = 0; worker && i < threads; i++)
        worker_down(&worker[i]);
    free(worker);
    free(s.world.value);
    return rc;
}
