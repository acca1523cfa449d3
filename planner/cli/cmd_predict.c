/* SPDX-License-Identifier: BSD-3-Clause
 * moefold predict: the price of one layout.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "planner/cli/commands.h"
#include "planner/cli/fitted.h"
#include "planner/cli/inputs.h"
#include "planner/cost.h"
#include "planner/kernel.h"

#define GIB 1073741824.0

/* All that a price is made from. */
struct predict {
    struct mf_model model;
    struct mf_cluster cluster;
    struct mf_coefficients set;
    struct mf_plan_entry entry;
    enum mf_scope scope;
};

static void print_memory(const struct predict *p)
{
    const struct mf_cost *cost = &p->entry.cost;

    printf("\nmemory of the hottest rank, GiB\n"
           "  params %.1f, grads %.1f, optimizer %.1f, activations %.1f, "
           "buffers %.1f\n  static %.1f, peak %.1f",
        cost->memory.params / GIB, cost->memory.grads / GIB,
        cost->memory.optimizer / GIB, cost->memory.activations / GIB,
        cost->memory.buffers / GIB, cost->static_bytes / GIB,
        cost->peak_bytes / GIB);
    if (isfinite(p->cluster.gpu.memory_bytes))
        printf(" of %.1f", p->cluster.gpu.memory_bytes / GIB);
    puts(cost->fits ? ": fits" : ": does not fit");
}

static void print_parts(const struct mf_cost *cost)
{
    puts("\nwhere the time goes");
    for (int i = 0; i < cost->parts; i++)
        printf("  %-20s %12.6f s %5.1f %%\n", cost->part[i].name,
            cost->part[i].seconds, 100 * cost->part[i].seconds / cost->step_s);
    if (isfinite(cost->layer_forward_s))
        printf("one MoE layer and micro batch: forward %.3f ms, "
               "backward %.3f ms\n",
            1e3 * cost->layer_forward_s, 1e3 * cost->layer_backward_s);
}

static void predict_print(const struct predict *p)
{
    const struct mf_cost *cost = &p->entry.cost;
    const struct mf_settings *s = &p->entry.settings;
    char text[MF_LAYOUT_TEXT], again[MF_RECOMPUTE_TEXT];

    mf_layout_format(&p->entry.layout, text, sizeof text);
    mf_recompute_format(s, again);
    printf("%s on %s, layout %s%s\n", p->model.name, p->cluster.name, text,
        p->entry.layout.coupled ? ", coupled" : "");
    printf("micro batch %" PRId64 ", vpp %" PRId64
           ", %s, recompute %s, dispatcher %s; coefficients %s\n\n",
        s->micro_batch, s->vpp, mf_precision_name(s->precision), again,
        mf_dispatcher_name(s->dispatcher), p->set.name);
    printf("step %.6g s (%.6g to %.6g), %.0f tokens/s/GPU, %.4g TFLOP/s/GPU, "
           "MFU %.1f %%, limited by %s\n",
        cost->step_s, cost->step_s_low, cost->step_s_high,
        cost->tokens_per_s_per_gpu, cost->tflops_per_gpu, 100 * cost->mfu,
        cost->limit);
    print_parts(cost);
    print_memory(p);
    for (int i = 0; i < cost->notes; i++)
        printf("note: %s\n", cost->note[i]);
}

static int predict_scope(
    const struct mf_cli *cli, enum mf_scope *scope, struct mf_error *err)
{
    const char *text = mf_cli_value(cli, "scope");
    int found = text ? mf_scope_find(text) : MF_SCOPE_STEP;

    if (found < 0)
        return mf_error_set(
            err, MF_INVALID, "--scope '%.32s' is neither step nor moe", text);
    *scope = (enum mf_scope)found;
    return 0;
}

static int predict_read(
    const struct mf_cli *cli, struct predict *p, struct mf_error *err)
{
    unsigned given;
    int64_t world;

    mf_settings_init(&p->entry.settings);
    if (mf_inputs_settings(cli, &p->entry.settings, err) ||
        predict_scope(cli, &p->scope, err) ||
        mf_inputs_model(cli, &p->model, err) ||
        mf_inputs_layout(cli, &p->entry.layout, &given, err) ||
        mf_inputs_layout_world(cli, &p->entry.layout, &world, err) ||
        mf_inputs_cluster(cli, world, &p->cluster, err))
        return -1;
    if (!world)
        world = mf_cluster_devices(&p->cluster);
    return mf_layout_resolve(&p->entry.layout, world, given, err);
}

/* Where the layout came from, when no option gave it. */
static int predict_note(
    const struct mf_cli *cli, struct predict *p, struct mf_error *err)
{
    if (mf_cli_value(cli, "layout"))
        return 0;
    return mf_cost_note(&p->entry.cost, err,
        "the layout is that of the model's arguments, %s",
        mf_cli_value(cli, "model"));
}

/* One kernel instead of a step. */
static int predict_kernel(
    const struct mf_cli *cli, const char *text, struct mf_error *err)
{
    const char *gpu = mf_cli_value(cli, "gpu");
    struct mf_kernel_price price;

    if (!gpu)
        return mf_error_set(
            err, MF_INVALID, "--kernel needs --gpu NAME, such as --gpu h100");
    if (mf_kernel_price(text, gpu, &price, err))
        return -1;
    if (mf_cli_json(cli))
        return mf_cli_print_json(
            json_pack("{s:s, s:s, s:f, s:f, s:f}", "kernel", text, "gpu", gpu,
                "seconds", price.seconds, "low", price.low, "high", price.high),
            err);
    printf("%s on %s: %.4g us (%.4g to %.4g)\n", text, gpu, 1e6 * price.seconds,
        1e6 * price.low, 1e6 * price.high);
    return MF_OK;
}

static int predict_run(struct mf_cli *cli, struct mf_error *err)
{
    const char *kernel = mf_cli_value(cli, "kernel");
    struct predict p = {0};
    int rc = -1;

    if (kernel)
        return predict_kernel(cli, kernel, err);
    if (predict_read(cli, &p, err) ||
        mf_inputs_coefficients(cli, &p.cluster, &p.set, err) ||
        mf_cost_predict(&p.model, &p.cluster, p.scope, &p.set, &p.entry, err) ||
        predict_note(cli, &p, err))
        goto out;
    rc = p.entry.cost.fits ? MF_OK : MF_NO;
    if (mf_cli_json(cli)) {
        if (mf_cli_print_json(mf_plan_entry_to_json(&p.entry), err))
            rc = -1;
    } else {
        predict_print(&p);
    }
    if (rc == MF_NO)
        mf_error_set(err, MF_NO,
            "the layout does not fit: %.1f GiB of %.1f; shard more, recompute "
            "more or take a smaller micro batch",
            p.entry.cost.peak_bytes / GIB, p.cluster.gpu.memory_bytes / GIB);
out:
    mf_cost_free(&p.entry.cost);
    mf_cluster_free(&p.cluster);
    mf_model_free(&p.model);
    return rc;
}

static const struct mf_option predict_options[] = {
    {"scope", "S", "step, or moe: what moefold-run runs (step)"},
    {"kernel", "K", "one kernel, such as gemm:M,N,K"},
    {"gpu", "NAME", "the device of --kernel, such as h100"},
    {NULL, NULL, NULL},
};

static const struct mf_option *const predict_tables[] = {mf_options_model,
    mf_options_cluster, mf_options_layout, mf_options_settings, predict_options,
    mf_options_db, NULL};

const struct mf_command mf_command_predict = {
    .name = "predict",
    .operands = "",
    .summary = "Price one layout: time, memory and what limits it",
    .tables = predict_tables,
    .run = predict_run,
};
