/* SPDX-License-Identifier: BSD-3-Clause
 * The communicators of a layout from device to device (NCCL), beside those of
 * MPI, which find each other through them.
 */
#ifndef MFR_COMM_DEVICE_H
#define MFR_COMM_DEVICE_H

#include "kernels/device/api.h"
#include "runtime/comm.h"
#include "runtime/device.h"

struct mfr_device_comms {
    struct mfk_device *device;
    struct mfk_comm *base;
    /* Those that a layer uses: EP, ETP, EDP and the stage; NULL: one rank. */
    struct mfk_comm *comm[MF_GROUP_KINDS];
    double timeout_s;
    bool padded; /* exchanges of equal counts, else exact ones */
};

/* Collective over COMMS' base; all ranks return the same. Each is used once; a
 * group that does not answer in time is named with this rank.
 */
int mfr_device_comms_create(const struct mfr_comms *comms,
    struct mfk_device *device, double timeout_s, bool padded,
    struct mfr_device_comms *out, struct mf_error *err);
/* Those of DEVICE where it exchanges rows itself, as KIND asks: *USED is OUT,
 * else NULL. Collective as above.
 */
int mfr_device_comms_choose(const struct mfr_comms *comms,
    const struct mfr_device *device, enum mfr_comm_kind kind, bool padded,
    struct mfr_device_comms *out, const struct mfr_device_comms **used,
    struct mf_error *err);
void mfr_device_comms_free(struct mfr_device_comms *comms);

#endif
