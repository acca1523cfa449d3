/* SPDX-License-Identifier: BSD-3-Clause
 * Seconds of one layer and micro batch on its hottest rank, part by part.
 *
 * Formulas: FLOPs of Megatron-LM's num_floating_point_operations; tensor and
 * sequence parallel traffic of Korthikanti et al. (arXiv 2205.05198); ring
 * attention of Liu et al. (arXiv 2310.01889). Backward does two products for
 * each one of forward, flash attention five for two.
 */
#include "planner/cost_parts.h"

#include <math.h>

#define FW MF_FORWARD
#define BW MF_BACKWARD

double mf_work_sum(const struct mf_work *work, enum mf_direction direction)
{
    double sum = 0;

    for (int i = 0; i < MF_PART_IDS; i++)
        sum += work->part[i][direction];
    return sum;
}

void mf_work_add(struct mf_work *to, const struct mf_work *from, double times)
{
    for (int i = 0; i < MF_PART_IDS; i++)
        for (int d = 0; d < MF_DIRECTIONS; d++)
            to->part[i][d] += times * from->part[i][d];
    to->hidden_s += times * from->hidden_s;
}

static void work_product(
    struct mf_work *work, enum mf_part_id part, double forward)
{
    work->part[part][FW] += forward;
    work->part[part][BW] += 2 * forward;
}

/* Sequence parallel collectives of a block: forward gathers its input and
 * scatters its output; backward the same, and gathers the input once more
 * under the product that needs it.
 */
static void work_tensor_parallel(const struct mf_case *c, struct mf_work *work)
{
    double bytes =
        c->wide_tokens * (double)c->model->hidden * c->rates->element_bytes;
    double once = mf_time_gather(
        c->rates, c->place[MF_GROUP_TP], bytes, MF_COEF_EXCHANGE);

    work->part[MF_PART_TP][FW] += 2 * once;
    work->part[MF_PART_TP][BW] += 2 * once;
    work->hidden_s += once;
}

/* Seconds of the products of a mixer whose matrices are not told apart: as one
 * of the same work.
 */
static double mixer_products(const struct mf_case *c, enum mf_mixer mixer)
{
    double h = (double)c->model->hidden;
    double weights = (double)mf_model_mixer_weights(c->model, mixer);

    return mf_time_gemm(c->rates, c->wide_tokens,
        fmax(weights / h / (double)c->layout->tp, 1), h, c->low);
}

/* Whether a mixer is plain attention with the model's own heads. */
static bool mixer_is_plain(const struct mf_model *m, enum mf_mixer mixer)
{
    if (mixer != MF_MIXER_FULL && mixer != MF_MIXER_SLIDING)
        return false;
    if (m->attention == MF_ATTENTION_MLA)
        return m->gate_dim == 0;
    return !m->q_rank && !m->o_rank && !m->gate_dim && !m->v_dim &&
           !m->attention_experts &&
           !(mixer == MF_MIXER_FULL ? m->full_heads.heads
                                    : m->sliding_heads.heads);
}

/* Seconds of the attention block's dense products. */
static double attention_products(const struct mf_case *c)
{
    const struct mf_model *m = c->model;
    const struct mf_mla *a = &m->mla;
    double t = (double)c->layout->tp, n = c->wide_tokens;
    double h = (double)m->hidden, q = (double)m->heads / t, seconds = 0;
    double kv, dims;

    if (m->attention != MF_ATTENTION_MLA) {
        /* Fewer KV heads than tensor ranks are held twice. */
        kv = fmax((double)m->kv_heads / t, 1);
        dims = (double)m->head_dim;
        return mf_time_gemm(c->rates, n, (q + 2 * kv) * dims, h, c->low) +
               mf_time_gemm(c->rates, n, h, q * dims, c->low);
    }
    dims = (double)(a->nope_dim + a->rope_dim);
    if (a->q_rank > 0)
        seconds =
            mf_time_gemm(c->rates, n, (double)a->q_rank, h, c->low) +
            mf_time_gemm(c->rates, n, q * dims, (double)a->q_rank, c->low);
    else
        seconds = mf_time_gemm(c->rates, n, q * dims, h, c->low);
    seconds += mf_time_gemm(
        c->rates, n, (double)(a->kv_rank + a->rope_dim), h, c->low);
    seconds += mf_time_gemm(c->rates, n, q * (double)(a->nope_dim + a->v_dim),
        (double)a->kv_rank, c->low);
    return seconds + mf_time_gemm(c->rates, n, h, q * (double)a->v_dim, c->low);
}

static double attention_core(const struct mf_case *c, enum mf_mixer mixer)
{
    double flops = c->wide_tokens *
                   mf_flops_core(c->model, mixer, (double)c->settings->seq) /
                   (double)c->layout->tp;

    return c->rates->coef[MF_COEF_KERNEL_S] +
           flops / (c->rates->peak_flops * c->rates->coef[MF_COEF_ATTENTION]);
}

/* What a hop adds to the sums: the output so far is scaled anew in fp32 as a
 * part in bf16 joins it (10 bytes an element), and so do gradients of queries
 * in bf16 (6 bytes); two kernels each way, as Transformer Engine's attention
 * over context ranks has them.
 */
static double ring_merge(const struct mf_case *c, double bytes)
{
    const struct mf_model *m = c->model;
    double heads = (double)m->heads / (double)c->layout->tp;
    double dim = m->attention == MF_ATTENTION_MLA ? (double)m->mla.v_dim
                                                  : (double)m->head_dim;

    return mf_time_memory(c->rates, c->wide_tokens * heads * dim * bytes) +
           2 * c->rates->coef[MF_COEF_KERNEL_S];
}

/* Keys and values go round a ring of cp ranks, each hop under the attention of
 * the one before; only what is longer than that shows, and what joins the
 * parts.
 */
static void work_ring(
    const struct mf_case *c, double core, struct mf_work *work)
{
    const struct mf_model *m = c->model;
    double t = (double)c->layout->tp, cp = (double)c->layout->cp, hop, dims;

    if (c->layout->cp < 2)
        return;
    dims = 2 * fmax((double)m->kv_heads / t, 1) * (double)m->head_dim;
    if (m->attention == MF_ATTENTION_MLA)
        dims = (double)m->heads / t *
               (double)(m->mla.nope_dim + m->mla.rope_dim + m->mla.v_dim);
    hop = mf_time_send(c->rates, c->place[MF_GROUP_CP],
        c->wide_tokens * dims * c->rates->element_bytes);
    for (int d = 0; d < MF_DIRECTIONS; d++) {
        double each = d == FW ? hop : 2 * hop;
        double under = (d == FW ? core : 2.5 * core) / cp;
        double shown = each > under ? each - under : 0;

        work->part[MF_PART_CP][d] +=
            (cp - 1) * (shown + ring_merge(c, d == FW ? 10 : 6));
        work->hidden_s += (cp - 1) * (each - shown);
    }
}

static void work_norm(const struct mf_case *c, struct mf_work *work)
{
    const double *coef = c->rates->coef;
    double passes =
        coef[MF_COEF_PASSES] + (c->low ? coef[MF_COEF_QUANTIZE] : 0);
    double bytes =
        c->tokens * (double)c->model->hidden * c->rates->element_bytes * passes;

    work_product(work, MF_PART_NORM, mf_time_memory(c->rates, bytes));
}

static void work_attention(
    const struct mf_case *c, enum mf_mixer mixer, struct mf_work *work)
{
    double core = attention_core(c, mixer);
    double products = mixer_is_plain(c->model, mixer)
                          ? attention_products(c)
                          : mixer_products(c, mixer);

    work_product(work, MF_PART_ATTENTION, products);
    work->part[MF_PART_ATTENTION][FW] += core;
    work->part[MF_PART_ATTENTION][BW] += 2.5 * core;
    if (mixer != MF_MIXER_LINEAR && mixer != MF_MIXER_MAMBA &&
        mixer != MF_MIXER_CONV)
        work_ring(c, core, work);
    work_tensor_parallel(c, work);
    work_norm(c, work);
}

/* A feed-forward block of WIDTH split over tensor ranks. */
static void work_mlp(const struct mf_case *c, double width,
    enum mf_part_id part, struct mf_work *work)
{
    double h = (double)c->model->hidden, f = width / (double)c->layout->tp;
    double up = c->model->gated ? 2 : 1;
    double seconds = mf_time_gemm(c->rates, c->wide_tokens, up * f, h, c->low) +
                     mf_time_gemm(c->rates, c->wide_tokens, h, f, c->low) +
                     mf_time_memory(c->rates, c->wide_tokens * (up + 1) * f *
                                                  c->rates->element_bytes);

    work_product(work, part, seconds);
    work_tensor_parallel(c, work);
}

/* Gating on the local shard in fp32, then the choice over the experts. */
static void work_route(const struct mf_case *c, struct mf_work *work)
{
    double e = (double)c->model->experts;
    double h = (double)c->model->hidden;
    double seconds = mf_time_gemm(c->rates, c->tokens, e, h, false) +
                     mf_time_memory(c->rates, 6 * 4 * c->tokens * e);

    work_product(work, MF_PART_ROUTE, seconds);
}

/* The counts that the ranks tell each other before rows move. */
static void work_counts(const struct mf_case *c, struct mf_work *work)
{
    const struct mf_place *place = c->place[MF_GROUP_ETP_EP];
    double bytes = 4 * (double)c->model->experts * (double)place->size;

    work->part[c->layout->ep > 1 ? MF_PART_DISPATCH : MF_PART_GATHER][FW] +=
        mf_time_gather(c->rates, place, bytes, MF_COEF_EXCHANGE);
}

/* Each token is read once and written k times, or the other way round; the
 * gradients of the weights need both.
 */
static void work_permute(const struct mf_case *c, struct mf_work *work)
{
    double row = mf_row_width(c->model) * c->rates->element_bytes;
    double once = mf_time_memory(c->rates, (c->sent_rows + c->tokens) * row);
    double both =
        mf_time_memory(c->rates, (2 * c->sent_rows + c->tokens) * row);

    work->part[MF_PART_PERMUTE][FW] += once;
    work->part[MF_PART_PERMUTE][BW] += once;
    work->part[MF_PART_UNPERMUTE][FW] += once;
    work->part[MF_PART_UNPERMUTE][BW] += both;
}

static bool sends_once(enum mf_dispatcher dispatcher)
{
    return dispatcher == MF_DEDUP || dispatcher == MF_DEEPEP ||
           dispatcher == MF_HYBRIDEP;
}

/* Bytes over each tier when a token goes once to each domain outside, and
 * inside a domain once to each rank that wants it.
 */
static void exchange_once(const struct mf_case *c, const struct mf_place *place,
    double row, double bytes[MF_TIERS_MAX])
{
    const struct mf_model *m = c->model;
    double n = (double)place->size;
    double ranks = mf_balance_distinct(m->experts, m->topk, c->layout->ep) * n /
                   (double)c->layout->ep;

    bytes[0] = c->tokens * row * ranks * (n - 1) / n * c->hot;
    for (int t = 1; t <= place->outer; t++) {
        int64_t domains = place->domains[t - 1];
        double d = (double)domains, inner = (double)place->domains[t];
        double hit = mf_balance_distinct(m->experts, m->topk, domains);

        if (m->router.topk_groups > 0 && m->router.groups > 0)
            hit = fmin(hit, (double)m->router.topk_groups);
        bytes[t] = c->tokens * row * hit * (d - inner) / d * c->hot;
    }
}

static double exchange_seconds(const struct mf_case *c)
{
    bool once = sends_once(c->settings->dispatcher);
    bool both = c->settings->dispatcher == MF_DEEPEP ||
                c->settings->dispatcher == MF_HYBRIDEP;
    const struct mf_place *place =
        c->place[both ? MF_GROUP_ETP_EP : MF_GROUP_EP];
    double row = mf_row_width(c->model) * c->rates->element_bytes;
    double bytes[MF_TIERS_MAX] = {0}, rate = 1;

    if (once) {
        exchange_once(c, place, row, bytes);
    } else {
        double peer = c->sent_rows * row / (double)place->size * c->hot;

        for (int t = 0; t <= place->outer; t++)
            bytes[t] = peer * place->away[t];
    }
    if (c->settings->dispatcher == MF_DEEPEP)
        rate = c->rates->coef[MF_COEF_DEEPEP];
    if (c->settings->dispatcher == MF_HYBRIDEP)
        rate = c->rates->coef[MF_COEF_HYBRIDEP];
    for (int t = 0; t <= place->outer; t++)
        bytes[t] /= rate;
    return mf_time_exchange(c->rates, place, bytes);
}

/* The all-gather dispatcher moves every token to every expert rank. */
static void work_all_gather(const struct mf_case *c, struct mf_work *work)
{
    const struct mf_place *place = c->place[MF_GROUP_ETP_EP];
    double bytes = c->tokens * (double)place->size * mf_row_width(c->model) *
                   c->rates->element_bytes;
    double seconds = mf_time_gather(c->rates, place, bytes, MF_COEF_EXCHANGE);

    for (int d = 0; d < MF_DIRECTIONS; d++) {
        work->part[MF_PART_DISPATCH][d] += seconds;
        work->part[MF_PART_COMBINE][d] += seconds;
    }
}

/* Dispatch and combine over EP; over ETP every peer gets the rows of all, and
 * partial sums go back the same way.
 */
static void work_exchange(const struct mf_case *c, struct mf_work *work)
{
    double seconds, gather;

    if (c->settings->dispatcher == MF_ALLGATHER) {
        work_all_gather(c, work);
        return;
    }
    seconds = exchange_seconds(c);
    gather = mf_time_gather(c->rates, c->place[MF_GROUP_ETP],
        c->rows * mf_row_width(c->model) * c->rates->element_bytes,
        MF_COEF_EXCHANGE);
    if (c->settings->dispatcher == MF_DEEPEP ||
        c->settings->dispatcher == MF_HYBRIDEP)
        gather = 0;
    for (int d = 0; d < MF_DIRECTIONS; d++) {
        work->part[MF_PART_DISPATCH][d] += seconds;
        work->part[MF_PART_COMBINE][d] += seconds;
        work->part[MF_PART_GATHER][d] += gather;
        work->part[MF_PART_REDUCE][d] += gather;
    }
}

/* What arrives from several ranks for several experts is put in the order of
 * experts, and back in that of ranks afterwards.
 */
static double sort_seconds(const struct mf_case *c)
{
    double row = mf_row_width(c->model) * c->rates->element_bytes;

    if (c->layout->ep * c->layout->etp < 2 ||
        c->model->experts <= c->layout->ep)
        return 0;
    return 2 * mf_time_memory(c->rates, 2 * c->rows * row);
}

static void work_experts(const struct mf_case *c, struct mf_work *work)
{
    double h = mf_row_width(c->model);
    double f = (double)c->model->moe_ffn / (double)c->layout->etp;
    double local = (double)c->model->experts / (double)c->layout->ep;
    double up = c->model->gated ? 2 : 1, narrow = fmin(f, h);
    double seconds =
        mf_time_grouped(c->rates, c->rows, local, up * f, h, narrow, c->low) +
        mf_time_grouped(c->rates, c->rows, local, h, f, narrow, c->low) +
        mf_time_memory(
            c->rates, c->rows * (up + 1) * f * c->rates->element_bytes);

    work_product(work, MF_PART_EXPERTS, seconds);
    for (int d = 0; d < MF_DIRECTIONS; d++)
        work->part[MF_PART_EXPERTS][d] += sort_seconds(c);
}

void mf_work_moe(const struct mf_case *c, struct mf_work *work)
{
    *work = (struct mf_work){0};
    work_route(c, work);
    work_counts(c, work);
    work_permute(c, work);
    work_exchange(c, work);
    work_experts(c, work);
    if (c->model->shared_ffn > 0)
        work_mlp(c, (double)c->model->shared_ffn, MF_PART_SHARED, work);
}

/* A dense part beside the experts, and the way of rows to a latent width. */
static void work_beside(const struct mf_case *c, struct mf_work *work)
{
    double h = (double)c->model->hidden, latent = (double)c->model->latent;

    if (c->model->beside_ffn > 0)
        work_mlp(c, (double)c->model->beside_ffn, MF_PART_DENSE, work);
    if (latent > 0)
        work_product(work, MF_PART_DENSE,
            mf_time_gemm(c->rates, c->tokens, latent, h, c->low) +
                mf_time_gemm(c->rates, c->tokens, h, latent, c->low));
}

/* Seconds of forward that the modules that are recomputed take. */
static double modules_forward(
    const struct mf_case *c, const struct mf_work *work)
{
    const double(*part)[MF_DIRECTIONS] = work->part;
    unsigned on = c->settings->modules;
    double again = 0, act = 0.1 * part[MF_PART_EXPERTS][FW];

    if (on & MF_MODULE_CORE_ATTN)
        again += 0.4 * part[MF_PART_ATTENTION][FW];
    if (on & MF_MODULE_LAYERNORM)
        again += 0.2 * part[MF_PART_NORM][FW];
    if (on & MF_MODULE_MLA_UP_PROJ)
        again += 0.2 * part[MF_PART_ATTENTION][FW];
    if (on & MF_MODULE_MLP)
        again += part[MF_PART_DENSE][FW];
    if (on & MF_MODULE_SHARED_EXPERTS)
        again += part[MF_PART_SHARED][FW];
    if (on & MF_MODULE_MOE)
        again += part[MF_PART_ROUTE][FW] + part[MF_PART_PERMUTE][FW] +
                 part[MF_PART_DISPATCH][FW] + part[MF_PART_GATHER][FW] +
                 part[MF_PART_EXPERTS][FW] + part[MF_PART_REDUCE][FW] +
                 part[MF_PART_COMBINE][FW] + part[MF_PART_UNPERMUTE][FW];
    else if (on & MF_MODULE_MOE_ACT)
        again += act;
    return again;
}

/* What backward does again. */
static void work_recompute(const struct mf_case *c, struct mf_work *work)
{
    double again = 0;

    if (c->settings->recompute == MF_RECOMPUTE_FULL)
        again = mf_work_sum(work, FW);
    else if (c->settings->recompute == MF_RECOMPUTE_MODULES)
        again = modules_forward(c, work);
    else if (c->settings->recompute == MF_RECOMPUTE_SELECTIVE)
        again = 0.2 * work->part[MF_PART_NORM][FW] +
                0.1 * (work->part[MF_PART_EXPERTS][FW] +
                          work->part[MF_PART_DENSE][FW] +
                          work->part[MF_PART_SHARED][FW]);
    work->part[MF_PART_RECOMPUTE][BW] += again;
}

/* Under EP overlap the exchanges of one micro batch run while another is
 * computed; a part stays exposed.
 */
static void work_overlap(const struct mf_case *c, struct mf_work *work)
{
    static const enum mf_part_id moved[] = {MF_PART_DISPATCH, MF_PART_COMBINE};
    double exposed = c->rates->coef[MF_COEF_EXPOSED];

    if (!c->settings->ep_overlap || c->rates->cpu)
        return;
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < MF_DIRECTIONS; d++) {
            double *seconds = &work->part[moved[i]][d];

            work->hidden_s += (1 - exposed) * *seconds;
            *seconds *= exposed;
        }
}

/* Least seconds of a layer: its host starts so many kernels. */
static double layer_floor(const struct mf_case *c, enum mf_ffn ffn)
{
    const double *coef = c->rates->coef;
    double least = coef[MF_COEF_FLOOR_S];

    if (ffn != MF_FFN_MOE)
        least *= coef[MF_COEF_DENSE_FLOOR];
    if (c->low)
        least *= 1.1;
    if (c->settings->recompute == MF_RECOMPUTE_FULL)
        least *= 1.25;
    if (!isnan(c->settings->capacity_factor))
        least *= coef[MF_COEF_DROPPED];
    if (c->settings->dispatcher == MF_HYBRIDEP)
        least *= coef[MF_COEF_LIGHT];
    if (c->settings->graphs == MF_GRAPHS_FULL)
        least *= coef[MF_COEF_GRAPHED];
    if (c->settings->graphs == MF_GRAPHS_NONE)
        least *= coef[MF_COEF_UNGRAPHED];
    return least;
}

/* However little there is to compute, a host needs time to start the kernels
 * of a layer: measured over published runs, and blended as a fourth power.
 */
static void work_floor(
    const struct mf_case *c, enum mf_ffn ffn, struct mf_work *work)
{
    double forward = mf_work_sum(work, FW), all, least, blended;

    all = forward + mf_work_sum(work, BW);
    least = layer_floor(c, ffn);
    if (least <= 0 || all <= 0)
        return;
    blended = sqrt(sqrt(all * all * all * all + least * least * least * least));
    work->part[MF_PART_LAUNCH][FW] += (blended - all) * forward / all;
    work->part[MF_PART_LAUNCH][BW] += (blended - all) * (1 - forward / all);
}

void mf_work_base(
    const struct mf_case *c, struct mf_layer_kind kind, struct mf_work *work)
{
    *work = (struct mf_work){0};
    if (kind.ffn == MF_FFN_MOE) {
        mf_work_moe(c, work);
        work_beside(c, work);
        work_norm(c, work);
    }
    if (kind.ffn == MF_FFN_DENSE) {
        work_mlp(c, (double)c->model->dense_ffn, MF_PART_DENSE, work);
        work_norm(c, work);
    }
    if (kind.mixer != MF_MIXER_NONE)
        work_attention(c, kind.mixer, work);
}

void mf_work_finish(
    const struct mf_case *c, struct mf_layer_kind kind, struct mf_work *work)
{
    work_recompute(c, work);
    work_overlap(c, work);
    work_floor(c, kind.ffn, work);
}
