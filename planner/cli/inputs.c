/* SPDX-License-Identifier: BSD-3-Clause
 * Common options: their tables, and the layout and world they give.
 */
#include "config.h"

#include "planner/cli/inputs.h"

#include <inttypes.h>
#include <stdio.h>

#include "planner/layout/number.h"
#include "planner/model_read.h"

const struct mf_option mf_options_model[] = {
    {"model", "FILE", "its config.json, or Megatron's arguments"},
    {NULL, NULL, NULL},
};

const struct mf_option mf_options_cluster[] = {
    {"cluster", "SOURCE", "slurm, local, a preset such as dgx-h100:16"},
    {"slurm-timeout", "SECONDS", "how long to wait for Slurm (5)"},
    {"world", "N", "ranks (all devices of the nodes that are up)"},
    {"gpus", "N", "the same as --world"},
    {NULL, NULL, NULL},
};

const struct mf_option mf_options_layout[] = {
    {"layout", "L", "such as tp2.cp1.dp8.pp8/etp1.ep8.edp16"},
    {"order", "O", "which axis varies fastest (tp-cp-ep-dp-pp)"},
    {"coupled", NULL, "etp = tp and ep inside dp, as before folding"},
    {NULL, NULL, NULL},
};

const struct mf_option mf_options_settings[] = {
    {"seq", "S", "tokens in a sequence (4096)"},
    {"global-batch", "B", "sequences an optimizer step"},
    {"micro-batch", "b", "sequences a micro batch, or auto"},
    {"vpp", "V", "model chunks a stage, or auto"},
    {"split", "F,L", "layers of first and last stage; even or auto"},
    {"precision", "P", "bf16, fp8 or mxfp8 (bf16)"},
    {"recompute", "R", "none, selective, full, auto or modules"},
    {"dispatcher", "D", "alltoall, allgather, dedup, deepep, hybridep, auto"},
    {"imbalance", "G", "Gini of expert loads, 0 to 1 (0.15)"},
    {"capacity-factor", "F", "drop tokens above F times the mean (dropless)"},
    {"shard", "W", "none, optimizer or full (optimizer)"},
    {"ep-overlap", NULL, "exchanges run under another micro batch"},
    {"cuda-graphs", "G", "none, partial, full or auto (auto)"},
    {NULL, NULL, NULL},
};

const struct mf_option mf_options_db[] = {
    {"db", "FILE", "the history ($MOEFOLD_DB, else the XDG data folder)"},
    {"coefficients", "ID|NAME", "those of the cost model (newest that suit)"},
    {NULL, NULL, NULL},
};

int mf_inputs_world(
    const struct mf_cli *cli, int64_t *world, struct mf_error *err)
{
    *world = 0;
    if (mf_cli_integer(cli, "gpus", 1, MF_WORLD_MAX, world, err))
        return -1;
    return mf_cli_integer(cli, "world", 1, MF_WORLD_MAX, world, err);
}

/* The layout that the arguments of a Megatron model give, in TEXT; ETP is TP
 * there when it is not given.
 */
static int layout_of_model(
    const struct mf_cli *cli, char text[128], struct mf_error *err)
{
    const char *file = mf_cli_value(cli, "model");
    struct mf_arguments a = {0};
    struct mf_model model;

    if (file) {
        if (mf_model_read_arguments(file, &model, &a, err))
            return -1;
        mf_model_free(&model);
    }
    if (!a.layout)
        return mf_error_set(err, MF_INVALID,
            "no layout; give one such as --layout tp2.pp8/ep8");
    if (!a.tp || !a.cp || !a.pp || !a.ep || !a.etp)
        return mf_error_set(err, MF_INVALID,
            "no layout; %s gives one by variables without values: give it "
            "with --layout",
            file);
    snprintf(text, 128,
        "tp%" PRId64 ".cp%" PRId64 ".pp%" PRId64 "/etp%" PRId64 ".ep%" PRId64,
        a.tp, a.cp, a.pp, a.etp, a.ep);
    return 0;
}

int mf_inputs_layout(const struct mf_cli *cli, struct mf_layout *layout,
    unsigned *given, struct mf_error *err)
{
    const char *text = mf_cli_value(cli, "layout");
    const char *order = mf_cli_value(cli, "order");
    char own[128];

    *given = ~0u;
    if (!text) {
        if (layout_of_model(cli, own, err))
            return -1;
        text = own;
    }
    if (mf_layout_parse(text, layout, err))
        return -1;
    if (order && mf_order_parse(order, &layout->order, given, err))
        return -1;
    layout->coupled = mf_cli_has(cli, "coupled");
    return 0;
}

int mf_inputs_layout_world(const struct mf_cli *cli,
    const struct mf_layout *layout, int64_t *world, struct mf_error *err)
{
    int64_t attention[] = {layout->tp, layout->cp, layout->dp, layout->pp};
    int64_t experts[] = {layout->etp, layout->ep, layout->edp, layout->pp};

    if (mf_inputs_world(cli, world, err))
        return -1;
    if (!*world && layout->dp)
        *world = mf_product(4, attention);
    else if (!*world && layout->edp)
        *world = mf_product(4, experts);
    return 0;
}
