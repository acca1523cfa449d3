/* SPDX-License-Identifier: BSD-3-Clause
 * Which of a plan's ranked layouts are launched.
 */
#include "config.h"

#include "launcher/picks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/layout/number.h"

#define ITEM_MAX 64

static void picks_add(struct mfl_picks *picks, size_t pick)
{
    if (picks->taken[pick - 1])
        return;
    picks->taken[pick - 1] = true;
    picks->pick[picks->count++] = pick;
}

static int add_coupled(
    const struct mf_plan *plan, struct mfl_picks *picks, struct mf_error *err)
{
    for (size_t i = 0; i < plan->entries; i++) {
        if (plan->entry[i].layout.coupled) {
            picks_add(picks, i + 1);
            return 0;
        }
    }
    return mf_error_set(err, MF_INVALID,
        "none of the plan's %zu layouts is coupled; plan with --coupled",
        plan->entries);
}

/* "3" or "1-3" */
static int add_range(char *item, const struct mf_plan *plan,
    struct mfl_picks *picks, struct mf_error *err)
{
    char *dash = strchr(item, '-');
    int64_t first, last, most = (int64_t)plan->entries;

    if (dash)
        *dash++ = 0;
    if (mf_number_parse(item, "pick", 1, most, &first, err) < 0)
        return -1;
    last = first;
    if (dash && mf_number_parse(dash, "pick", first, most, &last, err) < 0)
        return -1;
    for (int64_t pick = first; pick <= last; pick++)
        picks_add(picks, (size_t)pick);
    return 0;
}

static int add_item(char *item, const struct mf_plan *plan,
    struct mfl_picks *picks, struct mf_error *err)
{
    if (strcmp(item, "coupled") == 0)
        return add_coupled(plan, picks, err);
    if (strcmp(item, "all") == 0) {
        for (size_t i = 0; i < plan->entries; i++)
            picks_add(picks, i + 1);
        return 0;
    }
    return add_range(item, plan, picks, err);
}

int mfl_picks_parse(const char *text, const struct mf_plan *plan,
    struct mfl_picks *picks, struct mf_error *err)
{
    char item[ITEM_MAX];

    *picks = (struct mfl_picks){0};
    picks->pick = calloc(plan->entries + 1, sizeof *picks->pick);
    picks->taken = calloc(plan->entries + 1, sizeof *picks->taken);
    if (!picks->pick || !picks->taken) {
        mfl_picks_free(picks);
        return mf_error_set(err, MF_FAILED, "out of memory");
    }
    for (;;) {
        size_t length = strcspn(text, ",");

        if (length == 0 || length >= sizeof item) {
            mf_error_set(err, MF_INVALID,
                "picks are numbers, ranges and 'coupled', such as "
                "1-3,coupled");
            break;
        }
        memcpy(item, text, length);
        item[length] = 0;
        if (add_item(item, plan, picks, err) < 0)
            break;
        if (!text[length])
            return 0;
        text += length + 1;
    }
    mfl_picks_free(picks);
    return -1;
}

void mfl_picks_free(struct mfl_picks *picks)
{
    if (!picks)
        return;
    free(picks->pick);
    free(picks->taken);
    *picks = (struct mfl_picks){0};
}
