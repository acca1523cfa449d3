/* SPDX-License-Identifier: BSD-3-Clause
 * Which object of a config.json is the text model, and its dialect.
 */
#include <stdio.h>
#include <string.h>

#include "planner/model_read_config.h"

#define NESTS_MAX 4

bool mf_listed(const char *const *list, const char *text)
{
    for (; list && *list; list++)
        if (!strcmp(*list, text))
            return true;
    return false;
}

const json_t *mf_path_get(const json_t *object, const char *path)
{
    const char *dot;
    char name[64];

    while ((dot = strchr(path, '.')) && json_is_object(object)) {
        size_t n = (size_t)(dot - path);

        if (n >= sizeof name)
            return NULL;
        memcpy(name, path, n);
        name[n] = 0;
        object = json_object_get(object, name);
        path = dot + 1;
    }
    return json_object_get(object, path);
}

bool mf_keys_have(const struct mf_key *row, const char *key)
{
    for (; row->key; row++)
        if (!strcmp(row->key, key))
            return true;
    return false;
}

bool mf_dialect_has(const struct mf_dialect *dialect, const char *key)
{
    for (const struct mf_key *const *table = dialect->keys; table && *table;
         table++)
        if (mf_keys_have(*table, key))
            return true;
    return false;
}

/* What follows the family's name in the name of a class. */
static const char *const suffix_table[] = {"ForCausalLM",
    "ForConditionalGeneration", "LMHeadModel", "ForSequenceClassification",
    "ForTokenClassification", "ForQuestionAnswering", "ForMultimodalLM",
    "ForCausalMM", "ForImageTextToText", "ForCausalLMNextN", "TextModel",
    "Model", "LM", NULL};

/* Whether NAME is one of BASES, with or without what it is built for. */
static bool architecture_listed(const char *const *bases, const char *name)
{
    for (; bases && *bases; bases++) {
        size_t n = strlen(*bases);

        if (!strncmp(*bases, name, n) &&
            (!name[n] || mf_listed(suffix_table, name + n)))
            return true;
    }
    return false;
}

static const struct mf_dialect *dialect_by_type(const char *type)
{
    for (const struct mf_dialect *const *table = mf_dialects; type && *table;
         table++)
        for (const struct mf_dialect *d = *table; d->types; d++)
            if (mf_listed(d->types, type))
                return d;
    return NULL;
}

static const struct mf_dialect *dialect_by_architecture(const char *name)
{
    for (const struct mf_dialect *const *table = mf_dialects; name && *table;
         table++)
        for (const struct mf_dialect *d = *table; d->types; d++)
            if (architecture_listed(d->architectures, name))
                return d;
    return NULL;
}

/* A file that gives neither: by the keys that only its dialect has. */
static const struct mf_dialect *dialect_by_marks(const json_t *object)
{
    for (const struct mf_dialect *const *table = mf_dialects; *table; table++)
        for (const struct mf_dialect *d = *table; d->types; d++) {
            const char *const *mark = d->marks;

            while (mark && *mark && mf_path_get(object, *mark))
                mark++;
            if (mark && !*mark)
                return d;
        }
    return NULL;
}

static const char *name_of_class(const json_t *object)
{
    const json_t *list = json_object_get(object, "architectures");

    return json_string_value(
        json_is_string(list) ? list : json_array_get(list, 0));
}

static const char *name_of_type(const json_t *object)
{
    return json_string_value(json_object_get(object, "model_type"));
}

/* Whether OBJECT has the sizes of a decoder itself. */
static bool object_has_sizes(const json_t *object)
{
    bool layers = false, hidden = false;

    for (const struct mf_key *row = mf_keys_common; row->key; row++) {
        if (!json_object_get(object, row->key))
            continue;
        layers = layers || row->slot == MF_FIELD_LAYERS;
        hidden = hidden || row->slot == MF_FIELD_HIDDEN;
    }
    layers = layers || json_object_get(object, "layers_block_type");
    return layers && hidden;
}

/* The text model: the file itself, or the object in it that has sizes. */
static json_t *text_object(struct reading *r)
{
    json_t *object = r->root;
    size_t n = 0;

    for (int depth = 0; depth < NESTS_MAX; depth++) {
        json_t *inner = NULL;
        const char *const *nest = mf_nests;

        if (object_has_sizes(object))
            return object;
        for (; *nest; nest++) {
            inner = json_object_get(object, *nest);
            if (json_is_object(inner))
                break;
        }
        if (!*nest)
            break;
        n += (size_t)snprintf(r->path + n, sizeof r->path - n, "%s.", *nest);
        if (n >= sizeof r->path)
            break;
        object = inner;
    }
    if (object_has_sizes(object))
        return object;
    r->path[0] = 0;
    return r->root;
}

/* Other files that lie beside a config.json, by a key that only they have. */
static const struct {
    const char *key, *what;
} no_model_table[] = {
    {"weight_map", "an index of weights"},
    {"added_tokens_decoder", "the settings of a tokenizer"},
    {"tokenizer_file", "the settings of a tokenizer"},
    {"chat_template", "the settings of a tokenizer"},
    {"image_processor_type", "the settings of an image processor"},
    {"feature_extractor_type", "the settings of a feature extractor"},
    {"processor_class", "the settings of a processor"},
    {"_class_name", "a part of a diffusion pipeline"},
    {"quantization", "a note on quantisation"},
    {"quant_method", "a note on quantisation"},
    {"base_model_name_or_path", "an adapter"},
    {"train_micro_batch_size_per_gpu", "the settings of DeepSpeed"},
    {"do_sample", "the settings of text generation"},
    {"schema_version", "a file of moefold"},
};

static int refuse_no_model(const struct reading *r)
{
    for (size_t i = 0; i < sizeof no_model_table / sizeof *no_model_table; i++)
        if (json_object_get(r->root, no_model_table[i].key))
            return mf_error_set(r->err, MF_INVALID,
                "%s: this is %s, not a model's config.json",
                no_model_table[i].key, no_model_table[i].what);
    return mf_error_set(r->err, MF_INVALID,
        "model_type is missing or not a string, and so are the sizes of a "
        "model (num_hidden_layers, hidden_size): not a model's config.json");
}

/* Classes differ in what they are built for: no output table, no total. */
static int class_check(const struct reading *r, const char *name)
{
    const char *end = name ? strstr(name, "Classification") : NULL;

    if (!end)
        return 0;
    return mf_model_warn(r->model, r->err,
        "architectures is %.64s, which has a small head instead of an output "
        "table; the output table of the language model is counted",
        name);
}

/* What the weights are (architectures) goes before what the class is called
 * (model_type): copies of files often keep the type of their ancestor.
 */
static int dialect_match(struct reading *r, const json_t *object)
{
    const char *type = name_of_type(object), *name = name_of_class(object);

    r->dialect = dialect_by_architecture(name);
    if (r->dialect) {
        if (class_check(r, name))
            return -1;
        if (type && !mf_listed(r->dialect->types, type) &&
            dialect_by_type(type))
            return mf_model_warn(r->model, r->err,
                "model_type is %.64s, but architectures is %.64s: read as %s",
                type, name, r->dialect->types[0]);
        return 0;
    }
    r->dialect = dialect_by_type(type);
    if (r->dialect && name && !r->dialect->refusal)
        return mf_model_warn(r->model, r->err,
            "architectures is %.64s, which is not known; read as model_type "
            "%.64s",
            name, type);
    return 0;
}

int mf_dialect_find(struct reading *r)
{
    const char *type, *name;

    if (dialect_match(r, r->text))
        return -1;
    if (!r->dialect && r->text != r->root && dialect_match(r, r->root))
        return -1;
    if (!r->dialect)
        r->dialect = dialect_by_marks(r->text);
    type = name_of_type(r->text);
    name = name_of_class(r->text);
    if (r->dialect && r->dialect->refusal)
        return mf_error_set(r->err, MF_INVALID, "%s%s is %.64s: %s", r->path,
            name ? "architectures" : "model_type",
            name ? name : (type ? type : "not given"), r->dialect->refusal);
    if (json_is_true(json_object_get(r->text, "is_encoder_decoder")))
        return mf_error_set(r->err, MF_INVALID,
            "%sis_encoder_decoder is true: a model with an encoder is not read",
            r->path);
    if (r->dialect)
        return 0;
    if (!object_has_sizes(r->text))
        return refuse_no_model(r);
    if (json_object_get(r->text, "type_vocab_size"))
        return mf_error_set(r->err, MF_INVALID,
            "%stype_vocab_size: an encoder like BERT is not read", r->path);
    r->dialect = &mf_dialect_other;
    if (!name && !type)
        return mf_model_warn(r->model, r->err,
            "neither model_type nor architectures is given; the model is "
            "assumed to be a decoder like Llama or Mixtral");
    return mf_model_warn(r->model, r->err,
        "%s%s \"%.64s\" is not known; it is assumed to be a decoder like "
        "Llama or Mixtral: attention with an output projection, gated "
        "feed-forward parts, two RMS norms a layer",
        r->path, type ? "model_type" : "architectures", type ? type : name);
}

void mf_text_find(struct reading *r)
{
    r->text = text_object(r);
}
