/* SPDX-License-Identifier: BSD-3-Clause
 * The sizes of both folds, their order, and where a rank lies in them.
 *
 * Law of folding: tp*cp*dp*pp = etp*ep*edp*pp = world. Attention and experts
 * are two grids over the same ranks; only the pipeline is shared.
 */
#ifndef MF_LAYOUT_H
#define MF_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/layout/error.h"

#define MF_WORLD_MAX ((int64_t)1 << 24)
#define MF_LAYOUT_TEXT 160 /* room for the canonical text of any layout */

enum mf_axis { MF_TP, MF_CP, MF_EP, MF_DP, MF_PP, MF_AXES };

/* Which axis varies fastest, as Megatron writes it; ep marks where the expert
 * grid has its ep axis, edp stands where dp does.
 */
struct mf_order {
    enum mf_axis axis[MF_AXES];
};

struct mf_layout {
    int64_t tp, cp, dp, pp; /* attention */
    int64_t etp, ep, edp;   /* experts; pp is shared */
    struct mf_order order;
    bool coupled;   /* etp = tp, EP carved out of DP with stride tp*cp */
    unsigned given; /* bit i: the i-th size of the canonical text was given,
                       the others are defaults or come from the world */
};

/* Where a rank lies on every axis. */
struct mf_coords {
    int64_t tp, cp, dp, pp, etp, ep, edp;
};

/* Megatron's default, tp-cp-ep-dp-pp. */
struct mf_order mf_order_default(void);

/* "tp-cp-ep-dp-pp" and the like: each axis at most once. Axes left out are
 * appended, as Megatron does; mf_layout_check refuses one left out whose size
 * is more than 1 through the set of axes given in *GIVEN (bit 1 << axis).
 */
int mf_order_parse(const char *text, struct mf_order *order, unsigned *given,
    struct mf_error *err);

/* TEXT (MF_LAYOUT_TEXT bytes are enough) such as "tp-cp-ep-dp-pp". */
void mf_order_format(const struct mf_order *order, char *text, size_t size);

/* "tp2.cp1.dp8.pp8/etp1.ep8.edp16" in any order, any size left out: dp and
 * edp are then 0 (to be worked out from the world), the others 1. The order
 * is the default one and the layout is not coupled.
 */
int mf_layout_parse(
    const char *text, struct mf_layout *layout, struct mf_error *err);

/* Fill dp and edp that are 0 from WORLD, and check the law of folding and the
 * order, as Megatron-LM does. The message shows both products, factor by
 * factor, and where each came from. With coupled set, etp is set to tp and ep
 * must divide dp. GIVEN as of mf_order_parse, or ~0u.
 */
int mf_layout_resolve(struct mf_layout *layout, int64_t world, unsigned given,
    struct mf_error *err);

/* tp*cp*dp*pp of a resolved layout. */
int64_t mf_layout_world(const struct mf_layout *layout);

/* Canonical text, all seven sizes. */
void mf_layout_format(const struct mf_layout *layout, char *text, size_t size);

bool mf_layout_equal(const struct mf_layout *a, const struct mf_layout *b);

/* Size and stride of AXIS in the attention grid, or in the expert grid, where
 * tp stands for etp, dp for edp, and cp is 1 (not of a coupled layout).
 */
int64_t mf_layout_axis(const struct mf_layout *layout, bool expert,
    enum mf_axis axis, int64_t *stride);

/* Coordinates of RANK in [0, world). */
void mf_layout_coords(
    const struct mf_layout *layout, int64_t rank, struct mf_coords *coords);

#endif
