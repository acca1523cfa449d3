/* SPDX-License-Identifier: BSD-3-Clause
 * The search over layouts: enumerates both folds, prices, ranks.
 */
#ifndef MF_SEARCH_H
#define MF_SEARCH_H

#include "planner/cost.h"

/* Sizes of a layout, as they are fixed, forbidden or limited. */
enum mf_size {
    MF_SIZE_TP,
    MF_SIZE_CP,
    MF_SIZE_DP,
    MF_SIZE_PP,
    MF_SIZE_ETP,
    MF_SIZE_EP,
    MF_SIZE_EDP,
    MF_SIZES
};

#define MF_FORBIDS_MAX 32

/* Which orders of the axes are tried. Orders that put every rank where another
 * one does are one.
 */
enum mf_orders {
    MF_ORDERS_ONE,      /* that of the search */
    MF_ORDERS_MEGATRON, /* tp-cp-ep-dp-pp and tp-cp-ep-pp-dp */
    MF_ORDERS_FREE      /* all that a layout allows */
};

/* Told of each layout that is not ranked. */
typedef void mf_search_told(
    void *arg, const struct mf_layout *layout, const char *reason);

struct mf_search {
    int64_t world;
    enum mf_scope scope;
    struct mf_settings settings; /* auto fields are searched */
    struct mf_order order;
    enum mf_orders orders;
    bool coupled;          /* only coupled layouts */
    int64_t fix[MF_SIZES]; /* 0: free */
    int64_t max[MF_SIZES]; /* 0: no limit */
    struct {
        enum mf_size size;
        int64_t value;
    } forbid[MF_FORBIDS_MAX];
    int forbids;
    struct mf_limits limits; /* all 0: everything is allowed */
    double bound_s;          /* longer steps are of no interest; 0: all are */
    size_t top;              /* ranked layouts to keep, 0: all that fit */
    int threads;             /* 0: one */
    struct mf_front *front;  /* filled when it is there */
    mf_search_told *told;    /* of rejections, from the one thread */
    void *told_arg;
    void (*progress)(void *arg, int64_t done, int64_t all);
    void *progress_arg;
};

/* Scope moe keeps cp and pp at 1 unless they are fixed: a single layer has no
 * stages, and to it cp is as tp.
 *
 * Fills PLAN, whose model and cluster are already set, with the ranked
 * layouts that fit and the rejections by reason. MF_NO when nothing fits (PLAN
 * is filled all the same). A layout's settings are priced, or left out by a
 * proof: more recomputation than fits takes longer; and a step is no shorter
 * than the mean of its stages, which may be too long for the ranks kept.
 */
int mf_search_run(const struct mf_search *search,
    const struct mf_coefficients *set, struct mf_plan *plan,
    struct mf_error *err);

#endif
