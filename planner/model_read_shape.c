/* SPDX-License-Identifier: BSD-3-Clause
 * From the values of a configuration to the shape of the model: which layer
 * has experts, and the widths that follow from one another.
 */
#include "planner/model_read_shape.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *shape_key(const struct shape *s, int slot)
{
    return s->value[slot].key ? s->value[slot].key : "a missing key";
}

int shape_range(const struct shape *s, int slot, int64_t least, int64_t most)
{
    int64_t n = shape_whole(s, slot);

    if (n >= least && n <= most)
        return 0;
    return mf_error_set(s->err, MF_INVALID,
        "%s is %" PRId64 ", not in %" PRId64 " to %" PRId64, shape_key(s, slot),
        n, least, most);
}

int shape_length(const struct shape *s, int slot, bool exact)
{
    size_t n = json_array_size(shape_list(s, slot));
    size_t layers = (size_t)s->model->layers;

    if (n == layers || (n > layers && !exact))
        return 0;
    return mf_error_set(s->err, MF_INVALID,
        "%s has %zu entries, but there are %" PRId64 " layers",
        shape_key(s, slot), n, s->model->layers);
}

static int layer_listed(
    const struct shape *s, int slot, size_t i, int64_t *layer)
{
    const json_t *item = json_array_get(shape_list(s, slot), i);

    *layer = json_integer_value(item);
    if (!json_is_integer(item))
        return mf_error_set(s->err, MF_INVALID, "%s[%zu] is not a whole number",
            shape_key(s, slot), i);
    if (*layer < 0 || *layer >= s->model->layers)
        return mf_error_set(s->err, MF_INVALID,
            "%s[%zu] is %" PRId64 ", but there are %" PRId64 " layers",
            shape_key(s, slot), i, *layer, s->model->layers);
    return 0;
}

/* Layers that a list names become KIND whatever the steps say. */
static int layers_listed(struct shape *s, int slot, enum mf_ffn kind)
{
    int64_t layer;

    for (size_t i = 0; i < json_array_size(shape_list(s, slot)); i++) {
        if (layer_listed(s, slot, i, &layer))
            return -1;
        s->model->layer_kind[layer].ffn = kind;
    }
    return 0;
}

/* MoE layers as a text, "4,5,6". */
static int layers_spelled(struct shape *s, const char *text)
{
    const char *name = shape_key(s, MF_SLOT_MOE_LAYERS);

    while (*text) {
        char *end;
        long long layer = strtoll(text, &end, 10);

        if (end == text || (*end && *end != ','))
            return mf_error_set(
                s->err, MF_INVALID, "%s is not a list of numbers", name);
        if (layer < 0 || layer >= s->model->layers)
            return mf_error_set(s->err, MF_INVALID,
                "%s names layer %lld, but there are %" PRId64, name, layer,
                s->model->layers);
        s->model->layer_kind[layer].ffn = MF_FFN_MOE;
        text = *end ? end + 1 : end;
    }
    return 0;
}

/* Whether an entry of a list, one a layer, stands for an MoE layer. */
static int entry_is_moe(const struct shape *s, int64_t i, bool *moe)
{
    static const struct mf_choice word[] = {{"dense", 0}, {"mlp", 0},
        {"sparse", 1}, {"moe", 1}, {"hash_moe", 1}, {NULL, 0}};
    const json_t *item =
        json_array_get(shape_list(s, MF_SLOT_MOE_STEP), (size_t)i);
    const char *text = json_string_value(item);

    for (const struct mf_choice *w = word; text && w->text; w++)
        if (!strcmp(w->text, text)) {
            *moe = w->value;
            return 0;
        }
    *moe = json_is_true(item) || json_integer_value(item) == 1;
    if (json_is_boolean(item) ||
        (json_is_integer(item) && (*moe || !json_integer_value(item))))
        return 0;
    return mf_error_set(s->err, MF_INVALID,
        "%s[%" PRId64 "] is neither 0 nor 1", shape_key(s, MF_SLOT_MOE_STEP),
        i);
}

/* A step, or a list with an entry for every layer. */
static int layer_is_moe(const struct shape *s, int64_t i, bool *moe)
{
    int64_t end = shape_whole(s, MF_SLOT_MOE_END);
    int64_t step = shape_whole(s, MF_SLOT_MOE_STEP);
    int64_t first = shape_whole(s, MF_SLOT_FIRST_DENSE);

    /* What a class assumes gives way to a list. */
    if (shape_list(s, MF_SLOT_MOE_STEP) && !s->value[MF_SLOT_FIRST_DENSE].given)
        first = 0;
    if (!s->model->experts) {
        *moe = false;
        return 0;
    }
    if (shape_list(s, MF_SLOT_MOE_STEP)) {
        if (entry_is_moe(s, i, moe))
            return -1;
    } else {
        *moe = (i + shape_whole(s, MF_SLOT_MOE_PHASE)) % step ==
               shape_whole(s, MF_SLOT_MOE_OFFSET);
    }
    if (i < first || (end >= 0 && i > end))
        *moe = false;
    return 0;
}

static int layers_check(struct shape *s)
{
    if (shape_range(s, MF_SLOT_FIRST_DENSE, 0, MF_LAYERS_MAX) ||
        shape_range(s, MF_SLOT_MOE_END, -1, MF_LAYERS_MAX))
        return -1;
    if (shape_list(s, MF_SLOT_MOE_STEP))
        return s->model->experts ? shape_length(s, MF_SLOT_MOE_STEP, true) : 0;
    if (shape_range(s, MF_SLOT_MOE_STEP, 1, MF_LAYERS_MAX))
        return -1;
    return shape_range(
        s, MF_SLOT_MOE_OFFSET, 0, shape_whole(s, MF_SLOT_MOE_STEP) - 1);
}

static int layers_ffn(struct shape *s)
{
    const char *spelled = s->value[MF_SLOT_MOE_LAYERS].text;
    bool named =
        spelled || json_array_size(shape_list(s, MF_SLOT_MOE_LAYERS)) > 0;

    if (layers_check(s))
        return -1;
    for (int64_t i = 0; i < s->model->layers; i++) {
        bool moe = false;

        if (!named && layer_is_moe(s, i, &moe))
            return -1;
        s->model->layer_kind[i].ffn = moe ? MF_FFN_MOE : MF_FFN_DENSE;
    }
    if (!s->model->experts)
        return 0;
    if (spelled)
        return layers_spelled(s, spelled);
    if (named)
        return layers_listed(s, MF_SLOT_MOE_LAYERS, MF_FFN_MOE);
    return layers_listed(s, MF_SLOT_DENSE_LAYERS, MF_FFN_DENSE);
}

/* A layer of LongCat-Flash (arXiv 2509.01322, section 2.1) is two: attention
 * with the experts and a dense part beside them, then attention with a dense
 * part; transformers counts them so as well.
 */
static int layers_pair(struct shape *s)
{
    struct mf_model *m = s->model;

    for (int64_t i = 0; i < m->layers; i++)
        m->layer_kind[i].ffn = i % 2 || !m->experts ? MF_FFN_DENSE : MF_FFN_MOE;
    return mf_model_warn(m, s->err,
        "each of the %" PRId64 " layers has two attention and two dense "
        "parts: read as %" PRId64 " layers, every other one with experts",
        m->layers / 2, m->layers);
}

static int shape_activation(struct shape *s)
{
    const char *text = s->value[MF_SLOT_ACTIVATION].text;
    struct mf_model *m = s->model;

    m->gated = shape_whole(s, MF_SLOT_GATED);
    m->mlp_bias = shape_whole(s, MF_SLOT_MLP_BIAS);
    m->head_bias = shape_whole(s, MF_SLOT_HEAD_BIAS);
    if (!text)
        text = m->gated ? "silu" : "gelu";
    if (strlen(text) >= sizeof m->activation)
        return mf_error_set(s->err, MF_INVALID, "%s is longer than %zu bytes",
            shape_key(s, MF_SLOT_ACTIVATION), sizeof m->activation - 1);
    memcpy(m->activation, text, strlen(text) + 1);
    mf_model_clean_text(m->activation);
    return 0;
}

/* The width that Llama's own code works out: two thirds of four times the
 * model's, times a factor, up to the next multiple.
 */
static int64_t width_of_llama(const struct shape *s)
{
    int64_t unit = shape_whole(s, MF_SLOT_FFN_UNIT);
    double factor = s->value[MF_SLOT_FFN_FACTOR].real;
    int64_t width = s->model->dense_ffn > 0 ? 2 * s->model->dense_ffn / 3
                                            : 8 * s->model->hidden / 3;

    if (factor > 64)
        factor = 64;
    width = (int64_t)(factor * (double)width);
    return unit > 0 ? (width + unit - 1) / unit * unit : width;
}

/* The width of a dense part, and of an expert that has none of its own. */
static int shape_widths(struct shape *s)
{
    int64_t parts = shape_whole(s, MF_SLOT_FFN_PARTS);
    struct mf_model *m = s->model;

    if (shape_range(s, MF_SLOT_FFN_TIMES, 0, 1 << 20) ||
        shape_range(s, MF_SLOT_FFN_PARTS, 1, 1 << 20))
        return -1;
    if (shape_range(s, MF_SLOT_FFN_UNIT, 0, 1 << 24))
        return -1;
    if (!m->dense_ffn)
        m->dense_ffn = shape_whole(s, MF_SLOT_FFN_TIMES) * m->hidden;
    if (m->dense_ffn ? shape_whole(s, MF_SLOT_FFN_ADJUST) != 0
                     : shape_whole(s, MF_SLOT_FFN_UNIT) > 0)
        m->dense_ffn = width_of_llama(s);
    m->dense_ffn /= parts;
    if (!shape_whole(s, MF_SLOT_EXPERTS_ON))
        m->experts = 0;
    if (!shape_whole(s, MF_SLOT_EXPERT_SAME))
        return 0;
    /* One expert as wide as a dense part is a dense part. */
    if (m->experts == 1 && !m->moe_ffn)
        m->experts = 0;
    if (m->experts > 0 && !m->moe_ffn)
        m->moe_ffn = m->dense_ffn;
    if (!m->experts && m->shared_ffn > 0)
        m->dense_ffn = m->shared_ffn;
    return 0;
}

/* Shared experts come as a number of them, as one width or as both. */
static int shape_shared(struct shape *s)
{
    const char *name = shape_key(s, MF_FIELD_SHARED_EXPERTS);
    int64_t each = shape_whole(s, MF_SLOT_SHARED_EACH);
    struct mf_model *m = s->model;

    if (shape_range(s, MF_SLOT_SHARED_EACH, 0, 1 << 28))
        return -1;
    if ((m->shared_ffn > 0 || each > 0) && !m->shared_experts &&
        !s->value[MF_FIELD_SHARED_EXPERTS].given)
        m->shared_experts = 1;
    if (!m->shared_experts)
        m->shared_ffn = 0;
    if (m->shared_experts > 0 && !m->shared_ffn) {
        /* Each factor was checked: their product has at most 48 bits. */
        m->shared_ffn = m->shared_experts * (each > 0 ? each : m->moe_ffn);
        if (mf_field_check(MF_FIELD_SHARED_FFN, m->shared_ffn, name, s->err))
            return mf_error_set(s->err, MF_INVALID,
                "%s gives a width of %" PRId64 " together, too much", name,
                m->shared_ffn);
    }
    m->shared_gate = m->shared_ffn > 0 && shape_whole(s, MF_SLOT_SHARED_GATE);
    return 0;
}

/* A model without experts has none of their figures. */
static void shape_router(struct shape *s)
{
    struct mf_model *m = s->model;

    m->router.score = (enum mf_score)shape_whole(s, MF_SLOT_SCORE);
    m->router.bias = shape_whole(s, MF_SLOT_ROUTER_BIAS);
    m->router.linear_bias = shape_whole(s, MF_SLOT_ROUTER_LINEAR_BIAS);
    m->router.renormalize = shape_whole(s, MF_SLOT_RENORMALIZE);
    m->router.scaling = s->value[MF_SLOT_SCALING].real;
    if (shape_whole(s, MF_SLOT_BESIDE_DENSE))
        m->beside_ffn = m->dense_ffn;
    if (shape_whole(s, MF_SLOT_BESIDE_HIDDEN))
        m->beside_ffn = m->hidden;
    if (m->experts)
        return;
    m->router = (struct mf_router){.scaling = 1};
    m->topk = m->moe_ffn = m->shared_experts = m->shared_ffn = 0;
    m->latent = m->beside_ffn = m->zero_experts = 0;
    m->attention_experts = m->attention_topk = 0;
    m->shared_gate = false;
}

/* Layers that use the keys and values of an earlier one. */
static int shape_sharing(struct shape *s)
{
    int64_t tail = shape_whole(s, MF_SLOT_SHARED_KV), wide = 1;
    int64_t step = shape_whole(s, MF_SLOT_SHARE_STEP);
    struct mf_model *m = s->model;

    if (shape_range(s, MF_SLOT_SHARED_KV, 0, m->layers) ||
        shape_range(s, MF_SLOT_SHARE_STEP, 0, MF_LAYERS_MAX))
        return -1;
    if (!shape_whole(s, MF_SLOT_SHARE_ON) || step < 2)
        step = 1;
    if (m->layer_size || (!tail && step == 1))
        return 0;
    m->layer_size = calloc((size_t)m->layers, sizeof *m->layer_size);
    if (!m->layer_size)
        return mf_error_set(s->err, MF_FAILED, "out of memory");
    if (shape_whole(s, MF_SLOT_WIDE_SHARED))
        wide = 2;
    for (int64_t i = 0; i < m->layers; i++) {
        bool shares = i >= m->layers - tail || i % step;
        struct mf_heads h = mf_model_heads(m, m->layer_kind[i].mixer);

        m->layer_size[i] = (struct mf_layer_size){
            .kv_heads = shares ? 0 : h.kv_heads,
            .ffn = i >= m->layers - tail ? wide * m->dense_ffn : m->dense_ffn};
    }
    return 0;
}

/* Gemma 3n and 4: each layer has a table of its own, which a projection of the
 * input joins, and a gate and a projection back with a norm.
 */
static int shape_layer_table(struct shape *s)
{
    int64_t dim = shape_whole(s, MF_SLOT_LAYER_DIM);
    int64_t rows = shape_whole(s, MF_SLOT_LAYER_VOCAB);
    struct mf_model *m = s->model;

    if (shape_range(s, MF_SLOT_LAYER_DIM, 0, 1 << 20) ||
        shape_range(s, MF_SLOT_LAYER_VOCAB, 0, INT32_MAX))
        return -1;
    if (dim > 0)
        m->layer_extra += dim * (rows + 3 * m->hidden) + m->hidden;
    return 0;
}

/* Parameters that belong to no part: each of N streams of a layer's two
 * hyper-connections (arXiv 2409.19606) takes a row of all of them, N + 2 rows
 * in all.
 */
static int shape_extra(struct shape *s)
{
    int64_t n = shape_whole(s, MF_SLOT_STREAMS), rows = (n + 2) * n;
    struct mf_model *m = s->model;

    if (shape_range(s, MF_SLOT_STREAMS, 0, 64) ||
        shape_range(s, MF_SLOT_SQUARES, 0, 64))
        return -1;
    if (n > 1)
        m->layer_extra = 2 * (rows * n * m->hidden + rows + 3);
    m->layer_extra += shape_whole(s, MF_SLOT_SQUARES) * m->hidden * m->hidden;
    if (shape_whole(s, MF_SLOT_TABLE_DIM) > 0 &&
        shape_whole(s, MF_SLOT_TABLE_DIM) != m->hidden)
        return mf_error_set(s->err, MF_INVALID,
            "%s is %" PRId64 ": an embedding of another width than the "
            "model's is not counted",
            shape_key(s, MF_SLOT_TABLE_DIM), shape_whole(s, MF_SLOT_TABLE_DIM));
    return shape_layer_table(s);
}

static int shape_layers(struct shape *s)
{
    bool blocks = false, objects = false;

    if (mf_shape_blocks(s, &blocks))
        return -1;
    if (!blocks &&
        (shape_whole(s, MF_SLOT_PAIRED) ? layers_pair(s) : layers_ffn(s)))
        return -1;
    if (mf_shape_objects(s, &objects) || mf_shape_attention(s) ||
        mf_shape_mixers(s, blocks || objects))
        return -1;
    return 0;
}

/* Experts that do nothing take their share of the chosen ones. */
static int shape_idle(struct shape *s)
{
    struct mf_model *m = s->model;
    int64_t all = m->experts + m->zero_experts;

    if (!m->zero_experts)
        return 0;
    return mf_model_warn(m, s->err,
        "%" PRId64 " of %" PRId64 " experts do nothing; on average %.3g of the "
        "%" PRId64 " that a token chooses work, and the active parameters "
        "count so many",
        m->zero_experts, all,
        (double)m->topk * (double)m->experts / (double)all, m->topk);
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
    if (!value[MF_SLOT_MTP_ON].whole)
        model->mtp_layers = 0;
    if (mf_field_check(MF_FIELD_LAYERS, model->layers,
            shape_key(&s, MF_FIELD_LAYERS), err) ||
        mf_field_check(MF_FIELD_HIDDEN, model->hidden,
            shape_key(&s, MF_FIELD_HIDDEN), err) ||
        mf_field_check(
            MF_FIELD_HEADS, model->heads, shape_key(&s, MF_FIELD_HEADS), err))
        return -1;
    if (value[MF_SLOT_PAIRED].whole)
        model->layers *= 2;
    model->layer_kind =
        calloc((size_t)model->layers, sizeof *model->layer_kind);
    if (!model->layer_kind)
        return mf_error_set(err, MF_FAILED, "out of memory");
    if (shape_activation(&s) || shape_widths(&s) || shape_shared(&s) ||
        shape_layers(&s))
        return -1;
    shape_router(&s);
    if (shape_sharing(&s) || shape_extra(&s) || shape_idle(&s))
        return -1;
    if (!mf_model_count(model, MF_FFN_DENSE))
        model->dense_ffn = 0;
    if (mf_model_check(model, names, err))
        return -1;
    return mf_model_count_params(model, err);
}
