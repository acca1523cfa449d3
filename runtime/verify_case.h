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

#include "runtime/layer.h"
#include "runtime/verify_check.h"

struct mfr_verify_case {
    struct mfr_shape shape;
    struct mf_layout layout; /* resolved */
    uint64_t seed;
    enum mfk_gemm kernel; /* of the experts; MFK_EXACT: outputs to the bit */
    enum mfr_fault fault;
};

struct mfr_verify_result {
    struct mfr_checks checks;
    int64_t near_ties; /* of all stages */
};

/* Collective over COMMS' base, whose size is the layout's world; all ranks
 * return the same and hold the same RESULT. A check that is not ok is a
 * result, not an error.
 */
int mfr_verify_case_run(const struct mfr_verify_case *work,
    const struct mfr_comms *comms, struct mfr_verify_result *result,
    struct mf_error *err);

#endif
