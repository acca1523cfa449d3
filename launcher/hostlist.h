/* SPDX-License-Identifier: BSD-3-Clause
 * Host lists made into lists of names, and Slurm's counts for each node.
 */
#ifndef MFL_HOSTLIST_H
#define MFL_HOSTLIST_H

#include <stdbool.h>

#include "launcher/list.h"
#include "planner/layout/hostlist.h"

#define MFL_HOSTS_MAX MF_HOSTS_MAX
#define MFL_HOST_TEXT MF_HOST_TEXT

/* Append the hosts of TEXT (see mf_hostlist_each). Names must be plain; at most
 * MFL_HOSTS_MAX hosts in the list. MF_INVALID otherwise, naming the part and
 * the mend.
 */
int mfl_hostlist_parse(
    const char *text, struct mfl_list *hosts, struct mf_error *err);

/* May NAME stand in a host file? As above, whole. */
bool mfl_hostlist_is_name(const char *name);

/* Slurm's short form of a number for each of COUNT nodes, such as
 * "8(x4),2" of SLURM_TASKS_PER_NODE, into VALUE[COUNT]; MF_INVALID when it is
 * not for exactly COUNT nodes.
 */
int mfl_hostlist_counts(
    const char *text, size_t count, long *value, struct mf_error *err);

#endif
