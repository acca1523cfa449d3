/* SPDX-License-Identifier: BSD-3-Clause
 * What a stage should have computed: the two references, on every rank.
 */
#ifndef MFR_VERIFY_EXPECTED_H
#define MFR_VERIFY_EXPECTED_H

#include "runtime/reference.h"
#include "runtime/verify_case.h"

/* T = dp * seq * batch tokens of a stage: by micro batch, then position, then
 * sequence.
 */
struct mfr_expected {
    int64_t per_batch, tokens; /* seq * batch, T */

    /* The same program on one rank. */
    int32_t *ids;    /* [T][topk] */
    float *weights;  /* [T][topk] */
    int64_t *counts; /* [experts] */
    float *y, *dx;   /* [T][hidden] */

    /* The double-precision reference, gradients apart. */
    int32_t *ref_ids;    /* [T][topk] */
    double *ref_weights; /* [T][topk] */
    double *ref_y, *ref_dx;
    double loss, grad_norm;
    double *router; /* gradient [experts][hidden] */
    int64_t near_ties;

    struct mfr_reference reference; /* on the stage's first rank alone */
};

/* Of the layout's stage PP; collective over STAGE, all ranks of which return
 * the same. Gradients are times SCALE, as the layer's are.
 */
int mfr_expected_create(const struct mfr_verify_case *work, int64_t pp,
    double scale, MPI_Comm stage, struct mfr_expected *expected,
    struct mf_error *err);
void mfr_expected_free(struct mfr_expected *expected);

/* BYTES of DATA from the first rank of COMM to all. */
int mfr_share(MPI_Comm comm, void *data, int64_t bytes, struct mf_error *err);

/* a * b items of SIZE bytes, zeroed; NULL (and ERR) when there is no room. At
 * least one byte, so that an empty array is not an error.
 */
void *mfr_room(int64_t a, int64_t b, size_t size, struct mf_error *err);

#endif
