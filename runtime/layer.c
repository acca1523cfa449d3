/* SPDX-License-Identifier: BSD-3-Clause
 * A folded MoE layer, forward and backward.
 */
#include "runtime/layer_state.h"

#include <math.h>

#include "runtime/clock.h"

/* One running stopwatch: each mark ends a phase and begins the next. */
struct watch {
    mfr_layer *layer;
    enum mf_direction direction;
    double at;
};

static struct watch watch_start(mfr_layer *layer, enum mf_direction direction)
{
    for (int phase = 0; phase < MF_PHASES; phase++)
        layer->times.use[phase][direction] = (struct mfr_use){NAN, NAN, NAN};
    return (struct watch){layer, direction, mfr_now()};
}

static void watch_mark(
    struct watch *watch, enum mf_phase phase, double bytes, double flops)
{
    struct mfr_use *use = &watch->layer->times.use[phase][watch->direction];
    const double now = mfr_now(), spent = now - watch->at;

    use->seconds = isnan(use->seconds) ? spent : use->seconds + spent;
    use->bytes = bytes;
    use->flops = flops;
    watch->at = now;
}

/* Bytes read and written by a pass between tokens and their topk rows. */
static double rows_bytes(const mfr_layer *layer, int reads_writes)
{
    return (double)layer->shard.tokens * (double)layer->shape.hidden *
           sizeof(float) * reads_writes;
}

static double route_flops(const mfr_layer *layer)
{
    return 2.0 * (double)layer->shard.tokens * (double)layer->shape.experts *
           (double)layer->shape.hidden;
}

static double experts_flops(const mfr_layer *layer)
{
    return 6.0 * (double)layer->dispatch.splits.rows *
           (double)layer->experts.hidden * (double)layer->experts.ffn;
}

/* Counts first: they say how much room is needed. Who needs more is known to
 * the whole group, so it can agree on whether all got it.
 */
static int exchange_counts(mfr_layer *layer, struct mf_error *err)
{
    struct mfr_dispatch *d = &layer->dispatch;
    bool grew = false;
    int rc;

    if (mfr_splits_exchange(
            &d->splits, layer->comms, layer->router.counts, err))
        return -1;
    rc = mfr_dispatch_room(d, &grew, err);
    if (rc == 0)
        rc = mfr_experts_room(&layer->experts, d->splits.rows, err);
    if (rc == 0 && layer->device)
        rc = mfr_layer_device_room(layer->device, d->splits.rows, err);
    if (!grew)
        return rc;
    return mfr_agree(layer->comms->comm[MF_GROUP_ETP_EP], rc, err);
}

/* Rows in SEND (or already in place) to ROWS, by expert. */
static int rows_there(mfr_layer *layer, struct watch *watch, const float *send,
    float *rows, struct mf_error *err)
{
    struct mfr_dispatch *d = &layer->dispatch;
    const bool back = watch->direction == MF_BACKWARD;

    if (d->splits.ep > 1) {
        if (mfr_dispatch_there(d, send, rows, err))
            return -1;
        watch_mark(watch, back ? MF_PHASE_COMBINE : MF_PHASE_DISPATCH,
            mfr_dispatch_ep_bytes(d), NAN);
    }
    if (d->splits.etp > 1) {
        if (mfr_dispatch_gather(d, rows, err))
            return -1;
        watch_mark(watch, back ? MF_PHASE_REDUCE : MF_PHASE_GATHER,
            mfr_dispatch_etp_bytes(d), NAN);
    }
    mfr_dispatch_sort(d, rows);
    return 0;
}

/* ROWS, by expert, back to SEND. */
static int rows_back(mfr_layer *layer, struct watch *watch, const float *rows,
    float *send, struct mf_error *err)
{
    struct mfr_dispatch *d = &layer->dispatch;
    const bool back = watch->direction == MF_BACKWARD;

    if (d->splits.etp > 1) {
        if (mfr_dispatch_reduce(d, rows, err))
            return -1;
        watch_mark(watch, back ? MF_PHASE_GATHER : MF_PHASE_REDUCE,
            mfr_dispatch_etp_bytes(d), NAN);
    }
    if (mfr_dispatch_back(d, rows, send, err))
        return -1;
    if (d->splits.ep > 1)
        watch_mark(watch, back ? MF_PHASE_DISPATCH : MF_PHASE_COMBINE,
            mfr_dispatch_ep_bytes(d), NAN);
    return 0;
}

/* The work inside this rank, on the CPU or on a device. */

static int route(mfr_layer *layer, const float *x, struct mf_error *err)
{
    if (layer->device)
        return mfr_layer_device_route(
            layer->device, &layer->router, &layer->weights, x, err);
    mfr_router_forward(&layer->router, layer->weights.router, x);
    return 0;
}

static int permute(
    mfr_layer *layer, const float *x, float *rows, struct mf_error *err)
{
    const struct mfr_router *r = &layer->router;
    const int64_t choices = r->tokens * r->topk;

    if (layer->device && mfr_layer_device_permute(layer->device, rows, err))
        return -1;
    if (!layer->device)
        mfk_permute(r->tokens, r->topk, r->hidden, x, r->place, rows);
    if (layer->fault != MFR_FAULT_DROP_LAST_ROW || choices == 0)
        return 0;
    for (int64_t i = 0; i < r->hidden; i++)
        rows[(choices - 1) * r->hidden + i] = 0;
    return 0;
}

static int experts_there(mfr_layer *layer, struct mf_error *err)
{
    struct mfr_experts *experts = &layer->experts;
    const int64_t *first = layer->dispatch.splits.first;

    if (layer->device) {
        if (mfr_layer_device_experts(
                layer->device, first, experts->x, experts->y, err))
            return -1;
        return layer->received
                   ? mfr_layer_device_received(layer->device,
                         layer->dispatch.splits.rows, experts->x, err)
                   : 0;
    }
    mfr_experts_forward(experts, &layer->weights, first);
    return 0;
}

static int experts_back(mfr_layer *layer, struct mf_error *err)
{
    struct mfr_experts *experts = &layer->experts;
    const int64_t *first = layer->dispatch.splits.first;

    if (layer->device)
        return mfr_layer_device_experts_back(
            layer->device, first, experts->y, err);
    mfr_experts_backward(experts, &layer->weights, &layer->gradients, first);
    return 0;
}

static int unpermute(mfr_layer *layer, float *y, struct mf_error *err)
{
    const struct mfr_router *r = &layer->router;

    if (layer->device)
        return mfr_layer_device_unpermute(
            layer->device, layer->returned, y, err);
    mfk_unpermute(r->tokens, r->topk, r->hidden, layer->returned, r->place,
        r->weights, y);
    return 0;
}

static int unpermute_back(
    mfr_layer *layer, const float *dy, float *send, struct mf_error *err)
{
    const struct mfr_router *r = &layer->router;

    if (layer->device)
        return mfr_layer_device_unpermute_back(layer->device, dy, send, err);
    mfk_unpermute_backward(r->tokens, r->topk, r->hidden, layer->returned,
        r->place, r->weights, dy, send, r->dweights);
    return 0;
}

static int permute_back(mfr_layer *layer, float *dx, struct mf_error *err)
{
    const struct mfr_router *r = &layer->router;

    if (layer->device)
        return mfr_layer_device_permute_back(layer->device, layer->send, err);
    mfk_unpermute(
        r->tokens, r->topk, r->hidden, layer->send, r->place, NULL, dx);
    return 0;
}

static int route_back(mfr_layer *layer, float *dx, struct mf_error *err)
{
    if (layer->device)
        return mfr_layer_device_route_back(layer->device, dx, err);
    mfr_router_backward(&layer->router, layer->experts.kernel,
        layer->weights.router, layer->x, dx, layer->gradients.router);
    return 0;
}

int mfr_layer_forward(
    mfr_layer *layer, const float *x, float *y, struct mf_error *err)
{
    struct watch watch = watch_start(layer, MF_FORWARD);
    const struct mfr_router *r = &layer->router;
    struct mfr_dispatch *d = &layer->dispatch;
    struct mfr_experts *experts = &layer->experts;
    const int topk = (int)r->topk;
    float *send;

    layer->x = x;
    if (route(layer, x, err))
        return -1;
    watch_mark(&watch, MF_PHASE_ROUTE, NAN, route_flops(layer));
    if (exchange_counts(layer, err))
        return -1;
    if (d->splits.members > 1)
        watch_mark(&watch,
            d->splits.ep > 1 ? MF_PHASE_DISPATCH : MF_PHASE_GATHER, NAN, NAN);
    send = mfr_dispatch_source(d, layer->send, experts->x);
    if (permute(layer, x, send, err))
        return -1;
    watch_mark(&watch, MF_PHASE_PERMUTE, rows_bytes(layer, 1 + topk), NAN);
    if (rows_there(layer, &watch, send, experts->x, err))
        return -1;
    if (experts_there(layer, err))
        return -1;
    mfr_dispatch_unsort(d, experts->y);
    watch_mark(&watch, MF_PHASE_EXPERTS, NAN, experts_flops(layer));
    if (rows_back(layer, &watch, experts->y, layer->returned, err))
        return -1;
    if (unpermute(layer, y, err))
        return -1;
    watch_mark(&watch, MF_PHASE_UNPERMUTE, rows_bytes(layer, 1 + topk), NAN);
    return 0;
}

int mfr_layer_backward(
    mfr_layer *layer, const float *dy, float *dx, struct mf_error *err)
{
    struct watch watch = watch_start(layer, MF_BACKWARD);
    const struct mfr_router *r = &layer->router;
    struct mfr_dispatch *d = &layer->dispatch;
    struct mfr_experts *experts = &layer->experts;
    const int topk = (int)r->topk;
    float *send;

    if (!layer->x)
        return mf_error_set(err, MF_FAILED, "backward without a forward pass");
    send = mfr_dispatch_source(d, layer->send, experts->y);
    if (unpermute_back(layer, dy, send, err))
        return -1;
    watch_mark(
        &watch, MF_PHASE_UNPERMUTE, rows_bytes(layer, 1 + 2 * topk), NAN);
    if (rows_there(layer, &watch, send, experts->y, err))
        return -1;
    if (experts_back(layer, err))
        return -1;
    mfr_dispatch_unsort(d, experts->y);
    watch_mark(&watch, MF_PHASE_EXPERTS, NAN, 2 * experts_flops(layer));
    if (rows_back(layer, &watch, experts->y, layer->send, err))
        return -1;
    if (permute_back(layer, dx, err))
        return -1;
    watch_mark(&watch, MF_PHASE_PERMUTE, rows_bytes(layer, 1 + topk), NAN);
    if (route_back(layer, dx, err))
        return -1;
    watch_mark(&watch, MF_PHASE_ROUTE, NAN, 2 * route_flops(layer));
    layer->x = NULL;
    return 0;
}

/* The group that expert gradients are summed over. */
static enum mf_group_kind expert_group(const mfr_layer *layer)
{
    return layer->fault == MFR_FAULT_WRONG_GROUP ? MF_GROUP_TP_DP_CP
                                                 : MF_GROUP_EDP;
}

/* VALUES times SCALE, summed over the group of KIND. */
static int reduce(mfr_layer *layer, enum mf_group_kind kind, int64_t n,
    float *values, double scale, struct mf_error *err)
{
    const bool skip =
        kind == MF_GROUP_EDP && layer->fault == MFR_FAULT_SKIP_EDP_SUM;

    if (scale != 1)
        mfk_scale(n, (float)scale, values);
    if (layer->comms->group_size[kind] == 1 || skip)
        return 0;
    return mfr_sum(
        layer->comms->comm[kind], n, values, layer->sum_scratch, err);
}

int mfr_layer_reduce_gradients(
    mfr_layer *layer, double scale, struct mf_error *err)
{
    const enum mf_group_kind group = expert_group(layer);
    const int64_t n = layer->expert_values;
    const int64_t router = layer->shape.experts * layer->shape.hidden;
    struct mfr_tensors *g = &layer->gradients;
    struct watch watch = {layer, MF_BACKWARD, mfr_now()};

    if (layer->device && mfr_layer_device_gradients(layer->device, g, err))
        return -1;
    if (reduce(layer, group, n, g->gate, scale, err) ||
        reduce(layer, group, n, g->up, scale, err) ||
        reduce(layer, group, n, g->down, scale, err))
        return -1;
    if (layer->comms->group_size[MF_GROUP_EDP] > 1)
        watch_mark(&watch, MF_PHASE_GRAD_REDUCE_EXPERT,
            3.0 * (double)n * sizeof(float), NAN);
    if (reduce(layer, MF_GROUP_TP_DP_CP, router, g->router, scale, err))
        return -1;
    if (layer->comms->group_size[MF_GROUP_TP_DP_CP] > 1)
        watch_mark(&watch, MF_PHASE_GRAD_REDUCE_DENSE,
            (double)router * sizeof(float), NAN);
    return 0;
}
