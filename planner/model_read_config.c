/* SPDX-License-Identifier: BSD-3-Clause
 * Takes the values of a config.json by the rows of its dialect.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "planner/model_read_config.h"

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
    if (kind == MF_KIND_FLAG_OR_TEXT)
        kind = json_is_string(item) ? MF_KIND_TEXT : MF_KIND_FLAG;
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
    case MF_KIND_OBJECT:
        v->list = item;
        return json_is_object(item)
                   ? 0
                   : type_refuse(r, row->key, item, "an object");
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
    const json_t *item = mf_path_get(r->text, row->key);

    if (!item && row->slot == MF_SLOT_TIED)
        item = mf_path_get(r->root, row->key);
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
        if (!mf_dialect_has(r->dialect, row->key) && key_read(r, row))
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
    static const struct mf_dialect *const table[] = {
        mf_dialects_moe, mf_dialects_hybrid};

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (const struct mf_dialect *d = table[i]; d->types; d++)
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

int mf_model_config_as(json_t *object, const struct mf_dialect *dialect,
    struct mf_model *model, struct mf_error *err)
{
    struct reading r = {.root = object,
        .text = object,
        .dialect = dialect,
        .model = model,
        .err = err};

    if (keys_read(&r) || defaults_take(&r) || needs_check(&r) ||
        mf_unknown_tell(&r))
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
    mf_text_find(&r);
    if (mf_dialect_find(&r) || keys_read(&r) || defaults_take(&r) ||
        needs_check(&r) || mf_unknown_tell(&r))
        return -1;
    if (mf_other_parts(&r))
        model->params.vision = -1;
    mf_weights_note(&r);
    return mf_model_shape(model, r.value, err);
}
