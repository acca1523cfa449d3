/* SPDX-License-Identifier: BSD-3-Clause
 * The steps of --pipeline.
 */
#include "runtime/run_pipeline.h"

#include <stdlib.h>

#include "runtime/clock.h"
#include "runtime/collective.h"
#include "runtime/run_state.h"
#include "runtime/stats.h"

enum { STEP, FIGURES = 1 + MF_DIRECTIONS };

struct steps {
    mfr_pipeline *pipeline;
    float *x, *y, *dy, *dx; /* [batches][tokens][hidden] */
    double *figure;         /* [FIGURES][iterations], slowest rank */
};

static int steps_create(
    struct mfr_run *run, struct steps *steps, struct mf_error *err)
{
    const struct mfr_options *o = run->options;
    const int64_t layers = o->layers ? o->layers : 1;
    const struct mfr_layer_options how = {
        .kernel = o->kernel,
        .transport = &o->transport,
        .dispatcher = run->entry->settings.dispatcher,
    };
    const size_t n = (size_t)(mfr_layer_shard(run->layer)->tokens *
                              run->shape.hidden * o->pipeline) +
                     1;

    run->pipeline.batches = o->pipeline;
    run->pipeline.layers = layers;
    if (mfr_pipeline_create(&run->shape, &run->entry->layout, &run->comms, &how,
            layers, o->pipeline, &steps->pipeline, err))
        return -1;
    steps->x = calloc(n, sizeof *steps->x);
    steps->y = calloc(n, sizeof *steps->y);
    steps->dy = calloc(n, sizeof *steps->dy);
    steps->dx = calloc(n, sizeof *steps->dx);
    steps->figure =
        calloc((size_t)(FIGURES * o->iterations), sizeof *steps->figure);
    if (!steps->x || !steps->y || !steps->dy || !steps->dx || !steps->figure)
        return mf_error_set(err, MF_FAILED, "out of memory for micro batches");
    mfr_pipeline_seed(steps->pipeline, (uint64_t)o->seed);
    mfr_pipeline_seed_batches(
        steps->pipeline, (uint64_t)o->seed, MFR_INPUT, steps->x);
    mfr_pipeline_seed_batches(
        steps->pipeline, (uint64_t)o->seed, MFR_OUTPUT_GRAD, steps->dy);
    return 0;
}

static void steps_free(struct steps *steps)
{
    mfr_pipeline_free(steps->pipeline);
    free(steps->x);
    free(steps->y);
    free(steps->dy);
    free(steps->dx);
    free(steps->figure);
}

/* FIGURE [FIGURES] of one step. */
static int step(struct mfr_run *run, struct steps *steps, double *figure,
    struct mf_error *err)
{
    double start;

    mfr_pipeline_zero_gradients(steps->pipeline);
    if (mfr_barrier(run->world, "MPI_Barrier (before a step)", err))
        return -1;
    start = mfr_now();
    if (mfr_pipeline_step(
            steps->pipeline, steps->x, steps->y, steps->dy, steps->dx, err))
        return -1;
    figure[STEP] = mfr_now() - start;
    for (int d = 0; d < MF_DIRECTIONS; d++)
        figure[1 + d] =
            mfr_pipeline_send_s(steps->pipeline, (enum mf_direction)d);
    return mfr_allreduce(MPI_IN_PLACE, figure, FIGURES, MPI_DOUBLE, MPI_MAX,
        run->world, "MPI_Allreduce (times of a step)", err);
}

int mfr_run_pipeline(struct mfr_run *run, struct mf_error *err)
{
    const int64_t n = run->options->iterations;
    struct steps steps = {0};
    int rc;

    if (!run->options->pipeline)
        return 0;
    if (run->device.device)
        return mf_error_set(err, MF_INVALID,
            "--pipeline runs on the CPU alone; use --backend cpu");
    rc = mfr_agree(run->world, steps_create(run, &steps, err), err);
    for (int64_t i = -1; rc == 0 && i < n; i++) {
        double figure[FIGURES];

        mfr_guard_iteration(run->world, i);
        if (step(run, &steps, figure, err)) {
            *run->alone = true;
            return -1;
        }
        for (int f = 0; i >= 0 && f < FIGURES; f++)
            steps.figure[f * n + i] = figure[f];
    }
    if (rc == 0) {
        run->pipeline.step_s = mfr_median((size_t)n, steps.figure);
        for (int d = 0; d < MF_DIRECTIONS; d++)
            run->pipeline.send_s[d] =
                mfr_median((size_t)n, steps.figure + (1 + d) * n);
    }
    steps_free(&steps);
    return rc;
}
