/* SPDX-License-Identifier: BSD-3-Clause
 * Rows between devices by NCCL.
 */
#include "kernels/cuda/nccl.h"

#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The first call of a communicator builds its connections. */
#define SETUP_TIMEOUT_S 120.0

struct mfk_comm {
    ncclComm_t comm;
    cudaStream_t stream;
    int ranks, rank;
};

static int failed(struct mfk_device *device, const char *what, const char *why)
{
    device->out_of_memory = false;
    snprintf(device->error, sizeof device->error, "%s: %s", what, why);
    return -1;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void nap(void)
{
    const struct timespec t = {0, 50000};

    nanosleep(&t, NULL);
}

/* A call on a communicator that does not block is done when its state is. */
static int settled(struct mfk_device *device, ncclComm_t comm,
    ncclResult_t status, const char *what)
{
    const double end = now() + SETUP_TIMEOUT_S;

    while (status == ncclInProgress) {
        if (ncclCommGetAsyncError(comm, &status) != ncclSuccess)
            return failed(device, what, ncclGetLastError(comm));
        if (status != ncclInProgress)
            break;
        if (now() > end) {
            ncclCommAbort(comm);
            return failed(device, what, "no answer; is a rank missing?");
        }
        nap();
    }
    if (status == ncclSuccess)
        return 0;
    return failed(device, what, ncclGetErrorString(status));
}

int mfk_nccl_id(struct mfk_device *device, unsigned char id[MFK_COMM_ID])
{
    ncclUniqueId unique;
    const ncclResult_t status = ncclGetUniqueId(&unique);

    _Static_assert(sizeof unique <= MFK_COMM_ID, "the id has another size");
    if (status != ncclSuccess)
        return failed(device, "ncclGetUniqueId", ncclGetErrorString(status));
    memset(id, 0, MFK_COMM_ID);
    memcpy(id, &unique, sizeof unique);
    return 0;
}

static struct mfk_comm *comm_new(struct mfk_device *device)
{
    struct mfk_comm *comm = calloc(1, sizeof *comm);

    if (!comm)
        failed(device, "NCCL", "out of memory");
    return comm;
}

int mfk_nccl_create(struct mfk_device *device, cudaStream_t stream,
    const unsigned char *id, int ranks, int rank, struct mfk_comm **comm)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId unique;
    struct mfk_comm *new = comm_new(device);
    ncclResult_t status;

    *comm = NULL;
    if (!new)
        return -1;
    config.blocking = 0;
    memcpy(&unique, id, sizeof unique);
    *new = (struct mfk_comm){.stream = stream, .ranks = ranks, .rank = rank};
    status = ncclCommInitRankConfig(&new->comm, ranks, unique, rank, &config);
    if (settled(device, new->comm, status, "ncclCommInitRankConfig")) {
        free(new);
        return -1;
    }
    *comm = new;
    return 0;
}

int mfk_nccl_split(struct mfk_device *device, struct mfk_comm *base, int color,
    int key, struct mfk_comm **comm)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    struct mfk_comm *new = comm_new(device);
    ncclResult_t status;

    *comm = NULL;
    if (!new)
        return -1;
    config.blocking = 0;
    new->stream = base->stream;
    status = ncclCommSplit(base->comm, color, key, &new->comm, &config);
    if (settled(device, base->comm, status, "ncclCommSplit") ||
        settled(device, new->comm, ncclInProgress, "ncclCommSplit"))
        goto out;
    if (settled(device, new->comm, ncclCommCount(new->comm, &new->ranks),
            "ncclCommCount") ||
        settled(device, new->comm, ncclCommUserRank(new->comm, &new->rank),
            "ncclCommUserRank"))
        goto out;
    *comm = new;
    return 0;
out:
    free(new);
    return -1;
}

void mfk_nccl_free(struct mfk_comm *comm)
{
    if (!comm)
        return;
    if (comm->comm)
        ncclCommDestroy(comm->comm);
    free(comm);
}

static ncclDataType_t type_of(enum mfk_type type)
{
    return type == MFK_BF16 ? ncclBfloat16 : ncclFloat32;
}

static size_t size_of(const struct mfk_exchange *x)
{
    return (size_t)x->width * (x->type == MFK_BF16 ? 2 : 4);
}

/* Sends and receives of exactly the rows there are, in one group. A pair
 * without rows is left out by the same test on both sides.
 */
static int exchange_exact(struct mfk_device *device, struct mfk_comm *comm,
    const struct mfk_exchange *x)
{
    const size_t row = size_of(x);
    ncclResult_t status = ncclGroupStart(), end;

    if (status != ncclSuccess)
        return failed(device, "ncclGroupStart", ncclGetErrorString(status));
    for (int p = 0; p < comm->ranks; p++) {
        const char *from = (const char *)x->from + (size_t)x->send_at[p] * row;
        char *to = (char *)x->to + (size_t)x->take_at[p] * row;

        if (x->send[p] > 0 && status == ncclSuccess)
            status = ncclSend(from, (size_t)x->send[p] * (size_t)x->width,
                type_of(x->type), p, comm->comm, comm->stream);
        if (x->take[p] > 0 &&
            (status == ncclSuccess || status == ncclInProgress))
            status = ncclRecv(to, (size_t)x->take[p] * (size_t)x->width,
                type_of(x->type), p, comm->comm, comm->stream);
        if (status == ncclInProgress)
            status = ncclSuccess;
    }
    end = ncclGroupEnd();
    if (status != ncclSuccess)
        return failed(
            device, "ncclSend or ncclRecv", ncclGetErrorString(status));
    return settled(device, comm->comm, end, "ncclGroupEnd");
}

static int copy(struct mfk_device *device, struct mfk_comm *comm, void *to,
    const void *from, size_t bytes)
{
    const cudaError_t status =
        bytes == 0 ? cudaSuccess
                   : cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                         comm->stream);

    if (status == cudaSuccess)
        return 0;
    return failed(device, "cudaMemcpyAsync", cudaGetErrorString(status));
}

/* One equal-count call over the largest number of rows, with copies before and
 * after it.
 */
static int exchange_padded(struct mfk_device *device, struct mfk_comm *comm,
    const struct mfk_exchange *x)
{
    const size_t row = size_of(x), slot = (size_t)x->most * row;
    char *out = x->scratch, *in = out + (size_t)comm->ranks * slot;
    const size_t count = (size_t)x->most * (size_t)x->width;

    for (int p = 0; p < comm->ranks; p++)
        if (copy(device, comm, out + (size_t)p * slot,
                (const char *)x->from + (size_t)x->send_at[p] * row,
                (size_t)x->send[p] * row))
            return -1;
    if (settled(device, comm->comm,
            ncclAlltoAll(
                out, in, count, type_of(x->type), comm->comm, comm->stream),
            "ncclAlltoAll"))
        return -1;
    for (int p = 0; p < comm->ranks; p++)
        if (copy(device, comm, (char *)x->to + (size_t)x->take_at[p] * row,
                in + (size_t)p * slot, (size_t)x->take[p] * row))
            return -1;
    return 0;
}

int mfk_nccl_exchange(struct mfk_device *device, struct mfk_comm *comm,
    const struct mfk_exchange *exchange)
{
    if (exchange->most == 0)
        return 0;
    return exchange->padded ? exchange_padded(device, comm, exchange)
                            : exchange_exact(device, comm, exchange);
}

int mfk_nccl_sum(
    struct mfk_device *device, struct mfk_comm *comm, int64_t n, float *values)
{
    if (n == 0)
        return 0;
    return settled(device, comm->comm,
        ncclAllReduce(values, values, (size_t)n, ncclFloat32, ncclSum,
            comm->comm, comm->stream),
        "ncclAllReduce");
}

int mfk_nccl_wait(
    struct mfk_device *device, struct mfk_comm *comm, double timeout_s)
{
    const double end = now() + timeout_s;

    for (;;) {
        const cudaError_t status = cudaStreamQuery(comm->stream);
        ncclResult_t state = ncclSuccess;

        if (status == cudaSuccess)
            return 0;
        if (status != cudaErrorNotReady)
            return failed(
                device, "cudaStreamQuery", cudaGetErrorString(status));
        if (ncclCommGetAsyncError(comm->comm, &state) != ncclSuccess ||
            (state != ncclSuccess && state != ncclInProgress)) {
            ncclCommAbort(comm->comm);
            comm->comm = NULL;
            return failed(device, "NCCL", ncclGetErrorString(state));
        }
        if (now() > end) {
            ncclCommAbort(comm->comm);
            comm->comm = NULL;
            return failed(device, "NCCL", "no answer in time; aborted");
        }
        nap();
    }
}
