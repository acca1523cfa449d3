/* SPDX-License-Identifier: BSD-3-Clause
 * Tries the settings that a layout leaves open; the loop that must be fast.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/cost_pricer.h"
#include "planner/published.h"

/* ---- what a layout has, whatever its settings ---- */

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

void mf_pricer_forget(mf_pricer *pricer)
{
    for (int i = 0; i < pricer->schedules_count; i++) {
        struct mf_schedules *s = &pricer->schedules[i];

        for (int k = 0; k < s->count; k++)
            mf_schedule_free(&s->schedule[k]);
        free(s->schedule);
    }
    free(pricer->schedules);
    pricer->schedules = NULL;
    pricer->schedules_count = 0;
    memset(pricer->full, 0, sizeof pricer->full);
    pricer->remembers = false;
}

static bool figure_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool settings_same(
    const struct mf_settings *a, const struct mf_settings *b)
{
    return a->seq == b->seq && a->global_batch == b->global_batch &&
           a->micro_batch == b->micro_batch && a->vpp == b->vpp &&
           a->first_layers == b->first_layers &&
           a->last_layers == b->last_layers && a->precision == b->precision &&
           a->recompute == b->recompute && a->modules == b->modules &&
           a->dispatcher == b->dispatcher && a->shard == b->shard &&
           figure_same(a->imbalance, b->imbalance) &&
           figure_same(a->capacity_factor, b->capacity_factor) &&
           a->ep_overlap == b->ep_overlap && a->graphs == b->graphs;
}

/* Tables hold for one set of settings, open ones included. */
static void pricer_remember(mf_pricer *pricer, const struct mf_settings *s)
{
    if (pricer->remembers && settings_same(&pricer->settings, s))
        return;
    mf_pricer_forget(pricer);
    pricer->settings = *s;
    pricer->remembers = true;
    pricer->alpha = mf_balance_alpha(s->imbalance);
    pricer->token_flops = pricer->scope == MF_SCOPE_MOE
                              ? mf_flops_token_moe(pricer->model)
                              : mf_flops_token(pricer->model, s->seq);
}

int mf_pricer_case(mf_pricer *pricer, const struct mf_layout *layout,
    const struct mf_settings *settings, struct mf_case *c, struct mf_error *err)
{
    if (!pricer->remembers)
        pricer_remember(pricer, settings);
    *c = (struct mf_case){.model = pricer->model,
        .rates = &pricer->rates,
        .shares = &pricer->shares,
        .layout = layout,
        .settings = settings,
        .straggle = pricer->set.value[MF_COEF_STRAGGLE] * pricer->doublings,
        .token_flops = pricer->token_flops};
    return case_find_places(pricer, c, err);
}

void mf_case_settle(const mf_pricer *pricer, struct mf_case *c)
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

/* ---- values to try ---- */

struct choices {
    int64_t micro[MF_CHOICES];
    enum mf_dispatcher dispatcher[MF_CHOICES];
    enum mf_recompute recompute[MF_CHOICES];
    int micros, dispatchers, recomputes;
};

static void choose_micro(const mf_pricer *pricer, const struct mf_settings *s,
    const struct mf_layout *l, struct choices *choices)
{
    int64_t most = pricer->limits.max_micro_batch;

    if (s->micro_batch > 0 || s->global_batch < 1) {
        choices->micro[choices->micros++] =
            s->micro_batch > 0 ? s->micro_batch : 1;
        return;
    }
    /* Published runs with full shards behave as with micro batches of one. */
    if (s->shard == MF_SHARD_FULL && !most)
        most = 1;
    for (int64_t b = 1; b <= 16 && (!most || b <= most); b++)
        if (s->global_batch % (b * l->dp) == 0)
            choices->micro[choices->micros++] = b;
}

static void choice_dispatcher(
    const mf_pricer *pricer, enum mf_dispatcher d, struct choices *choices)
{
    if (pricer->limits.dispatchers & 1u << d)
        choices->dispatcher[choices->dispatchers++] = d;
}

/* Libraries that send a token once: one for switches of one node, one for
 * larger NVLink domains. DEDUP is moefold-run's own. A capacity factor is what
 * every release of Megatron-LM takes with alltoall alone.
 */
static void choose_dispatcher(const mf_pricer *pricer,
    const struct mf_settings *s, const struct mf_layout *l,
    struct choices *choices)
{
    if (s->dispatcher != MF_DISPATCHER_AUTO) {
        choices->dispatcher[choices->dispatchers++] = s->dispatcher;
        return;
    }
    choice_dispatcher(pricer, MF_ALLTOALL, choices);
    if (pricer->rates.cpu || l->ep < 2 || pricer->scope == MF_SCOPE_MOE ||
        s->capacity_factor > 0)
        return;
    choice_dispatcher(pricer, MF_ALLGATHER, choices);
    choice_dispatcher(pricer,
        pricer->cluster->tier[0].size > 8 ? MF_HYBRIDEP : MF_DEEPEP, choices);
}

/* From fast to frugal: the first that fits is the best. */
static void choose_recompute(const mf_pricer *pricer,
    const struct mf_settings *s, struct choices *choices)
{
    static const enum mf_recompute order[] = {
        MF_RECOMPUTE_NONE, MF_RECOMPUTE_SELECTIVE, MF_RECOMPUTE_FULL};

    if (s->recompute != MF_RECOMPUTE_AUTO) {
        choices->recompute[choices->recomputes++] = s->recompute;
        return;
    }
    for (int i = 0; i < 3; i++)
        if ((i == 0 || pricer->scope != MF_SCOPE_MOE) &&
            pricer->limits.recomputes & 1u << order[i])
            choices->recompute[choices->recomputes++] = order[i];
}

/* ---- schedules ---- */

static int schedules_add(mf_pricer *pricer, struct mf_schedules *s, int64_t vpp,
    struct mf_split split)
{
    struct mf_schedule *more =
        realloc(s->schedule, ((size_t)s->count + 1) * sizeof *more);

    if (!more)
        return -1;
    s->schedule = more;
    more += s->count;
    if (mf_schedule_fill(
            pricer->model, &pricer->kinds, s->pp, vpp, split, more))
        return -1;
    s->classes += more->classes;
    s->count++;
    return 0;
}

/* Is a split with MIDDLE layers on the other stages the even one? */
static bool split_is_even(
    int64_t layers, int64_t pp, struct mf_split split, int64_t middle)
{
    int64_t least = layers / pp, more = layers % pp;

    return split.first == least + (more > 0) && split.last == least &&
           (pp < 3 || (middle == least + (1 < more) &&
                          middle == least + (pp - 2 < more)));
}

/* Splits as Megatron-LM's options make them: the first and last stage hold no
 * more than the others, which hold the least they can or one more chunk layer.
 */
static int schedules_uneven(
    mf_pricer *pricer, struct mf_schedules *s, int64_t vpp)
{
    int64_t layers = pricer->model->layers, pp = s->pp;
    int64_t least = (layers + pp * vpp - 1) / (pp * vpp) * vpp;

    for (int64_t c = least + (pp == 2 ? vpp : 0); c <= least + vpp; c += vpp) {
        int64_t rest = layers - c * (pp - 2);

        for (int64_t f = vpp; f <= c && f + vpp <= rest; f += vpp) {
            struct mf_split split = {f, rest - f};

            if (split.last > c || split.last % vpp ||
                split_is_even(layers, pp, split, c))
                continue;
            if (schedules_add(pricer, s, vpp, split))
                return -1;
        }
    }
    return 0;
}

static int schedules_vpp(mf_pricer *pricer, const struct mf_settings *s,
    struct mf_schedules *out, int64_t vpp)
{
    int64_t chunks = out->pp * vpp;
    bool set = s->first_layers >= 0;
    struct mf_split split = {
        set ? s->first_layers : 0, set ? s->last_layers : 0};

    if (set || vpp == 1 || s->vpp > 0 || pricer->model->layers % chunks == 0)
        if (schedules_add(pricer, out, vpp, split))
            return -1;
    return !set && out->pp > 1 ? schedules_uneven(pricer, out, vpp) : 0;
}

static int schedules_fill(mf_pricer *pricer, const struct mf_settings *s,
    int64_t pp, struct mf_schedules *out)
{
    int64_t most = pricer->model->layers / pp + 1;

    *out = (struct mf_schedules){.pp = pp};
    if (s->vpp > 0)
        return schedules_vpp(pricer, s, out, s->vpp);
    if (pricer->limits.max_vpp > 0 && pricer->limits.max_vpp < most)
        most = pricer->limits.max_vpp;
    if (schedules_vpp(pricer, s, out, 1))
        return -1;
    for (int64_t v = 2; pp > 1 && v <= most; v++)
        if (s->first_layers < 0 ? pricer->model->layers % v == 0
                                : mf_split_suits(pricer->model->layers, pp, v,
                                      s->first_layers, s->last_layers))
            if (schedules_vpp(pricer, s, out, v))
                return -1;
    return 0;
}

static int pricer_make_room(mf_pricer *pricer, const struct mf_schedules *s)
{
    int need = s->classes > s->count ? s->classes : s->count;

    if (need <= pricer->loads)
        return 0;
    free(pricer->load);
    free(pricer->done);
    pricer->load = malloc((size_t)need * sizeof *pricer->load);
    pricer->done = malloc((size_t)need * sizeof *pricer->done);
    pricer->loads = pricer->load && pricer->done ? need : 0;
    return pricer->loads ? 0 : -1;
}

static const struct mf_schedules *pricer_schedules(
    mf_pricer *pricer, const struct mf_settings *s, int64_t pp)
{
    struct mf_schedules *more;
    int n = pricer->schedules_count;

    for (int i = 0; i < n; i++)
        if (pricer->schedules[i].pp == pp)
            return &pricer->schedules[i];
    more = realloc(pricer->schedules, ((size_t)n + 1) * sizeof *more);
    if (!more)
        return NULL;
    pricer->schedules = more;
    pricer->schedules_count++;
    if (schedules_fill(pricer, s, pp, &more[n]) ||
        pricer_make_room(pricer, &more[n]))
        return NULL;
    return &more[n];
}

/* ---- the loop ---- */

static size_t key_hash(const struct mf_base_key *key)
{
    uint64_t h = (uint64_t)key->tp * 0x9e3779b97f4a7c15u;

    h = (h ^ (uint64_t)key->cp) * 0xff51afd7ed558ccdu;
    h = (h ^ (uint64_t)key->etp) * 0xff51afd7ed558ccdu;
    h = (h ^ (uint64_t)key->ep) * 0xff51afd7ed558ccdu;
    h = (h ^ (uint64_t)(key->micro_batch * 8 + key->dispatcher)) *
        0xff51afd7ed558ccdu;
    return (size_t)(h >> 40) & (MF_BASE_SLOTS - 1);
}

static const struct mf_base *pricer_base(
    mf_pricer *pricer, const struct mf_case *c)
{
    const struct mf_layout *l = c->layout;
    struct mf_base_key key = {.tp = l->tp,
        .cp = l->cp,
        .etp = l->etp,
        .ep = l->ep,
        .micro_batch = c->settings->micro_batch,
        .dispatcher = c->settings->dispatcher,
        .place = {c->place[MF_GROUP_TP], c->place[MF_GROUP_CP],
            c->place[MF_GROUP_EP], c->place[MF_GROUP_ETP],
            c->place[MF_GROUP_ETP_EP]}};
    size_t i = key_hash(&key);
    struct mf_base_slot *slot = &pricer->slot[i];

    if (pricer->full[i] && !memcmp(&slot->key, &key, sizeof key))
        return &slot->base;
    mf_base_fill(c, &pricer->kinds, &slot->base);
    slot->key = key;
    pricer->full[i] = true;
    return &slot->base;
}

struct trial {
    mf_pricer *pricer;
    struct mf_case c;
    struct mf_settings settings;
    struct choices choices;
    const struct mf_schedules *schedules;
    struct mf_best *best;
    double factor; /* that published runs put on the settings under way */
    bool any;
};

static bool trial_consider(
    struct trial *trial, double step_s, double peak_bytes)
{
    struct mf_best *best = trial->best;
    bool fits = mf_memory_fits(trial->c.rates, peak_bytes);
    bool better = !trial->any;

    best->priced++;
    if (fits && trial->pricer->front)
        mf_front_add(
            trial->pricer->front, &(struct mf_point){*trial->c.layout,
                                      trial->settings, step_s, peak_bytes});
    if (trial->any && fits != best->fits)
        better = fits;
    else if (trial->any)
        better = fits ? step_s < best->step_s : peak_bytes < best->peak_bytes;
    if (better) {
        best->settings = trial->settings;
        best->step_s = step_s;
        best->peak_bytes = peak_bytes;
        best->fits = fits;
    }
    trial->any = true;
    return fits;
}

/* Interleaving needs micro batches in multiples of pp. */
static bool schedule_suits(
    const struct trial *trial, const struct mf_schedule *schedule)
{
    return schedule->vpp == 1 || trial->settings.global_batch < 1 ||
           trial->c.micro_batches % schedule->pp == 0;
}

/* What fits needs no more recomputation, which would only take time, unless
 * published runs put a smaller factor on it.
 */
static void trial_schedules(struct trial *trial, struct mf_blocks *blocks)
{
    mf_pricer *pricer = trial->pricer;
    const struct mf_load *load = pricer->load;
    struct mf_core core;

    for (int i = 0; i < trial->schedules->count; i++) {
        const struct mf_schedule *schedule = &trial->schedules->schedule[i];

        if (trial->factor >= pricer->done[i]) {
            trial->best->bounded++;
        } else if (schedule_suits(trial, schedule)) {
            trial->settings.vpp = schedule->vpp;
            trial->settings.first_layers = schedule->split.first;
            trial->settings.last_layers = schedule->split.last;
            mf_step_core(
                &trial->c, &pricer->kinds, blocks, schedule, load, &core);
            if (trial_consider(
                    trial, trial->factor * core.step_s, core.peak_bytes) &&
                !pricer->front)
                pricer->done[i] = trial->factor;
        }
        load += schedule->classes;
    }
}

/* Leave out all schedules since even LEAST seconds are too long; as long as
 * none of the layout has fit, see whether one does.
 */
static void trial_skip(
    struct trial *trial, const struct mf_blocks *blocks, double least)
{
    const struct mf_schedules *schedules = trial->schedules;
    const struct mf_load *load = trial->pricer->load;
    struct mf_best *best = trial->best;

    for (int i = 0; i < schedules->count && !best->fits; i++) {
        const struct mf_schedule *schedule = &schedules->schedule[i];

        if (schedule_suits(trial, schedule)) {
            trial->settings.vpp = schedule->vpp;
            best->fits = mf_memory_fits(
                trial->c.rates, mf_step_peak(&trial->c, &trial->pricer->kinds,
                                    blocks, schedule, load));
            best->step_s = least;
        }
        load += schedule->classes;
    }
    best->bounded += schedules->count;
    trial->any = true;
}

/* Is even the mean of all stages too long? */
static bool trial_bounded(struct trial *trial, const struct mf_blocks *blocks)
{
    double least =
        trial->factor * mf_step_least(&trial->c, &trial->pricer->kinds, blocks,
                            &trial->schedules->schedule[0]);

    if (least <= trial->pricer->bound_s)
        return false;
    trial_skip(trial, blocks, least);
    return true;
}

/* The same before recomputation is known, which only adds to a layer; EP
 * overlap is what takes from it.
 */
static bool trial_bounded_early(struct trial *trial, const struct mf_base *base)
{
    const struct mf_pricer *pricer = trial->pricer;
    double least = (1 - 1e-9) * (double)trial->c.micro_batches * base->seconds /
                   (double)trial->c.layout->pp *
                   mf_published_least(pricer->published);
    struct mf_blocks blocks;

    if (trial->settings.ep_overlap || least <= pricer->bound_s)
        return false;
    for (int i = 0; i < trial->choices.recomputes; i++) {
        trial->settings.recompute = trial->choices.recompute[i];
        if (!trial->best->fits)
            mf_live_fill(&trial->c, &pricer->kinds, &blocks.live);
        trial_skip(trial, &blocks, least);
    }
    return true;
}

static void trial_loads(struct trial *trial)
{
    struct mf_load *load = trial->pricer->load;

    for (int i = 0; i < trial->schedules->count; i++) {
        mf_loads_fill(&trial->c, &trial->schedules->schedule[i], load);
        load += trial->schedules->schedule[i].classes;
    }
}

/* All recomputations of one micro batch and dispatcher. */
static void trial_step(struct trial *trial)
{
    mf_pricer *pricer = trial->pricer;
    const struct mf_base *base = pricer_base(pricer, &trial->c);
    struct mf_blocks blocks;

    if (trial_bounded_early(trial, base))
        return;
    for (int i = 0; i < trial->schedules->count; i++)
        pricer->done[i] = INFINITY;
    for (int i = 0; i < trial->choices.recomputes; i++) {
        trial->settings.recompute = trial->choices.recompute[i];
        trial->factor = mf_published_factor(
            pricer->published, trial->c.layout, &trial->settings);
        mf_blocks_fill(&trial->c, &pricer->kinds, base, &blocks);
        if (!trial_bounded(trial, &blocks))
            trial_schedules(trial, &blocks);
    }
}

static void trial_moe(struct trial *trial)
{
    for (int i = 0; i < trial->choices.recomputes; i++) {
        struct mf_cost cost = {.stage = trial->pricer->stage};

        trial->settings.recompute = trial->choices.recompute[i];
        mf_step_price_moe(&trial->c, &cost);
        trial_consider(trial, cost.step_s, cost.peak_bytes);
    }
}

static void trial_all(struct trial *trial)
{
    const struct choices *choices = &trial->choices;
    bool loaded = trial->pricer->scope == MF_SCOPE_MOE;

    for (int b = 0; b < choices->micros; b++)
        for (int d = 0; d < choices->dispatchers; d++) {
            trial->settings.micro_batch = choices->micro[b];
            trial->settings.dispatcher = choices->dispatcher[d];
            mf_case_settle(trial->pricer, &trial->c);
            if (!loaded)
                trial_loads(trial);
            loaded = true;
            if (trial->pricer->scope == MF_SCOPE_MOE)
                trial_moe(trial);
            else
                trial_step(trial);
        }
}

static int trial_prepare(struct trial *trial, struct mf_error *err)
{
    mf_pricer *pricer = trial->pricer;
    struct mf_settings *s = &trial->settings;

    if (s->graphs == MF_GRAPHS_AUTO)
        s->graphs =
            pricer->rates.blackwell ? MF_GRAPHS_PARTIAL : MF_GRAPHS_NONE;
    if (pricer->scope == MF_SCOPE_MOE) {
        s->vpp = s->vpp > 0 ? s->vpp : 1;
        s->first_layers = s->last_layers = 0;
        return 0;
    }
    if (!pricer->slot)
        pricer->slot = malloc(MF_BASE_SLOTS * sizeof *pricer->slot);
    if (pricer->slot)
        trial->schedules = pricer_schedules(pricer, s, trial->c.layout->pp);
    if (!trial->schedules)
        return mf_error_set(err, MF_FAILED, "out of memory");
    return 0;
}

int mf_pricer_best(mf_pricer *pricer, const struct mf_layout *layout,
    const struct mf_settings *settings, struct mf_best *best,
    struct mf_error *err)
{
    struct trial trial = {
        .pricer = pricer, .settings = *settings, .best = best};

    *best = (struct mf_best){.settings = *settings};
    pricer_remember(pricer, settings);
    if (mf_pricer_case(pricer, layout, &trial.settings, &trial.c, err) ||
        trial_prepare(&trial, err))
        return -1;
    choose_micro(pricer, settings, layout, &trial.choices);
    choose_dispatcher(pricer, settings, layout, &trial.choices);
    choose_recompute(pricer, settings, &trial.choices);
    trial_all(&trial);
    if (!trial.any)
        return mf_error_set(err, MF_INVALID,
            "what is allowed leaves no setting to try; allow more");
    return 0;
}

void mf_pricer_limit(mf_pricer *pricer, const struct mf_limits *limits)
{
    mf_pricer_forget(pricer);
    pricer->limits = *limits;
}

void mf_pricer_collect(mf_pricer *pricer, struct mf_front *front)
{
    pricer->front = front;
}

void mf_pricer_bound(mf_pricer *pricer, double step_s)
{
    pricer->bound_s = step_s;
}
