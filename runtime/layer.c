/* SPDX-License-Identifier: BSD-3-Clause
 * A folded MoE layer, forward and backward.
 */
#include "runtime/layer_state.h"

#include <math.h>

#include "runtime/device.h"
#include "runtime/watch.h"

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
    bool grew;
    int rc = 0;

    if (mfr_splits_exchange(
            &d->splits, layer->comms, layer->router.counts, err))
        return -1;
    grew = mfr_dispatch_grew(d);
    if (layer->shared) {
        if (mfr_shared_room(layer->shared, grew, err))
            return -1;
        mfr_layer_shared_lend(layer);
    }
    if (!mfr_layer_shared(layer))
        rc = mfr_dispatch_room(d, err);
    if (rc == 0)
        rc = mfr_experts_room(&layer->experts, d->splits.rows, err);
    if (rc == 0 && layer->copies)
        rc = mfr_copies_room(layer->copies, err);
    if (rc == 0 && layer->device)
        rc = mfr_layer_device_room(layer->device, d->splits.rows, err);
    if (!grew)
        return rc;
    if (mfr_splits_symmetric(&d->splits, layer->comms, rc ? NULL : err))
        rc = -1;
    return mfr_agree(layer->comms->comm[MF_GROUP_ETP_EP], rc, err);
}

/* The moves between SEND and ROWS from device to device. */
static int device_there(
    mfr_layer *layer, struct mfr_watch *watch, struct mf_error *err)
{
    const bool back = watch->direction == MF_BACKWARD;
    struct mfr_layer_device *on = layer->device;
    struct mfr_dispatch_device *d = &on->dispatch;
    float *rows = back ? on->out : on->rows;

    if (layer->dispatch.splits.ep > 1) {
        if (mfr_dispatch_device_there(d, on->send, rows, err))
            return -1;
        mfr_watch_mark(watch, back ? MF_PHASE_COMBINE : MF_PHASE_DISPATCH,
            mfr_dispatch_ep_bytes(&layer->dispatch), NAN);
    }
    if (layer->dispatch.splits.etp > 1) {
        if (mfr_dispatch_device_gather(d, rows, err))
            return -1;
        mfr_watch_mark(watch, back ? MF_PHASE_REDUCE : MF_PHASE_GATHER,
            mfr_dispatch_etp_bytes(&layer->dispatch), NAN);
    }
    return mfr_dispatch_device_sort(d, rows, err);
}

static int device_back(
    mfr_layer *layer, struct mfr_watch *watch, struct mf_error *err)
{
    const bool back = watch->direction == MF_BACKWARD;
    struct mfr_layer_device *on = layer->device;
    struct mfr_dispatch_device *d = &on->dispatch;

    if (layer->dispatch.splits.etp > 1) {
        if (mfr_dispatch_device_reduce(d, on->out, err))
            return -1;
        mfr_watch_mark(watch, back ? MF_PHASE_GATHER : MF_PHASE_REDUCE,
            mfr_dispatch_etp_bytes(&layer->dispatch), NAN);
    }
    if (mfr_dispatch_device_back(
            d, on->out, back ? on->send : on->returned, err))
        return -1;
    if (layer->dispatch.splits.ep > 1)
        mfr_watch_mark(watch, back ? MF_PHASE_DISPATCH : MF_PHASE_COMBINE,
            mfr_dispatch_ep_bytes(&layer->dispatch), NAN);
    return 0;
}

/* Rows in SEND (or already in place) to ROWS, by expert. */
static int rows_there(mfr_layer *layer, struct mfr_watch *watch,
    const float *send, float *rows, struct mf_error *err)
{
    struct mfr_dispatch *d = &layer->dispatch;
    const bool back = watch->direction == MF_BACKWARD;
    const MPI_Comm ep = layer->comms->comm[MF_GROUP_EP];
    const MPI_Comm etp = layer->comms->comm[MF_GROUP_ETP];

    if (layer->device && layer->device->moves)
        return device_there(layer, watch, err);
    if (mfr_layer_shared(layer))
        return mfr_layer_shared_there(layer, watch, send, err);
    if (d->splits.ep > 1) {
        if (mfr_watch_meet(
                watch, ep, back ? MF_PHASE_COMBINE : MF_PHASE_DISPATCH, err) ||
            mfr_dispatch_there(d, send, rows, err))
            return -1;
        mfr_watch_mark(watch, back ? MF_PHASE_COMBINE : MF_PHASE_DISPATCH,
            mfr_dispatch_ep_bytes(d), NAN);
    }
    if (d->splits.etp > 1) {
        if (mfr_watch_meet(
                watch, etp, back ? MF_PHASE_REDUCE : MF_PHASE_GATHER, err) ||
            mfr_dispatch_gather(d, rows, err))
            return -1;
        mfr_watch_mark(watch, back ? MF_PHASE_REDUCE : MF_PHASE_GATHER,
            mfr_dispatch_etp_bytes(d), NAN);
    }
    mfr_dispatch_sort(d, rows);
    return 0;
}

/* ROWS, by expert, back to SEND. */
static int rows_back(mfr_layer *layer, struct mfr_watch *watch,
    const float *rows, float *send, struct mf_error *err)
{
    struct mfr_dispatch *d = &layer->dispatch;
    const bool back = watch->direction == MF_BACKWARD;
    const MPI_Comm ep = layer->comms->comm[MF_GROUP_EP];
    const MPI_Comm etp = layer->comms->comm[MF_GROUP_ETP];

    if (layer->device && layer->device->moves)
        return device_back(layer, watch, err);
    if (mfr_layer_shared(layer))
        return mfr_layer_shared_back(layer, watch, send, err);
    if (d->splits.etp > 1) {
        if (mfr_watch_meet(
                watch, etp, back ? MF_PHASE_GATHER : MF_PHASE_REDUCE, err) ||
            mfr_dispatch_reduce(d, rows, err))
            return -1;
        mfr_watch_mark(watch, back ? MF_PHASE_GATHER : MF_PHASE_REDUCE,
            mfr_dispatch_etp_bytes(d), NAN);
    }
    if (d->splits.ep > 1 &&
        mfr_watch_meet(
            watch, ep, back ? MF_PHASE_DISPATCH : MF_PHASE_COMBINE, err))
        return -1;
    if (mfr_dispatch_back(d, rows, send, err))
        return -1;
    if (d->splits.ep > 1)
        mfr_watch_mark(watch, back ? MF_PHASE_DISPATCH : MF_PHASE_COMBINE,
            mfr_dispatch_ep_bytes(d), NAN);
    return 0;
}

/* The work inside this rank, on the CPU or on a device. */

static int route(mfr_layer *layer, const float *x, struct mf_error *err)
{
    if (layer->device)
        return mfr_layer_device_route(layer->device, &layer->router, err);
    mfr_router_forward(&layer->router, &layer->weights, x);
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

/* What the experts made, for the way back. */
static int unsort(mfr_layer *layer, struct mf_error *err)
{
    struct mfr_layer_device *on = layer->device;

    if (on && on->moves)
        return mfr_dispatch_device_unsort(&on->dispatch, on->out, err);
    if (!mfr_layer_shared(layer))
        mfr_dispatch_unsort(&layer->dispatch, layer->experts.y);
    return 0;
}

static int experts_there(mfr_layer *layer, struct mf_error *err)
{
    struct mfr_experts *experts = &layer->experts;
    const int64_t *first = layer->dispatch.splits.first;

    if (!layer->device)
        mfr_experts_forward(experts, &layer->weights, first);
    else if (mfr_layer_device_experts(
                 layer->device, first, experts->x, experts->y, err))
        return -1;
    if (layer->device && layer->observed &&
        mfr_layer_device_received(
            layer->device, layer->dispatch.splits.rows, experts->x, err))
        return -1;
    return unsort(layer, err);
}

static int experts_back(mfr_layer *layer, struct mf_error *err)
{
    struct mfr_experts *experts = &layer->experts;
    const int64_t *first = layer->dispatch.splits.first;

    if (!layer->device)
        mfr_experts_backward(
            experts, &layer->weights, &layer->gradients, first);
    else if (mfr_layer_device_experts_back(
                 layer->device, first, experts->y, err))
        return -1;
    return unsort(layer, err);
}

static int unpermute(mfr_layer *layer, float *y, struct mf_error *err)
{
    const struct mfr_router *r = &layer->router;

    if (layer->device)
        return mfr_layer_device_unpermute(layer->device, layer->returned, err);
    mfk_unpermute(r->tokens, r->topk, r->hidden, layer->returned, r->place,
        r->weights, y);
    return 0;
}

static int unpermute_back(
    mfr_layer *layer, const float *dy, float *send, struct mf_error *err)
{
    const struct mfr_router *r = &layer->router;

    if (layer->device)
        return mfr_layer_device_unpermute_back(layer->device, send, err);
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
        return mfr_layer_device_route_back(layer->device, err);
    mfr_router_backward(&layer->router, layer->experts.kernel, &layer->weights,
        layer->x, dx, &layer->gradients);
    return 0;
}

/* The clock of the device, where nothing of a pass happens elsewhere. */
static struct mfk_device *device_clock(const mfr_layer *layer)
{
    return layer->device && layer->device->resident ? layer->device->device
                                                    : NULL;
}

/* Look for errors of the exchanges, read the clock, hand the result over. */
static int pass_end(
    mfr_layer *layer, struct mfr_watch *watch, float *out, struct mf_error *err)
{
    struct mfr_layer_device *on = layer->device;

    if (!on)
        return 0;
    if (on->comms && on->device->api->comm_wait(
                         on->device, on->comms->base, on->comms->timeout_s)) {
        mfr_device_failed(on->device, err);
        return mf_error_prefix(
            err, "rank %d, ep or etp group", layer->comms->rank);
    }
    return mfr_watch_end(watch, err) || mfr_layer_device_output(on, out, err)
               ? -1
               : 0;
}

/* What the exchange of counts belongs to. */
static enum mf_phase first_move(const mfr_layer *layer)
{
    return layer->dispatch.splits.ep > 1 &&
                   !(layer->copies && layer->copies->all)
               ? MF_PHASE_DISPATCH
               : MF_PHASE_GATHER;
}

int mfr_layer_forward(
    mfr_layer *layer, const float *x, float *y, struct mf_error *err)
{
    struct mfr_watch watch;
    const struct mfr_router *r = &layer->router;
    struct mfr_dispatch *d = &layer->dispatch;
    struct mfr_experts *experts = &layer->experts;
    const int topk = (int)r->topk;
    float *send;

    layer->x = x;
    if (layer->device &&
        mfr_layer_device_input(layer->device, &layer->weights, x, err))
        return -1;
    mfr_watch_start(&watch, &layer->times, MF_FORWARD, device_clock(layer));
    if (route(layer, x, err))
        return -1;
    mfr_watch_mark(&watch, MF_PHASE_ROUTE, NAN, route_flops(layer));
    if ((d->splits.members > 1 &&
            mfr_watch_meet(&watch, layer->comms->comm[MF_GROUP_ETP_EP],
                first_move(layer), err)) ||
        exchange_counts(layer, err) || mfr_layer_poison(layer, true, err))
        return -1;
    if (d->splits.members > 1)
        mfr_watch_mark(&watch, first_move(layer), NAN, NAN);
    if (layer->copies) {
        if (mfr_layer_copies_there(layer, &watch, x, experts->x, err))
            return -1;
    } else if (mfr_layer_shared(layer)) {
        if (mfr_layer_shared_there(layer, &watch, x, err))
            return -1;
    } else {
        send = mfr_dispatch_source(d, layer->send, experts->x);
        if (permute(layer, x, send, err))
            return -1;
        mfr_watch_mark(
            &watch, MF_PHASE_PERMUTE, rows_bytes(layer, 1 + topk), NAN);
        if (rows_there(layer, &watch, send, experts->x, err))
            return -1;
    }
    if (experts_there(layer, err))
        return -1;
    mfr_watch_mark(&watch, MF_PHASE_EXPERTS, NAN, experts_flops(layer));
    if (layer->copies) {
        if (mfr_layer_copies_back(layer, &watch, experts->y, y, err))
            return -1;
    } else {
        if (rows_back(layer, &watch, experts->y, layer->returned, err) ||
            unpermute(layer, y, err))
            return -1;
        mfr_watch_mark(
            &watch, MF_PHASE_UNPERMUTE, rows_bytes(layer, 1 + topk), NAN);
    }
    if (layer->shared_experts &&
        mfr_shared_experts_forward(layer, &watch, x, y, err))
        return -1;
    return pass_end(layer, &watch, y, err);
}

int mfr_layer_backward(
    mfr_layer *layer, const float *dy, float *dx, struct mf_error *err)
{
    struct mfr_watch watch;
    const struct mfr_router *r = &layer->router;
    struct mfr_dispatch *d = &layer->dispatch;
    struct mfr_experts *experts = &layer->experts;
    const int topk = (int)r->topk;
    float *send;

    if (!layer->x)
        return mf_error_set(err, MF_FAILED, "backward without a forward pass");
    if (mfr_layer_poison(layer, false, err))
        return -1;
    if (layer->device && mfr_layer_device_output_grad(layer->device, dy, err))
        return -1;
    mfr_watch_start(&watch, &layer->times, MF_BACKWARD, device_clock(layer));
    if (layer->copies) {
        if (mfr_layer_copies_there(layer, &watch, dy, experts->y, err))
            return -1;
    } else {
        send = mfr_layer_shared(layer)
                   ? layer->send
                   : mfr_dispatch_source(d, layer->send, experts->y);
        if (unpermute_back(layer, dy, send, err))
            return -1;
        mfr_watch_mark(
            &watch, MF_PHASE_UNPERMUTE, rows_bytes(layer, 1 + 2 * topk), NAN);
        if (rows_there(layer, &watch, send, experts->y, err))
            return -1;
    }
    if (experts_back(layer, err))
        return -1;
    mfr_watch_mark(&watch, MF_PHASE_EXPERTS, NAN, 2 * experts_flops(layer));
    if (layer->copies) {
        if (mfr_layer_copies_back(layer, &watch, experts->y, dx, err))
            return -1;
    } else {
        if (rows_back(layer, &watch, experts->y, layer->send, err) ||
            permute_back(layer, dx, err))
            return -1;
        mfr_watch_mark(
            &watch, MF_PHASE_PERMUTE, rows_bytes(layer, 1 + topk), NAN);
    }
    if (route_back(layer, dx, err))
        return -1;
    mfr_watch_mark(&watch, MF_PHASE_ROUTE, NAN, 2 * route_flops(layer));
    if (layer->shared_experts &&
        mfr_shared_experts_backward(layer, &watch, dy, dx, err))
        return -1;
    layer->x = NULL;
    return pass_end(layer, &watch, dx, err);
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

/* The same from device to device. */
static int device_reduce_gradients(
    mfr_layer *layer, double scale, struct mf_error *err)
{
    const enum mf_group_kind group = expert_group(layer);
    const struct mfr_tensors *t = &layer->weights;
    const int64_t n = t->experts * t->ffn * layer->shape.hidden;
    const int64_t router = layer->shape.experts * layer->shape.hidden;
    struct mfr_layer_device *on = layer->device;
    const struct mfr_tensors *g = &on->gradient;
    struct mfr_watch watch;

    mfr_watch_resume(&watch, &layer->times, MF_BACKWARD, on->device);
    if (mfr_layer_device_reduce(on, group, n, g->gate, scale, err) ||
        mfr_layer_device_reduce(on, group, n, g->up, scale, err) ||
        mfr_layer_device_reduce(on, group, n, g->down, scale, err))
        return -1;
    if (layer->comms->group_size[MF_GROUP_EDP] > 1)
        mfr_watch_mark(&watch, MF_PHASE_GRAD_REDUCE_EXPERT,
            3.0 * (double)n * sizeof(float), NAN);
    if (mfr_layer_device_reduce(
            on, MF_GROUP_TP_DP_CP, router, g->router, scale, err))
        return -1;
    mfr_watch_mark(&watch, MF_PHASE_GRAD_REDUCE_DENSE,
        (double)router * sizeof(float), NAN);
    if (mfr_watch_end(&watch, err))
        return -1;
    return layer->observed
               ? mfr_layer_device_gradients(on, &layer->gradients, err)
               : 0;
}

/* Those that are summed over the group of SUM; the bytes they have in *BYTES.
 * A fault may put another group in its place.
 */
static int reduce_all(mfr_layer *layer, enum mf_group_kind sum, double scale,
    double *bytes, struct mf_error *err)
{
    const enum mf_group_kind group =
        sum == MF_GROUP_EDP ? expert_group(layer) : sum;
    struct mfr_view view[MFR_VIEWS_MOST];
    const int views = mfr_tensors_views(
        &layer->shape, &layer->comms->coords, &layer->gradients, view);

    *bytes = 0;
    for (int i = 0; i < views; i++) {
        const int64_t n = mfr_view_count(&view[i]);

        if (view[i].sum != sum)
            continue;
        if (reduce(layer, group, n, view[i].values, scale, err))
            return -1;
        *bytes += (double)n * sizeof(float);
    }
    return 0;
}

int mfr_layer_reduce_gradients(
    mfr_layer *layer, double scale, struct mf_error *err)
{
    const int *size = layer->comms->group_size;
    double expert, dense, small;
    struct mfr_watch watch;

    if (layer->device && layer->device->comms)
        return device_reduce_gradients(layer, scale, err);
    mfr_watch_resume(&watch, &layer->times, MF_BACKWARD, NULL);
    if (layer->device &&
        mfr_layer_device_gradients(layer->device, &layer->gradients, err))
        return -1;
    if ((size[MF_GROUP_EDP] > 1 &&
            mfr_watch_meet(&watch, layer->comms->comm[expert_group(layer)],
                MF_PHASE_GRAD_REDUCE_EXPERT, err)) ||
        reduce_all(layer, MF_GROUP_EDP, scale, &expert, err))
        return -1;
    if (size[MF_GROUP_EDP] > 1)
        mfr_watch_mark(&watch, MF_PHASE_GRAD_REDUCE_EXPERT, expert, NAN);
    if ((size[MF_GROUP_TP_DP_CP] > 1 &&
            mfr_watch_meet(&watch, layer->comms->comm[MF_GROUP_TP_DP_CP],
                MF_PHASE_GRAD_REDUCE_DENSE, err)) ||
        reduce_all(layer, MF_GROUP_DP_CP, scale, &dense, err) ||
        reduce_all(layer, MF_GROUP_TP_DP_CP, scale, &small, err))
        return -1;
    if (size[MF_GROUP_TP_DP_CP] > 1)
        mfr_watch_mark(&watch, MF_PHASE_GRAD_REDUCE_DENSE, dense + small, NAN);
    return 0;
}
