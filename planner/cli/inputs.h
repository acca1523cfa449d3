/* SPDX-License-Identifier: BSD-3-Clause
 * Common options turned into a model, a cluster, a layout and settings.
 */
#ifndef MF_INPUTS_H
#define MF_INPUTS_H

#include "planner/cli/cli.h"
#include "planner/layout/plan.h"

/* --model, which must be given. Free with mf_model_free. */
int mf_inputs_model(
    const struct mf_cli *cli, struct mf_model *model, struct mf_error *err);

/* --cluster (repeatable) and --slurm-timeout; WORLD as far as it is known,
 * else 0. Free with mf_cluster_free.
 */
int mf_inputs_cluster(const struct mf_cli *cli, int64_t world,
    struct mf_cluster *cluster, struct mf_error *err);

/* --world or --gpus, 0 when not given. */
int mf_inputs_world(
    const struct mf_cli *cli, int64_t *world, struct mf_error *err);

/* --layout, or that of a Megatron model's arguments; --order, --coupled; not
 * resolved yet. GIVEN is for mf_layout_resolve.
 */
int mf_inputs_layout(const struct mf_cli *cli, struct mf_layout *layout,
    unsigned *given, struct mf_error *err);

/* The world of a command with a layout: --world; else from the layout when it
 * gives dp or edp; else 0 (then all devices of the nodes that are up).
 */
int mf_inputs_layout_world(const struct mf_cli *cli,
    const struct mf_layout *layout, int64_t *world, struct mf_error *err);

/* --seq, --global-batch, --micro-batch, --vpp, --precision, --recompute,
 * --dispatcher, --imbalance, --capacity-factor, --shard over the defaults in
 * SETTINGS, which the command has set; the arguments of a Megatron model come
 * between the two.
 */
int mf_inputs_settings(const struct mf_cli *cli, struct mf_settings *settings,
    struct mf_error *err);

#endif
