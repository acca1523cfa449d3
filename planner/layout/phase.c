/* SPDX-License-Identifier: BSD-3-Clause
 * Names of the phases.
 */
#include "planner/layout/phase.h"

#include <string.h>

static const char *const phase_names[MF_PHASES] = {
    [MF_PHASE_ROUTE] = "route",
    [MF_PHASE_PERMUTE] = "permute",
    [MF_PHASE_DISPATCH] = "dispatch",
    [MF_PHASE_GATHER] = "gather",
    [MF_PHASE_EXPERTS] = "experts",
    [MF_PHASE_REDUCE] = "reduce",
    [MF_PHASE_COMBINE] = "combine",
    [MF_PHASE_UNPERMUTE] = "unpermute",
    [MF_PHASE_SHARED] = "shared",
    [MF_PHASE_STAGE_SEND] = "stage_send",
    [MF_PHASE_GRAD_REDUCE_EXPERT] = "grad_reduce_expert",
    [MF_PHASE_GRAD_REDUCE_DENSE] = "grad_reduce_dense",
    [MF_PHASE_OPTIMIZER] = "optimizer",
};

const char *mf_phase_name(enum mf_phase phase)
{
    return phase_names[phase];
}

const char *mf_direction_name(enum mf_direction direction)
{
    return direction == MF_FORWARD ? "forward" : "backward";
}

int mf_phase_find(const char *name)
{
    for (int i = 0; i < MF_PHASES; i++)
        if (!strcmp(name, phase_names[i]))
            return i;
    return -1;
}
