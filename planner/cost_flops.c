/* SPDX-License-Identifier: BSD-3-Clause
 * Model FLOPs as Megatron-LM counts them: causal attention, logits and MTP in,
 * backward twice forward, nothing for recomputation.
 */
#include "planner/cost_parts.h"

static double attention_flops(
    const struct mf_model *m, enum mf_mixer mixer, double seq)
{
    double h = (double)m->hidden, q = (double)m->heads;
    double dims = 2 * (double)m->head_dim, keys = seq / 2;
    double window = (double)m->sliding_window, project;
    const struct mf_mla *a = &m->mla;

    if (mixer == MF_MIXER_SLIDING && window > 0 && window < seq)
        keys = window * (1 - (window - 1) / (2 * seq));
    if (m->attention == MF_ATTENTION_MLA) {
        double qk = (double)(a->nope_dim + a->rope_dim);
        double v = (double)a->v_dim;

        dims = qk + v;
        project = a->q_rank > 0 ? (double)a->q_rank * (h + q * qk) : h * q * qk;
        project += h * (double)(a->kv_rank + a->rope_dim) +
                   (double)a->kv_rank * q * ((double)a->nope_dim + v) +
                   q * v * h;
        project *= 2;
    } else {
        project = 4 * h * (double)m->head_dim * (q + (double)m->kv_heads);
    }
    return project + 2 * keys * q * dims;
}

static double mlp_flops(const struct mf_model *m, int64_t width)
{
    return (m->gated ? 6 : 4) * (double)m->hidden * (double)width;
}

static double moe_flops(const struct mf_model *m)
{
    double h = (double)m->hidden;

    return 2 * h * (double)m->experts +
           mlp_flops(m, m->moe_ffn) * (double)m->topk +
           mlp_flops(m, m->shared_ffn) + (m->shared_gate ? 2 * h : 0);
}

static double layer_flops(
    const struct mf_model *m, struct mf_layer_kind kind, double seq)
{
    double flops = 0;

    if (kind.mixer != MF_MIXER_NONE)
        flops += attention_flops(m, kind.mixer, seq);
    if (kind.ffn == MF_FFN_DENSE)
        flops += mlp_flops(m, m->dense_ffn);
    if (kind.ffn == MF_FFN_MOE)
        flops += moe_flops(m);
    return flops;
}

double mf_flops_token(const struct mf_model *model, int64_t seq)
{
    double h = (double)model->hidden, logits = 2 * h * (double)model->vocab;
    double flops = logits, s = (double)seq;

    for (int64_t i = 0; i < model->layers; i++)
        flops += layer_flops(model, model->layer_kind[i], s);
    flops += (double)model->mtp_layers *
             (layer_flops(model, model->layer_kind[model->layers - 1], s) +
                 4 * h * h + logits);
    return 3 * flops;
}

double mf_flops_token_moe(const struct mf_model *model)
{
    return 3 * moe_flops(model);
}
