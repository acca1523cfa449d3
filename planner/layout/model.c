/* SPDX-License-Identifier: BSD-3-Clause
 * The shape of a model: its names, its warnings, its memory.
 */
#include "planner/layout/model_field.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    static const char *const name[] = {
        [MF_SCORE_SOFTMAX] = "softmax",
        [MF_SCORE_SIGMOID] = "sigmoid",
        [MF_SCORE_SQRTSOFTPLUS] = "sqrtsoftplus",
    };

    return name[score];
}

int64_t mf_model_count(const struct mf_model *model, enum mf_ffn kind)
{
    int64_t n = 0;

    for (int64_t i = 0; model->layer_kind && i < model->layers; i++)
        n += model->layer_kind[i].ffn == kind;
    return n;
}

int64_t mf_model_count_mixer(const struct mf_model *model, enum mf_mixer mixer)
{
    int64_t n = 0;

    for (int64_t i = 0; model->layer_kind && i < model->layers; i++)
        n += model->layer_kind[i].mixer == mixer;
    return n;
}

struct mf_heads mf_model_heads(
    const struct mf_model *model, enum mf_mixer mixer)
{
    struct mf_heads heads =
        mixer == MF_MIXER_SLIDING ? model->sliding_heads : model->full_heads;

    if (!heads.heads)
        heads = (struct mf_heads){.heads = model->heads,
            .kv_heads = model->kv_heads,
            .head_dim = model->head_dim,
            .v_dim = model->v_dim,
            .sinks = model->sinks};
    if (!heads.v_dim)
        heads.v_dim = heads.head_dim;
    return heads;
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
    free(model->layer_size);
    model->warning = NULL;
    model->layer_kind = NULL;
    model->layer_size = NULL;
}
