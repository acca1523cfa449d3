/* SPDX-License-Identifier: BSD-3-Clause
 * Refines the cost model with the timings of past runs.
 *
 * The layer's time is linear in a few coefficients: a factor each for products,
 * memory passes and exchanges, seconds for each peer of an exchange, seconds
 * for each layer. They hold for every layout, so a few runs of a few layouts
 * say something about one that never ran. All three factors first follow the
 * median of measured over predicted; what is left moves single coefficients,
 * held back by how far the prior lets them go.
 */
#ifndef MF_FIT_H
#define MF_FIT_H

#include "db/db.h"
#include "planner/cost.h"

struct mf_fit {
    struct mf_coefficients set;       /* not named yet */
    double error_before, error_after; /* median |predicted/measured - 1| of
                                         layer time; after: each layout by a
                                         fit to the other ones */
    int64_t runs, layouts, samples;   /* used; samples are timed phases */
    int64_t skipped;                  /* runs that cannot be priced */
    bool improved;                    /* else SET is the one it began with */
};

/* Fit to the finished runs in DB on CLUSTER (by its name), starting from
 * PRIOR. MF_FAILED when there are too few runs, with how many.
 */
int mf_fit_run(mfdb *db, const struct mf_cluster *cluster,
    const struct mf_coefficients *prior, struct mf_fit *fit,
    struct mf_error *err);

#endif
