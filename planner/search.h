/* SPDX-License-Identifier: BSD-3-Clause
 * The search over layouts: enumerates both folds, prices, ranks.
 */
#ifndef MF_SEARCH_H
#define MF_SEARCH_H

#include "planner/cost.h"

struct mf_search {
    int64_t world;
    enum mf_scope scope;
    struct mf_settings settings; /* auto fields are searched */
    struct mf_order order;
    bool coupled;   /* only coupled layouts */
    int64_t fix[7]; /* tp cp dp pp etp ep edp; 0: free */
    size_t top;     /* ranked layouts to keep, 0: all that fit */
    void (*progress)(void *arg, int64_t done, int64_t all);
    void *progress_arg;
};

/* Scope moe keeps cp and pp at 1 unless they are fixed: a single layer has no
 * stages, and to it cp is as tp.
 *
 * Fills PLAN, whose model and cluster are already set, with the ranked
 * layouts that fit and the rejections by reason. MF_NO when nothing fits (PLAN
 * is filled all the same).
 */
int mf_search_run(const struct mf_search *search,
    const struct mf_coefficients *set, struct mf_plan *plan,
    struct mf_error *err);

#endif
