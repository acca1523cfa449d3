/* SPDX-License-Identifier: BSD-3-Clause
 * The shape of a model: counting its parameters, its warnings, its memory.
 */
#include "planner/layout/model_field.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sums that remember whether they left 64 bits. */
struct count {
    bool over;
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

const char *mf_attention_name(enum mf_attention attention)
{
    static const char *const name[] = {
        [MF_ATTENTION_MHA] = "mha",
        [MF_ATTENTION_GQA] = "gqa",
        [MF_ATTENTION_MLA] = "mla",
    };

    return name[attention];
}

const char *mf_score_name(enum mf_score score)
{
    return score == MF_SCORE_SIGMOID ? "sigmoid" : "softmax";
}

int64_t mf_model_count(const struct mf_model *model, enum mf_ffn kind)
{
    int64_t n = 0;

    for (int64_t i = 0; model->layer_kind && i < model->layers; i++)
        n += model->layer_kind[i].ffn == kind;
    return n;
}

static int64_t count_mixers(const struct mf_model *m)
{
    int64_t n = 0;

    for (int64_t i = 0; m->layer_kind && i < m->layers; i++)
        n += m->layer_kind[i].mixer != MF_MIXER_NONE;
    return n;
}

/* One feed-forward block of WIDTH, gated or not. */
static int64_t count_mlp(
    struct count *c, const struct mf_model *m, int64_t width)
{
    int64_t up = m->gated ? 2 : 1, sum = 0;

    add_product(c, &sum, mul(c, up + 1, m->hidden), width);
    if (m->mlp_bias)
        sum = add(c, sum, add(c, mul(c, up, width), m->hidden));
    return sum;
}

int64_t mf_model_expert_params(const struct mf_model *model)
{
    struct count c = {false};
    int64_t n = count_mlp(&c, model, model->moe_ffn);

    return c.over ? -1 : n;
}

static int64_t count_mla(struct count *c, const struct mf_model *m)
{
    const struct mf_mla *a = &m->mla;
    int64_t query = mul(c, m->heads, add(c, a->nope_dim, a->rope_dim));
    int64_t sum = 0;

    if (a->q_rank > 0) {
        add_product(c, &sum, m->hidden, a->q_rank);
        add_product(c, &sum, a->q_rank, query);
    } else {
        add_product(c, &sum, m->hidden, query);
    }
    add_product(c, &sum, m->hidden, add(c, a->kv_rank, a->rope_dim));
    add_product(
        c, &sum, mul(c, a->kv_rank, m->heads), add(c, a->nope_dim, a->v_dim));
    add_product(c, &sum, mul(c, m->heads, a->v_dim), m->hidden);
    if (m->qkv_bias)
        sum = add(c, sum, add(c, a->q_rank, add(c, a->kv_rank, a->rope_dim)));
    return sum;
}

static int64_t count_gqa(struct count *c, const struct mf_model *m)
{
    int64_t q = mul(c, m->heads, m->head_dim);
    int64_t kv = mul(c, m->kv_heads, m->head_dim);
    int64_t qkv = add(c, q, mul(c, 2, kv));
    int64_t sum = mul(c, m->hidden, add(c, qkv, q));

    return m->qkv_bias ? add(c, sum, qkv) : sum;
}

/* The attention block of one layer, without its norms. */
static int64_t count_attention(struct count *c, const struct mf_model *m)
{
    int64_t sum =
        m->attention == MF_ATTENTION_MLA ? count_mla(c, m) : count_gqa(c, m);

    return m->out_bias ? add(c, sum, m->hidden) : sum;
}

/* Norms inside the attention block of one layer. */
static int64_t count_attention_norms(struct count *c, const struct mf_model *m)
{
    int64_t sum = 0;

    if (m->attention == MF_ATTENTION_MLA)
        sum = add(c, m->mla.q_rank, m->mla.kv_rank);
    if (m->qk_norm == MF_QK_NORM_HEAD)
        add_product(c, &sum, 2, m->head_dim);
    if (m->qk_norm == MF_QK_NORM_WHOLE)
        add_product(c, &sum, add(c, m->heads, m->kv_heads), m->head_dim);
    return sum;
}

static int64_t count_router(struct count *c, const struct mf_model *m)
{
    int64_t sum = mul(c, m->hidden, m->experts);

    return m->router.bias ? add(c, sum, m->experts) : sum;
}

static int64_t count_shared(struct count *c, const struct mf_model *m)
{
    int64_t sum = 0;

    if (m->shared_ffn > 0)
        sum = count_mlp(c, m, m->shared_ffn);
    return m->shared_gate ? add(c, sum, m->hidden) : sum;
}

static int64_t count_mtp(struct count *c, const struct mf_model *m)
{
    struct mf_layer_kind kind = m->layer_kind[m->layers - 1];
    int64_t layer = mul(c, mul(c, 2, m->hidden), m->hidden);

    add_product(c, &layer, 3, m->hidden);
    if (kind.mixer != MF_MIXER_NONE)
        layer = add(c, layer,
            add(c, m->hidden,
                add(c, count_attention(c, m), count_attention_norms(c, m))));
    if (kind.ffn != MF_FFN_NONE)
        layer = add(c, layer, m->hidden);
    if (kind.ffn == MF_FFN_DENSE)
        layer = add(c, layer, count_mlp(c, m, m->dense_ffn));
    if (kind.ffn == MF_FFN_MOE) {
        add_product(c, &layer, m->experts, count_mlp(c, m, m->moe_ffn));
        layer = add(c, layer, add(c, count_router(c, m), count_shared(c, m)));
    }
    return mul(c, m->mtp_layers, layer);
}

static void count_parts(
    struct count *c, const struct mf_model *m, struct mf_params *p)
{
    int64_t mixers = count_mixers(m);
    int64_t dense = mf_model_count(m, MF_FFN_DENSE);
    int64_t moe = mf_model_count(m, MF_FFN_MOE);

    p->embedding =
        mul(c, m->tied_embeddings ? 1 : 2, mul(c, m->vocab, m->hidden));
    p->attention = mul(c, mixers, count_attention(c, m));
    p->dense_mlp = mul(c, dense, count_mlp(c, m, m->dense_ffn));
    p->routed = mul(c, mul(c, moe, m->experts), count_mlp(c, m, m->moe_ffn));
    p->shared = mul(c, moe, count_shared(c, m));
    p->router = mul(c, moe, count_router(c, m));
    p->norms = mul(c, add(c, mixers, dense + moe + 1), m->hidden);
    add_product(c, &p->norms, mixers, count_attention_norms(c, m));
    p->mtp = m->mtp_layers > 0 ? count_mtp(c, m) : 0;
}

int mf_model_count_params(struct mf_model *model, struct mf_error *err)
{
    struct mf_params p = {.vision = model->params.vision};
    struct count c = {false};
    int64_t rest, chosen;

    if (!model->layer_kind || model->layers < 1)
        return mf_error_set(err, MF_INVALID, "the model has no layers");
    count_parts(&c, model, &p);
    rest = add(&c, p.embedding, add(&c, p.attention, p.dense_mlp));
    rest = add(&c, rest, add(&c, p.shared, add(&c, p.router, p.norms)));
    chosen = mul(&c, mul(&c, mf_model_count(model, MF_FFN_MOE), model->topk),
        count_mlp(&c, model, model->moe_ffn));
    p.total = add(&c, rest, p.routed);
    p.active = add(&c, rest, chosen);
    p.active_no_embedding =
        add(&c, p.active, -mul(&c, model->vocab, model->hidden));
    if (c.over)
        return mf_error_set(err, MF_INVALID,
            "the number of parameters does not fit in 64 bits");
    model->params = p;
    return 0;
}

/* One line of valid UTF-8, whatever file or folder name it came from. */
void mf_model_clean_text(char *text)
{
    json_t *json;

    for (char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = '?';
    json = json_string(text);
    for (char *p = text; !json && *p; p++)
        if ((unsigned char)*p >= 128)
            *p = '?';
    json_decref(json);
}

int mf_model_warn(
    struct mf_model *model, struct mf_error *err, const char *fmt, ...)
{
    char text[512], **list, *copy;
    size_t n = 0;
    va_list args;
    int len;

    while (model->warning && model->warning[n])
        n++;
    va_start(args, fmt);
    len = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (len < 0)
        return mf_error_set(err, MF_FAILED, "a warning cannot be written");
    mf_model_clean_text(text);
    copy = strdup(text);
    list = copy ? realloc(model->warning, (n + 2) * sizeof *list) : NULL;
    if (!list) {
        free(copy);
        return mf_error_set(err, MF_FAILED, "out of memory");
    }
    list[n] = copy;
    list[n + 1] = NULL;
    model->warning = list;
    return 0;
}

void mf_model_free(struct mf_model *model)
{
    if (!model)
        return;
    for (size_t i = 0; model->warning && model->warning[i]; i++)
        free(model->warning[i]);
    free(model->warning);
    free(model->layer_kind);
    model->warning = NULL;
    model->layer_kind = NULL;
}
