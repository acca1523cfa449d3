/* SPDX-License-Identifier: BSD-3-Clause
 * What a config.json says that no row reads: keys that could change the count,
 * parts other than text, and how the weights are published.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "planner/model_read_config.h"

#define WARNINGS_MAX 20

/* null, false, 0 and empty things say that a part is not there. */
static bool value_is_void(const json_t *item)
{
    switch (json_typeof(item)) {
    case JSON_NULL:
    case JSON_FALSE:
        return true;
    case JSON_INTEGER:
        return json_integer_value(item) == 0;
    case JSON_REAL:
        return json_real_value(item) == 0;
    case JSON_ARRAY:
        return json_array_size(item) == 0;
    case JSON_OBJECT:
        return json_object_size(item) == 0;
    default:
        return false;
    }
}

/* Objects of parts that are not the text model. */
static const char *const other_parts[] = {"vision_config", "audio_config",
    "visual", "vision_tower_config", "projector_config", "vision_model_config",
    "aligner_config", "speech_config", "talker_config", "code2wav_config",
    "resampler_config", "vision", "vit_config", "img_processor",
    "audio_processor", "embd_layer", "mm_projector_config", "gen_vision_config",
    "gen_aligner_config", "gen_head_config", "video_config", "sam_config",
    "vision_encoder", NULL};

static bool object_has_parts(const json_t *object)
{
    for (const char *const *part = other_parts; *part; part++)
        if (json_is_object(json_object_get(object, *part)))
            return true;
    return json_is_string(json_object_get(object, "mm_vision_tower"));
}

/* Whether a row's path starts with NAME and a dot. */
static bool dialect_goes_into(const struct mf_dialect *d, const char *name)
{
    size_t n = strlen(name);

    for (const struct mf_key *const *table = d->keys; table && *table; table++)
        for (const struct mf_key *row = *table; row->key; row++)
            if (!strncmp(row->key, name, n) && row->key[n] == '.')
                return true;
    return false;
}

/* Whether a word under KEY may say how a part is built. */
static bool word_is_suspect(const char *key)
{
    static const char *const part[] = {"type", "norm", "mlp", "ffn", "attn",
        "attention", "pattern", "layout", "expert", "moe", "layer", "embed",
        "mixer", NULL};

    for (const char *const *p = part; *p; p++)
        if (strstr(key, *p))
            return true;
    return false;
}

/* Beginnings of keys of parts other than text. */
static bool beginning_is_harmless(const char *key)
{
    static const char *const begin[] = {"mm_", "vit_", "vision_", "image_",
        "video_", "audio_", "tts_", "tune_", "freeze_", "unfreeze_", NULL};

    for (const char *const *b = begin; *b; b++)
        if (!strncmp(key, *b, strlen(*b)))
            return true;
    return false;
}

/* Endings of keys that hold no parameters in any model. */
static bool ending_is_harmless(const char *key)
{
    static const char *const end[] = {"_token_id", "_token_ids", "_token_index",
        "_dropout", "_drop", "_eps", "_epsilon", "_loss_coef", "_loss_weight",
        "_temperature", "_init_std", NULL};
    size_t n = strlen(key);

    for (const char *const *e = end; *e; e++)
        if (n > strlen(*e) && !strcmp(key + n - strlen(*e), *e))
            return true;
    return false;
}

/* Nothing at all cannot add parameters; a figure might, and a word that says
 * how something is built.
 */
static bool key_is_suspect(
    const struct reading *r, const char *key, const json_t *item)
{
    const char *name = strrchr(key, '.') ? strrchr(key, '.') + 1 : key;

    if (mf_dialect_has(r->dialect, key) || mf_keys_have(mf_keys_common, key))
        return false;
    if (mf_listed(mf_harmless, name) || mf_listed(other_parts, key) ||
        mf_listed(mf_nests, key) || ending_is_harmless(name) ||
        beginning_is_harmless(key))
        return false;
    if (json_is_string(item))
        return json_string_length(item) > 0 && word_is_suspect(name);
    return !value_is_void(item);
}

static int warn_unknown(
    struct reading *r, json_t *object, const char *before, int64_t *n)
{
    char path[160];
    const char *key;
    json_t *item;

    json_object_foreach(object, key, item)
    {
        if (snprintf(path, sizeof path, "%s%.80s", before, key) < 0)
            continue;
        if (json_is_object(item) && !*before &&
            dialect_goes_into(r->dialect, key)) {
            snprintf(path, sizeof path, "%.80s.", key);
            if (warn_unknown(r, item, path, n))
                return -1;
            continue;
        }
        if (!key_is_suspect(r, path, item) || ++*n > WARNINGS_MAX)
            continue;
        if (mf_model_warn(r->model, r->err,
                "%s%.80s is not known; the counts leave it out of account",
                r->path, path))
            return -1;
    }
    return 0;
}

int mf_unknown_tell(struct reading *r)
{
    int64_t n = 0;

    if (r->dialect->note &&
        mf_model_warn(r->model, r->err, "%s", r->dialect->note))
        return -1;
    if (warn_unknown(r, r->text, "", &n))
        return -1;
    if (n <= WARNINGS_MAX)
        return 0;
    return mf_model_warn(r->model, r->err,
        "%" PRId64 " more keys are not known", n - WARNINGS_MAX);
}

static const char *text_at(const json_t *object, const char *path)
{
    return json_string_value(mf_path_get(object, path));
}

/* Append TEXT and a blank before it; what does not fit is cut. */
static void note_add(char *note, size_t size, const char *text)
{
    size_t n = strlen(note);

    if (text && n + 1 < size)
        snprintf(note + n, size - n, "%s%s", n ? " " : "", text);
}

/* How the weights are published: their type, and the ways to pack them that
 * transformers, compressed-tensors and DeepSeek write.
 */
void mf_weights_note(struct reading *r)
{
    static const char *const packed[] = {"quantization_config.quant_method",
        "quantization_config.quant_algo", "quantization_config.fmt",
        "quantization_config.format", "quantization.quant_algo",
        "compression_config.format", "expert_dtype"};
    const json_t *place[] = {r->text, r->root};
    const char *type = NULL;
    struct mf_model *m = r->model;

    for (size_t i = 0; i < 2 && !type; i++) {
        type = text_at(place[i], "torch_dtype");
        if (!type)
            type = text_at(place[i], "dtype");
    }
    if (type && !strncmp(type, "torch.", 6))
        type += 6;
    if (type)
        snprintf(m->dtype, sizeof m->dtype, "%.15s", type);
    for (size_t i = 0; i < 2 && !*m->quantization; i++)
        for (size_t k = 0; k < sizeof packed / sizeof *packed; k++)
            note_add(m->quantization, sizeof m->quantization,
                text_at(place[i], packed[k]));
    mf_model_clean_text(m->dtype);
    mf_model_clean_text(m->quantization);
}

bool mf_other_parts(const struct reading *r)
{
    return object_has_parts(r->root) || object_has_parts(r->text);
}
