/* SPDX-License-Identifier: BSD-3-Clause
 * A reference for the MoE layer, in double precision and from the maths alone.
 *
 * With x a token, W the router and G, U, D an expert's three matrices:
 *
 *     p   = softmax(W x)                 over all experts
 *     S   = the K experts of largest p, the lower index first when equal
 *     w_e = c p_e / sum over S of p      (or c p_e, not renormalised)
 *     E_e = D_e (silu(G_e x) * U_e x)    silu(a) = a / (1 + exp(-a))
 *     y   = sum over S of w_e E_e
 *     L   = sum over tokens of y . dy    (dy is given)
 *
 * Every token goes through its experts one by one, and the micro batches one
 * after another; there is no permutation, no exchange and no shard here, so
 * that a fault in the layer cannot be a fault here too. For the same reason
 * this file shares nothing with the layer or its kernels.
 */
#ifndef MFR_REFERENCE_H
#define MFR_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/layout/error.h"

/* Scores closer than this may fall either way in single precision. */
#define MFR_REFERENCE_TIE 1e-6

struct mfr_reference_shape {
    int64_t tokens; /* in one micro batch */
    int64_t batches;
    int64_t hidden, ffn, experts, topk;
    bool renormalize;
    double scaling; /* c above; 1 when unused */
};

struct mfr_reference_weights {
    const double *router; /* [experts][hidden] */
    const double *gate;   /* [experts][ffn][hidden] */
    const double *up;     /* [experts][ffn][hidden] */
    const double *down;   /* [experts][hidden][ffn] */
};

/* All owned; T = batches * tokens, in the order they were run. */
struct mfr_reference {
    struct mfr_reference_shape shape;
    int64_t *count; /* [experts] tokens that chose it */
    int32_t *route; /* [T][topk] by falling score */
    double *weight; /* [T][topk] */
    double *output; /* [T][hidden] */
    double *dx;     /* [T][hidden] */
    double loss;
    double loss_squares; /* sum of the squares of its terms y_i dy_i */
    double *router, *gate, *up, *down; /* gradients, shaped as the weights */
    int64_t near_ties; /* tokens whose last chosen and first rejected scores
                          lie within MFR_REFERENCE_TIE */
    int64_t done;      /* tokens run so far */
};

/* Room for SHAPE, everything zero. MF_INVALID for a shape that has no
 * meaning (topk over experts, a size under 1) or does not fit in memory.
 */
int mfr_reference_create(const struct mfr_reference_shape *shape,
    struct mfr_reference *ref, struct mf_error *err);

/* Run the next micro batch: x and dy are [tokens][hidden]. TESTED, [tokens]
 * [topk] or NULL, are routes that somebody else found: where the reference
 * sees a near tie it takes those experts, if each is within the tie. Adds to
 * the gradients, the loss and the counts.
 */
int mfr_reference_run(struct mfr_reference *ref,
    const struct mfr_reference_weights *weights, const double *x,
    const double *dy, const int32_t *tested, struct mf_error *err);

/* Square root of the sum of squares of every weight gradient. */
double mfr_reference_grad_norm(const struct mfr_reference *ref);

void mfr_reference_free(struct mfr_reference *ref);

#endif
