/* SPDX-License-Identifier: BSD-3-Clause
 * The gradient norm of all stages, and the weights after one optimizer step,
 * against the double-precision reference.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/collective.h"
#include "runtime/step.h"
#include "runtime/verify_compare.h"

/* Gradients of verification are about 1 in norm; a half lets clipping act. */
#define MOST_NORM 0.5
#define RATE 1.0

/* Of all stages, by the reference: each stage's first rank knows its own. */
static int expected_norm(
    const struct mfr_trial *trial, double *norm, struct mf_error *err)
{
    const double mine = trial->expected.sums->grad_norm;
    double sum = 0;
    int rank;

    if (mfr_mpi(MPI_Comm_rank(trial->verifier->stage, &rank),
            "verify: MPI_Comm_rank", err))
        return -1;
    sum = rank == 0 ? mine * mine : 0;
    if (mfr_allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM,
            trial->verifier->comms->base, "verify: MPI_Allreduce (norm)", err))
        return -1;
    *norm = sqrt(sum);
    return 0;
}

/* This rank's part of block B: BEFORE less RATE times the whole GRADIENT. */
static void check_block(const struct mfr_view *view, const float *before,
    int64_t b, const double *gradient, double rate, double *row,
    struct mfr_check *check)
{
    if (b < view->first_block || b >= view->first_block + view->blocks)
        return;
    b -= view->first_block;
    for (int64_t r = 0; r < view->rows; r++) {
        const float *from = before + (b * view->rows + r) * view->columns;
        const double *g = gradient + (view->first_row + r) * view->all_columns +
                          view->first_column;

        for (int64_t c = 0; c < view->columns; c++)
            row[c] = (double)from[c] - rate * g[c];
        mfr_check_doubles(check, mfr_view_row(view, b, r), row, view->columns);
    }
}

/* BEFORE: the values of VIEW before the step. */
static int check_tensor(struct mfr_trial *trial, const struct mfr_view *view,
    const float *before, double rate, struct mfr_check *check,
    struct mf_error *err)
{
    const int64_t size = view->all_rows * view->all_columns;
    const double *ref =
        *mfr_expected_member(&trial->expected.reference.gradient, view->tensor);
    double *whole = mfr_room(size, 1, sizeof *whole, err);
    double *row = mfr_room(view->columns, 1, sizeof *row, err);
    int rc = mfr_agree(trial->verifier->stage, whole && row ? 0 : -1, err);

    for (int64_t b = 0; rc == 0 && b < view->all_blocks; b++) {
        if (ref)
            memcpy(whole, ref + b * size, (size_t)size * sizeof *whole);
        rc = mfr_share(
            trial->verifier->stage, whole, size * (int64_t)sizeof *whole, err);
        if (rc == 0)
            check_block(view, before, b, whole, rate, row, check);
    }
    free(whole);
    free(row);
    return rc;
}

/* Whoever holds the same part of a parameter still holds the same bits. */
static int check_replicas(struct mfr_trial *trial, const struct mfr_view *view,
    struct mfr_check *check, struct mf_error *err)
{
    const struct mfr_verifier *v = trial->verifier;
    const int64_t n = mfr_view_count(view);
    const MPI_Comm comm = view->sum == MF_GROUP_TP_DP_CP ? v->stage
                          : view->sum == MF_GROUP_EDP    ? v->replicas
                                                         : v->shared_replicas;
    float *first = mfr_room(n, 1, sizeof *first, err);
    int rc = mfr_agree(v->stage, first ? 0 : -1, err);

    if (rc == 0) {
        memcpy(first, view->values, (size_t)n * sizeof *first);
        rc = mfr_share(comm, first, n * (int64_t)sizeof *first, err);
    }
    if (rc == 0)
        mfr_check_equal(check, mfr_same(first, view->values, n, sizeof *first));
    free(first);
    return rc;
}

/* A copy of all values of the VIEWS, one after another. */
static float *copy(const struct mfr_view *view, int views, struct mf_error *err)
{
    int64_t all = 0;
    float *to, *at;

    for (int i = 0; i < views; i++)
        all += mfr_view_count(&view[i]);
    to = at = mfr_room(all, 1, sizeof *to, err);
    for (int i = 0; to && i < views; i++) {
        const int64_t n = mfr_view_count(&view[i]);

        memcpy(at, view[i].values, (size_t)n * sizeof *at);
        at += n;
    }
    return to;
}

static int check_weights(struct mfr_trial *trial, const struct mfr_view *view,
    int views, const float *before, double rate, struct mf_error *err)
{
    struct mfr_check *stepped =
        mfr_checks_add(trial->checks, "optimizer_step", MFR_BOUND_FP32, false);
    struct mfr_check *replicas =
        mfr_checks_add(trial->checks, "weight_replicas", 0, true);

    for (int i = 0; i < views; i++) {
        /* What only chooses has no gradient, and does not move. */
        if (view[i].tensor != MFR_SELECT_BIAS &&
            (check_tensor(trial, &view[i], before, rate, stepped, err) ||
                check_replicas(trial, &view[i], replicas, err)))
            return -1;
        before += mfr_view_count(&view[i]);
    }
    return 0;
}

int mfr_trial_step(struct mfr_trial *trial, struct mf_error *err)
{
    const struct mfr_shape *shape = &trial->work->shape;
    const struct mf_coords *coords = &trial->verifier->coords;
    const MPI_Comm base = trial->verifier->comms->base;
    const struct mfr_tensors weights = mfr_layer_weights(trial->run.layer);
    const struct mfr_tensors gradients = mfr_layer_gradients(trial->run.layer);
    struct mfr_view view[MFR_VIEWS_MOST];
    const int views = mfr_tensors_views(shape, coords, &weights, view);
    float *before = copy(view, views, err);
    double norm = 0, want = 0;
    int rc = mfr_agree(base, before ? 0 : -1, err);

    if (rc || mfr_grad_norm(shape, coords, &gradients, base, &norm, err) ||
        expected_norm(trial, &want, err)) {
        free(before);
        return -1;
    }
    mfr_check_double(
        mfr_checks_add(trial->checks, "grad_norm_all", MFR_BOUND_FP32, false),
        norm, want);
    mfr_descend(
        shape, coords, &weights, &gradients, RATE * mfr_clip(norm, MOST_NORM));
    rc = check_weights(
        trial, view, views, before, RATE * mfr_clip(want, MOST_NORM), err);
    free(before);
    return rc;
}
