/* SPDX-License-Identifier: BSD-3-Clause
 * The nodes that ranks may be put on, in the order in which they are filled,
 * and how many ranks each takes.
 */
#ifndef MFL_PLACES_H
#define MFL_PLACES_H

#include <stdbool.h>

#include "launcher/list.h"
#include "planner/layout/plan.h"

struct mfl_places {
    struct mfl_list node;
    int64_t *ranks;   /* [node.count] */
    const char *from; /* a literal: "list", "allocation" or "plan" */
};

/* The nodes of LIST (a host list expression) in that very order; else, inside
 * a Slurm job, its nodes in the plan's topology order (nodes that the plan
 * does not know come last, as Slurm gave them); else the plan's nodes that
 * are up.
 *
 * How many ranks a node takes: in a Slurm job what SLURM_TASKS_PER_NODE says,
 * when that adds up to the plan's world or the ranks are CPU ranks; else
 * SLURM_GPUS_ON_NODE; else the devices of the node in the plan.
 * MF_NO when there are fewer places than ranks.
 */
int mfl_places_find(const struct mf_plan *plan, const char *list,
    struct mfl_places *places, struct mf_error *err);

void mfl_places_free(struct mfl_places *places);

/* Are the plan's nodes alike and in the order in which Slurm numbers them, so
 * that block distribution puts every rank where the plan wants it?
 */
bool mfl_places_in_block_order(const struct mf_cluster *cluster);

/* How many nodes the first WORLD devices of CLUSTER span, and the most of
 * them on one node. MF_NO when it has fewer.
 */
int mfl_places_span(const struct mf_cluster *cluster, int64_t world,
    int64_t *nodes, int64_t *per_node, struct mf_error *err);

#endif
