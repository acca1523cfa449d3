/* SPDX-License-Identifier: BSD-3-Clause
 * Making and trying communicators from device to device.
 */
#include "runtime/comm_device.h"

#include <stdlib.h>

#include "runtime/collective.h"

static const enum mf_group_kind used_kinds[] = {
    MF_GROUP_EP, MF_GROUP_ETP, MF_GROUP_EDP, MF_GROUP_TP_DP_CP};

/* For a group to answer, and for the exchanges of a pass. */
#define TIMEOUT_S 60.0

enum { USED_KINDS = sizeof used_kinds / sizeof *used_kinds };

static int create_base(const struct mfr_comms *comms,
    struct mfr_device_comms *out, struct mf_error *err)
{
    const struct mfk_device_api *api = out->device->api;
    unsigned char id[MFK_COMM_ID] = {0};
    int rc = 0;

    if (comms->rank == 0 && api->comm_id(out->device, id))
        rc = mfr_device_failed(out->device, err);
    if (mfr_agree(comms->base, rc, err) ||
        mfr_bcast(id, sizeof id, MPI_BYTE, 0, comms->base, "MPI_Bcast", err))
        return -1;
    if (api->comm_create(out->device, id, comms->size, comms->rank, &out->base))
        rc = mfr_device_failed(out->device, err);
    return mfr_agree(comms->base, rc, err);
}

/* One value summed: who answers must be as many as the layout says. */
static int use(const struct mfr_comms *comms, enum mf_group_kind kind,
    struct mfr_device_comms *out, struct mf_error *err)
{
    struct mfk_device *device = out->device;
    const struct mfk_device_api *api = device->api;
    float one = 1;
    void *value = NULL;
    int rc = -1;

    if (api->alloc(device, sizeof one, &value) == 0 &&
        api->upload(device, value, &one, sizeof one) == 0 &&
        api->comm_sum(device, out->comm[kind], 1, value) == 0 &&
        api->comm_wait(device, out->comm[kind], out->timeout_s) == 0 &&
        api->download(device, &one, value, sizeof one) == 0)
        rc = 0;
    api->free(device, value);
    if (rc) {
        mfr_device_failed(device, err);
        return mf_error_prefix(
            err, "rank %d, %s group", comms->rank, mf_group_kind_name(kind));
    }
    if (one == (float)comms->group_size[kind])
        return 0;
    return mf_error_set(err, MF_FAILED,
        "rank %d: %g ranks answer in the %s group of %d", comms->rank,
        (double)one, mf_group_kind_name(kind), comms->group_size[kind]);
}

static int create_group(const struct mfr_comms *comms, enum mf_group_kind kind,
    struct mfr_device_comms *out, struct mf_error *err)
{
    int first = comms->rank, rc = 0;

    if (mfr_allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN,
            comms->comm[kind], "MPI_Allreduce", err))
        return -1;
    if (out->device->api->comm_split(out->device, out->base, first,
            comms->group_rank[kind], &out->comm[kind]))
        rc = mfr_device_failed(out->device, err);
    if (mfr_agree(comms->base, rc, err))
        return -1;
    return mfr_agree(comms->base, use(comms, kind, out, err), err);
}

int mfr_device_comms_create(const struct mfr_comms *comms,
    struct mfk_device *device, double timeout_s, bool padded,
    struct mfr_device_comms *out, struct mf_error *err)
{
    *out = (struct mfr_device_comms){
        .device = device, .timeout_s = timeout_s, .padded = padded};
    if (!device->api->comm_create)
        return mf_error_set(err, MF_FAILED,
            "the %s plug-in was built without NCCL; use --comm mpi",
            device->api->name);
    if (create_base(comms, out, err))
        goto out;
    for (int i = 0; i < USED_KINDS; i++)
        if (comms->group_size[used_kinds[i]] > 1 &&
            create_group(comms, used_kinds[i], out, err))
            goto out;
    return 0;
out:
    mfr_device_comms_free(out);
    return -1;
}

int mfr_device_comms_choose(const struct mfr_comms *comms,
    const struct mfr_device *device, enum mfr_comm_kind kind, bool padded,
    struct mfr_device_comms *out, const struct mfr_device_comms **used,
    struct mf_error *err)
{
    bool moves;

    *out = (struct mfr_device_comms){0};
    *used = NULL;
    if (mfr_device_moves(device, kind, &moves, err))
        return -1;
    if (!moves)
        return 0;
    if (mfr_device_comms_create(
            comms, device->device, TIMEOUT_S, padded, out, err))
        return -1;
    *used = out;
    return 0;
}

void mfr_device_comms_free(struct mfr_device_comms *comms)
{
    if (!comms->device)
        return;
    for (int kind = 0; kind < MF_GROUP_KINDS; kind++)
        if (comms->comm[kind])
            comms->device->api->comm_free(comms->device, comms->comm[kind]);
    if (comms->base)
        comms->device->api->comm_free(comms->device, comms->base);
    *comms = (struct mfr_device_comms){0};
}
