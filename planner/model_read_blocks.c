/* SPDX-License-Identifier: BSD-3-Clause
 * Layers that a configuration gives one by one: blocks that are a mixer or a
 * feed-forward part, and objects with sizes of their own.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/model_read_shape.h"

/* Nemotron-H: a letter of hybrid_override_pattern or a word of
 * layers_block_type.
 */
static const struct {
    char letter;
    const char *word;
    struct mf_layer_kind kind;
} block_table[] = {
    {'M', "mamba", {MF_MIXER_MAMBA, MF_FFN_NONE}},
    {'*', "attention", {MF_MIXER_FULL, MF_FFN_NONE}},
    {'-', "mlp", {MF_MIXER_NONE, MF_FFN_DENSE}},
    {'E', "moe", {MF_MIXER_NONE, MF_FFN_MOE}},
    {0, "mamba2", {MF_MIXER_MAMBA, MF_FFN_NONE}},
    {0, "linear_attention", {MF_MIXER_MAMBA, MF_FFN_NONE}},
    {0, "full_attention", {MF_MIXER_FULL, MF_FFN_NONE}},
};

static int block_set(
    struct shape *s, int64_t i, char letter, const char *word, int slot)
{
    for (size_t k = 0; k < sizeof block_table / sizeof *block_table; k++)
        if (word ? !strcmp(word, block_table[k].word)
                 : letter == block_table[k].letter) {
            s->model->layer_kind[i] = block_table[k].kind;
            return 0;
        }
    return mf_error_set(s->err, MF_INVALID,
        "%s[%" PRId64 "] is not a Mamba, attention, MLP or MoE block",
        shape_key(s, slot), i);
}

static int blocks_lettered(struct shape *s, const char *pattern)
{
    int64_t layers = s->model->layers;

    if (strlen(pattern) != (size_t)layers)
        return mf_error_set(s->err, MF_INVALID,
            "%s has %zu letters, but there are %" PRId64 " layers",
            shape_key(s, MF_SLOT_PATTERN), strlen(pattern), layers);
    for (int64_t i = 0; i < layers; i++)
        if (block_set(s, i, pattern[i], NULL, MF_SLOT_PATTERN))
            return -1;
    return 0;
}

int mf_shape_blocks(struct shape *s, bool *found)
{
    const char *pattern = s->value[MF_SLOT_PATTERN].text;
    const json_t *list = shape_list(s, MF_SLOT_BLOCKS);

    if (pattern) {
        *found = true;
        return blocks_lettered(s, pattern);
    }
    if (!list)
        return 0;
    *found = true;
    if (shape_length(s, MF_SLOT_BLOCKS, true))
        return -1;
    for (int64_t i = 0; i < s->model->layers; i++) {
        const char *word = json_string_value(json_array_get(list, (size_t)i));

        if (block_set(s, i, 0, word ? word : "", MF_SLOT_BLOCKS))
            return -1;
    }
    return 0;
}

static int object_refuse(
    const struct shape *s, int64_t i, const char *part, const char *why)
{
    return mf_error_set(s->err, MF_INVALID, "%s[%" PRId64 "].%s %s",
        shape_key(s, MF_SLOT_BLOCK_LIST), i, part, why);
}

/* A part that is left out, or an error for one that is replaced. */
static int object_part(
    struct shape *s, int64_t i, const json_t *part, const char *name, bool *on)
{
    *on = false;
    if (!json_is_object(part))
        return object_refuse(s, i, name, "is missing or not an object");
    if (json_is_true(json_object_get(part, "replace_with_linear")))
        return object_refuse(
            s, i, name, "is replaced by a matrix, which is not counted");
    *on = !json_is_true(json_object_get(part, "no_op"));
    return 0;
}

static int object_attention(struct shape *s, int64_t i, const json_t *part)
{
    struct mf_model *m = s->model;
    const json_t *group = json_object_get(part, "n_heads_in_group");
    const json_t *heads = json_object_get(part, "num_key_value_heads");
    int64_t kv = json_integer_value(heads), n = json_integer_value(group);
    bool on;

    if (object_part(s, i, part, "attention", &on))
        return -1;
    if (!on) {
        m->layer_kind[i].mixer = MF_MIXER_NONE;
        return 0;
    }
    if (!json_is_integer(heads) && n > 0 && m->heads % n == 0)
        kv = m->heads / n;
    if (kv < 1 || m->heads % kv)
        return object_refuse(s, i, "attention.n_heads_in_group",
            "does not divide the attention heads");
    m->layer_size[i].kv_heads = kv;
    if (kv > m->kv_heads)
        m->kv_heads = kv;
    return 0;
}

/* Two thirds of MULT times the width, up to the next 256. */
static int64_t object_width(double mult, int64_t hidden)
{
    double width = floor(2 * mult * (double)hidden / 3);

    return (int64_t)(ceil(width / 256) * 256);
}

static int object_ffn(struct shape *s, int64_t i, const json_t *part)
{
    struct mf_model *m = s->model;
    const json_t *mult = json_object_get(part, "ffn_mult");
    const json_t *given = json_object_get(part, "intermediate_size");
    double times = json_number_value(mult);
    int64_t width = json_integer_value(given);
    bool on;

    if (object_part(s, i, part, "ffn", &on))
        return -1;
    if (!on) {
        m->layer_kind[i].ffn = MF_FFN_NONE;
        return 0;
    }
    if (!json_is_integer(given) && times > 0 && times < 4096)
        width = object_width(times, m->hidden);
    if (width < 1 ||
        mf_field_check(MF_FIELD_DENSE_FFN, width, "ffn_mult", NULL))
        return object_refuse(
            s, i, "ffn.ffn_mult", "is not a positive multiple of the width");
    m->layer_size[i].ffn = width;
    if (width > m->dense_ffn)
        m->dense_ffn = width;
    return 0;
}

int mf_shape_objects(struct shape *s, bool *found)
{
    const json_t *list = shape_list(s, MF_SLOT_BLOCK_LIST);
    struct mf_model *m = s->model;

    if (!list)
        return 0;
    *found = true;
    if (shape_length(s, MF_SLOT_BLOCK_LIST, true))
        return -1;
    m->layer_size = calloc((size_t)m->layers, sizeof *m->layer_size);
    if (!m->layer_size)
        return mf_error_set(s->err, MF_FAILED, "out of memory");
    m->kv_heads = m->dense_ffn = 0;
    for (int64_t i = 0; i < m->layers; i++) {
        const json_t *item = json_array_get(list, (size_t)i);

        if (object_attention(s, i, json_object_get(item, "attention")) ||
            object_ffn(s, i, json_object_get(item, "ffn")))
            return -1;
    }
    if (!m->kv_heads)
        m->kv_heads = m->heads;
    return 0;
}
