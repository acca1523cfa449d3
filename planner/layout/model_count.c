/* SPDX-License-Identifier: BSD-3-Clause
 * Counting the parameters of a model, part by part.
 */
#include "planner/layout/model.h"

/* Sums that remember whether they left 64 bits. WEIGHTS: only what a token is
 * multiplied with, no biases, norms or taps, and of attention experts only
 * those that it is sent to.
 */
struct count {
    const struct mf_model *model;
    bool over, weights;
};

static int64_t add(struct count *c, int64_t a, int64_t b)
{
    int64_t sum = 0;

    if (__builtin_add_overflow(a, b, &sum))
        c->over = true;
    return sum;
}

static int64_t mul(struct count *c, int64_t a, int64_t b)
{
    int64_t product = 0;

    if (__builtin_mul_overflow(a, b, &product))
        c->over = true;
    return product;
}

/* *SUM += a * b */
static void add_product(struct count *c, int64_t *sum, int64_t a, int64_t b)
{
    *sum = add(c, *sum, mul(c, a, b));
}

/* The same for what is no weight of a product. */
static void add_vector(struct count *c, int64_t *sum, int64_t a, int64_t b)
{
    if (!c->weights)
        add_product(c, sum, a, b);
}

/* A feed-forward block of WIDTH between vectors of HIDDEN. */
static int64_t count_block(struct count *c, int64_t hidden, int64_t width)
{
    const struct mf_model *m = c->model;
    int64_t up = m->gated ? 2 : 1, sum = 0;

    add_product(c, &sum, mul(c, up + 1, hidden), width);
    if (m->mlp_bias)
        add_vector(c, &sum, 1, add(c, mul(c, up, width), hidden));
    return sum;
}

static int64_t count_mlp(struct count *c, int64_t width)
{
    return count_block(c, c->model->hidden, width);
}

static int64_t count_expert(struct count *c)
{
    const struct mf_model *m = c->model;

    return count_block(c, m->latent ? m->latent : m->hidden, m->moe_ffn);
}

int64_t mf_model_expert_params(const struct mf_model *model)
{
    struct count c = {.model = model};
    int64_t n = count_expert(&c);

    return c.over ? -1 : n;
}

static int64_t count_query(struct count *c, int64_t rank, int64_t width)
{
    int64_t sum = 0;

    if (rank > 0) {
        add_product(c, &sum, c->model->hidden, rank);
        add_product(c, &sum, rank, width);
    } else {
        add_product(c, &sum, c->model->hidden, width);
    }
    return sum;
}

static int64_t count_mla(struct count *c)
{
    const struct mf_model *m = c->model;
    const struct mf_mla *a = &m->mla;
    int64_t head = add(c, a->nope_dim, a->rope_dim);
    int64_t down = add(c, a->kv_rank, a->rope_dim);
    int64_t sum = count_query(c, a->q_rank, mul(c, m->heads, head));

    add_product(c, &sum, m->hidden, down);
    add_product(
        c, &sum, mul(c, a->kv_rank, m->heads), add(c, a->nope_dim, a->v_dim));
    add_product(c, &sum, mul(c, m->heads, a->v_dim), m->hidden);
    add_product(c, &sum, mul(c, m->heads, m->gate_dim), m->hidden);
    if (m->qkv_bias)
        add_vector(c, &sum, 1, add(c, a->q_rank, down));
    if (m->out_bias)
        add_vector(c, &sum, 1, m->hidden);
    return sum;
}

/* O_GROUPS blocks of heads go through a rank each and meet in one matrix. */
static int64_t count_output(struct count *c, int64_t width)
{
    const struct mf_model *m = c->model;
    int64_t sum = 0;

    if (m->o_rank > 0) {
        add_product(c, &sum, width, m->o_rank);
        add_product(c, &sum, mul(c, m->o_groups, m->o_rank), m->hidden);
    } else {
        add_product(c, &sum, width, m->hidden);
    }
    return sum;
}

static void count_gqa_vectors(
    struct count *c, const struct mf_heads *a, int64_t kv_heads, int64_t *sum)
{
    const struct mf_model *m = c->model;
    int64_t values = a->keys_are_values ? 0 : a->v_dim;

    if (m->qkv_bias) {
        add_vector(c, sum, a->heads, a->head_dim);
        add_vector(c, sum, kv_heads, add(c, a->head_dim, values));
    }
    if (m->out_bias)
        add_vector(c, sum, 1, m->hidden);
    if (a->sinks)
        add_vector(c, sum, 1, a->heads);
}

static int64_t count_gqa(
    struct count *c, const struct mf_heads *a, int64_t kv_heads)
{
    const struct mf_model *m = c->model;
    int64_t values = a->keys_are_values ? 0 : a->v_dim;
    int64_t wide = count_query(c, m->q_rank, mul(c, a->heads, a->head_dim));
    int64_t sum = 0;

    wide = add(c, wide, count_output(c, mul(c, a->heads, a->v_dim)));
    if (m->attention_experts > 0) {
        /* Each expert has the query and output of heads / topk heads. */
        wide = m->attention_topk > 0 ? wide / m->attention_topk : wide;
        wide =
            mul(c, wide, c->weights ? m->attention_topk : m->attention_experts);
        add_product(c, &wide, m->hidden, m->attention_experts);
    }
    sum = add(c, sum, wide);
    add_product(
        c, &sum, mul(c, m->hidden, kv_heads), add(c, a->head_dim, values));
    add_product(c, &sum, mul(c, a->heads, m->gate_dim), m->hidden);
    count_gqa_vectors(c, a, kv_heads, &sum);
    return sum;
}

/* Softmax attention of one layer; KV_HEADS < 0: the model's own. */
static int64_t count_attention(
    struct count *c, enum mf_mixer mixer, int64_t kv_heads)
{
    struct mf_heads a = mf_model_heads(c->model, mixer);

    if (c->model->attention == MF_ATTENTION_MLA)
        return count_mla(c);
    return count_gqa(c, &a, kv_heads < 0 ? a.kv_heads : kv_heads);
}

/* Keys and their weights in entries of RATIO tokens each; at ratio 4 entries
 * overlap and are worked out twice over (DeepSeek-V4's published model code).
 */
static int64_t count_compressor(struct count *c, int64_t dim, int64_t ratio)
{
    int64_t width = ratio == 4 ? mul(c, 2, dim) : dim, sum = 0;

    add_product(c, &sum, mul(c, 2, c->model->hidden), width);
    add_vector(c, &sum, ratio, width);
    add_vector(c, &sum, 1, dim);
    return sum;
}

/* DeepSeek-V3.2-Exp's report, section 2.1: queries from the low-rank one, one
 * shared key, a weight a head.
 */
static int64_t count_indexer(struct count *c)
{
    const struct mf_model *m = c->model;
    const struct mf_indexer *x = &m->indexer;
    int64_t rank = m->attention == MF_ATTENTION_MLA ? m->mla.q_rank : m->q_rank;
    int64_t sum = 0;

    add_product(c, &sum, rank > 0 ? rank : m->hidden, mul(c, x->heads, x->dim));
    add_product(c, &sum, m->hidden, x->heads);
    if (x->ratio > 0)
        return add(c, sum, count_compressor(c, x->dim, x->ratio));
    add_product(c, &sum, m->hidden, x->dim);
    add_vector(c, &sum, 2, x->dim);
    return sum;
}

/* Projections of keys, queries and values; decay and step; output gate; the
 * way back; taps.
 */
static int64_t count_linear(struct count *c)
{
    const struct mf_linear *l = &c->model->linear;
    int64_t keys = mul(c, l->key_heads, l->key_dim);
    int64_t values = mul(c, l->value_heads, l->value_dim);
    int64_t qkv = add(c, mul(c, 2, keys), values), h = c->model->hidden;
    int64_t sum = mul(c, h, add(c, qkv, values));

    if (l->gate_rank > 0) {
        add_product(c, &sum, h, l->gate_rank);
        add_product(c, &sum, l->gate_rank, values);
    } else {
        add_product(c, &sum, h, values);
    }
    add_vector(c, &sum, qkv, l->conv_kernel);
    if (l->type == MF_LINEAR_GATED_DELTA) {
        add_product(c, &sum, mul(c, 2, h), l->value_heads);
        add_vector(c, &sum, 2, l->value_heads);
    }
    if (l->type == MF_LINEAR_KDA) {
        sum = add(c, sum, count_query(c, l->decay_rank, keys));
        add_product(c, &sum, h, l->value_heads);
        add_vector(c, &sum, 1, add(c, keys, l->value_heads));
    }
    return sum;
}

static int64_t count_mamba1(struct count *c)
{
    const struct mf_mamba *a = &c->model->mamba;
    int64_t h = c->model->hidden, sum = mul(c, h, mul(c, 3, a->inner));

    add_product(c, &sum, a->inner, add(c, a->dt_rank, mul(c, 2, a->state)));
    add_product(c, &sum, a->dt_rank, a->inner);
    add_vector(c, &sum, a->inner, a->conv_kernel);
    add_vector(c, &sum, a->inner, add(c, a->state, 2));
    if (a->conv_bias)
        add_vector(c, &sum, 1, a->inner);
    if (a->proj_bias)
        add_vector(c, &sum, 1, add(c, mul(c, 2, a->inner), h));
    return sum;
}

static int64_t count_mamba2(struct count *c)
{
    const struct mf_mamba *a = &c->model->mamba;
    int64_t mixed = mul(c, mul(c, 2, a->groups), a->state);
    int64_t into = add(c, add(c, mul(c, 2, a->inner), mixed), a->heads);
    int64_t taps = add(c, a->inner, mixed), h = c->model->hidden;
    int64_t sum = mul(c, h, add(c, into, a->inner));

    add_vector(c, &sum, taps, a->conv_kernel);
    add_vector(c, &sum, 3, a->heads);
    if (a->conv_bias)
        add_vector(c, &sum, 1, taps);
    if (a->proj_bias)
        add_vector(c, &sum, 1, add(c, into, h));
    return sum;
}

static int64_t count_conv(struct count *c)
{
    int64_t h = c->model->hidden, sum = mul(c, mul(c, 4, h), h);

    add_vector(c, &sum, h, c->model->conv_kernel);
    return sum;
}

static int64_t count_mixer(
    struct count *c, enum mf_mixer mixer, int64_t kv_heads)
{
    const struct mf_model *m = c->model;
    int64_t sum;

    switch (mixer) {
    case MF_MIXER_FULL:
    case MF_MIXER_SLIDING:
        return count_attention(c, mixer, kv_heads);
    case MF_MIXER_SPARSE:
        sum = add(c, count_attention(c, mixer, kv_heads), count_indexer(c));
        if (m->indexer.ratio > 0)
            sum =
                add(c, sum, count_compressor(c, m->head_dim, m->indexer.ratio));
        return sum;
    case MF_MIXER_COMPRESSED:
        return add(c, count_attention(c, mixer, kv_heads),
            count_compressor(c, m->head_dim, m->compress_ratio));
    case MF_MIXER_LINEAR:
        return count_linear(c);
    case MF_MIXER_MAMBA:
        return m->mamba.heads > 0 ? count_mamba2(c) : count_mamba1(c);
    case MF_MIXER_CONV:
        return count_conv(c);
    default:
        return 0;
    }
}

int64_t mf_model_mixer_params(const struct mf_model *model, enum mf_mixer mixer)
{
    struct count c = {.model = model};
    int64_t n = count_mixer(&c, mixer, -1);

    return c.over ? -1 : n;
}

int64_t mf_model_mixer_weights(
    const struct mf_model *model, enum mf_mixer mixer)
{
    struct count c = {.model = model, .weights = true};
    int64_t n = count_mixer(&c, mixer, -1);

    return c.over ? -1 : n;
}

static int64_t count_softmax_norms(struct count *c, enum mf_mixer mixer)
{
    const struct mf_model *m = c->model;
    struct mf_heads a = mf_model_heads(m, mixer);
    int64_t sum = m->q_rank;

    if (m->attention == MF_ATTENTION_MLA)
        sum = add(c, m->mla.q_rank, m->mla.kv_rank);
    if (m->qk_norm == MF_QK_NORM_HEAD)
        add_product(c, &sum, 2, a.head_dim);
    if (m->qk_norm == MF_QK_NORM_WHOLE)
        add_product(c, &sum, add(c, a.heads, a.kv_heads), a.head_dim);
    return sum;
}

/* Norms inside one mixer, besides those of hidden width around it. */
static int64_t count_mixer_norms(struct count *c, enum mf_mixer mixer)
{
    const struct mf_model *m = c->model;

    switch (mixer) {
    case MF_MIXER_NONE:
    case MF_MIXER_CONV:
        return 0;
    case MF_MIXER_LINEAR:
        if (m->linear.type == MF_LINEAR_LIGHTNING)
            return mul(c, m->linear.value_heads, m->linear.value_dim);
        return m->linear.value_dim;
    case MF_MIXER_MAMBA:
        if (!m->mamba.norms)
            return 0;
        return m->mamba.heads > 0
                   ? m->mamba.inner
                   : add(c, m->mamba.dt_rank, mul(c, 2, m->mamba.state));
    default:
        return count_softmax_norms(c, mixer);
    }
}

static int64_t count_router(struct count *c)
{
    const struct mf_model *m = c->model;
    int64_t rows = add(c, m->experts, m->zero_experts);
    int64_t sum = mul(c, m->hidden, rows);

    if (m->router.bias)
        sum = add(c, sum, rows);
    return m->router.linear_bias ? add(c, sum, rows) : sum;
}

static int64_t count_shared(struct count *c)
{
    const struct mf_model *m = c->model;
    int64_t sum = 0;

    if (m->shared_ffn > 0)
        sum = count_mlp(c, m->shared_ffn);
    return m->shared_gate ? add(c, sum, m->hidden) : sum;
}

/* What every token passes in an MoE layer to reach and leave its experts. */
static int64_t count_latent(struct count *c)
{
    return mul(c, mul(c, 2, c->model->hidden), c->model->latent);
}

/* An MTP layer is like the last one; where a layer is a mixer or a feed-forward
 * part, it has both (Nemotron 3: attention and experts).
 */
static struct mf_layer_kind mtp_kind(const struct mf_model *m)
{
    struct mf_layer_kind kind = m->layer_kind[m->layers - 1];

    if (kind.mixer == MF_MIXER_NONE || kind.ffn == MF_FFN_NONE) {
        kind.mixer = MF_MIXER_FULL;
        kind.ffn = m->experts > 0 ? MF_FFN_MOE : MF_FFN_DENSE;
    }
    return kind;
}

static int64_t count_mtp(struct count *c)
{
    const struct mf_model *m = c->model;
    struct mf_layer_kind kind = mtp_kind(m);
    int64_t layer = mul(c, mul(c, 2, m->hidden), m->hidden);

    add_product(c, &layer, 3, m->hidden);
    if (kind.mixer != MF_MIXER_NONE) {
        add_product(c, &layer, m->norms_mixer, m->hidden);
        layer = add(c, layer, count_mixer(c, kind.mixer, -1));
        layer = add(c, layer, count_mixer_norms(c, kind.mixer));
    }
    if (kind.ffn != MF_FFN_NONE)
        add_product(c, &layer, m->norms_ffn, m->hidden);
    if (kind.ffn == MF_FFN_DENSE)
        layer = add(c, layer, count_mlp(c, m->dense_ffn));
    if (kind.ffn == MF_FFN_MOE) {
        add_product(c, &layer, m->experts, count_expert(c));
        layer = add(c, layer, add(c, count_router(c), count_shared(c)));
        layer = add(c, layer, count_latent(c));
        if (m->beside_ffn > 0)
            layer = add(c, layer, count_mlp(c, m->beside_ffn));
    }
    return mul(c, m->mtp_layers, layer);
}

/* Mixers and dense parts, layer by layer where their sizes differ. */
static void count_sized(struct count *c, struct mf_params *p)
{
    const struct mf_model *m = c->model;

    for (int64_t i = 0; i < m->layers; i++) {
        const struct mf_layer_size *size = &m->layer_size[i];

        p->attention = add(c, p->attention,
            count_mixer(c, m->layer_kind[i].mixer, size->kv_heads));
        if (m->layer_kind[i].ffn == MF_FFN_DENSE)
            p->dense_mlp = add(c, p->dense_mlp, count_mlp(c, size->ffn));
    }
}

static void count_mixers(struct count *c, struct mf_params *p)
{
    const struct mf_model *m = c->model;
    int64_t with = 0;

    for (int i = 0; i < MF_MIXERS; i++) {
        enum mf_mixer mixer = (enum mf_mixer)i;
        int64_t n = mf_model_count_mixer(m, mixer);

        if (!n || mixer == MF_MIXER_NONE)
            continue;
        with = add(c, with, n);
        add_product(c, &p->norms, n, count_mixer_norms(c, mixer));
        if (!m->layer_size)
            add_product(c, &p->attention, n, count_mixer(c, mixer, -1));
    }
    add_product(c, &p->norms, mul(c, with, m->norms_mixer), m->hidden);
}

static void count_embedding(struct count *c, struct mf_params *p)
{
    const struct mf_model *m = c->model;

    p->embedding =
        mul(c, m->tied_embeddings ? 1 : 2, mul(c, m->vocab, m->hidden));
    add_product(c, &p->embedding, m->positions, m->hidden);
    if (m->head_bias)
        p->embedding = add(c, p->embedding, m->vocab);
}

static void count_parts(struct count *c, struct mf_params *p)
{
    const struct mf_model *m = c->model;
    int64_t dense = mf_model_count(m, MF_FFN_DENSE);
    int64_t moe = mf_model_count(m, MF_FFN_MOE);

    count_embedding(c, p);
    p->norms = mul(c, m->norms_end, m->hidden);
    add_product(
        c, &p->norms, mul(c, add(c, dense, moe), m->norms_ffn), m->hidden);
    count_mixers(c, p);
    if (m->layer_size)
        count_sized(c, p);
    else
        p->dense_mlp = mul(c, dense, count_mlp(c, m->dense_ffn));
    if (m->beside_ffn > 0)
        add_product(c, &p->dense_mlp, moe, count_mlp(c, m->beside_ffn));
    p->routed = mul(c, mul(c, moe, m->experts), count_expert(c));
    p->shared = mul(c, moe, count_shared(c));
    p->router = mul(c, moe, count_router(c));
    p->other = mul(c, m->layers, m->layer_extra);
    add_product(c, &p->other, moe, count_latent(c));
    p->mtp = m->mtp_layers > 0 ? count_mtp(c) : 0;
}

/* Experts that work for a token; those that do nothing are chosen as often as
 * others.
 */
static int64_t count_chosen(const struct mf_model *m)
{
    int64_t all = m->experts + m->zero_experts;

    return m->zero_experts > 0 ? (m->topk * m->experts + all / 2) / all
                               : m->topk;
}

int mf_model_count_params(struct mf_model *model, struct mf_error *err)
{
    struct mf_params p = {.vision = model->params.vision};
    struct count c = {.model = model};
    int64_t rest, idle;

    if (!model->layer_kind || model->layers < 1)
        return mf_error_set(err, MF_INVALID, "the model has no layers");
    count_parts(&c, &p);
    rest = add(&c, p.embedding, add(&c, p.attention, p.dense_mlp));
    rest = add(&c, rest, add(&c, p.shared, add(&c, p.router, p.norms)));
    p.total = add(&c, add(&c, rest, p.other), p.routed);
    idle = mul(&c, mf_model_count(model, MF_FFN_MOE),
        mul(&c, model->experts - count_chosen(model), count_expert(&c)));
    if (model->attention_experts > 0) {
        int64_t whole = mf_model_mixer_params(model, MF_MIXER_FULL);
        int64_t used = mf_model_mixer_weights(model, MF_MIXER_FULL);

        add_product(&c, &idle, mf_model_count_mixer(model, MF_MIXER_FULL),
            whole - used);
    }
    p.active = add(&c, p.total, -idle);
    p.active_no_embedding = add(&c, p.active,
        -mul(&c, add(&c, model->vocab, model->positions), model->hidden));
    if (c.over)
        return mf_error_set(err, MF_INVALID,
            "the number of parameters does not fit in 64 bits");
    model->params = p;
    return 0;
}
