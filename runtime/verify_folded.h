/* SPDX-License-Identifier: BSD-3-Clause
 * One run of the folded layer, as a rank sees it.
 */
#ifndef MFR_VERIFY_FOLDED_H
#define MFR_VERIFY_FOLDED_H

#include "runtime/verify_case.h"

struct mfr_folded {
    mfr_layer *layer;
    float *x, *y, *dy, *dx; /* [tokens][hidden] */
};

/* Create and seed the layer, run it forward and backward, reduce its
 * gradients. Collective over the base; all ranks return the same. RUN is to be
 * freed in any case.
 */
int mfr_folded_run(const struct mfr_verifier *verifier,
    const struct mfr_verify_case *work, struct mfr_folded *run,
    struct mf_error *err);

/* Whether two runs left the same bits on this rank. */
bool mfr_folded_same(const struct mfr_shape *shape, const struct mfr_folded *a,
    const struct mfr_folded *b);

void mfr_folded_free(struct mfr_folded *run);

/* What the mean over the micro batches of a step asks of each gradient: the
 * pre-scale 1 / (DP * CP) of Megatron-LM's distributed_data_parallel.py.
 */
double mfr_folded_scale(const struct mf_layout *layout);

/* Whether ITEMS of SIZE bytes hold the same bits; none do. */
bool mfr_same(const void *a, const void *b, int64_t items, size_t size);

#endif
