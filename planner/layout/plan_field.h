/* SPDX-License-Identifier: BSD-3-Clause
 * The plain figures of a plan's layouts as one table, for writer and reader.
 */
#ifndef MF_PLAN_FIELD_H
#define MF_PLAN_FIELD_H

#include "planner/layout/plan.h"

/* A number of struct mf_cost; NAN is null. OBJECT: where it stands, or NULL. */
struct mf_cost_field {
    const char *object, *key;
    size_t offset;
};

extern const struct mf_cost_field mf_cost_fields[];
extern const int mf_cost_field_count;

#endif
