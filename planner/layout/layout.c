/* SPDX-License-Identifier: BSD-3-Clause
 * Layout and order: text in and out, the law of folding, coordinates.
 */
#include "planner/layout/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "planner/layout/number.h"

static const char *const axis_names[MF_AXES] = {"tp", "cp", "ep", "dp", "pp"};

/* A layout's seven sizes by name; the last three stand after the slash. */
static const struct {
    const char *name;
    size_t offset;
    bool expert;
} size_table[] = {
    {"tp", offsetof(struct mf_layout, tp), false},
    {"cp", offsetof(struct mf_layout, cp), false},
    {"dp", offsetof(struct mf_layout, dp), false},
    {"pp", offsetof(struct mf_layout, pp), false},
    {"etp", offsetof(struct mf_layout, etp), true},
    {"ep", offsetof(struct mf_layout, ep), true},
    {"edp", offsetof(struct mf_layout, edp), true},
};
enum { SIZES = sizeof size_table / sizeof size_table[0] };

static int64_t layout_size(const struct mf_layout *layout, int i)
{
    int64_t value;

    memcpy(&value, (const char *)layout + size_table[i].offset, sizeof value);
    return value;
}

static void layout_set_size(struct mf_layout *layout, int i, int64_t value)
{
    memcpy((char *)layout + size_table[i].offset, &value, sizeof value);
}

struct mf_order mf_order_default(void)
{
    return (struct mf_order){{MF_TP, MF_CP, MF_EP, MF_DP, MF_PP}};
}

static int order_axis(const char *text, size_t length)
{
    for (int i = 0; i < MF_AXES; i++)
        if (strlen(axis_names[i]) == length &&
            !memcmp(text, axis_names[i], length))
            return i;
    return -1;
}

int mf_order_parse(const char *text, struct mf_order *order, unsigned *given,
    struct mf_error *err)
{
    unsigned seen = 0;
    int n = 0;

    for (const char *at = text;; at++) {
        size_t length = strcspn(at, "-");
        int axis = order_axis(at, length);

        if (axis < 0)
            return mf_error_set(err, MF_INVALID,
                "order '%.64s': '%.*s' is no axis; write it like "
                "tp-cp-ep-dp-pp",
                text, (int)(length < 32 ? length : 32), at);
        if (seen & 1u << axis)
            return mf_error_set(err, MF_INVALID, "order '%.64s' names %s twice",
                text, axis_names[axis]);
        seen |= 1u << axis;
        order->axis[n++] = (enum mf_axis)axis;
        at += length;
        if (!*at)
            break;
    }
    if (given)
        *given = seen;
    for (int axis = 0; axis < MF_AXES; axis++)
        if (!(seen & 1u << axis))
            order->axis[n++] = (enum mf_axis)axis;
    return 0;
}

void mf_order_format(const struct mf_order *order, char *text, size_t size)
{
    snprintf(text, size, "%s-%s-%s-%s-%s", axis_names[order->axis[0]],
        axis_names[order->axis[1]], axis_names[order->axis[2]],
        axis_names[order->axis[3]], axis_names[order->axis[4]]);
}

/* One "tp2"; returns the index in size_table. */
static int layout_parse_size(const char *text, size_t length, bool expert,
    int64_t *value, struct mf_error *err)
{
    size_t letters = strspn(text, "abcdefghijklmnopqrstuvwxyz");
    char number[16];
    int i;

    for (i = 0; i < SIZES; i++)
        if (strlen(size_table[i].name) == letters && letters < length &&
            !memcmp(text, size_table[i].name, letters))
            break;
    if (i == SIZES || length - letters >= sizeof number ||
        strspn(text + letters, "0123456789") < length - letters)
        return mf_error_set(err, MF_INVALID,
            "'%.*s' is no size; write it like tp2.cp1.dp8.pp8/etp1.ep8.edp16",
            (int)(length < 32 ? length : 32), text);
    if (size_table[i].expert != expert)
        return mf_error_set(err, MF_INVALID,
            expert ? "%s stands after the slash; it belongs to attention (pp "
                     "is shared),"
                     " before it"
                   : "%s belongs to the experts, after the slash",
            size_table[i].name);
    memcpy(number, text + letters, length - letters);
    number[length - letters] = 0;
    if (mf_number_parse(
            number, size_table[i].name, 1, MF_WORLD_MAX, value, err))
        return -1;
    return i;
}

static int layout_parse(
    const char *text, struct mf_layout *layout, struct mf_error *err)
{
    bool expert = false;

    for (const char *at = text;;) {
        size_t length = strcspn(at, "./");
        int64_t value = 1;
        int i = layout_parse_size(at, length, expert, &value, err);

        if (i < 0)
            return -1;
        if (layout->given & 1u << i)
            return mf_error_set(
                err, MF_INVALID, "%s is given twice", size_table[i].name);
        layout_set_size(layout, i, value);
        layout->given |= 1u << i;
        at += length;
        if (!*at)
            return 0;
        if (*at == '/' && expert)
            return mf_error_set(err, MF_INVALID, "more than one slash");
        expert |= *at == '/';
        at++;
    }
}

int mf_layout_parse(
    const char *text, struct mf_layout *layout, struct mf_error *err)
{
    *layout = (struct mf_layout){.tp = 1,
        .cp = 1,
        .pp = 1,
        .etp = 1,
        .ep = 1,
        .order = mf_order_default()};
    if (layout_parse(text, layout, err))
        return mf_error_prefix(err, "layout '%.100s'", text);
    return 0;
}

/* "tp 4 * cp 1 (default) * dp 2 * pp 1 = 8" into TEXT. */
static void layout_describe(const struct mf_layout *layout, bool expert,
    int64_t product, char *text, size_t size)
{
    static const int attention[] = {0, 1, 2, 3}, experts[] = {4, 5, 6, 3};
    size_t used = 0;

    text[0] = 0;
    for (int k = 0; k < 4 && used < size; k++) {
        int i = expert ? experts[k] : attention[k];
        int64_t value = layout_size(layout, i);
        bool given = layout->given & 1u << i;

        if (!value)
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s%s %" PRId64 "%s",
            used ? " * " : "", size_table[i].name, value,
            given              ? ""
            : i == 2 || i == 6 ? " (from the world)"
                               : " (default)");
    }
    if (used < size)
        snprintf(text + used, size - used, " = %" PRId64, product);
}

/* Work out dp or edp, or check that the product is the world. */
static int layout_fill(
    struct mf_layout *layout, bool expert, int64_t world, struct mf_error *err)
{
    int64_t *rest = expert ? &layout->edp : &layout->dp;
    int64_t factors[] = {expert ? layout->etp : layout->tp,
        expert ? layout->ep : layout->cp, layout->pp, *rest ? *rest : 1};
    int64_t product = mf_product(4, factors);
    char here[200], other[200] = "";
    bool free = !*rest;

    if (free && product > 0 && world % product == 0) {
        *rest = world / product;
        return 0;
    }
    if (!free && product == world)
        return 0;
    layout_describe(layout, expert, product, here, sizeof here);
    if (expert)
        layout_describe(layout, false, world, other, sizeof other);
    return mf_error_set(err, MF_INVALID,
        "world is %" PRId64 ", but %s %s %s%s%s; both products must be the "
        "world",
        world, expert ? "experts" : "attention", here,
        free ? "does not divide it" : "differs", expert ? ", attention " : "",
        other);
}

static int layout_couple(struct mf_layout *layout, struct mf_error *err)
{
    if (layout->given & 1u << 4 && layout->etp != layout->tp)
        return mf_error_set(err, MF_INVALID,
            "a coupled layout has etp = tp; leave etp out or set it to "
            "%" PRId64,
            layout->tp);
    layout->etp = layout->tp;
    if (layout->dp % layout->ep)
        return mf_error_set(err, MF_INVALID,
            "coupled: ep %" PRId64 " does not divide dp %" PRId64
            "; only a folded layout can have it",
            layout->ep, layout->dp);
    return 0;
}

int64_t mf_layout_axis(const struct mf_layout *layout, bool expert,
    enum mf_axis axis, int64_t *stride)
{
    int64_t size[MF_AXES] = {
        [MF_TP] = expert ? layout->etp : layout->tp,
        [MF_CP] = expert ? 1 : layout->cp,
        [MF_EP] = expert ? layout->ep : 1,
        [MF_DP] = expert ? layout->edp : layout->dp,
        [MF_PP] = layout->pp,
    };

    *stride = 1;
    for (int i = 0; layout->order.axis[i] != axis; i++)
        *stride *= size[layout->order.axis[i]];
    return size[axis];
}

/* Megatron-LM's rules on the order: an axis left out has size 1; pipeline
 * stages of both grids are the same ranks.
 */
static int layout_check_order(
    const struct mf_layout *layout, unsigned given, struct mf_error *err)
{
    int64_t attention, expert;

    for (int axis = 0; axis < MF_AXES; axis++)
        for (int side = 0; side < 2; side++)
            if (!(given & 1u << axis) &&
                mf_layout_axis(layout, side, (enum mf_axis)axis, &attention) >
                    1)
                return mf_error_set(err, MF_INVALID,
                    "the order leaves out %s, whose size is more than 1",
                    axis_names[axis]);
    if (layout->pp == 1 || layout->coupled)
        return 0;
    if (layout->order.axis[MF_AXES - 1] != MF_PP && layout->edp != layout->dp)
        return mf_error_set(err, MF_INVALID,
            "pp is not last in the order, so edp (%" PRId64 ") must equal dp "
            "(%" PRId64 "); put pp last",
            layout->edp, layout->dp);
    mf_layout_axis(layout, false, MF_PP, &attention);
    mf_layout_axis(layout, true, MF_PP, &expert);
    if (attention != expert)
        return mf_error_set(err, MF_INVALID,
            "the order puts the pipeline stages of attention %" PRId64
            " ranks apart and those of the experts %" PRId64 "; put pp last",
            attention, expert);
    return 0;
}

static int layout_resolve(struct mf_layout *layout, int64_t world,
    unsigned given, struct mf_error *err)
{
    if (world < 1 || world > MF_WORLD_MAX)
        return mf_error_set(err, MF_INVALID,
            "world is %" PRId64 ", outside 1 to %" PRId64, world, MF_WORLD_MAX);
    if (layout_fill(layout, false, world, err))
        return -1;
    if (layout->coupled && layout_couple(layout, err))
        return -1;
    if (layout_fill(layout, true, world, err))
        return -1;
    return layout_check_order(layout, given, err);
}

int mf_layout_resolve(struct mf_layout *layout, int64_t world, unsigned given,
    struct mf_error *err)
{
    char text[MF_LAYOUT_TEXT];

    if (!layout_resolve(layout, world, given, err))
        return 0;
    mf_layout_format(layout, text, sizeof text);
    return mf_error_prefix(err, "layout %s", text);
}

int64_t mf_layout_world(const struct mf_layout *layout)
{
    return layout->tp * layout->cp * layout->dp * layout->pp;
}

/* Sizes that are not worked out yet (0) are left out. */
void mf_layout_format(const struct mf_layout *layout, char *text, size_t size)
{
    size_t used = 0;

    text[0] = 0;
    for (int i = 0; i < SIZES && used < size; i++) {
        int64_t value = layout_size(layout, i);

        if (value)
            used += (size_t)snprintf(text + used, size - used, "%s%s%" PRId64,
                !used    ? ""
                : i == 4 ? "/"
                         : ".",
                size_table[i].name, value);
    }
}

bool mf_layout_equal(const struct mf_layout *a, const struct mf_layout *b)
{
    return a->tp == b->tp && a->cp == b->cp && a->dp == b->dp &&
           a->pp == b->pp && a->etp == b->etp && a->ep == b->ep &&
           a->edp == b->edp && a->coupled == b->coupled &&
           !memcmp(&a->order, &b->order, sizeof a->order);
}

static int64_t layout_coord(const struct mf_layout *layout, bool expert,
    enum mf_axis axis, int64_t rank)
{
    int64_t stride, size = mf_layout_axis(layout, expert, axis, &stride);

    return rank / stride % size;
}

void mf_layout_coords(
    const struct mf_layout *layout, int64_t rank, struct mf_coords *coords)
{
    coords->tp = layout_coord(layout, false, MF_TP, rank);
    coords->cp = layout_coord(layout, false, MF_CP, rank);
    coords->dp = layout_coord(layout, false, MF_DP, rank);
    coords->pp = layout_coord(layout, false, MF_PP, rank);
    if (layout->coupled) {
        coords->etp = coords->tp;
        coords->ep = coords->dp % layout->ep;
        coords->edp = coords->dp / layout->ep * layout->cp + coords->cp;
        return;
    }
    coords->etp = layout_coord(layout, true, MF_TP, rank);
    coords->ep = layout_coord(layout, true, MF_EP, rank);
    coords->edp = layout_coord(layout, true, MF_DP, rank);
}
