/* SPDX-License-Identifier: BSD-3-Clause
 * The phases of a folded MoE layer: one list for predictions, samples, reports.
 */
#ifndef MF_PHASE_H
#define MF_PHASE_H

enum mf_phase {
    MF_PHASE_ROUTE,
    MF_PHASE_PERMUTE,
    MF_PHASE_DISPATCH,
    MF_PHASE_GATHER,
    MF_PHASE_EXPERTS,
    MF_PHASE_REDUCE,
    MF_PHASE_COMBINE,
    MF_PHASE_UNPERMUTE,
    MF_PHASE_SHARED,
    MF_PHASE_STAGE_SEND,
    MF_PHASE_GRAD_REDUCE_EXPERT,
    MF_PHASE_GRAD_REDUCE_DENSE,
    MF_PHASE_OPTIMIZER,
    MF_PHASES
};

enum mf_direction { MF_FORWARD, MF_BACKWARD, MF_DIRECTIONS };

/* "route", "grad_reduce_expert", ... */
const char *mf_phase_name(enum mf_phase phase);

/* "forward" or "backward". */
const char *mf_direction_name(enum mf_direction direction);

/* The phase of that name, or -1. */
int mf_phase_find(const char *name);

#endif
