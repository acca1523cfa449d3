/* SPDX-License-Identifier: BSD-3-Clause
 * Starts moefold-run on its ranks: by mpirun here, by srun in an allocation.
 */
#ifndef MFL_START_H
#define MFL_START_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/layout/error.h"

struct mfl_start {
    const char *runner;
    int64_t ranks;
    char *const *args;    /* of the runner, NULL-terminated */
    bool here;            /* by mpirun on this machine, allocation or not */
    const char *hostfile; /* for srun: one node a rank; NULL: block order */
};

/* The path of moefold-run (see launcher/runner.h), malloc'd; NULL with
 * MF_FAILED when there is none.
 */
char *mfl_start_runner(struct mf_error *err);

/* Are we inside a Slurm job? */
bool mfl_in_allocation(void);

/* Run it to its end. Standard output passes through, or is caught in OUTPUT
 * (malloc'd) when that is not NULL. Returns moefold-run's status (0 to 3; it
 * has printed its own message then); -1 with MF_FAILED when it could not be
 * started or ended in any other way.
 */
int mfl_start_run(
    const struct mfl_start *start, char **output, struct mf_error *err);

#endif
