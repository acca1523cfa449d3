/* SPDX-License-Identifier: BSD-3-Clause
 * Where the groups of a layout lie on the tiers of a network: counted over the
 * ranks themselves, for every group, and remembered by the group's digits.
 */
#ifndef MF_COST_PLACE_H
#define MF_COST_PLACE_H

#include "planner/layout/cluster.h"
#include "planner/layout/groups.h"

/* What one kind of group is like at its worst, over all its groups and ranks.
 * near(t) below is how many members share a rank's domain of tier t, near(-1)
 * is 1: the rank itself.
 */
struct mf_place {
    int64_t size; /* members of a group */
    int outer;    /* outermost tier that a group needs, -1: size 1 */
    /* Members first reached over tier t: near(t) - near(t-1). */
    double away[MF_TIERS_MAX];
    /* The same for each member of the inner domain, as when a domain fetches
     * what it lacks once, over the links of all its members.
     */
    double share[MF_TIERS_MAX];
    /* Domains of tier t that a group touches. */
    int64_t domains[MF_TIERS_MAX];
};

struct mf_places; /* the cache */

/* For WORLD ranks on CLUSTER; MF_NO when it is smaller. */
struct mf_places *mf_places_create(
    const struct mf_cluster *cluster, int64_t world, struct mf_error *err);
void mf_places_free(struct mf_places *places);

/* The place of DIGITS, valid as long as PLACES; NULL: no memory. */
const struct mf_place *mf_places_find(
    struct mf_places *places, const struct mf_digits *digits);

/* Ranks that share a node with the fullest node's ranks. */
int64_t mf_places_node_ranks(const struct mf_places *places);

#endif
