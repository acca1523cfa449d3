/* SPDX-License-Identifier: BSD-3-Clause
 * See tensors.h.
 */
#include "runtime/tensors.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* How a parameter is cut. */
enum cut {
    CUT_NONE,
    CUT_EXPERT,
    CUT_EXPERT_ROWS,
    CUT_EXPERT_COLUMNS,
    CUT_SHARED_ROWS,
    CUT_SHARED_COLUMNS
};

enum length { ONE, HIDDEN, FFN, EXPERTS, SHARED };

static const struct parameter {
    enum mfr_tensor tensor;
    const char *name;
    size_t at; /* in struct mfr_tensors */
    enum cut cut;
    enum length rows, columns;
} parameters[] = {
#define PARAMETER(tensor, name, cut, rows, columns)                            \
    {                                                                          \
        tensor, #name, offsetof(struct mfr_tensors, name), cut, rows, columns  \
    }
    PARAMETER(MFR_ROUTER, router, CUT_NONE, EXPERTS, HIDDEN),
    PARAMETER(MFR_ROUTER_BIAS, router_bias, CUT_NONE, ONE, EXPERTS),
    PARAMETER(MFR_SELECT_BIAS, select_bias, CUT_NONE, ONE, EXPERTS),
    PARAMETER(MFR_GATE, gate, CUT_EXPERT_ROWS, FFN, HIDDEN),
    PARAMETER(MFR_UP, up, CUT_EXPERT_ROWS, FFN, HIDDEN),
    PARAMETER(MFR_DOWN, down, CUT_EXPERT_COLUMNS, HIDDEN, FFN),
    PARAMETER(MFR_GATE_BIAS, gate_bias, CUT_EXPERT_COLUMNS, ONE, FFN),
    PARAMETER(MFR_UP_BIAS, up_bias, CUT_EXPERT_COLUMNS, ONE, FFN),
    PARAMETER(MFR_DOWN_BIAS, down_bias, CUT_EXPERT, ONE, HIDDEN),
    PARAMETER(MFR_SHARED_GATE, shared_gate, CUT_SHARED_ROWS, SHARED, HIDDEN),
    PARAMETER(MFR_SHARED_UP, shared_up, CUT_SHARED_ROWS, SHARED, HIDDEN),
    PARAMETER(MFR_SHARED_DOWN, shared_down, CUT_SHARED_COLUMNS, HIDDEN, SHARED),
    PARAMETER(MFR_SHARED_ROUTER, shared_router, CUT_NONE, ONE, HIDDEN),
};

enum { PARAMETERS = sizeof parameters / sizeof *parameters };

_Static_assert(PARAMETERS <= MFR_VIEWS_MOST, "room for a view of each");

static int64_t length_of(const struct mfr_shape *shape, enum length length)
{
    switch (length) {
    case ONE:
        break;
    case HIDDEN:
        return shape->hidden;
    case FFN:
        return shape->ffn;
    case EXPERTS:
        return shape->experts;
    case SHARED:
        return shape->shared_ffn;
    }
    return 1;
}

static bool is_there(const struct mfr_shape *shape, enum mfr_tensor tensor)
{
    switch (tensor) {
    case MFR_ROUTER_BIAS:
        return shape->router_bias;
    case MFR_SELECT_BIAS:
        return shape->select_bias;
    case MFR_GATE_BIAS:
    case MFR_UP_BIAS:
    case MFR_DOWN_BIAS:
        return shape->expert_bias;
    case MFR_SHARED_GATE:
    case MFR_SHARED_UP:
    case MFR_SHARED_DOWN:
        return shape->shared_ffn > 0;
    case MFR_SHARED_ROUTER:
        return shape->shared_ffn > 0 && shape->shared_gate;
    case MFR_INPUT:
    case MFR_OUTPUT_GRAD:
    case MFR_ROUTER:
    case MFR_GATE:
    case MFR_UP:
    case MFR_DOWN:
        break;
    }
    return true;
}

static bool is_expert(enum cut cut)
{
    return cut == CUT_EXPERT || cut == CUT_EXPERT_ROWS ||
           cut == CUT_EXPERT_COLUMNS;
}

static float **values_of(
    const struct mfr_tensors *tensors, const struct parameter *p)
{
    return (float **)((uintptr_t)tensors + p->at);
}

static enum mf_group_kind sum_of(enum cut cut)
{
    if (is_expert(cut))
        return MF_GROUP_EDP;
    return cut == CUT_NONE ? MF_GROUP_TP_DP_CP : MF_GROUP_DP_CP;
}

/* Of a parameter that several ranks hold, one is counted. */
static bool stands_for(enum cut cut, const struct mf_coords *c)
{
    switch (cut) {
    case CUT_EXPERT:
        return c->edp == 0 && c->etp == 0;
    case CUT_EXPERT_ROWS:
    case CUT_EXPERT_COLUMNS:
        return c->edp == 0;
    case CUT_SHARED_ROWS:
    case CUT_SHARED_COLUMNS:
        return c->cp == 0 && c->dp == 0;
    case CUT_NONE:
        break;
    }
    return c->tp == 0 && c->cp == 0 && c->dp == 0;
}

static void view_of(const struct mfr_shape *shape,
    const struct mf_coords *coords, const struct mfr_tensors *t,
    const struct parameter *p, struct mfr_view *v)
{
    const bool expert = is_expert(p->cut);

    *v = (struct mfr_view){
        .tensor = p->tensor,
        .name = p->name,
        .values = *values_of(t, p),
        .first_block = expert ? t->first_expert : 0,
        .blocks = expert ? t->experts : 1,
        .all_blocks = expert ? shape->experts : 1,
        .all_rows = length_of(shape, p->rows),
        .all_columns = length_of(shape, p->columns),
        .sum = sum_of(p->cut),
        .once = stands_for(p->cut, coords),
    };
    v->rows = v->all_rows;
    v->columns = v->all_columns;
    switch (p->cut) {
    case CUT_NONE:
    case CUT_EXPERT:
        break;
    case CUT_EXPERT_ROWS:
        v->first_row = t->first_ffn;
        v->rows = t->ffn;
        break;
    case CUT_EXPERT_COLUMNS:
        v->first_column = t->first_ffn;
        v->columns = t->ffn;
        break;
    case CUT_SHARED_ROWS:
        v->first_row = t->first_shared;
        v->rows = t->shared_ffn;
        break;
    case CUT_SHARED_COLUMNS:
        v->first_column = t->first_shared;
        v->columns = t->shared_ffn;
        break;
    }
}

int mfr_tensors_views(const struct mfr_shape *shape,
    const struct mf_coords *coords, const struct mfr_tensors *tensors,
    struct mfr_view view[MFR_VIEWS_MOST])
{
    int n = 0;

    for (int i = 0; i < PARAMETERS; i++)
        if (*values_of(tensors, &parameters[i]))
            view_of(shape, coords, tensors, &parameters[i], &view[n++]);
    return n;
}

int64_t mfr_view_count(const struct mfr_view *view)
{
    return view->blocks * view->rows * view->columns;
}

float *mfr_view_row(const struct mfr_view *view, int64_t b, int64_t r)
{
    return view->values + (b * view->rows + r) * view->columns;
}

void mfr_tensors_place(const struct mfr_shape *shape,
    const struct mf_layout *layout, const struct mf_coords *coords,
    struct mfr_tensors *t)
{
    *t = (struct mfr_tensors){
        .experts = shape->experts / layout->ep,
        .ffn = shape->ffn / layout->etp,
        .shared_ffn = shape->shared_ffn / layout->tp,
    };
    t->first_expert = coords->ep * t->experts;
    t->first_ffn = coords->etp * t->ffn;
    t->first_shared = coords->tp * t->shared_ffn;
}

int mfr_tensors_alloc(const struct mfr_shape *shape, bool gradients,
    struct mfr_tensors *tensors, struct mf_error *err)
{
    const struct mf_coords none = {0};

    for (int i = 0; i < PARAMETERS; i++) {
        const struct parameter *p = &parameters[i];
        struct mfr_view view;
        int64_t n;

        if (!is_there(shape, p->tensor) ||
            (gradients && p->tensor == MFR_SELECT_BIAS))
            continue;
        view_of(shape, &none, tensors, p, &view);
        if (__builtin_mul_overflow(view.blocks, view.rows, &n) ||
            __builtin_mul_overflow(n, view.columns, &n))
            return mf_error_set(
                err, MF_INVALID, "the %s weights are too large", p->name);
        *values_of(tensors, p) = calloc((size_t)n + 1, sizeof(float));
        if (!*values_of(tensors, p))
            return mf_error_set(
                err, MF_FAILED, "out of memory for the %s weights", p->name);
    }
    return 0;
}

void mfr_tensors_free(struct mfr_tensors *tensors)
{
    for (int i = 0; i < PARAMETERS; i++) {
        free(*values_of(tensors, &parameters[i]));
        *values_of(tensors, &parameters[i]) = NULL;
    }
}

void mfr_tensors_zero(const struct mfr_shape *shape,
    const struct mf_coords *coords, const struct mfr_tensors *tensors)
{
    struct mfr_view view[MFR_VIEWS_MOST];
    const int n = mfr_tensors_views(shape, coords, tensors, view);

    for (int i = 0; i < n; i++)
        memset(view[i].values, 0,
            (size_t)mfr_view_count(&view[i]) * sizeof(float));
}

void mfr_tensors_seed(const struct mfr_shape *shape, uint64_t seed,
    int64_t stage, const struct mf_coords *coords,
    const struct mfr_tensors *tensors)
{
    struct mfr_view view[MFR_VIEWS_MOST];
    const int n = mfr_tensors_views(shape, coords, tensors, view);

    for (int i = 0; i < n; i++)
        for (int64_t b = 0; b < view[i].blocks; b++)
            for (int64_t r = 0; r < view[i].rows; r++)
                mfr_data_row(shape, seed, view[i].tensor, stage,
                    view[i].first_block + b, view[i].first_row + r,
                    view[i].first_column, view[i].columns,
                    mfr_view_row(&view[i], b, r));
}
