/* SPDX-License-Identifier: BSD-3-Clause
 * A sum over ranks in a fixed order.
 *
 * MPI_Allreduce may add in another order from one call to the next, and need
 * not give every rank the same bits. Here each rank adds one part of the
 * vector, in the order of ranks, and all gather the parts.
 */
#include "runtime/comm.h"

#include <stdlib.h>

#include "kernels/kernels.h"
#include "runtime/collective.h"

/* Values summed at a time. */
enum { SEGMENT = 1 << 20 };

struct parts {
    int ranks, rank;
    int *count, *at;     /* parts of the segment */
    int *mine, *mine_at; /* my part, from each rank */
};

int64_t mfr_sum_scratch(int ranks)
{
    return (int64_t)SEGMENT + ranks;
}

static int parts_init(struct parts *parts, MPI_Comm comm, struct mf_error *err)
{
    int *room;

    if (mfr_mpi(MPI_Comm_rank(comm, &parts->rank), "MPI_Comm_rank", err) ||
        mfr_mpi(MPI_Comm_size(comm, &parts->ranks), "MPI_Comm_size", err))
        return -1;
    room = malloc(4 * (size_t)parts->ranks * sizeof *room);
    if (!room)
        return mf_error_set(err, MF_FAILED, "out of memory");
    parts->count = room;
    parts->at = room + parts->ranks;
    parts->mine = room + 2 * parts->ranks;
    parts->mine_at = room + 3 * parts->ranks;
    return 0;
}

static void parts_cut(struct parts *parts, int n)
{
    const int each = n / parts->ranks, longer = n % parts->ranks;
    int at = 0;

    for (int r = 0; r < parts->ranks; r++) {
        parts->count[r] = each + (r < longer ? 1 : 0);
        parts->at[r] = at;
        at += parts->count[r];
    }
    for (int r = 0; r < parts->ranks; r++) {
        parts->mine[r] = parts->count[parts->rank];
        parts->mine_at[r] = r * parts->count[parts->rank];
    }
}

static int segment_sum(MPI_Comm comm, struct parts *parts, float *values,
    float *scratch, struct mf_error *err)
{
    const int mine = parts->count[parts->rank];

    if (mfr_alltoallv(values, parts->count, parts->at, scratch, parts->mine,
            parts->mine_at, MPI_FLOAT, comm, "MPI_Alltoallv (sum of gradients)",
            err))
        return -1;
    for (int r = 1; r < parts->ranks; r++)
        mfk_add(mine, scratch + (int64_t)r * mine, scratch);
    return mfr_allgatherv(scratch, mine, values, parts->count, parts->at,
        MPI_FLOAT, comm, "MPI_Allgatherv (sum of gradients)", err);
}

int mfr_sum(MPI_Comm comm, int64_t n, float *values, float *scratch,
    struct mf_error *err)
{
    struct parts parts = {0, 0, NULL, NULL, NULL, NULL};
    int rc = parts_init(&parts, comm, err);

    for (int64_t at = 0; rc == 0 && at < n; at += SEGMENT) {
        parts_cut(&parts, (int)(n - at < SEGMENT ? n - at : SEGMENT));
        rc = segment_sum(comm, &parts, values + at, scratch, err);
    }
    free(parts.count);
    return rc;
}
