/* SPDX-License-Identifier: BSD-3-Clause
 * The whole numbers of a model's shape as one table, so that every reader
 * fills, checks and names them in the same way.
 */
#ifndef MF_MODEL_FIELD_H
#define MF_MODEL_FIELD_H

#include "planner/layout/model.h"

enum mf_field {
    MF_FIELD_LAYERS,
    MF_FIELD_HIDDEN,
    MF_FIELD_VOCAB,
    MF_FIELD_HEADS,
    MF_FIELD_KV_HEADS,
    MF_FIELD_HEAD_DIM,
    MF_FIELD_MLA_Q,
    MF_FIELD_MLA_KV,
    MF_FIELD_MLA_NOPE,
    MF_FIELD_MLA_ROPE,
    MF_FIELD_MLA_V,
    MF_FIELD_WINDOW,
    MF_FIELD_DENSE_FFN,
    MF_FIELD_MOE_FFN,
    MF_FIELD_EXPERTS,
    MF_FIELD_TOPK,
    MF_FIELD_SHARED_EXPERTS,
    MF_FIELD_SHARED_FFN,
    MF_FIELD_GROUPS,
    MF_FIELD_TOPK_GROUPS,
    MF_FIELD_MTP_LAYERS,
    MF_FIELD_V_DIM,
    MF_FIELD_Q_RANK,
    MF_FIELD_O_RANK,
    MF_FIELD_O_GROUPS,
    MF_FIELD_GATE_DIM,
    MF_FIELD_ATTENTION_EXPERTS,
    MF_FIELD_ATTENTION_TOPK,
    MF_FIELD_COMPRESS_RATIO,
    MF_FIELD_CONV_KERNEL,
    MF_FIELD_BESIDE_FFN,
    MF_FIELD_LATENT,
    MF_FIELD_ZERO_EXPERTS,
    MF_FIELD_POSITIONS,
    MF_FIELD_NORMS_MIXER,
    MF_FIELD_NORMS_FFN,
    MF_FIELD_NORMS_END,
    MF_FIELD_LAYER_EXTRA,
    MF_FIELD_FULL_HEADS,
    MF_FIELD_FULL_KV_HEADS,
    MF_FIELD_FULL_HEAD_DIM,
    MF_FIELD_FULL_V_DIM,
    MF_FIELD_SLIDING_HEADS,
    MF_FIELD_SLIDING_KV_HEADS,
    MF_FIELD_SLIDING_HEAD_DIM,
    MF_FIELD_SLIDING_V_DIM,
    MF_FIELD_LINEAR_KEY_HEADS,
    MF_FIELD_LINEAR_VALUE_HEADS,
    MF_FIELD_LINEAR_KEY_DIM,
    MF_FIELD_LINEAR_VALUE_DIM,
    MF_FIELD_LINEAR_CONV,
    MF_FIELD_LINEAR_GATE_RANK,
    MF_FIELD_LINEAR_DECAY_RANK,
    MF_FIELD_MAMBA_INNER,
    MF_FIELD_MAMBA_STATE,
    MF_FIELD_MAMBA_CONV,
    MF_FIELD_MAMBA_DT_RANK,
    MF_FIELD_MAMBA_HEADS,
    MF_FIELD_MAMBA_HEAD_DIM,
    MF_FIELD_MAMBA_GROUPS,
    MF_FIELD_INDEX_HEADS,
    MF_FIELD_INDEX_DIM,
    MF_FIELD_INDEX_TOPK,
    MF_FIELD_INDEX_RATIO,
    MF_FIELDS
};

/* What the JSON of a model calls FIELD: OBJECT is NULL at the top level. */
const char *mf_field_key(enum mf_field field);
const char *mf_field_object(enum mf_field field);

/* The smallest value allowed; 0 means that the part may be absent. */
int64_t mf_field_least(enum mf_field field);

int64_t *mf_field_of(struct mf_model *model, enum mf_field field);
int64_t mf_field_get(const struct mf_model *model, enum mf_field field);

/* VALUE in the range of FIELD; NAME stands in the message. */
int mf_field_check(
    enum mf_field field, int64_t value, const char *name, struct mf_error *err);

/* Every figure in its range and consistent with the others. NAMES is what the
 * file that was read calls each field (NULL: as in the model's JSON), so that
 * a message names a key that the user can find.
 */
int mf_model_check(const struct mf_model *model,
    const char *const names[MF_FIELDS], struct mf_error *err);

/* Replace control characters and bytes that are not UTF-8 by '?'. */
void mf_model_clean_text(char *text);

#endif
