/* SPDX-License-Identifier: BSD-3-Clause
 * The experts of one rank: gated feed-forward parts on rows grouped by expert.
 */
#ifndef MFR_EXPERTS_H
#define MFR_EXPERTS_H

#include "runtime/layer.h"

struct mfr_experts {
    enum mfk_gemm kernel;
    enum mfk_activation activation;
    bool first_part; /* of those over etp: it adds the bias of down */
    int64_t local, hidden, ffn; /* ffn: of this etp place */
    int64_t room;               /* rows */
    bool lent;                  /* x and y are somebody else's */
    float *x, *y;               /* [room][hidden] */
    float *gate, *up, *act;     /* [room][ffn] */
};

/* Work on X and Y, that have room for all rows to come; NULL: on buffers of
 * its own again.
 */
void mfr_experts_lend(struct mfr_experts *experts, float *x, float *y);
/* Room for ROWS rows; what was in the buffers is lost. */
int mfr_experts_room(
    struct mfr_experts *experts, int64_t rows, struct mf_error *err);
void mfr_experts_free(struct mfr_experts *experts);

/* y = down(act(gate x, up x)) and the biases that there are, rows of local
 * expert e from first[e] up to first[e + 1]; with ETP > 1 the part of the sum
 * over this rank's ffn.
 */
void mfr_experts_forward(struct mfr_experts *experts,
    const struct mfr_tensors *weights, const int64_t *first);
/* dy in y becomes dx in y; adds to GRADIENTS. */
void mfr_experts_backward(struct mfr_experts *experts,
    const struct mfr_tensors *weights, const struct mfr_tensors *gradients,
    const int64_t *first);

#endif
