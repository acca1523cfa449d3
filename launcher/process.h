/* SPDX-License-Identifier: BSD-3-Clause
 * Programs that are run in the user's sight: their output passes through and
 * signals reach them. (planner/child.h runs what is not trusted.)
 */
#ifndef MFL_PROCESS_H
#define MFL_PROCESS_H

#include <stddef.h>

#include "planner/layout/error.h"

#define MFL_OUTPUT_MAX ((size_t)64 << 20)

/* The absolute path of PROGRAM, looked up in PATH; malloc'd. NULL with
 * MF_FAILED, saying which package MEND brings, when it is not there.
 */
char *mfl_process_find(
    const char *program, const char *mend, struct mf_error *err);

/* Run the program at ARGV[0] (a path) with exactly the environment ENV, no
 * shell in between, standard input empty. SIGINT, SIGTERM, SIGHUP and SIGQUIT
 * that reach this process are handed on until the program ends. With OUTPUT
 * its standard output is caught (malloc'd text, at most MFL_OUTPUT_MAX bytes)
 * instead of passed through.
 * *STATUS is its exit status, or 128 + the signal that ended it, as a shell
 * has it; after a signal was handed on anything but 0 is 128 + that signal,
 * whatever the program made of it (mpirun ends with 1). -1 when it could not be
 * started or followed.
 */
int mfl_process_run(char *const argv[], char *const env[], char **output,
    int *status, struct mf_error *err);

#endif
