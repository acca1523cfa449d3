/* SPDX-License-Identifier: BSD-3-Clause
 * Orders of the axes that a layout can have.
 */
#include <string.h>

#include "planner/search_parts.h"

/* Strides of all axes of both grids, 0 where the size is 1: layouts with the
 * same strides are one.
 */
struct strides {
    int64_t of[2][MF_AXES];
};

static struct strides strides_of(const struct mf_layout *layout)
{
    struct strides s = {{{0}}};

    for (int grid = 0; grid < 2; grid++)
        for (int axis = 0; axis < MF_AXES; axis++) {
            int64_t stride;

            if (mf_layout_axis(layout, grid == 1, (enum mf_axis)axis, &stride) >
                1)
                s.of[grid][axis] = stride;
        }
    return s;
}

/* The Ith permutation of the axes. */
static struct mf_order order_at(int i)
{
    enum mf_axis left[MF_AXES] = {MF_TP, MF_CP, MF_EP, MF_DP, MF_PP};
    struct mf_order order;

    for (int n = MF_AXES; n > 0; n--) {
        int k = i % n;

        i /= n;
        order.axis[MF_AXES - n] = left[k];
        memmove(left + k, left + k + 1, (size_t)(n - k - 1) * sizeof *left);
    }
    return order;
}

static int order_add(const struct mf_layout *layout, struct mf_order order,
    struct strides *seen, struct mf_order *out, int n)
{
    struct mf_layout l = *layout;

    l.order = order;
    if (mf_layout_resolve(&l, mf_layout_world(layout), ~0u, NULL))
        return n;
    seen[n] = strides_of(&l);
    for (int i = 0; i < n; i++)
        if (!memcmp(&seen[i], &seen[n], sizeof *seen))
            return n;
    out[n] = order;
    return n + 1;
}

int mf_orders_fill(const struct mf_search *search,
    const struct mf_layout *layout, struct mf_order order[MF_ORDERS_MOST])
{
    static const struct mf_order other = {{MF_TP, MF_CP, MF_EP, MF_PP, MF_DP}};
    struct strides seen[MF_ORDERS_MOST];
    int n = 0;

    order[0] = search->order;
    if (search->orders == MF_ORDERS_ONE)
        return 1;
    /* Stages inside the data parallel ranks need the same of both grids. */
    if (search->orders == MF_ORDERS_MEGATRON &&
        (layout->pp == 1 || layout->dp == 1 || layout->dp != layout->edp))
        return 1;
    n = order_add(layout, search->order, seen, order, n);
    if (search->orders == MF_ORDERS_MEGATRON)
        return order_add(layout, other, seen, order, n);
    for (int i = 0; i < MF_ORDERS_MOST && n < MF_ORDERS_MOST; i++)
        n = order_add(layout, order_at(i), seen, order, n);
    return n > 0 ? n : 1;
}
