/* SPDX-License-Identifier: BSD-3-Clause
 * Plans from JSON, every figure checked: the file may be anybody's.
 */
#include "planner/layout/plan_field.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_BYTES_MAX ((size_t)256 << 20)
#define PLAN_ENTRIES_MAX 100000

/* Parts and limits that the cost model names. */
static const char *const part_names[] = {"attention", "context_parallel",
    "tensor_parallel", "norm", "dense_mlp", "route", "permute", "dispatch",
    "gather", "experts", "reduce", "combine", "unpermute", "shared",
    "embedding", "logits", "recompute", "launch", "stage_send", "bubble",
    "grad_reduce_expert", "grad_reduce_dense", "optimizer", "memory",
    "memory_passes", "grad_reduce", NULL};

const char *mf_part_name(const char *text)
{
    for (int i = 0; part_names[i]; i++)
        if (!strcmp(part_names[i], text))
            return part_names[i];
    return NULL;
}

static int refuse(struct mf_error *err, const char *key, const char *want)
{
    return mf_error_set(err, MF_INVALID, "%s is not %s", key, want);
}

static int read_integer(const json_t *json, const char *key, int64_t least,
    int64_t most, int64_t *value, struct mf_error *err)
{
    const json_t *item = json_object_get(json, key);

    if (!json_is_integer(item) || json_integer_value(item) < least ||
        json_integer_value(item) > most)
        return mf_error_set(err, MF_INVALID,
            "%s is not a whole number from %" PRId64 " to %" PRId64, key, least,
            most);
    *value = json_integer_value(item);
    return 0;
}

/* A finite number, or null: not known. */
static int read_figure(
    const json_t *json, const char *key, double *value, struct mf_error *err)
{
    const json_t *item = json_object_get(json, key);

    *value = NAN;
    if (!item || json_is_null(item))
        return 0;
    if (!json_is_number(item) || !isfinite(json_number_value(item)))
        return refuse(err, key, "a number or null");
    *value = json_number_value(item);
    return 0;
}

static int read_name(const json_t *json, const char *key,
    int (*find)(const char *), int *value, struct mf_error *err)
{
    const char *text = json_string_value(json_object_get(json, key));

    *value = text ? find(text) : -1;
    return *value < 0 ? refuse(err, key, "a word known here") : 0;
}

static int read_names(
    const json_t *json, struct mf_settings *s, struct mf_error *err)
{
    const char *again = json_string_value(json_object_get(json, "recompute"));
    const json_t *overlap = json_object_get(json, "ep_overlap");
    int precision, dispatcher, shard, graphs = MF_GRAPHS_AUTO;

    if (!again || mf_recompute_parse(again, s))
        return refuse(err, "recompute", "a word or modules known here");
    if (overlap && !json_is_boolean(overlap))
        return refuse(err, "ep_overlap", "true or false");
    s->ep_overlap = json_is_true(overlap);
    if (json_object_get(json, "cuda_graphs") &&
        read_name(json, "cuda_graphs", mf_graphs_find, &graphs, err))
        return -1;
    if (read_name(json, "precision", mf_precision_find, &precision, err) ||
        read_name(json, "dispatcher", mf_dispatcher_find, &dispatcher, err) ||
        read_name(json, "shard", mf_shard_find, &shard, err))
        return -1;
    if (s->recompute == MF_RECOMPUTE_AUTO || dispatcher == MF_DISPATCHER_AUTO)
        return mf_error_set(err, MF_INVALID,
            "recompute and dispatcher are settled in a plan, not auto");
    s->precision = (enum mf_precision)precision;
    s->dispatcher = (enum mf_dispatcher)dispatcher;
    s->shard = (enum mf_shard)shard;
    s->graphs = (enum mf_graphs)graphs;
    return 0;
}

static int read_settings(
    const json_t *json, struct mf_settings *s, struct mf_error *err)
{
    const int64_t most = (int64_t)1 << 31;

    if (read_integer(json, "seq", 1, most, &s->seq, err) ||
        read_integer(json, "micro_batch", 1, most, &s->micro_batch, err) ||
        read_integer(json, "vpp", 1, most, &s->vpp, err) ||
        read_figure(json, "imbalance", &s->imbalance, err) ||
        read_figure(json, "capacity_factor", &s->capacity_factor, err))
        return -1;
    if (!(s->imbalance >= 0 && s->imbalance < 1))
        return refuse(err, "imbalance", "from 0 to below 1");
    if (s->capacity_factor <= 0)
        return refuse(err, "capacity_factor", "over 0");
    s->first_layers = s->last_layers = 0;
    if ((json_is_integer(json_object_get(json, "first_layers")) &&
            read_integer(
                json, "first_layers", 1, most, &s->first_layers, err)) ||
        (json_is_integer(json_object_get(json, "last_layers")) &&
            read_integer(json, "last_layers", 1, most, &s->last_layers, err)))
        return -1;
    s->global_batch = 0;
    if (!json_is_null(json_object_get(json, "global_batch")) &&
        read_integer(json, "global_batch", 1, most, &s->global_batch, err))
        return -1;
    return read_names(json, s, err);
}

static int read_layout(const json_t *json, int64_t world,
    struct mf_layout *layout, struct mf_error *err)
{
    const char *text = json_string_value(json_object_get(json, "layout"));
    const char *order = json_string_value(json_object_get(json, "order"));
    unsigned given;

    if (!text || !order)
        return refuse(err, text ? "order" : "layout", "a text");
    if (mf_layout_parse(text, layout, err) ||
        mf_order_parse(order, &layout->order, &given, err))
        return -1;
    layout->coupled = json_is_true(json_object_get(json, "coupled"));
    return mf_layout_resolve(layout, world, given, err);
}

static int read_cost_fields(
    const json_t *json, struct mf_cost *cost, struct mf_error *err)
{
    for (int i = 0; i < mf_cost_field_count; i++) {
        const struct mf_cost_field *field = &mf_cost_fields[i];
        const json_t *object =
            field->object ? json_object_get(json, field->object) : json;
        double value;

        if (read_figure(object, field->key, &value, err))
            return -1;
        memcpy((char *)cost + field->offset, &value, sizeof value);
    }
    cost->fits = json_is_true(json_object_get(json, "fits"));
    return 0;
}

static int read_phases(
    const json_t *layer, struct mf_cost *cost, struct mf_error *err)
{
    const json_t *phases = json_object_get(layer, "phases");

    for (int i = 0; i < MF_PHASES; i++) {
        const json_t *phase =
            json_object_get(phases, mf_phase_name((enum mf_phase)i));

        if (read_figure(phase, "fwd_s", &cost->phase_s[i][MF_FORWARD], err) ||
            read_figure(phase, "bwd_s", &cost->phase_s[i][MF_BACKWARD], err))
            return mf_error_prefix(
                err, "phases.%s", mf_phase_name((enum mf_phase)i));
    }
    return 0;
}

static int read_stages(const json_t *json, int64_t stages, struct mf_cost *cost,
    struct mf_error *err)
{
    const json_t *list = json_object_get(json, "memory_by_stage");

    if (json_array_size(list) == 0)
        return 0;
    if ((int64_t)json_array_size(list) != stages)
        return refuse(err, "memory_by_stage", "one entry a stage");
    cost->stage = calloc((size_t)stages, sizeof *cost->stage);
    if (!cost->stage)
        return mf_error_set(err, MF_FAILED, "no memory");
    for (int64_t i = 0; i < stages; i++) {
        const json_t *stage = json_array_get(list, (size_t)i);

        if (read_figure(
                stage, "static_bytes", &cost->stage[i].static_bytes, err) ||
            read_figure(stage, "peak_bytes", &cost->stage[i].peak_bytes, err))
            return -1;
    }
    return 0;
}

/* Parts and limits that a later version may have added are passed over. */
static void read_parts(json_t *json, struct mf_cost *cost)
{
    json_t *parts = json_object_get(json, "breakdown"), *value;
    const char *limit = json_string_value(json_object_get(json, "limit"));
    const char *key;

    cost->limit = limit ? mf_part_name(limit) : NULL;
    json_object_foreach(parts, key, value)
    {
        const char *name = mf_part_name(key);

        if (name && cost->parts < MF_PARTS_MAX && json_is_number(value))
            cost->part[cost->parts++] =
                (struct mf_part){name, json_number_value(value)};
    }
}

static int read_notes(json_t *json, struct mf_cost *cost, struct mf_error *err)
{
    json_t *notes = json_object_get(json, "notes"), *note;
    size_t i;

    json_array_foreach(
        notes, i, note) if (json_is_string(note) &&
                            mf_cost_note(cost, err, "%s",
                                json_string_value(note))) return -1;
    return 0;
}

static int read_entry(json_t *json, int64_t world, struct mf_plan_entry *entry,
    struct mf_error *err)
{
    struct mf_cost *cost = &entry->cost;

    if (read_layout(json, world, &entry->layout, err) ||
        read_settings(json, &entry->settings, err) ||
        read_cost_fields(json, cost, err) ||
        read_phases(json_object_get(json, "layer"), cost, err) ||
        read_stages(json, entry->layout.pp, cost, err))
        return -1;
    read_parts(json, cost);
    return read_notes(json, cost, err);
}

static int read_entries(
    const json_t *json, struct mf_plan *plan, struct mf_error *err)
{
    json_t *list = json_object_get(json, "plans"), *item;
    size_t i;

    if (!json_is_array(list) || json_array_size(list) > PLAN_ENTRIES_MAX)
        return refuse(err, "plans", "a list of layouts");
    plan->entry = calloc(json_array_size(list) + 1, sizeof *plan->entry);
    if (!plan->entry)
        return mf_error_set(err, MF_FAILED, "no memory");
    json_array_foreach(list, i, item)
    {
        plan->entries = i + 1;
        if (read_entry(item, plan->world, &plan->entry[i], err))
            return mf_error_prefix(err, "plans[%zu]", i);
    }
    return 0;
}

static int read_search(
    const json_t *json, struct mf_plan *plan, struct mf_error *err)
{
    const json_t *searched = json_object_get(json, "searched");
    json_t *rejected = json_object_get(json, "rejected"), *value;
    const int64_t most = INT64_MAX;
    const char *key;

    if (read_integer(searched, "enumerated", 0, most, &plan->enumerated, err) ||
        read_integer(searched, "bounded", 0, most, &plan->bounded, err) ||
        read_integer(searched, "priced", 0, most, &plan->priced, err) ||
        read_figure(json, "elapsed_s", &plan->elapsed_s, err))
        return -1;
    json_object_foreach(rejected, key, value)
    {
        struct mf_reason *reason = &plan->rejected[plan->reasons];

        if (plan->reasons == MF_REASONS_MAX || !json_is_integer(value))
            return refuse(err, "rejected", "a short list of counts");
        snprintf(reason->text, sizeof reason->text, "%s", key);
        reason->count = json_integer_value(value);
        plan->reasons++;
    }
    return 0;
}

static int plan_read_json(
    const json_t *json, struct mf_plan *plan, struct mf_error *err)
{
    const char *kind = json_string_value(json_object_get(json, "kind"));
    const char *set = json_string_value(json_object_get(json, "coefficients"));
    int64_t schema;
    int scope;

    if (!kind || strcmp(kind, "moefold-plan"))
        return mf_error_set(err, MF_INVALID,
            "this is no plan; make one with moefold plan --output FILE");
    if (read_integer(json, "schema_version", 1, INT32_MAX, &schema, err))
        return -1;
    if (schema > MF_PLAN_SCHEMA)
        return mf_error_set(err, MF_INVALID,
            "the plan has schema version %" PRId64 ", this moefold reads up "
            "to %d; use a newer moefold",
            schema, MF_PLAN_SCHEMA);
    if (read_integer(json, "world", 1, MF_WORLD_MAX, &plan->world, err) ||
        read_name(json, "scope", mf_scope_find, &scope, err))
        return -1;
    plan->scope = (enum mf_scope)scope;
    snprintf(
        plan->coefficients, sizeof plan->coefficients, "%s", set ? set : "");
    if (mf_model_from_json(json_object_get(json, "model"), &plan->model, err) ||
        mf_cluster_from_json(
            json_object_get(json, "cluster"), &plan->cluster, err))
        return -1;
    return read_search(json, plan, err) || read_entries(json, plan, err) ? -1
                                                                         : 0;
}

int mf_plan_from_json(
    const json_t *json, struct mf_plan *plan, struct mf_error *err)
{
    *plan = (struct mf_plan){0};
    if (!plan_read_json(json, plan, err))
        return 0;
    mf_plan_free(plan);
    return -1;
}

/* jansson's reader callback over a FILE, which stops at PLAN_BYTES_MAX. */
struct bounded {
    FILE *in;
    size_t left;
    int error; /* errno of the read that failed */
};

static size_t bounded_read(void *buffer, size_t size, void *arg)
{
    struct bounded *b = arg;
    size_t n = fread(buffer, 1, size < b->left ? size : b->left, b->in);

    if (ferror(b->in)) {
        b->error = errno;
        return (size_t)-1;
    }
    b->left -= n;
    return n;
}

int mf_plan_read(const char *file, struct mf_plan *plan, struct mf_error *err)
{
    struct bounded from = {.in = fopen(file, "r"), .left = PLAN_BYTES_MAX};
    json_error_t where;
    json_t *json;
    int rc;

    *plan = (struct mf_plan){0};
    if (!from.in)
        return mf_error_set(err, MF_INVALID, "%s: %s", file, strerror(errno));
    json =
        json_load_callback(bounded_read, &from, JSON_REJECT_DUPLICATES, &where);
    fclose(from.in);
    if (from.error) {
        json_decref(json);
        return mf_error_set(
            err, MF_INVALID, "%s: %s", file, strerror(from.error));
    }
    if (!json)
        return mf_error_set(err, MF_INVALID,
            "%s: line %d, column %d: not JSON: %s", file, where.line,
            where.column, where.text);
    rc = mf_plan_from_json(json, plan, err);
    json_decref(json);
    return rc ? mf_error_prefix(err, "%s", file) : 0;
}
