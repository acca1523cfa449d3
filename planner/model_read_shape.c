/* SPDX-License-Identifier: BSD-3-Clause
 * From the values of a configuration to the shape of the model: which layer
 * is of which kind, and the widths that follow from one another.
 */
#include "planner/model_read_dialect.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct shape {
    struct mf_model *model;
    const struct mf_value *value;
    struct mf_error *err;
};

static int64_t whole(const struct shape *s, int slot)
{
    return s->value[slot].whole;
}

static const char *key(const struct shape *s, int slot)
{
    return s->value[slot].key ? s->value[slot].key : "a missing key";
}

static int rule_check(
    const struct shape *s, int slot, int64_t least, int64_t most)
{
    int64_t n = whole(s, slot);

    if (n >= least && n <= most)
        return 0;
    return mf_error_set(s->err, MF_INVALID,
        "%s is %" PRId64 ", not in %" PRId64 " to %" PRId64, key(s, slot), n,
        least, most);
}

/* Layers that a list names as dense although a step makes them MoE. */
static int layers_listed_dense(struct shape *s)
{
    const json_t *list = s->value[MF_SLOT_DENSE_LAYERS].list;
    const char *name = key(s, MF_SLOT_DENSE_LAYERS);

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        json_int_t layer = json_integer_value(item);
        if (!json_is_integer(item))
            return mf_error_set(
                s->err, MF_INVALID, "%s[%zu] is not a whole number", name, i);
        if (layer < 0 || layer >= s->model->layers)
            return mf_error_set(s->err, MF_INVALID,
                "%s[%zu] is %" PRId64 ", but there are %" PRId64 " layers",
                name, i, (int64_t)layer, s->model->layers);
        s->model->layer_kind[layer].ffn = MF_FFN_DENSE;
    }
    return 0;
}

/* A step, or a list with 1 for every MoE layer and 0 for the others. */
static int layer_is_moe(const struct shape *s, int64_t i, bool *moe)
{
    const json_t *list = s->value[MF_SLOT_MOE_STEP].list;
    const json_t *item = json_array_get(list, (size_t)i);

    if (!list) {
        *moe =
            (i + whole(s, MF_SLOT_MOE_PHASE)) % whole(s, MF_SLOT_MOE_STEP) == 0;
        return 0;
    }
    if (!json_is_integer(item) || json_integer_value(item) < 0 ||
        json_integer_value(item) > 1)
        return mf_error_set(s->err, MF_INVALID,
            "%s[%" PRId64 "] is neither 0 nor 1", key(s, MF_SLOT_MOE_STEP), i);
    *moe = json_integer_value(item) == 1;
    return 0;
}

static int layers_ffn(struct shape *s)
{
    const json_t *list = s->value[MF_SLOT_MOE_STEP].list;

    if (rule_check(s, MF_SLOT_FIRST_DENSE, 0, MF_LAYERS_MAX) ||
        (!list && rule_check(s, MF_SLOT_MOE_STEP, 1, MF_LAYERS_MAX)))
        return -1;
    if (list && json_array_size(list) != (size_t)s->model->layers)
        return mf_error_set(s->err, MF_INVALID,
            "%s has %zu entries, but there are %" PRId64 " layers",
            key(s, MF_SLOT_MOE_STEP), json_array_size(list), s->model->layers);
    for (int64_t i = 0; i < s->model->layers; i++) {
        bool moe = false;
        if (layer_is_moe(s, i, &moe))
            return -1;
        if (i < whole(s, MF_SLOT_FIRST_DENSE) || !s->model->experts)
            moe = false;
        s->model->layer_kind[i].ffn = moe ? MF_FFN_MOE : MF_FFN_DENSE;
    }
    return layers_listed_dense(s);
}

static int layer_type_read(
    const struct shape *s, const json_t *item, int64_t i, enum mf_mixer *mixer)
{
    const char *text = json_string_value(item);

    if (text && !strcmp(text, "full_attention"))
        *mixer = MF_MIXER_FULL;
    else if (text && !strcmp(text, "sliding_attention"))
        *mixer = MF_MIXER_SLIDING;
    else
        return mf_error_set(s->err, MF_INVALID,
            "%s[%" PRId64 "] is \"%.64s\"; only full_attention and "
            "sliding_attention are counted",
            key(s, MF_SLOT_LAYER_TYPES), i, text ? text : "not a string");
    return 0;
}

static int layers_mixer(struct shape *s)
{
    const json_t *types = s->value[MF_SLOT_LAYER_TYPES].list;
    struct mf_model *m = s->model;
    bool window = whole(s, MF_SLOT_WINDOW_ON) && m->sliding_window > 0;
    bool any = false;

    if (rule_check(s, MF_SLOT_WINDOW_FROM, 0, INT64_MAX))
        return -1;
    if (types && json_array_size(types) != (size_t)m->layers)
        return mf_error_set(s->err, MF_INVALID,
            "%s has %zu entries, but there are %" PRId64 " layers",
            key(s, MF_SLOT_LAYER_TYPES), json_array_size(types), m->layers);
    for (int64_t i = 0; i < m->layers; i++) {
        enum mf_mixer *mixer = &m->layer_kind[i].mixer;
        *mixer = window && i >= whole(s, MF_SLOT_WINDOW_FROM) ? MF_MIXER_SLIDING
                                                              : MF_MIXER_FULL;
        if (types &&
            layer_type_read(s, json_array_get(types, (size_t)i), i, mixer))
            return -1;
        any = any || *mixer == MF_MIXER_SLIDING;
    }
    if (any && !m->sliding_window)
        return mf_error_set(s->err, MF_INVALID,
            "%s names sliding layers, but %s is missing",
            key(s, MF_SLOT_LAYER_TYPES), key(s, MF_FIELD_WINDOW));
    if (!any)
        m->sliding_window = 0;
    return 0;
}

static int shape_attention(struct shape *s)
{
    struct mf_model *m = s->model;

    m->qkv_bias = whole(s, MF_SLOT_QKV_BIAS);
    m->out_bias = whole(s, MF_SLOT_OUT_BIAS);
    m->qk_norm = (enum mf_qk_norm)whole(s, MF_SLOT_QK_NORM);
    if (whole(s, MF_SLOT_MLA)) {
        m->attention = MF_ATTENTION_MLA;
        m->head_dim = m->mla.nope_dim + m->mla.rope_dim;
        return 0;
    }
    m->attention =
        m->heads == m->kv_heads ? MF_ATTENTION_MHA : MF_ATTENTION_GQA;
    if (m->head_dim > 0)
        return 0;
    if (m->hidden % m->heads)
        return mf_error_set(s->err, MF_INVALID,
            "%s is missing, and %s %" PRId64
            " is not a multiple of %s %" PRId64,
            key(s, MF_FIELD_HEAD_DIM), key(s, MF_FIELD_HIDDEN), m->hidden,
            key(s, MF_FIELD_HEADS), m->heads);
    m->head_dim = m->hidden / m->heads;
    return 0;
}

static int shape_activation(struct shape *s)
{
    const char *text = s->value[MF_SLOT_ACTIVATION].text;
    struct mf_model *m = s->model;

    m->gated = whole(s, MF_SLOT_GATED);
    m->mlp_bias = whole(s, MF_SLOT_MLP_BIAS);
    if (!text)
        text = "silu";
    if (strlen(text) >= sizeof m->activation)
        return mf_error_set(s->err, MF_INVALID, "%s is longer than %zu bytes",
            key(s, MF_SLOT_ACTIVATION), sizeof m->activation - 1);
    memcpy(m->activation, text, strlen(text) + 1);
    mf_model_clean_text(m->activation);
    return 0;
}

/* Shared experts come as a number of them or as one width. */
static int shape_shared(struct shape *s)
{
    const char *name = key(s, MF_FIELD_SHARED_EXPERTS);
    struct mf_model *m = s->model;

    if (m->shared_ffn > 0 && !m->shared_experts)
        m->shared_experts = 1;
    if (m->shared_experts > 0 && !m->shared_ffn) {
        /* Each factor was checked: their product has at most 48 bits. */
        m->shared_ffn = m->shared_experts * m->moe_ffn;
        if (mf_field_check(MF_FIELD_SHARED_FFN, m->shared_ffn, name, s->err))
            return mf_error_set(s->err, MF_INVALID,
                "%s gives a width of %" PRId64 " together, too much", name,
                m->shared_ffn);
    }
    m->shared_gate = m->shared_ffn > 0 && whole(s, MF_SLOT_SHARED_GATE);
    return 0;
}

/* A model without experts has none of their figures. */
static void shape_router(struct shape *s)
{
    struct mf_model *m = s->model;

    m->router.score = (enum mf_score)whole(s, MF_SLOT_SCORE);
    m->router.bias = whole(s, MF_SLOT_ROUTER_BIAS);
    m->router.renormalize = whole(s, MF_SLOT_RENORMALIZE);
    m->router.scaling = s->value[MF_SLOT_SCALING].real;
    if (m->experts)
        return;
    m->router = (struct mf_router){.scaling = 1};
    m->topk = m->moe_ffn = m->shared_experts = m->shared_ffn = 0;
    m->shared_gate = false;
}

int mf_model_shape(struct mf_model *model,
    const struct mf_value value[MF_SLOTS], struct mf_error *err)
{
    struct shape s = {.model = model, .value = value, .err = err};
    const char *names[MF_FIELDS];

    for (int i = 0; i < MF_FIELDS; i++) {
        *mf_field_of(model, (enum mf_field)i) = value[i].whole;
        names[i] = value[i].key;
    }
    model->tied_embeddings = value[MF_SLOT_TIED].whole;
    model->norms_mixer = model->norms_ffn = model->norms_end = 1;
    model->layer_kind =
        calloc((size_t)model->layers, sizeof *model->layer_kind);
    if (!model->layer_kind)
        return mf_error_set(err, MF_FAILED, "out of memory");
    if (shape_attention(&s) || shape_activation(&s) || shape_shared(&s) ||
        layers_ffn(&s) || layers_mixer(&s))
        return -1;
    shape_router(&s);
    if (!mf_model_count(model, MF_FFN_DENSE))
        model->dense_ffn = 0;
    if (mf_model_check(model, names, err))
        return -1;
    return mf_model_count_params(model, err);
}
