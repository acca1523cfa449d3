/* SPDX-License-Identifier: BSD-3-Clause
 * The communicators of a layout, and agreement over errors.
 */
#ifndef MFR_COMM_H
#define MFR_COMM_H

#include <mpi.h>
#include <stdbool.h>

#include "planner/layout/groups.h"

/* Ranks in a communicator stand as in the group list, ascending. */
struct mfr_comms {
    MPI_Comm base;  /* all ranks of the layout; the caller's */
    int rank, size; /* in base */
    struct mf_coords coords;
    MPI_Comm comm[MF_GROUP_KINDS]; /* MF_GROUP_TP_DP_CP is the stage;
                                      MF_GROUP_EMBD is not made */
    int group_rank[MF_GROUP_KINDS], group_size[MF_GROUP_KINDS];
};

/* Collective over BASE, whose size is the layout's world. Each communicator is
 * checked against its group, used once, and watched when BASE is. All ranks
 * return the same.
 */
int mfr_comms_create(MPI_Comm base, const struct mf_layout *layout,
    struct mfr_comms *comms, struct mf_error *err);
void mfr_comms_free(struct mfr_comms *comms);

/* Collective: 0 when RC is 0 on every rank; else -1 everywhere, with the text
 * and status of the first rank that failed in ERR.
 */
int mfr_agree(MPI_Comm comm, int rc, struct mf_error *err);

/* Turn the result of an MPI call into a return value: 0, or -1 with WHAT and
 * MPI's own text in ERR.
 */
int mfr_mpi(int code, const char *what, struct mf_error *err);

/* values[n] summed over COMM, in place, in the order of ranks: the same bits on
 * every rank and in every run. scratch: mfr_sum_scratch(ranks of COMM) values.
 */
int mfr_sum(MPI_Comm comm, int64_t n, float *values, float *scratch,
    struct mf_error *err);
int64_t mfr_sum_scratch(int ranks);

#endif
