/* SPDX-License-Identifier: BSD-3-Clause
 * The kernels' arguments in their order, for any plug-in.
 */
#include "kernels/device/device.h"

#include <stdio.h>

enum {
    THREADS = 256,        /* MFD_BLOCK_THREADS */
    EXPERTS_MAX = 2048,   /* MFD_EXPERTS_MAX */
    BLOCKS_MAX = 132 * 16 /* keeps any GPU busy; more blocks gain nothing */
};

#define I64(value)                                                             \
    {                                                                          \
        MFK_ARG_I64,                                                           \
        {                                                                      \
            .i64 = (value)                                                     \
        }                                                                      \
    }
#define I32(value)                                                             \
    {                                                                          \
        MFK_ARG_I32,                                                           \
        {                                                                      \
            .i32 = (value)                                                     \
        }                                                                      \
    }
#define F32(value)                                                             \
    {                                                                          \
        MFK_ARG_F32,                                                           \
        {                                                                      \
            .f32 = (value)                                                     \
        }                                                                      \
    }
#define MEMORY(value)                                                          \
    {                                                                          \
        MFK_ARG_MEMORY,                                                        \
        {                                                                      \
            .memory = (value)                                                  \
        }                                                                      \
    }

#define LAUNCH(device, kernel, work, args)                                     \
    launch(device, kernel, work, args, (int)(sizeof(args) / sizeof *(args)))

/* WORK: blocks that have something to do. */
static int launch(struct mfk_device *device, enum mfk_device_kernel kernel,
    int64_t work, const struct mfk_argument *args, int n)
{
    if (work <= 0)
        return 0;
    return device->api->launch(
        device, kernel, work < BLOCKS_MAX ? work : BLOCKS_MAX, args, n);
}

static int64_t blocks_of(int64_t n, int64_t each)
{
    return n / each + (n % each != 0);
}

/* The kernel for TYPE of a pair that stands side by side in the list. */
static enum mfk_device_kernel typed(
    enum mfk_device_kernel f32, enum mfk_type type)
{
    return type == MFK_BF16 ? (enum mfk_device_kernel)(f32 + 1) : f32;
}

bool mfk_device_router_fits(const struct mfk_device_router *router)
{
    return router->experts > 0 && router->experts <= EXPERTS_MAX &&
           router->topk > 0 && router->topk <= router->experts &&
           router->groups > 0 && router->groups <= THREADS &&
           router->experts % router->groups == 0 && router->topk_groups > 0 &&
           router->topk_groups <= router->groups &&
           router->topk <=
               router->topk_groups * (router->experts / router->groups);
}

int mfk_device_route(struct mfk_device *device,
    const struct mfk_device_router *router, const float *logits, float *scores,
    int32_t *ids, float *weights)
{
    const struct mfk_argument args[] = {I64(router->tokens),
        I64(router->experts), I64(router->topk), I32(router->sigmoid),
        I64(router->groups), I64(router->topk_groups), I32(router->renormalize),
        F32(router->scaling), I32(router->bias != NULL),
        MEMORY(router->bias ? router->bias : logits), MEMORY(logits),
        MEMORY(scores), MEMORY(ids), MEMORY(weights)};

    if (!mfk_device_router_fits(router)) {
        snprintf(device->error, sizeof device->error,
            "the device router has room for %d experts", EXPERTS_MAX);
        return -1;
    }
    return LAUNCH(device, MFK_mfd_route, router->tokens, args);
}

int mfk_device_route_backward(struct mfk_device *device,
    const struct mfk_device_router *router, const float *scores,
    const int32_t *ids, const float *dweights, const float *dscores,
    float *dlogits)
{
    const struct mfk_argument args[] = {I64(router->tokens),
        I64(router->experts), I64(router->topk), I32(router->sigmoid),
        I32(router->renormalize), F32(router->scaling), MEMORY(scores),
        MEMORY(ids), MEMORY(dweights), I32(dscores != NULL),
        MEMORY(dscores ? dscores : scores), MEMORY(dlogits)};

    return LAUNCH(device, MFK_mfd_route_backward, router->tokens, args);
}

int64_t mfk_device_group_room(int64_t n, int64_t experts)
{
    return blocks_of(n, THREADS) * experts + 1;
}

int mfk_device_group(struct mfk_device *device, int64_t n, int64_t experts,
    const int32_t *ids, int64_t *part, int64_t *counts, int64_t *place)
{
    const struct mfk_argument count[] = {
        I64(n), I64(experts), MEMORY(ids), MEMORY(part)};
    const struct mfk_argument scan[] = {
        I64(n), I64(experts), MEMORY(part), MEMORY(counts)};
    const struct mfk_argument put[] = {
        I64(n), I64(experts), MEMORY(ids), MEMORY(part), MEMORY(place)};
    const int64_t chunks = blocks_of(n, THREADS);

    if (LAUNCH(device, MFK_mfd_count, chunks, count) ||
        LAUNCH(device, MFK_mfd_scan, 1, scan))
        return -1;
    return LAUNCH(device, MFK_mfd_place, chunks, put);
}

int mfk_device_exact(
    struct mfk_device *device, const struct mfk_product *product)
{
    const struct mfk_product p = *product;
    const bool across = p.form == MFK_TN, down = p.form == MFK_NT;
    const struct mfk_argument args[] = {I64(p.m), I64(p.n), I64(p.k),
        MEMORY(p.a), I64(across ? 1 : p.k), I64(across ? p.m : 1), MEMORY(p.b),
        I64(down ? 1 : p.n), I64(down ? p.k : 1), I32(p.add), MEMORY(p.c)};

    if (p.in != MFK_F32 || p.out != MFK_F32) {
        snprintf(device->error, sizeof device->error,
            "exact products are in fp32 only");
        return -1;
    }
    return LAUNCH(
        device, MFK_mfd_product, blocks_of(p.m, 64) * blocks_of(p.n, 64), args);
}

int mfk_device_permute(struct mfk_device *device, enum mfk_type type,
    int64_t tokens, int64_t topk, int64_t hidden, const void *x,
    const int64_t *place, void *rows)
{
    const struct mfk_argument args[] = {I64(tokens), I64(topk), I64(hidden),
        MEMORY(x), MEMORY(place), MEMORY(rows)};

    return LAUNCH(device, typed(MFK_mfd_permute_f32, type), tokens, args);
}

int mfk_device_collect(struct mfk_device *device, enum mfk_type type,
    int64_t rows, int64_t hidden, const void *from, const int64_t *index,
    void *to)
{
    const struct mfk_argument args[] = {
        I64(rows), I64(hidden), MEMORY(from), MEMORY(index), MEMORY(to)};

    return LAUNCH(device, typed(MFK_mfd_collect_f32, type), rows, args);
}

int mfk_device_unpermute(struct mfk_device *device, enum mfk_type type,
    int64_t tokens, int64_t topk, int64_t hidden, const void *rows,
    const int64_t *place, const float *weights, void *y)
{
    const struct mfk_argument args[] = {I64(tokens), I64(topk), I64(hidden),
        MEMORY(rows), MEMORY(place), I32(weights != NULL),
        MEMORY(weights ? (const void *)weights : rows), MEMORY(y)};

    return LAUNCH(device, typed(MFK_mfd_unpermute_f32, type), tokens, args);
}

int mfk_device_unpermute_backward(struct mfk_device *device, enum mfk_type type,
    int64_t tokens, int64_t topk, int64_t hidden, const void *rows,
    const int64_t *place, const float *weights, const void *dy, void *drows,
    float *dweights)
{
    const struct mfk_argument args[] = {I64(tokens), I64(topk), I64(hidden),
        MEMORY(rows), MEMORY(place), MEMORY(weights), MEMORY(dy), MEMORY(drows),
        MEMORY(dweights)};

    return LAUNCH(device, typed(MFK_mfd_unpermute_backward_f32, type),
        tokens * topk, args);
}

int mfk_device_swiglu(struct mfk_device *device, enum mfk_type type,
    int64_t rows, int64_t width, const void *gate, const void *up,
    const float *weights, void *out)
{
    const struct mfk_argument args[] = {I64(rows), I64(width), MEMORY(gate),
        MEMORY(up), I32(weights != NULL),
        MEMORY(weights ? (const void *)weights : gate), MEMORY(out)};

    return LAUNCH(device, typed(MFK_mfd_swiglu_f32, type), rows, args);
}

int mfk_device_swiglu_backward(struct mfk_device *device, enum mfk_type type,
    int64_t rows, int64_t width, const void *gate, const void *up,
    const void *dout, const float *weights, void *dgate, void *dup,
    float *dweights)
{
    const struct mfk_argument args[] = {I64(rows), I64(width), MEMORY(gate),
        MEMORY(up), MEMORY(dout), I32(weights != NULL),
        MEMORY(weights ? (const void *)weights : gate), MEMORY(dgate),
        MEMORY(dup), MEMORY(weights ? (void *)dweights : dgate)};

    return LAUNCH(device, typed(MFK_mfd_swiglu_backward_f32, type), rows, args);
}

size_t mfk_exchange_scratch(const struct mfk_exchange *exchange, int ranks)
{
    const size_t element = exchange->type == MFK_BF16 ? 2 : 4;

    return 2 * (size_t)ranks * (size_t)exchange->most *
           (size_t)exchange->width * element;
}

int mfk_device_add(struct mfk_device *device, enum mfk_type type, int64_t n,
    float factor, const void *part, void *sum)
{
    const struct mfk_argument args[] = {
        I64(n), F32(factor), MEMORY(part), MEMORY(sum)};

    return LAUNCH(
        device, typed(MFK_mfd_add_f32, type), blocks_of(n, THREADS), args);
}

int mfk_device_scale(struct mfk_device *device, enum mfk_type type, int64_t n,
    float factor, void *value)
{
    const struct mfk_argument args[] = {I64(n), F32(factor), MEMORY(value)};

    return LAUNCH(
        device, typed(MFK_mfd_scale_f32, type), blocks_of(n, THREADS), args);
}

int mfk_device_widen(
    struct mfk_device *device, int64_t n, const void *from, float *to)
{
    const struct mfk_argument args[] = {I64(n), MEMORY(from), MEMORY(to)};

    return LAUNCH(device, MFK_mfd_widen, blocks_of(n, THREADS), args);
}

int mfk_device_narrow(
    struct mfk_device *device, int64_t n, const float *from, void *to)
{
    const struct mfk_argument args[] = {I64(n), MEMORY(from), MEMORY(to)};

    return LAUNCH(device, MFK_mfd_narrow, blocks_of(n, THREADS), args);
}
