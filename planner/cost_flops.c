/* SPDX-License-Identifier: BSD-3-Clause
 * Model FLOPs as Megatron-LM counts them: causal attention, logits and MTP in,
 * backward twice forward, nothing for recomputation.
 */
#include "planner/cost_parts.h"

#include <math.h>

/* Earlier entries that a query sees on average when at most WINDOW of SEQ. */
static double mean_window(double window, double seq)
{
    if (window <= 0 || window >= seq)
        return seq / 2;
    return window * (1 - (window - 1) / (2 * seq));
}

/* Windows that start at multiples of their size are half full on average. */
static double window_keys(const struct mf_model *m, double seq)
{
    double window = (double)m->sliding_window;

    if (m->window_chunked && window > 0 && window < seq)
        return window / 2;
    return mean_window(window, seq);
}

static double mixer_keys(
    const struct mf_model *m, enum mf_mixer mixer, double seq)
{
    double ratio = fmax((double)m->indexer.ratio, 1);
    double topk = (double)m->indexer.topk;

    switch (mixer) {
    case MF_MIXER_SLIDING:
        return window_keys(m, seq);
    case MF_MIXER_SPARSE:
        return mean_window(topk, seq / ratio) +
               (m->indexer.ratio > 0 ? window_keys(m, seq) : 0);
    case MF_MIXER_COMPRESSED:
        return seq / 2 / fmax((double)m->compress_ratio, 1) +
               window_keys(m, seq);
    default:
        return seq / 2;
    }
}

/* Scores and values, and the indexer's own scores. */
static double softmax_flops(
    const struct mf_model *m, enum mf_mixer mixer, double seq)
{
    struct mf_heads h = mf_model_heads(m, mixer);
    double dims = (double)h.heads * (double)(h.head_dim + h.v_dim), flops;
    double ratio = fmax((double)m->indexer.ratio, 1);

    if (m->attention == MF_ATTENTION_MLA)
        dims = (double)m->heads *
               (double)(m->mla.nope_dim + m->mla.rope_dim + m->mla.v_dim);
    flops = 2 * mixer_keys(m, mixer, seq) * dims;
    if (mixer == MF_MIXER_SPARSE)
        flops += 2 * seq / 2 / ratio * (double)m->indexer.heads *
                 (double)m->indexer.dim;
    return flops;
}

/* A delta rule multiplies its state four times, lightning attention twice;
 * a selective scan takes seven FLOPs a state, as Megatron-LM counts it.
 */
double mf_flops_core(
    const struct mf_model *model, enum mf_mixer mixer, double seq)
{
    const struct mf_linear *l = &model->linear;
    double state =
        (double)l->value_heads * (double)l->key_dim * (double)l->value_dim;

    switch (mixer) {
    case MF_MIXER_NONE:
        return 0;
    case MF_MIXER_LINEAR:
        return (l->type == MF_LINEAR_LIGHTNING ? 4 : 8) * state;
    case MF_MIXER_MAMBA:
        return 7 * (double)model->mamba.inner * (double)model->mamba.state;
    case MF_MIXER_CONV:
        return 2 * (double)model->conv_kernel * (double)model->hidden;
    default:
        return softmax_flops(model, mixer, seq);
    }
}

static double mixer_flops(
    const struct mf_model *m, enum mf_mixer mixer, double seq)
{
    return 2 * (double)mf_model_mixer_weights(m, mixer) +
           mf_flops_core(m, mixer, seq);
}

static double mlp_flops(const struct mf_model *m, int64_t width)
{
    return (m->gated ? 6 : 4) * (double)m->hidden * (double)width;
}

/* Experts that do nothing are chosen as often as others. */
static double moe_flops(const struct mf_model *m)
{
    double h = (double)m->hidden, wide = mf_row_width(m);
    double all = (double)(m->experts + m->zero_experts);
    double used = (double)m->topk * (double)m->experts / fmax(all, 1);

    return 2 * h * all + (m->gated ? 6 : 4) * wide * (double)m->moe_ffn * used +
           4 * h * (double)m->latent + mlp_flops(m, m->shared_ffn) +
           mlp_flops(m, m->beside_ffn) + (m->shared_gate ? 2 * h : 0);
}

static double layer_flops(const struct mf_model *m, int64_t i, double seq)
{
    struct mf_layer_kind kind = m->layer_kind[i];
    double flops = mixer_flops(m, kind.mixer, seq);

    if (kind.ffn == MF_FFN_DENSE)
        flops +=
            mlp_flops(m, m->layer_size ? m->layer_size[i].ffn : m->dense_ffn);
    if (kind.ffn == MF_FFN_MOE)
        flops += moe_flops(m);
    return flops;
}

double mf_flops_token(const struct mf_model *model, int64_t seq)
{
    double h = (double)model->hidden, logits = 2 * h * (double)model->vocab;
    double flops = logits, s = (double)seq;

    for (int64_t i = 0; i < model->layers; i++)
        flops += layer_flops(model, i, s);
    flops += (double)model->mtp_layers *
             (layer_flops(model, model->layers - 1, s) + 4 * h * h + logits);
    return 3 * flops;
}

double mf_flops_token_moe(const struct mf_model *model)
{
    return 3 * moe_flops(model);
}
