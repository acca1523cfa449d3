/* SPDX-License-Identifier: BSD-3-Clause
 * The five steps around the experts from device to device: as dispatch.h, with
 * all rows in device memory. Queued, not waited for.
 */
#ifndef MFR_DISPATCH_DEVICE_H
#define MFR_DISPATCH_DEVICE_H

#include "runtime/comm_device.h"
#include "runtime/splits.h"

struct mfr_dispatch_device {
    const struct mfr_device_comms *comms;
    const struct mfr_splits *splits;
    int64_t hidden;
    int64_t room, part_room, scratch_room; /* rows, rows, bytes */
    float *by_source, *parts;
    void *scratch;
    int64_t *sort, *unsort; /* [room] where each row comes from */
    int64_t *index;         /* the host's copy of one of them, [room] */
    int64_t most_pair;      /* rows between two ranks of the ETP x EP group */
    int *zeros;             /* [ranks] */
    int *counts;            /* [ranks] scratch of the gather */
};

int mfr_dispatch_device_init(struct mfr_dispatch_device *d,
    const struct mfr_device_comms *comms, const struct mfr_splits *splits,
    int64_t hidden, struct mf_error *err);
void mfr_dispatch_device_free(struct mfr_dispatch_device *d);

/* After the counts: make room and upload where rows go. */
int mfr_dispatch_device_room(
    struct mfr_dispatch_device *d, struct mf_error *err);

/* Where to put the rows that go there, and the three moves. */
float *mfr_dispatch_device_source(
    const struct mfr_dispatch_device *d, float *send, float *rows);
int mfr_dispatch_device_there(struct mfr_dispatch_device *d, const float *send,
    float *rows, struct mf_error *err);
int mfr_dispatch_device_gather(
    struct mfr_dispatch_device *d, float *rows, struct mf_error *err);
int mfr_dispatch_device_sort(
    struct mfr_dispatch_device *d, float *rows, struct mf_error *err);

/* The way back. */
int mfr_dispatch_device_unsort(
    struct mfr_dispatch_device *d, const float *rows, struct mf_error *err);
int mfr_dispatch_device_reduce(
    struct mfr_dispatch_device *d, const float *rows, struct mf_error *err);
int mfr_dispatch_device_back(struct mfr_dispatch_device *d, const float *rows,
    float *send, struct mf_error *err);

#endif
