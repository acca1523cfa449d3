/* SPDX-License-Identifier: BSD-3-Clause
 * Several layers over pipeline stages, against the same layers one after
 * another on one rank.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "runtime/pipeline.h"
#include "runtime/verify_compare.h"

/* More micro batches than two stages hold at a time, and fewer than four. */
enum { LAYERS = 2, BATCHES = 3 };

/* All layers of all stages on the base's first rank, without a pipeline. */
struct chain {
    int64_t layers, tokens,
        values;        /* tokens of one micro batch; times hidden */
    mfr_layer **layer; /* there alone */
    float *act;        /* [layers + 1][values] */
    float *grad;       /* [2][values] */
    float *y, *dx;     /* [BATCHES * dp][values], on all ranks */
};

/* The pipeline under test. */
struct piped {
    mfr_pipeline *pipeline;
    float *x, *y, *dy, *dx; /* [BATCHES][tokens here][hidden] */
};

static int chain_create(
    const struct mfr_trial *trial, struct chain *chain, struct mf_error *err)
{
    const struct mfr_shape *shape = &trial->work->shape;
    const struct mfr_verifier *v = trial->verifier;
    const struct mfr_layer_options how = {.kernel = trial->work->kernel};
    const struct mf_coords alone = {0};
    const int64_t blocks = BATCHES * v->layout.dp;
    int rc = 0;

    *chain = (struct chain){
        .layers = LAYERS * v->layout.pp,
        .tokens = shape->seq * shape->batch,
        .values = shape->seq * shape->batch * shape->hidden,
    };
    chain->y = mfr_room(blocks, chain->values, sizeof(float), err);
    chain->dx = mfr_room(blocks, chain->values, sizeof(float), err);
    if (!chain->y || !chain->dx)
        return -1;
    if (v->comms->rank != 0)
        return 0;
    chain->layer = calloc((size_t)chain->layers, sizeof(mfr_layer *));
    chain->act = mfr_room(chain->layers + 1, chain->values, sizeof(float), err);
    chain->grad = mfr_room(2, chain->values, sizeof(float), err);
    if (!chain->layer || !chain->act || !chain->grad)
        return mf_error_set(err, MF_FAILED, "verify: out of memory");
    for (int64_t l = 0; rc == 0 && l < chain->layers; l++) {
        struct mfr_tensors weights;

        rc = mfr_layer_create(
            shape, &v->alone_layout, &v->alone, &how, &chain->layer[l], err);
        if (rc)
            break;
        weights = mfr_layer_weights(chain->layer[l]);
        mfr_pipeline_seed_layer(
            shape, trial->work->seed, l, chain->layers, &alone, &weights);
    }
    return rc;
}

static void chain_free(struct chain *chain)
{
    for (int64_t l = 0; chain->layer && l < chain->layers; l++)
        mfr_layer_free(chain->layer[l]);
    free(chain->layer);
    free(chain->act);
    free(chain->grad);
    free(chain->y);
    free(chain->dx);
}

static void fill(const struct mfr_trial *trial, enum mfr_tensor tensor,
    int64_t block, int64_t tokens, float *out)
{
    const struct mfr_shape *shape = &trial->work->shape;

    for (int64_t t = 0; t < tokens; t++)
        mfr_data_row(shape, trial->work->seed, tensor, 0, block, t, 0,
            shape->hidden, out + t * shape->hidden);
}

/* Block I of the data through all layers and back. */
static int chain_block(const struct mfr_trial *trial, struct chain *chain,
    int64_t i, struct mf_error *err)
{
    const int64_t n = chain->values;
    const size_t bytes = (size_t)n * sizeof(float);
    float *grad = chain->grad, *own = chain->grad + n;

    fill(trial, MFR_INPUT, i, chain->tokens, chain->act);
    fill(trial, MFR_OUTPUT_GRAD, i, chain->tokens, grad);
    for (int64_t l = 0; l < chain->layers; l++) {
        float *x = chain->act + l * n;

        if (mfr_layer_forward(chain->layer[l], x, x + n, err))
            return -1;
        mfk_add(n, x, x + n);
    }
    for (int64_t l = chain->layers; l-- > 0;) {
        if (mfr_layer_backward(chain->layer[l], grad, own, err))
            return -1;
        mfk_add(n, own, grad);
    }
    memcpy(chain->y + i * n, chain->act + chain->layers * n, bytes);
    memcpy(chain->dx + i * n, grad, bytes);
    return 0;
}

/* On the first rank, then on all. */
static int chain_run(
    const struct mfr_trial *trial, struct chain *chain, struct mf_error *err)
{
    const MPI_Comm base = trial->verifier->comms->base;
    const int64_t blocks = BATCHES * trial->verifier->layout.dp;
    const int64_t bytes = blocks * chain->values * (int64_t)sizeof(float);
    int rc = 0;

    for (int64_t i = 0; rc == 0 && chain->layer && i < blocks; i++)
        rc = chain_block(trial, chain, i, err);
    if (mfr_agree(base, rc, err) || mfr_share(base, chain->y, bytes, err))
        return -1;
    return mfr_share(base, chain->dx, bytes, err);
}

static int piped_run(const struct mfr_trial *trial, struct piped *piped,
    double scale, struct mf_error *err)
{
    const struct mfr_verify_case *work = trial->work;
    const struct mfr_verifier *v = trial->verifier;
    const struct mfr_layer_options how = {
        .kernel = work->kernel,
        .fault = work->fault,
        .dispatcher = work->dispatcher,
        .transport = work->transport,
        .observed = true,
    };
    const int64_t n =
        trial->run.layer
            ? mfr_layer_shard(trial->run.layer)->tokens * work->shape.hidden
            : 0;
    int rc;

    *piped = (struct piped){0};
    if (mfr_pipeline_create(&work->shape, &v->layout, v->comms, &how, LAYERS,
            BATCHES, &piped->pipeline, err))
        return -1;
    piped->x = mfr_room(BATCHES, n, sizeof(float), err);
    piped->y = mfr_room(BATCHES, n, sizeof(float), err);
    piped->dy = mfr_room(BATCHES, n, sizeof(float), err);
    piped->dx = mfr_room(BATCHES, n, sizeof(float), err);
    rc = piped->x && piped->y && piped->dy && piped->dx ? 0 : -1;
    if (mfr_agree(v->comms->base, rc, err))
        return -1;
    mfr_pipeline_seed(piped->pipeline, work->seed);
    mfr_pipeline_seed_batches(piped->pipeline, work->seed, MFR_INPUT, piped->x);
    mfr_pipeline_seed_batches(
        piped->pipeline, work->seed, MFR_OUTPUT_GRAD, piped->dy);
    rc = mfr_pipeline_step(
        piped->pipeline, piped->x, piped->y, piped->dy, piped->dx, err);
    if (rc == 0)
        rc = mfr_pipeline_reduce_gradients(piped->pipeline, scale, err);
    return mfr_agree(v->comms->base, rc, err);
}

static void piped_free(struct piped *piped)
{
    mfr_pipeline_free(piped->pipeline);
    free(piped->x);
    free(piped->y);
    free(piped->dy);
    free(piped->dx);
}

/* Y of the last stage, or DX of the first. */
static void check_values(struct mfr_trial *trial, const float *got,
    const float *want, bool here, int64_t per_batch, struct mfr_check *check)
{
    const struct mfr_shard *shard = mfr_layer_shard(trial->run.layer);
    const struct mfr_shape *shape = &trial->work->shape;
    const int64_t n = shard->tokens * shape->hidden;
    const int64_t first = shard->first * shape->batch * shape->hidden;
    const float nothing = 0;

    /* A stage without them has nothing that could be wrong. */
    if (!here)
        mfr_check_floats(check, &nothing, &nothing, 1);
    for (int64_t b = 0; here && b < BATCHES; b++)
        mfr_check_floats(check, got + b * n,
            want +
                (b * trial->verifier->layout.dp + shard->micro_batch) *
                    per_batch +
                first,
            n);
}

/* This rank's part of a whole parameter's gradient WHOLE, times SCALE. */
static void check_view(const struct mfr_view *view, const float *whole,
    double scale, double *row, struct mfr_check *check)
{
    for (int64_t b = 0; b < view->blocks; b++)
        for (int64_t r = 0; r < view->rows; r++) {
            const float *from = whole +
                                ((view->first_block + b) * view->all_rows +
                                    view->first_row + r) *
                                    view->all_columns +
                                view->first_column;

            for (int64_t c = 0; c < view->columns; c++)
                row[c] = scale * (double)from[c];
            mfr_check_doubles(
                check, mfr_view_row(view, b, r), row, view->columns);
        }
}

/* Layer L of all of them: the first rank's gradients go round. */
static int check_layer(struct mfr_trial *trial, struct chain *chain,
    struct piped *piped, int64_t l, double scale, struct mfr_check *check,
    struct mf_error *err)
{
    const struct mfr_shape *shape = &trial->work->shape;
    const struct mfr_verifier *v = trial->verifier;
    const struct mf_coords alone = {0};
    const struct mfr_tensors mine =
        mfr_layer_gradients(mfr_pipeline_layer(piped->pipeline, l % LAYERS));
    struct mfr_view view[MFR_VIEWS_MOST], whole[MFR_VIEWS_MOST];
    const int views = mfr_tensors_views(shape, &v->coords, &mine, view);
    int rc = 0;

    if (chain->layer) {
        const struct mfr_tensors all = mfr_layer_gradients(chain->layer[l]);

        if (mfr_tensors_views(shape, &alone, &all, whole) != views)
            return mf_error_set(err, MF_FAILED, "verify: other parameters");
    }
    for (int i = 0; rc == 0 && i < views; i++) {
        const int64_t n =
            view[i].all_blocks * view[i].all_rows * view[i].all_columns;
        float *values = mfr_room(n, 1, sizeof *values, err);
        double *row = mfr_room(view[i].columns, 1, sizeof *row, err);

        rc = mfr_agree(v->comms->base, values && row ? 0 : -1, err);
        if (rc == 0 && chain->layer)
            memcpy(values, whole[i].values, (size_t)n * sizeof *values);
        if (rc == 0)
            rc = mfr_share(
                v->comms->base, values, n * (int64_t)sizeof *values, err);
        if (rc == 0 && l / LAYERS == v->coords.pp)
            check_view(&view[i], values, scale, row, check);
        free(values);
        free(row);
    }
    return rc;
}

static int compare(struct mfr_trial *trial, struct chain *chain,
    struct piped *piped, double scale, struct mf_error *err)
{
    const struct mfr_verifier *v = trial->verifier;
    const bool bits = mfr_trial_bits(trial);
    /* Each layer rounds what the one before it gave. */
    const double bound = MFR_BOUND_FP32 * (double)chain->layers;
    struct mfr_checks *checks = trial->checks;
    struct mfr_check *check;

    check_values(trial, piped->y, chain->y, v->coords.pp + 1 == v->layout.pp,
        chain->values, mfr_checks_add(checks, "pipeline_output", bound, bits));
    check_values(trial, piped->dx, chain->dx, v->coords.pp == 0, chain->values,
        mfr_checks_add(checks, "pipeline_dx", bound, bits));
    check = mfr_checks_add(checks, "pipeline_grads", bound, false);
    for (int64_t l = 0; l < chain->layers; l++)
        if (check_layer(trial, chain, piped, l, scale, check, err))
            return -1;
    return 0;
}

int mfr_trial_pipeline(struct mfr_trial *trial, struct mf_error *err)
{
    const struct mfr_verifier *v = trial->verifier;
    const double scale = mfr_folded_scale(&v->layout) / BATCHES;
    struct chain chain;
    struct piped piped = {0};
    int rc = chain_create(trial, &chain, err);

    rc = mfr_agree(v->comms->base, rc, err);
    if (rc == 0)
        rc = chain_run(trial, &chain, err);
    if (rc == 0)
        rc = piped_run(trial, &piped, scale, err);
    if (rc == 0)
        rc = compare(trial, &chain, &piped, scale, err);
    piped_free(&piped);
    chain_free(&chain);
    return rc;
}
