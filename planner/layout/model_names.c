/* SPDX-License-Identifier: BSD-3-Clause
 * The names that a model's JSON has for kinds, flags and counts.
 */
#include "planner/layout/model_names.h"

#include <stddef.h>
#include <string.h>

const char *const mf_mixer_names[MF_MIXERS] = {
    [MF_MIXER_FULL] = "full",
    [MF_MIXER_SLIDING] = "sliding",
    [MF_MIXER_NONE] = "none",
    [MF_MIXER_LINEAR] = "linear",
    [MF_MIXER_MAMBA] = "mamba",
    [MF_MIXER_SPARSE] = "sparse",
    [MF_MIXER_COMPRESSED] = "compressed",
    [MF_MIXER_CONV] = "conv",
};

const char *const mf_linear_names[MF_LINEAR_TYPES] = {
    [MF_LINEAR_GATED_DELTA] = "gated_delta",
    [MF_LINEAR_KDA] = "kda",
    [MF_LINEAR_LIGHTNING] = "lightning",
};

const char *const mf_ffn_names[MF_FFNS] = {
    [MF_FFN_DENSE] = "dense",
    [MF_FFN_MOE] = "moe",
    [MF_FFN_NONE] = "none",
};

const char *const mf_qk_norm_names[MF_QK_NORMS] = {
    [MF_QK_NORM_NONE] = "none",
    [MF_QK_NORM_HEAD] = "head",
    [MF_QK_NORM_WHOLE] = "whole",
};

const struct mf_flag_row mf_flag_table[MF_FLAGS] = {
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

const struct mf_param_row mf_param_table[MF_PARAMS] = {
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

bool *mf_flag_of(struct mf_model *model, const struct mf_flag_row *row)
{
    return (bool *)(void *)((char *)model + row->offset);
}

bool mf_flag_get(const struct mf_model *model, const struct mf_flag_row *row)
{
    return *(const bool *)(const void *)((const char *)model + row->offset);
}

int64_t mf_param_get(const struct mf_params *p, const struct mf_param_row *row)
{
    return *(const int64_t *)(const void *)((const char *)p + row->offset);
}

bool mf_same_object(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* Parts that a model may have, each an object or null in the JSON. */
const char *const mf_object_table[MF_OBJECTS] = {"mla", "router",
    "full_attention", "sliding_attention", "linear", "mamba", "indexer"};

bool mf_object_present(const struct mf_model *model, const char *object)
{
    const bool present[] = {model->attention == MF_ATTENTION_MLA,
        model->experts > 0, model->full_heads.heads > 0,
        model->sliding_heads.heads > 0, model->linear.value_heads > 0,
        model->mamba.inner > 0, model->indexer.heads > 0};

    for (size_t i = 0; i < MF_OBJECTS; i++)
        if (!strcmp(object, mf_object_table[i]))
            return present[i];
    return false;
}
