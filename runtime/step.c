/* SPDX-License-Identifier: BSD-3-Clause
 * An optimizer step.
 */
#include "runtime/step.h"

#include <math.h>

#include "runtime/collective.h"
#include "runtime/comm.h"

int mfr_grad_norm(const struct mfr_shape *shape, const struct mf_coords *coords,
    const struct mfr_tensors *gradients, MPI_Comm world, double *norm,
    struct mf_error *err)
{
    struct mfr_view view[MFR_VIEWS_MOST];
    const int views = mfr_tensors_views(shape, coords, gradients, view);
    double sum = 0;

    for (int i = 0; i < views; i++)
        for (int64_t k = 0; view[i].once && k < mfr_view_count(&view[i]); k++)
            sum += (double)view[i].values[k] * (double)view[i].values[k];
    if (mfr_allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, world,
            "MPI_Allreduce (gradient norm)", err) ||
        /* All take the first one's bits: they scale the same weights. */
        mfr_bcast(
            &sum, 1, MPI_DOUBLE, 0, world, "MPI_Bcast (gradient norm)", err))
        return -1;
    *norm = sqrt(sum);
    return 0;
}

double mfr_clip(double norm, double most)
{
    const double scale = most / (norm + 1e-6);

    return scale < 1 ? scale : 1;
}

static const struct mfr_view *find(
    const struct mfr_view *view, int views, enum mfr_tensor tensor)
{
    for (int i = 0; i < views; i++)
        if (view[i].tensor == tensor)
            return &view[i];
    return NULL;
}

void mfr_descend(const struct mfr_shape *shape, const struct mf_coords *coords,
    const struct mfr_tensors *weights, const struct mfr_tensors *gradients,
    double rate)
{
    struct mfr_view weight[MFR_VIEWS_MOST], gradient[MFR_VIEWS_MOST];
    const int n = mfr_tensors_views(shape, coords, weights, weight);
    const int m = mfr_tensors_views(shape, coords, gradients, gradient);

    for (int i = 0; i < n; i++) {
        const struct mfr_view *g = find(gradient, m, weight[i].tensor);

        for (int64_t k = 0; g && k < mfr_view_count(&weight[i]); k++)
            weight[i].values[k] = (float)((double)weight[i].values[k] -
                                          rate * (double)g->values[k]);
    }
}
