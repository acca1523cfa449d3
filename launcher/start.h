/* SPDX-License-Identifier: BSD-3-Clause
 * Starts moefold-run on its ranks: by mpirun here, by srun in an allocation.
 */
#ifndef MFL_START_H
#define MFL_START_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/layout/plan.h"

struct mfl_start {
    int64_t ranks;
    char *const *args; /* of the runner, NULL-terminated */
    bool here;         /* by mpirun on this machine, allocation or not */
    const struct mf_plan *plan; /* seats the ranks in an allocation; NULL: in
                                   block order */
    char *const *srun_args;     /* further ones, NULL-terminated; or NULL */
};

/* The path of moefold-run (launcher/runner.h), malloc'd; NULL with MF_FAILED
 * when there is none.
 */
char *mfl_start_runner(struct mf_error *err);

/* May as many ranks be started on this machine? MF_INVALID when they are far
 * too many for its cores, which only a slip asks for.
 */
int mfl_start_check_here(int64_t ranks, struct mf_error *err);

/* Are we inside a Slurm job? */
bool mfl_in_allocation(void);

/* Find moefold-run and run it to its end. Standard output
 * passes through, or is caught in OUTPUT (malloc'd) when that is not NULL.
 * Returns moefold-run's status (0 to 3; it has printed its own message then);
 * -1 with MF_FAILED when it could not be started or ended in any other way,
 * or as mfl_start_check_here.
 */
int mfl_start_run(
    const struct mfl_start *start, char **output, struct mf_error *err);

#endif
