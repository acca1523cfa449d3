/* SPDX-License-Identifier: BSD-3-Clause
 * What the steps from a configuration's values to a model's shape share.
 */
#ifndef MF_MODEL_READ_SHAPE_H
#define MF_MODEL_READ_SHAPE_H

#include "planner/model_read_dialect.h"

struct shape {
    struct mf_model *model;
    const struct mf_value *value;
    struct mf_error *err;
};

static inline int64_t shape_whole(const struct shape *s, int slot)
{
    return s->value[slot].whole;
}

static inline const json_t *shape_list(const struct shape *s, int slot)
{
    return s->value[slot].list;
}

/* The key that gave SLOT, for a message. */
const char *shape_key(const struct shape *s, int slot);

/* The value of SLOT in LEAST to MOST, or an error that names its key. */
int shape_range(const struct shape *s, int slot, int64_t least, int64_t most);

/* A list of at least one entry a layer: an error when it is shorter, or when
 * it is longer and EXACT.
 */
int shape_length(const struct shape *s, int slot, bool exact);

/* Heads, ranks and dimensions, before the kinds of layers are known. */
int mf_shape_attention(struct shape *s);

/* The mixer of each layer unless it is KNOWN already, and what is left out
 * where none is of a kind.
 */
int mf_shape_mixers(struct shape *s, bool known);

/* Layers given block by block, a mixer or a feed-forward part each. Nothing
 * is done, and 0 returned, where the file has no such list.
 */
int mf_shape_blocks(struct shape *s, bool *found);

/* Layers given as a list of objects (NVIDIA's searched models). */
int mf_shape_objects(struct shape *s, bool *found);

#endif
