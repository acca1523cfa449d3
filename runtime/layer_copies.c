/* SPDX-License-Identifier: BSD-3-Clause
 * The passes of a layer whose dispatcher sends copies of tokens.
 */
#include <math.h>
#include <string.h>

#include "runtime/layer_state.h"
#include "runtime/watch.h"

static bool shared_group(const mfr_layer *layer)
{
    return layer->dispatch.splits.members > 1;
}

/* There: one gather of all tokens, or a dispatch to those that need them. */
static enum mf_phase phase_there(const mfr_layer *layer, bool forward)
{
    if (layer->copies->all)
        return forward ? MF_PHASE_GATHER : MF_PHASE_REDUCE;
    return forward ? MF_PHASE_DISPATCH : MF_PHASE_COMBINE;
}

static int meet(const mfr_layer *layer, struct mfr_watch *watch, bool there,
    struct mf_error *err)
{
    const bool forward = there == (watch->direction == MF_FORWARD);

    return shared_group(layer)
               ? mfr_watch_meet(watch, layer->comms->comm[MF_GROUP_ETP_EP],
                     phase_there(layer, forward), err)
               : 0;
}

static void mark_moved(
    const mfr_layer *layer, struct mfr_watch *watch, bool there)
{
    const bool forward = there == (watch->direction == MF_FORWARD);

    if (shared_group(layer))
        mfr_watch_mark(watch, phase_there(layer, forward),
            mfr_copies_moved(layer->copies), NAN);
}

/* Bytes of N copies of a row on each side of COPIES. */
static double bytes(const mfr_layer *layer, int64_t copies)
{
    return 2.0 * (double)copies * (double)layer->shape.hidden * sizeof(float);
}

int mfr_layer_copies_there(mfr_layer *layer, struct mfr_watch *watch,
    const float *x, float *rows, struct mf_error *err)
{
    struct mfr_copies *c = layer->copies;
    const bool forward = watch->direction == MF_FORWARD;

    if (forward && mfr_copies_routes(c, &layer->router, err))
        return -1;
    if (forward && shared_group(layer))
        mfr_watch_mark(watch, phase_there(layer, true), NAN, NAN);
    mfr_copies_pack(c, x);
    mfr_watch_mark(watch, forward ? MF_PHASE_PERMUTE : MF_PHASE_UNPERMUTE,
        bytes(layer, c->sent), NAN);
    if (meet(layer, watch, true, err) || mfr_copies_there(c, x, err))
        return -1;
    mark_moved(layer, watch, true);
    if (forward) {
        mfr_copies_expand(c, rows);
        if (layer->fault == MFR_FAULT_DROP_LAST_ROW && c->splits->rows > 0)
            memset(rows + (c->splits->rows - 1) * c->hidden, 0,
                (size_t)c->hidden * sizeof *rows);
        return 0;
    }
    mfr_copies_expand_back(c, rows);
    return mfr_copies_dweights(c, layer->router.dweights, err);
}

int mfr_layer_copies_back(mfr_layer *layer, struct mfr_watch *watch,
    const float *rows, float *y, struct mf_error *err)
{
    struct mfr_copies *c = layer->copies;
    const bool forward = watch->direction == MF_FORWARD;

    if (forward)
        mfr_copies_keep(c, rows);
    mfr_copies_sum(c, rows, forward);
    /* The sums are part of the experts' work here. */
    mfr_watch_mark(watch, MF_PHASE_EXPERTS,
        watch->times->use[MF_PHASE_EXPERTS][watch->direction].bytes,
        watch->times->use[MF_PHASE_EXPERTS][watch->direction].flops);
    if (meet(layer, watch, false, err) || mfr_copies_back(c, err))
        return -1;
    mark_moved(layer, watch, false);
    mfr_copies_unpack(c, y);
    mfr_watch_mark(watch, forward ? MF_PHASE_UNPERMUTE : MF_PHASE_PERMUTE,
        bytes(layer, c->sent), NAN);
    return 0;
}
