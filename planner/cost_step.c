/* SPDX-License-Identifier: BSD-3-Clause
 * Seconds of an optimizer step: the slowest stage's micro batches, the fill
 * and drain of the pipeline, gradients and optimizer.
 */
#include "planner/cost_parts.h"

#include <math.h>
#include <stdlib.h>

#define FW MF_FORWARD
#define BW MF_BACKWARD

static const struct {
    const char *name;
    int phase; /* of the layer, -1: none */
    const char *limit;
} part_table[MF_PART_IDS] = {
    [MF_PART_ATTENTION] = {"attention", -1, "attention"},
    [MF_PART_CP] = {"context_parallel", -1, "context_parallel"},
    [MF_PART_TP] = {"tensor_parallel", -1, "tensor_parallel"},
    [MF_PART_NORM] = {"norm", -1, "memory_passes"},
    [MF_PART_DENSE] = {"dense_mlp", -1, "dense_mlp"},
    [MF_PART_ROUTE] = {"route", MF_PHASE_ROUTE, "route"},
    [MF_PART_PERMUTE] = {"permute", MF_PHASE_PERMUTE, "memory_passes"},
    [MF_PART_DISPATCH] = {"dispatch", MF_PHASE_DISPATCH, "dispatch"},
    [MF_PART_GATHER] = {"gather", MF_PHASE_GATHER, "dispatch"},
    [MF_PART_EXPERTS] = {"experts", MF_PHASE_EXPERTS, "experts"},
    [MF_PART_REDUCE] = {"reduce", MF_PHASE_REDUCE, "dispatch"},
    [MF_PART_COMBINE] = {"combine", MF_PHASE_COMBINE, "dispatch"},
    [MF_PART_UNPERMUTE] = {"unpermute", MF_PHASE_UNPERMUTE, "memory_passes"},
    [MF_PART_SHARED] = {"shared", MF_PHASE_SHARED, "shared"},
    [MF_PART_EMBEDDING] = {"embedding", -1, "logits"},
    [MF_PART_LOGITS] = {"logits", -1, "logits"},
    [MF_PART_RECOMPUTE] = {"recompute", -1, "recompute"},
    [MF_PART_LAUNCH] = {"launch", -1, "launch"},
    [MF_PART_STAGE_SEND] = {"stage_send", -1, "stage_send"},
    [MF_PART_BUBBLE] = {"bubble", -1, "bubble"},
    [MF_PART_GRAD_EXPERT] = {"grad_reduce_expert", -1, "grad_reduce"},
    [MF_PART_GRAD_DENSE] = {"grad_reduce_dense", -1, "grad_reduce"},
    [MF_PART_OPTIMIZER] = {"optimizer", -1, "optimizer"},
};

/* Logits, their softmax in fp32 over the vocabulary, and the gather that a
 * sequence parallel output layer needs.
 */
static double logits_forward(const struct mf_case *c, double *gather)
{
    double v = (double)c->model->vocab / (double)c->layout->tp;
    double h = (double)c->model->hidden;

    *gather = mf_time_gather(c->rates, c->place[MF_GROUP_TP],
        c->wide_tokens * h * c->rates->element_bytes, MF_COEF_EXCHANGE);
    return mf_time_gemm(c->rates, c->wide_tokens, v, h, false) +
           mf_time_memory(c->rates, 2 * 4 * c->wide_tokens * v);
}

/* What first and last stage do besides layers. */
static void blocks_fill_ends(
    const struct mf_case *c, const struct mf_kinds *kinds, struct mf_blocks *b)
{
    const struct mf_model *m = c->model;
    double h = (double)m->hidden, mtp = (double)m->mtp_layers, gather;
    double bytes = 2 * c->wide_tokens * h * c->rates->element_bytes;
    double logits = logits_forward(c, &gather);
    struct mf_work *first = &b->ends[0], *last = &b->ends[1];

    *first = *last = (struct mf_work){0};
    first->part[MF_PART_EMBEDDING][FW] = mf_time_memory(c->rates, bytes);
    first->part[MF_PART_EMBEDDING][BW] = mf_time_memory(c->rates, 2 * bytes);
    last->part[MF_PART_LOGITS][FW] = (1 + mtp) * logits;
    last->part[MF_PART_LOGITS][BW] = (1 + mtp) * 2 * logits;
    last->part[MF_PART_TP][FW] = (1 + mtp) * gather;
    last->part[MF_PART_TP][BW] = (1 + mtp) * gather;
    if (m->mtp_layers > 0) {
        double project = mf_time_gemm(
            c->rates, c->wide_tokens, h / (double)c->layout->tp, 2 * h, c->low);

        mf_work_add(last, &b->layer[kinds->mtp], mtp);
        last->part[MF_PART_DENSE][FW] += mtp * project;
        last->part[MF_PART_DENSE][BW] += mtp * 2 * project;
    }
}

void mf_base_fill(
    const struct mf_case *c, const struct mf_kinds *kinds, struct mf_base *out)
{
    out->seconds = 0;
    for (int i = 0; i < kinds->count; i++) {
        mf_work_base(c, kinds->kind[i], &out->layer[i]);
        for (int d = 0; d < MF_DIRECTIONS; d++)
            out->seconds += kinds->layers[i] *
                            mf_work_sum(&out->layer[i], (enum mf_direction)d);
    }
}

void mf_blocks_fill(const struct mf_case *c, const struct mf_kinds *kinds,
    const struct mf_base *base, struct mf_blocks *out)
{
    for (int i = 0; i < kinds->count; i++) {
        out->layer[i] = base->layer[i];
        mf_work_finish(c, kinds->kind[i], &out->layer[i]);
        for (int d = 0; d < MF_DIRECTIONS; d++)
            out->seconds[i][d] =
                mf_work_sum(&out->layer[i], (enum mf_direction)d);
    }
    blocks_fill_ends(c, kinds, out);
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < MF_DIRECTIONS; d++)
            out->end_s[i][d] = mf_work_sum(&out->ends[i], (enum mf_direction)d);
    out->send_s = mf_time_send(c->rates, c->place[MF_GROUP_PP],
        c->tokens * (double)c->model->hidden * c->rates->element_bytes);
    mf_live_fill(c, kinds, &out->live);
}

/* Seconds of a stage and micro batch, parts apart. */
static void stage_work(const struct mf_kinds *kinds,
    const struct mf_blocks *blocks, const struct mf_class *class,
    struct mf_work *work)
{
    *work = (struct mf_work){0};
    for (int i = 0; i < kinds->count; i++)
        if (class->times[i] > 0)
            mf_work_add(work, &blocks->layer[i], class->times[i]);
    if (class->stage.first)
        mf_work_add(work, &blocks->ends[0], 1);
    if (class->stage.last)
        mf_work_add(work, &blocks->ends[1], 1);
}

/* A reduction of SECONDS that may hide under WINDOW seconds of compute shows
 * what is longer, at the least the last bucket: one layer's.
 */
static double shown(double seconds, double window, int64_t layers)
{
    double tail = seconds / (double)(layers > 1 ? layers : 1);
    double rest = seconds - 0.9 * window;

    return rest > tail ? rest : tail;
}

struct reduction {
    double reduce_s, gather_s;
};

/* Gradients are summed in fp32 (in bf16 with full shards), parameters come
 * back in bf16; an optimizer that is not sharded sums with an all-reduce.
 */
static struct reduction reduction_of(
    const struct mf_case *c, enum mf_group_kind kind, double params)
{
    const struct mf_place *place = c->place[kind];
    double wide = c->settings->shard == MF_SHARD_FULL ? 2 : 4;
    struct reduction r = {0};

    if (params <= 0 || place->outer < 0)
        return r;
    r.reduce_s = mf_time_gather(c->rates, place, wide * params, MF_COEF_REDUCE);
    r.gather_s = mf_time_gather(c->rates, place, 2 * params, MF_COEF_REDUCE);
    if (c->settings->shard == MF_SHARD_NONE) {
        r.reduce_s *= 2;
        r.gather_s = 0;
    }
    return r;
}

/* Adam reads and writes three fp32 figures, reads a gradient and writes a
 * bf16 parameter: 30 bytes each; and the gradient norm is summed.
 */
static double optimizer_seconds(
    const struct mf_case *c, const struct mf_holding *held)
{
    double dense = held->sharded + held->replicated, experts = held->experts;

    if (c->settings->shard != MF_SHARD_NONE) {
        dense /= (double)(c->layout->dp * c->layout->cp);
        experts /= (double)c->layout->edp;
    }
    return mf_time_memory(c->rates, 30 * (dense + experts)) +
           2 * mf_time_gather(
                   c->rates, c->place[MF_GROUP_TP_DP_CP], 64, MF_COEF_REDUCE);
}

void mf_loads_fill(const struct mf_case *c, const struct mf_schedule *schedule,
    struct mf_load *load)
{
    for (int i = 0; i < schedule->classes; i++) {
        const struct mf_stage *stage = &schedule->class[i].stage;
        struct mf_holding held;
        struct reduction dense, expert;

        mf_holding_of(c, stage, &held);
        mf_memory_of_static(c, stage, &held, &load[i].memory);
        dense = reduction_of(c, MF_GROUP_DP_CP, held.sharded + held.replicated);
        expert = reduction_of(c, MF_GROUP_EDP, held.experts);
        load[i].dense_reduce_s = dense.reduce_s;
        load[i].dense_gather_s = dense.gather_s;
        load[i].expert_reduce_s = expert.reduce_s;
        load[i].expert_gather_s = expert.gather_s;
        load[i].optimizer_s = optimizer_seconds(c, &held);
    }
}

/* Seconds of one class and micro batch, and of its gradients and parameters on
 * the wire: ALL of them, those that show, and the dense parameters' share.
 */
struct stage_time {
    double forward, backward, hidden;
    double all, seen, dense;
};

static void stage_gradients(const struct mf_case *c, const struct mf_load *load,
    const struct mf_class *class, struct stage_time *t)
{
    double reduce = load->dense_reduce_s + load->expert_reduce_s;
    double gather = load->dense_gather_s + load->expert_gather_s;
    int64_t layers = class->stage.layers;

    t->all = t->seen = t->dense = 0;
    if (reduce + gather <= 0)
        return;
    t->dense =
        (load->dense_reduce_s + load->dense_gather_s) / (reduce + gather);
    if (c->settings->shard == MF_SHARD_FULL) {
        gather = 2 * gather / c->rates->coef[MF_COEF_GATHERED];
        reduce /= c->rates->coef[MF_COEF_GATHERED];
        t->seen = shown(reduce + gather, t->forward + t->backward, layers);
    } else {
        t->seen = shown(reduce, t->backward, layers) +
                  shown(gather, t->forward, layers);
    }
    t->all = reduce + gather;
}

static void stage_seconds(const struct mf_kinds *kinds,
    const struct mf_blocks *b, const struct mf_class *class,
    struct stage_time *t)
{
    *t = (struct stage_time){0};
    for (int i = 0; i < kinds->count; i++) {
        t->forward += class->times[i] * b->seconds[i][FW];
        t->backward += class->times[i] * b->seconds[i][BW];
        t->hidden += class->times[i] * b->layer[i].hidden_s;
    }
    for (int i = 0; i < 2; i++)
        if (i ? class->stage.last : class->stage.first) {
            t->forward += b->end_s[i][FW];
            t->backward += b->end_s[i][BW];
            t->hidden += b->ends[i].hidden_s;
        }
}

/* All micro batches pass the slowest stage; what the other stages take once is
 * the fill and drain, 1/v of it when v chunks interleave; and when the micro
 * batches are no multiple of pp, each round but one waits for the rest.
 */
static void core_pipeline(
    const struct mf_case *c, double sum, double send, struct mf_core *core)
{
    double m = (double)c->micro_batches, v = (double)c->settings->vpp;
    int64_t p = c->layout->pp, odd = c->micro_batches % p;

    core->bubble_s = (sum - core->stage_s) / v;
    core->send_s = 0;
    if (c->settings->vpp > 1 && odd)
        core->bubble_s += (v - 1) * (double)(p - odd) * core->stage_s / v;
    if (p < 2)
        return;
    core->send_s = 2 * (double)(p - 1) * send;
    if (c->settings->vpp > 1)
        core->hidden_s += 2 * m * v * send;
    else
        core->send_s += 2 * m * send;
}

/* A larger machine waits more often for somebody; and a host has work that
 * comes once a step.
 */
static double straggle_seconds(const struct mf_case *c, double sum)
{
    return c->rates->coef[MF_COEF_STEP_S] + c->straggle * sum;
}

static void core_memory(const struct mf_case *c, const struct mf_kinds *kinds,
    const struct mf_blocks *blocks, const struct mf_schedule *schedule,
    const struct mf_load *load, struct mf_core *core)
{
    core->fullest = 0;
    core->peak_bytes = 0;
    for (int i = 0; i < schedule->classes; i++) {
        const struct mf_class *class = &schedule->class[i];
        struct mf_memory memory = load[i].memory;

        mf_memory_add_live(
            c, kinds, &blocks->live, class, class->index, &memory);
        if (i == 0 || memory.peak_bytes > core->peak_bytes) {
            core->peak_bytes = memory.peak_bytes;
            core->fullest = i;
        }
    }
}

double mf_step_peak(const struct mf_case *c, const struct mf_kinds *kinds,
    const struct mf_blocks *blocks, const struct mf_schedule *schedule,
    const struct mf_load *load)
{
    struct mf_core core;

    core_memory(c, kinds, blocks, schedule, load, &core);
    return core.peak_bytes;
}

double mf_step_least(const struct mf_case *c, const struct mf_kinds *kinds,
    const struct mf_blocks *blocks, const struct mf_schedule *schedule)
{
    double sum = 0;

    for (int i = 0; i < schedule->classes; i++) {
        struct stage_time t;

        stage_seconds(kinds, blocks, &schedule->class[i], &t);
        sum += (double)schedule->class[i].count * (t.forward + t.backward);
    }
    /* A hair less, for the order of additions. */
    return (1 - 1e-9) * (double)c->micro_batches * sum / (double)c->layout->pp;
}

void mf_step_core(const struct mf_case *c, const struct mf_kinds *kinds,
    const struct mf_blocks *blocks, const struct mf_schedule *schedule,
    const struct mf_load *load, struct mf_core *core)
{
    /* Full shards are gathered for each pass of each micro batch; but once a
     * step in a pipeline, where passes of different micro batches alternate.
     */
    bool full = c->settings->shard == MF_SHARD_FULL && c->layout->pp == 1;
    double m = (double)c->micro_batches, sum = 0, longest = 0, shards;
    struct stage_time t, slowest = {0};

    core->slowest = 0;
    for (int i = 0; i < schedule->classes; i++) {
        double whole;

        stage_seconds(kinds, blocks, &schedule->class[i], &t);
        stage_gradients(c, &load[i], &schedule->class[i], &t);
        whole = t.forward + t.backward;
        sum += (double)schedule->class[i].count * whole;
        /* Gathering often may make another stage the slowest. */
        whole += full ? t.seen : 0;
        if (whole > longest) {
            longest = whole;
            core->slowest = i;
            slowest = t;
        }
    }
    core->stage_s = slowest.forward + slowest.backward;
    shards = full ? m : 1;
    core->hidden_s = m * slowest.hidden + shards * (slowest.all - slowest.seen);
    core_pipeline(c, sum, blocks->send_s, core);
    core->dense_s = shards * slowest.seen * slowest.dense;
    core->expert_s = shards * slowest.seen * (1 - slowest.dense);
    core->optimizer_s = load[core->slowest].optimizer_s;
    core->step_s = m * core->stage_s + core->bubble_s + core->send_s +
                   core->dense_s + core->expert_s + core->optimizer_s;
    core->launch_s = straggle_seconds(c, core->step_s);
    core->step_s += core->launch_s;
    core_memory(c, kinds, blocks, schedule, load, core);
}

static void cost_fill_memory(struct mf_cost *cost, const struct mf_memory *m)
{
    cost->memory.params = m->params;
    cost->memory.grads = m->grads;
    cost->memory.optimizer = m->optimizer;
    cost->memory.activations = m->activations;
    cost->memory.buffers = m->buffers;
    cost->memory.total = m->peak_bytes;
    cost->static_bytes = m->static_bytes;
    cost->peak_bytes = m->peak_bytes;
}

/* The stage that needs most is the one that is shown. */
static void cost_fill_stages(const struct mf_case *c,
    const struct mf_kinds *kinds, const struct mf_blocks *blocks,
    const struct mf_schedule *schedule, const struct mf_load *load,
    struct mf_cost *cost)
{
    for (int64_t i = 0; i < c->layout->pp; i++) {
        int k = mf_schedule_class(schedule, c->model, i);
        struct mf_memory memory = load[k].memory;

        mf_memory_add_live(
            c, kinds, &blocks->live, &schedule->class[k], i, &memory);
        cost->stage[i] =
            (struct mf_stage_memory){memory.static_bytes, memory.peak_bytes};
        if (i == 0 || memory.peak_bytes > cost->peak_bytes)
            cost_fill_memory(cost, &memory);
    }
}

static const char *limit_of(const double part[MF_PART_IDS])
{
    const char *limit = "experts";
    double most = 0;

    for (int i = 0; i < MF_PART_IDS; i++) {
        double sum = 0;

        for (int j = 0; j < MF_PART_IDS; j++)
            if (part_table[j].limit == part_table[i].limit)
                sum += part[j];
        if (sum > most) {
            most = sum;
            limit = part_table[i].limit;
        }
    }
    return limit;
}

/* The sum of the parts is the step, by construction. */
static void cost_fill_parts(
    struct mf_cost *cost, const double part[MF_PART_IDS])
{
    cost->parts = 0;
    cost->step_s = 0;
    for (int i = 0; i < MF_PART_IDS; i++) {
        if (part[i] <= 0)
            continue;
        cost->part[cost->parts++] =
            (struct mf_part){part_table[i].name, part[i]};
        cost->step_s += part[i];
    }
    cost->limit = cost->fits ? limit_of(part) : "memory";
}

/* A phase that this layout does not execute is not known, rather than 0. */
static bool phase_runs(const struct mf_case *c, int phase)
{
    const struct mf_layout *l = c->layout;

    if (phase == MF_PHASE_SHARED)
        return c->model->shared_ffn > 0;
    if (phase == MF_PHASE_GATHER || phase == MF_PHASE_REDUCE)
        return l->etp > 1;
    if (phase == MF_PHASE_DISPATCH || phase == MF_PHASE_COMBINE)
        return l->ep > 1;
    return true;
}

static void cost_fill_layer(
    const struct mf_case *c, const struct mf_work *work, struct mf_cost *cost)
{
    for (int i = 0; i < MF_PHASES; i++)
        for (int d = 0; d < MF_DIRECTIONS; d++)
            cost->phase_s[i][d] = NAN;
    cost->layer_forward_s = cost->layer_backward_s = NAN;
    if (!work)
        return;
    cost->layer_forward_s = mf_work_sum(work, FW);
    cost->layer_backward_s = mf_work_sum(work, BW);
    for (int i = 0; i < MF_PART_IDS; i++)
        if (part_table[i].phase >= 0 && phase_runs(c, part_table[i].phase))
            for (int d = 0; d < MF_DIRECTIONS; d++)
                cost->phase_s[part_table[i].phase][d] = work->part[i][d];
}

static void step_layer_phases(const struct mf_case *c,
    const struct mf_core *core, double send, struct mf_cost *cost)
{
    struct mf_work work;

    if (c->shares->moe)
        mf_work_moe(c, &work);
    cost_fill_layer(c, c->shares->moe ? &work : NULL, cost);
    if (c->layout->pp > 1) {
        cost->phase_s[MF_PHASE_STAGE_SEND][FW] = send;
        cost->phase_s[MF_PHASE_STAGE_SEND][BW] = send;
    }
    cost->phase_s[MF_PHASE_GRAD_REDUCE_EXPERT][BW] = core->expert_s;
    cost->phase_s[MF_PHASE_GRAD_REDUCE_DENSE][BW] = core->dense_s;
    cost->phase_s[MF_PHASE_OPTIMIZER][BW] = core->optimizer_s;
}

static void cost_fill_rates(
    const struct mf_case *c, double tokens, struct mf_cost *cost)
{
    double world = (double)mf_layout_world(c->layout);
    double rate = c->token_flops * tokens / (cost->step_s * world);

    cost->tokens_per_s_per_gpu = tokens / (cost->step_s * world);
    cost->tflops_per_gpu = rate / 1e12;
    cost->mfu = rate / c->rates->peak_flops;
}

static void core_book(const struct mf_case *c, const struct mf_core *core,
    const struct mf_work *work, double part[MF_PART_IDS])
{
    for (int i = 0; i < MF_PART_IDS; i++)
        part[i] =
            (double)c->micro_batches * (work->part[i][FW] + work->part[i][BW]);
    part[MF_PART_BUBBLE] = core->bubble_s;
    part[MF_PART_STAGE_SEND] = core->send_s;
    part[MF_PART_GRAD_DENSE] = core->dense_s;
    part[MF_PART_GRAD_EXPERT] = core->expert_s;
    part[MF_PART_OPTIMIZER] = core->optimizer_s;
    part[MF_PART_LAUNCH] += core->launch_s;
}

int mf_step_price(
    const struct mf_case *c, const struct mf_kinds *kinds, struct mf_cost *cost)
{
    const struct mf_settings *s = c->settings;
    double part[MF_PART_IDS];
    struct mf_schedule schedule = {0};
    struct mf_load *load = NULL;
    struct mf_blocks blocks;
    struct mf_base base;
    struct mf_core core;
    struct mf_work work;
    int rc = -1;

    if (mf_schedule_fill(c->model, kinds, c->layout->pp, s->vpp,
            (struct mf_split){s->first_layers, s->last_layers}, &schedule))
        goto out;
    load = malloc((size_t)schedule.classes * sizeof *load);
    if (!load)
        goto out;
    mf_base_fill(c, kinds, &base);
    mf_blocks_fill(c, kinds, &base, &blocks);
    mf_loads_fill(c, &schedule, load);
    mf_step_core(c, kinds, &blocks, &schedule, load, &core);
    stage_work(kinds, &blocks, &schedule.class[core.slowest], &work);
    core_book(c, &core, &work, part);
    cost_fill_stages(c, kinds, &blocks, &schedule, load, cost);
    cost->fits = mf_memory_fits(c->rates, core.peak_bytes);
    cost_fill_parts(cost, part);
    cost->step_s = core.step_s;
    cost->hidden_s = core.hidden_s;
    cost_fill_rates(c, (double)s->global_batch * (double)s->seq, cost);
    step_layer_phases(c, &core, blocks.send_s, cost);
    rc = 0;
out:
    free(load);
    mf_schedule_free(&schedule);
    return rc;
}

/* Expert gradients are summed over EDP after the last micro batch, the
 * router's over the stage: nothing is hidden, as in the runtime.
 */
static void moe_gradients(
    const struct mf_case *c, double part[MF_PART_IDS], struct mf_cost *cost)
{
    const struct mf_model *m = c->model;
    double w = c->rates->element_bytes;
    double held = (double)m->experts * (double)mf_model_expert_params(m) /
                  (double)(c->layout->etp * c->layout->ep);
    double router = (double)m->experts * (double)m->hidden;

    part[MF_PART_GRAD_EXPERT] =
        2 * mf_time_gather(
                c->rates, c->place[MF_GROUP_EDP], w * held, MF_COEF_REDUCE);
    cost->phase_s[MF_PHASE_GRAD_REDUCE_EXPERT][BW] = part[MF_PART_GRAD_EXPERT];
    cost->phase_s[MF_PHASE_GRAD_REDUCE_DENSE][BW] =
        2 * mf_time_gather(c->rates, c->place[MF_GROUP_TP_DP_CP], w * router,
                MF_COEF_REDUCE);
}

void mf_step_price_moe(const struct mf_case *c, struct mf_cost *cost)
{
    double part[MF_PART_IDS] = {0}, m = (double)c->micro_batches;
    double tokens = m * (double)(c->settings->micro_batch * c->layout->dp) *
                    (double)c->settings->seq;
    struct mf_memory memory;
    struct mf_work work;

    mf_work_moe(c, &work);
    cost_fill_layer(c, &work, cost);
    for (int i = 0; i < MF_PART_IDS; i++)
        part[i] = m * (work.part[i][FW] + work.part[i][BW]);
    moe_gradients(c, part, cost);
    mf_memory_of_layer(c, &memory);
    cost_fill_memory(cost, &memory);
    for (int64_t i = 0; i < c->layout->pp; i++)
        cost->stage[i] =
            (struct mf_stage_memory){memory.static_bytes, memory.peak_bytes};
    cost->fits = mf_memory_fits(c->rates, cost->peak_bytes);
    cost_fill_parts(cost, part);
    cost->hidden_s = work.hidden_s * m;
    /* Each stage runs a layer of its own. */
    cost_fill_rates(c, tokens * (double)c->layout->pp, cost);
}
