/* SPDX-License-Identifier: BSD-3-Clause
 * MPI's collective calls under the guard: arguments as MPI has them, WHAT to
 * name the call, -1 with the reason on failure.
 */
#ifndef MFR_COLLECTIVE_H
#define MFR_COLLECTIVE_H

#include "runtime/guard.h"

int mfr_barrier(MPI_Comm comm, const char *what, struct mf_error *err);
int mfr_bcast(void *data, int n, MPI_Datatype type, int root, MPI_Comm comm,
    const char *what, struct mf_error *err);
int mfr_allreduce(const void *send, void *receive, int n, MPI_Datatype type,
    MPI_Op op, MPI_Comm comm, const char *what, struct mf_error *err);
/* N of TYPE from each and to each, both ways. */
int mfr_reduce(const void *send, void *receive, int n, MPI_Datatype type,
    MPI_Op op, int root, MPI_Comm comm, const char *what, struct mf_error *err);
int mfr_gather(const void *send, void *receive, int n, MPI_Datatype type,
    int root, MPI_Comm comm, const char *what, struct mf_error *err);
int mfr_allgather(const void *send, void *receive, int n, MPI_Datatype type,
    MPI_Comm comm, const char *what, struct mf_error *err);
int mfr_alltoall(const void *send, void *receive, int n, MPI_Datatype type,
    MPI_Comm comm, const char *what, struct mf_error *err);
int mfr_allgatherv(const void *send, int n, void *receive, const int *counts,
    const int *places, MPI_Datatype type, MPI_Comm comm, const char *what,
    struct mf_error *err);
int mfr_alltoallv(const void *send, const int *send_counts,
    const int *send_places, void *receive, const int *counts, const int *places,
    MPI_Datatype type, MPI_Comm comm, const char *what, struct mf_error *err);

/* New communicators return errors and are watched as NAME when COMM is. */
int mfr_comm_split(MPI_Comm comm, int colour, int key, const char *name,
    MPI_Comm *new, struct mf_error *err);
/* The ranks that share memory. */
int mfr_comm_split_node(MPI_Comm comm, int key, const char *name, MPI_Comm *new,
    struct mf_error *err);

#endif
