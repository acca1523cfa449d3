/* SPDX-License-Identifier: BSD-3-Clause
 * What a stage should have computed: the two references, on every rank.
 */
#ifndef MFR_VERIFY_EXPECTED_H
#define MFR_VERIFY_EXPECTED_H

#include "runtime/reference.h"
#include "runtime/verify_case.h"

struct mfr_expected_sums {
    double loss, loss_scale, grad_norm;
    int64_t near_ties;
};

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
    int32_t *ref_ids;       /* [T][topk] */
    double *ref_weights;    /* [T][topk] */
    double *ref_y, *ref_dx; /* [T][hidden] */
    struct mfr_expected_sums *sums;

    /* All of the above lie in one piece, so that sharing is one broadcast. */
    char *arena;
    int64_t arena_bytes;

    struct mfr_reference reference; /* on the stage's first rank alone */
};

/* For this rank's stage; collective over it, and all its ranks return the
 * same. Gradients are times SCALE, as the layer's are. To be freed in any
 * case.
 */
int mfr_expected_create(const struct mfr_verifier *verifier,
    const struct mfr_verify_case *work, double scale,
    struct mfr_expected *expected, struct mf_error *err);
void mfr_expected_free(struct mfr_expected *expected);

/* That of T which a layer's TENSOR is held against; NULL for input and output.
 */
double **mfr_expected_member(
    struct mfr_reference_tensors *t, enum mfr_tensor tensor);

/* BYTES of DATA from the first rank of COMM to all. */
int mfr_share(MPI_Comm comm, void *data, int64_t bytes, struct mf_error *err);

/* a * b items of SIZE bytes, zeroed; NULL (and ERR) when there is no room. At
 * least one byte, so that an empty array is not an error.
 */
void *mfr_room(int64_t a, int64_t b, size_t size, struct mf_error *err);

#endif
