/* SPDX-License-Identifier: BSD-3-Clause
 * Slurm's host list expressions, such as rack[1-2]n[01-04,07]-ib,login.
 *
 * One bounded reader for the planner and the launcher. Not libslurm's: that
 * one prints, may exit, is not in every build, refuses the suffixes of Slurm
 * 23.11 and takes `n[` for a host; a unit test holds the two against each
 * other wherever both accept.
 */
#ifndef MF_HOSTLIST_H
#define MF_HOSTLIST_H

#include <stdbool.h>
#include <stddef.h>

#include "planner/layout/error.h"

#define MF_HOSTS_MAX ((size_t)65536)
#define MF_HOST_TEXT 256 /* a host's name and its final 0 */

/* Called once a host; -1 with ERR set ends the walk. */
typedef int (*mf_host_function)(
    void *arg, const char *name, struct mf_error *err);

/* Call EACH for the hosts of TEXT in the order that Slurm gives them, repeats
 * kept. Items are parted by commas or white space, empty ones passed over.
 * With several brackets the last counts fastest, then the first, and the last
 * but one slowest. "n[1-]" is n1; numbers keep their zeros in front.
 *
 * MF_INVALID, naming the part and the mend: no host at all, a bracket not
 * closed, empty or nested, a range that falls, a name over 255 bytes, more
 * than MOST hosts (0: MF_HOSTS_MAX). A name may hold any other byte: see
 * mf_host_is_plain.
 */
int mf_hostlist_each(const char *text, size_t most, mf_host_function each,
    void *arg, struct mf_error *err);

/* May NAME stand in a host file: letters, digits, '.', '_' and '-', not
 * beginning with '-', at most 255 bytes?
 */
bool mf_host_is_plain(const char *name);

#endif
