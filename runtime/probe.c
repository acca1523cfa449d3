/* SPDX-License-Identifier: BSD-3-Clause
 * Exchange rate and latency between two ranks.
 */
#include "runtime/probe.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "runtime/collective.h"
#include "runtime/comm.h"
#include "runtime/device.h"

enum { REPEATS = 9, ROUNDS = 64, BYTES = 4 << 20, WIDTH = 1024 };

#define TIMEOUT_S 60.0

/* What joins the two ranks. Other ranks hold one that has nothing in it. */
struct link {
    MPI_Comm world, node;
    int rank, size, peer; /* peer -1: not one of the two */
    char *out, *in;       /* in the host's memory */
    MPI_Win window;
    char *theirs; /* the peer's memory; NULL: not on one node */
    struct mfr_device on;
    struct mfk_comm *all, *direct; /* NULL: through host memory */
    void *device_out, *device_in;
};

static int failed(const struct link *l, struct mf_error *err)
{
    return mfr_device_failed(l->on.device, err);
}

static int by_mpi(const struct link *l, int bytes, struct mf_error *err)
{
    return mfr_mpi(
        MPI_Sendrecv(l->out, bytes, MPI_BYTE, l->peer, 0, l->in, bytes,
            MPI_BYTE, l->peer, 0, l->world, MPI_STATUS_IGNORE),
        "MPI_Sendrecv", err);
}

/* Rows straight into the peer's memory, and word that they are there. */
static int by_memory(const struct link *l, int bytes, struct mf_error *err)
{
    memcpy(l->theirs, l->out, (size_t)bytes);
    if (mfr_mpi(MPI_Win_sync(l->window), "MPI_Win_sync", err))
        return -1;
    return by_mpi(l, 1, err);
}

static int by_devices(const struct link *l, int bytes, struct mf_error *err)
{
    const struct mfk_device_api *api = l->on.device->api;
    const int row = WIDTH * (int)sizeof(float);
    const int rows = bytes < row ? 1 : bytes / row;
    const int none[2] = {0, 0};
    const int count[2] = {l->rank ? rows : 0, l->rank ? 0 : rows};
    const struct mfk_exchange exchange = {.type = MFK_F32,
        .width = bytes < row ? 1 : WIDTH,
        .most = rows,
        .from = l->device_out,
        .to = l->device_in,
        .send = count,
        .send_at = none,
        .take = count,
        .take_at = none};

    if (api->comm_exchange(l->on.device, l->direct, &exchange) ||
        api->comm_wait(l->on.device, l->direct, TIMEOUT_S))
        return failed(l, err);
    return 0;
}

static int by_staging(const struct link *l, int bytes, struct mf_error *err)
{
    struct mfk_device *device = l->on.device;

    if (device->api->download(device, l->out, l->device_out, (size_t)bytes))
        return failed(l, err);
    if (by_mpi(l, bytes, err))
        return -1;
    if (device->api->upload(device, l->device_in, l->in, (size_t)bytes) ||
        device->api->wait(device))
        return failed(l, err);
    return 0;
}

static int exchange(const struct link *l, int bytes, struct mf_error *err)
{
    if (l->direct)
        return by_devices(l, bytes, err);
    if (l->on.device)
        return by_staging(l, bytes, err);
    if (l->theirs && bytes > 1)
        return by_memory(l, bytes, err);
    return by_mpi(l, bytes, err);
}

static const char *via(const struct link *l)
{
    if (l->direct)
        return "NCCL";
    if (l->on.device)
        return "MPI and host memory";
    return l->theirs ? "shared memory" : "MPI";
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Median seconds of one exchange of BYTES, over REPEATS of ROUNDS each. */
static int measure(const struct link *l, int bytes, int rounds, double *seconds,
    struct mf_error *err)
{
    double spent[REPEATS];

    for (int i = -1; i < REPEATS; i++) {
        const double start = mfr_now();

        for (int round = 0; round < rounds; round++)
            if (exchange(l, bytes, err))
                return -1;
        if (i >= 0)
            spent[i] = (mfr_now() - start) / rounds;
    }
    qsort(spent, REPEATS, sizeof *spent, compare);
    *seconds = spent[REPEATS / 2];
    return 0;
}

/* Is a driver of GPUs loaded, whatever this program can use? */
static bool driver_there(void)
{
    return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/kfd", F_OK) == 0;
}

static int print(
    const struct link *l, double large, double small, struct mf_error *err)
{
    json_t *json = json_pack("{s:f, s:f, s:s, s:s, s:b}", "bytes_per_s",
        BYTES / large, "latency_s", small, "via", via(l), "device",
        l->on.device ? l->on.facts.model : "cpu", "driver", driver_there());
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    int rc = 0;

    if (!text || printf("%s\n", text) < 0 || fflush(stdout))
        rc = mf_error_set(err, MF_FAILED, "probe: cannot write the result");
    free(text);
    json_decref(json);
    return rc;
}

static int probe_pair(const struct link *l, struct mf_error *err)
{
    double small, large;

    if (measure(l, 1, ROUNDS, &small, err) || measure(l, BYTES, 2, &large, err))
        return -1;
    return l->rank == 0 ? print(l, large, small, err) : 0;
}

/* ---- what joins them ---- */

/* Memory of all ranks that each can write to, where all share a node. */
static int open_window(struct link *l, struct mf_error *err)
{
    const MPI_Aint bytes = l->peer >= 0 ? BYTES : 0;
    MPI_Aint room;
    int ranks, unit;
    void *mine;

    if (mfr_comm_split_node(l->world, l->rank, "node", &l->node, err) ||
        mfr_mpi(MPI_Comm_size(l->node, &ranks), "MPI_Comm_size", err))
        return -1;
    if (ranks < l->size)
        return 0;
    if (mfr_mpi(MPI_Win_allocate_shared(
                    bytes, 1, MPI_INFO_NULL, l->node, &mine, &l->window),
            "MPI_Win_allocate_shared", err) ||
        mfr_mpi(MPI_Win_lock_all(MPI_MODE_NOCHECK, l->window),
            "MPI_Win_lock_all", err))
        return -1;
    if (l->peer < 0)
        return 0;
    memset(mine, 0, BYTES);
    return mfr_mpi(
        MPI_Win_shared_query(l->window, l->peer, &room, &unit, &l->theirs),
        "MPI_Win_shared_query", err);
}

static int open_buffers(struct link *l, struct mf_error *err)
{
    struct mfk_device *device = l->on.device;

    if (l->peer < 0)
        return 0;
    l->out = calloc(BYTES, 1);
    l->in = calloc(BYTES, 1);
    if (!l->out || !l->in)
        return mf_error_set(err, MF_FAILED, "probe: out of memory");
    if (!device)
        return 0;
    if (device->api->alloc(device, BYTES, &l->device_out) ||
        device->api->alloc(device, BYTES, &l->device_in) ||
        device->api->fill(device, l->device_out, 0, BYTES))
        return failed(l, err);
    return 0;
}

/* The two from device to device; making that takes all ranks. */
static int open_direct(
    struct link *l, const struct mfr_options *options, struct mf_error *err)
{
    const struct mfk_device_api *api = l->on.device->api;
    unsigned char id[MFK_COMM_ID] = {0};
    bool moves;
    int rc = 0;

    if (mfr_device_moves(&l->on, options->comm, &moves, err))
        return -1;
    if (!moves)
        return 0;
    if (l->rank == 0 && api->comm_id(l->on.device, id))
        rc = failed(l, err);
    if (mfr_agree(l->world, rc, err) ||
        mfr_bcast(id, sizeof id, MPI_BYTE, 0, l->world, "MPI_Bcast", err))
        return -1;
    if (api->comm_create(l->on.device, id, l->size, l->rank, &l->all))
        rc = failed(l, err);
    if (mfr_agree(l->world, rc, err))
        return -1;
    if (api->comm_split(l->on.device, l->all, l->peer < 0, l->rank, &l->direct))
        return failed(l, err);
    return 0;
}

static int link_open(
    struct link *l, const struct mfr_options *options, struct mf_error *err)
{
    static const struct mf_plan for_gpus;
    int rc;

    if (mfr_device_choose(l->world, options->backend, &for_gpus, &l->on, err))
        return -1;
    rc = mfr_agree(l->world, open_buffers(l, err), err);
    if (rc == 0 && l->on.device)
        rc = mfr_agree(l->world, open_direct(l, options, err), err);
    if (rc == 0 && !l->on.device && !options->transport.mpi_only)
        rc = mfr_agree(l->world, open_window(l, err), err);
    return rc;
}

static void link_close(struct link *l)
{
    struct mfk_device *device = l->on.device;

    if (l->window != MPI_WIN_NULL) {
        MPI_Win_unlock_all(l->window);
        MPI_Win_free(&l->window);
    }
    if (l->node != MPI_COMM_NULL)
        MPI_Comm_free(&l->node);
    if (l->direct)
        device->api->comm_free(device, l->direct);
    if (l->all)
        device->api->comm_free(device, l->all);
    if (device) {
        device->api->free(device, l->device_out);
        device->api->free(device, l->device_in);
    }
    mfr_device_close(&l->on);
    free(l->out);
    free(l->in);
}

int mfr_probe_main(
    MPI_Comm world, const struct mfr_options *options, struct mf_error *err)
{
    struct link l = {.world = world,
        .node = MPI_COMM_NULL,
        .window = MPI_WIN_NULL,
        .peer = -1};
    int rc;

    if (mfr_mpi(MPI_Comm_rank(world, &l.rank), "MPI_Comm_rank", err) ||
        mfr_mpi(MPI_Comm_size(world, &l.size), "MPI_Comm_size", err))
        return -1;
    if (l.size < 2)
        return mf_error_set(err, MF_INVALID,
            "probe: it needs 2 ranks; start it with mpirun -n 2");
    if (l.rank == 0 || l.rank == l.size - 1)
        l.peer = l.size - 1 - l.rank;
    rc = link_open(&l, options, err);
    if (rc == 0) {
        rc = l.peer >= 0 ? probe_pair(&l, err) : 0;
        rc = mfr_agree(world, rc, err);
    }
    link_close(&l);
    return rc;
}
