/* SPDX-License-Identifier: BSD-3-Clause
 * The work inside one rank, on a device: as kernels/kernels.h, with all arrays
 * in device memory. Queued, not waited for. 0, or -1 with device->error set.
 */
#ifndef MFK_DEVICE_H
#define MFK_DEVICE_H

#include "kernels/device/api.h"

/* What a router does with logits. */
struct mfk_device_router {
    int64_t tokens, experts, topk;
    bool sigmoid;                /* else softmax */
    int64_t groups, topk_groups; /* 1 and 1: no groups */
    bool renormalize;
    float scaling;
    const float *bias; /* [experts], NULL: none */
};

/* Are its sizes within what the kernel has room for? */
bool mfk_device_router_fits(const struct mfk_device_router *router);

/* logits [tokens][experts] to scores of the same shape, ids and weights
 * [tokens][topk].
 */
int mfk_device_route(struct mfk_device *device,
    const struct mfk_device_router *router, const float *logits, float *scores,
    int32_t *ids, float *weights);
/* DSCORES NULL: none. */
int mfk_device_route_backward(struct mfk_device *device,
    const struct mfk_device_router *router, const float *scores,
    const int32_t *ids, const float *dweights, const float *dscores,
    float *dlogits);

/* Values of int64_t that mfk_device_group needs in PART. */
int64_t mfk_device_group_room(int64_t n, int64_t experts);
/* ids[n] to counts[experts] and place[n]. */
int mfk_device_group(struct mfk_device *device, int64_t n, int64_t experts,
    const int32_t *ids, int64_t *part, int64_t *counts, int64_t *place);

/* A product whose rows depend on themselves alone; fp32. */
int mfk_device_exact(
    struct mfk_device *device, const struct mfk_product *product);

/* Rows of HIDDEN elements of TYPE. */
int mfk_device_permute(struct mfk_device *device, enum mfk_type type,
    int64_t tokens, int64_t topk, int64_t hidden, const void *x,
    const int64_t *place, void *rows);
int mfk_device_collect(struct mfk_device *device, enum mfk_type type,
    int64_t rows, int64_t hidden, const void *from, const int64_t *index,
    void *to);
int mfk_device_unpermute(struct mfk_device *device, enum mfk_type type,
    int64_t tokens, int64_t topk, int64_t hidden, const void *rows,
    const int64_t *place, const float *weights, void *y);
int mfk_device_unpermute_backward(struct mfk_device *device, enum mfk_type type,
    int64_t tokens, int64_t topk, int64_t hidden, const void *rows,
    const int64_t *place, const float *weights, const void *dy, void *drows,
    float *dweights);

/* [rows][width]; WEIGHTS [rows] NULL: none, and no DWEIGHTS. */
int mfk_device_swiglu(struct mfk_device *device, enum mfk_type type,
    int64_t rows, int64_t width, const void *gate, const void *up,
    const float *weights, void *out);
int mfk_device_swiglu_backward(struct mfk_device *device, enum mfk_type type,
    int64_t rows, int64_t width, const void *gate, const void *up,
    const void *dout, const float *weights, void *dgate, void *dup,
    float *dweights);

/* Bytes of scratch that a padded exchange among RANKS ranks needs. */
size_t mfk_exchange_scratch(const struct mfk_exchange *exchange, int ranks);

/* sum[i] += factor * part[i]; value[i] *= factor. */
int mfk_device_add(struct mfk_device *device, enum mfk_type type, int64_t n,
    float factor, const void *part, void *sum);
int mfk_device_scale(struct mfk_device *device, enum mfk_type type, int64_t n,
    float factor, void *value);
/* bf16 to fp32 and back. */
int mfk_device_widen(
    struct mfk_device *device, int64_t n, const void *from, float *to);
int mfk_device_narrow(
    struct mfk_device *device, int64_t n, const float *from, void *to);

#endif
