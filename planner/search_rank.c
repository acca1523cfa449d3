/* SPDX-License-Identifier: BSD-3-Clause
 * What a search keeps: the best layouts, and why the others are none.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/search_parts.h"

void mf_plan_reject(struct mf_plan *plan, const char *reason, int64_t count)
{
    struct mf_reason *r;
    int i;

    for (i = 0; i < plan->reasons; i++)
        if (!strcmp(plan->rejected[i].text, reason))
            break;
    if (i == MF_REASONS_MAX)
        return;
    r = &plan->rejected[i];
    if (i == plan->reasons) {
        *r = (struct mf_reason){0};
        snprintf(r->text, sizeof r->text, "%s", reason);
        plan->reasons++;
    }
    r->count += count;
}

/* Faster first; of equals the smaller text, so that no order of visiting
 * shows.
 */
static bool entry_before(
    const struct mf_plan_entry *a, const struct mf_plan_entry *b)
{
    char x[MF_LAYOUT_TEXT], y[MF_LAYOUT_TEXT];

    if (a->cost.step_s != b->cost.step_s)
        return a->cost.step_s < b->cost.step_s;
    mf_layout_format(&a->layout, x, sizeof x);
    mf_layout_format(&b->layout, y, sizeof y);
    if (strcmp(x, y))
        return strcmp(x, y) < 0;
    return memcmp(&a->layout.order, &b->layout.order, sizeof a->layout.order) <
           0;
}

static int plan_make_room(struct mf_ranking *r, struct mf_error *err)
{
    size_t room = r->room ? 2 * r->room : 16;
    struct mf_plan_entry *entry;

    if (r->plan->entries < r->room)
        return 0;
    entry = realloc(r->plan->entry, room * sizeof *entry);
    if (!entry)
        return mf_error_set(err, MF_FAILED, "out of memory");
    r->plan->entry = entry;
    r->room = room;
    return 0;
}

double mf_ranking_bound(const struct mf_ranking *r)
{
    if (!r->top || r->plan->entries < r->top)
        return INFINITY;
    return r->plan->entry[r->top - 1].cost.step_s;
}

int mf_ranking_keep(struct mf_ranking *r, const struct mf_plan_entry *entry,
    struct mf_error *err)
{
    struct mf_plan *plan = r->plan;
    size_t i;

    if (r->top && plan->entries == r->top) {
        if (!entry_before(entry, &plan->entry[r->top - 1]))
            return 0;
        plan->entries--;
    }
    if (plan_make_room(r, err))
        return -1;
    if (!r->top) {
        plan->entry[plan->entries++] = *entry;
        return 0;
    }
    for (i = plan->entries++; i > 0; i--) {
        if (!entry_before(entry, &plan->entry[i - 1]))
            break;
        plan->entry[i] = plan->entry[i - 1];
    }
    plan->entry[i] = *entry;
    return 0;
}

int mf_ranking_merge(
    struct mf_ranking *r, const struct mf_plan *from, struct mf_error *err)
{
    for (size_t i = 0; i < from->entries; i++)
        if (mf_ranking_keep(r, &from->entry[i], err))
            return -1;
    for (int i = 0; i < from->reasons; i++)
        mf_plan_reject(
            r->plan, from->rejected[i].text, from->rejected[i].count);
    r->plan->enumerated += from->enumerated;
    r->plan->priced += from->priced;
    r->plan->bounded += from->bounded;
    return 0;
}

static int entry_compare(const void *a, const void *b)
{
    return entry_before(a, b) ? -1 : 1;
}

static int reason_compare(const void *a, const void *b)
{
    const struct mf_reason *x = a, *y = b;

    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return strcmp(x->text, y->text);
}

void mf_ranking_sort(struct mf_ranking *r)
{
    struct mf_plan *plan = r->plan;

    if (!r->top && plan->entries > 1)
        qsort(plan->entry, plan->entries, sizeof *plan->entry, entry_compare);
    qsort(plan->rejected, (size_t)plan->reasons, sizeof *plan->rejected,
        reason_compare);
}
