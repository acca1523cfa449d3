/* SPDX-License-Identifier: BSD-3-Clause
 * What moefold-run executes, so that a job is not queued only to be refused.
 */
#ifndef MF_RUNNABLE_H
#define MF_RUNNABLE_H

#include <stdbool.h>

#include "planner/layout/plan.h"

/* MF_INVALID, with what to plan instead, when moefold-run executes no such
 * MODEL or SETTINGS.
 */
int mf_runnable_check(const struct mf_model *model,
    const struct mf_settings *settings, struct mf_error *err);

/* silu, swish or swiglu, in any case. */
bool mf_activation_is_silu(const char *name);

#endif
