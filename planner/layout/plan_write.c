/* SPDX-License-Identifier: BSD-3-Clause
 * Plans as JSON, and as a file that is whole or not there.
 */
#include "planner/layout/plan_field.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COST(object, key, member)                                              \
    {                                                                          \
        object, key, offsetof(struct mf_cost, member)                          \
    }

const struct mf_cost_field mf_cost_fields[] = {
    COST(NULL, "step_s", step_s),
    COST(NULL, "step_s_low", step_s_low),
    COST(NULL, "step_s_high", step_s_high),
    COST(NULL, "tokens_per_s_per_gpu", tokens_per_s_per_gpu),
    COST(NULL, "tflops_per_gpu", tflops_per_gpu),
    COST(NULL, "mfu", mfu),
    COST("memory", "params", memory.params),
    COST("memory", "grads", memory.grads),
    COST("memory", "optimizer", memory.optimizer),
    COST("memory", "activations", memory.activations),
    COST("memory", "buffers", memory.buffers),
    COST("memory", "total", memory.total),
    COST(NULL, "static_bytes", static_bytes),
    COST(NULL, "peak_bytes", peak_bytes),
    COST("hidden", "total", hidden_s),
    COST("layer", "forward_s", layer_forward_s),
    COST("layer", "backward_s", layer_backward_s),
};

const int mf_cost_field_count =
    sizeof mf_cost_fields / sizeof mf_cost_fields[0];

static json_t *figure_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static double field_value(const struct mf_cost *cost, int i)
{
    double value;

    memcpy(&value, (const char *)cost + mf_cost_fields[i].offset, sizeof value);
    return value;
}

/* The object of that key in PARENT, made when it is not there. */
static json_t *object_of(json_t *parent, const char *key)
{
    json_t *object;

    if (!key)
        return parent;
    object = json_object_get(parent, key);
    if (!object) {
        object = json_object();
        json_object_set_new(parent, key, object);
    }
    return object;
}

static void entry_add_settings(json_t *json, const struct mf_settings *s)
{
    char recompute[MF_RECOMPUTE_TEXT];

    mf_recompute_format(s, recompute);
    json_object_set_new(json, "seq", json_integer(s->seq));
    json_object_set_new(json, "global_batch",
        s->global_batch ? json_integer(s->global_batch) : json_null());
    json_object_set_new(json, "micro_batch", json_integer(s->micro_batch));
    json_object_set_new(json, "vpp", json_integer(s->vpp));
    json_object_set_new(json, "first_layers",
        s->first_layers ? json_integer(s->first_layers) : json_null());
    json_object_set_new(json, "last_layers",
        s->last_layers ? json_integer(s->last_layers) : json_null());
    json_object_set_new(
        json, "precision", json_string(mf_precision_name(s->precision)));
    json_object_set_new(json, "recompute", json_string(recompute));
    json_object_set_new(
        json, "dispatcher", json_string(mf_dispatcher_name(s->dispatcher)));
    json_object_set_new(json, "imbalance", figure_json(s->imbalance));
    json_object_set_new(
        json, "capacity_factor", figure_json(s->capacity_factor));
    json_object_set_new(json, "shard", json_string(mf_shard_name(s->shard)));
    json_object_set_new(json, "ep_overlap", json_boolean(s->ep_overlap));
    json_object_set_new(
        json, "cuda_graphs", json_string(mf_graphs_name(s->graphs)));
}

static json_t *phases_json(const struct mf_cost *cost)
{
    json_t *phases = json_object();

    for (int i = 0; i < MF_PHASES; i++) {
        double fwd = cost->phase_s[i][MF_FORWARD];
        double bwd = cost->phase_s[i][MF_BACKWARD];

        if (isfinite(fwd) || isfinite(bwd))
            json_object_set_new(phases, mf_phase_name((enum mf_phase)i),
                json_pack("{s:o, s:o}", "fwd_s", figure_json(fwd), "bwd_s",
                    figure_json(bwd)));
    }
    return phases;
}

static json_t *stages_json(const struct mf_plan_entry *entry)
{
    json_t *list = json_array();

    for (int64_t i = 0; entry->cost.stage && i < entry->layout.pp; i++)
        json_array_append_new(list,
            json_pack("{s:I, s:o, s:o}", "stage", (json_int_t)i, "static_bytes",
                figure_json(entry->cost.stage[i].static_bytes), "peak_bytes",
                figure_json(entry->cost.stage[i].peak_bytes)));
    return list;
}

static void entry_add_cost(json_t *json, const struct mf_plan_entry *entry)
{
    const struct mf_cost *cost = &entry->cost;
    json_t *parts = json_object(), *notes = json_array();

    for (int i = 0; i < mf_cost_field_count; i++)
        json_object_set_new(object_of(json, mf_cost_fields[i].object),
            mf_cost_fields[i].key, figure_json(field_value(cost, i)));
    json_object_set_new(json, "fits", json_boolean(cost->fits));
    json_object_set_new(
        json, "limit", cost->limit ? json_string(cost->limit) : json_null());
    json_object_set_new(json, "memory_by_stage", stages_json(entry));
    for (int i = 0; i < cost->parts; i++)
        json_object_set_new(
            parts, cost->part[i].name, figure_json(cost->part[i].seconds));
    json_object_set_new(json, "breakdown", parts);
    json_object_set_new(object_of(json, "layer"), "phases", phases_json(cost));
    for (int i = 0; i < cost->notes; i++)
        json_array_append_new(notes, json_string(cost->note[i]));
    json_object_set_new(json, "notes", notes);
}

json_t *mf_plan_entry_to_json(const struct mf_plan_entry *entry)
{
    char text[MF_LAYOUT_TEXT], order[MF_LAYOUT_TEXT];
    json_t *json;

    mf_layout_format(&entry->layout, text, sizeof text);
    mf_order_format(&entry->layout.order, order, sizeof order);
    json = json_pack("{s:s, s:I, s:s, s:b}", "layout", text, "world",
        (json_int_t)mf_layout_world(&entry->layout), "order", order, "coupled",
        entry->layout.coupled);
    if (!json)
        return NULL;
    entry_add_settings(json, &entry->settings);
    entry_add_cost(json, entry);
    return json;
}

json_t *mf_plan_to_json(const struct mf_plan *plan)
{
    json_t *entries = json_array(), *rejected = json_object();

    for (size_t i = 0; i < plan->entries; i++)
        json_array_append_new(entries, mf_plan_entry_to_json(&plan->entry[i]));
    for (int i = 0; i < plan->reasons; i++)
        json_object_set_new(rejected, plan->rejected[i].text,
            json_integer(plan->rejected[i].count));
    return json_pack("{s:s, s:i, s:I, s:s, s:s, s:o, s:{s:I, s:I, s:I}, s:o, "
                     "s:o, s:o, s:o}",
        "kind", "moefold-plan", "schema_version", MF_PLAN_SCHEMA, "world",
        (json_int_t)plan->world, "scope", mf_scope_name(plan->scope),
        "coefficients", plan->coefficients, "plans", entries, "searched",
        "enumerated", (json_int_t)plan->enumerated, "bounded",
        (json_int_t)plan->bounded, "priced", (json_int_t)plan->priced,
        "rejected", rejected, "elapsed_s", figure_json(plan->elapsed_s),
        "model", mf_model_to_json(&plan->model), "cluster",
        mf_cluster_to_json(&plan->cluster));
}

/* Only a regular file, or none, is replaced: not /dev/stdout by a rename. */
static int plan_check_target(const char *file, struct mf_error *err)
{
    struct stat st;

    if (!stat(file, &st) && !S_ISREG(st.st_mode))
        return mf_error_set(err, MF_INVALID,
            "%s is not a regular file; give a file name", file);
    return 0;
}

static int plan_write_new(
    json_t *json, int fd, const char *file, struct mf_error *err)
{
    FILE *out = fdopen(fd, "w");
    mode_t mask = umask(0);
    int bad;

    umask(mask);
    if (!out) {
        close(fd);
        return mf_error_set(err, MF_FAILED, "%s: %s", file, strerror(errno));
    }
    bad = fchmod(fd, 0666 & ~mask) || json_dumpf(json, out, JSON_INDENT(1)) ||
          putc('\n', out) == EOF || fflush(out) || fsync(fd);
    bad |= fclose(out);
    return bad ? mf_error_set(err, MF_FAILED, "%s: cannot write: %s", file,
                     strerror(errno))
               : 0;
}

int mf_plan_write(
    const struct mf_plan *plan, const char *file, struct mf_error *err)
{
    static const char ending[] = ".XXXXXX";
    size_t length = strlen(file);
    char *temporary = malloc(length + sizeof ending);
    json_t *json = NULL;
    int fd, rc = -1;

    if (!temporary || !(json = mf_plan_to_json(plan))) {
        mf_error_set(err, MF_FAILED, "no memory to write %s", file);
        goto out;
    }
    if (plan_check_target(file, err))
        goto out;
    memcpy(temporary, file, length);
    memcpy(temporary + length, ending, sizeof ending);
    fd = mkstemp(temporary);
    if (fd < 0) {
        mf_error_set(
            err, MF_FAILED, "%s: cannot write: %s", file, strerror(errno));
        goto out;
    }
    rc = plan_write_new(json, fd, file, err);
    if (!rc && rename(temporary, file))
        rc = mf_error_set(
            err, MF_FAILED, "%s: cannot write: %s", file, strerror(errno));
    if (rc)
        unlink(temporary);
out:
    json_decref(json);
    free(temporary);
    return rc;
}
