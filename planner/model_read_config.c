/* SPDX-License-Identifier: BSD-3-Clause
 * Reads the content of a Hugging Face config.json: which object is the text
 * model, its dialect, its values.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "planner/model_read_dialect.h"

#define WARNINGS_MAX 20
#define NESTS_MAX 4

struct reading {
    json_t *root;  /* the whole file */
    json_t *text;  /* the object of the text model in it, or all of it */
    char path[96]; /* where that is, with a dot at its end, or empty */
    const struct mf_dialect *dialect;
    struct mf_model *model;
    struct mf_error *err;
    struct mf_value value[MF_SLOTS];
};

static bool listed(const char *const *list, const char *text)
{
    for (; list && *list; list++)
        if (!strcmp(*list, text))
            return true;
    return false;
}

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

static const char *type_name(const json_t *item)
{
    switch (json_typeof(item)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "a whole number";
    case JSON_REAL:
        return "a number with a fraction";
    case JSON_NULL:
        return "null";
    default:
        return "true or false";
    }
}

static int type_refuse(const struct reading *r, const char *key,
    const json_t *item, const char *wanted)
{
    return mf_error_set(r->err, MF_INVALID, "%s%s is %s, not %s", r->path, key,
        type_name(item), wanted);
}

/* What PATH, names with dots between them, leads to in OBJECT, or NULL. */
static const json_t *path_get(const json_t *object, const char *path)
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

static bool table_has_key(const struct mf_key *row, const char *key)
{
    for (; row->key; row++)
        if (!strcmp(row->key, key))
            return true;
    return false;
}

static bool dialect_has_key(const struct mf_dialect *dialect, const char *key)
{
    for (const struct mf_key *const *table = dialect->keys; table && *table;
         table++)
        if (table_has_key(*table, key))
            return true;
    return false;
}

/* What follows the family's name in the name of a class. */
static const char *const suffix_table[] = {"ForCausalLM",
    "ForConditionalGeneration", "LMHeadModel", "ForSequenceClassification",
    "ForTokenClassification", "ForQuestionAnswering", "ForMultimodalLM",
    "ForImageTextToText", "ForCausalLMNextN", "TextModel", "Model", "LM", NULL};

/* Whether NAME is one of BASES, with or without what it is built for. */
static bool architecture_listed(const char *const *bases, const char *name)
{
    for (; bases && *bases; bases++) {
        size_t n = strlen(*bases);

        if (!strncmp(*bases, name, n) &&
            (!name[n] || listed(suffix_table, name + n)))
            return true;
    }
    return false;
}

static const struct mf_dialect *dialect_by_type(const char *type)
{
    for (const struct mf_dialect *const *table = mf_dialects; type && *table;
         table++)
        for (const struct mf_dialect *d = *table; d->types; d++)
            if (listed(d->types, type))
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

            while (mark && *mark && path_get(object, *mark))
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
static json_t *text_find(struct reading *r)
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
        if (type && !listed(r->dialect->types, type) && dialect_by_type(type))
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

static int dialect_find(struct reading *r)
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

/* A word; one that is not known and cannot change the count is left out. */
static int choice_take(const struct reading *r, const struct mf_key *row,
    const json_t *item, int64_t *whole, bool *known)
{
    const char *text = json_string_value(item);

    if (!text)
        return type_refuse(r, row->key, item, "a string");
    for (const struct mf_choice *c = row->choices; c->text; c++)
        if (!strcmp(c->text, text)) {
            *whole = c->value;
            return 0;
        }
    if (row->slot != MF_SLOT_SCORE && row->slot != MF_SLOT_ROUTER_BIAS)
        return mf_error_set(r->err, MF_INVALID,
            "%s%s is \"%.64s\", which is not known", r->path, row->key, text);
    *known = false;
    return mf_model_warn(r->model, r->err,
        "%s%s is \"%.64s\", which is not known; the router is assumed to be "
        "that of its type",
        r->path, row->key, text);
}

static int whole_take(const struct reading *r, const struct mf_key *row,
    const json_t *item, int64_t *whole)
{
    char name[160];

    if (!json_is_integer(item))
        return type_refuse(r, row->key, item, "a whole number");
    *whole = json_integer_value(item);
    if (row->slot >= MF_FIELDS)
        return 0;
    snprintf(name, sizeof name, "%s%s", r->path, row->key);
    return mf_field_check((enum mf_field)row->slot, *whole, name, r->err);
}

/* A list whose entries are all the same stands for one of them. */
static int wholes_take(const struct reading *r, const struct mf_key *row,
    const json_t *item, int64_t *whole)
{
    size_t n = json_array_size(item);
    int64_t next;

    if (!json_is_array(item))
        return whole_take(r, row, item, whole);
    if (!n)
        return type_refuse(r, row->key, item, "a list with numbers");
    for (size_t i = 0; i < n; i++) {
        if (whole_take(r, row, json_array_get(item, i), &next))
            return -1;
        if (i > 0 && next != *whole)
            return mf_error_set(r->err, MF_INVALID,
                "%s%s differs from layer to layer (%" PRId64 " and %" PRId64
                "), which is not read",
                r->path, row->key, *whole, next);
        *whole = next;
    }
    return 0;
}

static int real_take(const struct reading *r, const struct mf_key *row,
    const json_t *item, double *real)
{
    if (!json_is_number(item))
        return type_refuse(r, row->key, item, "a number");
    *real = json_number_value(item);
    if (isfinite(*real) && *real > 0)
        return 0;
    return mf_error_set(r->err, MF_INVALID,
        "%s%s is %g; it must be a positive number", r->path, row->key, *real);
}

static int flag_take(const struct reading *r, const struct mf_key *row,
    const json_t *item, int64_t *whole)
{
    if (json_is_boolean(item))
        *whole = json_is_true(item);
    else if (json_is_integer(item) && json_integer_value(item) >= 0 &&
             json_integer_value(item) <= 1)
        *whole = json_integer_value(item);
    else
        return type_refuse(r, row->key, item, "true or false");
    return 0;
}

static int text_take(const struct reading *r, const struct mf_key *row,
    const json_t *item, struct mf_value *v)
{
    if (!json_is_string(item))
        return type_refuse(r, row->key, item, "a string");
    v->text = json_string_value(item);
    return 0;
}

static int list_take(const struct reading *r, const struct mf_key *row,
    const json_t *item, struct mf_value *v)
{
    if (!json_is_array(item))
        return type_refuse(r, row->key, item, "a list");
    v->list = item;
    return 0;
}

/* The value of one key into V, checked. */
static int value_take(const struct reading *r, const struct mf_key *row,
    const json_t *item, struct mf_value *v)
{
    enum mf_slot_kind kind = mf_slot_kind(row->slot);

    v->given = true;
    v->key = row->key;
    if (row->choices)
        return choice_take(r, row, item, &v->whole, &v->given);
    if (kind == MF_KIND_WHOLE_OR_LIST)
        kind = json_is_array(item) ? MF_KIND_LIST : MF_KIND_WHOLE;
    if (kind == MF_KIND_TEXT_OR_LIST)
        kind = json_is_array(item) ? MF_KIND_LIST : MF_KIND_TEXT;
    if (kind == MF_KIND_WHOLE_OR_TEXT)
        kind = json_is_string(item) ? MF_KIND_TEXT : MF_KIND_WHOLE;
    switch (kind) {
    case MF_KIND_FLAG:
        return flag_take(r, row, item, &v->whole);
    case MF_KIND_REAL:
        return real_take(r, row, item, &v->real);
    case MF_KIND_TEXT:
        return text_take(r, row, item, v);
    case MF_KIND_LIST:
        return list_take(r, row, item, v);
    case MF_KIND_WHOLES:
        return wholes_take(r, row, item, &v->whole);
    case MF_KIND_ANY:
        return 0;
    default:
        return whole_take(r, row, item, &v->whole);
    }
}

/* null is "without" for a part that may be absent, else "not given". */
static bool null_is_given(int slot)
{
    return slot < MF_FIELDS && mf_field_least((enum mf_field)slot) == 0;
}

static int value_conflict(const struct reading *r, const struct mf_value *v,
    const struct mf_value *next)
{
    if (next->whole == v->whole &&
        !(next->real < v->real || next->real > v->real))
        return 0;
    if (next->whole == v->whole)
        return mf_error_set(r->err, MF_INVALID, "%s%s is %g, but %s is %g",
            r->path, v->key, v->real, next->key, next->real);
    return mf_error_set(r->err, MF_INVALID,
        "%s%s is %" PRId64 ", but %s is %" PRId64, r->path, v->key, v->whole,
        next->key, next->whole);
}

static int item_read(
    struct reading *r, const struct mf_key *row, const json_t *item)
{
    struct mf_value *v = &r->value[row->slot], next = {.key = row->key};

    if (!v->key)
        v->key = row->key;
    if (!item || row->slot == MF_SLOT_IGNORED)
        return 0;
    if (json_is_null(item)) {
        if (v->given && !v->is_null)
            return 0;
        v->is_null = true;
        v->given = v->given || null_is_given(row->slot);
        return 0;
    }
    if (value_take(r, row, item, &next))
        return -1;
    if (!next.given)
        return 0;
    if (v->given && !v->is_null && value_conflict(r, v, &next))
        return -1;
    *v = next;
    return 0;
}

/* A key of the text model; a few are given for the whole by its owner. */
static int key_read(struct reading *r, const struct mf_key *row)
{
    const json_t *item = path_get(r->text, row->key);

    if (!item && row->slot == MF_SLOT_TIED)
        item = path_get(r->root, row->key);
    return item_read(r, row, item);
}

static int keys_read(struct reading *r)
{
    for (const struct mf_key *const *table = r->dialect->keys; table && *table;
         table++)
        for (const struct mf_key *row = *table; row->key; row++)
            if (key_read(r, row))
                return -1;
    for (const struct mf_key *row = mf_keys_common; row->key; row++)
        if (!dialect_has_key(r->dialect, row->key) && key_read(r, row))
            return -1;
    return 0;
}

/* A list of blocks says how many layers there are. */
static void layers_take(struct reading *r)
{
    struct mf_value *v = &r->value[MF_FIELD_LAYERS];
    const struct mf_value *list = &r->value[MF_SLOT_BLOCKS];

    if (v->given || !list->list)
        return;
    v->given = true;
    v->key = list->key;
    v->whole = (int64_t)json_array_size(list->list);
}

static int default_take(struct reading *r, const struct mf_default *row)
{
    struct mf_value *v = &r->value[row->slot];

    if (row->same_as >= 0) {
        if (__builtin_mul_overflow(
                r->value[row->same_as].whole, row->value, &v->whole))
            v->whole = -1;
        return 0;
    }
    v->whole = row->value;
    v->real = (double)row->value;
    if (!row->told || !v->key ||
        (row->slot == MF_SLOT_FIRST_DENSE && r->value[MF_SLOT_MOE_STEP].list))
        return 0;
    return mf_model_warn(r->model, r->err,
        "%s%s is missing; %" PRId64 " is assumed, as the model's class does",
        r->path, v->key, row->value);
}

static int defaults_take(struct reading *r)
{
    layers_take(r);
    for (int slot = 0; slot < MF_SLOTS; slot++) {
        const struct mf_default *row =
            mf_dialect_default(r->dialect, slot, r->value[slot].is_null);
        const struct mf_value *v = &r->value[slot];

        if (!row || (v->given && !(v->is_null && row->same_as >= 0)))
            continue;
        if (default_take(r, row))
            return -1;
    }
    return 0;
}

/* Whether a file of this dialect must say how many experts there are. */
static bool experts_needed(const struct reading *r)
{
    for (const struct mf_dialect *d = mf_dialects_moe; d->types; d++)
        if (d == r->dialect)
            return !r->value[MF_SLOT_DENSE_TOO].whole;
    return false;
}

/* Fields without which there is no model; a message names the key. */
static int needs_check(const struct reading *r)
{
    static const struct {
        int slot;
        const char *usual;
    } need[] = {{MF_FIELD_LAYERS, "num_hidden_layers"},
        {MF_FIELD_HIDDEN, "hidden_size"}, {MF_FIELD_VOCAB, "vocab_size"},
        {MF_FIELD_HEADS, "num_attention_heads"}};

    for (size_t i = 0; i < sizeof need / sizeof *need; i++) {
        const struct mf_value *v = &r->value[need[i].slot];

        if (!v->given && v->whole < 1)
            return mf_error_set(r->err, MF_INVALID, "%s%s is missing", r->path,
                v->key ? v->key : need[i].usual);
    }
    if (experts_needed(r) && !r->value[MF_FIELD_EXPERTS].given)
        return mf_error_set(r->err, MF_INVALID,
            "%s%s is missing: how many experts has a layer?", r->path,
            r->value[MF_FIELD_EXPERTS].key);
    return 0;
}

/* Objects of parts that are not the text model. */
static const char *const other_parts[] = {"vision_config", "audio_config",
    "visual", "vision_tower_config", "projector_config", "vision_model_config",
    "aligner_config", "speech_config", "talker_config", "code2wav_config",
    "resampler_config", "vision", "vit_config", "img_processor",
    "audio_processor", "embd_layer", "mm_projector_config", "gen_vision_config",
    "gen_aligner_config", "gen_head_config", "video_config", "sam_config",
    "vision_encoder", NULL};

static bool model_has_other_parts(const json_t *object)
{
    for (const char *const *part = other_parts; *part; part++)
        if (json_is_object(json_object_get(object, *part)))
            return true;
    return false;
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

    if (dialect_has_key(r->dialect, key) || table_has_key(mf_keys_common, key))
        return false;
    if (listed(mf_harmless, name) || listed(other_parts, key) ||
        listed(mf_nests, key) || ending_is_harmless(name))
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

static int warn_all(struct reading *r)
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
    return json_string_value(path_get(object, path));
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
static void note_weights(struct reading *r)
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

int mf_model_config_as(json_t *object, const struct mf_dialect *dialect,
    struct mf_model *model, struct mf_error *err)
{
    struct reading r = {.root = object,
        .text = object,
        .dialect = dialect,
        .model = model,
        .err = err};

    if (keys_read(&r) || defaults_take(&r) || needs_check(&r) || warn_all(&r))
        return -1;
    return mf_model_shape(model, r.value, err);
}

int mf_model_config(json_t *root, struct mf_model *model, struct mf_error *err)
{
    struct reading r = {.root = root, .model = model, .err = err};

    if (!json_is_object(root))
        return mf_error_set(err, MF_INVALID,
            "it holds %s, not an object with the keys of a model",
            type_name(root));
    r.text = text_find(&r);
    if (dialect_find(&r) || keys_read(&r) || defaults_take(&r) ||
        needs_check(&r) || warn_all(&r))
        return -1;
    if (model_has_other_parts(r.root) || model_has_other_parts(r.text))
        model->params.vision = -1;
    note_weights(&r);
    return mf_model_shape(model, r.value, err);
}
