/* SPDX-License-Identifier: BSD-3-Clause
 * What is inside a layer; for the files of the layer only.
 */
#ifndef MFR_LAYER_STATE_H
#define MFR_LAYER_STATE_H

#include "runtime/copies.h"
#include "runtime/dispatch.h"
#include "runtime/experts.h"
#include "runtime/layer.h"
#include "runtime/layer_device.h"
#include "runtime/route.h"
#include "runtime/shared.h"
#include "runtime/shared_experts.h"

struct mfr_layer {
    struct mfr_shape shape;
    const struct mfr_comms *comms;
    enum mfr_fault fault;
    bool observed; /* the host needs results, wherever they are */
    struct mfr_shard shard;
    struct mfr_tensors weights, gradients;
    struct mfr_router router;
    struct mfr_dispatch dispatch;
    struct mfr_shared *shared; /* NULL: MPI alone */
    struct mfr_copies *copies; /* allgather, dedup; NULL: alltoall */
    struct mfr_experts experts;
    struct mfr_shared_experts *shared_experts; /* NULL: none */
    float *send;     /* [tokens*topk][hidden] rows that go to the experts */
    float *returned; /* [tokens*topk][hidden] what they sent back, kept */
    const float *x;  /* of the last forward pass */
    float *sum_scratch;
    struct mfr_layer_device *device; /* NULL: the CPU does the work */
    struct mfr_times times;
};

struct mfr_watch;

/* Do rows move through shared memory? Known after the counts. */
bool mfr_layer_shared(const mfr_layer *layer);
/* The windows are where the experts work. */
void mfr_layer_shared_lend(mfr_layer *layer);
/* FROM: tokens forward, rows in send order backward. */
int mfr_layer_shared_there(mfr_layer *layer, struct mfr_watch *watch,
    const float *from, struct mf_error *err);
int mfr_layer_shared_back(mfr_layer *layer, struct mfr_watch *watch,
    float *send, struct mf_error *err);

/* Where results are observed: fill what the pass has to write with NaN. Forward
 * after the counts are exchanged; collective over the ETP x EP group.
 */
int mfr_layer_poison(mfr_layer *layer, bool forward, struct mf_error *err);

/* Tokens (backward: their gradients) to the ROWS of the experts, and back. */
int mfr_layer_copies_there(mfr_layer *layer, struct mfr_watch *watch,
    const float *x, float *rows, struct mf_error *err);
int mfr_layer_copies_back(mfr_layer *layer, struct mfr_watch *watch,
    const float *rows, float *y, struct mf_error *err);

#endif
