/* SPDX-License-Identifier: BSD-3-Clause
 * Bytes that a rank holds: parameters and what training keeps beside them,
 * activations of the micro batches in flight, buffers.
 *
 * Bytes a parameter as in Megatron-LM's theoretical_memory_usage.py: 2 (bf16),
 * 4 (fp32 gradient), 12 (fp32 copy and two Adam moments), the 12 shared by the
 * optimizer's ranks: all data and context parallel ones for dense parameters,
 * the expert data parallel ones for experts.
 */
#include "planner/cost_parts.h"

#include <math.h>

#define MIB 1048576.0

/* What publishes as static memory but is no parameter: workspaces of the
 * products, read off Megatron-LM's test runs.
 */
#define WORKSPACE_BYTES (104 * MIB)
#define GROUPED_WORKSPACE_BYTES (24 * MIB)

/* A caching allocator reserves more than it hands out, 4 to 9 % where there is
 * room and less where there is none; the driver and NCCL take the rest.
 */
#define RESERVE_FACTOR 1.01
#define RESERVE_BYTES (1024 * MIB)

bool mf_memory_fits(const struct mf_cost_rates *rates, double peak_bytes)
{
    if (isnan(rates->memory_bytes))
        return true;
    if (rates->cpu)
        return peak_bytes <= rates->memory_bytes;
    return peak_bytes * RESERVE_FACTOR + RESERVE_BYTES <= rates->memory_bytes;
}

static double per_layer(int64_t params, int64_t layers)
{
    return layers > 0 ? (double)params / (double)layers : 0;
}

/* Parameters of one mixer of each kind; the mean of all where layers differ. */
static void shares_mixers(const struct mf_model *m, struct mf_shares *s)
{
    int64_t none = mf_model_count_mixer(m, MF_MIXER_NONE);
    double mean = per_layer(m->params.attention, m->layers - none);

    for (int i = 0; i < MF_MIXERS; i++) {
        enum mf_mixer mixer = (enum mf_mixer)i;

        s->mixer[i] = 0;
        if (mf_model_count_mixer(m, mixer) > 0 && mixer != MF_MIXER_NONE)
            s->mixer[i] =
                m->layer_size ? mean : (double)mf_model_mixer_params(m, mixer);
    }
}

void mf_shares_fill(const struct mf_model *m, struct mf_shares *s)
{
    int64_t moe = mf_model_count(m, MF_FFN_MOE);
    int64_t dense = mf_model_count(m, MF_FFN_DENSE);
    double h = (double)m->hidden, up = m->gated ? 2 : 1;
    double beside = (up + 1) * h * (double)m->beside_ffn;
    double latent = 2 * h * (double)m->latent;

    shares_mixers(m, s);
    s->dense = 0;
    if (dense > 0)
        s->dense = ((double)m->params.dense_mlp - (double)moe * beside) /
                   (double)dense;
    s->shared = per_layer(m->params.shared, moe);
    s->router = per_layer(m->params.router, moe);
    s->experts = per_layer(m->params.routed, moe);
    s->norm = per_layer(m->params.norms, m->layers);
    s->beside = beside + latent;
    s->other =
        ((double)m->params.other - (double)moe * latent) / (double)m->layers;
    s->moe = moe > 0;
}

static void holding_add(const struct mf_case *c, struct mf_layer_kind kind,
    double times, struct mf_holding *out)
{
    const struct mf_shares *s = c->shares;
    double t = (double)c->layout->tp;
    double expert_ranks = (double)(c->layout->etp * c->layout->ep);

    out->sharded += times * (s->mixer[kind.mixer] + s->other) / t;
    if (kind.ffn == MF_FFN_DENSE)
        out->sharded += times * s->dense / t;
    if (kind.ffn == MF_FFN_MOE) {
        out->sharded += times * (s->shared + s->beside) / t;
        out->replicated += times * s->router;
        out->experts += times * s->experts / expert_ranks;
    }
    out->replicated += times * s->norm;
}

/* Rows of the vocabulary on one rank, padded as Megatron does. */
static double vocab_rows(const struct mf_case *c)
{
    double t = (double)c->layout->tp, unit = 128 * t;

    return ceil((double)c->model->vocab / unit) * unit / t;
}

/* The input table on the first stage; the output one on the last, where tied
 * embeddings and MTP layers need a copy when the first stage is elsewhere.
 */
static double embeddings_held(
    const struct mf_case *c, const struct mf_stage *stage)
{
    double tables = stage->first ? 1 : 0;

    if (stage->last && !(stage->first && c->model->tied_embeddings))
        tables++;
    if (stage->mtp > 0 && !stage->first && !c->model->tied_embeddings)
        tables++;
    return tables * vocab_rows(c) * (double)c->model->hidden;
}

void mf_holding_of(const struct mf_case *c, const struct mf_stage *stage,
    struct mf_holding *out)
{
    const struct mf_model *m = c->model;

    *out = (struct mf_holding){.sharded = embeddings_held(c, stage)};
    for (int mixer = 0; mixer < MF_MIXERS; mixer++)
        for (int ffn = 0; ffn < MF_FFNS; ffn++)
            if (stage->count[mixer][ffn])
                holding_add(c,
                    (struct mf_layer_kind){
                        (enum mf_mixer)mixer, (enum mf_ffn)ffn},
                    (double)stage->count[mixer][ffn], out);
    if (stage->mtp > 0) {
        double h = (double)m->hidden, n = (double)stage->mtp;

        holding_add(c, m->layer_kind[m->layers - 1], n, out);
        out->sharded += n * 2 * h * h / (double)c->layout->tp;
        out->replicated += n * 2 * h;
    }
}

void mf_memory_of_static(const struct mf_case *c, const struct mf_stage *stage,
    const struct mf_holding *held, struct mf_memory *out)
{
    double dense = held->sharded + held->replicated;
    double dense_ranks = (double)(c->layout->dp * c->layout->cp);
    double expert_ranks = (double)c->layout->edp;
    double weight = c->low ? 3 : 2, dense_share = 1, expert_share = 1;

    *out = (struct mf_memory){0};
    if (c->settings->shard != MF_SHARD_NONE) {
        dense_share = dense_ranks;
        expert_share = expert_ranks;
    }
    out->params = weight * (dense + held->experts);
    out->grads = 4 * (dense + held->experts);
    out->optimizer = 12 * (dense / dense_share + held->experts / expert_share);
    if (c->settings->shard == MF_SHARD_FULL) {
        double kept = dense / dense_ranks + held->experts / expert_ranks;

        out->params = weight * kept;
        out->grads = 4 * kept;
    }
    out->buffers = WORKSPACE_BYTES;
    if (held->experts > 0)
        out->buffers += GROUPED_WORKSPACE_BYTES;
    out->static_bytes =
        out->params + out->grads + out->optimizer + out->buffers;
    /* The weight gradient of a table exists once more in bf16 before it is
     * added up.
     */
    if (stage->first || stage->last)
        out->buffers += vocab_rows(c) * (double)c->model->hidden * 2;
}

/* Numbers of a token that a mixer keeps in the width of its heads: queries,
 * keys, values, what they give, and gates.
 */
static double mixer_width(const struct mf_case *c, enum mf_mixer mixer)
{
    const struct mf_model *m = c->model;
    const struct mf_linear *l = &m->linear;
    double t = (double)c->layout->tp, keys, values;
    struct mf_heads heads;

    switch (mixer) {
    case MF_MIXER_LINEAR:
        keys = (double)l->key_heads * (double)l->key_dim;
        values = (double)l->value_heads * (double)l->value_dim;
        return (2 * keys + 3 * values) / t;
    case MF_MIXER_MAMBA:
        return (3 * (double)m->mamba.inner +
                   2 * (double)(m->mamba.groups * m->mamba.state)) /
               t;
    case MF_MIXER_CONV:
        return 4 * (double)m->hidden / t;
    default:
        heads = mf_model_heads(m, mixer);
        return ((double)heads.heads / t + fmax((double)heads.kv_heads / t, 1)) *
               (double)(heads.head_dim + heads.v_dim);
    }
}

/* Bytes of a number that is kept as the input of a product, for the gradient of
 * its weights: in 8-bit training it is kept in 8 bits.
 */
static double input_bytes(const struct mf_case *c)
{
    return c->low ? 1 : c->rates->element_bytes;
}

/* Is what MODULE makes computed again rather than kept? */
static bool drops(const struct mf_case *c, enum mf_module module)
{
    unsigned selective = MF_MODULE_LAYERNORM | MF_MODULE_MOE_ACT;

    if (c->settings->recompute == MF_RECOMPUTE_MODULES)
        return c->settings->modules & module;
    return c->settings->recompute == MF_RECOMPUTE_SELECTIVE &&
           (selective & module);
}

static double attention_activations(
    const struct mf_case *c, enum mf_mixer mixer)
{
    const struct mf_model *m = c->model;
    double t = (double)c->layout->tp, w = c->rates->element_bytes;
    double h = (double)m->hidden, q = (double)m->heads / t;
    double wide;
    double norm = drops(c, MF_MODULE_LAYERNORM) ? 0 : 1;
    double narrow = 0;

    if (m->attention == MF_ATTENTION_MLA && mixer != MF_MIXER_LINEAR &&
        mixer != MF_MIXER_MAMBA && mixer != MF_MIXER_CONV) {
        wide =
            q * 2 * (double)(m->mla.nope_dim + m->mla.rope_dim + m->mla.v_dim);
        if (drops(c, MF_MODULE_MLA_UP_PROJ))
            wide = q * (double)m->mla.v_dim;
        narrow = 2 * (double)(m->mla.q_rank + m->mla.kv_rank + m->mla.rope_dim);
    } else {
        wide = mixer_width(c, mixer);
    }
    return c->tokens * (h * w + (h * norm + narrow) * input_bytes(c)) +
           c->wide_tokens * (wide * w + q * 4);
}

static double mlp_activations(const struct mf_case *c, double width)
{
    bool selective = drops(c, MF_MODULE_MOE_ACT);
    double t = (double)c->layout->tp, w = c->rates->element_bytes;
    double kept = (c->model->gated ? 2 : 1) + (selective ? 0 : 1);

    return c->wide_tokens * kept * width / t * w;
}

/* Rows of the hottest rank: it is the one that runs out first. */
static double moe_activations(const struct mf_case *c)
{
    const struct mf_model *m = c->model;
    bool selective = drops(c, MF_MODULE_MOE_ACT);
    double w = c->rates->element_bytes, h = mf_row_width(m);
    double f = (double)m->moe_ffn / (double)c->layout->etp;
    double up = m->gated ? 2 : 1;
    double bytes = c->held_rows * (h * input_bytes(c) + up * f * w +
                                      (selective ? 0 : f * input_bytes(c))) +
                   c->tokens * (double)m->experts * 8;

    if (drops(c, MF_MODULE_MOE))
        return 0;
    if (m->shared_ffn > 0 && !drops(c, MF_MODULE_SHARED_EXPERTS))
        bytes += mlp_activations(c, (double)m->shared_ffn);
    return bytes;
}

static double layer_activations(
    const struct mf_case *c, struct mf_layer_kind kind)
{
    double h = (double)c->model->hidden, w = c->rates->element_bytes;
    double norm = drops(c, MF_MODULE_LAYERNORM) ? 0 : 1;
    double bytes = 0;

    if (kind.mixer != MF_MIXER_NONE)
        bytes += attention_activations(c, kind.mixer);
    if (kind.ffn != MF_FFN_NONE)
        bytes += c->tokens * h * (w + norm * input_bytes(c));
    if (kind.ffn == MF_FFN_DENSE && !drops(c, MF_MODULE_MLP))
        bytes += mlp_activations(c, (double)c->model->dense_ffn);
    if (kind.ffn == MF_FFN_MOE)
        bytes += moe_activations(c);
    if (kind.ffn == MF_FFN_MOE && c->model->beside_ffn > 0)
        bytes += mlp_activations(c, (double)c->model->beside_ffn);
    return bytes;
}

/* Send and receive copies of the rows, alive in one layer at a time. */
static double dispatch_buffer(const struct mf_case *c)
{
    return (c->sent_rows + c->held_rows) * mf_row_width(c->model) *
           c->rates->element_bytes;
}

/* Micro batches in flight on stage INDEX, in units of all its layers: 1F1B
 * holds min(m, p - i); interleaved 2(p-i-1) + (v-1)p + 1 chunks of 1/v.
 */
static double in_flight(const struct mf_case *c, int64_t index)
{
    int64_t p = c->layout->pp, v = c->settings->vpp;
    int64_t m = c->micro_batches, chunks;

    if (v == 1)
        return (double)(m < p - index ? m : p - index);
    chunks = 2 * (p - index - 1) + (v - 1) * p + 1;
    chunks = chunks < m * v ? chunks : m * v;
    return (double)chunks / (double)v;
}

void mf_live_fill(
    const struct mf_case *c, const struct mf_kinds *kinds, struct mf_live *out)
{
    bool full = c->settings->recompute == MF_RECOMPUTE_FULL;
    double input =
        c->tokens * (double)c->model->hidden * c->rates->element_bytes;

    for (int i = 0; i < kinds->count; i++) {
        double bytes = layer_activations(c, kinds->kind[i]);

        out->kept[i] = full ? input : bytes;
        out->again[i] = full ? bytes : 0;
    }
    out->dispatch = dispatch_buffer(c);
    /* Logits in bf16 and their softmax in fp32. */
    out->logits = c->wide_tokens * vocab_rows(c) * 6;
}

void mf_memory_add_live(const struct mf_case *c, const struct mf_kinds *kinds,
    const struct mf_live *live, const struct mf_class *class, int64_t index,
    struct mf_memory *out)
{
    double sum = 0, largest = 0;
    bool moe = false;

    for (int i = 0; i < kinds->count; i++) {
        double times = class->times[i];

        if (times <= 0)
            continue;
        if (kinds->kind[i].ffn == MF_FFN_MOE) {
            times += (double)class->stage.mtp;
            moe = true;
        }
        sum += times * live->kept[i];
        largest = live->again[i] > largest ? live->again[i] : largest;
    }
    out->activations = sum * in_flight(c, index) + largest;
    if (moe)
        out->buffers += live->dispatch;
    if (class->stage.last)
        out->buffers += live->logits;
    out->peak_bytes = out->params + out->grads + out->optimizer +
                      out->activations + out->buffers;
}

/* One MoE layer as the runtime holds it: weights and gradients of one type, no
 * optimizer.
 */
void mf_memory_of_layer(const struct mf_case *c, struct mf_memory *out)
{
    double w = c->rates->element_bytes;
    const struct mf_shares *s = c->shares;
    double params = s->experts / (double)(c->layout->etp * c->layout->ep) +
                    s->router + s->shared / (double)c->layout->tp;

    *out = (struct mf_memory){.params = w * params, .grads = w * params};
    out->static_bytes = out->params + out->grads;
    out->activations =
        moe_activations(c) + 4 * c->tokens * (double)c->model->hidden * w;
    out->buffers = 2 * dispatch_buffer(c);
    out->peak_bytes = out->static_bytes + out->activations + out->buffers;
}
