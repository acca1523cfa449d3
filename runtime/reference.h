/* SPDX-License-Identifier: BSD-3-Clause
 * A reference for the MoE layer, in double precision and from the maths alone.
 *
 * With x a token, W the router and G, U, D an expert's three matrices:
 *
 *     p   = softmax(W x + v)             over all experts; or sigmoid of each
 *     S   = the K experts of largest p + t, the lower index first when equal;
 *           with groups, of those in the best groups, each judged by the sum
 *           of its best p + t
 *     w_e = c p_e / sum over S of p      (or c p_e, not renormalised)
 *     E_e = D_e h(G_e x + a_e, U_e x + b_e) + d_e
 *     y   = sum over S of w_e E_e  [+ sigmoid(s . x)] (D h(G x, U x)), shared
 *     L   = sum over tokens of y . dy    (dy is given)
 *
 * with h(a, b) one of silu(a) b, gelu(a) b, and that of gpt-oss:
 * a' sigmoid(1.702 a') (b' + 1), a' = min(a, 7), b' = b within 7 of 0.
 * Biases, groups, the shared part and its gate are there or not.
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

enum mfr_reference_h { MFR_H_SILU, MFR_H_GELU, MFR_H_CLAMPED };

struct mfr_reference_shape {
    int64_t tokens; /* in one micro batch */
    int64_t batches;
    int64_t hidden, ffn, experts, topk;
    bool renormalize;
    double scaling; /* c above; 1 when unused */
    bool sigmoid;
    int64_t groups, topk_groups, group_best; /* groups 0 or 1: none */
    enum mfr_reference_h h;
    int64_t shared; /* width of the shared part, 0: none */
};

/* Every parameter; what is not there is NULL. Gradients have the same form. */
struct mfr_reference_tensors {
    double *router;                  /* W [experts][hidden] */
    double *router_bias;             /* v [experts] */
    double *select_bias;             /* t [experts], no gradient */
    double *gate;                    /* G [experts][ffn][hidden] */
    double *up;                      /* U [experts][ffn][hidden] */
    double *down;                    /* D [experts][hidden][ffn] */
    double *gate_bias;               /* a [experts][ffn] */
    double *up_bias;                 /* b [experts][ffn] */
    double *down_bias;               /* d [experts][hidden] */
    double *shared_gate, *shared_up; /* [shared][hidden] */
    double *shared_down;             /* [hidden][shared] */
    double *shared_router;           /* s [hidden] */
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
    struct mfr_reference_tensors gradient;
    int64_t near_ties; /* tokens whose last chosen and first rejected scores
                          lie within MFR_REFERENCE_TIE */
    int64_t done;      /* tokens run so far */
};

/* Room for SHAPE and a gradient for each of WEIGHTS, everything zero.
 * MF_INVALID for a shape that has no meaning (topk over experts, a size under
 * 1) or does not fit in memory.
 */
int mfr_reference_create(const struct mfr_reference_shape *shape,
    const struct mfr_reference_tensors *weights, struct mfr_reference *ref,
    struct mf_error *err);

/* Run the next micro batch: x and dy are [tokens][hidden]. TESTED, [tokens]
 * [topk] or NULL, are routes that somebody else found: where the reference
 * sees a near tie it takes those experts, if each is within the tie. Adds to
 * the gradients, the loss and the counts.
 */
int mfr_reference_run(struct mfr_reference *ref,
    const struct mfr_reference_tensors *weights, const double *x,
    const double *dy, const int32_t *tested, struct mf_error *err);

/* Square root of the sum of squares of every weight gradient. */
double mfr_reference_grad_norm(const struct mfr_reference *ref);

void mfr_reference_free(struct mfr_reference *ref);

#endif
