/* SPDX-License-Identifier: BSD-3-Clause
 * Slurm's host list expressions, such as rack[1-2]n[01-04,07].
 *
 * Read here and not by libslurm, whose reader prints, may exit and is not in
 * every build; a unit test holds the two against each other.
 */
#ifndef MFL_HOSTLIST_H
#define MFL_HOSTLIST_H

#include <stdbool.h>

#include "launcher/list.h"

#define MFL_HOSTS_MAX ((size_t)65536)
#define MFL_HOST_TEXT 256 /* a host's name and its final 0 */

/* Append the hosts of TEXT in the order given, repeats kept. Several brackets
 * count like digits, the last one fastest. Names hold letters, digits, '.',
 * '_' and '-' and do not begin with '-'. MF_INVALID otherwise, naming the
 * part and the mend; at most MFL_HOSTS_MAX hosts.
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
