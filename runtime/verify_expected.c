/* SPDX-License-Identifier: BSD-3-Clause
 * Work both references out on one rank of a stage, and share them.
 */
#include "runtime/verify_expected.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/collective.h"

void *mfr_room(int64_t a, int64_t b, size_t size, struct mf_error *err)
{
    int64_t n, bytes;
    void *room = NULL;

    if (!__builtin_mul_overflow(a, b, &n) &&
        !__builtin_mul_overflow(n, (int64_t)size, &bytes) && bytes >= 0)
        room = calloc(1, bytes ? (size_t)bytes : 1);
    if (!room)
        mf_error_set(
            err, MF_FAILED, "verify: out of memory; take a smaller shape");
    return room;
}

int mfr_share(MPI_Comm comm, void *data, int64_t bytes, struct mf_error *err)
{
    const int64_t piece = 1 << 30;
    char *at = data;

    for (; bytes > 0; bytes -= piece, at += piece) {
        int n = (int)(bytes < piece ? bytes : piece);

        if (mfr_bcast(at, n, MPI_BYTE, 0, comm, "verify: MPI_Bcast", err))
            return -1;
    }
    return 0;
}

/* The layer alone in its world, fed the micro batches of all. */
struct alone {
    mfr_layer *layer;
    float *x, *dy;
};

static int alone_create(const struct mfr_verifier *verifier,
    const struct mfr_verify_case *work, struct alone *alone,
    struct mf_error *err)
{
    int64_t rows = work->shape.seq * work->shape.batch;
    const struct mfr_layer_options how = {
        .kernel = work->kernel, .device = work->device, .observed = true};

    *alone = (struct alone){0};
    if (mfr_layer_create(&work->shape, &verifier->alone_layout,
            &verifier->alone, &how, &alone->layer, err))
        return -1;
    alone->x = mfr_room(rows, work->shape.hidden, sizeof(float), err);
    alone->dy = mfr_room(rows, work->shape.hidden, sizeof(float), err);
    return alone->x && alone->dy ? 0 : -1;
}

static void alone_free(struct alone *alone)
{
    mfr_layer_free(alone->layer);
    free(alone->x);
    free(alone->dy);
}

/* ROWS whole rows of a tensor's block. */
static void fill(const struct mfr_verify_case *work, enum mfr_tensor tensor,
    int64_t pp, int64_t block, int64_t rows, int64_t columns, float *out)
{
    for (int64_t i = 0; i < rows; i++) {
        mfr_data_row(&work->shape, work->seed, tensor, pp, block, i, 0, columns,
            out + i * columns);
        mfr_verify_case_bend(work, tensor, i, out + i * columns);
    }
}

static void fill_weights(
    const struct mfr_verify_case *work, int64_t pp, struct mfr_tensors weights)
{
    const struct mf_coords alone = {0};
    const int64_t hidden = work->shape.hidden;

    mfr_tensors_seed(&work->shape, work->seed, pp, &alone, &weights);
    for (int64_t e = 0; e < work->shape.experts; e++)
        mfr_verify_case_bend(work, MFR_ROUTER, e, weights.router + e * hidden);
}

static void keep_routes(const struct mfr_verify_case *work,
    struct mfr_routes routes, int64_t first, struct mfr_expected *expected)
{
    int64_t topk = work->shape.topk, n = routes.tokens * topk;

    memcpy(expected->ids + first * topk, routes.ids,
        (size_t)n * sizeof *routes.ids);
    memcpy(expected->weights + first * topk, routes.weights,
        (size_t)n * sizeof *routes.weights);
    for (int64_t e = 0; e < work->shape.experts; e++)
        expected->counts[e] += routes.counts[e];
}

static void widen(const float *from, int64_t n, double *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i];
}

double **mfr_expected_member(
    struct mfr_reference_tensors *t, enum mfr_tensor tensor)
{
    switch (tensor) {
    case MFR_INPUT:
    case MFR_OUTPUT_GRAD:
        break;
    case MFR_ROUTER:
        return &t->router;
    case MFR_ROUTER_BIAS:
        return &t->router_bias;
    case MFR_SELECT_BIAS:
        return &t->select_bias;
    case MFR_GATE:
        return &t->gate;
    case MFR_UP:
        return &t->up;
    case MFR_DOWN:
        return &t->down;
    case MFR_GATE_BIAS:
        return &t->gate_bias;
    case MFR_UP_BIAS:
        return &t->up_bias;
    case MFR_DOWN_BIAS:
        return &t->down_bias;
    case MFR_SHARED_GATE:
        return &t->shared_gate;
    case MFR_SHARED_UP:
        return &t->shared_up;
    case MFR_SHARED_DOWN:
        return &t->shared_down;
    case MFR_SHARED_ROUTER:
        return &t->shared_router;
    }
    return NULL;
}

/* The weights of the layer alone, in double precision. */
static int widen_weights(const struct mfr_verify_case *work,
    struct mfr_tensors weights, double **room,
    struct mfr_reference_tensors *wide, struct mf_error *err)
{
    const struct mf_coords alone = {0};
    struct mfr_view view[MFR_VIEWS_MOST];
    const int n = mfr_tensors_views(&work->shape, &alone, &weights, view);
    int64_t all = 0;
    double *at;

    for (int i = 0; i < n; i++)
        all += mfr_view_count(&view[i]);
    *room = at = mfr_room(all, 1, sizeof **room, err);
    *wide = (struct mfr_reference_tensors){0};
    if (!*room)
        return -1;
    for (int i = 0; i < n; i++) {
        widen(view[i].values, mfr_view_count(&view[i]), at);
        *mfr_expected_member(wide, view[i].tensor) = at;
        at += mfr_view_count(&view[i]);
    }
    return 0;
}

/* Micro batch I through both. The reference is told the routes of the layer
 * alone: they equal the tested ones to the bit, or that check fails.
 */
static int run_batch(const struct mfr_verify_case *work, int64_t pp, int64_t i,
    struct alone *alone, const struct mfr_reference_tensors *wide,
    double *wide_x, struct mfr_expected *expected, struct mf_error *err)
{
    int64_t hidden = work->shape.hidden, rows = expected->per_batch;
    int64_t first = i * rows, n = rows * hidden;

    fill(work, MFR_INPUT, pp, i, rows, hidden, alone->x);
    fill(work, MFR_OUTPUT_GRAD, pp, i, rows, hidden, alone->dy);
    if (mfr_layer_forward(
            alone->layer, alone->x, expected->y + first * hidden, err) ||
        mfr_layer_backward(
            alone->layer, alone->dy, expected->dx + first * hidden, err))
        return -1;
    keep_routes(work, mfr_layer_routes(alone->layer), first, expected);
    widen(alone->x, n, wide_x);
    widen(alone->dy, n, wide_x + n);
    return mfr_reference_run(&expected->reference, wide, wide_x, wide_x + n,
        expected->ids + first * work->shape.topk, err);
}

static void scale_gradients(const struct mfr_verify_case *work,
    struct mfr_tensors like, double scale, struct mfr_reference *ref)
{
    const struct mf_coords alone = {0};
    struct mfr_view view[MFR_VIEWS_MOST];
    const int n = mfr_tensors_views(&work->shape, &alone, &like, view);

    for (int i = 0; i < n; i++) {
        double *v = *mfr_expected_member(&ref->gradient, view[i].tensor);

        for (int64_t k = 0; v && k < mfr_view_count(&view[i]); k++)
            v[k] *= scale;
    }
}

static void keep_reference(
    const struct mfr_verify_case *work, struct mfr_expected *expected)
{
    struct mfr_reference *ref = &expected->reference;
    int64_t chosen = expected->tokens * work->shape.topk;
    int64_t values = expected->tokens * work->shape.hidden;

    memcpy(expected->ref_ids, ref->route, (size_t)chosen * sizeof *ref->route);
    memcpy(expected->ref_weights, ref->weight, (size_t)chosen * sizeof(double));
    memcpy(expected->ref_y, ref->output, (size_t)values * sizeof(double));
    memcpy(expected->ref_dx, ref->dx, (size_t)values * sizeof(double));
    *expected->sums = (struct mfr_expected_sums){
        .loss = ref->loss,
        .loss_scale = sqrt(ref->loss_squares),
        .grad_norm = mfr_reference_grad_norm(ref),
        .near_ties = ref->near_ties,
    };
}

static struct mfr_reference_shape reference_shape(
    const struct mfr_shape *shape, int64_t tokens, int64_t batches)
{
    static const enum mfr_reference_h h[] = {
        [MFK_SWIGLU] = MFR_H_SILU,
        [MFK_GEGLU] = MFR_H_GELU,
        [MFK_CLAMPED] = MFR_H_CLAMPED,
    };

    return (struct mfr_reference_shape){
        .tokens = tokens,
        .batches = batches,
        .hidden = shape->hidden,
        .ffn = shape->ffn,
        .experts = shape->experts,
        .topk = shape->topk,
        .renormalize = shape->renormalize,
        .scaling = shape->scaling,
        .sigmoid = shape->sigmoid,
        .groups = shape->groups,
        .topk_groups = shape->topk_groups,
        .group_best = shape->group_best,
        .h = h[shape->activation],
        .shared = shape->shared_ffn,
    };
}

static int work_out(const struct mfr_verifier *verifier,
    const struct mfr_verify_case *work, double scale,
    struct mfr_expected *expected, struct mf_error *err)
{
    int64_t pp = verifier->coords.pp;
    const struct mfr_reference_shape shape =
        reference_shape(&work->shape, expected->per_batch, verifier->layout.dp);
    struct mfr_reference_tensors wide;
    double *room = NULL, *wide_x = NULL;
    struct alone alone;
    int rc = -1;

    if (alone_create(verifier, work, &alone, err))
        goto out;
    fill_weights(work, pp, mfr_layer_weights(alone.layer));
    wide_x =
        mfr_room(2 * expected->per_batch, shape.hidden, sizeof(double), err);
    if (!wide_x ||
        widen_weights(
            work, mfr_layer_weights(alone.layer), &room, &wide, err) ||
        mfr_reference_create(&shape, &wide, &expected->reference, err))
        goto out;
    for (int64_t i = 0; i < shape.batches; i++)
        if (run_batch(work, pp, i, &alone, &wide, wide_x, expected, err))
            goto out;
    scale_gradients(
        work, mfr_layer_weights(alone.layer), scale, &expected->reference);
    keep_reference(work, expected);
    rc = 0;
out:
    free(wide_x);
    free(room);
    alone_free(&alone);
    return rc;
}

/* The next ITEMS of the arena; before it is there, only its size grows. */
static void *take(struct mfr_expected *expected, int64_t items, size_t size)
{
    int64_t at = expected->arena_bytes, bytes = items * (int64_t)size;

    expected->arena_bytes += (bytes + 15) / 16 * 16;
    return expected->arena ? expected->arena + at : NULL;
}

static void place(const struct mfr_shape *shape, struct mfr_expected *e)
{
    int64_t chosen = e->tokens * shape->topk;
    int64_t values = e->tokens * shape->hidden;

    e->arena_bytes = 0;
    e->ids = take(e, chosen, sizeof *e->ids);
    e->weights = take(e, chosen, sizeof *e->weights);
    e->counts = take(e, shape->experts, sizeof *e->counts);
    e->y = take(e, values, sizeof *e->y);
    e->dx = take(e, values, sizeof *e->dx);
    e->ref_ids = take(e, chosen, sizeof *e->ref_ids);
    e->ref_weights = take(e, chosen, sizeof *e->ref_weights);
    e->ref_y = take(e, values, sizeof *e->ref_y);
    e->ref_dx = take(e, values, sizeof *e->ref_dx);
    e->sums = take(e, 1, sizeof *e->sums);
}

static int allocate(const struct mfr_shape *shape, int64_t dp,
    struct mfr_expected *e, struct mf_error *err)
{
    const int64_t most = (int64_t)1 << 48;

    /* With each product in bounds no sum of place() overflows. */
    if (__builtin_mul_overflow(shape->seq, shape->batch, &e->per_batch) ||
        __builtin_mul_overflow(e->per_batch, dp, &e->tokens) ||
        e->tokens > most / shape->topk || e->tokens > most / shape->hidden ||
        shape->experts > most / shape->hidden)
        return mf_error_set(
            err, MF_INVALID, "verify: out of memory; take a smaller shape");
    place(shape, e);
    e->arena = mfr_room(e->arena_bytes, 1, 1, err);
    if (!e->arena)
        return -1;
    place(shape, e);
    return 0;
}

int mfr_expected_create(const struct mfr_verifier *verifier,
    const struct mfr_verify_case *work, double scale,
    struct mfr_expected *expected, struct mf_error *err)
{
    int rank, rc;

    *expected = (struct mfr_expected){0};
    if (mfr_mpi(MPI_Comm_rank(verifier->stage, &rank), "verify: MPI_Comm_rank",
            err))
        return -1;
    rc = allocate(&work->shape, verifier->layout.dp, expected, err);
    if (!rc && rank == 0)
        rc = work_out(verifier, work, scale, expected, err);
    if (mfr_agree(verifier->stage, rc, err))
        return -1;
    return mfr_share(
        verifier->stage, expected->arena, expected->arena_bytes, err);
}

void mfr_expected_free(struct mfr_expected *expected)
{
    if (!expected)
        return;
    mfr_reference_free(&expected->reference);
    free(expected->arena);
    *expected = (struct mfr_expected){0};
}
