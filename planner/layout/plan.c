/* SPDX-License-Identifier: BSD-3-Clause
 * Plans: names of settings, notes, and what frees them.
 */
#include "planner/layout/plan.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const precision_names[] = {"bf16", "fp8", "mxfp8", NULL};
static const char *const recompute_names[] = {
    "none", "selective", "full", "auto", NULL};
static const char *const module_names[] = {"core_attn", "moe_act", "layernorm",
    "mla_up_proj", "mlp", "moe", "shared_experts", NULL};
static const char *const graphs_names[] = {
    "none", "partial", "full", "auto", NULL};
static const char *const dispatcher_names[] = {
    "alltoall", "allgather", "dedup", "deepep", "hybridep", "auto", NULL};
static const char *const shard_names[] = {"none", "optimizer", "full", NULL};
static const char *const scope_names[] = {"step", "moe", NULL};

static int name_find(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

const char *mf_precision_name(enum mf_precision precision)
{
    return precision_names[precision];
}

const char *mf_recompute_name(enum mf_recompute recompute)
{
    return recompute == MF_RECOMPUTE_MODULES ? "modules"
                                             : recompute_names[recompute];
}

void mf_recompute_format(
    const struct mf_settings *settings, char text[MF_RECOMPUTE_TEXT])
{
    size_t used = 0;

    if (settings->recompute != MF_RECOMPUTE_MODULES) {
        snprintf(text, MF_RECOMPUTE_TEXT, "%s",
            recompute_names[settings->recompute]);
        return;
    }
    text[0] = 0;
    for (int i = 0; i < MF_MODULES; i++)
        if (settings->modules & 1u << i)
            used += (size_t)snprintf(text + used, MF_RECOMPUTE_TEXT - used,
                "%s%s", used ? "," : "", module_names[i]);
}

/* LENGTH bytes of NAME. */
static int module_find(const char *name, size_t length)
{
    for (int i = 0; i < MF_MODULES; i++)
        if (strlen(module_names[i]) == length &&
            !strncmp(module_names[i], name, length))
            return i;
    return -1;
}

int mf_recompute_parse(const char *text, struct mf_settings *settings)
{
    int word = name_find(recompute_names, text);
    unsigned modules = 0;

    if (word >= 0) {
        settings->recompute = (enum mf_recompute)word;
        settings->modules = 0;
        return 0;
    }
    while (true) {
        size_t length = strcspn(text, ",");
        int module = module_find(text, length);

        if (module < 0)
            return -1;
        modules |= 1u << module;
        if (!text[length])
            break;
        text += length + 1;
    }
    settings->recompute = MF_RECOMPUTE_MODULES;
    settings->modules = modules;
    return 0;
}

const char *mf_graphs_name(enum mf_graphs graphs)
{
    return graphs_names[graphs];
}

int mf_graphs_find(const char *name)
{
    return name_find(graphs_names, name);
}

const char *mf_dispatcher_name(enum mf_dispatcher dispatcher)
{
    return dispatcher_names[dispatcher];
}

const char *mf_shard_name(enum mf_shard shard)
{
    return shard_names[shard];
}

const char *mf_scope_name(enum mf_scope scope)
{
    return scope_names[scope];
}

int mf_precision_find(const char *name)
{
    return name_find(precision_names, name);
}

int mf_dispatcher_find(const char *name)
{
    return name_find(dispatcher_names, name);
}

int mf_shard_find(const char *name)
{
    return name_find(shard_names, name);
}

int mf_scope_find(const char *name)
{
    return name_find(scope_names, name);
}

void mf_settings_init(struct mf_settings *settings)
{
    *settings = (struct mf_settings){
        .seq = 4096,
        .micro_batch = 1,
        .vpp = 1,
        .precision = MF_BF16,
        .recompute = MF_RECOMPUTE_NONE,
        .dispatcher = MF_ALLTOALL,
        .imbalance = 0.15,
        .capacity_factor = NAN,
        .shard = MF_SHARD_OPTIMIZER,
        .graphs = MF_GRAPHS_AUTO,
    };
}

int mf_cost_note(
    struct mf_cost *cost, struct mf_error *err, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    if (vsnprintf(text, sizeof text, fmt, args) < 0)
        text[0] = 0;
    va_end(args);
    if (cost->notes == MF_NOTES_MAX)
        return 0;
    cost->note[cost->notes] = strdup(text);
    if (!cost->note[cost->notes])
        return mf_error_set(err, MF_FAILED, "no memory for a note");
    cost->notes++;
    return 0;
}

void mf_cost_free(struct mf_cost *cost)
{
    for (int i = 0; i < cost->notes; i++)
        free(cost->note[i]);
    free(cost->stage);
    cost->notes = 0;
    cost->stage = NULL;
}

void mf_plan_free(struct mf_plan *plan)
{
    for (size_t i = 0; i < plan->entries; i++)
        mf_cost_free(&plan->entry[i].cost);
    free(plan->entry);
    mf_model_free(&plan->model);
    mf_cluster_free(&plan->cluster);
    *plan = (struct mf_plan){0};
}
