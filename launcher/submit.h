/* SPDX-License-Identifier: BSD-3-Clause
 * Hands a job to Slurm through libslurm, in a child process.
 */
#ifndef MFL_SUBMIT_H
#define MFL_SUBMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/job.h"

struct mfl_submission {
    int64_t job_id;
    char *words;          /* what Slurm said beside it, NULL: nothing */
    int64_t start_unix_s; /* only asked: when it would start */
    char *node_list;      /* and where, NULL: not known */
};

/* ASK: only when and where it would start. Else submit JOB with SCRIPT
 * (mfl_script_text of the same job) from the current folder, with this
 * environment less what Slurm and MPI have put there. MF_FAILED in Slurm's
 * words when it refuses or does not answer within TIMEOUT_S, and when moefold
 * was built without libslurm.
 */
int mfl_submit(const struct mfl_job *job, const char *script, bool ask,
    double timeout_s, struct mfl_submission *submission, struct mf_error *err);
void mfl_submission_free(struct mfl_submission *submission);

#endif
