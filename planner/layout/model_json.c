/* SPDX-License-Identifier: BSD-3-Clause
 * A model as JSON, and back with every figure checked.
 */
#include "planner/layout/model_field.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const mixer_name[] = {
    [MF_MIXER_FULL] = "full",
    [MF_MIXER_SLIDING] = "sliding",
    [MF_MIXER_NONE] = "none",
    [MF_MIXER_LINEAR] = "linear",
    [MF_MIXER_MAMBA] = "mamba",
    [MF_MIXER_SPARSE] = "sparse",
    [MF_MIXER_COMPRESSED] = "compressed",
    [MF_MIXER_CONV] = "conv",
};

static const char *const linear_name[] = {
    [MF_LINEAR_GATED_DELTA] = "gated_delta",
    [MF_LINEAR_KDA] = "kda",
    [MF_LINEAR_LIGHTNING] = "lightning",
};

static const char *const ffn_name[] = {
    [MF_FFN_DENSE] = "dense",
    [MF_FFN_MOE] = "moe",
    [MF_FFN_NONE] = "none",
};

static const char *const qk_norm_name[] = {
    [MF_QK_NORM_NONE] = "none",
    [MF_QK_NORM_HEAD] = "head",
    [MF_QK_NORM_WHOLE] = "whole",
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Flags at the top level; those of the router stand beside its figures. */
struct flag_row {
    const char *object, *key;
    size_t offset;
};

static const struct flag_row flag_table[] = {
    {NULL, "gated", offsetof(struct mf_model, gated)},
    {NULL, "shared_gate", offsetof(struct mf_model, shared_gate)},
    {NULL, "tied_embeddings", offsetof(struct mf_model, tied_embeddings)},
    {NULL, "qkv_bias", offsetof(struct mf_model, qkv_bias)},
    {NULL, "out_bias", offsetof(struct mf_model, out_bias)},
    {NULL, "mlp_bias", offsetof(struct mf_model, mlp_bias)},
    {NULL, "sinks", offsetof(struct mf_model, sinks)},
    {NULL, "window_chunked", offsetof(struct mf_model, window_chunked)},
    {NULL, "head_bias", offsetof(struct mf_model, head_bias)},
    {"full_attention", "keys_are_values",
        offsetof(struct mf_model, full_heads.keys_are_values)},
    {"full_attention", "sinks", offsetof(struct mf_model, full_heads.sinks)},
    {"sliding_attention", "keys_are_values",
        offsetof(struct mf_model, sliding_heads.keys_are_values)},
    {"sliding_attention", "sinks",
        offsetof(struct mf_model, sliding_heads.sinks)},
    {"mamba", "conv_bias", offsetof(struct mf_model, mamba.conv_bias)},
    {"mamba", "proj_bias", offsetof(struct mf_model, mamba.proj_bias)},
    {"mamba", "norms", offsetof(struct mf_model, mamba.norms)},
    {"router", "linear_bias", offsetof(struct mf_model, router.linear_bias)},
    {"router", "bias", offsetof(struct mf_model, router.bias)},
    {"router", "renormalize", offsetof(struct mf_model, router.renormalize)},
};

struct param_row {
    const char *key;
    size_t offset;
};

static const struct param_row param_table[] = {
    {"params_total", offsetof(struct mf_params, total)},
    {"params_active", offsetof(struct mf_params, active)},
    {"params_active_no_embedding",
        offsetof(struct mf_params, active_no_embedding)},
    {"params_embedding", offsetof(struct mf_params, embedding)},
    {"params_attention", offsetof(struct mf_params, attention)},
    {"params_dense_mlp", offsetof(struct mf_params, dense_mlp)},
    {"params_routed", offsetof(struct mf_params, routed)},
    {"params_shared", offsetof(struct mf_params, shared)},
    {"params_router", offsetof(struct mf_params, router)},
    {"params_norms", offsetof(struct mf_params, norms)},
    {"params_other", offsetof(struct mf_params, other)},
    {"params_mtp", offsetof(struct mf_params, mtp)},
    {"params_vision", offsetof(struct mf_params, vision)},
};

static bool *flag_of(struct mf_model *model, const struct flag_row *row)
{
    return (bool *)(void *)((char *)model + row->offset);
}

static bool flag_get(const struct mf_model *model, const struct flag_row *row)
{
    return *(const bool *)(const void *)((const char *)model + row->offset);
}

static int64_t param_get(const struct mf_params *p, const struct param_row *row)
{
    return *(const int64_t *)(const void *)((const char *)p + row->offset);
}

static bool same_object(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* A part that the model does not have, and so has no figure. */
static bool field_absent(const struct mf_model *model, enum mf_field field)
{
    switch (field) {
    case MF_FIELD_WINDOW:
    case MF_FIELD_GROUPS:
    case MF_FIELD_TOPK_GROUPS:
    case MF_FIELD_V_DIM:
    case MF_FIELD_Q_RANK:
    case MF_FIELD_O_RANK:
    case MF_FIELD_O_GROUPS:
    case MF_FIELD_LATENT:
    case MF_FIELD_COMPRESS_RATIO:
    case MF_FIELD_CONV_KERNEL:
    case MF_FIELD_INDEX_RATIO:
        return mf_field_get(model, field) == 0;
    default:
        return false;
    }
}

/* The figures and flags whose object is OBJECT (NULL: the top level). */
static int object_fill(
    const struct mf_model *model, const char *object, json_t *json)
{
    int bad = 0;

    for (int i = 0; i < MF_FIELDS; i++) {
        enum mf_field field = (enum mf_field)i;
        if (!same_object(mf_field_object(field), object))
            continue;
        bad |= json_object_set_new(json, mf_field_key(field),
            field_absent(model, field)
                ? json_null()
                : json_integer(mf_field_get(model, field)));
    }
    for (size_t i = 0; i < COUNT(flag_table); i++)
        if (same_object(flag_table[i].object, object))
            bad |= json_object_set_new(json, flag_table[i].key,
                json_boolean(flag_get(model, &flag_table[i])));
    return bad;
}

/* Parts that a model may have, each an object or null in the JSON. */
static const char *const object_table[] = {"mla", "router", "full_attention",
    "sliding_attention", "linear", "mamba", "indexer"};

static bool object_present(const struct mf_model *model, const char *object)
{
    const bool present[] = {model->attention == MF_ATTENTION_MLA,
        model->experts > 0, model->full_heads.heads > 0,
        model->sliding_heads.heads > 0, model->linear.value_heads > 0,
        model->mamba.inner > 0, model->indexer.heads > 0};

    for (size_t i = 0; i < COUNT(object_table); i++)
        if (!strcmp(object, object_table[i]))
            return present[i];
    return false;
}

/* What is neither a figure nor a flag. */
static int object_words(
    const struct mf_model *model, const char *object, json_t *json)
{
    const struct mf_router *r = &model->router;

    if (!strcmp(object, "router"))
        return json_object_set_new(
                   json, "score", json_string(mf_score_name(r->score))) |
               json_object_set_new(json, "scaling", json_real(r->scaling));
    if (!strcmp(object, "linear"))
        return json_object_set_new(
            json, "type", json_string(linear_name[model->linear.type]));
    return 0;
}

static json_t *object_to_json(const struct mf_model *model, const char *object)
{
    json_t *json;

    if (!object_present(model, object))
        return json_null();
    json = json_object();
    if (!json || object_words(model, object, json) ||
        object_fill(model, object, json)) {
        json_decref(json);
        return NULL;
    }
    return json;
}

static int objects_fill(const struct mf_model *model, json_t *json)
{
    int bad = 0;

    for (size_t i = 0; i < COUNT(object_table); i++)
        bad |= json_object_set_new(
            json, object_table[i], object_to_json(model, object_table[i]));
    return bad;
}

/* One size of every layer, or null where all are alike. */
static json_t *sizes_to_json(const struct mf_model *model, bool ffn)
{
    json_t *array;

    if (!model->layer_size)
        return json_null();
    array = json_array();
    for (int64_t i = 0; array && i < model->layers; i++) {
        const struct mf_layer_size *size = &model->layer_size[i];

        if (json_array_append_new(
                array, json_integer(ffn ? size->ffn : size->kv_heads))) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *kinds_to_json(const struct mf_model *model)
{
    json_t *array = json_array();
    char text[32];

    for (int64_t i = 0; array && i < model->layers; i++) {
        const struct mf_layer_kind *kind = &model->layer_kind[i];
        snprintf(text, sizeof text, "%s+%s", mixer_name[kind->mixer],
            ffn_name[kind->ffn]);
        if (json_array_append_new(array, json_string(text))) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *warnings_to_json(const struct mf_model *model)
{
    json_t *array = json_array();

    for (size_t i = 0; array && model->warning && model->warning[i]; i++)
        if (json_array_append_new(array, json_string(model->warning[i]))) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static int params_fill(const struct mf_model *model, json_t *json)
{
    int bad = 0;

    for (size_t i = 0; i < COUNT(param_table); i++) {
        int64_t n = param_get(&model->params, &param_table[i]);
        bad |= json_object_set_new(
            json, param_table[i].key, n < 0 ? json_null() : json_integer(n));
    }
    return bad;
}

static json_t *text_or_null(const char *text)
{
    return *text ? json_string(text) : json_null();
}

json_t *mf_model_to_json(const struct mf_model *model)
{
    json_t *json = json_object();
    int bad;

    if (!json)
        return NULL;
    bad = json_object_set_new(json, "name", json_string(model->name));
    bad |= json_object_set_new(
        json, "moe_layers", json_integer(mf_model_count(model, MF_FFN_MOE)));
    bad |= json_object_set_new(json, "dense_layers",
        json_integer(mf_model_count(model, MF_FFN_DENSE)));
    bad |= json_object_set_new(
        json, "attention", json_string(mf_attention_name(model->attention)));
    bad |= object_fill(model, NULL, json);
    bad |= json_object_set_new(
        json, "qk_norm", json_string(qk_norm_name[model->qk_norm]));
    bad |=
        json_object_set_new(json, "activation", json_string(model->activation));
    bad |= json_object_set_new(json, "dtype", text_or_null(model->dtype));
    bad |= json_object_set_new(
        json, "quantization", text_or_null(model->quantization));
    bad |= objects_fill(model, json);
    bad |= json_object_set_new(json, "layer_kinds", kinds_to_json(model));
    bad |= json_object_set_new(
        json, "layer_kv_heads", sizes_to_json(model, false));
    bad |= json_object_set_new(json, "layer_ffn", sizes_to_json(model, true));
    bad |= params_fill(model, json);
    bad |= json_object_set_new(json, "warnings", warnings_to_json(model));
    if (bad) {
        json_decref(json);
        return NULL;
    }
    return json;
}

/* One of N names; -1 (error) when VALUE is none of them. */
static int name_read(const json_t *json, const char *key,
    const char *const *name, size_t n, struct mf_error *err)
{
    const char *text = json_string_value(json_object_get(json, key));

    for (size_t i = 0; text && i < n; i++)
        if (!strcmp(text, name[i]))
            return (int)i;
    if (!text)
        return mf_error_set(
            err, MF_INVALID, "%s is missing or not a string", key);
    return mf_error_set(
        err, MF_INVALID, "%s \"%.64s\" is not known", key, text);
}

static int text_read(const json_t *json, const char *key, char *text,
    size_t size, struct mf_error *err)
{
    const char *value = json_string_value(json_object_get(json, key));

    if (!value)
        return mf_error_set(
            err, MF_INVALID, "%s is missing or not a string", key);
    if (json_string_length(json_object_get(json, key)) >= size ||
        strlen(value) != json_string_length(json_object_get(json, key)))
        return mf_error_set(err, MF_INVALID,
            "%s is longer than %zu bytes, or holds a zero byte", key, size - 1);
    memcpy(text, value, strlen(value) + 1);
    return 0;
}

/* A text that may be missing or null. */
static int note_read(const json_t *json, const char *key, char *text,
    size_t size, struct mf_error *err)
{
    const json_t *item = json_object_get(json, key);

    if (!item || json_is_null(item))
        return 0;
    return text_read(json, key, text, size, err);
}

static int integer_read(const json_t *json, const char *key, int64_t least,
    int64_t *value, struct mf_error *err)
{
    const json_t *item = json_object_get(json, key);

    if (json_is_null(item) && least == 0) {
        *value = 0;
        return 0;
    }
    if (!json_is_integer(item))
        return mf_error_set(
            err, MF_INVALID, "%s is missing or not a whole number", key);
    *value = json_integer_value(item);
    return 0;
}

static int object_read(const json_t *json, const char *object,
    struct mf_model *model, struct mf_error *err)
{
    for (int i = 0; i < MF_FIELDS; i++) {
        enum mf_field field = (enum mf_field)i;
        if (same_object(mf_field_object(field), object) &&
            integer_read(json, mf_field_key(field), mf_field_least(field),
                mf_field_of(model, field), err))
            return -1;
    }
    for (size_t i = 0; i < COUNT(flag_table); i++) {
        const json_t *item = json_object_get(json, flag_table[i].key);
        if (!same_object(flag_table[i].object, object))
            continue;
        if (!json_is_boolean(item))
            return mf_error_set(err, MF_INVALID,
                "%s is missing or neither true nor false", flag_table[i].key);
        *flag_of(model, &flag_table[i]) = json_is_true(item);
    }
    return 0;
}

static int mla_read(
    const json_t *json, struct mf_model *model, struct mf_error *err)
{
    const json_t *mla = json_object_get(json, "mla");

    if (model->attention != MF_ATTENTION_MLA)
        return 0;
    if (!json_is_object(mla))
        return mf_error_set(
            err, MF_INVALID, "mla is missing, but attention is mla");
    return object_read(mla, "mla", model, err) ? mf_error_prefix(err, "mla")
                                               : 0;
}

/* Parts that are there when their object is; a plan may have none of them. */
static int parts_read(
    const json_t *json, struct mf_model *model, struct mf_error *err)
{
    static const char *const part[] = {
        "full_attention", "sliding_attention", "linear", "mamba", "indexer"};

    for (size_t i = 0; i < COUNT(part); i++) {
        const json_t *item = json_object_get(json, part[i]);
        int type;

        if (!item || json_is_null(item))
            continue;
        if (!json_is_object(item))
            return mf_error_set(
                err, MF_INVALID, "%s is not an object", part[i]);
        if (object_read(item, part[i], model, err))
            return mf_error_prefix(err, "%s", part[i]);
        if (!object_present(model, part[i]))
            return mf_error_set(err, MF_INVALID, "%s has no size", part[i]);
        if (strcmp(part[i], "linear"))
            continue;
        type = name_read(item, "type", linear_name, COUNT(linear_name), err);
        if (type < 0)
            return mf_error_prefix(err, "linear");
        model->linear.type = (enum mf_linear_type)type;
    }
    return 0;
}

static int router_read(
    const json_t *json, struct mf_model *model, struct mf_error *err)
{
    static const char *const score_name[] = {
        "softmax", "sigmoid", "sqrtsoftplus"};
    const json_t *router = json_object_get(json, "router");
    int score;

    model->router.scaling = 1;
    if (!model->experts)
        return 0;
    if (!json_is_object(router))
        return mf_error_set(
            err, MF_INVALID, "router is missing, but there are experts");
    score = name_read(router, "score", score_name, COUNT(score_name), err);
    if (score < 0 || object_read(router, "router", model, err))
        return mf_error_prefix(err, "router");
    if (!json_is_number(json_object_get(router, "scaling")))
        return mf_error_set(
            err, MF_INVALID, "router: scaling is missing or not a number");
    model->router.score = (enum mf_score)score;
    model->router.scaling =
        json_number_value(json_object_get(router, "scaling"));
    return 0;
}

static int kind_read(const json_t *item, struct mf_layer_kind *kind)
{
    const char *text = json_string_value(item);
    char name[32];

    for (size_t i = 0; text && i < COUNT(mixer_name); i++)
        for (size_t j = 0; j < COUNT(ffn_name); j++) {
            snprintf(name, sizeof name, "%s+%s", mixer_name[i], ffn_name[j]);
            if (!strcmp(text, name)) {
                kind->mixer = (enum mf_mixer)i;
                kind->ffn = (enum mf_ffn)j;
                return 0;
            }
        }
    return -1;
}

static int kinds_read(
    const json_t *json, struct mf_model *model, struct mf_error *err)
{
    const json_t *array = json_object_get(json, "layer_kinds");
    size_t n = json_array_size(array);

    if (model->layers < 1 || model->layers > MF_LAYERS_MAX)
        return mf_error_set(err, MF_INVALID,
            "layers is %" PRId64 ", not in 1 to %d", model->layers,
            MF_LAYERS_MAX);
    if (!json_is_array(array) || n != (size_t)model->layers)
        return mf_error_set(err, MF_INVALID,
            "layer_kinds has %zu entries, but layers is %" PRId64, n,
            model->layers);
    model->layer_kind = calloc(n, sizeof *model->layer_kind);
    if (!model->layer_kind)
        return mf_error_set(err, MF_FAILED, "out of memory");
    for (size_t i = 0; i < n; i++)
        if (kind_read(json_array_get(array, i), &model->layer_kind[i]))
            return mf_error_set(err, MF_INVALID,
                "layer_kinds[%zu] is not such as \"full+moe\"", i);
    return 0;
}

static int size_list_read(const json_t *json, const char *key, bool ffn,
    struct mf_model *model, struct mf_error *err)
{
    enum mf_field field = ffn ? MF_FIELD_DENSE_FFN : MF_FIELD_KV_HEADS;
    const json_t *array = json_object_get(json, key);

    if (!json_is_array(array) ||
        json_array_size(array) != (size_t)model->layers)
        return mf_error_set(
            err, MF_INVALID, "%s is not a list of one number a layer", key);
    for (int64_t i = 0; i < model->layers; i++) {
        const json_t *item = json_array_get(array, (size_t)i);
        struct mf_layer_size *size = &model->layer_size[i];
        int64_t n = json_integer_value(item);

        if (!json_is_integer(item) || n < 0 ||
            (n > 0 && mf_field_check(field, n, key, NULL)))
            return mf_error_set(err, MF_INVALID,
                "%s[%" PRId64 "] is not a number of a layer", key, i);
        *(ffn ? &size->ffn : &size->kv_heads) = n;
    }
    return 0;
}

static int sizes_read(
    const json_t *json, struct mf_model *model, struct mf_error *err)
{
    const json_t *heads = json_object_get(json, "layer_kv_heads");
    const json_t *ffn = json_object_get(json, "layer_ffn");

    if ((!heads || json_is_null(heads)) && (!ffn || json_is_null(ffn)))
        return 0;
    model->layer_size =
        calloc((size_t)model->layers, sizeof *model->layer_size);
    if (!model->layer_size)
        return mf_error_set(err, MF_FAILED, "out of memory");
    if (size_list_read(json, "layer_kv_heads", false, model, err))
        return -1;
    return size_list_read(json, "layer_ffn", true, model, err);
}

/* The counts that stand in the file must be those of its shape. */
static int params_read(
    const json_t *json, struct mf_model *model, struct mf_error *err)
{
    const json_t *vision = json_object_get(json, "params_vision");

    model->params.vision = -1;
    if (json_is_integer(vision) && json_integer_value(vision) >= 0)
        model->params.vision = json_integer_value(vision);
    if (mf_model_count_params(model, err))
        return -1;
    for (size_t i = 0; i < COUNT(param_table); i++) {
        const json_t *item = json_object_get(json, param_table[i].key);
        int64_t n = param_get(&model->params, &param_table[i]);
        if (!item || json_is_null(item))
            continue;
        if (!json_is_integer(item))
            return mf_error_set(err, MF_INVALID, "%s is not a whole number",
                param_table[i].key);
        if (json_integer_value(item) != n)
            return mf_error_set(err, MF_INVALID,
                "%s is %" PRId64 ", but the shape has %" PRId64,
                param_table[i].key, (int64_t)json_integer_value(item), n);
    }
    return 0;
}

/* Sums over the layers, repeated for the reader of the JSON. */
static int layer_sums_read(
    const json_t *json, const struct mf_model *model, struct mf_error *err)
{
    static const struct {
        const char *key;
        enum mf_ffn kind;
    } row[] = {{"moe_layers", MF_FFN_MOE}, {"dense_layers", MF_FFN_DENSE}};

    for (size_t i = 0; i < COUNT(row); i++) {
        const json_t *item = json_object_get(json, row[i].key);
        int64_t n = mf_model_count(model, row[i].kind);
        if (!json_is_integer(item) || json_integer_value(item) != n)
            return mf_error_set(err, MF_INVALID,
                "%s is not %" PRId64 ", as layer_kinds has it", row[i].key, n);
    }
    return 0;
}

static int warnings_read(
    const json_t *json, struct mf_model *model, struct mf_error *err)
{
    const json_t *array = json_object_get(json, "warnings");

    if (!array || json_is_null(array))
        return 0;
    if (!json_is_array(array) || json_array_size(array) > 1000)
        return mf_error_set(
            err, MF_INVALID, "warnings is not a list of at most 1000");
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *text = json_string_value(json_array_get(array, i));
        if (!text)
            return mf_error_set(
                err, MF_INVALID, "warnings[%zu] is not a string", i);
        if (mf_model_warn(model, err, "%s", text))
            return -1;
    }
    return 0;
}

static int model_read(
    const json_t *json, struct mf_model *model, struct mf_error *err)
{
    static const char *const attention_name[] = {"mha", "gqa", "mla"};
    int attention, qk_norm;

    attention = name_read(
        json, "attention", attention_name, COUNT(attention_name), err);
    if (attention < 0)
        return -1;
    qk_norm =
        name_read(json, "qk_norm", qk_norm_name, COUNT(qk_norm_name), err);
    if (qk_norm < 0)
        return -1;
    model->attention = (enum mf_attention)attention;
    model->qk_norm = (enum mf_qk_norm)qk_norm;
    if (text_read(json, "name", model->name, sizeof model->name, err) ||
        text_read(json, "activation", model->activation,
            sizeof model->activation, err) ||
        note_read(json, "dtype", model->dtype, sizeof model->dtype, err) ||
        note_read(json, "quantization", model->quantization,
            sizeof model->quantization, err) ||
        object_read(json, NULL, model, err) || mla_read(json, model, err) ||
        parts_read(json, model, err) || router_read(json, model, err) ||
        kinds_read(json, model, err) || sizes_read(json, model, err) ||
        mf_model_check(model, NULL, err))
        return -1;
    if (layer_sums_read(json, model, err) || params_read(json, model, err))
        return -1;
    return warnings_read(json, model, err);
}

int mf_model_from_json(
    const json_t *json, struct mf_model *model, struct mf_error *err)
{
    memset(model, 0, sizeof *model);
    if (!json_is_object(json))
        return mf_error_set(err, MF_INVALID, "the model is not an object");
    if (model_read(json, model, err)) {
        mf_model_free(model);
        memset(model, 0, sizeof *model);
        return -1;
    }
    return 0;
}
