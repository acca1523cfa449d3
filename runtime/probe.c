/* SPDX-License-Identifier: BSD-3-Clause
 * Exchange rate and latency between two ranks.
 */
#include "runtime/probe.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/clock.h"
#include "runtime/comm.h"

enum { REPEATS = 9, ROUNDS = 64, BYTES = 4 << 20 };

static int exchange(MPI_Comm world, int peer, int bytes, const char *out,
    char *in, struct mf_error *err)
{
    return mfr_mpi(MPI_Sendrecv(out, bytes, MPI_BYTE, peer, 0, in, bytes,
                       MPI_BYTE, peer, 0, world, MPI_STATUS_IGNORE),
        "MPI_Sendrecv", err);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Median seconds of one exchange of BYTES, over REPEATS of ROUNDS each. */
static int measure(MPI_Comm world, int peer, int bytes, int rounds,
    const char *out, char *in, double *seconds, struct mf_error *err)
{
    double spent[REPEATS];

    for (int i = -1; i < REPEATS; i++) {
        const double start = mfr_now();

        for (int round = 0; round < rounds; round++)
            if (exchange(world, peer, bytes, out, in, err))
                return -1;
        if (i >= 0)
            spent[i] = (mfr_now() - start) / rounds;
    }
    qsort(spent, REPEATS, sizeof *spent, compare);
    *seconds = spent[REPEATS / 2];
    return 0;
}

static int probe_pair(
    MPI_Comm world, int rank, char *out, char *in, struct mf_error *err)
{
    double small, large;
    const int peer = 1 - rank;

    if (measure(world, peer, 1, ROUNDS, out, in, &small, err) ||
        measure(world, peer, BYTES, 2, out, in, &large, err))
        return -1;
    if (rank != 0)
        return 0;
    if (printf("{\"bytes_per_s\": %.6g, \"latency_s\": %.6g}\n", BYTES / large,
            small) < 0 ||
        fflush(stdout))
        return mf_error_set(err, MF_FAILED, "probe: cannot write the result");
    return 0;
}

int mfr_probe_main(MPI_Comm world, struct mf_error *err)
{
    char *out = NULL, *in = NULL;
    int rank, size, rc = 0;

    if (mfr_mpi(MPI_Comm_rank(world, &rank), "MPI_Comm_rank", err) ||
        mfr_mpi(MPI_Comm_size(world, &size), "MPI_Comm_size", err))
        return -1;
    if (size < 2)
        return mf_error_set(err, MF_INVALID,
            "probe: it needs 2 ranks; start it with mpirun -n 2");
    if (rank < 2) {
        out = calloc(BYTES, 1);
        in = calloc(BYTES, 1);
        if (!out || !in)
            rc = mf_error_set(err, MF_FAILED, "probe: out of memory");
    }
    rc = mfr_agree(world, rc, err);
    if (rc == 0 && rank < 2)
        rc = probe_pair(world, rank, out, in, err);
    rc = mfr_agree(world, rc, err);
    free(out);
    free(in);
    return rc;
}
