/* SPDX-License-Identifier: BSD-3-Clause
 * The router on the tokens of one rank.
 */
#include "runtime/route.h"

#include <stdlib.h>

int mfr_router_init(struct mfr_router *router, const struct mfr_shape *shape,
    int64_t tokens, struct mf_error *err)
{
    const size_t scores = (size_t)(tokens * shape->experts);
    const size_t choices = (size_t)(tokens * shape->topk);
    const size_t experts = (size_t)shape->experts;

    *router = (struct mfr_router){
        .tokens = tokens,
        .experts = shape->experts,
        .topk = shape->topk,
        .hidden = shape->hidden,
        .how = {.tokens = tokens,
            .experts = shape->experts,
            .topk = shape->topk,
            .sigmoid = shape->sigmoid,
            .renormalize = shape->renormalize,
            .scaling = (float)shape->scaling,
            .groups = shape->groups,
            .topk_groups = shape->topk_groups,
            .group_best = shape->group_best},
        .logits = calloc(scores + 1, sizeof(float)),
        .probs = calloc(scores + 1, sizeof(float)),
        .dlogits = calloc(scores + 1, sizeof(float)),
        .weights = calloc(choices + 1, sizeof(float)),
        .dweights = calloc(choices + 1, sizeof(float)),
        .ids = calloc(choices + 1, sizeof(int32_t)),
        .place = calloc(choices + 1, sizeof(int64_t)),
        .counts = calloc(experts, sizeof(int64_t)),
        .cursor = calloc(experts, sizeof(int64_t)),
    };
    if (!router->logits || !router->probs || !router->dlogits ||
        !router->weights || !router->dweights || !router->ids ||
        !router->place || !router->counts || !router->cursor)
        return mf_error_set(err, MF_FAILED, "out of memory for the router");
    return 0;
}

void mfr_router_free(struct mfr_router *router)
{
    free(router->logits);
    free(router->probs);
    free(router->dlogits);
    free(router->weights);
    free(router->dweights);
    free(router->ids);
    free(router->place);
    free(router->counts);
    free(router->cursor);
}

void mfr_router_forward(struct mfr_router *router,
    const struct mfr_tensors *weights, const float *x)
{
    const int64_t choices = router->tokens * router->topk;
    struct mfk_router how = router->how;

    how.bias = weights->select_bias;
    /* Always row-exact, so that no route depends on the layout. */
    mfk_gemm_nt(MFK_EXACT, router->tokens, router->experts, router->hidden, x,
        weights->router, false, router->logits);
    if (weights->router_bias)
        mfk_bias(router->tokens, router->experts, weights->router_bias,
            router->logits);
    mfk_route(
        &how, router->logits, router->probs, router->ids, router->weights);
    mfk_count(choices, router->experts, router->ids, router->counts);
    mfk_place(choices, router->experts, router->ids, router->counts,
        router->cursor, router->place);
}

void mfr_router_backward(struct mfr_router *router, enum mfk_gemm kernel,
    const struct mfr_tensors *weights, const float *x, float *dx,
    const struct mfr_tensors *gradients)
{
    mfk_route_backward(&router->how, router->probs, router->ids,
        router->dweights, router->dlogits);
    mfk_gemm_nn(kernel, router->tokens, router->hidden, router->experts,
        router->dlogits, weights->router, true, dx);
    mfk_gemm_tn(kernel, router->experts, router->hidden, router->tokens,
        router->dlogits, x, true, gradients->router);
    if (gradients->router_bias)
        mfk_bias_backward(router->tokens, router->experts, router->dlogits,
            gradients->router_bias);
}
