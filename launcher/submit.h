/* SPDX-License-Identifier: BSD-3-Clause
 * Hands a job to Slurm through libslurm, in a child process.
 */
#ifndef MFL_SUBMIT_H
#define MFL_SUBMIT_H

#include <stdint.h>

#include "launcher/job.h"

struct mfl_submission {
    int64_t job_id;
    char *words; /* what Slurm said beside it, NULL: nothing */
};

/* Submit JOB with SCRIPT (mfl_script_text of the same job) from the current
 * folder, with this environment less what Slurm and MPI have put there.
 * MF_FAILED in Slurm's words when it refuses or does not answer within
 * TIMEOUT_S, and when moefold was built without libslurm.
 */
int mfl_submit(const struct mfl_job *job, const char *script, double timeout_s,
    struct mfl_submission *submission, struct mf_error *err);
void mfl_submission_free(struct mfl_submission *submission);

#endif
