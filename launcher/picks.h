/* SPDX-License-Identifier: BSD-3-Clause
 * Which of a plan's ranked layouts are launched.
 */
#ifndef MFL_PICKS_H
#define MFL_PICKS_H

#include "planner/layout/plan.h"

struct mfl_picks {
    size_t *pick; /* from 1, as the user counts; each once */
    size_t count;
    bool *taken; /* [plan.entries] */
};

/* TEXT such as "1-3,5,coupled": numbers, ranges, and the best coupled layout.
 * "all": every one. MF_INVALID when the plan has no such layout.
 */
int mfl_picks_parse(const char *text, const struct mf_plan *plan,
    struct mfl_picks *picks, struct mf_error *err);
void mfl_picks_free(struct mfl_picks *picks);

#endif
