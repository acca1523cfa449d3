/* SPDX-License-Identifier: BSD-3-Clause
 * From the values of a configuration to heads, ranks and the mixer of each
 * layer.
 */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "planner/model_read_shape.h"

/* One key head for all, or as many as heads, unless groups count. */
static void attention_kv_heads(struct shape *s)
{
    struct mf_model *m = s->model;
    bool one = shape_whole(s, MF_SLOT_ONE_KV);

    if (!shape_whole(s, MF_SLOT_GROUPED))
        m->kv_heads = one ? 1 : m->heads;
    else if (one && !s->value[MF_FIELD_KV_HEADS].given)
        m->kv_heads = 1;
}

static int attention_head_dim(struct shape *s)
{
    struct mf_model *m = s->model;
    int64_t width = shape_whole(s, MF_SLOT_WIDTH);
    const char *name = shape_key(s, MF_SLOT_WIDTH);

    if (width > 0)
        m->head_dim = 0;
    if (m->head_dim > 0)
        return 0;
    if (!width) {
        width = m->hidden;
        name = shape_key(s, MF_FIELD_HIDDEN);
    }
    if (shape_range(s, MF_SLOT_WIDTH, 0, 1 << 24))
        return -1;
    if (width % m->heads)
        return mf_error_set(s->err, MF_INVALID,
            "%s is missing, and %s %" PRId64
            " is not a multiple of %s %" PRId64,
            shape_key(s, MF_FIELD_HEAD_DIM), name, width,
            shape_key(s, MF_FIELD_HEADS), m->heads);
    m->head_dim = width / m->heads;
    return 0;
}

static int attention_gate(struct shape *s)
{
    const char *word = s->value[MF_SLOT_GATE_HEAD].text;
    struct mf_model *m = s->model;
    int64_t values = m->v_dim > 0 ? m->v_dim : m->head_dim;

    if (m->attention == MF_ATTENTION_MLA)
        values = m->mla.v_dim;
    if (word && strcmp(word, "per-head") && strcmp(word, "per-element"))
        return mf_error_set(s->err, MF_INVALID,
            "%s is \"%.64s\", neither per-head nor per-element",
            shape_key(s, MF_SLOT_GATE_HEAD), word);
    if (shape_whole(s, MF_SLOT_GATE_HEAD) ||
        (word && !strcmp(word, "per-head")))
        m->gate_dim = 1;
    else if (word || shape_whole(s, MF_SLOT_GATE_ON))
        m->gate_dim = values;
    return 0;
}

/* Heads of one kind of layer, where any figure differs from the model's. */
static void attention_heads_own(
    const struct mf_model *m, struct mf_heads *h, bool own)
{
    int64_t values = m->v_dim;

    if (!own && !h->heads && !h->kv_heads && !h->head_dim && !h->v_dim)
        return;
    if (h->head_dim > 0 && h->head_dim != m->head_dim)
        values = h->head_dim;
    h->heads = h->heads ? h->heads : m->heads;
    h->kv_heads = h->kv_heads ? h->kv_heads : m->kv_heads;
    h->head_dim = h->head_dim ? h->head_dim : m->head_dim;
    h->v_dim = h->v_dim ? h->v_dim : values;
}

/* Sizes of full layers one by one, which must be the same for all. */
static int attention_per_layer(struct shape *s)
{
    static const struct {
        const char *key;
        size_t offset;
    } row[] = {{"head_dim", offsetof(struct mf_heads, head_dim)},
        {"num_key_value_heads", offsetof(struct mf_heads, kv_heads)}};
    const json_t *object = shape_list(s, MF_SLOT_PER_LAYER);
    void *iter = json_object_iter((json_t *)object);
    const json_t *first = iter ? json_object_iter_value(iter) : NULL;

    for (; iter; iter = json_object_iter_next((json_t *)object, iter))
        if (!json_equal(json_object_iter_value(iter), first))
            return mf_error_set(s->err, MF_INVALID,
                "%s differs from layer to layer, which is not read",
                shape_key(s, MF_SLOT_PER_LAYER));
    for (size_t i = 0; first && i < sizeof row / sizeof *row; i++) {
        const json_t *item = json_object_get(first, row[i].key);
        int64_t n = json_integer_value(item);

        if (!item)
            continue;
        if (!json_is_integer(item) ||
            mf_field_check(MF_FIELD_HEAD_DIM, n, row[i].key, s->err))
            return mf_error_set(s->err, MF_INVALID,
                "%s: %s is not a size of a layer",
                shape_key(s, MF_SLOT_PER_LAYER), row[i].key);
        *(int64_t *)(void *)((char *)&s->model->full_heads + row[i].offset) = n;
    }
    return 0;
}

/* A list of the heads of every layer: one number for each kind of layer. */
static int attention_heads_listed(struct shape *s)
{
    const json_t *list = shape_list(s, MF_SLOT_HEAD_LIST);
    struct mf_model *m = s->model;

    if (!list)
        return 0;
    if (shape_length(s, MF_SLOT_HEAD_LIST, true))
        return -1;
    for (int64_t i = 0; i < m->layers; i++) {
        bool slides = m->layer_kind[i].mixer == MF_MIXER_SLIDING;
        struct mf_heads *h = slides ? &m->sliding_heads : &m->full_heads;
        const json_t *item = json_array_get(list, (size_t)i);
        int64_t n = json_integer_value(item);

        if (!json_is_integer(item) || n < 1 || n > 1 << 20 ||
            (h->heads && h->heads != n))
            return mf_error_set(s->err, MF_INVALID,
                "%s[%" PRId64 "] is not the same for all layers of its kind",
                shape_key(s, MF_SLOT_HEAD_LIST), i);
        h->heads = n;
        attention_heads_own(m, h, true);
    }
    return 0;
}

static void attention_sinks(struct shape *s)
{
    bool full = shape_whole(s, MF_SLOT_SINKS_FULL);
    bool sliding = shape_whole(s, MF_SLOT_SINKS_SLIDING);
    bool shared = shape_whole(s, MF_SLOT_FULL_SHARED_KV);
    struct mf_model *m = s->model;

    m->sinks = full && sliding;
    attention_heads_own(m, &m->full_heads, (full && !sliding) || shared);
    attention_heads_own(m, &m->sliding_heads, sliding && !full);
    m->full_heads.keys_are_values = shared;
    m->full_heads.sinks = m->full_heads.heads > 0 && full;
    m->sliding_heads.sinks = m->sliding_heads.heads > 0 && sliding;
}

/* Where the indexer picks blocks, TOPK counts their tokens. */
static int attention_index(struct shape *s)
{
    struct mf_indexer *x = &s->model->indexer;

    if (shape_range(s, MF_SLOT_INDEX_BLOCK, 0, 1 << 20))
        return -1;
    if (shape_whole(s, MF_SLOT_INDEX_BLOCK) > 0)
        x->topk *= shape_whole(s, MF_SLOT_INDEX_BLOCK);
    return 0;
}

static int attention_linear(struct shape *s)
{
    struct mf_linear *l = &s->model->linear;
    int64_t dim = s->model->head_dim;

    l->type = (enum mf_linear_type)shape_whole(s, MF_SLOT_LINEAR_TYPE);
    if (l->type == MF_LINEAR_LIGHTNING && s->model->mla.kv_rank > 0)
        dim = s->value[MF_FIELD_HEAD_DIM].given
                  ? shape_whole(s, MF_FIELD_HEAD_DIM)
                  : s->model->hidden / s->model->heads;
    if (l->type == MF_LINEAR_LIGHTNING && !l->key_dim)
        l->key_dim = l->value_dim = dim;
    if (l->type != MF_LINEAR_KDA)
        return 0;
    if (shape_whole(s, MF_SLOT_LINEAR_FULL_GATE) < 2)
        l->decay_rank = l->key_dim;
    if (!shape_whole(s, MF_SLOT_LINEAR_FULL_GATE))
        l->gate_rank = l->value_dim;
    return 0;
}

static int attention_auto(const struct shape *s, int slot)
{
    const char *text = s->value[slot].text;

    if (!text || !strcmp(text, "auto"))
        return 0;
    return mf_error_set(s->err, MF_INVALID,
        "%s is \"%.64s\", neither a number nor \"auto\"", shape_key(s, slot),
        text);
}

static int attention_mamba(struct shape *s)
{
    struct mf_model *m = s->model;
    struct mf_mamba *a = &m->mamba;
    int64_t inner;

    a->conv_bias = shape_whole(s, MF_SLOT_MAMBA_CONV_BIAS);
    a->proj_bias = shape_whole(s, MF_SLOT_MAMBA_PROJ_BIAS);
    a->norms = shape_whole(s, MF_SLOT_MAMBA_NORMS);
    if (attention_auto(s, MF_FIELD_MAMBA_HEAD_DIM) ||
        attention_auto(s, MF_FIELD_MAMBA_DT_RANK) ||
        shape_range(s, MF_SLOT_MAMBA_EXPAND, 0, 1 << 20))
        return -1;
    inner = shape_whole(s, MF_SLOT_MAMBA_EXPAND) * m->hidden;
    if (a->heads > 0 && !a->head_dim)
        a->head_dim = inner / a->heads;
    a->inner = a->heads > 0 ? a->heads * a->head_dim : inner;
    if (!a->heads && !a->dt_rank && a->inner > 0)
        a->dt_rank = (m->hidden + 15) / 16;
    return 0;
}

int mf_shape_attention(struct shape *s)
{
    struct mf_model *m = s->model;

    m->qkv_bias = shape_whole(s, MF_SLOT_QKV_BIAS);
    m->out_bias = shape_whole(s, MF_SLOT_OUT_BIAS);
    if (shape_whole(s, MF_SLOT_QK_NORM_ON))
        m->qk_norm = (enum mf_qk_norm)shape_whole(s, MF_SLOT_QK_NORM);
    m->window_chunked = shape_whole(s, MF_SLOT_CHUNKED);
    if (attention_linear(s) || attention_mamba(s) || attention_index(s))
        return -1;
    if (shape_whole(s, MF_SLOT_MLA) == 1 ||
        (shape_whole(s, MF_SLOT_MLA) == 2 && m->mla.kv_rank > 0)) {
        m->attention = MF_ATTENTION_MLA;
        if (!shape_whole(s, MF_SLOT_GROUPED))
            m->kv_heads = m->heads;
        m->head_dim = m->mla.nope_dim + m->mla.rope_dim;
        m->qk_norm = MF_QK_NORM_NONE;
        m->v_dim = 0;
        return attention_gate(s);
    }
    m->mla = (struct mf_mla){0};
    attention_kv_heads(s);
    if (attention_head_dim(s))
        return -1;
    if (m->linear.type == MF_LINEAR_LIGHTNING)
        m->linear.key_dim = m->linear.value_dim = m->head_dim;
    m->attention =
        m->heads == m->kv_heads ? MF_ATTENTION_MHA : MF_ATTENTION_GQA;
    return attention_gate(s);
}

static const struct {
    const char *text;
    enum mf_mixer mixer;
} type_table[] = {
    {"full_attention", MF_MIXER_FULL},
    {"attention", MF_MIXER_FULL},
    {"global", MF_MIXER_FULL},
    {"full", MF_MIXER_FULL},
    {"sliding_attention", MF_MIXER_SLIDING},
    {"chunked_attention", MF_MIXER_SLIDING},
    {"local", MF_MIXER_SLIDING},
    {"local_attention", MF_MIXER_SLIDING},
    {"linear_attention", MF_MIXER_LINEAR},
    {"mamba", MF_MIXER_MAMBA},
    {"mamba2", MF_MIXER_MAMBA},
    {"conv", MF_MIXER_CONV},
    {"indexed_attention", MF_MIXER_SPARSE},
    {"minimax_m3_sparse", MF_MIXER_SPARSE},
    {"deepseek_sparse_attention", MF_MIXER_SPARSE},
    {"compressed_sparse_attention", MF_MIXER_SPARSE},
    {"heavily_compressed_attention", MF_MIXER_COMPRESSED},
};

static int mixer_named(const struct shape *s, const json_t *item, int64_t i)
{
    const char *text = json_string_value(item);

    for (size_t k = 0; text && k < sizeof type_table / sizeof *type_table; k++)
        if (!strcmp(text, type_table[k].text)) {
            s->model->layer_kind[i].mixer = type_table[k].mixer;
            return 0;
        }
    return mf_error_set(s->err, MF_INVALID,
        "%s[%" PRId64 "] is \"%.64s\", a kind of layer that is not counted",
        shape_key(s, MF_SLOT_LAYER_TYPES), i, text ? text : "not a string");
}

static int mixers_named(struct shape *s)
{
    const json_t *list = shape_list(s, MF_SLOT_LAYER_TYPES);

    if (shape_length(s, MF_SLOT_LAYER_TYPES, true))
        return -1;
    for (int64_t i = 0; i < s->model->layers; i++)
        if (mixer_named(s, json_array_get(list, (size_t)i), i))
            return -1;
    return 0;
}

/* Ratios of DeepSeek-V4: 0 slides, 4 has an indexer, more has none. */
static int mixers_compressed(struct shape *s)
{
    const json_t *list = shape_list(s, MF_SLOT_COMPRESS);
    struct mf_model *m = s->model;

    if (shape_length(s, MF_SLOT_COMPRESS, false))
        return -1;
    for (int64_t i = 0; i < m->layers; i++) {
        const json_t *item = json_array_get(list, (size_t)i);
        int64_t ratio = json_integer_value(item);
        enum mf_mixer *mixer = &m->layer_kind[i].mixer;

        if (!json_is_integer(item) || ratio < 0 || ratio > 1 << 24 ||
            (ratio > 4 && m->compress_ratio && m->compress_ratio != ratio))
            return mf_error_set(s->err, MF_INVALID,
                "%s[%" PRId64 "] is not 0, 4 or one larger ratio",
                shape_key(s, MF_SLOT_COMPRESS), i);
        *mixer = ratio > 4 ? MF_MIXER_COMPRESSED
                           : (ratio ? MF_MIXER_SPARSE : MF_MIXER_SLIDING);
        if (ratio > 4)
            m->compress_ratio = ratio;
        else if (ratio)
            m->indexer.ratio = ratio;
    }
    return 0;
}

/* A list that names linear layers, counted from 1. */
static int mixers_linear_named(struct shape *s)
{
    const json_t *list = shape_list(s, MF_SLOT_LINEAR_NAMED);

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        int64_t layer = json_integer_value(item);

        if (!json_is_integer(item) || layer < 1 || layer > s->model->layers)
            return mf_error_set(s->err, MF_INVALID,
                "%s[%zu] is not a layer from 1 to %" PRId64,
                shape_key(s, MF_SLOT_LINEAR_NAMED), i, s->model->layers);
        s->model->layer_kind[layer - 1].mixer = MF_MIXER_LINEAR;
    }
    return 0;
}

/* A list of 0 and 1, where VALUE makes a layer MIXER. */
static int mixers_flagged(
    struct shape *s, int slot, int64_t value, enum mf_mixer mixer)
{
    const json_t *list = shape_list(s, slot);

    if (shape_length(s, slot, true))
        return -1;
    for (int64_t i = 0; i < s->model->layers; i++) {
        const json_t *item = json_array_get(list, (size_t)i);
        int64_t n = json_integer_value(item);

        if (!json_is_integer(item) || n < 0 || n > 1)
            return mf_error_set(s->err, MF_INVALID,
                "%s[%" PRId64 "] is neither 0 nor 1", shape_key(s, slot), i);
        if (n == value)
            s->model->layer_kind[i].mixer = mixer;
    }
    return 0;
}

static int mixers_stepped(struct shape *s, int64_t step)
{
    bool tail = shape_whole(s, MF_SLOT_LINEAR_TAIL);
    int64_t layers = s->model->layers;

    if (shape_range(s, MF_SLOT_LINEAR_STEP, 1, MF_LAYERS_MAX))
        return -1;
    for (int64_t i = 0; i < layers; i++)
        if ((i + 1) % step && !(tail && i >= layers / step * step))
            s->model->layer_kind[i].mixer = MF_MIXER_LINEAR;
    return 0;
}

static int mixers_mamba(struct shape *s, int64_t step)
{
    if (shape_range(s, MF_SLOT_MAMBA_STEP, 1, MF_LAYERS_MAX) ||
        shape_range(s, MF_SLOT_MAMBA_PHASE, 0, step - 1))
        return -1;
    for (int64_t i = 0; i < s->model->layers; i++)
        if (i % step != shape_whole(s, MF_SLOT_MAMBA_PHASE))
            s->model->layer_kind[i].mixer = MF_MIXER_MAMBA;
    return 0;
}

/* MIXER but for the layers of a list, counted from 0, which have attention. */
static int mixers_except(struct shape *s, int slot, enum mf_mixer mixer)
{
    const json_t *list = shape_list(s, slot);
    int64_t layers = s->model->layers;

    for (int64_t i = 0; i < layers; i++)
        s->model->layer_kind[i].mixer = mixer;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        int64_t layer = json_integer_value(item);

        if (!json_is_integer(item) || layer < 0 || layer >= layers)
            return mf_error_set(s->err, MF_INVALID,
                "%s[%zu] is not a layer from 0 to %" PRId64, shape_key(s, slot),
                i, layers - 1);
        s->model->layer_kind[layer].mixer = MF_MIXER_FULL;
    }
    return 0;
}

static int window_words(struct shape *s, const char *word)
{
    size_t n = strlen(word);

    if (!n || strspn(word, "LG") != n)
        return mf_error_set(s->err, MF_INVALID,
            "%s is \"%.64s\", not letters L and G",
            shape_key(s, MF_SLOT_WINDOW_STEP), word);
    for (int64_t i = 0; i < s->model->layers; i++)
        if (word[(size_t)i % n] == 'L')
            s->model->layer_kind[i].mixer = MF_MIXER_SLIDING;
    return 0;
}

/* Sliding layers, where a window is in use. */
static int mixers_window(struct shape *s)
{
    const struct mf_value *step = &s->value[MF_SLOT_WINDOW_STEP];
    const json_t *list = shape_list(s, MF_SLOT_WINDOW_LIST);
    struct mf_model *m = s->model;

    if (!shape_whole(s, MF_SLOT_WINDOW_ON) || !m->sliding_window)
        return 0;
    if (json_array_size(list) > 0)
        return mixers_flagged(s, MF_SLOT_WINDOW_LIST, 1, MF_MIXER_SLIDING);
    if (step->text)
        return window_words(s, step->text);
    if (shape_range(s, MF_SLOT_WINDOW_STEP, 0, MF_LAYERS_MAX) ||
        shape_range(s, MF_SLOT_WINDOW_FROM, 0, INT64_MAX))
        return -1;
    for (int64_t i = shape_whole(s, MF_SLOT_WINDOW_FROM); i < m->layers; i++)
        if (!step->whole || (i + 1) % step->whole)
            m->layer_kind[i].mixer = MF_MIXER_SLIDING;
    return 0;
}

/* The first rule that the file gives decides. */
static int mixers_fill(struct shape *s)
{
    int64_t linear = shape_whole(s, MF_SLOT_LINEAR_STEP);
    int64_t mamba = shape_whole(s, MF_SLOT_MAMBA_STEP);

    if (json_array_size(shape_list(s, MF_SLOT_LAYER_TYPES)) > 0)
        return mixers_named(s);
    if (json_array_size(shape_list(s, MF_SLOT_COMPRESS)) > 0)
        return mixers_compressed(s);
    if (json_array_size(shape_list(s, MF_SLOT_SPARSE_LIST)) > 0)
        return mixers_flagged(s, MF_SLOT_SPARSE_LIST, 1, MF_MIXER_SPARSE);
    if (shape_list(s, MF_SLOT_LINEAR_NAMED))
        return mixers_linear_named(s);
    if (json_array_size(shape_list(s, MF_SLOT_LINEAR_LIST)) > 0)
        return mixers_flagged(s, MF_SLOT_LINEAR_LIST, 0, MF_MIXER_LINEAR);
    if (shape_list(s, MF_SLOT_MAMBA_EXCEPT))
        return mixers_except(s, MF_SLOT_MAMBA_EXCEPT, MF_MIXER_MAMBA);
    if (shape_list(s, MF_SLOT_CONV_EXCEPT))
        return mixers_except(s, MF_SLOT_CONV_EXCEPT, MF_MIXER_CONV);
    if (linear)
        return mixers_stepped(s, linear);
    if (mamba)
        return mixers_mamba(s, mamba);
    return mixers_window(s);
}

/* Full layers whose keys an indexer picks; ratios where no list gave them. */
static void mixers_index(struct mf_model *m)
{
    bool named = mf_model_count_mixer(m, MF_MIXER_SPARSE) > 0;
    bool merged = mf_model_count_mixer(m, MF_MIXER_COMPRESSED) > 0;

    for (int64_t i = 0; m->indexer.heads && i < m->layers; i++)
        if (!merged && !named && m->layer_kind[i].mixer == MF_MIXER_FULL)
            m->layer_kind[i].mixer = MF_MIXER_SPARSE;
    if (merged && !m->indexer.ratio)
        m->indexer.ratio = 4;
    if (merged && !m->compress_ratio)
        m->compress_ratio = 128;
}

/* Newer files call every mixer with a state linear. */
static void mixers_state(struct mf_model *m)
{
    for (int64_t i = 0; i < m->layers; i++)
        if (m->layer_kind[i].mixer == MF_MIXER_LINEAR &&
            !m->linear.value_heads && m->mamba.inner > 0)
            m->layer_kind[i].mixer = MF_MIXER_MAMBA;
}

/* Figures of kinds that no layer is of. */
static void mixers_drop(struct mf_model *m)
{
    int64_t sliding = mf_model_count_mixer(m, MF_MIXER_SLIDING);
    int64_t sparse = mf_model_count_mixer(m, MF_MIXER_SPARSE);
    int64_t merged = mf_model_count_mixer(m, MF_MIXER_COMPRESSED);

    if (!sparse)
        m->indexer = (struct mf_indexer){0};
    if (!sliding && !merged && !m->indexer.ratio) {
        m->sliding_window = 0;
        m->sliding_heads = (struct mf_heads){0};
    }
    if (!m->sliding_window)
        m->window_chunked = false;
    if (!mf_model_count_mixer(m, MF_MIXER_LINEAR))
        m->linear = (struct mf_linear){0};
    if (!mf_model_count_mixer(m, MF_MIXER_MAMBA))
        m->mamba = (struct mf_mamba){0};
    if (!mf_model_count_mixer(m, MF_MIXER_CONV))
        m->conv_kernel = 0;
}

int mf_shape_mixers(struct shape *s, bool known)
{
    struct mf_model *m = s->model;

    if (!known && mixers_fill(s))
        return -1;
    mixers_index(m);
    mixers_state(m);
    if (attention_heads_listed(s) || attention_per_layer(s))
        return -1;
    if (m->attention == MF_ATTENTION_MLA)
        m->full_heads = m->sliding_heads = (struct mf_heads){0};
    else
        attention_sinks(s);
    if (m->full_heads.keys_are_values &&
        mf_model_count_mixer(m, MF_MIXER_SPARSE) > 0)
        m->sliding_heads = m->full_heads;
    mixers_drop(m);
    return 0;
}
