/* SPDX-License-Identifier: BSD-3-Clause
 * See shared_experts.h.
 */
#include "runtime/shared_experts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/collective.h"
#include "runtime/layer_state.h"
#include "runtime/watch.h"

struct mfr_shared_experts {
    int tp, rank;        /* of the TP group */
    int64_t ffn;         /* this rank's part */
    int64_t tokens;      /* this rank's */
    int64_t rows;        /* tokens of the group */
    int *count, *at;     /* [tp] values that each rank's tokens have, and where
                            they begin */
    int *take, *take_at; /* [tp] the same of this rank's tokens, from each */
    float *x, *y;        /* [rows][hidden]: of the whole group */
    float *gate, *up, *act; /* [rows][ffn] */
    float *own;             /* [tokens][hidden]: their sum, or its gradient */
    float *factor;          /* [tokens]: of the gate, 1 without */
    float *kept;            /* [tokens][hidden]: the sum of the forward pass */
    float *parts; /* [tp][tokens][hidden]: each rank's part of a sum */
};

static float *zeros(int64_t a, int64_t b)
{
    return calloc((size_t)a * (size_t)b + 1, sizeof(float));
}

/* Tokens of each rank of the TP group, which differ by a position or so. */
static int place_tokens(const struct mfr_layer *layer,
    const struct mf_layout *layout, struct mfr_shared_experts *s)
{
    int32_t *member = calloc((size_t)s->tp, sizeof *member);
    int64_t at = 0;

    s->count = calloc((size_t)s->tp, sizeof *s->count);
    s->at = calloc((size_t)s->tp, sizeof *s->at);
    s->take = calloc((size_t)s->tp, sizeof *s->take);
    s->take_at = calloc((size_t)s->tp, sizeof *s->take_at);
    if (!member || !s->count || !s->at || !s->take || !s->take_at) {
        free(member);
        return -1;
    }
    mf_group_members(layout, MF_GROUP_TP, layer->comms->rank, member);
    for (int r = 0; r < s->tp; r++) {
        struct mfr_shard shard;

        mfr_shard_of(&layer->shape, layout, member[r], &shard);
        s->count[r] = (int)(shard.tokens * layer->shape.hidden);
        s->at[r] = (int)at;
        at += s->count[r];
        s->rows += shard.tokens;
    }
    for (int r = 0; r < s->tp; r++) {
        s->take[r] = s->count[s->rank];
        s->take_at[r] = r * s->count[s->rank];
    }
    free(member);
    return 0;
}

int mfr_shared_experts_create(const struct mfr_layer *layer,
    const struct mf_layout *layout, struct mfr_shared_experts **shared,
    struct mf_error *err)
{
    struct mfr_shared_experts *s = calloc(1, sizeof *s);
    const int64_t h = layer->shape.hidden;

    *shared = s;
    if (!s)
        return mf_error_set(err, MF_FAILED, "out of memory");
    s->tp = layer->comms->group_size[MF_GROUP_TP];
    s->rank = layer->comms->group_rank[MF_GROUP_TP];
    s->ffn = layer->weights.shared_ffn;
    s->tokens = layer->shard.tokens;
    if (place_tokens(layer, layout, s))
        return mf_error_set(err, MF_FAILED, "out of memory");
    s->x = zeros(s->rows, h);
    s->y = zeros(s->rows, h);
    s->gate = zeros(s->rows, s->ffn);
    s->up = zeros(s->rows, s->ffn);
    s->act = zeros(s->rows, s->ffn);
    s->own = zeros(s->tokens, h);
    s->kept = zeros(s->tokens, h);
    s->parts = zeros(s->tp * s->tokens, h);
    s->factor = zeros(s->tokens, 1);
    if (s->x && s->y && s->gate && s->up && s->act && s->own && s->kept &&
        s->parts && s->factor)
        return 0;
    return mf_error_set(err, MF_FAILED, "out of memory for shared experts");
}

void mfr_shared_experts_free(struct mfr_shared_experts *s)
{
    if (!s)
        return;
    free(s->count);
    free(s->at);
    free(s->x);
    free(s->y);
    free(s->gate);
    free(s->up);
    free(s->act);
    free(s->own);
    free(s->factor);
    free(s->kept);
    free(s->parts);
    free(s->take);
    free(s->take_at);
    free(s);
}

/* OWN[tokens][hidden] of each rank of the group, one after another. */
static int gather(const struct mfr_layer *layer,
    const struct mfr_shared_experts *s, const float *own, float *all,
    struct mf_error *err)
{
    return mfr_allgatherv(own, s->count[s->rank], all, s->count, s->at,
        MPI_FLOAT, layer->comms->comm[MF_GROUP_TP],
        "shared experts: MPI_Allgatherv", err);
}

/* The sum over the group of what it has in ALL for this rank's tokens, added
 * in the order of ranks, so that it is the same in every run.
 */
static int scatter_sum(const struct mfr_layer *layer,
    const struct mfr_shared_experts *s, const float *all, float *own,
    struct mf_error *err)
{
    const int n = s->count[s->rank];

    if (mfr_alltoallv(all, s->count, s->at, s->parts, s->take, s->take_at,
            MPI_FLOAT, layer->comms->comm[MF_GROUP_TP],
            "shared experts: MPI_Alltoallv", err))
        return -1;
    memcpy(own, s->parts, (size_t)n * sizeof *own);
    for (int r = 1; r < s->tp; r++)
        mfk_add(n, s->parts + s->take_at[r], own);
    return 0;
}

/* FLOPs of three products of ROWS. */
static double flops(const struct mfr_layer *layer)
{
    const struct mfr_shared_experts *s = layer->shared_experts;

    return 6.0 * (double)s->rows * (double)layer->shape.hidden * (double)s->ffn;
}

static double bytes(const struct mfr_layer *layer)
{
    const struct mfr_shared_experts *s = layer->shared_experts;

    return (double)(s->rows - s->tokens) * (double)layer->shape.hidden *
           sizeof(float);
}

static void gate_forward(const struct mfr_layer *layer, const float *x)
{
    const struct mfr_shared_experts *s = layer->shared_experts;
    const int64_t h = layer->shape.hidden;
    const float *w = layer->weights.shared_router;

    for (int64_t t = 0; t < s->tokens; t++)
        s->factor[t] = w ? 1 / (1 + expf(-mfk_dot(h, x + t * h, w))) : 1;
}

int mfr_shared_experts_forward(struct mfr_layer *layer, struct mfr_watch *watch,
    const float *x, float *y, struct mf_error *err)
{
    const struct mfr_shared_experts *s = layer->shared_experts;
    const struct mfr_tensors *w = &layer->weights;
    const enum mfk_gemm kernel = layer->experts.kernel;
    const int64_t h = layer->shape.hidden;

    if (gather(layer, s, x, s->x, err))
        return -1;
    mfk_gemm_nt(
        kernel, s->rows, s->ffn, h, s->x, w->shared_gate, false, s->gate);
    mfk_gemm_nt(kernel, s->rows, s->ffn, h, s->x, w->shared_up, false, s->up);
    mfk_activate(
        layer->experts.activation, s->rows * s->ffn, s->gate, s->up, s->act);
    mfk_gemm_nt(
        kernel, s->rows, h, s->ffn, s->act, w->shared_down, false, s->y);
    if (scatter_sum(layer, s, s->y, s->kept, err))
        return -1;
    gate_forward(layer, x);
    for (int64_t t = 0; t < s->tokens; t++)
        for (int64_t i = 0; i < h; i++)
            y[t * h + i] += s->factor[t] * s->kept[t * h + i];
    mfr_watch_mark(watch, MF_PHASE_SHARED, bytes(layer), flops(layer));
    return 0;
}

/* Of the gate, and the gradient of the sum into OWN. */
static void gate_backward(
    const struct mfr_layer *layer, const float *dy, float *dx)
{
    const struct mfr_shared_experts *s = layer->shared_experts;
    const int64_t h = layer->shape.hidden;
    const float *w = layer->weights.shared_router;
    float *dw = layer->gradients.shared_router;

    for (int64_t t = 0; t < s->tokens; t++) {
        const float f = s->factor[t], *d = dy + t * h;
        float dlogit;

        for (int64_t i = 0; i < h; i++)
            s->own[t * h + i] = f * d[i];
        if (!w)
            continue;
        dlogit = mfk_dot(h, d, s->kept + t * h) * f * (1 - f);
        for (int64_t i = 0; i < h; i++) {
            dx[t * h + i] += dlogit * w[i];
            dw[i] += dlogit * layer->x[t * h + i];
        }
    }
}

int mfr_shared_experts_backward(struct mfr_layer *layer,
    struct mfr_watch *watch, const float *dy, float *dx, struct mf_error *err)
{
    const struct mfr_shared_experts *s = layer->shared_experts;
    const struct mfr_tensors *w = &layer->weights, *g = &layer->gradients;
    const enum mfk_gemm kernel = layer->experts.kernel;
    const int64_t h = layer->shape.hidden, f = s->ffn;

    gate_backward(layer, dy, dx);
    if (gather(layer, s, s->own, s->y, err))
        return -1;
    mfk_gemm_tn(kernel, h, f, s->rows, s->y, s->act, true, g->shared_down);
    mfk_gemm_nn(kernel, s->rows, f, h, s->y, w->shared_down, false, s->act);
    mfk_activate_backward(layer->experts.activation, s->rows * f, s->gate,
        s->up, s->act, s->gate, s->up);
    mfk_gemm_tn(kernel, f, h, s->rows, s->gate, s->x, true, g->shared_gate);
    mfk_gemm_tn(kernel, f, h, s->rows, s->up, s->x, true, g->shared_up);
    mfk_gemm_nn(kernel, s->rows, h, f, s->gate, w->shared_gate, false, s->y);
    mfk_gemm_nn(kernel, s->rows, h, f, s->up, w->shared_up, true, s->y);
    if (scatter_sum(layer, s, s->y, s->own, err))
        return -1;
    mfk_add(s->tokens * h, s->own, dx);
    mfr_watch_mark(watch, MF_PHASE_SHARED, bytes(layer), 2 * flops(layer));
    return 0;
}
