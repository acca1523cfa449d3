/* SPDX-License-Identifier: BSD-3-Clause
 * Compare what one run left on a rank with what is expected there.
 */
#ifndef MFR_VERIFY_COMPARE_H
#define MFR_VERIFY_COMPARE_H

#include "runtime/verify_expected.h"
#include "runtime/verify_folded.h"

struct mfr_trial {
    const struct mfr_verifier *verifier;
    const struct mfr_verify_case *work;
    struct mfr_folded run;
    struct mfr_expected expected;
    struct mfr_checks *checks;
};

/* Add all checks but that of a second run; mfr_checks_settle is still to be
 * called. Collective over the base; all ranks return the same.
 */
int mfr_trial_compare(struct mfr_trial *trial, struct mf_error *err);

/* Take an optimizer step, which changes the layer's weights, and check those
 * and the norm of all gradients. After the comparison above; collective over
 * the verifier's base.
 */
int mfr_trial_step(struct mfr_trial *trial, struct mf_error *err);

/* Are outputs and dX of the case the same bits in every layout? */
bool mfr_trial_bits(const struct mfr_trial *trial);

/* Run several layers and micro batches over the stages and check them.
 * Collective over the verifier's base.
 */
int mfr_trial_pipeline(struct mfr_trial *trial, struct mf_error *err);

#endif
