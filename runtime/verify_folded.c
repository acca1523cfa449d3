/* SPDX-License-Identifier: BSD-3-Clause
 * Run a folded layer once, and compare two runs.
 */
#include "runtime/verify_folded.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/verify_expected.h"

/* What the layer seeded by itself, changed as WORK asks. */
static void folded_bend(
    const struct mfr_verify_case *work, struct mfr_folded *run)
{
    int64_t hidden = work->shape.hidden;
    struct mfr_tensors weights = mfr_layer_weights(run->layer);
    int64_t tokens = mfr_layer_shard(run->layer)->tokens;

    for (int64_t e = 0; e < work->shape.experts; e++)
        mfr_verify_case_bend(work, MFR_ROUTER, e, weights.router + e * hidden);
    for (int64_t t = 0; t < tokens; t++)
        mfr_verify_case_bend(work, MFR_INPUT, t, run->x + t * hidden);
}

static int folded_create(const struct mfr_verifier *verifier,
    const struct mfr_verify_case *work, struct mfr_folded *run,
    struct mf_error *err)
{
    const struct mfr_layer_options how = {
        .kernel = work->kernel,
        .fault = work->fault,
        .dispatcher = work->dispatcher,
        .transport = work->transport,
        .device = work->device,
        .device_comms = work->device_comms,
        .observed = true,
    };
    int64_t tokens;

    *run = (struct mfr_folded){0};
    if (mfr_layer_create(&work->shape, &verifier->layout, verifier->comms, &how,
            &run->layer, err))
        return -1;
    tokens = mfr_layer_shard(run->layer)->tokens;
    run->x = mfr_room(tokens, work->shape.hidden, sizeof(float), err);
    run->y = mfr_room(tokens, work->shape.hidden, sizeof(float), err);
    run->dy = mfr_room(tokens, work->shape.hidden, sizeof(float), err);
    run->dx = mfr_room(tokens, work->shape.hidden, sizeof(float), err);
    if (!run->x || !run->y || !run->dy || !run->dx)
        return -1;
    mfr_layer_seed(run->layer, work->seed);
    mfr_layer_seed_input(run->layer, work->seed, run->x);
    mfr_layer_seed_output_grad(run->layer, work->seed, run->dy);
    folded_bend(work, run);
    return 0;
}

void mfr_folded_free(struct mfr_folded *run)
{
    mfr_layer_free(run->layer);
    free(run->x);
    free(run->y);
    free(run->dy);
    free(run->dx);
    *run = (struct mfr_folded){0};
}

double mfr_folded_scale(const struct mf_layout *layout)
{
    return 1.0 / (double)(layout->dp * layout->cp);
}

int mfr_folded_run(const struct mfr_verifier *verifier,
    const struct mfr_verify_case *work, struct mfr_folded *run,
    struct mf_error *err)
{
    MPI_Comm base = verifier->comms->base;
    int rc = folded_create(verifier, work, run, err);

    if (mfr_agree(base, rc, err))
        return -1;
    rc = mfr_layer_forward(run->layer, run->x, run->y, err);
    if (mfr_agree(base, rc, err))
        return -1;
    rc = mfr_layer_backward(run->layer, run->dy, run->dx, err);
    if (mfr_agree(base, rc, err))
        return -1;
    rc = mfr_layer_reduce_gradients(
        run->layer, mfr_folded_scale(&verifier->layout), err);
    return mfr_agree(base, rc, err);
}

bool mfr_same(const void *a, const void *b, int64_t items, size_t size)
{
    return items <= 0 || !memcmp(a, b, (size_t)items * size);
}

static bool gradients_same(const struct mfr_shape *shape,
    const struct mfr_tensors *a, const struct mfr_tensors *b)
{
    const struct mf_coords any = {0};
    struct mfr_view of_a[MFR_VIEWS_MOST], of_b[MFR_VIEWS_MOST];
    const int n = mfr_tensors_views(shape, &any, a, of_a);

    if (mfr_tensors_views(shape, &any, b, of_b) != n)
        return false;
    for (int i = 0; i < n; i++)
        if (!mfr_same(of_a[i].values, of_b[i].values, mfr_view_count(&of_a[i]),
                sizeof(float)))
            return false;
    return true;
}

bool mfr_folded_same(const struct mfr_shape *shape, const struct mfr_folded *a,
    const struct mfr_folded *b)
{
    struct mfr_routes ra = mfr_layer_routes(a->layer);
    struct mfr_routes rb = mfr_layer_routes(b->layer);
    struct mfr_received ka = mfr_layer_received(a->layer);
    struct mfr_received kb = mfr_layer_received(b->layer);
    struct mfr_tensors ga = mfr_layer_gradients(a->layer);
    struct mfr_tensors gb = mfr_layer_gradients(b->layer);
    int64_t values = ra.tokens * shape->hidden,
            chosen = ra.tokens * shape->topk;

    return ra.tokens == rb.tokens && ka.rows == kb.rows &&
           mfr_same(ra.ids, rb.ids, chosen, sizeof *ra.ids) &&
           mfr_same(ra.weights, rb.weights, chosen, sizeof *ra.weights) &&
           mfr_same(ra.counts, rb.counts, shape->experts, sizeof *ra.counts) &&
           mfr_same(ka.first, kb.first, ga.experts + 1, sizeof *ka.first) &&
           mfr_same(ka.row, kb.row, ka.rows * shape->hidden, sizeof *ka.row) &&
           mfr_same(a->y, b->y, values, sizeof *a->y) &&
           mfr_same(a->dx, b->dx, values, sizeof *a->dx) &&
           gradients_same(shape, &ga, &gb);
}
