/* SPDX-License-Identifier: BSD-3-Clause
 * The work of a layer inside a rank on a device; the exchanges stay with MPI,
 * through host memory. For the files of the layer only.
 *
 * Rows that only this rank sees (one rank in the ETP x EP group) never leave
 * the device. All functions return 0, or -1 with an error.
 */
#ifndef MFR_LAYER_DEVICE_H
#define MFR_LAYER_DEVICE_H

#include "kernels/device/device.h"
#include "runtime/experts.h"
#include "runtime/route.h"

struct mfr_layer_device {
    struct mfk_device *device;
    const struct mfr_router *router; /* the host's, for sizes */
    int64_t local, ffn;
    enum mfk_gemm kernel;
    bool resident;             /* rows stay on the device */
    bool weights_new;          /* the host's are newer */
    bool gradients_old;        /* those here count no more */
    float *x, *dx;             /* [tokens][hidden] */
    float *logits, *scores;    /* [tokens][experts] */
    float *dlogits;            /* the same */
    float *weights, *dweights; /* [tokens][topk] */
    int32_t *ids;              /* [tokens][topk] */
    int64_t *part, *counts, *place;
    struct mfr_tensors weight;   /* as the host's */
    struct mfr_tensors gradient; /* what the host's do not hold yet */
    float *send, *returned;      /* [tokens*topk][hidden] */
    int64_t room;                /* rows */
    float *rows, *out;           /* [room][hidden] */
    float *gate, *up, *act;      /* [room][ffn] */
    struct mfk_product *product; /* [2 * local] */
    float *scratch;              /* host memory for one gradient */
};

/* TENSORS: what the host holds, for its sizes. */
int mfr_layer_device_create(struct mfk_device *device,
    const struct mfr_router *router, const struct mfr_tensors *tensors,
    enum mfk_gemm kernel, bool resident, struct mfr_layer_device **out,
    struct mf_error *err);
void mfr_layer_device_free(struct mfr_layer_device *d);

/* Bytes on the device with ROWS rows of the local experts. */
double mfr_layer_device_bytes(const struct mfr_layer_device *d, int64_t rows);

int mfr_layer_device_room(
    struct mfr_layer_device *d, int64_t rows, struct mf_error *err);

/* The forward pass, step by step. ROUTER gets choices, counts and places. */
int mfr_layer_device_route(struct mfr_layer_device *d,
    struct mfr_router *router, const struct mfr_tensors *weights,
    const float *x, struct mf_error *err);
int mfr_layer_device_permute(
    struct mfr_layer_device *d, float *send, struct mf_error *err);
int mfr_layer_device_experts(struct mfr_layer_device *d, const int64_t *first,
    const float *rows, float *out, struct mf_error *err);
int mfr_layer_device_unpermute(struct mfr_layer_device *d,
    const float *returned, float *y, struct mf_error *err);

/* The backward pass, in the order of its steps. */
int mfr_layer_device_unpermute_back(struct mfr_layer_device *d, const float *dy,
    float *send, struct mf_error *err);
/* OUT comes in as its gradient and leaves as that of the rows. */
int mfr_layer_device_experts_back(struct mfr_layer_device *d,
    const int64_t *first, float *out, struct mf_error *err);
int mfr_layer_device_permute_back(
    struct mfr_layer_device *d, const float *send, struct mf_error *err);
int mfr_layer_device_route_back(
    struct mfr_layer_device *d, float *dx, struct mf_error *err);

/* Adds the device's gradients to the host's; they begin anew. */
int mfr_layer_device_gradients(struct mfr_layer_device *d,
    const struct mfr_tensors *host, struct mf_error *err);
/* The rows that the experts worked on, to host memory. */
int mfr_layer_device_received(struct mfr_layer_device *d, int64_t rows,
    float *host, struct mf_error *err);

#endif
