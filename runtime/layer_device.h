/* SPDX-License-Identifier: BSD-3-Clause
 * The work of a layer inside a rank on a device. For the files of the layer
 * only.
 *
 * Rows stay on the device where this rank alone sees them (one rank in the
 * ETP x EP group) or where devices exchange them themselves; else they travel
 * through host memory and MPI, and the functions that take host memory fill or
 * read it. All functions return 0, or -1 with an error.
 */
#ifndef MFR_LAYER_DEVICE_H
#define MFR_LAYER_DEVICE_H

#include "kernels/device/device.h"
#include "runtime/dispatch_device.h"
#include "runtime/experts.h"
#include "runtime/route.h"

struct mfr_layer_device {
    struct mfk_device *device;
    const struct mfr_router *router; /* the host's, for sizes */
    int64_t local, ffn;
    enum mfk_gemm kernel;
    bool resident;                        /* rows stay on the device */
    bool observed;                        /* the host reads routes */
    const struct mfr_device_comms *comms; /* NULL: MPI */
    bool moves;                           /* rows, by comms */
    struct mfr_dispatch_device dispatch;  /* of those */
    bool weights_new;                     /* the host's are newer */
    bool gradients_old;                   /* those here count no more */
    float *x, *dx;                        /* [tokens][hidden] */
    float *logits, *scores;               /* [tokens][experts] */
    float *dlogits;                       /* the same */
    float *weights, *dweights;            /* [tokens][topk] */
    int32_t *ids;                         /* [tokens][topk] */
    int64_t *part, *counts, *place;
    float *select_bias;          /* [experts], NULL: none */
    struct mfr_tensors weight;   /* as the host's */
    struct mfr_tensors gradient; /* what the host's do not hold yet */
    float *send, *returned;      /* [tokens*topk][hidden] */
    int64_t room;                /* rows */
    float *rows, *out;           /* [room][hidden] */
    float *gate, *up, *act;      /* [room][ffn] */
    struct mfk_product *product; /* [2 * local] */
    float *scratch;              /* host memory for one gradient */
};

/* TENSORS: what the host holds, for its sizes. ALONE: one rank in the group.
 * MF_INVALID: the kernels do not do what SHAPE asks for.
 */
int mfr_layer_device_create(const struct mfr_layer_options *options,
    const struct mfr_shape *shape, const struct mfr_router *router,
    const struct mfr_tensors *tensors, bool alone,
    struct mfr_layer_device **out, struct mf_error *err);
void mfr_layer_device_free(struct mfr_layer_device *d);

int mfr_layer_device_room(
    struct mfr_layer_device *d, int64_t rows, struct mf_error *err);

/* Before the clock starts: x, and weights where the host has newer ones. */
int mfr_layer_device_input(struct mfr_layer_device *d,
    const struct mfr_tensors *weights, const float *x, struct mf_error *err);
int mfr_layer_device_output_grad(
    struct mfr_layer_device *d, const float *dy, struct mf_error *err);
/* After it has stopped: y, or dx. */
int mfr_layer_device_output(
    struct mfr_layer_device *d, float *y, struct mf_error *err);

/* The forward pass, step by step. ROUTER gets counts, and choices and places
 * where they are observed.
 */
int mfr_layer_device_route(struct mfr_layer_device *d,
    struct mfr_router *router, struct mf_error *err);
int mfr_layer_device_permute(
    struct mfr_layer_device *d, float *send, struct mf_error *err);
int mfr_layer_device_experts(struct mfr_layer_device *d, const int64_t *first,
    const float *rows, float *out, struct mf_error *err);
int mfr_layer_device_unpermute(
    struct mfr_layer_device *d, const float *returned, struct mf_error *err);

/* The backward pass, in the order of its steps. */
int mfr_layer_device_unpermute_back(
    struct mfr_layer_device *d, float *send, struct mf_error *err);
/* OUT comes in as its gradient and leaves as that of the rows. */
int mfr_layer_device_experts_back(struct mfr_layer_device *d,
    const int64_t *first, float *out, struct mf_error *err);
int mfr_layer_device_permute_back(
    struct mfr_layer_device *d, const float *send, struct mf_error *err);
int mfr_layer_device_route_back(
    struct mfr_layer_device *d, struct mf_error *err);

/* Gradients on the device times SCALE, summed over the group of KIND; with
 * comms only.
 */
int mfr_layer_device_reduce(struct mfr_layer_device *d, enum mf_group_kind kind,
    int64_t n, float *values, double scale, struct mf_error *err);

/* Adds the device's gradients to the host's; they begin anew. */
int mfr_layer_device_gradients(struct mfr_layer_device *d,
    const struct mfr_tensors *host, struct mf_error *err);
/* The rows that the experts worked on, to host memory. */
int mfr_layer_device_received(struct mfr_layer_device *d, int64_t rows,
    float *host, struct mf_error *err);

#endif
