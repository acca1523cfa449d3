/* SPDX-License-Identifier: BSD-3-Clause
 * The experts of one rank, one after another.
 */
#include "runtime/experts.h"

#include <stdlib.h>

static float *buffer(int64_t rows, int64_t columns)
{
    return calloc((size_t)rows * (size_t)columns + 1, sizeof(float));
}

void mfr_experts_free(struct mfr_experts *experts)
{
    if (!experts->lent) {
        free(experts->x);
        free(experts->y);
    }
    free(experts->gate);
    free(experts->up);
    free(experts->act);
    experts->x = experts->y = NULL;
    experts->gate = experts->up = experts->act = NULL;
    experts->room = 0;
}

void mfr_experts_lend(struct mfr_experts *experts, float *x, float *y)
{
    if (experts->lent != !!x)
        mfr_experts_free(experts);
    experts->lent = x;
    if (!x)
        return;
    experts->x = x;
    experts->y = y;
}

int mfr_experts_room(
    struct mfr_experts *experts, int64_t rows, struct mf_error *err)
{
    float *const x = experts->lent ? experts->x : NULL;
    float *const y = experts->lent ? experts->y : NULL;

    if (experts->act && rows <= experts->room)
        return 0;
    mfr_experts_free(experts);
    experts->x = experts->lent ? x : buffer(rows, experts->hidden);
    experts->y = experts->lent ? y : buffer(rows, experts->hidden);
    experts->gate = buffer(rows, experts->ffn);
    experts->up = buffer(rows, experts->ffn);
    experts->act = buffer(rows, experts->ffn);
    if (!experts->x || !experts->y || !experts->gate || !experts->up ||
        !experts->act) {
        mfr_experts_free(experts);
        return mf_error_set(err, MF_FAILED, "out of memory for the experts");
    }
    experts->room = rows;
    return 0;
}

/* Pointers to what one expert works on. */
struct one {
    int64_t rows, matrix; /* values in each matrix before this expert */
    float *x, *y, *gate, *up, *act;
};

static struct one one_expert(
    const struct mfr_experts *experts, const int64_t *first, int64_t e)
{
    const int64_t at = first[e];

    return (struct one){
        .rows = first[e + 1] - at,
        .matrix = e * experts->ffn * experts->hidden,
        .x = experts->x + at * experts->hidden,
        .y = experts->y + at * experts->hidden,
        .gate = experts->gate + at * experts->ffn,
        .up = experts->up + at * experts->ffn,
        .act = experts->act + at * experts->ffn,
    };
}

void mfr_experts_forward(struct mfr_experts *experts,
    const struct mfr_tensors *weights, const int64_t *first)
{
    const int64_t h = experts->hidden, f = experts->ffn;
    const enum mfk_gemm kernel = experts->kernel;

    for (int64_t e = 0; e < experts->local; e++) {
        const struct one o = one_expert(experts, first, e);

        if (o.rows == 0)
            continue;
        mfk_gemm_nt(
            kernel, o.rows, f, h, o.x, weights->gate + o.matrix, false, o.gate);
        mfk_gemm_nt(
            kernel, o.rows, f, h, o.x, weights->up + o.matrix, false, o.up);
        if (weights->gate_bias) {
            mfk_bias(o.rows, f, weights->gate_bias + e * f, o.gate);
            mfk_bias(o.rows, f, weights->up_bias + e * f, o.up);
        }
        mfk_activate(experts->activation, o.rows * f, o.gate, o.up, o.act);
        mfk_gemm_nt(
            kernel, o.rows, h, f, o.act, weights->down + o.matrix, false, o.y);
        if (weights->down_bias && experts->first_part)
            mfk_bias(o.rows, h, weights->down_bias + e * h, o.y);
    }
}

/* Of expert E, once o.gate and o.up hold their gradients; o.y still holds that
 * of the output.
 */
static void bias_gradients(const struct mfr_experts *experts,
    const struct mfr_tensors *gradients, const struct one *o, int64_t e)
{
    const int64_t h = experts->hidden, f = experts->ffn;

    if (!gradients->gate_bias)
        return;
    mfk_bias_backward(o->rows, h, o->y, gradients->down_bias + e * h);
    mfk_bias_backward(o->rows, f, o->gate, gradients->gate_bias + e * f);
    mfk_bias_backward(o->rows, f, o->up, gradients->up_bias + e * f);
}

void mfr_experts_backward(struct mfr_experts *experts,
    const struct mfr_tensors *weights, const struct mfr_tensors *gradients,
    const int64_t *first)
{
    const int64_t h = experts->hidden, f = experts->ffn;
    const enum mfk_gemm kernel = experts->kernel;

    for (int64_t e = 0; e < experts->local; e++) {
        const struct one o = one_expert(experts, first, e);

        if (o.rows == 0)
            continue;
        mfk_gemm_tn(
            kernel, h, f, o.rows, o.y, o.act, true, gradients->down + o.matrix);
        /* The activation is used up: its gradient takes its place. */
        mfk_gemm_nn(
            kernel, o.rows, f, h, o.y, weights->down + o.matrix, false, o.act);
        mfk_activate_backward(
            experts->activation, o.rows * f, o.gate, o.up, o.act, o.gate, o.up);
        bias_gradients(experts, gradients, &o, e);
        mfk_gemm_tn(kernel, f, h, o.rows, o.gate, o.x, true,
            gradients->gate + o.matrix);
        mfk_gemm_tn(
            kernel, f, h, o.rows, o.up, o.x, true, gradients->up + o.matrix);
        mfk_gemm_nn(
            kernel, o.rows, h, f, o.gate, weights->gate + o.matrix, false, o.y);
        mfk_gemm_nn(
            kernel, o.rows, h, f, o.up, weights->up + o.matrix, true, o.y);
    }
}
