/* SPDX-License-Identifier: BSD-3-Clause
 * What this machine is and how fast: for `local`.
 */
#ifndef MF_CLUSTER_MACHINE_H
#define MF_CLUSTER_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/layout/error.h"

struct mf_machine {
    char cpu[64], host[256]; /* host: "localhost" when it has no plain name */
    int64_t cores;           /* that this process may use */
    int64_t memory_bytes;
    int64_t cache_bytes; /* of the last level, all together */
    const char *from;    /* "hwloc" or "sysconf" */
};

/* Figures of one core while CORES of them work at once. */
struct mf_rates {
    double copy_bytes_per_s; /* read + written, beyond the caches */
    double sgemm_flops;      /* a second */
};

void mf_machine_read(struct mf_machine *machine);

/* Lower cores and memory_bytes to what the control groups of this process
 * allow: CGROUP_FILE is /proc/self/cgroup, ROOT /sys/fs/cgroup; both versions.
 */
void mf_machine_limit(
    const char *cgroup_file, const char *root, struct mf_machine *machine);

/* Measure on CORES cores for about a second, in a child process, where
 * OpenBLAS is loaded; where it is not at hand, a plain loop stands for it.
 */
int mf_machine_measure(const struct mf_machine *machine, int64_t cores,
    struct mf_rates *rates, struct mf_error *err);

/* "OpenBLAS" or "a plain loop": what sgemm_flops is measured with. */
const char *mf_machine_sgemm_name(void);

#endif
