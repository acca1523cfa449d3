/* SPDX-License-Identifier: BSD-3-Clause
 * The moves of a layer whose peers share memory.
 */
#include <math.h>
#include <string.h>

#include "runtime/layer_state.h"
#include "runtime/watch.h"

bool mfr_layer_shared(const mfr_layer *layer)
{
    return layer->shared && layer->shared->on;
}

const char *mfr_layer_transport(const mfr_layer *layer)
{
    if (layer->device && layer->device->moves)
        return "device";
    if (!mfr_layer_shared(layer))
        return "mpi";
    return layer->shared->distant ? "mixed" : "shared";
}

void mfr_layer_shared_lend(mfr_layer *layer)
{
    const bool on = mfr_layer_shared(layer);

    mfr_experts_lend(&layer->experts, on ? mfr_shared_x(layer->shared) : NULL,
        on ? mfr_shared_y(layer->shared) : NULL);
}

static int meet(mfr_layer *layer, struct mfr_watch *watch, enum mf_phase phase,
    struct mf_error *err)
{
    return mfr_watch_meet(
        watch, layer->comms->comm[MF_GROUP_ETP_EP], phase, err);
}

static int push(mfr_layer *layer, struct mfr_watch *watch, const float *from,
    struct mf_error *err)
{
    const struct mfr_router *r = &layer->router;

    if (watch->direction == MF_BACKWARD)
        return mfr_shared_push_rows(layer->shared, from, err);
    if (mfr_shared_push_tokens(layer->shared, r, from, layer->send, err))
        return -1;
    mfr_watch_mark(watch, MF_PHASE_PERMUTE,
        (double)(r->tokens * (1 + r->topk) * r->hidden) * sizeof(float), NAN);
    return 0;
}

int mfr_layer_shared_there(mfr_layer *layer, struct mfr_watch *watch,
    const float *from, struct mf_error *err)
{
    const bool forward = watch->direction == MF_FORWARD;
    const struct mfr_splits *p = &layer->dispatch.splits;
    const char *step = forward ? "dispatch" : "combine, backward";

    if (push(layer, watch, from, err) ||
        meet(layer, watch,
            p->ep <= 1 ? (forward ? MF_PHASE_GATHER : MF_PHASE_REDUCE)
            : forward  ? MF_PHASE_DISPATCH
                       : MF_PHASE_COMBINE,
            err) ||
        mfr_shared_arrive(layer->shared, forward, step, err))
        return -1;
    if (p->ep > 1)
        mfr_watch_mark(watch, forward ? MF_PHASE_DISPATCH : MF_PHASE_COMBINE,
            mfr_dispatch_ep_bytes(&layer->dispatch), NAN);
    if (p->etp > 1) {
        step = forward ? "gather" : "reduce, backward";
        if (meet(layer, watch, forward ? MF_PHASE_GATHER : MF_PHASE_REDUCE,
                err) ||
            mfr_shared_gather(layer->shared, forward, step, err))
            return -1;
        mfr_watch_mark(watch, forward ? MF_PHASE_GATHER : MF_PHASE_REDUCE,
            mfr_dispatch_etp_bytes(&layer->dispatch), NAN);
    }
    if (forward && layer->fault == MFR_FAULT_DROP_LAST_ROW && p->rows > 0)
        memset(layer->experts.x + (p->rows - 1) * layer->shape.hidden, 0,
            (size_t)layer->shape.hidden * sizeof(float));
    return 0;
}

int mfr_layer_shared_back(mfr_layer *layer, struct mfr_watch *watch,
    float *send, struct mf_error *err)
{
    const bool forward = watch->direction == MF_FORWARD;
    const struct mfr_splits *p = &layer->dispatch.splits;
    const char *step = forward ? "reduce" : "gather, backward";

    if (p->etp > 1) {
        if (meet(layer, watch, forward ? MF_PHASE_REDUCE : MF_PHASE_GATHER,
                err) ||
            mfr_shared_reduce(layer->shared, step, err))
            return -1;
        mfr_watch_mark(watch, forward ? MF_PHASE_REDUCE : MF_PHASE_GATHER,
            mfr_dispatch_etp_bytes(&layer->dispatch), NAN);
    }
    step = forward ? "combine" : "dispatch, backward";
    if ((p->ep > 1 &&
            meet(layer, watch, forward ? MF_PHASE_COMBINE : MF_PHASE_DISPATCH,
                err)) ||
        mfr_shared_pull(layer->shared, send, step, err))
        return -1;
    if (p->ep > 1)
        mfr_watch_mark(watch, forward ? MF_PHASE_COMBINE : MF_PHASE_DISPATCH,
            mfr_dispatch_ep_bytes(&layer->dispatch), NAN);
    return 0;
}
