/* SPDX-License-Identifier: BSD-3-Clause
 * Reads a Hugging Face config.json: the file, its dialect, its values.
 */
#include "planner/model_read.h"

#include "planner/model_read_dialect.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Real files hold a few kilobytes; a parsed one takes many times its size. */
#define SIZE_MAX_BYTES ((size_t)16 << 20)
#define WARNINGS_MAX 20

struct reading {
    json_t *root;
    const struct mf_dialect *dialect;
    struct mf_model *model;
    struct mf_error *err;
    struct mf_value value[MF_SLOTS];
};

static bool listed(const char *const *list, const char *text)
{
    for (; *list; list++)
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
    return mf_error_set(
        r->err, MF_INVALID, "%s is %s, not %s", key, type_name(item), wanted);
}

static bool dialect_has_key(const struct mf_dialect *dialect, const char *key)
{
    for (const struct mf_key *const *table = dialect->keys; *table; table++)
        for (const struct mf_key *row = *table; row->key; row++)
            if (!strcmp(row->key, key))
                return true;
    return false;
}

static const struct mf_dialect *dialect_by_type(const char *type)
{
    for (const struct mf_dialect *d = mf_dialects; type && d->types; d++)
        if (listed(d->types, type))
            return d;
    return NULL;
}

static const struct mf_dialect *dialect_by_architecture(const char *name)
{
    for (const struct mf_dialect *d = mf_dialects; name && d->types; d++)
        if (listed(d->architectures, name))
            return d;
    return NULL;
}

/* Keys for parts that are not counted; a dialect that reads one may have it. */
static int refuse_parts(const struct reading *r)
{
    for (const struct mf_refusal *row = mf_refusals; row->key; row++) {
        const json_t *item = json_object_get(r->root, row->key);
        if (!item || value_is_void(item))
            continue;
        if (!r->dialect || !dialect_has_key(r->dialect, row->key))
            return mf_error_set(
                r->err, MF_INVALID, "%s: %s", row->key, row->reason);
    }
    return 0;
}

static int refuse_unknown(
    const struct reading *r, const char *key, const char *text)
{
    char known[512] = "";
    size_t n = 0;

    for (const struct mf_dialect *d = mf_dialects; d->types; d++)
        for (const char *const *type = d->types; *type; type++) {
            int len = snprintf(
                known + n, sizeof known - n, "%s%s", n ? ", " : "", *type);
            if (len < 0 || (size_t)len >= sizeof known - n)
                break;
            n += (size_t)len;
        }
    return mf_error_set(r->err, MF_INVALID,
        "%s is \"%.64s\", which is not known; known are the types %s", key,
        text, known);
}

/* What the weights are (architectures) goes before what the class is called
 * (model_type): copies of files often keep the type of their ancestor.
 */
static int dialect_find(struct reading *r)
{
    const json_t *list = json_object_get(r->root, "architectures");
    const char *type =
        json_string_value(json_object_get(r->root, "model_type"));
    const char *name = json_string_value(
        json_is_string(list) ? list : json_array_get(list, 0));

    r->dialect = dialect_by_architecture(name);
    if (!name)
        r->dialect = dialect_by_type(type);
    if (refuse_parts(r))
        return -1;
    if (!name && !type)
        return mf_error_set(r->err, MF_INVALID,
            "model_type is missing or not a string: not a model's config.json");
    if (!r->dialect)
        return type && !dialect_by_type(type)
                   ? refuse_unknown(r, "model_type", type)
                   : refuse_unknown(r, "architectures", name);
    if (name && type && !listed(r->dialect->types, type))
        return mf_model_warn(r->model, r->err,
            "model_type is %.64s, but architectures is %.64s: read as %s", type,
            name, r->dialect->types[0]);
    return 0;
}

static int choice_take(const struct reading *r, const struct mf_key *row,
    const json_t *item, int64_t *whole)
{
    const char *text = json_string_value(item);

    if (!text)
        return type_refuse(r, row->key, item, "a string");
    for (const struct mf_choice *c = row->choices; c->text; c++)
        if (!strcmp(c->text, text)) {
            *whole = c->value;
            return 0;
        }
    return mf_error_set(r->err, MF_INVALID,
        "%s is \"%.64s\", which is not known", row->key, text);
}

static int whole_take(const struct reading *r, const struct mf_key *row,
    const json_t *item, int64_t *whole)
{
    if (!json_is_integer(item))
        return type_refuse(r, row->key, item, "a whole number");
    *whole = json_integer_value(item);
    if (row->slot >= MF_FIELDS)
        return 0;
    return mf_field_check((enum mf_field)row->slot, *whole, row->key, r->err);
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
        "%s is %g; it must be a positive number", row->key, *real);
}

/* The value of one key into V, checked. */
static int value_take(const struct reading *r, const struct mf_key *row,
    const json_t *item, struct mf_value *v)
{
    enum mf_slot_kind kind = mf_slot_kind(row->slot);

    v->given = true;
    v->key = row->key;
    if (row->choices)
        return choice_take(r, row, item, &v->whole);
    if (kind == MF_KIND_WHOLE_OR_LIST)
        kind = json_is_array(item) ? MF_KIND_LIST : MF_KIND_WHOLE;
    switch (kind) {
    case MF_KIND_FLAG:
        if (!json_is_boolean(item))
            return type_refuse(r, row->key, item, "true or false");
        v->whole = json_is_true(item);
        return 0;
    case MF_KIND_REAL:
        return real_take(r, row, item, &v->real);
    case MF_KIND_TEXT:
        if (!json_is_string(item))
            return type_refuse(r, row->key, item, "a string");
        v->text = json_string_value(item);
        return 0;
    case MF_KIND_LIST:
        if (!json_is_array(item))
            return type_refuse(r, row->key, item, "a list");
        v->list = item;
        return 0;
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

static int key_read(struct reading *r, const struct mf_key *row)
{
    const json_t *item = json_object_get(r->root, row->key);
    struct mf_value *v = &r->value[row->slot], next = {.key = row->key};

    if (!v->key)
        v->key = row->key;
    if (!item || row->slot == MF_SLOT_IGNORED)
        return 0;
    if (json_is_null(item)) {
        v->is_null = true;
        v->given = v->given || null_is_given(row->slot);
        return 0;
    }
    if (value_take(r, row, item, &next))
        return -1;
    if (v->given && next.whole != v->whole)
        return mf_error_set(r->err, MF_INVALID,
            "%s is %" PRId64 ", but %s is %" PRId64, v->key, v->whole, row->key,
            next.whole);
    *v = next;
    return 0;
}

static int keys_read(struct reading *r)
{
    const struct mf_key *const *table;

    for (table = r->dialect->keys; *table; table++)
        for (const struct mf_key *row = *table; row->key; row++)
            if (key_read(r, row))
                return -1;
    for (table = r->dialect->keys; *table; table++)
        for (const struct mf_key *row = *table; row->key; row++)
            if (row->required && !r->value[row->slot].given)
                return mf_error_set(
                    r->err, MF_INVALID, "%s is missing", row->key);
    return 0;
}

static int default_take(struct reading *r, const struct mf_default *row)
{
    struct mf_value *v = &r->value[row->slot];

    if (row->same_as >= 0) {
        v->whole = r->value[row->same_as].whole;
        return 0;
    }
    v->whole = row->value;
    v->real = (double)row->value;
    if (!row->told || !v->key)
        return 0;
    return mf_model_warn(r->model, r->err,
        "%s is missing; %" PRId64 " is assumed, as transformers does", v->key,
        row->value);
}

static int defaults_take(struct reading *r)
{
    for (int slot = 0; slot < MF_SLOTS; slot++) {
        const struct mf_default *row =
            mf_dialect_default(r->dialect, slot, r->value[slot].is_null);
        if (row && !r->value[slot].given && default_take(r, row))
            return -1;
    }
    return 0;
}

/* A word or nothing at all cannot add parameters; a figure might. */
static bool key_is_suspect(
    const struct reading *r, const char *key, const json_t *item)
{
    if (dialect_has_key(r->dialect, key) || listed(mf_harmless, key))
        return false;
    return !json_is_string(item) && !value_is_void(item);
}

static int warn_unknown(struct reading *r)
{
    const char *key;
    json_t *item;
    int64_t n = 0;

    json_object_foreach(r->root, key, item)
    {
        if (!key_is_suspect(r, key, item) || ++n > WARNINGS_MAX)
            continue;
        if (mf_model_warn(r->model, r->err,
                "%.64s is not known; the counts leave it out of account", key))
            return -1;
    }
    if (n <= WARNINGS_MAX)
        return 0;
    return mf_model_warn(r->model, r->err,
        "%" PRId64 " more keys are not known", n - WARNINGS_MAX);
}

static int root_read(json_t *root, struct mf_model *model, struct mf_error *err)
{
    struct reading r = {.root = root, .model = model, .err = err};

    if (!json_is_object(root))
        return mf_error_set(err, MF_INVALID,
            "it holds %s, not an object with the keys of a model",
            type_name(root));
    if (dialect_find(&r) || keys_read(&r) || defaults_take(&r) ||
        warn_unknown(&r))
        return -1;
    return mf_model_shape(model, r.value, err);
}

/* All of FILE in *TEXT, which the caller frees. */
static int file_load(
    const char *file, char **text, size_t *size, struct mf_error *err)
{
    size_t room = 0, n = 0;
    FILE *in = fopen(file, "r");
    int status = -1;

    if (!in)
        return mf_error_set(err, MF_INVALID, "%s", strerror(errno));
    do {
        char *more;
        room = room ? room * 2 : 65536;
        more = realloc(*text, room);
        if (!more) {
            mf_error_set(err, MF_FAILED, "out of memory");
            goto out;
        }
        *text = more;
        n += fread(*text + n, 1, room - n, in);
    } while (n == room && n <= SIZE_MAX_BYTES);
    if (ferror(in)) {
        mf_error_set(err, MF_INVALID, "%s%s", strerror(errno),
            errno == EISDIR ? "; name the config.json in it" : "");
        goto out;
    }
    if (n > SIZE_MAX_BYTES) {
        mf_error_set(err, MF_INVALID,
            "more than %zu MiB; a model's config.json is far smaller",
            SIZE_MAX_BYTES >> 20);
        goto out;
    }
    *size = n;
    status = 0;
out:
    if (fclose(in) && !status)
        status = mf_error_set(err, MF_INVALID, "%s", strerror(errno));
    return status;
}

static json_t *file_parse(const char *file, struct mf_error *err)
{
    json_error_t where;
    char *text = NULL;
    size_t size = 0;
    json_t *root = NULL;

    if (!file_load(file, &text, &size, err)) {
        root = json_loadb(text, size, JSON_DECODE_ANY, &where);
        if (!root)
            mf_error_set(err, MF_INVALID, "line %d, column %d: not JSON: %s",
                where.line, where.column, where.text);
    }
    free(text);
    return root;
}

/* The folder that FILE lies in, without following FILE itself: caches keep
 * files as links into a store of nameless blobs.
 */
static char *folder_of(const char *file)
{
    const char *slash = strrchr(file, '/');
    char *folder, *path;

    folder = slash ? strndup(file, (size_t)(slash - file) + 1) : strdup(".");
    if (!folder)
        return NULL;
    path = realpath(folder, NULL);
    free(folder);
    return path;
}

/* The download cache of Hugging Face keeps a revision of ORGANISATION/MODEL in
 * models--ORGANISATION--MODEL/snapshots/REVISION: the revision is no name.
 */
static const char *folder_name(char *folder)
{
    char *name = strrchr(folder, '/'), *above, *mark;

    if (!name)
        return folder;
    *name = 0;
    above = strrchr(folder, '/');
    if (above && above > folder && !strcmp(above, "/snapshots")) {
        *above = 0;
        above = strrchr(folder, '/');
        mark = above ? strstr(above + 1, "--") : NULL;
        while (mark && strstr(mark + 2, "--"))
            mark = strstr(mark + 2, "--");
        if (mark)
            return mark + 2;
    }
    return name + 1;
}

static void name_set(struct mf_model *model, const char *file)
{
    const char *base = strrchr(file, '/');
    char *folder = NULL;
    size_t n;

    base = base ? base + 1 : file;
    if (!strcmp(base, "config.json")) {
        folder = folder_of(file);
        base = folder ? folder_name(folder) : "model";
    }
    n = strlen(base);
    if (!folder && n > 5 && !strcmp(base + n - 5, ".json"))
        n -= 5;
    if (!n)
        snprintf(model->name, sizeof model->name, "model");
    else
        snprintf(model->name, sizeof model->name, "%.*s",
            n < INT_MAX ? (int)n : INT_MAX, base);
    mf_model_clean_text(model->name);
    free(folder);
}

int mf_model_read(
    const char *file, struct mf_model *model, struct mf_error *err)
{
    json_t *root;
    int status = -1;

    memset(model, 0, sizeof *model);
    root = file_parse(file, err);
    if (root) {
        name_set(model, file);
        status = root_read(root, model, err);
    }
    json_decref(root);
    if (status) {
        mf_error_prefix(err, "%s", file);
        mf_model_free(model);
        memset(model, 0, sizeof *model);
    }
    return status;
}
