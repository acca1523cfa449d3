/* SPDX-License-Identifier: BSD-3-Clause
 * Ranks that keep each other waiting, for t0413-watchdog.t to see what the
 * watchdog makes of it: mpirun -n N guard_cases CASE.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/collective.h"
#include "runtime/comm.h"

static int rank, ranks;

static void notice(void *with, const char *text)
{
    (void)with;
    printf("notice: %s\n", text);
    fflush(stdout);
}

static void give_up(void *with, const struct mf_error *err, bool in_call)
{
    (void)with;
    if (err->text[0])
        printf(
            "%s: %s\n", in_call ? "given up in a call" : "given up", err->text);
    fflush(stdout);
    if (!in_call)
        MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

static void nap(double seconds)
{
    const struct timespec t = {
        (time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};

    nanosleep(&t, NULL);
}

/* The last rank comes late, but comes. */
static int late(struct mf_error *err)
{
    if (rank == ranks - 1)
        nap(2);
    return mfr_barrier(MPI_COMM_WORLD, "the meeting", err);
}

/* It never comes. */
static int withheld(struct mf_error *err)
{
    if (rank == ranks - 1)
        nap(30);
    return mfr_barrier(MPI_COMM_WORLD, "the meeting", err);
}

/* Ranks of a pair enter two calls on two groups, each in its own order. */
static int crossed(struct mf_error *err)
{
    MPI_Comm pair[2];
    int sum = 1;

    for (int i = 0; i < 2; i++)
        if (mfr_comm_split(
                MPI_COMM_WORLD, 0, rank, i ? "second" : "first", &pair[i], err))
            return -1;
    for (int i = 0; i < 2; i++)
        if (mfr_allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM,
                pair[(i + rank) % 2], (i + rank) % 2 ? "sum two" : "sum one",
                err))
            return -1;
    return 0;
}

/* As many calls on one group, but not the same. */
static int other(struct mf_error *err)
{
    MPI_Request request;
    int value = 0;

    if (rank == 0)
        return mfr_bcast(
                   &value, 1, MPI_INT, 0, MPI_COMM_WORLD, "hand out", err) ||
                       mfr_barrier(MPI_COMM_WORLD, "the meeting", err)
                   ? -1
                   : 0;
    /* A call of this rank's own that nobody answers, in the same place. */
    if (mfr_bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, "hand out", err) ||
        mfr_mpi(MPI_Irecv(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &request),
            "MPI_Irecv", err))
        return -1;
    return mfr_wait_all(MPI_COMM_WORLD, -1, 1, &request, "the harvest", err);
}

/* A message from one place alone, behind one that waits itself. */
static int chain(struct mf_error *err)
{
    MPI_Request request;
    int value = 0;

    if (rank == 2)
        nap(30);
    if (mfr_mpi(MPI_Irecv(
                    &value, 1, MPI_INT, rank + 1, 5, MPI_COMM_WORLD, &request),
            "MPI_Irecv", err))
        return -1;
    return mfr_wait_all(
        MPI_COMM_WORLD, rank + 1, 1, &request, "next one's rows", err);
}

/* A call that only blocks, without one of its ranks. */
static int blocked(struct mf_error *err)
{
    MPI_Comm pair;

    if (mfr_block_begin(MPI_COMM_WORLD, "MPI_Comm_dup", err))
        return -1;
    if (rank == ranks - 1)
        nap(30);
    else
        MPI_Comm_dup(MPI_COMM_WORLD, &pair);
    mfr_block_end(MPI_COMM_WORLD);
    return 0;
}

/* One fails on its own and says so: nobody else does. */
static int alone(mfr_guard *guard, struct mf_error *err)
{
    if (rank != ranks - 1)
        return mfr_barrier(MPI_COMM_WORLD, "the meeting", err);
    printf("own error of rank %d\n", rank);
    fflush(stdout);
    mfr_guard_farewell(guard);
    nap(0.2);
    _exit(1);
}

/* More than 2 GiB between two ranks, in rows, each with its number at both
 * ends.
 */
static int large(struct mf_error *err)
{
    enum { ROWS = 140000, WIDTH = 4096 };
    const size_t bytes = (size_t)ROWS * WIDTH * sizeof(float);
    const int other = 1 - rank, none = 0, all = ROWS;
    int send[2] = {none, none}, at[2] = {0, 0};
    float *from = malloc(bytes), *to = malloc(bytes);
    MPI_Datatype row = MPI_DATATYPE_NULL;
    int rc = from && to ? 0 : mf_error_set(err, MF_FAILED, "out of memory");

    send[other] = all;
    for (int64_t i = 0; rc == 0 && i < ROWS; i++) {
        memset(from + i * WIDTH, 0, WIDTH * sizeof *from);
        from[i * WIDTH] = from[i * WIDTH + WIDTH - 1] =
            (float)(i + rank * ROWS);
    }
    if (rc == 0)
        rc = mfr_mpi(MPI_Type_contiguous(WIDTH, MPI_FLOAT, &row), "type", err);
    if (rc == 0)
        rc = mfr_mpi(MPI_Type_commit(&row), "type", err);
    if (rc == 0)
        rc = mfr_alltoallv(from, send, at, to, send, at, row, MPI_COMM_WORLD,
            "large rows", err);
    for (int64_t i = 0; rc == 0 && i < ROWS; i++)
        if (to[i * WIDTH] != (float)(i + other * ROWS) ||
            to[i * WIDTH + WIDTH - 1] != (float)(i + other * ROWS))
            rc = mf_error_set(err, MF_FAILED, "row %d is another", (int)i);
    if (rc == 0)
        printf("%zu bytes came right\n", bytes);
    if (row != MPI_DATATYPE_NULL)
        MPI_Type_free(&row);
    free(from);
    free(to);
    return rc;
}

static int run(const char *name, mfr_guard *guard, struct mf_error *err)
{
    static const struct {
        const char *name;
        int (*run)(struct mf_error *err);
    } cases[] = {{"late", late}, {"withheld", withheld}, {"crossed", crossed},
        {"other", other}, {"chain", chain}, {"blocked", blocked},
        {"large", large}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(cases[i].name, name))
            return cases[i].run(err);
    return strcmp(name, "alone") ? 2 : alone(guard, err);
}

int main(int argc, char **argv)
{
    const struct mfr_guard_options how = {.notice_s = 0.5,
        .timeout_s = argc > 2 ? 60 : 4,
        .notice = notice,
        .give_up = give_up};
    struct mf_error err = {MF_FAILED, ""};
    mfr_guard *guard;
    int rc;

    if (argc < 2 || MPI_Init(NULL, NULL) ||
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) ||
        MPI_Comm_rank(MPI_COMM_WORLD, &rank) ||
        MPI_Comm_size(MPI_COMM_WORLD, &ranks) ||
        mfr_guard_create(MPI_COMM_WORLD, &how, &guard, &err))
        return 2;
    mfr_guard_iteration(MPI_COMM_WORLD, 7);
    rc = run(argv[1], guard, &err);
    if (rc)
        printf("failed: %s\n", err.text);
    mfr_guard_free(guard);
    MPI_Finalize();
    return rc ? 1 : 0;
}
