/* SPDX-License-Identifier: BSD-3-Clause
 * Rank groups from the digits of a layout.
 */
#include "planner/layout/groups.h"

#include <inttypes.h>
#include <stdlib.h>

#define BIT(axis) (1u << (axis))

/* Which axes of which grid make a group of each kind. */
static const struct {
    const char *name;
    bool expert;
    unsigned axes;
} kind_table[MF_GROUP_KINDS] = {
    [MF_GROUP_TP] = {"tp", false, BIT(MF_TP)},
    [MF_GROUP_CP] = {"cp", false, BIT(MF_CP)},
    [MF_GROUP_PP] = {"pp", false, BIT(MF_PP)},
    [MF_GROUP_DP] = {"dp", false, BIT(MF_DP)},
    [MF_GROUP_DP_CP] = {"dp_cp", false, BIT(MF_DP) | BIT(MF_CP)},
    [MF_GROUP_TP_CP] = {"tp_cp", false, BIT(MF_TP) | BIT(MF_CP)},
    [MF_GROUP_TP_DP_CP] = {"tp_dp_cp", false,
        BIT(MF_TP) | BIT(MF_DP) | BIT(MF_CP)},
    [MF_GROUP_TP_PP] = {"tp_pp", false, BIT(MF_TP) | BIT(MF_PP)},
    [MF_GROUP_EMBD] = {"embd", false, BIT(MF_PP)},
    [MF_GROUP_EP] = {"ep", true, BIT(MF_EP)},
    [MF_GROUP_ETP] = {"etp", true, BIT(MF_TP)},
    [MF_GROUP_EDP] = {"edp", true, BIT(MF_DP)},
    [MF_GROUP_ETP_EP] = {"etp_ep", true, BIT(MF_TP) | BIT(MF_EP)},
    [MF_GROUP_ETP_EP_PP] = {"etp_ep_pp", true,
        BIT(MF_TP) | BIT(MF_EP) | BIT(MF_PP)},
};

const char *mf_group_kind_name(enum mf_group_kind kind)
{
    return kind_table[kind].name;
}

static void digits_add(struct mf_digits *digits, int64_t size, int64_t stride)
{
    int i;

    if (size < 2)
        return;
    for (i = digits->n++; i > 0 && digits->digit[i - 1].stride > stride; i--)
        digits->digit[i] = digits->digit[i - 1];
    digits->digit[i] = (struct mf_digit){size, stride};
}

/* The expert axes of a coupled layout lie in those of attention: etp is tp, ep
 * the faster part of dp, edp the rest of dp and all of cp.
 */
static void digits_add_coupled(
    const struct mf_layout *layout, enum mf_axis axis, struct mf_digits *digits)
{
    int64_t stride, size;

    if (axis != MF_EP && axis != MF_DP) {
        size = mf_layout_axis(layout, false, axis, &stride);
        digits_add(digits, size, stride);
        return;
    }
    mf_layout_axis(layout, false, MF_DP, &stride);
    if (axis == MF_EP) {
        digits_add(digits, layout->ep, stride);
        return;
    }
    digits_add(digits, layout->dp / layout->ep, stride * layout->ep);
    size = mf_layout_axis(layout, false, MF_CP, &stride);
    digits_add(digits, size, stride);
}

void mf_group_digits(const struct mf_layout *layout, enum mf_group_kind kind,
    struct mf_digits *digits)
{
    bool expert = kind_table[kind].expert;

    digits->n = 0;
    for (int axis = 0; axis < MF_AXES; axis++) {
        int64_t stride, size;

        if (!(kind_table[kind].axes & BIT(axis)))
            continue;
        if (expert && layout->coupled) {
            digits_add_coupled(layout, (enum mf_axis)axis, digits);
            continue;
        }
        size = mf_layout_axis(layout, expert, (enum mf_axis)axis, &stride);
        digits_add(digits, size, stride);
    }
}

static int64_t digits_count(const struct mf_digits *digits)
{
    int64_t count = 1;

    for (int i = 0; i < digits->n; i++)
        count *= digits->digit[i].size;
    return count;
}

int64_t mf_group_size(const struct mf_layout *layout, enum mf_group_kind kind)
{
    struct mf_digits digits;
    int64_t size;

    mf_group_digits(layout, kind, &digits);
    size = digits_count(&digits);
    return kind == MF_GROUP_EMBD && size > 2 ? 2 : size;
}

/* RANK with all digits of the group set to 0. */
static int64_t digits_first(const struct mf_digits *digits, int64_t rank)
{
    int64_t first = rank;

    for (int i = 0; i < digits->n; i++) {
        const struct mf_digit *d = &digits->digit[i];

        first -= rank / d->stride % d->size * d->stride;
    }
    return first;
}

/* The Nth member after FIRST; ascending, since digits ascend by stride. */
static int64_t digits_member(
    const struct mf_digits *digits, int64_t first, int64_t n)
{
    for (int i = 0; i < digits->n; i++) {
        const struct mf_digit *d = &digits->digit[i];

        first += n % d->size * d->stride;
        n /= d->size;
    }
    return first;
}

static int64_t group_fill(const struct mf_digits *digits,
    enum mf_group_kind kind, int64_t rank, int32_t *member)
{
    int64_t size = digits_count(digits), first = digits_first(digits, rank);
    bool ends = kind == MF_GROUP_EMBD && size > 2;
    int64_t place = 0, used = 0;

    for (int64_t n = 0; n < size; n += ends ? size - 1 : 1) {
        int64_t each = digits_member(digits, first, n);

        place = each == rank ? used : place;
        member[used++] = (int32_t)each;
    }
    return place;
}

int64_t mf_group_members(const struct mf_layout *layout,
    enum mf_group_kind kind, int64_t rank, int32_t *member)
{
    struct mf_digits digits;

    mf_group_digits(layout, kind, &digits);
    return group_fill(&digits, kind, rank, member);
}

int mf_groups_build(const struct mf_layout *layout, enum mf_group_kind kind,
    struct mf_groups *groups, struct mf_error *err)
{
    int64_t world = mf_layout_world(layout), count = 0;
    struct mf_digits digits;

    mf_group_digits(layout, kind, &digits);
    groups->size = mf_group_size(layout, kind);
    groups->count = world / digits_count(&digits);
    groups->rank =
        calloc((size_t)(groups->count * groups->size), sizeof *groups->rank);
    if (!groups->rank)
        return mf_error_set(err, MF_FAILED,
            "no memory for the %s groups of %" PRId64 " ranks",
            mf_group_kind_name(kind), world);
    for (int64_t rank = 0; rank < world; rank++)
        if (digits_first(&digits, rank) == rank)
            group_fill(
                &digits, kind, rank, groups->rank + count++ * groups->size);
    return 0;
}

void mf_groups_free(struct mf_groups *groups)
{
    free(groups->rank);
    *groups = (struct mf_groups){0};
}
