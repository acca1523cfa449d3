/* SPDX-License-Identifier: BSD-3-Clause
 * A model's MoE layers over pipeline stages: several layers a stage, each with
 * its residual, h = h + moe(h), and micro batches one after another, whose
 * activations go from stage to stage and whose gradients come back.
 *
 * The schedule is 1F1B (Narayanan et al., arXiv 2104.04473, 2.2.1): a stage
 * begins with as many forward passes as there are stages behind it, then
 * alternates, so that no more than that and one are in flight. What a stage
 * keeps of a micro batch in flight is its input: the forward pass is repeated
 * before the backward one unless it was the last thing done.
 */
#ifndef MFR_PIPELINE_H
#define MFR_PIPELINE_H

#include "runtime/layer.h"

typedef struct mfr_pipeline mfr_pipeline;

/* LAYERS a stage, BATCHES micro batches a step. What HOW points to and COMMS
 * must outlive it. Collective over COMMS' base; all ranks return the same.
 */
int mfr_pipeline_create(const struct mfr_shape *shape,
    const struct mf_layout *layout, const struct mfr_comms *comms,
    const struct mfr_layer_options *how, int64_t layers, int64_t batches,
    mfr_pipeline **pipeline, struct mf_error *err);
void mfr_pipeline_free(mfr_pipeline *pipeline);

/* Layer L of this rank's stage. */
mfr_layer *mfr_pipeline_layer(mfr_pipeline *pipeline, int64_t l);
/* Weights of layer L of ALL, as those of a stage L, but what a layer adds to
 * its residual is 1 / ALL as large, so that the sum stays of one size.
 */
void mfr_pipeline_seed_layer(const struct mfr_shape *shape, uint64_t seed,
    int64_t l, int64_t all, const struct mf_coords *coords,
    const struct mfr_tensors *weights);
/* Those of layer L of stage S are those of layer S * layers + L. */
void mfr_pipeline_seed(mfr_pipeline *pipeline, uint64_t seed);
/* X or DY [batches][tokens][hidden] of this rank, MFR_INPUT or
 * MFR_OUTPUT_GRAD; micro batch B of data-parallel place D is block
 * B * dp + D of the data.
 */
void mfr_pipeline_seed_batches(const mfr_pipeline *pipeline, uint64_t seed,
    enum mfr_tensor tensor, float *values);

/* All micro batches forward and backward, each array [batches][tokens][hidden]:
 * X and DX of the first stage, Y and DY of the last, not touched in others.
 * Gradients are added to. Collective over COMMS' base; a rank that fails has
 * the others wait.
 */
int mfr_pipeline_step(mfr_pipeline *pipeline, const float *x, float *y,
    const float *dy, float *dx, struct mf_error *err);
/* Seconds of the last step in receiving and sending between stages. */
double mfr_pipeline_send_s(
    const mfr_pipeline *pipeline, enum mf_direction direction);

/* Those of every layer: zero, and summed as mfr_layer_reduce_gradients. */
void mfr_pipeline_zero_gradients(mfr_pipeline *pipeline);
int mfr_pipeline_reduce_gradients(
    mfr_pipeline *pipeline, double scale, struct mf_error *err);

#endif
