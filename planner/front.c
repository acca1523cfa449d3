/* SPDX-License-Identifier: BSD-3-Clause
 * Settings that no other one beats in both time and memory.
 */
#include <stdlib.h>
#include <string.h>

#include "planner/cost.h"

/* Where STEP_S belongs: the first point that is not faster. */
static size_t front_place(const struct mf_front *front, double step_s)
{
    size_t low = 0, high = front->points;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (front->point[middle].step_s < step_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void mf_front_add(struct mf_front *front, const struct mf_point *point)
{
    size_t i = front_place(front, point->step_s), end = i;
    struct mf_point *more;

    if (i > 0 && front->point[i - 1].peak_bytes <= point->peak_bytes)
        return;
    if (i < front->points && front->point[i].step_s == point->step_s &&
        front->point[i].peak_bytes <= point->peak_bytes)
        return;
    while (end < front->points &&
           front->point[end].peak_bytes >= point->peak_bytes)
        end++;
    if (front->points == front->room) {
        size_t room = front->room ? 2 * front->room : 64;

        more = realloc(front->point, room * sizeof *more);
        if (!more) {
            front->failed = true;
            return;
        }
        front->point = more;
        front->room = room;
    }
    memmove(front->point + i + 1, front->point + end,
        (front->points - end) * sizeof *front->point);
    front->points += i + 1 - end;
    front->point[i] = *point;
}

void mf_front_free(struct mf_front *front)
{
    if (!front)
        return;
    free(front->point);
    *front = (struct mf_front){0};
}
