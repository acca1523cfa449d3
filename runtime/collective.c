/* SPDX-License-Identifier: BSD-3-Clause
 * MPI's collective calls, started and then waited for under the guard.
 */
#include "runtime/collective.h"

#include "runtime/comm.h"

/* CODE: of the call that started REQUEST. */
static int finish(int code, MPI_Request *request, MPI_Comm comm,
    const char *what, struct mf_error *err)
{
    if (mfr_mpi(code, what, err))
        return -1;
    return mfr_wait_all(comm, -1, 1, request, what, err);
}

int mfr_barrier(MPI_Comm comm, const char *what, struct mf_error *err)
{
    MPI_Request request = MPI_REQUEST_NULL;

    return finish(MPI_Ibarrier(comm, &request), &request, comm, what, err);
}

int mfr_bcast(void *data, int n, MPI_Datatype type, int root, MPI_Comm comm,
    const char *what, struct mf_error *err)
{
    MPI_Request request = MPI_REQUEST_NULL;

    return finish(MPI_Ibcast(data, n, type, root, comm, &request), &request,
        comm, what, err);
}

int mfr_allreduce(const void *send, void *receive, int n, MPI_Datatype type,
    MPI_Op op, MPI_Comm comm, const char *what, struct mf_error *err)
{
    MPI_Request request = MPI_REQUEST_NULL;

    return finish(MPI_Iallreduce(send, receive, n, type, op, comm, &request),
        &request, comm, what, err);
}

int mfr_reduce(const void *send, void *receive, int n, MPI_Datatype type,
    MPI_Op op, int root, MPI_Comm comm, const char *what, struct mf_error *err)
{
    MPI_Request request = MPI_REQUEST_NULL;

    return finish(MPI_Ireduce(send, receive, n, type, op, root, comm, &request),
        &request, comm, what, err);
}

int mfr_gather(const void *send, void *receive, int n, MPI_Datatype type,
    int root, MPI_Comm comm, const char *what, struct mf_error *err)
{
    MPI_Request request = MPI_REQUEST_NULL;

    return finish(
        MPI_Igather(send, n, type, receive, n, type, root, comm, &request),
        &request, comm, what, err);
}

int mfr_allgather(const void *send, void *receive, int n, MPI_Datatype type,
    MPI_Comm comm, const char *what, struct mf_error *err)
{
    MPI_Request request = MPI_REQUEST_NULL;

    return finish(
        MPI_Iallgather(send, n, type, receive, n, type, comm, &request),
        &request, comm, what, err);
}

int mfr_alltoall(const void *send, void *receive, int n, MPI_Datatype type,
    MPI_Comm comm, const char *what, struct mf_error *err)
{
    MPI_Request request = MPI_REQUEST_NULL;

    return finish(
        MPI_Ialltoall(send, n, type, receive, n, type, comm, &request),
        &request, comm, what, err);
}

int mfr_allgatherv(const void *send, int n, void *receive, const int *counts,
    const int *places, MPI_Datatype type, MPI_Comm comm, const char *what,
    struct mf_error *err)
{
    MPI_Request request = MPI_REQUEST_NULL;

    return finish(MPI_Iallgatherv(send, n, type, receive, counts, places, type,
                      comm, &request),
        &request, comm, what, err);
}

int mfr_alltoallv(const void *send, const int *send_counts,
    const int *send_places, void *receive, const int *counts, const int *places,
    MPI_Datatype type, MPI_Comm comm, const char *what, struct mf_error *err)
{
    MPI_Request request = MPI_REQUEST_NULL;

    return finish(MPI_Ialltoallv(send, send_counts, send_places, type, receive,
                      counts, places, type, comm, &request),
        &request, comm, what, err);
}

static int made(MPI_Comm from, const char *name, MPI_Comm *new, int code,
    const char *what, struct mf_error *err)
{
    mfr_block_end(from);
    if (mfr_mpi(code, what, err))
        return -1;
    if (*new == MPI_COMM_NULL)
        return 0;
    if (mfr_mpi(MPI_Comm_set_errhandler(*new, MPI_ERRORS_RETURN),
            "MPI_Comm_set_errhandler", err))
        return -1;
    return mfr_guard_watch(from, *new, name, err);
}

int mfr_comm_split(MPI_Comm comm, int colour, int key, const char *name,
    MPI_Comm *new, struct mf_error *err)
{
    *new = MPI_COMM_NULL;
    if (mfr_block_begin(comm, "MPI_Comm_split", err))
        return -1;
    return made(comm, name, new, MPI_Comm_split(comm, colour, key, new),
        "MPI_Comm_split", err);
}

int mfr_comm_split_node(MPI_Comm comm, int key, const char *name, MPI_Comm *new,
    struct mf_error *err)
{
    *new = MPI_COMM_NULL;
    if (mfr_block_begin(comm, "MPI_Comm_split_type", err))
        return -1;
    return made(comm, name, new,
        MPI_Comm_split_type(
            comm, MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, new),
        "MPI_Comm_split_type", err);
}
