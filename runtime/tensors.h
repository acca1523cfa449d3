/* SPDX-License-Identifier: BSD-3-Clause
 * The parameters of a layer, and what a rank holds of each: one table, so that
 * filling, summing, comparing, reading and writing them all see the same.
 *
 * A parameter is a list of blocks (one for each expert, or one) of rows of
 * columns; a rank holds a run of blocks, a run of rows and a run of columns.
 */
#ifndef MFR_TENSORS_H
#define MFR_TENSORS_H

#include "planner/layout/error.h"
#include "planner/layout/groups.h"
#include "planner/layout/layout.h"
#include "runtime/data.h"

/* What a rank holds of each parameter, or of its gradient. Local expert l is
 * global expert first_expert + l; row or column f of the shard is first_ffn +
 * f of the whole expert. What the layer does not have is NULL.
 */
struct mfr_tensors {
    int64_t first_expert, experts;    /* a contiguous block by ep */
    int64_t first_ffn, ffn;           /* a contiguous part by etp */
    int64_t first_shared, shared_ffn; /* of the shared experts, by tp */
    float *router;        /* [all experts][hidden], the same on every rank */
    float *router_bias;   /* [all experts], of the logits */
    float *select_bias;   /* [all experts], added to choose by; no gradient */
    float *gate;          /* [experts][ffn][hidden] */
    float *up;            /* [experts][ffn][hidden] */
    float *down;          /* [experts][hidden][ffn] */
    float *gate_bias;     /* [experts][ffn] */
    float *up_bias;       /* [experts][ffn] */
    float *down_bias;     /* [experts][hidden], the same for every etp */
    float *shared_gate;   /* [shared_ffn][hidden] */
    float *shared_up;     /* [shared_ffn][hidden] */
    float *shared_down;   /* [hidden][shared_ffn] */
    float *shared_router; /* [hidden], the gate of all shared experts */
};

/* One parameter as a rank holds it. */
struct mfr_view {
    enum mfr_tensor tensor;
    const char *name; /* "gate", "shared_down" */
    float *values;    /* [blocks][rows][columns] */
    int64_t first_block, blocks, all_blocks;
    int64_t first_row, rows, all_rows;
    int64_t first_column, columns, all_columns;
    enum mf_group_kind sum; /* the group that gradients are summed over */
    bool once;              /* this rank stands for its replicas */
};

#define MFR_VIEWS_MOST 16

/* All parameters of TENSORS that are there; their number. COORDS are this
 * rank's.
 */
int mfr_tensors_views(const struct mfr_shape *shape,
    const struct mf_coords *coords, const struct mfr_tensors *tensors,
    struct mfr_view view[MFR_VIEWS_MOST]);

/* Values of a view, and where block B, row R of it (local) begin. */
int64_t mfr_view_count(const struct mfr_view *view);
float *mfr_view_row(const struct mfr_view *view, int64_t b, int64_t r);

/* Which part of each is the rank's, by its place in the groups. */
void mfr_tensors_place(const struct mfr_shape *shape,
    const struct mf_layout *layout, const struct mf_coords *coords,
    struct mfr_tensors *tensors);
/* Zeros for what SHAPE has; GRADIENTS: no select_bias. */
int mfr_tensors_alloc(const struct mfr_shape *shape, bool gradients,
    struct mfr_tensors *tensors, struct mf_error *err);
void mfr_tensors_free(struct mfr_tensors *tensors);
void mfr_tensors_zero(const struct mfr_shape *shape,
    const struct mf_coords *coords, const struct mfr_tensors *tensors);
/* Fill them from SEED for pipeline stage STAGE. */
void mfr_tensors_seed(const struct mfr_shape *shape, uint64_t seed,
    int64_t stage, const struct mf_coords *coords,
    const struct mfr_tensors *tensors);

#endif
