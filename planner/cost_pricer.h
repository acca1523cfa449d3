/* SPDX-License-Identifier: BSD-3-Clause
 * A pricer's insides: what it has worked out once for many layouts.
 */
#ifndef MF_COST_PRICER_H
#define MF_COST_PRICER_H

#include "planner/cost_parts.h"

#define MF_CHOICES 24
#define MF_BASE_SLOTS 4096 /* a power of two */

/* All that mf_base depends on, besides settings that stay the same. */
struct mf_base_key {
    int64_t tp, cp, etp, ep, micro_batch;
    int64_t dispatcher;
    const struct mf_place *place[5]; /* tp, cp, ep, etp, etp_ep */
};

struct mf_base_slot {
    struct mf_base_key key;
    struct mf_base base;
};

/* All schedules of one pp. */
struct mf_schedules {
    int64_t pp;
    int count, classes;
    struct mf_schedule *schedule;
};

struct mf_pricer {
    const struct mf_model *model;
    const struct mf_cluster *cluster;
    enum mf_scope scope;
    int64_t world;
    struct mf_coefficients set;
    struct mf_places *places;
    struct mf_published *published; /* NULL: nothing to add */
    struct mf_cost_rates rates;
    struct mf_shares shares;
    struct mf_kinds kinds;
    struct mf_limits limits;
    struct mf_front *front;      /* NULL: none wanted */
    double bound_s;              /* longer steps are of no interest */
    double doublings;            /* of eight ranks */
    struct mf_settings settings; /* that the tables below hold for */
    bool remembers;
    double alpha, token_flops;
    bool assumed;              /* a figure of the cluster is */
    struct mf_base_slot *slot; /* large: pages that are not used stay out */
    bool full[MF_BASE_SLOTS];
    struct mf_schedules *schedules;
    int schedules_count;
    struct mf_load *load; /* of the layout under way */
    double *done;         /* factor its schedules fit with, or INFINITY */
    int loads;
    struct mf_stage_memory stage[MF_STAGES_MAX]; /* of the trial */
};

/* A case of LAYOUT and SETTINGS, which must outlive it; to be settled. */
int mf_pricer_case(mf_pricer *pricer, const struct mf_layout *layout,
    const struct mf_settings *settings, struct mf_case *c,
    struct mf_error *err);
/* What follows from layout and settings together. */
void mf_case_settle(const mf_pricer *pricer, struct mf_case *c);
/* Drop all tables. */
void mf_pricer_forget(mf_pricer *pricer);

#endif
