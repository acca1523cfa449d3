/* SPDX-License-Identifier: BSD-3-Clause
 * A model as JSON.
 */
#include "planner/layout/model_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        if (!mf_same_object(mf_field_object(field), object))
            continue;
        bad |= json_object_set_new(json, mf_field_key(field),
            field_absent(model, field)
                ? json_null()
                : json_integer(mf_field_get(model, field)));
    }
    for (size_t i = 0; i < MF_FLAGS; i++)
        if (mf_same_object(mf_flag_table[i].object, object))
            bad |= json_object_set_new(json, mf_flag_table[i].key,
                json_boolean(mf_flag_get(model, &mf_flag_table[i])));
    return bad;
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
            json, "type", json_string(mf_linear_names[model->linear.type]));
    return 0;
}

static json_t *object_to_json(const struct mf_model *model, const char *object)
{
    json_t *json;

    if (!mf_object_present(model, object))
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

    for (size_t i = 0; i < MF_OBJECTS; i++)
        bad |= json_object_set_new(json, mf_object_table[i],
            object_to_json(model, mf_object_table[i]));
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
        snprintf(text, sizeof text, "%s+%s", mf_mixer_names[kind->mixer],
            mf_ffn_names[kind->ffn]);
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

    for (size_t i = 0; i < MF_PARAMS; i++) {
        int64_t n = mf_param_get(&model->params, &mf_param_table[i]);
        bad |= json_object_set_new(
            json, mf_param_table[i].key, n < 0 ? json_null() : json_integer(n));
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
        json, "qk_norm", json_string(mf_qk_norm_names[model->qk_norm]));
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
