/* SPDX-License-Identifier: BSD-3-Clause
 * What the files of the search share.
 */
#ifndef MF_SEARCH_PARTS_H
#define MF_SEARCH_PARTS_H

#include "planner/cost_parts.h"
#include "planner/search.h"

/* The best TOP entries of PLAN (0: all), of which only layout, settings and
 * cost.step_s are filled yet.
 */
struct mf_ranking {
    struct mf_plan *plan;
    size_t top, room;
};

int mf_ranking_keep(struct mf_ranking *ranking,
    const struct mf_plan_entry *entry, struct mf_error *err);
/* Steps longer than this are not kept. */
double mf_ranking_bound(const struct mf_ranking *ranking);
/* Add entries and counts of FROM. */
int mf_ranking_merge(struct mf_ranking *ranking, const struct mf_plan *from,
    struct mf_error *err);
/* The most frequent reason first; entries too when all were kept. */
void mf_ranking_sort(struct mf_ranking *ranking);

void mf_plan_reject(struct mf_plan *plan, const char *reason, int64_t count);

/* Orders of LAYOUT's axes that differ in where ranks lie, the order of SEARCH
 * first, into ORDER (room for all 120); returns how many.
 */
#define MF_ORDERS_MOST 120
int mf_orders_fill(const struct mf_search *search,
    const struct mf_layout *layout, struct mf_order order[MF_ORDERS_MOST]);

#endif
