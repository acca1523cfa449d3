/* SPDX-License-Identifier: BSD-3-Clause
 * Prices layouts: settings that are auto are tried, the best that fits wins.
 */
#include "planner/cost_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHOICES 16

#define CLUSTER_NOTES_MAX 6

struct mf_pricer {
    const struct mf_model *model;
    const struct mf_cluster *cluster;
    enum mf_scope scope;
    int64_t world;
    struct mf_coefficients set;
    struct mf_places *places;
    struct mf_cost_rates rates;
    struct mf_shares shares;
    double gini, alpha; /* of the last settings */
    int64_t seq;
    double token_flops; /* of the last settings */
    bool assumed;       /* a figure of the cluster is */
    struct mf_stage_memory stage[MF_STAGES_MAX]; /* of the trial */
};

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
    pricer->gini = -1;
    pricer->places = mf_places_create(cluster, world, err);
    if (!pricer->places) {
        mf_pricer_free(pricer);
        return NULL;
    }
    mf_shares_fill(model, &pricer->shares);
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
    free(pricer);
}

static int case_find_places(
    mf_pricer *pricer, struct mf_case *c, struct mf_error *err)
{
    static const enum mf_group_kind used[] = {MF_GROUP_TP, MF_GROUP_CP,
        MF_GROUP_PP, MF_GROUP_DP_CP, MF_GROUP_TP_DP_CP, MF_GROUP_EP,
        MF_GROUP_ETP, MF_GROUP_EDP, MF_GROUP_ETP_EP};

    for (size_t i = 0; i < sizeof used / sizeof *used; i++) {
        struct mf_digits digits;

        mf_group_digits(c->layout, used[i], &digits);
        c->place[used[i]] = mf_places_find(pricer->places, &digits);
        if (!c->place[used[i]])
            return mf_error_set(err, MF_FAILED, "out of memory");
    }
    return 0;
}

/* What follows from layout and settings together. */
static void case_settle(const mf_pricer *pricer, struct mf_case *c)
{
    const struct mf_layout *l = c->layout;
    const struct mf_settings *s = c->settings;
    double k = (double)c->model->topk, limit = s->capacity_factor, hot;

    c->micro_batches = 1;
    if (s->global_batch > 0)
        c->micro_batches = s->global_batch / (s->micro_batch * l->dp);
    c->wide_tokens = (double)s->micro_batch * (double)s->seq / (double)l->cp;
    c->tokens = c->wide_tokens / (double)l->tp;
    c->sent_rows = c->tokens * k;
    hot = mf_balance_hottest(pricer->alpha, c->model->experts, c->model->topk,
        l->ep, c->tokens * (double)(l->ep * l->etp));
    if (!isnan(limit)) {
        c->sent_rows *= limit < 1 ? limit : 1;
        hot = fmin(hot, limit < 1 ? 1 : limit);
    }
    c->held_rows = c->sent_rows * hot * (double)l->etp;
    /* Ranks that share cores leave theirs to a busier one: until the hottest
     * would need more than a whole core, only the sum of all counts.
     */
    c->hot = fmax(1, hot * c->rates->share);
    c->hot = 1 + c->rates->coef[MF_COEF_HOT] * (c->hot - 1);
    c->rows = c->sent_rows * c->hot * (double)l->etp;
    c->low = s->precision != MF_BF16;
}

/* Values to try for each setting. */
struct choices {
    int64_t micro[CHOICES], vpp[CHOICES];
    enum mf_dispatcher dispatcher[CHOICES];
    enum mf_recompute recompute[CHOICES];
    int micros, vpps, dispatchers, recomputes;
};

static void choose_micro(const struct mf_settings *s, const struct mf_layout *l,
    struct choices *choices)
{
    if (s->micro_batch > 0 || s->global_batch < 1) {
        choices->micro[choices->micros++] =
            s->micro_batch > 0 ? s->micro_batch : 1;
        return;
    }
    for (int64_t b = 1; b <= 8; b *= 2)
        if (s->global_batch % (b * l->dp) == 0)
            choices->micro[choices->micros++] = b;
}

/* Chunks of whole layers, at most as many as layers. */
static void choose_vpp(const mf_pricer *pricer, const struct mf_settings *s,
    const struct mf_layout *l, struct choices *choices)
{
    int64_t layers = pricer->model->layers / l->pp;

    choices->vpp[choices->vpps++] = s->vpp > 0 ? s->vpp : 1;
    if (s->vpp > 0 || l->pp < 2 || pricer->scope == MF_SCOPE_MOE ||
        pricer->model->layers % l->pp)
        return;
    for (int64_t v = 2; v <= layers && choices->vpps < CHOICES; v++)
        if (layers % v == 0)
            choices->vpp[choices->vpps++] = v;
}

/* Libraries that send a token once: one for switches of one node, one for
 * larger NVLink domains.
 */
static void choose_dispatcher(const mf_pricer *pricer,
    const struct mf_settings *s, const struct mf_layout *l,
    struct choices *choices)
{
    bool automatic = s->dispatcher == MF_DISPATCHER_AUTO;

    choices->dispatcher[choices->dispatchers++] =
        automatic ? MF_ALLTOALL : s->dispatcher;
    if (!automatic || pricer->rates.cpu || l->ep < 2 ||
        pricer->scope == MF_SCOPE_MOE)
        return;
    choices->dispatcher[choices->dispatchers++] =
        pricer->cluster->tier[0].size > 8 ? MF_HYBRIDEP : MF_DEEPEP;
}

/* From fast to frugal: the first that fits is the best. */
static void choose_recompute(const mf_pricer *pricer,
    const struct mf_settings *s, struct choices *choices)
{
    if (s->recompute != MF_RECOMPUTE_AUTO) {
        choices->recompute[choices->recomputes++] = s->recompute;
        return;
    }
    choices->recompute[choices->recomputes++] = MF_RECOMPUTE_NONE;
    if (pricer->scope == MF_SCOPE_MOE)
        return;
    choices->recompute[choices->recomputes++] = MF_RECOMPUTE_SELECTIVE;
    choices->recompute[choices->recomputes++] = MF_RECOMPUTE_FULL;
}

static bool cost_better(const struct mf_cost *a, const struct mf_cost *b)
{
    if (a->fits != b->fits)
        return a->fits;
    return a->fits ? a->step_s < b->step_s : a->peak_bytes < b->peak_bytes;
}

/* The best so far of one layout. */
struct trial {
    mf_pricer *pricer;
    struct mf_case c;
    struct mf_settings settings, best_settings;
    struct mf_cost cost, best;
    struct mf_stage_memory *best_stage; /* [pp] */
    bool any;
    int64_t priced, bounded;
};

static void trial_price(struct trial *trial)
{
    mf_pricer *pricer = trial->pricer;

    if (trial->settings.vpp > 1 && trial->settings.global_batch > 0 &&
        trial->settings.global_batch /
            (trial->settings.micro_batch * trial->c.layout->dp) %
            trial->c.layout->pp) {
        trial->cost.fits = false;
        trial->bounded++;
        return;
    }
    case_settle(pricer, &trial->c);
    trial->cost = (struct mf_cost){.stage = pricer->stage};
    if (pricer->scope == MF_SCOPE_MOE)
        mf_step_price_moe(&trial->c, &trial->cost);
    else
        mf_step_price(&trial->c, &trial->cost);
    trial->priced++;
    if (trial->any && !cost_better(&trial->cost, &trial->best))
        return;
    trial->any = true;
    trial->best = trial->cost;
    trial->best_settings = trial->settings;
    memcpy(trial->best_stage, pricer->stage,
        (size_t)trial->c.layout->pp * sizeof *pricer->stage);
}

static void trial_recompute(struct trial *trial, const struct choices *choices)
{
    for (int i = 0; i < choices->recomputes; i++) {
        trial->settings.recompute = choices->recompute[i];
        trial_price(trial);
        if (trial->cost.fits) {
            trial->bounded += choices->recomputes - i - 1;
            return;
        }
    }
}

static void trial_all(struct trial *trial, const struct choices *choices)
{
    for (int b = 0; b < choices->micros; b++)
        for (int v = 0; v < choices->vpps; v++)
            for (int d = 0; d < choices->dispatchers; d++) {
                trial->settings.micro_batch = choices->micro[b];
                trial->settings.vpp = choices->vpp[v];
                trial->settings.dispatcher = choices->dispatcher[d];
                trial_recompute(trial, choices);
            }
}

static void pricer_remember(
    mf_pricer *pricer, const struct mf_settings *settings)
{
    if (pricer->gini != settings->imbalance) {
        pricer->gini = settings->imbalance;
        pricer->alpha = mf_balance_alpha(pricer->gini);
    }
    if (pricer->seq != settings->seq) {
        pricer->seq = settings->seq;
        pricer->token_flops =
            pricer->scope == MF_SCOPE_MOE
                ? mf_flops_token_moe(pricer->model)
                : mf_flops_token(pricer->model, settings->seq);
    }
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

int mf_pricer_price(mf_pricer *pricer, struct mf_plan_entry *entry,
    int64_t *priced, int64_t *bounded, struct mf_error *err)
{
    struct choices choices = {0};
    struct trial trial = {.pricer = pricer, .settings = entry->settings};

    if (mf_cost_check(pricer->model, &entry->layout, &entry->settings,
            pricer->scope, err))
        return -1;
    pricer_remember(pricer, &entry->settings);
    trial.c = (struct mf_case){.model = pricer->model,
        .rates = &pricer->rates,
        .shares = &pricer->shares,
        .layout = &entry->layout,
        .settings = &trial.settings,
        .token_flops = pricer->token_flops};
    if (case_find_places(pricer, &trial.c, err))
        return -1;
    trial.best_stage =
        calloc((size_t)entry->layout.pp, sizeof *trial.best_stage);
    if (!trial.best_stage)
        return mf_error_set(err, MF_FAILED, "out of memory");
    choose_micro(&entry->settings, &entry->layout, &choices);
    choose_vpp(pricer, &entry->settings, &entry->layout, &choices);
    choose_dispatcher(pricer, &entry->settings, &entry->layout, &choices);
    choose_recompute(pricer, &entry->settings, &choices);
    if (trial.settings.graphs == MF_GRAPHS_AUTO)
        trial.settings.graphs =
            pricer->rates.blackwell ? MF_GRAPHS_PARTIAL : MF_GRAPHS_NONE;
    trial_all(&trial, &choices);
    if (cost_check_finite(pricer, &trial.best, err)) {
        free(trial.best_stage);
        return -1;
    }
    entry->settings = trial.best_settings;
    entry->cost = trial.best;
    entry->cost.stage = trial.best_stage;
    trial.settings = trial.best_settings;
    case_settle(pricer, &trial.c);
    cost_fill_interval(pricer, &trial.settings, &trial.c, &entry->cost);
    if (priced)
        *priced += trial.priced;
    if (bounded)
        *bounded += trial.bounded;
    return 0;
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
            "memory: peak %.1f GiB + 4 %% (allocator) + 1.5 GiB (driver, NCCL) "
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
