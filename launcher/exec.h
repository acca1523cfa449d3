/* SPDX-License-Identifier: BSD-3-Clause
 * What another program needs to know to be one rank of a plan, and whether this
 * process sits where the plan's map has it.
 */
#ifndef MFL_EXEC_H
#define MFL_EXEC_H

#include "launcher/list.h"
#include "planner/layout/plan.h"

struct mfl_rank {
    int64_t rank, world, local, local_world, node;
    const char *host; /* this one's name, as Slurm has it */
};

/* This process's place as srun or mpirun tells it in the environment.
 * MF_INVALID: neither started it.
 */
int mfl_exec_rank(
    struct mfl_rank *rank, char *host, size_t size, struct mf_error *err);

/* Hold RANK against the map that PLAN gives in this job (outside of Slurm its
 * counts alone) and fill ENV, a copy of the environment, with RANK, WORLD_SIZE,
 * LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR, MASTER_PORT and
 * MOEFOLD_DEVICE. MF_NO: it sits in the wrong place, said how. A warning may be
 * printed on standard error.
 */
int mfl_exec_prepare(const struct mf_plan *plan, struct mfl_rank *rank,
    struct mfl_list *env, struct mf_error *err);

#endif
