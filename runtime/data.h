/* SPDX-License-Identifier: BSD-3-Clause
 * Seeded data whose every value depends on its global indices alone, so that
 * each layout, and any reference, sees the same numbers. No state.
 */
#ifndef MFR_DATA_H
#define MFR_DATA_H

#include <stdint.h>

#include "runtime/shape.h"

enum mfr_tensor {
    MFR_INPUT,         /* block: micro batch; row: position*batch + sequence */
    MFR_OUTPUT_GRAD,   /* the same */
    MFR_ROUTER,        /* block: 0; row: expert; column: hidden */
    MFR_GATE,          /* block: expert; row: of ffn; column: hidden */
    MFR_UP,            /* the same */
    MFR_DOWN,          /* block: expert; row: of hidden; column: of ffn */
    MFR_ROUTER_BIAS,   /* block: 0; row: 0; column: expert */
    MFR_SELECT_BIAS,   /* the same */
    MFR_GATE_BIAS,     /* block: expert; row: 0; column: of ffn */
    MFR_UP_BIAS,       /* the same */
    MFR_DOWN_BIAS,     /* block: expert; row: 0; column: of hidden */
    MFR_SHARED_GATE,   /* block: 0; row: of shared ffn; column: hidden */
    MFR_SHARED_UP,     /* the same */
    MFR_SHARED_DOWN,   /* block: 0; row: of hidden; column: of shared ffn */
    MFR_SHARED_ROUTER, /* block: 0; row: 0; column: hidden */
};

/* out[columns]: columns FIRST and on of one row of a tensor of pipeline stage
 * STAGE. Inputs and output gradients have variance 1, weights 1 over the
 * length of the sum that they take part in.
 */
void mfr_data_row(const struct mfr_shape *shape, uint64_t seed,
    enum mfr_tensor tensor, int64_t stage, int64_t block, int64_t row,
    int64_t first, int64_t columns, float *out);

#endif
