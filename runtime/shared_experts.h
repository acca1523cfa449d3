/* SPDX-License-Identifier: BSD-3-Clause
 * The shared experts: one gated feed-forward part that every token goes
 * through, cut over TP as Megatron-LM does with sequence parallelism: the
 * tokens of all TP ranks are gathered, each rank works out its part of the
 * width, and the sums go back to the tokens' own ranks.
 */
#ifndef MFR_SHARED_EXPERTS_H
#define MFR_SHARED_EXPERTS_H

#include "planner/layout/error.h"
#include "planner/layout/layout.h"

struct mfr_layer;
struct mfr_watch;
struct mfr_shared_experts;

/* For LAYER, whose shape, shard and kernel are known. */
int mfr_shared_experts_create(const struct mfr_layer *layer,
    const struct mf_layout *layout, struct mfr_shared_experts **shared,
    struct mf_error *err);
void mfr_shared_experts_free(struct mfr_shared_experts *shared);

/* y[tokens][hidden] += the shared experts of x; collective over TP. */
int mfr_shared_experts_forward(struct mfr_layer *layer, struct mfr_watch *watch,
    const float *x, float *y, struct mf_error *err);
/* From dy: adds to dx and to the layer's gradients. */
int mfr_shared_experts_backward(struct mfr_layer *layer,
    struct mfr_watch *watch, const float *dy, float *dx, struct mf_error *err);

#endif
