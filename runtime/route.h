/* SPDX-License-Identifier: BSD-3-Clause
 * The router on the tokens of one rank: no rank talks to another here.
 */
#ifndef MFR_ROUTE_H
#define MFR_ROUTE_H

#include "kernels/kernels.h"
#include "planner/layout/error.h"
#include "runtime/shape.h"
#include "runtime/tensors.h"

struct mfr_router {
    int64_t tokens, experts, topk, hidden;
    struct mfk_router how;           /* all but the bias */
    float *logits, *probs, *dlogits; /* [tokens][experts] */
    float *weights, *dweights;       /* [tokens][topk] */
    int32_t *ids;                    /* [tokens][topk] */
    int64_t *place;  /* [tokens][topk] row of each choice, expert-major */
    int64_t *counts; /* [experts] */
    int64_t *cursor; /* [experts] scratch */
};

int mfr_router_init(struct mfr_router *router, const struct mfr_shape *shape,
    int64_t tokens, struct mf_error *err);
void mfr_router_free(struct mfr_router *router);

/* x[tokens][hidden] and the router of WEIGHTS to choices, counts and places. */
void mfr_router_forward(struct mfr_router *router,
    const struct mfr_tensors *weights, const float *x);

/* From router->dweights: adds to dx[tokens][hidden] and to the router's
 * GRADIENTS.
 */
void mfr_router_backward(struct mfr_router *router, enum mfk_gemm kernel,
    const struct mfr_tensors *weights, const float *x, float *dx,
    const struct mfr_tensors *gradients);

#endif
