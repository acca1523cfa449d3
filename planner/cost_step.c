/* SPDX-License-Identifier: BSD-3-Clause
 * Seconds of an optimizer step: the slowest stage's micro batches, the fill
 * and drain of the pipeline, gradients and optimizer.
 */
#include "planner/cost_parts.h"

#include <math.h>

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

/* Seconds under way for a whole step. */
struct step {
    const struct mf_case *c;
    struct mf_work layer[MF_MIXERS][MF_FFNS]; /* of a kind, when DONE */
    bool done[MF_MIXERS][MF_FFNS];
    struct mf_work ends[2]; /* what first and last stage do besides layers */
    double part[MF_PART_IDS];
    double hidden_s;
};

static const struct mf_work *step_layer(struct step *step, int mixer, int ffn)
{
    if (!step->done[mixer][ffn]) {
        mf_work_layer(step->c,
            (struct mf_layer_kind){(enum mf_mixer)mixer, (enum mf_ffn)ffn},
            &step->layer[mixer][ffn]);
        step->done[mixer][ffn] = true;
    }
    return &step->layer[mixer][ffn];
}

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

static void step_fill_ends(struct step *step)
{
    const struct mf_case *c = step->c;
    const struct mf_model *m = c->model;
    double h = (double)m->hidden, mtp = (double)m->mtp_layers, gather;
    double bytes = 2 * c->wide_tokens * h * c->rates->element_bytes;
    double logits = logits_forward(c, &gather);
    struct mf_work *first = &step->ends[0], *last = &step->ends[1];

    first->part[MF_PART_EMBEDDING][FW] = mf_time_memory(c->rates, bytes);
    first->part[MF_PART_EMBEDDING][BW] = mf_time_memory(c->rates, 2 * bytes);
    last->part[MF_PART_LOGITS][FW] = (1 + mtp) * logits;
    last->part[MF_PART_LOGITS][BW] = (1 + mtp) * 2 * logits;
    last->part[MF_PART_TP][FW] = (1 + mtp) * gather;
    last->part[MF_PART_TP][BW] = (1 + mtp) * gather;
    if (m->mtp_layers > 0) {
        struct mf_layer_kind kind = m->layer_kind[m->layers - 1];
        double project = mf_time_gemm(
            c->rates, c->wide_tokens, h / (double)c->layout->tp, 2 * h, c->low);

        mf_work_add(last, step_layer(step, kind.mixer, kind.ffn), mtp);
        last->part[MF_PART_DENSE][FW] += mtp * project;
        last->part[MF_PART_DENSE][BW] += mtp * 2 * project;
    }
}

static void stage_work(
    struct step *step, const struct mf_stage *stage, struct mf_work *work)
{
    *work = (struct mf_work){0};
    for (int i = 0; i < MF_MIXERS * MF_FFNS; i++) {
        int mixer = i / MF_FFNS, ffn = i % MF_FFNS;

        if (stage->count[mixer][ffn])
            mf_work_add(work, step_layer(step, mixer, ffn),
                (double)stage->count[mixer][ffn]);
    }
    if (stage->first)
        mf_work_add(work, &step->ends[0], 1);
    if (stage->last)
        mf_work_add(work, &step->ends[1], 1);
}

/* Both passes of a stage and micro batch. */
/* All micro batches pass the slowest stage; what the other stages take once is
 * the fill and drain, 1/v of it when v chunks interleave; and when the micro
 * batches are no multiple of pp, each round but one waits for the rest.
 */
static void step_pipeline(
    struct step *step, double slowest, double sum, double send)
{
    const struct mf_case *c = step->c;
    double m = (double)c->micro_batches, v = (double)c->settings->vpp;
    int64_t p = c->layout->pp, odd = c->micro_batches % p;

    step->part[MF_PART_BUBBLE] = (sum - slowest) / v;
    if (c->settings->vpp > 1 && odd)
        step->part[MF_PART_BUBBLE] += (v - 1) * (double)(p - odd) * slowest / v;
    if (p < 2)
        return;
    step->part[MF_PART_STAGE_SEND] = 2 * (double)(p - 1) * send;
    if (c->settings->vpp > 1)
        step->hidden_s += 2 * m * v * send;
    else
        step->part[MF_PART_STAGE_SEND] += 2 * m * send;
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

/* Gradients are summed in fp32, parameters come back in bf16; an optimizer
 * that is not sharded sums with an all-reduce.
 */
static struct reduction reduction_of(
    const struct mf_case *c, enum mf_group_kind kind, double params)
{
    const struct mf_place *place = c->place[kind];
    struct reduction r = {0};

    if (params <= 0 || place->outer < 0)
        return r;
    r.reduce_s = mf_time_gather(c->rates, place, 4 * params, MF_COEF_REDUCE);
    r.gather_s = mf_time_gather(c->rates, place, 2 * params, MF_COEF_REDUCE);
    if (c->settings->shard == MF_SHARD_NONE) {
        r.reduce_s *= 2;
        r.gather_s = 0;
    }
    return r;
}

/* Seconds of gradients and parameters on the wire: ALL of them, those that
 * show, and the share of those of the dense parameters.
 */
struct gradients {
    double all, seen, dense;
};

static struct gradients gradients_of(const struct mf_case *c,
    const struct mf_stage *stage, const struct mf_work *work)
{
    double forward = mf_work_sum(work, FW), backward = mf_work_sum(work, BW);
    struct gradients g = {0};
    struct mf_holding held;
    struct reduction dense, expert;
    double reduce, gather;

    mf_holding_of(c, stage, &held);
    dense = reduction_of(c, MF_GROUP_DP_CP, held.sharded + held.replicated);
    expert = reduction_of(c, MF_GROUP_EDP, held.experts);
    reduce = dense.reduce_s + expert.reduce_s;
    gather = dense.gather_s + expert.gather_s;
    if (reduce + gather <= 0)
        return g;
    g.dense = (dense.reduce_s + dense.gather_s) / (reduce + gather);
    if (c->settings->shard == MF_SHARD_FULL) {
        gather = 2 * gather / c->rates->coef[MF_COEF_GATHERED];
        reduce /= c->rates->coef[MF_COEF_GATHERED];
        g.seen = shown(reduce + gather, forward + backward, stage->layers);
    } else {
        g.seen = shown(reduce, backward, stage->layers) +
                 shown(gather, forward, stage->layers);
    }
    g.all = reduce + gather;
    return g;
}

/* A shard of all parameters is gathered for each pass of each micro batch,
 * which may make another stage the slowest.
 */
static double stage_gradients(const struct mf_case *c,
    const struct mf_stage *stage, const struct mf_work *work)
{
    if (c->settings->shard != MF_SHARD_FULL)
        return 0;
    return gradients_of(c, stage, work).seen;
}

static void step_gradients(
    struct step *step, const struct mf_stage *stage, const struct mf_work *work)
{
    const struct mf_case *c = step->c;
    struct gradients g = gradients_of(c, stage, work);
    double times =
        c->settings->shard == MF_SHARD_FULL ? (double)c->micro_batches : 1;

    step->part[MF_PART_GRAD_DENSE] = times * g.seen * g.dense;
    step->part[MF_PART_GRAD_EXPERT] = times * g.seen * (1 - g.dense);
    step->hidden_s += times * (g.all - g.seen);
}

/* Adam reads and writes three fp32 figures, reads a gradient and writes a
 * bf16 parameter: 30 bytes each; and the gradient norm is summed.
 */
static void step_optimizer(struct step *step, const struct mf_stage *stage)
{
    const struct mf_case *c = step->c;
    struct mf_holding held;
    double dense, experts;

    mf_holding_of(c, stage, &held);
    dense = held.sharded + held.replicated;
    experts = held.experts;
    if (c->settings->shard != MF_SHARD_NONE) {
        dense /= (double)(c->layout->dp * c->layout->cp);
        experts /= (double)c->layout->edp;
    }
    step->part[MF_PART_OPTIMIZER] =
        mf_time_memory(c->rates, 30 * (dense + experts)) +
        2 * mf_time_gather(
                c->rates, c->place[MF_GROUP_TP_DP_CP], 64, MF_COEF_REDUCE);
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
static void step_stages(struct step *step, struct mf_cost *cost,
    struct mf_stage *slowest, double *most, double *sum)
{
    const struct mf_case *c = step->c;
    struct mf_memory memory;
    struct mf_stage stage;
    struct mf_work work;
    double longest = 0;

    *most = *sum = 0;
    for (int64_t i = 0; i < c->layout->pp; i++) {
        double seconds, whole;

        mf_stage_fill(c->model, c->layout->pp, c->settings->vpp, i, &stage);
        stage_work(step, &stage, &work);
        seconds = mf_work_sum(&work, FW) + mf_work_sum(&work, BW);
        whole = seconds + stage_gradients(c, &stage, &work);
        *sum += seconds;
        if (whole > longest) {
            longest = whole;
            *most = seconds;
            *slowest = stage;
        }
        mf_memory_of_stage(c, &stage, i, &memory);
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

static void step_layer_phases(
    const struct step *step, double send, struct mf_cost *cost)
{
    const struct mf_case *c = step->c;
    struct mf_work work;

    if (c->shares->moe)
        mf_work_moe(c, &work);
    cost_fill_layer(c, c->shares->moe ? &work : NULL, cost);
    if (c->layout->pp > 1) {
        cost->phase_s[MF_PHASE_STAGE_SEND][FW] = send;
        cost->phase_s[MF_PHASE_STAGE_SEND][BW] = send;
    }
    cost->phase_s[MF_PHASE_GRAD_REDUCE_EXPERT][BW] =
        step->part[MF_PART_GRAD_EXPERT];
    cost->phase_s[MF_PHASE_GRAD_REDUCE_DENSE][BW] =
        step->part[MF_PART_GRAD_DENSE];
    cost->phase_s[MF_PHASE_OPTIMIZER][BW] = step->part[MF_PART_OPTIMIZER];
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

/* A larger machine waits more often for somebody; and a host has work that
 * comes once a step.
 */
static void step_straggle(struct step *step)
{
    const struct mf_case *c = step->c;
    double sum = 0, ranks = (double)mf_layout_world(c->layout) / 8;

    for (int i = 0; i < MF_PART_IDS; i++)
        sum += step->part[i];
    step->part[MF_PART_LAUNCH] += c->rates->coef[MF_COEF_STEP_S];
    if (ranks > 1)
        step->part[MF_PART_LAUNCH] +=
            c->rates->coef[MF_COEF_STRAGGLE] * log2(ranks) * sum;
}

void mf_step_price(const struct mf_case *c, struct mf_cost *cost)
{
    struct step step = {.c = c};
    struct mf_stage slowest = {0};
    struct mf_work work;
    double most, sum, send;
    double tokens =
        (double)c->settings->global_batch * (double)c->settings->seq;

    step_fill_ends(&step);
    step_stages(&step, cost, &slowest, &most, &sum);
    stage_work(&step, &slowest, &work);
    for (int i = 0; i < MF_PART_IDS; i++)
        step.part[i] =
            (double)c->micro_batches * (work.part[i][FW] + work.part[i][BW]);
    step.hidden_s = (double)c->micro_batches * work.hidden_s;
    send = mf_time_send(c->rates, c->place[MF_GROUP_PP],
        c->tokens * (double)c->model->hidden * c->rates->element_bytes);
    step_pipeline(&step, most, sum, send);
    step_gradients(&step, &slowest, &work);
    step_optimizer(&step, &slowest);
    step_straggle(&step);
    cost->fits = mf_memory_fits(c->rates, cost->peak_bytes);
    cost_fill_parts(cost, step.part);
    cost->hidden_s = step.hidden_s;
    cost_fill_rates(c, tokens, cost);
    step_layer_phases(&step, send, cost);
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
