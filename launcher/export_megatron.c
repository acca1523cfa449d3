/* SPDX-License-Identifier: BSD-3-Clause
 * A layout as flags of Megatron-LM.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "launcher/export.h"

static int flag_number(struct mfl_list *flags, const char *name, int64_t value,
    struct mf_error *err)
{
    return mfl_list_add(flags, name, err) < 0 ||
                   mfl_list_addf(flags, err, "%" PRId64, value) < 0
               ? -1
               : 0;
}

static int flag_text(struct mfl_list *flags, const char *name,
    const char *value, struct mf_error *err)
{
    return mfl_list_add(flags, name, err) < 0 ||
                   mfl_list_add(flags, value, err) < 0
               ? -1
               : 0;
}

static int no(struct mf_error *err, const char *what)
{
    return mf_error_set(err, MF_NO, "Megatron-LM has no flag for %s", what);
}

/* Of the two orders that it knows one is a flag. */
static int order_flags(const struct mf_layout *layout, struct mfl_list *flags,
    struct mf_error *err)
{
    char order[MF_LAYOUT_TEXT], text[MF_LAYOUT_TEXT + 32];

    if (layout->coupled && layout->cp > 1)
        return no(err, "a coupled layout with context parallelism since "
                       "folding came (core 0.9)");
    mf_order_format(&layout->order, order, sizeof order);
    if (!strcmp(order, "tp-cp-ep-dp-pp"))
        return 0;
    if (!strcmp(order, "tp-cp-ep-pp-dp"))
        return mfl_list_add(flags, "--use-tp-pp-dp-mapping", err);
    snprintf(text, sizeof text, "the order %s", order);
    return no(err, text);
}

/* Every size, also those of 1: a default elsewhere would change the layout
 * without a word (expert-tensor-parallel-size is tensor-model-parallel-size
 * when it is not given).
 */
static int size_flags(const struct mf_layout *layout, struct mfl_list *flags,
    struct mf_error *err)
{
    const struct {
        const char *name;
        int64_t value;
    } size[] = {
        {"--tensor-model-parallel-size", layout->tp},
        {"--context-parallel-size", layout->cp},
        {"--pipeline-model-parallel-size", layout->pp},
        {"--expert-model-parallel-size", layout->ep},
        {"--expert-tensor-parallel-size", layout->etp},
    };

    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        if (flag_number(flags, size[i].name, size[i].value, err))
            return -1;
    /* MoE layers with tensor parallelism are refused without. */
    if (layout->tp > 1 && mfl_list_add(flags, "--sequence-parallel", err) < 0)
        return -1;
    return order_flags(layout, flags, err);
}

/* "Et*8|t*8|t*7|t*7L": layers that do not divide over the stages. */
static int uneven_flags(const struct mf_model *model, int64_t pp,
    struct mfl_list *flags, struct mf_error *err)
{
    char text[4096];
    size_t at = 0;

    for (int64_t stage = 0; stage < pp; stage++) {
        const int64_t layers =
            model->layers / pp + (stage < model->layers % pp);
        const int n = snprintf(text + at, sizeof text - at,
            "%s%st*%" PRId64 "%s", stage ? "|" : "", stage ? "" : "E", layers,
            stage == pp - 1 ? "L" : "");

        if (n < 0 || (size_t)n >= sizeof text - at)
            return no(err, "so many stages of uneven length");
        at += (size_t)n;
    }
    return flag_text(flags, "--pipeline-model-parallel-layout", text, err);
}

static int stage_flags(const struct mf_model *model,
    const struct mf_layout *layout, const struct mf_settings *s,
    struct mfl_list *flags, struct mf_error *err)
{
    const int64_t vpp = s->vpp > 1 ? s->vpp : 1, chunks = layout->pp * vpp;

    if (layout->pp == 1)
        return 0;
    if (s->first_layers > 0 &&
        flag_number(
            flags, "--decoder-first-pipeline-num-layers", s->first_layers, err))
        return -1;
    if (s->last_layers > 0 &&
        flag_number(
            flags, "--decoder-last-pipeline-num-layers", s->last_layers, err))
        return -1;
    if (s->first_layers <= 0 && s->last_layers <= 0 &&
        model->layers % chunks != 0)
        return vpp > 1 ? no(err, "chunks of uneven length")
                       : uneven_flags(model, layout->pp, flags, err);
    if (vpp == 1)
        return 0;
    return flag_number(
        flags, "--num-virtual-stages-per-pipeline-rank", vpp, err);
}

static int batch_flags(
    const struct mf_settings *s, struct mfl_list *flags, struct mf_error *err)
{
    if (flag_number(flags, "--seq-length", s->seq, err) ||
        flag_number(flags, "--micro-batch-size", s->micro_batch, err))
        return -1;
    return s->global_batch > 0
               ? flag_number(flags, "--global-batch-size", s->global_batch, err)
               : 0;
}

static int precision_flags(
    const struct mf_settings *s, struct mfl_list *flags, struct mf_error *err)
{
    if (mfl_list_add(flags, "--bf16", err) < 0)
        return -1;
    if (s->precision == MF_BF16)
        return 0;
    if (flag_text(flags, "--fp8-format",
            s->precision == MF_MXFP8 ? "e4m3" : "hybrid", err))
        return -1;
    return s->precision == MF_MXFP8
               ? flag_text(flags, "--fp8-recipe", "mxfp8", err)
               : 0;
}

static int recompute_flags(
    const struct mf_settings *s, struct mfl_list *flags, struct mf_error *err)
{
    char names[MF_RECOMPUTE_TEXT], *rest, *name;

    switch (s->recompute) {
    case MF_RECOMPUTE_AUTO:
    case MF_RECOMPUTE_NONE:
        return 0;
    case MF_RECOMPUTE_FULL:
        return flag_text(flags, "--recompute-granularity", "full", err) ||
                       flag_text(flags, "--recompute-method", "uniform", err) ||
                       flag_number(flags, "--recompute-num-layers", 1, err)
                   ? -1
                   : 0;
    case MF_RECOMPUTE_SELECTIVE:
        return flag_text(flags, "--recompute-granularity", "selective", err);
    case MF_RECOMPUTE_MODULES:
        break;
    }
    if (flag_text(flags, "--recompute-granularity", "selective", err) ||
        mfl_list_add(flags, "--recompute-modules", err) < 0)
        return -1;
    mf_recompute_format(s, names);
    for (name = strtok_r(names, ",", &rest); name;
         name = strtok_r(NULL, ",", &rest))
        if (mfl_list_add(flags, name, err) < 0)
            return -1;
    return 0;
}

static int dispatcher_flags(
    const struct mf_settings *s, struct mfl_list *flags, struct mf_error *err)
{
    static const char type[] = "--moe-token-dispatcher-type";

    switch (s->dispatcher) {
    case MF_ALLTOALL:
        return flag_text(flags, type, "alltoall", err);
    case MF_ALLGATHER:
        return flag_text(flags, type, "allgather", err);
    case MF_DEEPEP:
        return flag_text(flags, type, "flex", err) ||
                       mfl_list_add(flags, "--moe-enable-deepep", err) < 0
                   ? -1
                   : 0;
    case MF_HYBRIDEP:
        return flag_text(flags, type, "flex", err) ||
                       flag_text(flags, "--moe-flex-dispatcher-backend",
                           "hybridep", err)
                   ? -1
                   : 0;
    case MF_DEDUP:
    case MF_DISPATCHER_AUTO:
        break;
    }
    return no(err, "the dedup dispatcher (deepep sends one copy a rank too)");
}

static int moe_flags(
    const struct mf_settings *s, struct mfl_list *flags, struct mf_error *err)
{
    if (dispatcher_flags(s, flags, err))
        return -1;
    if (!isnan(s->capacity_factor) &&
        (mfl_list_add(flags, "--moe-expert-capacity-factor", err) < 0 ||
            mfl_list_addf(flags, err, "%.10g", s->capacity_factor) < 0))
        return -1;
    return s->ep_overlap
               ? mfl_list_add(flags, "--overlap-moe-expert-parallel-comm", err)
               : 0;
}

static int shard_flags(
    const struct mf_settings *s, struct mfl_list *flags, struct mf_error *err)
{
    switch (s->shard) {
    case MF_SHARD_NONE:
        break;
    case MF_SHARD_OPTIMIZER:
        return mfl_list_add(flags, "--use-distributed-optimizer", err);
    case MF_SHARD_FULL:
        return mfl_list_add(flags, "--use-megatron-fsdp", err) < 0
                   ? -1
                   : flag_text(flags, "--data-parallel-sharding-strategy",
                         "optim_grads_params", err);
    }
    return 0;
}

int mfl_export_megatron(const struct mf_plan *plan,
    const struct mf_plan_entry *entry, struct mfl_list *flags,
    struct mf_error *err)
{
    const struct mf_settings *s = &entry->settings;

    if (size_flags(&entry->layout, flags, err) ||
        stage_flags(&plan->model, &entry->layout, s, flags, err) ||
        batch_flags(s, flags, err) || precision_flags(s, flags, err) ||
        recompute_flags(s, flags, err) || shard_flags(s, flags, err))
        return -1;
    return plan->model.experts > 0 ? moe_flags(s, flags, err) : 0;
}
