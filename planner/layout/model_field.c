/* SPDX-License-Identifier: BSD-3-Clause
 * The whole numbers of a model's shape: their names, ranges and relations.
 */
#include "planner/layout/model_field.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>

struct field_row {
    const char *object, *key;
    size_t offset;
    int64_t least, most;
};

#define ROW(object, key, member, least, most)                                  \
    {                                                                          \
        object, key, offsetof(struct mf_model, member), least, most            \
    }

static const struct field_row field_table[MF_FIELDS] = {
    [MF_FIELD_LAYERS] = ROW(NULL, "layers", layers, 1, MF_LAYERS_MAX),
    [MF_FIELD_HIDDEN] = ROW(NULL, "hidden", hidden, 1, 1 << 24),
    [MF_FIELD_VOCAB] = ROW(NULL, "vocab", vocab, 1, INT32_MAX),
    [MF_FIELD_HEADS] = ROW(NULL, "heads", heads, 1, 1 << 20),
    [MF_FIELD_KV_HEADS] = ROW(NULL, "kv_heads", kv_heads, 1, 1 << 20),
    [MF_FIELD_HEAD_DIM] = ROW(NULL, "head_dim", head_dim, 1, 1 << 20),
    [MF_FIELD_MLA_Q] = ROW("mla", "q_rank", mla.q_rank, 0, 1 << 24),
    [MF_FIELD_MLA_KV] = ROW("mla", "kv_rank", mla.kv_rank, 0, 1 << 24),
    [MF_FIELD_MLA_NOPE] = ROW("mla", "nope_dim", mla.nope_dim, 0, 1 << 19),
    [MF_FIELD_MLA_ROPE] = ROW("mla", "rope_dim", mla.rope_dim, 0, 1 << 19),
    [MF_FIELD_MLA_V] = ROW("mla", "v_dim", mla.v_dim, 0, 1 << 20),
    [MF_FIELD_WINDOW] =
        ROW(NULL, "sliding_window", sliding_window, 0, INT64_C(1) << 40),
    [MF_FIELD_DENSE_FFN] = ROW(NULL, "dense_ffn", dense_ffn, 0, 1 << 28),
    [MF_FIELD_MOE_FFN] = ROW(NULL, "moe_ffn", moe_ffn, 0, 1 << 28),
    [MF_FIELD_EXPERTS] = ROW(NULL, "experts", experts, 0, 1 << 20),
    [MF_FIELD_TOPK] = ROW(NULL, "topk", topk, 0, 1 << 20),
    [MF_FIELD_SHARED_EXPERTS] =
        ROW(NULL, "shared_experts", shared_experts, 0, 1 << 20),
    [MF_FIELD_SHARED_FFN] = ROW(NULL, "shared_ffn", shared_ffn, 0, 1 << 28),
    [MF_FIELD_GROUPS] = ROW("router", "groups", router.groups, 0, 1 << 20),
    [MF_FIELD_TOPK_GROUPS] =
        ROW("router", "topk_groups", router.topk_groups, 0, 1 << 20),
    [MF_FIELD_MTP_LAYERS] =
        ROW(NULL, "mtp_layers", mtp_layers, 0, MF_LAYERS_MAX),
    [MF_FIELD_V_DIM] = ROW(NULL, "v_dim", v_dim, 0, 1 << 20),
    [MF_FIELD_Q_RANK] = ROW(NULL, "q_rank", q_rank, 0, 1 << 24),
    [MF_FIELD_O_RANK] = ROW(NULL, "o_rank", o_rank, 0, 1 << 24),
    [MF_FIELD_O_GROUPS] = ROW(NULL, "o_groups", o_groups, 0, 1 << 20),
    [MF_FIELD_GATE_DIM] = ROW(NULL, "gate_dim", gate_dim, 0, 1 << 20),
    [MF_FIELD_ATTENTION_EXPERTS] =
        ROW(NULL, "attention_experts", attention_experts, 0, 1 << 20),
    [MF_FIELD_ATTENTION_TOPK] =
        ROW(NULL, "attention_topk", attention_topk, 0, 1 << 20),
    [MF_FIELD_COMPRESS_RATIO] =
        ROW(NULL, "compress_ratio", compress_ratio, 0, 1 << 24),
    [MF_FIELD_CONV_KERNEL] = ROW(NULL, "conv_kernel", conv_kernel, 0, 1 << 20),
    [MF_FIELD_BESIDE_FFN] = ROW(NULL, "beside_ffn", beside_ffn, 0, 1 << 28),
    [MF_FIELD_LATENT] = ROW(NULL, "latent", latent, 0, 1 << 24),
    [MF_FIELD_ZERO_EXPERTS] =
        ROW(NULL, "zero_experts", zero_experts, 0, 1 << 20),
    [MF_FIELD_POSITIONS] =
        ROW(NULL, "positions", positions, 0, INT64_C(1) << 32),
    [MF_FIELD_NORMS_MIXER] = ROW(NULL, "norms_mixer", norms_mixer, 0, 64),
    [MF_FIELD_NORMS_FFN] = ROW(NULL, "norms_ffn", norms_ffn, 0, 64),
    [MF_FIELD_NORMS_END] = ROW(NULL, "norms_end", norms_end, 0, 64),
    [MF_FIELD_LAYER_EXTRA] =
        ROW(NULL, "layer_extra", layer_extra, 0, INT64_C(1) << 48),
    [MF_FIELD_FULL_HEADS] =
        ROW("full_attention", "heads", full_heads.heads, 0, 1 << 20),
    [MF_FIELD_FULL_KV_HEADS] =
        ROW("full_attention", "kv_heads", full_heads.kv_heads, 0, 1 << 20),
    [MF_FIELD_FULL_HEAD_DIM] =
        ROW("full_attention", "head_dim", full_heads.head_dim, 0, 1 << 20),
    [MF_FIELD_FULL_V_DIM] =
        ROW("full_attention", "v_dim", full_heads.v_dim, 0, 1 << 20),
    [MF_FIELD_SLIDING_HEADS] =
        ROW("sliding_attention", "heads", sliding_heads.heads, 0, 1 << 20),
    [MF_FIELD_SLIDING_KV_HEADS] = ROW(
        "sliding_attention", "kv_heads", sliding_heads.kv_heads, 0, 1 << 20),
    [MF_FIELD_SLIDING_HEAD_DIM] = ROW(
        "sliding_attention", "head_dim", sliding_heads.head_dim, 0, 1 << 20),
    [MF_FIELD_SLIDING_V_DIM] =
        ROW("sliding_attention", "v_dim", sliding_heads.v_dim, 0, 1 << 20),
    [MF_FIELD_LINEAR_KEY_HEADS] =
        ROW("linear", "key_heads", linear.key_heads, 0, 1 << 20),
    [MF_FIELD_LINEAR_VALUE_HEADS] =
        ROW("linear", "value_heads", linear.value_heads, 0, 1 << 20),
    [MF_FIELD_LINEAR_KEY_DIM] =
        ROW("linear", "key_dim", linear.key_dim, 0, 1 << 20),
    [MF_FIELD_LINEAR_VALUE_DIM] =
        ROW("linear", "value_dim", linear.value_dim, 0, 1 << 20),
    [MF_FIELD_LINEAR_CONV] =
        ROW("linear", "conv_kernel", linear.conv_kernel, 0, 1 << 20),
    [MF_FIELD_LINEAR_GATE_RANK] =
        ROW("linear", "gate_rank", linear.gate_rank, 0, 1 << 20),
    [MF_FIELD_LINEAR_DECAY_RANK] =
        ROW("linear", "decay_rank", linear.decay_rank, 0, 1 << 20),
    [MF_FIELD_MAMBA_INNER] = ROW("mamba", "inner", mamba.inner, 0, 1 << 26),
    [MF_FIELD_MAMBA_STATE] = ROW("mamba", "state", mamba.state, 0, 1 << 20),
    [MF_FIELD_MAMBA_CONV] =
        ROW("mamba", "conv_kernel", mamba.conv_kernel, 0, 1 << 20),
    [MF_FIELD_MAMBA_DT_RANK] =
        ROW("mamba", "dt_rank", mamba.dt_rank, 0, 1 << 20),
    [MF_FIELD_MAMBA_HEADS] = ROW("mamba", "heads", mamba.heads, 0, 1 << 20),
    [MF_FIELD_MAMBA_HEAD_DIM] =
        ROW("mamba", "head_dim", mamba.head_dim, 0, 1 << 20),
    [MF_FIELD_MAMBA_GROUPS] = ROW("mamba", "groups", mamba.groups, 0, 1 << 20),
    [MF_FIELD_INDEX_HEADS] = ROW("indexer", "heads", indexer.heads, 0, 1 << 24),
    [MF_FIELD_INDEX_DIM] = ROW("indexer", "dim", indexer.dim, 0, 1 << 24),
    [MF_FIELD_INDEX_TOPK] = ROW("indexer", "topk", indexer.topk, 0, 1 << 24),
    [MF_FIELD_INDEX_RATIO] = ROW("indexer", "ratio", indexer.ratio, 0, 1 << 24),
};

const char *mf_field_key(enum mf_field field)
{
    return field_table[field].key;
}

const char *mf_field_object(enum mf_field field)
{
    return field_table[field].object;
}

int64_t mf_field_least(enum mf_field field)
{
    return field_table[field].least;
}

int64_t *mf_field_of(struct mf_model *model, enum mf_field field)
{
    return (int64_t *)(void *)((char *)model + field_table[field].offset);
}

int64_t mf_field_get(const struct mf_model *model, enum mf_field field)
{
    return *(const int64_t *)(const void *)((const char *)model +
                                            field_table[field].offset);
}

int mf_field_check(
    enum mf_field field, int64_t value, const char *name, struct mf_error *err)
{
    const struct field_row *row = &field_table[field];

    if (value < row->least)
        return mf_error_set(err, MF_INVALID,
            "%s is %" PRId64 ", less than %" PRId64, name, value, row->least);
    if (value > row->most)
        return mf_error_set(err, MF_INVALID,
            "%s is %" PRId64 ", more than %" PRId64, name, value, row->most);
    return 0;
}

struct check {
    const struct mf_model *model;
    const char *const *names;
    struct mf_error *err;
};

static const char *check_name(const struct check *c, enum mf_field field)
{
    if (c->names && c->names[field])
        return c->names[field];
    return field_table[field].key;
}

static int check_needs(
    const struct check *c, enum mf_field field, const char *why)
{
    if (mf_field_get(c->model, field) > 0)
        return 0;
    return mf_error_set(c->err, MF_INVALID, "%s is missing or 0, but %s",
        check_name(c, field), why);
}

static int check_attention(const struct check *c)
{
    const struct mf_model *m = c->model;

    if (m->attention == MF_ATTENTION_MLA) {
        if (check_needs(c, MF_FIELD_MLA_KV, "attention is MLA") ||
            check_needs(c, MF_FIELD_MLA_V, "attention is MLA"))
            return -1;
        if (m->head_dim != m->mla.nope_dim + m->mla.rope_dim)
            return mf_error_set(c->err, MF_INVALID,
                "%s is %" PRId64 ", but %s + %s is %" PRId64,
                check_name(c, MF_FIELD_HEAD_DIM), m->head_dim,
                check_name(c, MF_FIELD_MLA_NOPE),
                check_name(c, MF_FIELD_MLA_ROPE),
                m->mla.nope_dim + m->mla.rope_dim);
    }
    if (m->heads % m->kv_heads)
        return mf_error_set(c->err, MF_INVALID,
            "%s is %" PRId64 ", not a multiple of %s %" PRId64,
            check_name(c, MF_FIELD_HEADS), m->heads,
            check_name(c, MF_FIELD_KV_HEADS), m->kv_heads);
    if ((m->attention == MF_ATTENTION_MHA && m->heads != m->kv_heads) ||
        (m->attention == MF_ATTENTION_GQA && m->heads == m->kv_heads))
        return mf_error_set(c->err, MF_INVALID,
            "attention is %s, but %s is %" PRId64 " and %s is %" PRId64,
            mf_attention_name(m->attention), check_name(c, MF_FIELD_HEADS),
            m->heads, check_name(c, MF_FIELD_KV_HEADS), m->kv_heads);
    return 0;
}

static int check_heads(const struct check *c, const struct mf_heads *h,
    enum mf_field heads, enum mf_field kv_heads, enum mf_field dim)
{
    if (!h->heads)
        return 0;
    if (check_needs(c, kv_heads, "its layers have heads of their own") ||
        check_needs(c, dim, "its layers have heads of their own"))
        return -1;
    if (h->heads % h->kv_heads == 0)
        return 0;
    return mf_error_set(c->err, MF_INVALID,
        "%s is %" PRId64 ", not a multiple of %s %" PRId64,
        check_name(c, heads), h->heads, check_name(c, kv_heads), h->kv_heads);
}

/* What layers of one kind cannot do without. */
static int check_mixers(const struct check *c)
{
    static const struct {
        enum mf_mixer mixer;
        enum mf_field field;
        const char *why;
    } need[] = {
        {MF_MIXER_SLIDING, MF_FIELD_WINDOW, "there are sliding layers"},
        {MF_MIXER_LINEAR, MF_FIELD_LINEAR_KEY_HEADS, "attention is linear"},
        {MF_MIXER_LINEAR, MF_FIELD_LINEAR_VALUE_HEADS, "attention is linear"},
        {MF_MIXER_LINEAR, MF_FIELD_LINEAR_KEY_DIM, "attention is linear"},
        {MF_MIXER_LINEAR, MF_FIELD_LINEAR_VALUE_DIM, "attention is linear"},
        {MF_MIXER_MAMBA, MF_FIELD_MAMBA_INNER, "there are Mamba layers"},
        {MF_MIXER_MAMBA, MF_FIELD_MAMBA_STATE, "there are Mamba layers"},
        {MF_MIXER_SPARSE, MF_FIELD_INDEX_HEADS, "attention is sparse"},
        {MF_MIXER_SPARSE, MF_FIELD_INDEX_DIM, "attention is sparse"},
        {MF_MIXER_SPARSE, MF_FIELD_INDEX_TOPK, "attention is sparse"},
        {MF_MIXER_COMPRESSED, MF_FIELD_COMPRESS_RATIO, "entries are merged"},
        {MF_MIXER_CONV, MF_FIELD_CONV_KERNEL, "there are convolutions"},
    };
    const struct mf_model *m = c->model;

    for (size_t i = 0; i < sizeof need / sizeof *need; i++)
        if (mf_model_count_mixer(m, need[i].mixer) > 0 &&
            check_needs(c, need[i].field, need[i].why))
            return -1;
    if (m->mamba.heads > 0 &&
        (check_needs(c, MF_FIELD_MAMBA_HEAD_DIM, "Mamba-2 has heads") ||
            check_needs(c, MF_FIELD_MAMBA_GROUPS, "Mamba-2 has heads")))
        return -1;
    if (m->o_rank > 0 &&
        check_needs(c, MF_FIELD_O_GROUPS, "the output has a low rank"))
        return -1;
    if (m->attention_topk > m->attention_experts)
        return mf_error_set(c->err, MF_INVALID,
            "%s is %" PRId64 ", more than %" PRId64 " attention experts",
            check_name(c, MF_FIELD_ATTENTION_TOPK), m->attention_topk,
            m->attention_experts);
    if (m->attention_experts > 0 &&
        check_needs(c, MF_FIELD_ATTENTION_TOPK, "attention has experts"))
        return -1;
    if (check_heads(c, &m->full_heads, MF_FIELD_FULL_HEADS,
            MF_FIELD_FULL_KV_HEADS, MF_FIELD_FULL_HEAD_DIM))
        return -1;
    return check_heads(c, &m->sliding_heads, MF_FIELD_SLIDING_HEADS,
        MF_FIELD_SLIDING_KV_HEADS, MF_FIELD_SLIDING_HEAD_DIM);
}

static int check_groups(const struct check *c)
{
    const struct mf_model *m = c->model;
    int64_t groups = m->router.groups, chosen = m->router.topk_groups;
    const char *name = check_name(c, MF_FIELD_GROUPS);

    if (groups > 0 && m->experts % groups)
        return mf_error_set(c->err, MF_INVALID,
            "%s is %" PRId64 ", which does not divide %" PRId64 " experts",
            name, groups, m->experts);
    if (chosen > (groups > 1 ? groups : 1))
        return mf_error_set(c->err, MF_INVALID,
            "%s is %" PRId64 ", more than %s %" PRId64,
            check_name(c, MF_FIELD_TOPK_GROUPS), chosen, name, groups);
    if (groups > 1 && chosen < 1)
        return check_needs(c, MF_FIELD_TOPK_GROUPS, "experts are in groups");
    if (groups > 1 && m->topk > m->experts / groups * chosen)
        return mf_error_set(c->err, MF_INVALID,
            "%s is %" PRId64 ", more than the %" PRId64 " experts of %" PRId64
            " groups",
            check_name(c, MF_FIELD_TOPK), m->topk, m->experts / groups * chosen,
            chosen);
    return 0;
}

static int check_experts(const struct check *c)
{
    const struct mf_model *m = c->model;
    int64_t moe = mf_model_count(m, MF_FFN_MOE);

    if (mf_model_count(m, MF_FFN_DENSE) > 0 &&
        check_needs(c, MF_FIELD_DENSE_FFN, "there are dense layers"))
        return -1;
    if (m->experts > 0 && !moe)
        return mf_error_set(c->err, MF_INVALID,
            "%s is %" PRId64 ", but no layer is an MoE layer",
            check_name(c, MF_FIELD_EXPERTS), m->experts);
    if (!moe)
        return 0;
    if (check_needs(c, MF_FIELD_EXPERTS, "there are MoE layers") ||
        check_needs(c, MF_FIELD_TOPK, "there are experts") ||
        check_needs(c, MF_FIELD_MOE_FFN, "there are experts"))
        return -1;
    if (m->topk > m->experts)
        return mf_error_set(c->err, MF_INVALID,
            "%s is %" PRId64 ", more than %" PRId64 " experts",
            check_name(c, MF_FIELD_TOPK), m->topk, m->experts);
    if (m->shared_experts > 0 &&
        check_needs(c, MF_FIELD_SHARED_FFN, "there are shared experts"))
        return -1;
    if (!isfinite(m->router.scaling) || m->router.scaling <= 0)
        return mf_error_set(c->err, MF_INVALID,
            "the router's scaling is %g; it must be a positive number",
            m->router.scaling);
    return check_groups(c);
}

int mf_model_check(const struct mf_model *model,
    const char *const names[MF_FIELDS], struct mf_error *err)
{
    struct check c = {.model = model, .names = names, .err = err};

    for (int i = 0; i < MF_FIELDS; i++)
        if (mf_field_check((enum mf_field)i,
                mf_field_get(model, (enum mf_field)i),
                check_name(&c, (enum mf_field)i), err))
            return -1;
    if (check_attention(&c) || check_mixers(&c))
        return -1;
    return check_experts(&c);
}
