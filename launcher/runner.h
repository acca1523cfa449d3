/* SPDX-License-Identifier: BSD-3-Clause
 * Where moefold-run is.
 */
#ifndef MFL_RUNNER_H
#define MFL_RUNNER_H

/* The path of moefold-run: $MOEFOLD_RUN, else beside the running program, else
 * the folder it is installed in; malloc'd. NULL when there is none.
 */
char *mfl_runner_find(void);

#endif
