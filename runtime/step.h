/* SPDX-License-Identifier: BSD-3-Clause
 * An optimizer step: the norm of all gradients, and descent with that norm
 * clipped.
 */
#ifndef MFR_STEP_H
#define MFR_STEP_H

#include <mpi.h>

#include "runtime/layer.h"

/* sqrt of the sum of squares of all gradients of all stages, each parameter
 * once however many ranks hold it. Collective over WORLD; the same on all.
 */
int mfr_grad_norm(const struct mfr_shape *shape, const struct mf_coords *coords,
    const struct mfr_tensors *gradients, MPI_Comm world, double *norm,
    struct mf_error *err);

/* min(1, MOST / (NORM + 1e-6)), as torch.nn.utils.clip_grad_norm_ and
 * Megatron's clip_grads have it.
 */
double mfr_clip(double norm, double most);

/* weight -= RATE * gradient, each rounded once to float. */
void mfr_descend(const struct mfr_shape *shape, const struct mf_coords *coords,
    const struct mfr_tensors *weights, const struct mfr_tensors *gradients,
    double rate);

#endif
