/* SPDX-License-Identifier: BSD-3-Clause
 * Filling what a pass has to write with NaN, so that a row never written shows.
 */
#include <math.h>

#include "runtime/collective.h"
#include "runtime/layer_state.h"

/* VALUES NULL: nothing. */
static void fill(float *values, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; values && i < rows * columns; i++)
        values[i] = NAN;
}

/* Peers read this rank's rows and write to them: all stand still. */
static int fill_shared(mfr_layer *layer, struct mf_error *err)
{
    const MPI_Comm group = layer->comms->comm[MF_GROUP_ETP_EP];
    struct mfr_shared *s = layer->shared;

    if (mfr_barrier(group, "MPI_Barrier (before poison)", err))
        return -1;
    fill(mfr_shared_y(s), s->room, s->hidden);
    return mfr_barrier(group, "MPI_Barrier (after poison)", err);
}

int mfr_layer_poison(mfr_layer *layer, bool forward, struct mf_error *err)
{
    const int64_t h = layer->shape.hidden;
    const int64_t choices = layer->shard.tokens * layer->shape.topk;
    struct mfr_dispatch *d = &layer->dispatch;
    struct mfr_experts *e = &layer->experts;

    if (!layer->observed || layer->device)
        return 0;
    fill(layer->send, choices, h);
    fill(d->by_source, d->room, h);
    fill(d->parts, d->part_room, h);
    if (layer->shared)
        fill(layer->shared->by_source, layer->shared->source_room, h);
    if (layer->copies)
        mfr_copies_poison(layer->copies, forward);
    if (!e->lent)
        fill(e->y, e->room, h);
    if (forward) {
        fill(layer->returned, choices, h);
        fill(e->gate, e->room, e->ffn);
        fill(e->up, e->room, e->ffn);
        fill(e->act, e->room, e->ffn);
        if (!e->lent)
            fill(e->x, e->room, h);
        /* Windows come filled; peers may be writing to them now. */
        return 0;
    }
    return mfr_layer_shared(layer) ? fill_shared(layer, err) : 0;
}
