/* SPDX-License-Identifier: BSD-3-Clause
 * One layout and shape, held against both references.
 *
 * (a) The double-precision reference (runtime/reference.h), within a bound.
 * (b) The same program on one rank, bit for bit where the arithmetic of a
 *     value does not depend on the layout.
 * Besides: replicas of a parameter hold the same gradient, a second run holds
 * the same bits, and the shards of a stage hold every token once.
 *
 * The first rank of each stage works both references out and shares them, so
 * each rank compares its own shard with no use of the layer's exchanges.
 */
#ifndef MFR_VERIFY_CASE_H
#define MFR_VERIFY_CASE_H

#include "runtime/data.h"
#include "runtime/layer.h"
#include "runtime/verify_check.h"

struct mfr_verify_case {
    struct mfr_shape shape;
    uint64_t seed;
    enum mfk_gemm kernel; /* of the experts; MFK_EXACT: outputs to the bit */
    enum mfr_fault fault;
    enum mf_dispatcher dispatcher;
    const struct mfr_transport *transport;
    struct mfk_device *device;                   /* NULL: the CPU */
    const struct mfr_device_comms *device_comms; /* NULL: MPI */
    bool pipeline; /* several layers and micro batches over stages, too */
    bool lopsided; /* the last expert draws nearly all tokens */
};

struct mfr_verify_result {
    struct mfr_checks checks;
    int64_t near_ties; /* of all stages */
};

/* Change a whole row of the seeded TENSOR as WORK asks: lopsided, the first
 * hidden entry of each input is 2 and only the last expert's logit sees it.
 */
void mfr_verify_case_bend(const struct mfr_verify_case *work,
    enum mfr_tensor tensor, int64_t row, float *values);

/* What all cases of one layout share: communicators that do not come from the
 * layer's, so that a wrong group of its own is seen.
 */
struct mfr_verifier {
    const struct mfr_comms *comms; /* the layout's */
    struct mf_layout layout;
    struct mf_coords coords;
    MPI_Comm stage;    /* the ranks of this rank's pipeline stage */
    MPI_Comm replicas; /* those of them that hold the same expert shard */
    MPI_Comm shared_replicas;      /* the same part of the shared experts */
    struct mf_layout alone_layout; /* of one rank */
    struct mfr_comms alone;
    bool connected; /* alone holds something */
};

/* Collective over COMMS' base; all ranks return the same. COMMS must outlive
 * the verifier.
 */
int mfr_verifier_create(const struct mfr_comms *comms,
    const struct mf_layout *layout, struct mfr_verifier *verifier,
    struct mf_error *err);
/* Collective. */
void mfr_verifier_free(struct mfr_verifier *verifier);

/* Collective over the base; all ranks return the same and hold the same
 * RESULT. A check that is not ok is a result, not an error.
 */
int mfr_verify_case_run(const struct mfr_verifier *verifier,
    const struct mfr_verify_case *work, struct mfr_verify_result *result,
    struct mf_error *err);

#endif
