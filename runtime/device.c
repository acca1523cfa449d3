/* SPDX-License-Identifier: BSD-3-Clause
 * Loading a device plug-in.
 */
#include "runtime/device.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/comm.h"
#include "runtime/collective.h"

bool mfr_backend_valid(const char *name)
{
    const size_t n = strlen(name);

    return n > 0 && n < MFR_BACKEND_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz") == n;
}

/* Where plug-in NAME should be; is it there? */
static bool find(const char *name, char *path, size_t size)
{
    const char *folder = getenv("MOEFOLD_PLUGINS");
    const int length = snprintf(path, size, "%s/%s.so",
        folder && *folder ? folder : MOEFOLD_PLUGIN_DIR, name);

    return length > 0 && (size_t)length < size && access(path, R_OK) == 0;
}

static int load(
    const char *name, struct mfr_device *device, struct mf_error *err)
{
    char path[PATH_MAX];

    if (!find(name, path, sizeof path))
        return mf_error_set(err, MF_FAILED,
            "no plug-in at %s; build moefold where nvcc is", path);
    device->plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!device->plugin) {
        const char *why = dlerror();

        return mf_error_set(
            err, MF_FAILED, "%s", why ? why : "the plug-in cannot be loaded");
    }
    return 0;
}

static int open_device(
    int local_rank, struct mfr_device *device, struct mf_error *err)
{
    const struct mfk_device_api *api = dlsym(device->plugin, MFK_DEVICE_SYMBOL);
    char why[256] = "";
    int n;

    if (!api || api->abi != MFK_DEVICE_ABI)
        return mf_error_set(err, MF_FAILED,
            "the plug-in is of another moefold; install both together");
    n = api->count(why, sizeof why);
    device->shared = local_rank >= n;
    if (n > 0)
        device->device = api->open(local_rank % n, why, sizeof why);
    if (!device->device)
        return mf_error_set(err, MF_FAILED, "%s", why);
    if (api->describe(device->device, &device->facts))
        return mfr_device_failed(device->device, err);
    return 0;
}

int mfr_device_open(const char *name, int local_rank, struct mfr_device *device,
    struct mf_error *err)
{
    *device = (struct mfr_device){0};
    if (load(name, device, err) == 0 &&
        open_device(local_rank, device, err) == 0)
        return 0;
    mfr_device_close(device);
    return -1;
}

static int local_rank_of(MPI_Comm world, int *rank, struct mf_error *err)
{
    MPI_Comm node;

    if (mfr_comm_split_node(world, 0, "node", &node, err) ||
        mfr_mpi(MPI_Comm_rank(node, rank), "MPI_Comm_rank", err) ||
        mfr_mpi(MPI_Comm_free(&node), "MPI_Comm_free", err))
        return -1;
    return 0;
}

int mfr_device_choose(MPI_Comm world, const char *backend,
    const struct mf_plan *plan, struct mfr_device *device, struct mf_error *err)
{
    const bool any = !strcmp(backend, "auto");
    int local = 0, rank = 0, missing = 0, rc;
    char path[PATH_MAX];

    *device = (struct mfr_device){0};
    if (!strcmp(backend, "cpu") || (any && (!plan || plan->cluster.cpu_ranks)))
        return 0;
    missing = any && !find("cuda", path, sizeof path);
    if (mfr_allreduce(MPI_IN_PLACE, &missing, 1, MPI_INT, MPI_MAX, world,
            "MPI_Allreduce (backend)", err))
        return -1;
    if (missing)
        return 0;
    if (local_rank_of(world, &local, err) ||
        mfr_mpi(MPI_Comm_rank(world, &rank), "MPI_Comm_rank", err))
        return -1;
    rc = mfr_device_open(any ? "cuda" : backend, local, device, err);
    rc = mfr_agree(world, rc, err);
    if (rc == 0)
        return mfr_allreduce(MPI_IN_PLACE, &device->shared, 1, MPI_C_BOOL,
            MPI_LOR, world, "MPI_Allreduce (backend)", err);
    mfr_device_close(device);
    if (!any)
        return mf_error_prefix(err, "--backend %s", backend);
    if (rank == 0)
        fprintf(stderr, "moefold-run: %s, using cpu\n", err->text);
    *err = (struct mf_error){MF_FAILED, ""};
    return 0;
}

int mfr_device_moves(const struct mfr_device *device, enum mfr_comm_kind kind,
    bool *moves, struct mf_error *err)
{
    const struct mfk_device *on = device->device;
    const bool can = on && on->api->comm_create;

    *moves = kind == MFR_COMM_NCCL ||
             (kind == MFR_COMM_AUTO && can && !device->shared);
    if (!*moves || can)
        return 0;
    if (on)
        return mf_error_set(err, MF_INVALID,
            "--comm nccl: the %s plug-in was built without NCCL",
            on->api->name);
    return mf_error_set(
        err, MF_INVALID, "--comm nccl: the CPU computes; add --backend cuda");
}

const char *mfr_device_name(const struct mfr_device *device)
{
    return device->device ? device->device->api->name : "cpu";
}

void mfr_device_close(struct mfr_device *device)
{
    if (device->device)
        device->device->api->close(device->device);
    if (device->plugin)
        dlclose(device->plugin);
    *device = (struct mfr_device){0};
}

int mfr_device_failed(const struct mfk_device *device, struct mf_error *err)
{
    return mf_error_set(err, MF_FAILED, "%s device: %s%s", device->api->name,
        device->error,
        device->out_of_memory ? "; out of memory on the device: take a smaller "
                                "micro batch, or a layout whose plan needs less"
                              : "");
}
