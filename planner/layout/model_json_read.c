/* SPDX-License-Identifier: BSD-3-Clause
 * A model from its JSON, with every figure checked.
 */
#include "planner/layout/model_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

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
        if (mf_same_object(mf_field_object(field), object) &&
            integer_read(json, mf_field_key(field), mf_field_least(field),
                mf_field_of(model, field), err))
            return -1;
    }
    for (size_t i = 0; i < MF_FLAGS; i++) {
        const json_t *item = json_object_get(json, mf_flag_table[i].key);
        if (!mf_same_object(mf_flag_table[i].object, object))
            continue;
        if (!json_is_boolean(item))
            return mf_error_set(err, MF_INVALID,
                "%s is missing or neither true nor false",
                mf_flag_table[i].key);
        *mf_flag_of(model, &mf_flag_table[i]) = json_is_true(item);
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
        if (!mf_object_present(model, part[i]))
            return mf_error_set(err, MF_INVALID, "%s has no size", part[i]);
        if (strcmp(part[i], "linear"))
            continue;
        type = name_read(item, "type", mf_linear_names, MF_LINEAR_TYPES, err);
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

    for (size_t i = 0; text && i < MF_MIXERS; i++)
        for (size_t j = 0; j < MF_FFNS; j++) {
            snprintf(
                name, sizeof name, "%s+%s", mf_mixer_names[i], mf_ffn_names[j]);
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
    for (size_t i = 0; i < MF_PARAMS; i++) {
        const json_t *item = json_object_get(json, mf_param_table[i].key);
        int64_t n = mf_param_get(&model->params, &mf_param_table[i]);
        if (!item || json_is_null(item))
            continue;
        if (!json_is_integer(item))
            return mf_error_set(err, MF_INVALID, "%s is not a whole number",
                mf_param_table[i].key);
        if (json_integer_value(item) != n)
            return mf_error_set(err, MF_INVALID,
                "%s is %" PRId64 ", but the shape has %" PRId64,
                mf_param_table[i].key, (int64_t)json_integer_value(item), n);
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
    qk_norm = name_read(json, "qk_norm", mf_qk_norm_names, MF_QK_NORMS, err);
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
