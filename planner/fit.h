/* SPDX-License-Identifier: BSD-3-Clause
 * Refines the cost model with the timings of past runs.
 */
#ifndef MF_FIT_H
#define MF_FIT_H

#include "db/db.h"
#include "planner/cost.h"

struct mf_fit {
    struct mf_coefficients set; /* named as saved */
    double error_before, error_after; /* median |predicted/measured - 1| on
                                         samples left out of the fit */
    int64_t runs, samples;
    bool improved; /* else SET is the one it began with, and nothing is saved */
};

/* Fit to the finished runs in DB for CLUSTER (all of them when NULL), starting
 * from PRIOR; regularised toward it, robust to outliers, judged by leaving
 * whole layouts out. MF_FAILED when there are too few runs, with how many.
 */
int mf_fit_run(mfdb *db, const char *cluster,
    const struct mf_coefficients *prior, struct mf_fit *fit,
    struct mf_error *err);

#endif
