/* SPDX-License-Identifier: BSD-3-Clause
 * A plan's layout in the words of other frameworks.
 */
#ifndef MFL_EXPORT_H
#define MFL_EXPORT_H

#include <jansson.h>

#include "launcher/list.h"
#include "planner/layout/plan.h"

/* Flags of Megatron-LM's pretrain_gpt.py that ENTRY needs, word by word. MF_NO:
 * Megatron-LM has none for it. Names: megatron/training/arguments.py of
 * Megatron-LM, core 0.9 and later.
 */
int mfl_export_megatron(const struct mf_plan *plan,
    const struct mf_plan_entry *entry, struct mfl_list *flags,
    struct mf_error *err);

/* {axes, attention, expert, specs, collectives}: one JAX mesh whose axes, the
 * slowest first, number the ranks in row-major order; each of tp, cp, dp, pp,
 * etp, ep, edp is a run of them. MF_NO: the two folds have no common split.
 */
int mfl_export_jax(
    const struct mf_plan_entry *entry, json_t **json, struct mf_error *err);

#endif
