/* SPDX-License-Identifier: BSD-3-Clause
 * The cost model: prices a layout from where its groups lie on the tiers.
 */
#ifndef MF_COST_H
#define MF_COST_H

#include "planner/layout/plan.h"

enum mf_coefficient {
    MF_COEF_GEMM,          /* dense product, fraction of peak */
    MF_COEF_GROUPED,       /* expert product against dense */
    MF_COEF_ATTENTION,     /* core attention, fraction of peak */
    MF_COEF_HBM,           /* memory passes, fraction of peak */
    MF_COEF_TIER0,         /* innermost network tier, fraction of its rate */
    MF_COEF_TIER1,         /* all outer tiers */
    MF_COEF_LAUNCH_S,      /* seconds a kernel */
    MF_COEF_LATENCY,       /* times the tier's latency */
    MF_COEF_SCALE,         /* first of the factors by phase, see below */
    MF_COEFS = MF_COEF_SCALE + 2 * MF_PHASES * MF_DIRECTIONS
};

/* Beside the physical figures, each phase and direction has a factor and an
 * offset in seconds (1 and 0 before any fit): measured = factor*model + offset.
 */
struct mf_coefficients {
    char name[64]; /* "prior" before any fit */
    double value[MF_COEFS];
};

void mf_coefficients_init(struct mf_coefficients *set);
/* A stable text for each value, such as "gemm" or "dispatch.forward.factor". */
void mf_coefficient_name(int index, char *text, size_t size);
int mf_coefficient_find(const char *name); /* -1: none of that name */

/* Check that LAYOUT suits MODEL and SETTINGS (experts by ep, heads by tp,
 * layers by pp, batch by dp, sequence by shards): MF_INVALID with the mend.
 */
int mf_cost_check(const struct mf_model *model, const struct mf_layout *layout,
    const struct mf_settings *settings, enum mf_scope scope,
    struct mf_error *err);

/* Price ENTRY->layout under ENTRY->settings; settings that are auto are
 * replaced by the best that fits. Fills ENTRY->cost (free with mf_cost_free).
 */
int mf_cost_predict(const struct mf_model *model,
    const struct mf_cluster *cluster, enum mf_scope scope,
    const struct mf_coefficients *set, struct mf_plan_entry *entry,
    struct mf_error *err);

#endif
