/* SPDX-License-Identifier: BSD-3-Clause
 * Prices layouts: settings that are auto are tried, the best that fits wins.
 */
#include "planner/cost_pricer.h"
#include "planner/published.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CLUSTER_NOTES_MAX 6

static int cluster_check(const struct mf_cluster *cluster, struct mf_error *err)
{
    const struct mf_gpu *gpu = &cluster->gpu;

    if (!(gpu->bf16_flops > 0) || !(gpu->hbm_bytes_per_s > 0))
        return mf_error_set(err, MF_INVALID,
            "cluster %s does not say how fast its devices are; add a source "
            "that does, such as --cluster dgx-h100",
            cluster->name);
    if (cluster->tiers < 1)
        return mf_error_set(err, MF_INVALID,
            "cluster %s does not say how its devices are connected; add a "
            "source that does, such as --cluster dgx-h100",
            cluster->name);
    for (int t = 0; t < cluster->tiers; t++)
        if (!(cluster->tier[t].bytes_per_s > 0) ||
            !(cluster->tier[t].latency_s >= 0))
            return mf_error_set(err, MF_INVALID,
                "cluster %s: rate or latency of tier %s is not known",
                cluster->name, cluster->tier[t].name);
    return 0;
}

/* What published runs add, which are whole steps. */
static int pricer_publish(mf_pricer *pricer, struct mf_error *err)
{
    bool failed = false;

    if (pricer->scope == MF_SCOPE_STEP && !pricer->cluster->cpu_ranks)
        pricer->published = mf_published_create(
            pricer->model, pricer->cluster, &pricer->set, &failed);
    return failed ? mf_error_set(err, MF_FAILED, "out of memory") : 0;
}

mf_pricer *mf_pricer_create(const struct mf_model *model,
    const struct mf_cluster *cluster, int64_t world, enum mf_scope scope,
    const struct mf_coefficients *set, struct mf_error *err)
{
    mf_pricer *pricer;

    if (cluster_check(cluster, err))
        return NULL;
    if (world > mf_cluster_devices(cluster)) {
        mf_error_set(err, MF_NO,
            "world %" PRId64 " is larger than cluster %s, which has %" PRId64
            " devices up",
            world, cluster->name, mf_cluster_devices(cluster));
        return NULL;
    }
    pricer = calloc(1, sizeof *pricer);
    if (!pricer) {
        mf_error_set(err, MF_FAILED, "out of memory");
        return NULL;
    }
    pricer->model = model;
    pricer->cluster = cluster;
    pricer->scope = scope;
    pricer->world = world;
    pricer->set = *set;
    pricer->places = mf_places_create(cluster, world, err);
    if (!pricer->places || pricer_publish(pricer, err)) {
        mf_pricer_free(pricer);
        return NULL;
    }
    mf_shares_fill(model, &pricer->shares);
    mf_kinds_fill(model, &pricer->kinds);
    pricer->bound_s = INFINITY;
    if (world > 8)
        pricer->doublings = log2((double)world / 8);
    pricer->limits = (struct mf_limits){.dispatchers = ~0u, .recomputes = ~0u};
    mf_cost_rates_init(&pricer->rates, cluster,
        mf_places_node_ranks(pricer->places), &pricer->set);
    for (size_t i = 0; i < cluster->sources; i++)
        pricer->assumed |= cluster->source[i].how == MF_ASSUMED &&
                           strcmp(cluster->source[i].field, "node_list.state");
    return pricer;
}

void mf_pricer_use(mf_pricer *pricer, const struct mf_coefficients *set)
{
    pricer->set = *set;
    mf_pricer_forget(pricer);
    mf_cost_rates_init(&pricer->rates, pricer->cluster,
        mf_places_node_ranks(pricer->places), &pricer->set);
}

double mf_cost_token_flops(const struct mf_model *model, int64_t seq)
{
    return mf_flops_token(model, seq);
}

void mf_pricer_free(mf_pricer *pricer)
{
    if (!pricer)
        return;
    mf_places_free(pricer->places);
    mf_published_free(pricer->published);
    mf_pricer_forget(pricer);
    free(pricer->load);
    free(pricer->done);
    free(pricer->slot);
    free(pricer);
}

/* How far measured runs lie from the model: wider where it rests on figures
 * that nobody measured, on uneven loads, or on few rows an expert.
 */
static void cost_fill_interval(const mf_pricer *pricer,
    const struct mf_settings *settings, const struct mf_case *c,
    struct mf_cost *cost)
{
    double spread = pricer->rates.cpu ? 0.25 : 0.16, rows;

    rows = c->rows * (double)c->layout->ep / fmax((double)c->model->experts, 1);
    if (pricer->assumed)
        spread += 0.08;
    if (settings->imbalance > 0 && c->model->experts > 0)
        spread += 0.02;
    if (c->model->experts > 0 && rows < 256)
        spread += 0.06;
    /* Nine in ten normal variables lie within 1.645 deviations. */
    if (pricer->published)
        spread = exp(1.645 * mf_published_deviation(
                                 pricer->published, c->layout, settings)) -
                 1 + spread - 0.16;
    cost->step_s_low = cost->step_s / (1 + spread);
    cost->step_s_high = cost->step_s * (1 + spread);
}

/* Figures of a foreign cluster file or history can be beyond all reason. */
static int cost_check_finite(
    const mf_pricer *pricer, const struct mf_cost *cost, struct mf_error *err)
{
    if (isfinite(cost->step_s) && cost->step_s > 0 &&
        isfinite(cost->peak_bytes) && cost->peak_bytes >= 0)
        return 0;
    return mf_error_set(err, MF_INVALID,
        "the figures of cluster %s with coefficients %s give no time or memory "
        "that can be; look at them with moefold cluster and fit --list",
        pricer->cluster->name, pricer->set.name);
}

/* All seconds of COST times FACTOR. */
static void cost_scale(struct mf_cost *cost, double factor)
{
    cost->step_s = 0;
    for (int i = 0; i < cost->parts; i++) {
        cost->part[i].seconds *= factor;
        cost->step_s += cost->part[i].seconds;
    }
    cost->hidden_s *= factor;
    cost->layer_forward_s *= factor;
    cost->layer_backward_s *= factor;
    for (int i = 0; i < MF_PHASES; i++)
        for (int d = 0; d < MF_DIRECTIONS; d++)
            cost->phase_s[i][d] *= factor;
    cost->tokens_per_s_per_gpu /= factor;
    cost->tflops_per_gpu /= factor;
    cost->mfu /= factor;
}

int mf_pricer_fill(
    mf_pricer *pricer, struct mf_plan_entry *entry, struct mf_error *err)
{
    struct mf_cost *cost = &entry->cost;
    struct mf_case c;

    if (mf_pricer_case(pricer, &entry->layout, &entry->settings, &c, err))
        return -1;
    mf_case_settle(pricer, &c);
    *cost = (struct mf_cost){0};
    cost->stage = calloc((size_t)entry->layout.pp, sizeof *cost->stage);
    if (!cost->stage)
        return mf_error_set(err, MF_FAILED, "out of memory");
    if (pricer->scope == MF_SCOPE_MOE) {
        mf_step_price_moe(&c, cost);
    } else if (mf_step_price(&c, &pricer->kinds, cost)) {
        mf_cost_free(cost);
        return mf_error_set(err, MF_FAILED, "out of memory");
    }
    if (pricer->published)
        cost_scale(cost, mf_published_factor(pricer->published, &entry->layout,
                             &entry->settings));
    if (cost_check_finite(pricer, cost, err)) {
        mf_cost_free(cost);
        return -1;
    }
    cost_fill_interval(pricer, &entry->settings, &c, cost);
    return 0;
}

int mf_pricer_price(mf_pricer *pricer, struct mf_plan_entry *entry,
    int64_t *priced, int64_t *bounded, struct mf_error *err)
{
    struct mf_best best;

    if (mf_cost_check(pricer->model, &entry->layout, &entry->settings,
            pricer->scope, err) ||
        mf_pricer_best(pricer, &entry->layout, &entry->settings, &best, err))
        return -1;
    if (priced)
        *priced += best.priced;
    if (bounded)
        *bounded += best.bounded;
    entry->settings = best.settings;
    return mf_pricer_fill(pricer, entry, err);
}

/* What its readers warned of: nodes that are down, of another kind, in no
 * known domain. CPU ranks have a note of their own.
 */
static int cluster_note(const struct mf_cluster *cluster, struct mf_cost *cost,
    struct mf_error *err)
{
    for (size_t i = 0; i < CLUSTER_NOTES_MAX && cluster->warning; i++) {
        if (!cluster->warning[i] || cluster->cpu_ranks)
            return 0;
        if (mf_cost_note(cost, err, "%s", cluster->warning[i]))
            return -1;
    }
    return 0;
}

int mf_pricer_note(
    const mf_pricer *pricer, struct mf_plan_entry *entry, struct mf_error *err)
{
    struct mf_cost *cost = &entry->cost;
    double gib = 1073741824.0, device = pricer->rates.memory_bytes;

    if (cluster_note(pricer->cluster, cost, err))
        return -1;
    if (pricer->assumed &&
        mf_cost_note(cost, err,
            "a figure of cluster %s is assumed, not measured; the interval "
            "is wider for it",
            pricer->cluster->name))
        return -1;
    if (pricer->rates.share < 1 &&
        mf_cost_note(cost, err,
            "%" PRId64 " ranks share %" PRId64
            " cores: each has %.0f %% of one",
            mf_places_node_ranks(pricer->places), pricer->cluster->cores,
            100 * pricer->rates.share))
        return -1;
    if (entry->settings.capacity_factor > 0 && !pricer->rates.cpu &&
        entry->settings.dispatcher != MF_ALLTOALL &&
        entry->settings.dispatcher != MF_DEDUP &&
        mf_cost_note(cost, err,
            "a capacity factor without the alltoall dispatcher: only newer "
            "releases of Megatron-LM take it, for some dispatchers"))
        return -1;
    if (entry->settings.capacity_factor < 1 &&
        mf_cost_note(cost, err,
            "capacity factor %g drops at least %.3g %% of the rows; MFU counts "
            "them as computed",
            entry->settings.capacity_factor,
            100 * (1 - entry->settings.capacity_factor)))
        return -1;
    if (isnan(device))
        return mf_cost_note(
            cost, err, "the devices' memory is not known: fits is not checked");
    if (!pricer->rates.cpu &&
        mf_cost_note(cost, err,
            "memory: peak %.1f GiB + 1 %% (allocator) + 1 GiB (driver, NCCL) "
            "against %.1f GiB",
            cost->peak_bytes / gib, device / gib))
        return -1;
    if (entry->settings.imbalance <= 0 && pricer->model->experts > 0)
        return mf_cost_note(cost, err,
            "imbalance 0 is forced balance; natural routing was 8 to 20 %% "
            "slower where both were measured");
    return 0;
}

int mf_cost_predict(const struct mf_model *model,
    const struct mf_cluster *cluster, enum mf_scope scope,
    const struct mf_coefficients *set, struct mf_plan_entry *entry,
    struct mf_error *err)
{
    mf_pricer *pricer;
    int rc = -1;

    if (mf_cost_check(model, &entry->layout, &entry->settings, scope, err))
        return -1;
    pricer = mf_pricer_create(
        model, cluster, mf_layout_world(&entry->layout), scope, set, err);
    if (!pricer)
        return -1;
    rc = mf_pricer_price(pricer, entry, NULL, NULL, err);
    if (!rc)
        rc = mf_pricer_note(pricer, entry, err);
    mf_pricer_free(pricer);
    return rc;
}
