/* SPDX-License-Identifier: BSD-3-Clause
 * What slots hold, and where dialects are looked up.
 */
#include "planner/model_read_dialect.h"

#include <stddef.h>

const struct mf_dialect *const mf_dialects[] = {mf_dialects_moe,
    mf_dialects_hybrid, mf_dialects_dense, mf_dialects_refused, NULL};

static const struct {
    int slot;
    enum mf_slot_kind kind;
} kind_table[] = {
    {MF_FIELD_EXPERTS, MF_KIND_WHOLES},
    {MF_FIELD_TOPK, MF_KIND_WHOLES},
    {MF_FIELD_MOE_FFN, MF_KIND_WHOLES},
    {MF_FIELD_DENSE_FFN, MF_KIND_WHOLES},
    {MF_FIELD_KV_HEADS, MF_KIND_WHOLES},
    {MF_FIELD_SHARED_EXPERTS, MF_KIND_WHOLES},
    {MF_FIELD_SHARED_FFN, MF_KIND_WHOLES},
    {MF_FIELD_MAMBA_HEAD_DIM, MF_KIND_WHOLE_OR_TEXT},
    {MF_FIELD_MAMBA_DT_RANK, MF_KIND_WHOLE_OR_TEXT},
    {MF_SLOT_MOE_STEP, MF_KIND_WHOLE_OR_LIST},
    {MF_SLOT_DENSE_LAYERS, MF_KIND_LIST},
    {MF_SLOT_MOE_LAYERS, MF_KIND_TEXT_OR_LIST},
    {MF_SLOT_EXPERTS_ON, MF_KIND_FLAG},
    {MF_SLOT_PATTERN, MF_KIND_TEXT},
    {MF_SLOT_BLOCKS, MF_KIND_LIST},
    {MF_SLOT_BLOCK_LIST, MF_KIND_LIST},
    {MF_SLOT_PAIRED, MF_KIND_FLAG},
    {MF_SLOT_WINDOW_ON, MF_KIND_FLAG},
    {MF_SLOT_WINDOW_STEP, MF_KIND_WHOLE_OR_TEXT},
    {MF_SLOT_WINDOW_LIST, MF_KIND_LIST},
    {MF_SLOT_CHUNKED, MF_KIND_FLAG},
    {MF_SLOT_LAYER_TYPES, MF_KIND_LIST},
    {MF_SLOT_LINEAR_TAIL, MF_KIND_FLAG},
    {MF_SLOT_LINEAR_LIST, MF_KIND_LIST},
    {MF_SLOT_LINEAR_NAMED, MF_KIND_LIST},
    {MF_SLOT_MAMBA_EXCEPT, MF_KIND_LIST},
    {MF_SLOT_CONV_EXCEPT, MF_KIND_LIST},
    {MF_SLOT_FFN_ADJUST, MF_KIND_FLAG},
    {MF_SLOT_COMPRESS, MF_KIND_LIST},
    {MF_SLOT_SPARSE_LIST, MF_KIND_LIST},
    {MF_SLOT_SHARE_ON, MF_KIND_FLAG},
    {MF_SLOT_WIDE_SHARED, MF_KIND_FLAG},
    {MF_SLOT_MLA, MF_KIND_FLAG},
    {MF_SLOT_HEAD_LIST, MF_KIND_LIST},
    {MF_SLOT_PER_LAYER, MF_KIND_OBJECT},
    {MF_SLOT_ONE_KV, MF_KIND_FLAG},
    {MF_SLOT_GROUPED, MF_KIND_FLAG},
    {MF_SLOT_QKV_BIAS, MF_KIND_FLAG},
    {MF_SLOT_OUT_BIAS, MF_KIND_FLAG},
    {MF_SLOT_QK_NORM_ON, MF_KIND_FLAG},
    {MF_SLOT_GATE_ON, MF_KIND_FLAG},
    {MF_SLOT_GATE_HEAD, MF_KIND_FLAG_OR_TEXT},
    {MF_SLOT_SINKS_FULL, MF_KIND_FLAG},
    {MF_SLOT_SINKS_SLIDING, MF_KIND_FLAG},
    {MF_SLOT_FULL_SHARED_KV, MF_KIND_FLAG},
    {MF_SLOT_LINEAR_FULL_GATE, MF_KIND_FLAG},
    {MF_SLOT_MAMBA_CONV_BIAS, MF_KIND_FLAG},
    {MF_SLOT_MAMBA_PROJ_BIAS, MF_KIND_FLAG},
    {MF_SLOT_MAMBA_NORMS, MF_KIND_FLAG},
    {MF_SLOT_MLP_BIAS, MF_KIND_FLAG},
    {MF_SLOT_GATED, MF_KIND_FLAG},
    {MF_SLOT_SHARED_GATE, MF_KIND_FLAG},
    {MF_SLOT_BESIDE_HIDDEN, MF_KIND_FLAG},
    {MF_SLOT_BESIDE_DENSE, MF_KIND_FLAG},
    {MF_SLOT_TIED, MF_KIND_FLAG},
    {MF_SLOT_HEAD_BIAS, MF_KIND_FLAG},
    {MF_SLOT_MTP_ON, MF_KIND_FLAG},
    {MF_SLOT_ROUTER_BIAS, MF_KIND_FLAG},
    {MF_SLOT_ROUTER_LINEAR_BIAS, MF_KIND_FLAG},
    {MF_SLOT_RENORMALIZE, MF_KIND_FLAG},
    {MF_SLOT_SCALING, MF_KIND_REAL},
    {MF_SLOT_FFN_FACTOR, MF_KIND_REAL},
    {MF_SLOT_ACTIVATION, MF_KIND_TEXT},
    {MF_SLOT_IGNORED, MF_KIND_ANY},
};

enum mf_slot_kind mf_slot_kind(int slot)
{
    for (size_t i = 0; i < sizeof kind_table / sizeof *kind_table; i++)
        if (kind_table[i].slot == slot)
            return kind_table[i].kind;
    return MF_KIND_WHOLE;
}

static const struct mf_default *table_find(
    const struct mf_default *row, int slot, bool is_null)
{
    for (; row->slot >= 0; row++)
        if (row->slot == slot && !(is_null && row->told))
            return row;
    return NULL;
}

const struct mf_default *mf_dialect_default(
    const struct mf_dialect *dialect, int slot, bool is_null)
{
    const struct mf_default *row;

    for (const struct mf_default *const *table = dialect->defaults;
         table && *table; table++) {
        row = table_find(*table, slot, is_null);
        if (row)
            return row;
    }
    return table_find(mf_defaults_common, slot, is_null);
}
