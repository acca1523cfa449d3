/* SPDX-License-Identifier: BSD-3-Clause
 * The batch script of a job, as a Slurm user would have written it.
 */
#ifndef MFL_SCRIPT_H
#define MFL_SCRIPT_H

#include "launcher/job.h"

/* The text of the script, malloc'd; NULL when memory is short. */
char *mfl_script_text(const struct mfl_job *job, struct mf_error *err);

#endif
