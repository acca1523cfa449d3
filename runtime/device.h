/* SPDX-License-Identifier: BSD-3-Clause
 * The device plug-in of this process: found, checked and opened when asked
 * for, so that one program starts with and without a driver.
 */
#ifndef MFR_DEVICE_H
#define MFR_DEVICE_H

#include <mpi.h>
#include <stdbool.h>

#include "kernels/device/api.h"
#include "planner/layout/plan.h"

#define MFR_BACKEND_MAX 16

/* What moves rows between ranks: MPI through host memory, or the devices
 * themselves; auto: these, where each rank has a device of its own.
 */
enum mfr_comm_kind { MFR_COMM_AUTO, MFR_COMM_MPI, MFR_COMM_NCCL };

struct mfr_device {
    void *plugin; /* of dlopen */
    struct mfk_device *device;
    struct mfk_device_facts facts;
    bool shared; /* more ranks than devices on some node */
};

/* Is NAME a name that a backend can have (lower-case letters)? */
bool mfr_backend_valid(const char *name);

/* Open device LOCAL_RANK modulo the devices there are of plug-in NAME
 * ("cuda"), from $MOEFOLD_PLUGINS or the installed folder. MF_FAILED with the
 * reason when there is no plug-in, no driver or no device.
 */
int mfr_device_open(const char *name, int local_rank, struct mfr_device *device,
    struct mf_error *err);
void mfr_device_close(struct mfr_device *device);

/* What BACKEND asks for: "cpu" nothing; "auto" the CUDA device when PLAN is
 * for GPUs and the plug-in is installed, and where a rank has no device the
 * CPU on all, said on rank 0's standard error; else that plug-in. PLAN may be
 * NULL. Ranks of a node take its devices in turn. Collective over WORLD; all
 * ranks return the same.
 */
int mfr_device_choose(MPI_Comm world, const char *backend,
    const struct mf_plan *plan, struct mfr_device *device,
    struct mf_error *err);
/* Do devices exchange rows themselves, as KIND asks? MF_INVALID when it asks
 * for what cannot be.
 */
int mfr_device_moves(const struct mfr_device *device, enum mfr_comm_kind kind,
    bool *moves, struct mf_error *err);
/* "cpu", or the plug-in's name. */
const char *mfr_device_name(const struct mfr_device *device);

/* An error of the device as one of ours; returns -1. */
int mfr_device_failed(const struct mfk_device *device, struct mf_error *err);

#endif
