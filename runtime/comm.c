/* SPDX-License-Identifier: BSD-3-Clause
 * Communicators from rank groups, and agreement over errors.
 */
#include "runtime/comm.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/collective.h"

int mfr_mpi(int code, const char *what, struct mf_error *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;

    if (code == MPI_SUCCESS)
        return 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
        return mf_error_set(err, MF_FAILED, "%s: MPI error %d", what, code);
    return mf_error_set(err, MF_FAILED, "%s: %s", what, text);
}

int mfr_agree(MPI_Comm comm, int rc, struct mf_error *err)
{
    struct mf_error first = {MF_FAILED, ""};
    int rank, size, mine, failed;

    if (mfr_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank", err) ||
        mfr_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size", err))
        return -1;
    mine = rc == 0 ? size : rank;
    if (mfr_allreduce(&mine, &failed, 1, MPI_INT, MPI_MIN, comm,
            "MPI_Allreduce (agreement)", err))
        return -1;
    if (failed == size)
        return 0;
    if (rank == failed && err)
        first = *err;
    if (mfr_bcast(&first, (int)sizeof first, MPI_BYTE, failed, comm,
            "MPI_Bcast (error)", err))
        return -1;
    if (err)
        *err = first;
    return -1;
}

/* Ask every member of the group for its rank in base: who answers must be who
 * the group list names.
 */
static int comm_use(const struct mfr_comms *comms, enum mf_group_kind kind,
    const int32_t *member, struct mf_error *err)
{
    const char *name = mf_group_kind_name(kind);
    const int size = comms->group_size[kind];
    const int32_t mine = comms->rank;
    int32_t *seen = malloc((size_t)size * sizeof *seen);
    int rc = seen ? 0 : mf_error_set(err, MF_FAILED, "out of memory");

    if (mfr_agree(comms->base, rc, err)) {
        free(seen);
        return -1;
    }
    rc = mfr_allgather(&mine, seen, 1, MPI_INT32_T, comms->comm[kind],
        "MPI_Allgather (first use)", err);
    for (int i = 0; rc == 0 && i < size; i++)
        if (seen[i] != member[i])
            rc = mf_error_set(err, MF_FAILED,
                "rank %d: place %d of the %s group is rank %" PRId32
                ", the layout says %" PRId32,
                comms->rank, i, name, seen[i], member[i]);
    free(seen);
    return rc;
}

static int comm_create(struct mfr_comms *comms, const struct mf_layout *layout,
    enum mf_group_kind kind, struct mf_error *err)
{
    const int64_t size = mf_group_size(layout, kind);
    int32_t *member = malloc((size_t)size * sizeof *member);
    int64_t place = 0;
    int rc = -1;

    if (member)
        place = mf_group_members(layout, kind, comms->rank, member);
    else
        mf_error_set(err, MF_FAILED, "out of memory");
    if (mfr_agree(comms->base, member ? 0 : -1, err))
        goto out;
    if (mfr_comm_split(comms->base, member[0], (int)place,
            mf_group_kind_name(kind), &comms->comm[kind], err))
        goto out;
    comms->group_rank[kind] = (int)place;
    comms->group_size[kind] = (int)size;
    rc = comm_use(comms, kind, member, err);
out:
    free(member);
    return mfr_agree(comms->base, rc, err);
}

int mfr_comms_create(MPI_Comm base, const struct mf_layout *layout,
    struct mfr_comms *comms, struct mf_error *err)
{
    *comms = (struct mfr_comms){.base = base};
    for (int kind = 0; kind < MF_GROUP_KINDS; kind++)
        comms->comm[kind] = MPI_COMM_NULL;
    if (mfr_mpi(MPI_Comm_rank(base, &comms->rank), "MPI_Comm_rank", err) ||
        mfr_mpi(MPI_Comm_size(base, &comms->size), "MPI_Comm_size", err))
        return -1;
    if (mf_layout_world(layout) != comms->size)
        return mf_error_set(err, MF_INVALID,
            "the layout is for %" PRId64 " ranks, %d are here",
            mf_layout_world(layout), comms->size);
    mf_layout_coords(layout, comms->rank, &comms->coords);
    for (int kind = 0; kind < MF_GROUP_KINDS; kind++)
        if (kind != MF_GROUP_EMBD &&
            comm_create(comms, layout, (enum mf_group_kind)kind, err))
            return -1;
    return 0;
}

void mfr_comms_free(struct mfr_comms *comms)
{
    if (!comms)
        return;
    for (int kind = 0; kind < MF_GROUP_KINDS; kind++)
        if (comms->comm[kind] != MPI_COMM_NULL)
            MPI_Comm_free(&comms->comm[kind]);
}
